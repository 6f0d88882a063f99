"""Reading record sets: kafkacodec, its peers, and the compression libraries alone.

Every reader checks every checksum and touches every field.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

import kafkacodec as kc
from benchmarks import libraries
from benchmarks.cases import Case
from benchmarks.compared import Digest
from benchmarks.contest import Contest
from benchmarks.limits import limits

Reader = Callable[[bytes], int]


def iter_columns(data: bytes) -> int:
    """All columns, in chunks of 8,192 rows."""
    return sum(len(chunk) for chunk in kc.iter_columns(data, max_rows=8192))


def iter_views(data: bytes) -> int:
    """The same with keys and values as views."""
    return sum(len(chunk) for chunk in kc.iter_columns(data, max_rows=8192, layout="view"))


def decode(data: bytes) -> int:
    """All columns in one table."""
    return len(kc.decode(data))


def iter_records(data: bytes) -> int:
    """Named tuples."""
    return sum(1 for _ in kc.iter_records(data))


def _batches(records: Any) -> Iterator[Any]:
    """The batches of aiokafka's and kafka-python's reader, every checksum checked."""
    while records.has_next():
        batch = records.next_batch()
        if not batch.validate_crc():
            raise ValueError("checksum")
        yield batch


def _iterate(batches: Iterable[Any]) -> int:
    count = 0
    for batch in batches:
        for record in batch:
            count += 1
            record.offset, record.timestamp, record.key, record.value, record.headers  # noqa: B018
    return count


def _aiokafka(data: bytes) -> Iterator[Any]:
    from aiokafka.record.memory_records import MemoryRecords

    return _batches(MemoryRecords(data))


def _kafka_python(data: bytes) -> Iterator[Any]:
    from kafka.record import MemoryRecords

    return _batches(MemoryRecords(data))


def aiokafka(data: bytes) -> int:
    """Record objects."""
    return _iterate(_aiokafka(data))


def kafka_python(data: bytes) -> int:
    """Named tuples."""
    return _iterate(_kafka_python(data))


READERS: dict[str, Reader] = {
    "iter_columns": iter_columns,
    "iter_columns, views": iter_views,
    "decode": decode,
    "iter_records": iter_records,
    "aiokafka": aiokafka,
    "kafka-python": kafka_python,
}


def all_bytes(data: bytes) -> int:
    """All columns, and then every byte of keys and values once more: their sum, eight at a time."""
    total = 0
    for chunk in kc.iter_columns(data, max_rows=8192):
        for name in ("key", "value"):
            content = chunk.buffers(name)["data"]
            whole = len(content) & ~7
            total += int(content[:whole].view(np.uint64).sum()) + int(content[whole:].sum())
    return total


def handed_on(case: Case, data: bytes) -> Contest:
    """Every key and value in the reader's own memory, all of it touched: Java's consumer makes a byte[] of each."""
    return Contest(f"all bytes of {case.name}", "records", case.num_records, {"iter_columns": partial(all_bytes, data)})


_COMPARED = 2_000_000
"""So many bytes of a record set are compared, of whole batches; kafka-python needs seconds for all of it."""


def compare(case: Case, data: bytes) -> None:
    """Raise SystemExit if a reader finds something else in the first batches than the others."""
    ends = [*(int(end) for end in kc.scan(data)["position"][1:]), len(data)]
    start = data[: next(end for end in ends if end >= min(_COMPARED, len(data)))]
    expected = Digest.of(itertools.chain.from_iterable(_aiokafka(start)))
    found = {
        "kafka-python": itertools.chain.from_iterable(_kafka_python(start)),
        "iter_records": kc.iter_records(start),
        "decode": kc.decode(start).records(),
        "iter_columns": (record for chunk in kc.iter_columns(start, max_rows=8192) for record in chunk.records()),
        "iter_columns, views": (
            record for chunk in kc.iter_columns(start, max_rows=8192, layout="view") for record in chunk.records()
        ),
    }
    for name, records in found.items():
        expected.require(Digest.of(records), name, case.name)


def contest(case: Case, data: bytes) -> Contest:
    """All readers on one record set, and the libraries alone if it is compressed."""
    compare(case, data)
    competitors: dict[str, Callable[[], object]] = {}
    for name, read in READERS.items():
        competitors[name] = partial(read, data)
        if name not in ("kafka-python",) and (count := read(data)) != case.num_records:
            raise SystemExit(f"{name} reads {count} of {case.num_records} records of case {case.name}")
    competitors |= limits(data) if case.codec == "none" else libraries.passes(data, case.codec)
    return Contest(case.name, "records", case.num_records, competitors)
