"""How many files planning opens, and how large the tasks become. Counts, not times."""

from __future__ import annotations

import os
import threading
import time
from types import SimpleNamespace

import pyarrow as pa
import pytest

import kafkacodec as kc
from kafkacodec.errors import CheckpointWarning
from kafkacodec.log import Partition, Segment
from kafkacodec.log.files import pool
from kafkacodec.log.files.pool import in_threads
from kafkacodec.log.partitions import planning as range_planning
from kafkacodec.records.headers import scan
from kafkacodec.spark.reading.planning import MAX_RECORDS, plan
from kafkacodec.spark.reading.tasks import read_ranges
from tests.corpus import ROOT
from tests.unit.test_spark_reading import options

LOGS = ROOT / "logs" / "kraft-4.1.0"


def log(directory, segments, records=3, size=10, codec="none"):
    """A partition of segments with one batch each."""
    directory.mkdir(parents=True)
    made = bytearray(kc.encode([(None, b"x" * size)] * records, codec=codec, batch_bytes=1 << 30))
    for i in range(segments):
        made[:8] = (i * records).to_bytes(8, "big")
        (directory / f"{i * records:020}.log").write_bytes(made)
    return directory


def stretched(directory, offsets, batches, count=1):
    """A segment as compaction leaves it: batches of `count` records whose offsets are far apart."""
    directory.mkdir(parents=True, exist_ok=True)
    made = bytearray(kc.encode([(None, b"x" * 50)] * count))
    parts = []
    for i in range(batches):
        made[:8] = (i * (offsets // batches)).to_bytes(8, "big")
        parts.append(bytes(made))
    (directory / f"{0:020}.log").write_bytes(b"".join(parts))
    return directory


@pytest.fixture
def opened(monkeypatch):
    """The names of files that are opened."""
    names, ordinary = [], os.open

    def counting(path, *arguments, **more):
        names.append(os.path.basename(path))
        return ordinary(path, *arguments, **more)

    monkeypatch.setattr(os, "open", counting)
    return names


def test_segments_in_the_middle_are_not_opened(tmp_path, opened):
    log(tmp_path / "t-0", 200)
    [task] = plan(options(tmp_path))
    assert len(task) == 200
    assert {name for name in opened if name.endswith(".log")} == {f"{199 * 3:020}.log"}
    offsets = [
        offset for batch in read_ranges(task, ["offset"], permissive=False) for offset in batch["offset"].to_pylist()
    ]
    assert offsets == list(range(600))


def test_a_span_that_goes_on_after_the_end_of_the_log_opens_its_last_segments(tmp_path, opened):
    log(tmp_path / "t-0", 200)
    chunks = kc.log.Partition(tmp_path / "t-0").read(start_offset=595, end_offset=700)
    assert [offset for chunk in chunks for offset in chunk["offset"].tolist()] == list(range(595, 600))
    assert {name for name in opened if name.endswith(".log")} <= {f"{n * 3:020}.log" for n in range(197, 200)}


def test_only_segments_at_the_bounds_and_beside_them_are_opened(tmp_path, opened):
    log(tmp_path / "t-0", 200)
    bounds = {"startingOffsets": '{"t": {"0": 100}}', "endingOffsets": '{"t": {"0": 400}}'}
    [task] = plan(options(tmp_path, **bounds))
    assert {name for name in opened if name.endswith(".log")} == {
        f"{n + more:020}.log" for n in (99, 399) for more in (-3, 0, 3)
    }
    offsets = [
        offset for batch in read_ranges(task, ["offset"], permissive=False) for offset in batch["offset"].to_pylist()
    ]
    assert offsets == list(range(100, 400))


def test_ranges_planned_by_names_are_those_that_opening_finds():
    for directory in sorted(LOGS.glob("*-[0-9]")):
        partition = Partition(directory)
        planned = {piece.path: piece for piece in partition.ranges()}
        for segment in partition.segments[:-1]:
            [piece] = Segment(segment.path).ranges() or [None]
            found = planned[segment.path]
            if piece is not None:
                assert (found.start_position, found.end_position) == (piece.start_position, piece.end_position)
                assert found.identity == piece.identity
                assert found.first_offset <= piece.first_offset


def test_threads_join_when_files_are_waited_for(tmp_path, monkeypatch):
    """Without waiting one thread is faster."""
    log(tmp_path / "t-0", 700)
    threads, ordinary, delay = set(), range_planning.segment_ranges, 0.0

    def noting(*arguments):
        threads.add(threading.get_ident())
        time.sleep(delay)
        return ordinary(*arguments)

    monkeypatch.setattr(range_planning, "segment_ranges", noting)
    with monkeypatch.context() as idle:  # on a machine where nothing else makes it wait
        idle.setattr(pool, "time", SimpleNamespace(perf_counter=time.thread_time, thread_time=time.thread_time))
        one = Partition(tmp_path / "t-0").ranges()
    assert threads == {threading.get_ident()}
    delay = 0.001
    assert Partition(tmp_path / "t-0").ranges(threads=4) == one
    assert 2 <= len(threads) <= 5


def test_timestamps_are_looked_for_in_several_files_at_a_time(tmp_path, monkeypatch):
    """Of which the first counts that has one."""
    for i in range(60):
        times = pa.array([i * 10, i * 10 + 500 * (i % 7 == 0)], pa.timestamp("ms", "UTC"))  # some are early
        rows = pa.table({"value": [b"x"] * 2, "timestamp": times})
        (tmp_path / f"{i * 2:020}.log").write_bytes(kc.encode(rows, base_offset=i * 2))
    ordinary, threads = Segment._offset_of_timestamp, set()

    def slow(self, *arguments, **more):
        threads.add(threading.get_ident())
        time.sleep(0.001)
        return ordinary(self, *arguments, **more)

    monkeypatch.setattr(Segment, "_offset_of_timestamp", slow)
    partition = Partition(tmp_path)
    for wanted, offset in ((0, 0), (1, 1), (501, 15), (571, 29), (1061, None), (1060, 113), (981, 99), (999, 113)):
        assert partition.offset_of_timestamp(wanted, threads=4) == offset
    assert len(threads) >= 2


@pytest.mark.parametrize("chunk", [1, 64])
def test_the_calling_thread_begins(chunk):
    """After the first wait other threads do the rest."""
    here = threading.get_ident()

    def action(_):
        time.sleep(0.003)
        return threading.get_ident() == here

    alone = list(in_threads(action, range(200), 16, chunk=chunk))
    assert alone == [True] * min(chunk, 16) + [False] * (200 - min(chunk, 16))


def test_an_error_ends_the_work_of_all_threads():
    done = []

    def action(item):
        if item == 70:
            raise OSError("gone")
        time.sleep(0.0005)  # in which the main thread gets the error
        done.append(item)
        return item

    with pytest.raises(OSError, match="gone"):
        list(in_threads(action, range(20_000), 2))
    assert len(done) < 15_000
    assert list(in_threads(str, range(300), 3)) == list(map(str, range(300)))
    assert list(in_threads(str, [], 3)) == []


def data_of(piece):
    with open(piece.path, "rb") as file:
        return file.read()[piece.start_position : piece.end_position]


def offsets_of(task):
    return [
        offset for batch in read_ranges(task, ["offset"], permissive=False) for offset in batch["offset"].to_pylist()
    ]


def test_tasks_are_sized_by_records_too(tmp_path):
    """5 million records of which 3 MB are left compressed: bytes alone would make one task of them."""
    directory = tmp_path / "t-0"
    directory.mkdir()
    made = bytearray(kc.encode([(None, b"x" * 100)] * 100_000, codec="zstd", batch_bytes=1 << 30))
    parts = []
    for i in range(50):
        made[:8] = (i * 100_000).to_bytes(8, "big")
        parts.append(bytes(made))
    for i in range(0, 50, 25):
        (directory / f"{i * 100_000:020}.log").write_bytes(b"".join(parts[i : i + 25]))
    tasks = plan(options(tmp_path))
    counts = [sum(piece.offsets[1] - piece.offsets[0] for piece in task) for task in tasks]
    assert sum(counts) == 5_000_000
    assert max(counts) <= MAX_RECORDS
    assert len(tasks) == 4  # a segment of 2.5 million is cut once
    small = plan(options(tmp_path, maxRecordsPerPartition=250_000))
    assert [offsets_of(task)[::50_000] for task in small[:2]] == [
        [0, 50_000, 100_000, 150_000],
        [200_000, 250_000, 300_000, 350_000],
    ]


def test_small_segments_are_combined_up_to_the_number_of_records(tmp_path):
    log(tmp_path / "t-0", 30, records=100_000, codec="zstd")
    counts = [sum(piece.offsets[1] - piece.offsets[0] for piece in task) for task in plan(options(tmp_path))]
    assert sum(counts) == 3_000_000
    assert [count <= MAX_RECORDS for count in counts] == [True, True]


def test_offsets_without_records_are_not_counted(tmp_path):
    stretched(tmp_path / "t-0", 50_000_000, 1000)
    assert len(plan(options(tmp_path))) == 1
    assert len(plan(options(tmp_path, maxRecordsPerPartition=5_000_000))) == 10


@pytest.mark.parametrize("name", ["none-0", "txn-0", "zstd-0", "compact-none-0"])
@pytest.mark.parametrize("most", [1, 10, 33, 1000])
def test_no_task_has_more_offsets_than_asked_for(name, most):
    """Or it is a single batch."""
    whole = offsets_of([piece for task in plan(options(LOGS / name)) for piece in task])
    tasks = plan(options(LOGS / name, maxRecordsPerPartition=most))
    assert [offset for task in tasks for offset in offsets_of(task)] == whole
    for task in tasks:
        span = sum(piece.offsets[1] - piece.offsets[0] for piece in task if piece.size_in_bytes)
        batches = sum(len(kc.scan(data_of(piece))) for piece in task)
        assert span <= most or batches <= 1


@pytest.mark.parametrize("tail", [b"\0" * 5000, b"\0\0\0\0\0\0\0\7\0\0\1\0torn"])
def test_what_follows_the_last_batch_stays_with_it(tmp_path, tail):
    path = log(tmp_path / "t-0", 1, records=100) / f"{0:020}.log"
    path.write_bytes(path.read_bytes() + tail)
    for limits in ({"maxRecordsPerPartition": 7}, {"maxRecordsPerPartition": 100}, {}):
        assert len(plan(options(tmp_path, **limits))) == 1


def test_limits_are_checked():
    for name in ("max_bytes", "max_offsets", "max_records"):
        with pytest.raises(ValueError, match=name):
            Segment(__file__).ranges(**{name: 0})


@pytest.mark.slow
@pytest.mark.parametrize("most", [1, 70, 3000])
def test_cutting_a_segment_without_an_index_takes_linear_time(tmp_path, monkeypatch, most):
    batches = 6000
    stretched(tmp_path / "t-0", batches, batches)
    headers = []

    def counting(*arguments, **more):
        found = scan(*arguments, **more)
        headers.append(len(found))
        return found

    monkeypatch.setattr("kafkacodec.log.segments.walk.scan", counting)
    tasks = plan(options(tmp_path, maxRecordsPerPartition=most))
    assert len(tasks) == -(-batches // most)
    assert sum(headers) <= 300 * batches


def test_a_checkpoint_that_cannot_be_read_is_warned_of_once(tmp_path):
    log(tmp_path / "t-0", 3)
    log(tmp_path / "t-1", 3)
    path = tmp_path / "recovery-point-offset-checkpoint"
    path.write_text("nonsense")
    with pytest.warns(
        CheckpointWarning, match=f"{path}: the version line .*; whether logs have lost their end"
    ) as told:
        [plan(options(path=tmp_path)) for _ in range(2)]
    assert len(told) == 1
