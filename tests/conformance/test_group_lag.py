"""The lag of consumer groups in real brokers' directories, from the commits and records that Kafka's reader found."""

import shutil
from collections import defaultdict

import pytest

import kafkacodec as kc
from kafkacodec.log.state.groups import read_consumer_groups
from tests.conformance.test_internal_topics import WRITERS, expected_offsets
from tests.corpus import ROOT, segments

BROKER = ROOT / "logs" / "kraft-4.1.0"


def logs(writer):
    """The sidecar's batches and records by topic and partition, in order."""
    found = defaultdict(lambda: ([], []))
    for item in sorted(segments(writer=writer), key=lambda s: s.name):
        if item.path.suffix == ".log":
            topic, _, number = item.path.parent.name.rpartition("-")
            batches, records = found[topic, int(number)]
            batches += item.expected.batches
            records += item.expected.records
    return found


@pytest.mark.parametrize("writer", WRITERS)
def test_lag(writer):
    expected, here = expected_offsets(writer), logs(writer)
    found = {(line.group, line.topic, line.partition): line for line in kc.log.lag(ROOT / "logs" / writer)}
    assert expected.keys() <= found.keys()
    for place, (offset, _, _, committed, _) in expected.items():
        mine = found[place]
        assert (mine.offset, mine.commit_timestamp) == (offset, committed)
        if place[1:] not in here:
            assert (mine.end_offset, mine.lag, mine.lag_ms) == (None, None, None)
            assert mine.notes == ["the partition is not in the directory"]
            continue
        batches, records = here[place[1:]]
        end = batches[-1]["nextOffset"]
        assert (mine.log_end_offset, mine.end_offset, mine.lag) == (end, end, end - offset)
        unread = [r.timestamp for r in records if r.offset >= offset and not r.is_control]
        newest = None if batches[-1]["maxTimestamp"] == -1 else batches[-1]["maxTimestamp"]
        assert mine.end_timestamp == newest
        assert mine.timestamp == (unread[0] if unread else None)
        if offset == end:
            assert mine.lag_ms == 0
        elif unread and unread[0] is not None:
            assert mine.lag_ms == max(newest - unread[0], 0)


def test_some_lag_is_not_zero_and_some_is():
    found = kc.log.lag(BROKER)
    assert {bool(line.lag) for line in found} == {True, False}
    assert any(line.lag_ms for line in found)


def test_members_own_partitions():
    directory = ROOT / "logs" / "v0-0.9.0.1"
    owned = {
        (group.group, owned.topic, number): member
        for group in read_consumer_groups(directory)
        for member in group.members
        for owned in member.owned
        for number in owned.partitions
    }
    assert owned
    for line in kc.log.lag(directory):
        member = owned.get((line.group, line.topic, line.partition))
        known = None if member is None else (member.member_id, member.client_id, member.client_host)
        assert known == (None if line.member_id is None else (line.member_id, line.client_id, line.client_host))


def test_the_high_watermark_ends_what_can_be_read(tmp_path):
    shutil.copytree(BROKER, tmp_path / "broker")
    checkpoint = tmp_path / "broker" / "replication-offset-checkpoint"
    marks = dict(line.rsplit(" ", 1) for line in checkpoint.read_text().splitlines()[2:])
    assert marks["gzip 0"] == "206"
    lines = [f"{place} {'100' if place == 'gzip 0' else mark}" for place, mark in marks.items()]
    checkpoint.write_text("\n".join(["0", str(len(lines)), *lines, ""]))
    found = {line.group: line for line in kc.log.lag(tmp_path / "broker") if line.topic == "gzip"}
    group = found["group-268"]
    assert (group.offset, group.end_offset, group.log_end_offset, group.lag) == (96, 100, 206, 4)
    late = found["group-711"]  # it has read what the checkpoint does not have yet
    assert (late.offset, late.end_offset, late.lag, late.lag_ms) == (206, 206, 0, 0)
    checkpoint.unlink()
    assert {line.end_offset for line in kc.log.lag(tmp_path / "broker") if line.topic == "gzip"} == {206}


