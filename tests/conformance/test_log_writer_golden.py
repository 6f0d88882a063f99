"""Segments written from a broker's batches have the broker's own index files beside them, byte for byte."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import kafkacodec as kc
from kafkacodec.log import SegmentWriter
from kafkacodec.records.encode import EncodedBatch
from tests.corpus import Sample, segments


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
    written = tmp_path / sample.path.name
    assert written.read_bytes() == sample.data()
    assert written.with_suffix(".index").read_bytes() == sample.path.with_suffix(".index").read_bytes()
    assert written.with_suffix(".timeindex").read_bytes() == sample.path.with_suffix(".timeindex").read_bytes()
