"""Real log directories read from disk: complete, in chunks, by ranges, from an offset or a time, as by a consumer."""

from __future__ import annotations

import bisect
import os
import pickle
import shutil

import numpy as np
import pytest

import kafkacodec as kc
from tests.corpus import ROOT, assert_same_records, log_directories, read_committed, segments

SEGMENTS = segments()
PARTITIONS = sorted({s.path.parent for s in SEGMENTS if s.name.endswith(".log") and "truncated" not in s.name})


def offsets(chunks):
    return [offset for chunk in chunks for offset in chunk["offset"].tolist()]


def records_of(partition):
    """(offset, timestamp) of every record from the sidecar; None if the partition has older formats, too."""
    found = []
    samples = {sample.path: sample for sample in SEGMENTS}
    for segment in partition.segments:
        path = ROOT / os.path.relpath(segment.path, ROOT)
        if path.stat().st_size == 0:
            continue
        if path not in samples:
            return None
        found += samples[path].expected.records
    return found


@pytest.mark.parametrize("sample", SEGMENTS, ids=str)
def test_segment_gives_the_records_of_the_sidecar(sample):
    segment = kc.log.Segment(sample.path)
    chunks = list(segment.read(include_control=True))
    assert chunks[-1].consumed == sample.expected.valid_bytes == segment.end_position()
    pa = pytest.importorskip("pyarrow")
    table = pa.concat_tables([pa.table(chunk) for chunk in chunks])
    assert_same_records(table, sample.expected.records)
    headers = segment.scan()
    assert headers["position"].tolist() == [batch["position"] for batch in sample.expected.batches]
    assert segment.last_offset() == max(batch["lastOffset"] for batch in sample.expected.batches)


@pytest.mark.parametrize("sample", SEGMENTS[::9], ids=str)
def test_small_chunks_give_the_same_and_positions_count_from_the_file(sample):
    segment = kc.log.Segment(sample.path)
    chunks = list(segment.read(max_rows=3, include_control=True, batch_columns=True))
    assert all(len(chunk) <= 3 for chunk in chunks)
    assert offsets(chunks) == [record.offset for record in sample.expected.records]
    positions = [p for chunk in chunks for p in chunk["batch_position"].tolist()]
    assert positions == [sample.expected.batches[record.batch]["position"] for record in sample.expected.records]


