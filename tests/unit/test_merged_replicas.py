"""Directories of several brokers: refused, merged or read one by one; each record of a merged log once."""

from __future__ import annotations

import os
import shutil
import uuid
from base64 import urlsafe_b64encode

import pytest

import kafkacodec as kc
from kafkacodec.log.formats.checkpoints import LeaderEpoch
from kafkacodec.log.partitions.each_once import each_once
from kafkacodec.log.partitions.inside import relisted
from kafkacodec.log.partitions.merged import MergedPartition, observe
from kafkacodec.log.partitions.replicas import Part
from kafkacodec.spark.errors import OptionError
from kafkacodec.spark.reading.discovery import selected
from kafkacodec.spark.reading.options import parse_read_options
from kafkacodec.spark.reading.planning import plan
from kafkacodec.spark.reading.tasks import read_ranges
from tests.corpus import ROOT
from tests.unit.test_spark_reading import options, read

LOGS = ROOT / "logs" / "kraft-4.1.0"


def batch(offset, epoch, *values, **more):
    """A batch as a leader of an epoch writes it; the epoch is not part of the checksum."""
    made = bytearray(kc.encode([(None, value.encode()) for value in values], base_offset=offset, **more))
    made[12:16] = epoch.to_bytes(4, "big")
    return bytes(made)


def marker(offset, epoch, producer, *, commit):
    made = bytearray(
        kc.encode(
            [(b"\0\0\0\1" if commit else b"\0\0\0\0", b"\0\0\0\0\0\0")],
            base_offset=offset, producer_id=producer, producer_epoch=0, is_transactional=True,
        )
    )  # fmt: skip
    made[22] |= 0x20
    made[17:21] = kc.crc32c(made[21:]).to_bytes(4, "big")
    made[12:16] = epoch.to_bytes(4, "big")
    return bytes(made)


def replica(directory, segments, epochs=None, *, mark=None, topic_id=None, name="t-0"):
    """A broker's log directory with one partition: base offset -> batches, and its checkpoints."""
    path = directory / name
    path.mkdir(parents=True)
    for base, batches in segments.items():
        (path / f"{base:020}.log").write_bytes(b"".join(batches))
    if epochs is not None:
        lines = "".join(f"{epoch} {start}\n" for epoch, start in epochs)
        (path / "leader-epoch-checkpoint").write_text(f"0\n{len(epochs)}\n{lines}")
    if mark is not None:
        (directory / "replication-offset-checkpoint").write_text(f"0\n1\nt 0 {mark}\n")
    if topic_id is not None:
        text = urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")
        (path / "partition.metadata").write_text(f"version: 0\ntopic_id: {text}\n")
    return path


def values(path, **given):
    table = read(path, replicas="merge", names=["offset", "value"], **given)
    return [(row["offset"], row["value"].decode()) for row in table.to_pylist()]


@pytest.fixture
def diverged(tmp_path):
    """Broker 1 wrote c and d as leader of epoch 4; broker 2 had only a and b when it began epoch 5."""
    first = [batch(0, 4, "a"), batch(1, 4, "b")]
    replica(tmp_path / "1" / "data", {0: [*first, batch(2, 4, "c", "d")]}, [(4, 0)], mark=2)
    replica(tmp_path / "2" / "data", {0: [*first, batch(2, 5, "C")]}, [(4, 0), (5, 2)], mark=1)
    replica(tmp_path / "3" / "data", {0: first[:1]}, [(4, 0)], mark=0)
    return tmp_path


@pytest.mark.parametrize(
    "path", ["", "*", "*/data", "1/data,{}/2/data,{}/3/data", "1/data/t-0,{}/2/data/t-0,{}/3/data/t-0"]
)
def test_the_log_of_the_last_leader(diverged, path):
    found = values(f"{diverged}/{path.format(*[diverged] * 2)}")
    assert found == [(0, "a"), (1, "b"), (2, "C")]


def test_replicas_are_an_error_unless_they_are_asked_for(diverged):
    sentence = (
        f"replicas: t-0 is in {diverged}/1/data/t-0 and {diverged}/2/data/t-0 and 1 more; "
        "replicas=merge reads replicas as one log, replicas=all reads each of them"
    )
    with pytest.raises(OptionError) as raised:
        plan(options(diverged))
    assert str(raised.value) == sentence
    assert read(diverged, replicas="all").num_rows == 4 + 3 + 1


