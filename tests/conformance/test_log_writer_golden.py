"""Logs written from a broker's batches have the same files as the broker's, byte for byte."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import kafkacodec as kc
from kafkacodec.log import LogWriter, Partition, SegmentWriter, read_producer_snapshot
from kafkacodec.log.formats.checkpoints import parse_producer_snapshot
from kafkacodec.log.writing.index_entries import IndexEntries
from kafkacodec.log.writing.producer_state import ProducerState
from kafkacodec.log.writing.segment_writer import DEFAULT_INDEX_INTERVAL
from kafkacodec.records.encode import EncodedBatch
from tests.corpus import ROOT, Sample, segments


def batches(data: bytes) -> list[EncodedBatch]:
    headers = kc.scan(data)
    columns = [headers[n].tolist() for n in ("position", "size_in_bytes", "base_offset", "last_offset", "count")]
    times = headers["max_timestamp"].astype(np.int64).tolist()
    return [
        EncodedBatch(data[p : p + size], first, last, max(-1, time), count)
        for (p, size, first, last, count), time in zip(zip(*columns, strict=True), times, strict=True)
    ]


def closed_segments() -> list[Sample]:
    """Segments of topics that brokers wrote to batch by batch, and closed."""
    return [
        s
        for s in segments(magics={2})
        if s.path.suffix == ".log" and s.writer.startswith("kraft") and "live" not in s.writer
        if s.path.with_suffix(".index").exists() and not s.path.parent.name.startswith(("compact", "__cluster"))
    ]


@pytest.mark.parametrize("sample", closed_segments(), ids=str)
def test_index_files(sample: Sample, tmp_path: Path) -> None:
    with SegmentWriter(tmp_path, int(sample.path.stem), sync=False) as writer:
        for batch in batches(sample.data()):
            writer.append(batch)
    with LogWriter(tmp_path, "t", 0, start_offset=int(sample.path.stem), sync=False) as run:
        run.write_batches(sample.data())
    for written in (tmp_path / sample.path.name, tmp_path / "t-0" / sample.path.name):
        if written.exists() or sample.data():
            same_files(written, sample)


@pytest.mark.parametrize("sample", closed_segments(), ids=str)
def test_index_entries_of_a_segment_that_grows(sample: Sample) -> None:
    entries = IndexEntries(int(sample.path.stem), DEFAULT_INDEX_INTERVAL)
    grown = []
    for batch in batches(sample.data()):
        entries.add([len(batch.data)], [batch.last_offset], [batch.max_timestamp])
        grown.append(entries.take())
    entries.finish()
    offsets, times = map(b"".join, zip(*grown, entries.take(), strict=True))
    assert offsets == sample.path.with_suffix(".index").read_bytes()
    assert times == sample.path.with_suffix(".timeindex").read_bytes()
    assert entries.count == len(offsets) // 8
    assert entries.size_in_bytes == len(sample.data())


def same_files(written: Path, sample: Sample) -> None:
    assert written.read_bytes() == sample.data()
    assert written.with_suffix(".index").read_bytes() == sample.path.with_suffix(".index").read_bytes()
    assert written.with_suffix(".timeindex").read_bytes() == sample.path.with_suffix(".timeindex").read_bytes()


# Compacted logs lack records that their snapshots include; brokers before 2.3 counted markers as a producer's batches.
PRODUCERS = ["kraft-4.1.0/txn-0", "kraft-4.1.0/txn-codecs-0", "kraft-4.1.0/txn-open-0", "kraft-4.1.0/idempotent-0"]


def written_again(source: Path, directory: Path, *, reopen: bool) -> Path:
    """The log of a broker, written segment by segment, by one writer or by one for each segment."""
    partition = Partition(source)
    writer = LogWriter(directory, "t", 0, start_offset=partition.start_offset(), sync=False)
    for segment in partition.segments:
        if reopen:
            writer.commit()
            writer = LogWriter(directory, "t", 0, append=True, start_offset=partition.start_offset(), sync=False)
        writer.write_batches(Path(segment.path).read_bytes())
        writer.commit()
    return Path(writer.path)


@pytest.mark.parametrize("reopen", [False, True])
@pytest.mark.parametrize("name", PRODUCERS)
def test_transaction_indexes_and_producer_snapshots(name: str, reopen: bool, tmp_path: Path) -> None:
    source = ROOT / "logs" / name
    written = written_again(source, tmp_path, reopen=reopen)
    indexes = {path.name: path.read_bytes() for path in source.glob("*.txnindex") if path.stat().st_size}
    assert indexes == {path.name: path.read_bytes() for path in written.glob("*.txnindex")}
    snapshots = sorted(source.glob("*.snapshot"))
    assert [path.name for path in snapshots] == sorted(path.name for path in written.glob("*.snapshot"))
    for path in snapshots:
        # Kafka writes producers in the order of a hash table.
        entries = [sorted(read_producer_snapshot(p).entries.tolist()) for p in (path, written / path.name)]
        assert entries[0] == entries[1] != []
        if "open" not in name:
            assert (written / path.name).read_bytes() == path.read_bytes()
    assert Partition(written).verify().ok


@pytest.mark.parametrize("name", PRODUCERS)
def test_producers_of_batches_in_memory(name: str, tmp_path: Path) -> None:
    source = ROOT / "logs" / name
    state = ProducerState(str(tmp_path), [], 0)
    compared = 0
    for segment in Partition(source).segments:
        for batch in batches(Path(segment.path).read_bytes()):
            headers = kc.scan(batch.data)
            state.feed(headers, batch.data)
        written = state.files_at(segment.base_offset or 0, state.next_offset)
        aborted = source / f"{segment.base_offset:020d}.txnindex"
        assert written.get(aborted.name, b"") == (aborted.read_bytes() if aborted.exists() else b"")
        snapshot = source / f"{state.next_offset:020d}.snapshot"
        if snapshot.exists():
            found = parse_producer_snapshot(written[snapshot.name], snapshot.name)
            assert sorted(found.entries.tolist()) == sorted(read_producer_snapshot(snapshot).entries.tolist())
            compared += 1
    assert compared
