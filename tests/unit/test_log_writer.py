"""kc.log.LogWriter: rolling, continuing, refusing and discarding segments."""

from __future__ import annotations

import errno
import gc
import os
import pickle
import re
import uuid
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kafkacodec as kc
from kafkacodec.log import LogDirectory, LogWriter, Partition, SegmentWriter, remove_unfinished


def records(count: int, start: int = 0, *, time: int = 1_700_000_000_000) -> pa.Table:
    numbers = range(start, start + count)
    return pa.table(
        {
            "key": pa.array([b"%d" % n for n in numbers]),
            "value": pa.array([b"value %d" % n * 5 for n in numbers]),
            "timestamp": pa.array([time + n for n in numbers], pa.timestamp("ms")),
        }
    )


def offsets(directory: Path, topic: str = "orders", partition: int = 0) -> list[int]:
    log = LogDirectory(directory)
    return [n for chunk in log.read(topic, partition) for n in chunk["offset"].tolist()]


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_a_new_partition(tmp_path: Path) -> None:
    number = uuid.uuid4()
    with LogWriter(tmp_path / "logs", "orders", 3, topic_id=number, leader_epoch=5) as writer:
        assert writer.write(records(1000), codec="zstd") == 1000
        assert names(tmp_path / "logs" / "orders-3")[-2:] == ["leader-epoch-checkpoint", "partition.metadata"]
        assert Partition(tmp_path / "logs" / "orders-3").segments == []
    assert offsets(tmp_path / "logs", "orders", 3) == list(range(1000))
    assert names(tmp_path / "logs" / "orders-3") == [
        "00000000000000000000.index",
        "00000000000000000000.log",
        "00000000000000000000.timeindex",
        "leader-epoch-checkpoint",
        "partition.metadata",
    ]
    assert (tmp_path / "logs" / "orders-3" / "leader-epoch-checkpoint").read_bytes() == b"0\n1\n5 0\n"
    assert kc.log.read_topic_id(tmp_path / "logs" / "orders-3" / "partition.metadata") == number
    headers = Partition(tmp_path / "logs" / "orders-3").segments[0].scan()
    assert set(headers["partition_leader_epoch"].tolist()) == {5}


def test_segments_end_by_size(tmp_path: Path) -> None:
    with LogWriter(tmp_path, "orders", 0, segment_bytes=10_000, start_offset=100, sync=False) as writer:
        writer.write(records(1000), batch_bytes=1000)
    segments = Partition(tmp_path / "orders-0").segments
    assert len(segments) > 5
    assert segments[0].base_offset == 100
    assert all(s.size_in_bytes <= 10_000 for s in segments)
    assert all(s.first_offset() == s.base_offset for s in segments)
    assert offsets(tmp_path) == list(range(100, 1100))


def test_segments_end_by_age(tmp_path: Path) -> None:
    with LogWriter(tmp_path, "orders", 0, segment_ms=100, sync=False) as writer:
        writer.write(records(1000), batch_bytes=300)
    spans = []
    for segment in Partition(tmp_path / "orders-0").segments:
        times = [t for chunk in segment.read() for t in chunk["timestamp"].astype(int).tolist()]
        spans.append(times[-1] - times[0])
    assert len(spans) == 10
    assert max(spans) <= 100 + 4  # the first batch's largest timestamp counts


@pytest.mark.parametrize("limits", [{"segment_bytes": 10_000}, {"segment_ms": 100}, {"segment_bytes": 1}])
def test_batches_in_one_run_go_into_the_same_segments(limits: dict[str, Any], tmp_path: Path) -> None:
    batches = list(kc.iter_encoded(records(1000), batch_bytes=300))
    for partition, runs in enumerate([[b.data for b in batches], [b"".join(b.data for b in batches)]]):
        with LogWriter(tmp_path, "orders", partition, **limits, sync=False) as writer:
            assert sum(writer.write_batches(run) for run in runs) == 1000
    one, other = (Path(tmp_path / f"orders-{partition}") for partition in (0, 1))
    names = sorted(path.name for path in one.iterdir())
    assert names == sorted(path.name for path in other.iterdir())
    assert len(names) > 20
    assert all((one / name).read_bytes() == (other / name).read_bytes() for name in names)