def test_polars_reads_replicas_once(diverged):
    paths = [diverged / number / "data" for number in "123"]
    reason = rf"^t-0 is in {paths[0]}/t-0 and {paths[1]}/t-0 and 1 more; replicas='merge' reads .*, replicas='all'"
    with pytest.raises(ValueError, match=reason):
        kc.log.scan_polars(paths)
    merged = kc.log.scan_polars(paths, replicas="merge").select("value").collect()
    assert merged["value"].to_list() == [b"a", b"b", b"C"]
    assert kc.log.scan_polars(paths, replicas="all").collect().height == 4 + 3 + 1
    same = kc.log.scan_polars([paths[0], paths[0] / "t-0", paths[0] / "t-0" / f"{0:020}.log"])
    assert same.collect().height == 4
    with pytest.raises(ValueError, match="replicas must be 'error', 'merge' or 'all', not 'one'"):
        kc.log.scan_polars(paths, replicas="one")


@pytest.mark.parametrize("replicas", ["error", "all"])
def test_named_segments_of_a_directory_by_two_ways(tmp_path, replicas):
    path = replica(tmp_path, {0: [batch(0, 1, "a")], 1: [batch(1, 1, "b")], 2: [batch(2, 1, "c")]})
    files = [
        path / f"{0:020}.log",
        tmp_path / "." / ".." / tmp_path.name / "t-0" / f"{2:020}.log",
        path / f"{0:020}.log",
    ]
    [found] = each_once(kc.log.discover(files), replicas)
    assert [os.path.basename(segment.path) for segment in found.segments] == [f"{0:020}.log", f"{2:020}.log"]


@pytest.mark.parametrize("checkpoints", [(), (1,), (2,), (1, 2, 3)])
def test_epochs_come_from_the_batches_where_a_checkpoint_is_missing(diverged, checkpoints):
    for number in checkpoints:
        (diverged / f"{number}/data/t-0/leader-epoch-checkpoint").unlink()
    assert values(diverged) == [(0, "a"), (1, "b"), (2, "C")]


def test_epochs_of_batches_that_are_later_than_the_checkpoint(tmp_path):
    path = replica(
        tmp_path,
        {
            0: [batch(0, 1, "a"), batch(1, 2, "b")],
            2: [batch(2, 2, "c"), batch(3, 2, "d")],
            4: [batch(4, 5, "e"), batch(5, 6, "f")],
            6: [],
        },
        [(0, 0), (1, 0)],
    )
    later = [LeaderEpoch(2, 1), LeaderEpoch(5, 4), LeaderEpoch(6, 5)]
    assert list(observe(kc.log.Partition(path)).epochs) == [LeaderEpoch(0, 0), LeaderEpoch(1, 0), *later]
    (path / "leader-epoch-checkpoint").unlink()
    assert list(observe(kc.log.Partition(path)).epochs) == [LeaderEpoch(1, 0), *later]


def test_a_lost_segment_comes_from_another_replica(tmp_path):
    for number in "12":
        shutil.copytree(LOGS / "none-0", tmp_path / number / "none-0", copy_function=shutil.copyfile)
    whole = read(LOGS / "none-0")
    os.unlink(tmp_path / "1/none-0/00000000000000000032.log")
    os.unlink(tmp_path / "2/none-0/00000000000000000143.log")
    assert read(tmp_path, replicas="merge").equals(whole)
    for limits in ({"maxPartitionBytes": 3000}, {"maxRecordsPerPartition": 7}, {"minPartitions": 9}):
        assert read(tmp_path, replicas="merge", **limits).equals(whole)
    os.unlink(tmp_path / "2/none-0/00000000000000000032.log")
    with pytest.raises(kc.MissingOffsets, match="gap of 33 offsets from 32 on"):
        read(tmp_path, replicas="merge")


