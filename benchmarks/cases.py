"""What is measured: each case is a record set made from a fixed seed by aiokafka's builder."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cache

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
FIRST_TIMESTAMP = 1_700_000_000_000


@dataclass(frozen=True)
class Case:
    """Records of one shape; sizes in bytes, `total_bytes` before compression."""

    name: str
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
]


@cache
def values(case: Case) -> list[bytes]:
    """Distinct values that compress about as well as JSON does: words from a small vocabulary."""
    source = random.Random(7)
    words = [source.randbytes(source.randint(2, 9)).hex().encode() for _ in range(400)]
    made = []
    for _ in range(2000):
        parts, size = [], 0
        while size < case.value_bytes:
            parts.append(source.choice(words))
            size += len(parts[-1]) + 1
        made.append(b" ".join(parts)[: case.value_bytes].ljust(case.value_bytes))
    return made


def record_set(case: Case) -> bytes:
    """Batches of `batch_bytes` (before compression), one after another."""
    from aiokafka.record.default_records import DefaultRecordBatchBuilder

    headers = [(f"header-{i}", b"abcdef") for i in range(case.headers)]
    bodies, parts = values(case), []
    offset, builder = 0, None
    while offset < case.num_records:
        builder = DefaultRecordBatchBuilder(2, CODECS[case.codec], False, -1, -1, -1, 1 << 30)
        first, size = offset, 0
        while offset < case.num_records and size < case.batch_bytes:
            key = b"key-%0*d" % (case.key_bytes - 4, offset % 10 ** (case.key_bytes - 4))
            body = bodies[offset % len(bodies)]
            builder.append(offset - first, FIRST_TIMESTAMP + offset, key, body, headers)
            size += len(key) + len(body) + 12 + 16 * case.headers
            offset += 1
        batch = bytearray(builder.build())
        batch[0:8] = first.to_bytes(8, "big")  # the base offset is not under the checksum
        parts.append(bytes(batch))
    return b"".join(parts)