@pytest.mark.parametrize("directory", PARTITIONS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_ranges_cover_every_record_once(directory):
    partition = kc.log.Partition(directory)
    expected = records_of(partition)
    if expected is None:
        return
    whole = [record.offset for record in expected]
    for max_bytes in (1, 2000, None):
        pieces = partition.ranges(max_bytes=max_bytes)
        if max_bytes == 2000:
            batches = max(int(kc.log.Segment(piece.path).scan()["size_in_bytes"].max(initial=0)) for piece in pieces)
            assert all(piece.size_in_bytes < 2000 + 2 * batches for piece in pieces)
        found = []
        for piece in pieces:
            copy = pickle.loads(pickle.dumps(piece))
            assert copy == piece
            inside = offsets(copy.read(include_control=True))
            assert all(offset >= piece.first_offset for offset in inside)
            assert piece.last_offset is None or all(offset <= piece.last_offset for offset in inside)
            found += inside
        assert found == whole


@pytest.mark.parametrize("directory", PARTITIONS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_start_by_offset_and_time_agrees_with_the_sidecar(directory):
    partition = kc.log.Partition(directory)
    expected = records_of(partition)
    if not expected:
        return
    whole = [record.offset for record in expected]
    for start in {0, whole[0], whole[-1], whole[-1] + 1, *whole[:: max(1, len(whole) // 12)]}:
        got = offsets(partition.read(start_offset=start, include_control=True))
        assert got == whole[bisect.bisect_left(whole, start) :]
        got = offsets(partition.read(end_offset=start, include_control=True))
        assert got == whole[: bisect.bisect_left(whole, start)]
    times = sorted({record.timestamp for record in expected if record.timestamp is not None})
    for time in {*times[:: max(1, len(times) // 12)], *(t + 1 for t in times[-2:]), 0}:
        first = next((r.offset for r in expected if r.timestamp is not None and r.timestamp >= time), None)
        assert partition.offset_of_timestamp(time) == first
    assert partition.index_problems == []


@pytest.mark.parametrize("case", read_committed(), ids=lambda c: f"{c.directory.name}/{c.topic}-{c.partition}")
def test_read_committed_is_what_a_consumer_was_given(case):
    log = kc.log.LogDirectory(case.directory)
    got = offsets(log.read(case.topic, case.partition, isolation_level="read_committed"))
    assert [offset for offset in got if offset < case.end_offset] == case.offsets
    assert got == case.offsets
    transactions = log.partition(case.topic, case.partition).transactions()
    assert transactions.problems == []
    assert log.partition(case.topic, case.partition).last_stable_offset() == case.end_offset


@pytest.mark.parametrize("case", read_committed(), ids=lambda c: f"{c.directory.name}/{c.topic}-{c.partition}")
def test_read_committed_from_anywhere(case):
    partition = kc.log.LogDirectory(case.directory).partition(case.topic, case.partition)
    end = partition.end_offset()
    for start in range(0, end, max(1, end // 25)):
        stop = min(end, start + end // 7 + 1)
        got = offsets(partition.read(start_offset=start, end_offset=stop, isolation_level="read_committed"))
        assert got == [offset for offset in case.offsets if start <= offset < stop]
    for max_bytes in (1, 3000):
        pieces = partition.ranges(isolation_level="read_committed", max_bytes=max_bytes)
        assert offsets(chunk for piece in pieces for chunk in piece.read()) == case.offsets


@pytest.mark.parametrize("case", read_committed()[::3], ids=lambda c: f"{c.directory.name}/{c.topic}-{c.partition}")
@pytest.mark.parametrize("harm", ["removed", "emptied", "shuffled", "foreign"])
def test_read_committed_without_a_trustworthy_index(tmp_path, case, harm):
    source = case.directory / f"{case.topic}-{case.partition}"
    copy = tmp_path / source.name
    shutil.copytree(source, copy, copy_function=shutil.copyfile)
    copy.chmod(0o755)
    harmed = [path for path in copy.glob("*.txnindex") if path.stat().st_size]
    for path in harmed:
        path.chmod(0o644)
        data = path.read_bytes()
        if harm == "removed":
            path.unlink()
        elif harm == "emptied":
            path.write_bytes(b"")
        elif harm == "shuffled":
            path.write_bytes(data[17:] + data[:17])
        else:
            entry = bytearray(data[:34])
            entry[2:10] = (4711).to_bytes(8, "big")
            path.write_bytes(bytes(entry))
    partition = kc.log.Partition(copy)
    assert offsets(partition.read(isolation_level="read_committed")) == case.offsets
    # Transactions without records leave no entry; the loss of an entry is reported.
    assert partition.transactions().problems or not harmed or harm == "foreign"


def test_every_writer_is_a_log_directory():
    for directory in log_directories():
        log = kc.log.LogDirectory(directory)
        names = {path.name for path in directory.iterdir() if path.is_dir()}
        assert {f"{p.topic}-{p.partition}" for p in log.all_partitions} == names
        assert {f"{topic}-{p.partition}" for topic in log.topics for p in log.partitions(topic)} == names
        for partition in log.all_partitions:
            paths = sorted(os.path.join(partition.path, n) for n in os.listdir(partition.path) if n.endswith(".log"))
            assert [segment.path for segment in partition.segments] == paths


def test_end_offset_is_the_high_watermark_of_a_stopped_broker():
    checked = 0
    for directory in log_directories():
        log = kc.log.LogDirectory(directory)
        for partition in log.all_partitions:
            mark = log.high_watermarks.get((partition.topic, partition.partition))
            if mark is not None and records_of(partition) is not None:
                assert partition.end_offset() == mark
                checked += 1
    assert checked > 50


def test_columns_are_numpy_views_of_the_right_types():
    chunk = next(kc.log.Segment(SEGMENTS[0].path).read(columns=("offset", "timestamp")))
    assert chunk["offset"].dtype == np.int64
    assert chunk.column_names == ["offset", "timestamp"]
