"""Checksums, a plain copy and the partitioner: the building blocks, and the limits of the machine."""

from __future__ import annotations

from functools import partial

import crc32c
import pyarrow as pa

import kafkacodec as kc
from benchmarks.cases import Case, records
from benchmarks.contest import Contest
from benchmarks.reading import iter_columns

BLOCK = 16384


def contests(record_sets: dict[str, bytes]) -> list[Contest]:
    """The contests for these record sets."""
    found = [throughput(name, data) for name, data in record_sets.items() if name.startswith("none")]
    if "none" in record_sets:
        found += [checksum(record_sets["none"]), partitioner()]
    return found


def throughput(name: str, data: bytes) -> Contest:
    """Bytes per second of reading, compared with one copy of the same bytes."""
    target = memoryview(bytearray(len(data)))

    def copy() -> None:
        target[:] = data

    return Contest(
        f"bytes of {name}",
        "bytes",
        float(len(data)),
        {
            "iter_columns": partial(iter_columns, data),
            "scan": partial(kc.scan, data),
            "scan without checksums": partial(kc.scan, data, verify_crc=False),
            "memcpy": copy,
        },
    )


def checksum(data: bytes) -> Contest:
    blocks = [data[at : at + BLOCK] for at in range(0, len(data) - BLOCK, BLOCK)]
    return Contest(
        "CRC-32C of 16 KiB blocks",
        "bytes",
        float(len(blocks) * BLOCK),
        {
            "kc.crc32c": lambda: [kc.crc32c(block) for block in blocks],
            "PyPI crc32c": lambda: [crc32c.crc32c(block) for block in blocks],
        },
    )


def partitioner() -> Contest:
    keys = pa.array([key for _, key, _ in records(Case("keys", total_bytes=12_000_000))], pa.binary())
    return Contest("partition of 10 B keys", "keys", float(len(keys)), {"partition": partial(kc.partition, keys, 64)})
