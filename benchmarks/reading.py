"""Reading record sets: kafkacodec, its peers, and the compression libraries alone.

Every reader checks every checksum and touches every field.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

import kafkacodec as kc
from benchmarks import libraries
from benchmarks.cases import Case
from benchmarks.contest import Contest

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


def _iterate(records) -> int:
    count = 0
    while records.has_next():
        batch = records.next_batch()
        if not batch.validate_crc():
            raise ValueError("checksum")
        for record in batch:
            count += 1
            record.offset, record.timestamp, record.key, record.value, record.headers  # noqa: B018
    return count


def aiokafka(data: bytes) -> int:
    from aiokafka.record.memory_records import MemoryRecords

    return _iterate(MemoryRecords(data))


def kafka_python(data: bytes) -> int:
    from kafka.record import MemoryRecords

    return _iterate(MemoryRecords(data))


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


def contest(case: Case, data: bytes) -> Contest:
    """All readers on one record set, and the libraries alone if it is compressed."""
    competitors: dict[str, Callable[[], object]] = {}
    for name, read in READERS.items():
        competitors[name] = partial(read, data)
        if name not in ("kafka-python",) and (count := read(data)) != case.num_records:
            raise SystemExit(f"{name} reads {count} of {case.num_records} records of case {case.name}")
    if case.codec != "none":
        competitors |= libraries.passes(data, case.codec)
    return Contest(case.name, "records", case.num_records, competitors)