def test_a_batch_larger_than_a_segment_has_its_own(tmp_path: Path) -> None:
    with LogWriter(tmp_path, "orders", 0, segment_bytes=500, sync=False) as writer:
        writer.write([(None, b"x" * n) for n in (10, 2000, 10)], batch_bytes=100)
    assert [s.base_offset for s in Partition(tmp_path / "orders-0").segments] == [0, 1, 2]


def test_offsets_too_far_apart_for_one_index(tmp_path: Path) -> None:
    with LogWriter(tmp_path, "orders", 0, sync=False) as writer:
        writer.write(pa.table({"value": ["a", "b", "c"], "offset": [5, 2**31 + 5, 2**40]}))
    assert [s.base_offset for s in Partition(tmp_path / "orders-0").segments] == [5, 2**31 + 5, 2**40]
    # Nobody can tell that nothing was between them.
    chunks = Partition(tmp_path / "orders-0").read(gaps="accept")
    assert [offset for chunk in chunks for offset in chunk["offset"].tolist()] == [5, 2**31 + 5, 2**40]


def test_look_up_through_what_was_written(tmp_path: Path) -> None:
    with LogWriter(tmp_path, "orders", 0, index_interval_bytes=500, sync=False) as writer:
        writer.write(records(5000), batch_bytes=400)
    segment = Partition(tmp_path / "orders-0").segments[0]
    assert segment.offset_of_timestamp(1_700_000_000_000 + 1234) == 1234
    assert not segment.index_problems
    assert len(kc.log.read_offset_index(segment.path.replace(".log", ".index"))) > 50


def test_a_partition_is_continued(tmp_path: Path) -> None:
    with LogWriter(tmp_path, "orders", 0, sync=False) as writer:
        writer.write(records(100))
        number = writer.topic_id
    with LogWriter(tmp_path, "orders", 0, append=True, leader_epoch=2, sync=False) as writer:
        assert (writer.next_offset, writer.topic_id) == (100, number)
        writer.write(records(50))
        writer.commit()
        writer.write(records(50))
    assert offsets(tmp_path) == list(range(200))
    assert Partition(tmp_path / "orders-0").leader_epochs == [(0, 0), (2, 100)]
    with LogWriter(tmp_path, "orders", 1, sync=False) as writer:
        assert writer.topic_id == number


def test_nothing_written_leaves_an_empty_partition(tmp_path: Path) -> None:
    with LogWriter(tmp_path, "orders", 0, sync=False) as writer:
        writer.write([])
    assert names(tmp_path / "orders-0") == ["leader-epoch-checkpoint", "partition.metadata"]
    with LogWriter(tmp_path, "orders", 0, sync=False) as writer:
        writer.write(records(3))
    assert offsets(tmp_path) == [0, 1, 2]