def test_open_transactions_hold_back_committed_readers(tmp_path):
    """The log of txn-open, which has an open transaction, under the name of a topic that has a commit."""
    shutil.copytree(BROKER, tmp_path / "broker")
    shutil.rmtree(tmp_path / "broker" / "txn-0")
    shutil.copytree(BROKER / "txn-open-0", tmp_path / "broker" / "txn-0")
    (tmp_path / "broker" / "replication-offset-checkpoint").unlink()
    batches = logs("kraft-4.1.0")["txn-open", 0][0]
    ended = {b["producerId"] for b in batches if b["isControl"]}
    stable = kc.log.Partition(BROKER / "txn-open-0").last_stable_offset()
    assert stable < batches[-1]["nextOffset"]
    assert ended
    for level, end in (("read_uncommitted", batches[-1]["nextOffset"]), ("read_committed", stable)):
        (line,) = [ln for ln in kc.log.lag(tmp_path / "broker", isolation_level=level) if ln.topic == "txn"]
        assert line.end_offset == end
        assert line.offset == 996
        assert line.lag == 0
        assert line.notes == ["committed after the end of the log"]
    with pytest.raises(ValueError, match="isolation_level must be"):
        kc.log.lag(BROKER, isolation_level="serializable")


def test_logs_in_another_directory(tmp_path):
    """A broker with two log directories, and one with a shorter replica."""
    for name in ("__consumer_offsets-0", "__consumer_offsets-1"):
        shutil.copytree(BROKER / name, tmp_path / "a" / name)
    shutil.copytree(BROKER / "gzip-0", tmp_path / "b" / "gzip-0")
    shutil.copytree(BROKER / "gzip-0", tmp_path / "c" / "gzip-0")
    for path in (tmp_path / "c" / "gzip-0").glob("*157.*"):
        path.unlink()
    both = kc.log.lag([tmp_path / "a", tmp_path / "b", tmp_path / "c"])
    assert {line.end_offset for line in both if line.topic == "gzip"} == {206}
    alone = kc.log.lag(tmp_path / "a")
    assert {line.end_offset for line in alone} == {None}
    with pytest.raises(FileNotFoundError, match="__consumer_offsets"):
        kc.log.lag(tmp_path / "b")
    with pytest.raises(FileNotFoundError):
        kc.log.lag([tmp_path / "a", tmp_path / "missing"])


def test_deleted_records_are_noted(tmp_path):
    shutil.copytree(BROKER, tmp_path / "broker")
    for path in (tmp_path / "broker" / "gzip-0").glob("*0000.*"):
        path.unlink()
    (line,) = [line for line in kc.log.lag(tmp_path / "broker") if line.group == "group-268"]
    assert (line.offset, line.start_offset, line.lag) == (96, 157, 110)
    assert line.notes == ["61 offsets deleted before they were read"]


def test_damage_at_the_end_of_a_log_is_no_end(tmp_path):
    shutil.copytree(BROKER, tmp_path / "broker")
    path = tmp_path / "broker" / "gzip-0" / "00000000000000000157.log"
    item = next(s for s in segments(writer="kraft-4.1.0") if s.name.endswith("/gzip-0/00000000000000000157.log"))
    damaged = item.expected.batches[-3]
    data = bytearray(path.read_bytes())
    data[damaged["position"] + 8 : damaged["position"] + 12] = b"\xff\xff\xff\xff"
    path.write_bytes(data)
    with pytest.raises(kc.DecodeError, match="gzip-0"):
        kc.log.lag(tmp_path / "broker")
    problems = []
    found = kc.log.lag(tmp_path / "broker", problems=problems)
    assert {line.end_offset for line in found if line.topic == "gzip"} == {206}
    assert [str(path) in str(problem) for problem in problems] == [True]
