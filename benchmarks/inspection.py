"""Damaged logs: verifying a segment with its index files, and finding the next batch after garbage."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np

import kafkacodec as kc
from benchmarks.cases import Case, records
from benchmarks.contest import Contest
from benchmarks.writing import table
from kafkacodec.log.segments._resync import Resync

GARBAGE_BYTES = 64_000_000


@contextmanager
def contests(cases: list[Case]) -> Iterator[list[Contest]]:
    """The contests for these cases. The segment exists until the context ends."""
    found = [case for case in cases if case.name == "none"]
    with tempfile.TemporaryDirectory() as directory:
        yield [contest for case in found for contest in (verification(case, Path(directory)), resynchronisation())]


def verification(case: Case, directory: Path) -> Contest:
    """`verify` with all its checks, also of index files, compared with one copy of the same bytes."""
    with kc.log.SegmentWriter(directory, base_offset=0) as writer:
        for batch in kc.iter_encoded(table(list(records(case))), batch_bytes=case.batch_bytes):
            writer.append(batch)
    (path,) = directory.glob("*.log")
    data, target = path.read_bytes(), memoryview(bytearray(path.stat().st_size))
    segment = kc.log.Segment(path)

    def verify() -> None:
        if not segment.verify().clean:
            raise RuntimeError("the segment is not intact")

    def copy() -> None:
        target[:] = data

    return Contest("verify", "bytes", float(len(data)), {"verify": verify, "memcpy": copy})


def resynchronisation() -> Contest:
    """A search that finds nothing, over bytes of several kinds."""
    made = np.random.default_rng(1)
    words = b"the quick brown fox jumps over 13 lazy dogs; "
    kinds = {
        "random": made.bytes(GARBAGE_BYTES),
        "text": (words * (GARBAGE_BYTES // len(words) + 1))[:GARBAGE_BYTES],
        "big-endian integers": made.integers(0, 1000, GARBAGE_BYTES // 8).astype(">i8").tobytes(),
    }
    searches: dict[str, Callable[[], object]] = {name: partial(_search, data) for name, data in kinds.items()}
    return Contest("resynchronisation", "bytes", float(GARBAGE_BYTES), searches)


def _search(data: bytes) -> None:
    if Resync(data).next(0) != len(data):
        raise RuntimeError("found a batch in garbage")