def test_a_broker_s_empty_segment_is_replaced(tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    directory.mkdir()
    (directory / "00000000000000000000.log").touch()
    (directory / "00000000000000000000.index").write_bytes(bytes(8192))
    with LogWriter(tmp_path, "orders", 0, sync=False) as writer:
        writer.write(records(3))
    assert offsets(tmp_path) == [0, 1, 2]
    assert (directory / "00000000000000000000.index").read_bytes() == b""


def test_batches_as_they_are(tmp_path: Path) -> None:
    transaction: dict[str, Any] = {"producer_id": 9, "producer_epoch": 0}
    data = kc.encode(records(10), is_transactional=True, base_sequence=0, **transaction)
    data += kc.control_batch("abort", offset=10, **transaction)
    data += kc.encode(records(5), base_offset=11)
    with LogWriter(tmp_path, "orders", 0, sync=False) as writer:
        assert writer.write_batches(data) == 16
        assert writer.next_offset == 16
    assert Partition(tmp_path / "orders-0").segments[0].path
    assert (tmp_path / "orders-0" / "00000000000000000000.log").read_bytes() == data
    committed = LogDirectory(tmp_path).read("orders", 0, isolation_level="read_committed")
    assert [n for chunk in committed for n in chunk["offset"].tolist()] == list(range(11, 16))


def test_an_exception_drops_what_is_not_visible(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path, "orders", 0, sync=False)

    def fail_half_way() -> None:
        with writer:
            writer.write(records(10))
            writer.commit()
            writer.write(records(10))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_half_way()
    assert offsets(tmp_path) == list(range(10))
    assert not [n for n in names(tmp_path / "orders-0") if n.endswith(".tmp")]
    assert writer.next_offset == 10


def test_a_pending_segment_can_be_committed_elsewhere(tmp_path: Path) -> None:
    staging, final = tmp_path / "staging", tmp_path / "orders-0"
    staging.mkdir()
    final.mkdir()
    writer = SegmentWriter(staging, 7)
    for batch in kc.iter_encoded(records(500), base_offset=7):
        writer.append(batch)
    pending = pickle.loads(pickle.dumps(writer.finish()))
    assert (pending.base_offset, pending.last_offset, pending.num_records) == (7, 506, 500)
    assert offsets(tmp_path) == []
    path = pending.commit(str(final))
    assert path == str(final / "00000000000000000007.log")
    assert os.path.getsize(path) == pending.size_in_bytes
    assert offsets(tmp_path) == list(range(7, 507))
    assert names(staging) == []


def test_a_segment_is_never_overwritten(tmp_path: Path) -> None:
    for content in (b"first", b"second"):
        writer = SegmentWriter(tmp_path, 0, sync=False)
        (batch,) = kc.iter_encoded([(None, content)])
        writer.append(batch)
        if content == b"second":
            with pytest.raises(FileExistsError):
                writer.commit()
        else:
            writer.commit()
    assert b"first" in (tmp_path / "00000000000000000000.log").read_bytes()
    assert not [n for n in names(tmp_path) if n.endswith(".tmp")]


def test_leftovers_are_removed_but_not_those_of_the_living(tmp_path: Path) -> None:
    with LogWriter(tmp_path, "orders", 0, sync=False) as writer:
        writer.write(records(3))
    directory = tmp_path / "orders-0"
    stale = directory / "00000000000000000003.log.0123456789abcdef.tmp"
    stale.write_bytes(b"half a batch")
    small = directory / "partition.metadata.0123456789abcdef.tmp"
    small.write_bytes(b"version")
    other = directory / "notes.tmp"
    other.touch()
    with SegmentWriter(directory, 3, sync=False) as alive:
        assert remove_unfinished(directory) == [str(stale), str(small)]
        (batch,) = kc.iter_encoded([(b"k", b"v")], base_offset=3)
        alive.append(batch)
    assert offsets(tmp_path) == [0, 1, 2, 3]
    assert other.exists()
    stale.write_bytes(b"half a batch")
    LogWriter(tmp_path, "orders", 0, append=True, sync=False)
    assert not stale.exists()


class TestRefused:
    def test_a_partition_with_records(self, tmp_path: Path) -> None:
        with LogWriter(tmp_path, "orders", 0, sync=False) as writer:
            writer.write(records(3))
        with pytest.raises(FileExistsError, match="append=True") as caught:
            LogWriter(tmp_path, "orders", 0)
        assert caught.value.filename == str(tmp_path / "orders-0")

    def test_a_torn_log(self, tmp_path: Path) -> None:
        with LogWriter(tmp_path, "orders", 0, sync=False) as writer:
            writer.write(records(30), batch_bytes=200)
        log = tmp_path / "orders-0" / "00000000000000000000.log"
        log.write_bytes(log.read_bytes()[:-5])
        with pytest.raises(kc.CorruptRecord, match="does not end with a complete batch"):
            LogWriter(tmp_path, "orders", 0, append=True)

    def test_another_topic_id_or_an_older_leader(self, tmp_path: Path) -> None:
        LogWriter(tmp_path, "orders", 0, leader_epoch=4, sync=False).commit()
        with pytest.raises(ValueError, match="topic_id"):
            LogWriter(tmp_path, "orders", 1, topic_id=uuid.uuid4())
        with pytest.raises(ValueError, match="leader_epoch is 3"):
            LogWriter(tmp_path, "orders", 0, leader_epoch=3)

    @pytest.mark.parametrize("topic", ["", ".", "..", "a/b", "a b", "ü", "x" * 250])
    def test_topic_names(self, topic: str, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="topic"):
            LogWriter(tmp_path, topic, 0)
        assert names(tmp_path) == []

    @pytest.mark.parametrize(
        "options",
        [
            {"partition": -1},
            {"partition": "0"},
            {"start_offset": -1},
            {"segment_bytes": 0},
            {"segment_bytes": 2**31},
            {"segment_ms": -1},
            {"index_interval_bytes": -1},
            {"leader_epoch": -1},
            {"topic_id": "a-text"},
        ],
        ids=str,
    )
    def test_options_out_of_range(self, options: dict[str, Any], tmp_path: Path) -> None:
        with pytest.raises((TypeError, ValueError), match=next(iter(options))):
            LogWriter(tmp_path, "orders", **{"partition": 0, **options})
        assert names(tmp_path) == []

    def test_a_segment_is_named_as_it_will_be(self, tmp_path: Path) -> None:
        with (
            pytest.raises(kc.EncodeError, match="below the next offset 100") as caught,
            kc.log.SegmentWriter(tmp_path, 100, sync=False) as writer,
        ):
            writer.append(next(kc.iter_encoded(records(1))))
        assert caught.value.path == str(tmp_path / "00000000000000000100.log")
        assert names(tmp_path) == []

    @pytest.mark.parametrize(
        "options", [{"base_offset": -1}, {"base_offset": "0"}, {"index_interval_bytes": -1}], ids=str
    )
    def test_numbers_of_a_segment(self, options: dict[str, Any], tmp_path: Path) -> None:
        with pytest.raises((TypeError, ValueError), match=next(iter(options))):
            kc.log.SegmentWriter(tmp_path, **{"base_offset": 0, **options})
        assert names(tmp_path) == []

    def test_offsets_that_go_back(self, tmp_path: Path) -> None:
        with LogWriter(tmp_path, "orders", 0, start_offset=10, sync=False) as writer:
            with pytest.raises(kc.EncodeError, match="offset 3, below the next offset 10"):
                writer.write(pa.table({"value": ["x"], "offset": [3]}))
            with pytest.raises(kc.EncodeError, match="offset 0, below the next offset 10"):
                writer.write_batches(kc.encode(records(1)))

    def test_what_is_no_batches(self, tmp_path: Path) -> None:
        data = kc.encode(records(3))
        with LogWriter(tmp_path, "orders", 0, sync=False) as writer:
            with pytest.raises(kc.EncodeError, match="trailing partial batch"):
                writer.write_batches(data[:-1])
            with pytest.raises(kc.DecodeError):
                writer.write_batches(data[:-1] + b"?")
        assert offsets(tmp_path) == []

    def test_a_destination_that_is_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "orders-0").touch()
        with pytest.raises(OSError, match="orders-0"):
            LogWriter(tmp_path, "orders", 0)

    def test_a_full_disk(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def full(descriptor: int) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        writer = LogWriter(tmp_path, "orders", 0)
        writer.write(records(10))
        writer.commit()
        writer.write(records(10))
        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left") as caught:
            writer.commit()
        assert caught.value.filename
        assert offsets(tmp_path) == list(range(10))
        assert not [n for n in names(tmp_path / "orders-0") if n.endswith(".tmp")]


def test_files_of_segments_that_never_became_visible_are_removed(tmp_path: Path) -> None:
    with LogWriter(tmp_path, "orders", 0) as writer:
        writer.write([(None, b"x")] * 10)
    partition = Path(writer.path)
    stale = [partition / f"{offset:020d}.{suffix}" for offset, suffix in ((11, "snapshot"), (10, "txnindex"))]
    kept = [partition / f"{offset:020d}.{suffix}" for offset, suffix in ((10, "snapshot"), (0, "txnindex"))]
    for path in stale + kept:
        path.write_bytes(b"")
    LogWriter(tmp_path, "orders", 0, append=True)
    assert not any(path.exists() for path in stale)
    assert all(path.exists() for path in kept)


def test_producers_are_followed_from_where_they_were_last_written_down(tmp_path: Path) -> None:
    producer: dict[str, Any] = {"producer_id": 7, "producer_epoch": 2}
    with LogWriter(tmp_path, "orders", 0) as writer:
        writer.write([(None, b"x")] * 10)
    with LogWriter(tmp_path, "orders", 0, append=True) as writer:
        records = [(None, b"y")] * 5
        batch = kc.encode(records, base_offset=10, base_sequence=2**31 - 3, is_transactional=True, **producer)
        writer.write_batches(batch)
    snapshots = [tmp_path / "orders-0" / f"{offset:020d}.snapshot" for offset in (10, 15, 16)]
    assert [path.exists() for path in snapshots] == [False, True, False]
    assert kc.log.read_producer_snapshot(snapshots[1]).entries.tolist() == [(7, 2, 1, 14, 4, -1, -1, 10)]
    with LogWriter(tmp_path, "orders", 0, append=True) as writer:
        writer.write_batches(kc.control_batch("abort", offset=15, timestamp=99, coordinator_epoch=3, **producer))
    assert kc.log.read_producer_snapshot(snapshots[2]).entries.tolist() == [(7, 2, 1, 14, 4, 99, 3, -1)]
    index = kc.log.read_transaction_index(tmp_path / "orders-0" / f"{15:020d}.txnindex")
    assert index.entries.tolist() == [(0, 7, 10, 15, 16)]


def test_producers_of_a_segment_that_cannot_be_read_are_not_taken_as_none(tmp_path: Path) -> None:
    with LogWriter(tmp_path, "orders", 0) as writer:
        writer.write(records(10))
        writer.commit()
        writer.write(records(10))
    first = tmp_path / "orders-0" / f"{0:020d}.log"
    first.unlink()
    first.symlink_to("/nonexistent/disk")
    before = names(tmp_path / "orders-0")
    writer = LogWriter(tmp_path, "orders", 0, append=True)
    writer.write_batches(kc.encode(records(5), base_offset=20, base_sequence=0, producer_id=7, producer_epoch=0))
    with pytest.raises(OSError, match="the symbolic link leads to no file"):
        writer.commit()
    assert names(tmp_path / "orders-0") == before


def test_what_was_committed_is_withdrawn_from_a_new_partition(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path / "logs", "orders", 0, segment_bytes=2_000)
    writer.write(records(500))
    assert len(names(Path(writer.path))) > 5
    writer.withdraw()
    assert not (tmp_path / "logs").exists()


def test_a_partition_that_was_there_keeps_its_records_and_the_committed_ones(tmp_path: Path) -> None:
    with LogWriter(tmp_path, "orders", 0) as first:
        first.write(records(3))
    second = LogWriter(tmp_path, "orders", 0, append=True, segment_bytes=2_000)
    second.write(records(500))
    second.withdraw()
    found = offsets(tmp_path)
    assert found == list(range(second.next_offset))
    assert 3 < len(found) < 503  # without the last segment


def test_records_of_another_writer_are_not_withdrawn(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path, "orders", 0)
    writer.write(records(3))
    writer.commit()
    with LogWriter(tmp_path, "orders", 0, append=True) as other:
        other.write(records(2))
    writer.withdraw()
    assert offsets(tmp_path) == [0, 1, 2, 3, 4]


def test_appending_looks_at_the_last_segments_only(tmp_path, monkeypatch):
    """However many there are: the end of the log is in the last segment that has batches."""
    from kafkacodec.log.formats import layout
    from kafkacodec.log.partitions import partition, segment07

    rows = [(None, b"v")] * 10
    for _ in range(30):
        with kc.log.LogWriter(tmp_path, "t", 0, append=True, sync=False) as writer:
            writer.write(rows)
    (tmp_path / "t-0" / f"{300:020d}.log").touch()  # a broker's new segment
    opened, parsed = [], []
    made, parse = segment07.segment_at, layout.parse_file_name
    monkeypatch.setattr(layout, "parse_file_name", lambda name: parsed.append(name) or parse(name))
    monkeypatch.setattr(partition, "segment_at", lambda path, **place: opened.append(path) or made(path, **place))
    with kc.log.LogWriter(tmp_path, "t", 0, append=True, sync=False) as writer:
        assert writer.next_offset == 300
    assert len(opened) <= 4
    assert len(set(parsed)) <= 12
    monkeypatch.undo()
    assert kc.log.Partition(tmp_path / "t-0").count() == 300


def test_a_writer_that_is_forgotten_says_what_is_lost(tmp_path: Path) -> None:
    def forget() -> None:
        writer = LogWriter(tmp_path, "t", 0, sync=False)
        writer.write([(b"k", b"v")] * 3)
        writer.commit()
        writer.write([(b"k", b"v")])
        del writer
        gc.collect()

    lost = r"t-0, offset 4>: the records from offset 3 on were not committed, and are lost; use `with`, or call commit"
    with warnings.catch_warnings(record=True) as told:  # of its file, too
        warnings.simplefilter("always")
        forget()
    assert [warning for warning in told if re.search(lost, str(warning.message))]
    assert LogDirectory(tmp_path).topic("t").count() == 3