def test_offsets_between_the_end_of_one_and_the_start_of_another_are_missing(tmp_path):
    replica(tmp_path / "1", {0: [batch(0, 1, "a", "b")]}, [(1, 0)])
    replica(tmp_path / "2", {5: [batch(5, 2, "f")]}, [(2, 5)])
    with pytest.raises(kc.MissingOffsets, match="gap of 3 offsets from 2 on"):
        values(tmp_path)
    assert values(tmp_path, gaps="accept") == [(0, "a"), (1, "b"), (5, "f")]
    assert values(tmp_path, startingOffsets='{"t": {"0": 5}}') == [(5, "f")]
    with pytest.raises(kc.MissingOffsets):
        values(tmp_path, startingOffsets='{"t": {"0": 3}}')


def test_the_deleted_start_comes_from_another_replica(tmp_path):
    replica(tmp_path / "1", {0: [batch(0, 1, "a", "b")], 2: [batch(2, 2, "x", "y")]}, [(1, 0), (2, 2)])
    replica(tmp_path / "2", {2: [batch(2, 3, "c"), batch(3, 3, "d")]}, [(1, 2), (3, 2)])
    assert values(tmp_path) == [(0, "a"), (1, "b"), (2, "c"), (3, "d")]
    (tmp_path / "2" / "log-start-offset-checkpoint").write_text("0\n1\nt 0 1\n")
    assert values(tmp_path) == [(1, "b"), (2, "c"), (3, "d")]


def test_timestamps_and_offsets_find_their_part(tmp_path):
    for number in "12":
        shutil.copytree(LOGS / "none-0", tmp_path / number / "none-0", copy_function=shutil.copyfile)
    os.unlink(tmp_path / "1/none-0/00000000000000000032.log")
    os.unlink(tmp_path / "2/none-0/00000000000000000143.log")
    [merged] = selected(options(tmp_path, replicas="merge"))
    alone = kc.log.Partition(LOGS / "none-0")
    assert isinstance(merged, MergedPartition)
    assert len(merged.parts) == 3
    assert (merged.start_offset(), merged.end_offset()) == (alone.start_offset(), alone.end_offset())
    times = kc.decode(b"".join(p.read_bytes() for p in sorted((LOGS / "none-0").glob("*.log"))), columns=["timestamp"])
    for time in times["timestamp"].astype("i8")[::7].tolist():
        assert merged.offset_of_timestamp(time) == alone.offset_of_timestamp(time)
    again = relisted(merged)
    assert isinstance(again, MergedPartition)
    assert again.parts == merged.parts


@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_across_parts(tmp_path, commit):
    txn = {"producer_id": 7, "producer_epoch": 0, "is_transactional": True}
    start, rest = [batch(0, 1, "a", "b", **txn)], [batch(2, 1, "c"), marker(3, 1, 7, commit=commit), batch(4, 1, "d")]
    replica(tmp_path / "1", {0: start, 2: rest}, [(1, 0)])
    replica(tmp_path / "2", {0: start, 2: rest, 5: [batch(5, 1, "e")]}, [(1, 0)])
    os.unlink(tmp_path / f"2/t-0/{0:020}.log")
    kept = [(0, "a"), (1, "b")] if commit else []
    assert values(tmp_path, isolationLevel="read_committed") == [*kept, (2, "c"), (4, "d"), (5, "e")]
    [merged] = selected(options(tmp_path, replicas="merge"))
    assert isinstance(merged, MergedPartition)
    assert merged.parts == (Part(0, 0, 2), Part(1, 2, 6))
    assert merged.last_stable_offset() == 6


def test_an_open_transaction_ends_what_is_read(tmp_path):
    txn = {"producer_id": 7, "producer_epoch": 0, "is_transactional": True}
    replica(tmp_path / "1", {0: [batch(0, 1, "a"), batch(1, 1, "b", **txn)]}, [(1, 0)])
    replica(tmp_path / "2", {0: [batch(0, 1, "a"), batch(1, 1, "b", **txn), batch(2, 1, "c")]}, [(1, 0)])
    assert values(tmp_path, isolationLevel="read_committed") == [(0, "a")]


