"""The cases: record sets made from a fixed seed by aiokafka's builders."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
FIRST_TIMESTAMP = 1_700_000_000_000


@dataclass(frozen=True)
class Case:
    """Records of one shape; sizes in bytes, `total_bytes` before compression."""

    name: str
    magic: int = 2
    codec: str = "none"
    key_bytes: int = 10
    value_bytes: int = 100
    headers: int = 0
    batch_bytes: int = 16384
    total_bytes: int = 48_000_000

    @property
    def num_records(self) -> int:
        return self.total_bytes // (self.key_bytes + self.value_bytes + 10 + 16 * self.headers)


CASES = [
    Case("none"),
    Case("none, 1 KiB values", value_bytes=1024),
    Case("none, 2 headers", headers=2),
    Case("lz4", codec="lz4"),
    Case("zstd", codec="zstd"),
    Case("snappy", codec="snappy"),
    Case("gzip", codec="gzip", total_bytes=24_000_000),
    Case("lz4, 1 MiB batches", codec="lz4", batch_bytes=1 << 20),
    Case("zstd, 1 MiB batches", codec="zstd", batch_bytes=1 << 20),
    Case("snappy, 1 MiB batches", codec="snappy", batch_bytes=1 << 20),
    Case("gzip, 1 MiB batches", codec="gzip", batch_bytes=1 << 20, total_bytes=24_000_000),
    Case("magic 1", magic=1),
]


@cache
def values(size: int) -> list[bytes]:
    """Distinct values of `size` bytes that compress about as well as JSON does: words from a small vocabulary."""
    source = random.Random(7)
    words = [source.randbytes(source.randint(2, 9)).hex().encode() for _ in range(400)]
    made = []
    for _ in range(2000):
        parts, length = [], 0
        while length < size:
            parts.append(source.choice(words))
            length += len(parts[-1]) + 1
        made.append(b" ".join(parts)[:size].ljust(size))
    return made


def records(case: Case) -> Iterator[tuple[int, bytes, bytes]]:
    """(timestamp, key, value) of every record."""
    bodies, digits = values(case.value_bytes), case.key_bytes - 4
    for i in range(case.num_records):
        yield FIRST_TIMESTAMP + i, b"key-%0*d" % (digits, i % 10**digits), bodies[i % len(bodies)]


def record_set(case: Case, entries: Iterable[tuple[int, bytes, bytes]] | None = None) -> bytes:
    """Batches of `batch_bytes` (before compression), one after another; in magic 1, plain messages.

    `entries` are the records of the case, if the caller has them.
    """
    headers = [(f"header-{i}", b"abcdef") for i in range(case.headers)]
    parts, first, size, builder = [], 0, 0, _builder(case)
    for offset, (timestamp, key, body) in enumerate(entries or records(case)):
        if size >= case.batch_bytes:
            parts.append(_finished(builder, case.magic, first))
            first, size, builder = offset, 0, _builder(case)
        builder.append(offset - first if case.magic == 2 else offset, timestamp, key, body, headers)
        size += len(key) + len(body) + 12 + 16 * case.headers
    return b"".join([*parts, _finished(builder, case.magic, first)])


def _builder(case: Case):
    from aiokafka.record.default_records import DefaultRecordBatchBuilder
    from aiokafka.record.legacy_records import LegacyRecordBatchBuilder

    if case.magic == 2:
        return DefaultRecordBatchBuilder(2, CODECS[case.codec], False, -1, -1, -1, 1 << 30)
    return LegacyRecordBatchBuilder(case.magic, CODECS[case.codec], 1 << 30)


def _finished(builder, magic: int, base_offset: int) -> bytes:
    batch = bytearray(builder.build())
    if magic == 2:
        batch[0:8] = base_offset.to_bytes(8, "big")  # not covered by the checksum
    return bytes(batch)
