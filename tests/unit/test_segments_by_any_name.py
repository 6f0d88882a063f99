"""A segment is read under any name, with the same records."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kafkacodec.log import Partition, discover
from kafkacodec.log.segments.kinds import BATCHES, MESSAGES, kind_of
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
        b"\xff\xff\xff\xff\x01" + bytes(20),
        b"\x7f\xff\xff\xff\x01" + bytes(20),
    ],
)
def test_other_files_are_not_taken_for_logs_of_kafka_07(tmp_path: Path, content: bytes) -> None:
    """No message, one that is cut, one with a wrong checksum."""
    path = tmp_path / "file"
    path.write_bytes(content)
    assert kind_of(str(path)) is BATCHES
    assert kind_of(str(tmp_path / "missing")) is BATCHES