@pytest.fixture(params=["one directory", "replicas", "parts"])
def lost_marker(request, tmp_path):
    """A transaction whose marker is in a segment that is lost everywhere, so that it seems open."""
    txn = {"producer_id": 7, "producer_epoch": 0, "is_transactional": True}
    first, rest = [batch(0, 1, "a"), batch(1, 1, "b", **txn)], {5: [batch(5, 1, "f")], 6: [batch(6, 1, "g")]}
    if request.param == "parts":  # 2 has lost the start, 1 the end
        replica(tmp_path / "1", {0: first}, [(1, 0)])
        replica(tmp_path / "2", rest, [(1, 0)])
    else:
        for number in "12" if request.param == "replicas" else "1":
            replica(tmp_path / number, {0: first, **rest}, [(1, 0)])
    return tmp_path


def test_a_lost_marker_is_no_open_transaction(lost_marker):
    committed = {"isolationLevel": "read_committed"}
    with pytest.raises(kc.MissingOffsets, match="gap of 3 offsets from 2 on"):
        values(lost_marker, **committed)
    assert values(lost_marker, **committed, gaps="accept") == [(0, "a")]
    assert values(lost_marker, **committed, endingOffsets='{"t": {"0": 2}}') == [(0, "a")]
    assert values(lost_marker, **committed, startingOffsets='{"t": {"0": 5}}') == []  # the gap is before it


def test_high_watermarks_count_as_far_as_the_replica_agrees(diverged):
    [merged] = selected(options(diverged, replicas="merge"))
    assert merged.high_watermark == 2
    assert values(diverged, endAt="highWatermark") == [(0, "a"), (1, "b")]
    (diverged / "1/data/replication-offset-checkpoint").write_text("0\n1\nt 0 4\n")
    assert values(diverged, endAt="highWatermark") == [(0, "a"), (1, "b")]


def test_topics_with_different_ids_are_no_replicas(tmp_path):
    ids = [uuid.UUID(int=n << 64 | 5) for n in (1, 2)]
    for number, topic_id in enumerate(ids):
        replica(tmp_path / str(number), {0: [batch(0, 1, "a")]}, topic_id=topic_id)
    for how in ("error", "merge"):
        with pytest.raises(OptionError, match=rf"t-0 is of different topics in .*0/t-0 \(topic id {ids[0]}\)"):
            plan(options(tmp_path, replicas=how))
    assert read(tmp_path, replicas="all").num_rows == 2


def test_several_log_directories_of_one_broker_have_different_partitions(tmp_path):
    replica(tmp_path / "disk1", {0: [batch(0, 1, "a")]}, name="t-0")
    replica(tmp_path / "disk2", {0: [batch(0, 1, "b")]}, name="t-1")
    replica(tmp_path / "disk2", {0: [batch(0, 1, "a")]}, name="t-0.abc-future")
    assert read(tmp_path)["value"].to_pylist() == [b"a", b"b"]


def test_the_same_directory_by_two_ways_is_read_once(tmp_path):
    path = replica(tmp_path / "1", {0: [batch(0, 1, "a")], 1: [batch(1, 1, "b")]})
    os.symlink(tmp_path / "1", tmp_path / "link")
    for paths in (f"{tmp_path}/1,{path}", f"{path},{path}/{1:020}.log", f"{path}/{1:020}.log,{path}", str(tmp_path)):
        assert read(paths)["value"].to_pylist() == [b"a", b"b"]


def test_directories_without_a_partition_are_searched_two_levels_deep(tmp_path):
    replica(tmp_path / "a" / "b" / "c", {0: [batch(0, 1, "a")]})
    (tmp_path / "a" / "lost+found").mkdir()
    assert read(tmp_path / "a").num_rows == 1
    with pytest.raises(OptionError, match="no Kafka log segments in this directory"):
        read(tmp_path)


def test_the_option_is_checked():
    with pytest.raises(OptionError, match=r"^replicas: expected error, merge or all, not 'one'$"):
        parse_read_options({"path": "/logs", "replicas": "one"})


def test_ranges_of_merged_replicas_can_be_read_by_tasks(diverged):
    ranges = [piece for task in plan(options(diverged, replicas="merge")) for piece in task]
    assert [(piece.path.split("/")[-4], piece.start_offset, piece.end_offset) for piece in ranges] == [("2", 0, None)]
    [table] = read_ranges(ranges, ["value"], permissive=False)
    assert table["value"].to_pylist() == [b"a", b"b", b"C"]
