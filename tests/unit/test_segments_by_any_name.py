"""A segment is read under any name, with the same records."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kafkacodec.errors import CorruptRecord
from kafkacodec.log import Partition, Segment, discover
from kafkacodec.log.segments.kinds import BATCHES, MESSAGES, kind_of
from kafkacodec.spark.reading.options import parse_read_options
from kafkacodec.spark.reading.planning import plan
from tests.corpus import ROOT
from tests.dialect_vectors import ROOT as DIALECTS

OLD = sorted(DIALECTS.glob("kafka07/segments/broker-*/*-0/*.kafka"))
SEGMENTS = [
    *(ROOT / "logs" / f"{writer}/{0:020d}.log" for writer in ("v0-0.8.2.2/lz4-0", "kraft-4.1.0/zstd-0")),
    *(path for path in OLD if path.stat().st_size),
]
NAMES = ["segment", "segment.bin", "00000000000000000000.bak", "orders.log.old", "00000000000000000042"]


def rows(path: Path) -> list[tuple[object, ...]]:
    (partition,) = discover(path)
    return [
        (r.offset, r.key, r.value)
        for chunk in Partition(partition.path, segments=[path]).read()
        for r in chunk.records()
    ]


@pytest.mark.parametrize("path", SEGMENTS, ids=lambda path: f"{path.parent.name}{path.suffix}")
def test_the_same_records(tmp_path: Path, path: Path) -> None:
    expected = rows(path)
    assert expected
    base = int(path.stem)
    for name in NAMES:
        copy = tmp_path / name
        shutil.copyfile(path, copy)
        assert kind_of(str(copy)) is (MESSAGES if path.suffix == ".kafka" else BATCHES)
        assert [row[1:] for row in rows(copy)] == [row[1:] for row in expected]
        if path.suffix == ".log" or base == 0:
            assert rows(copy) == expected


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0\0\0\x0a\x01",
        bytes(64),
        b"\0\0\0\x05\x00\0\0\0\0",
        b"\0\0\0\x06\x01\0\0\0\0\x01",
    ],
)
def test_other_files_are_not_taken_for_logs_of_kafka_07(tmp_path: Path, content: bytes) -> None:
    """No message, one that is cut, one with a wrong checksum."""
    path = tmp_path / "file"
    path.write_bytes(content)
    assert kind_of(str(path)) is BATCHES
    assert kind_of(str(tmp_path / "missing")) is BATCHES


@pytest.mark.parametrize("size", [0xFFFFFFFF, 0x7FFFFFFF])
def test_a_size_beyond_the_file_is_of_no_log(tmp_path: Path, size: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(size.to_bytes(4, "big") + b"\x01" + bytes(20))
    with pytest.raises(CorruptRecord, match="not a log segment"):
        kind_of(str(path))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("payments.parquet", b"PAR1\x15\x04\x15" + bytes(100), "the first 8 bytes are not an offset"),
        (
            "orders.parquet",
            b"PAR1\x15\x04\x15\x80\x80\x10\x15\x90\x00\x00\x01\x01\x02" + bytes(50),
            "the first 8 bytes are not an",
        ),
        ("notes.txt", b"hello\n", "the first 8 bytes are not an offset"),
        ("service.log", b"2026-01-31 12:00:00 started\n" * 9, "the first 8 bytes are not an offset"),
        (f"{249:020d}.index", bytes(8), "but the offset index of one"),
        (f"{249:020d}.timeindex", bytes(12), "but the time index of one"),
        (f"{249:020d}.snapshot", bytes(10), "but the producer snapshot of one"),
    ],
)
def test_a_file_that_is_no_segment_is_refused_by_each_reader(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    segment = Segment(path)
    readers = (
        segment.scan,
        segment.count,
        segment.first_offset,
        segment.last_offset,
        segment.ranges,
        lambda: list(segment.read()),
        lambda: discover(path),
        lambda: plan(parse_read_options({"path": str(path)})),
    )
    for read in readers:
        with pytest.raises(CorruptRecord, match=f"{name}: not a log segment(:|,) {message}"):
            read()


def test_one_damaged_field_does_not_make_a_segment_another_file(tmp_path: Path) -> None:
    """Under any name: who skips damage may read it."""
    whole = SEGMENTS[1].read_bytes()
    for position, value in ((0, 0x7F), (16, 99)):
        path = tmp_path / f"copy-{position}"
        path.write_bytes(whole[:position] + bytes([value]) + whole[position + 1 :])
        assert kind_of(str(path)) is BATCHES
        assert discover(path)
