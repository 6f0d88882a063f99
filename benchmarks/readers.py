"""The competitors: each reads a whole record set, checking every checksum, and returns the number of records."""

from __future__ import annotations

from collections.abc import Callable

import kafkacodec as kc

Reader = Callable[[bytes], int]


def iter_columns(data: bytes) -> int:
    """All columns, 8,192 rows a chunk."""
    return sum(len(chunk) for chunk in kc.iter_columns(data))


def decode(data: bytes) -> int:
    """All columns in one table."""
    return len(kc.decode(data))


def iter_records(data: bytes) -> int:
    """Named tuples."""
    return sum(1 for _ in kc.iter_records(data))


def aiokafka(data: bytes) -> int:
    from aiokafka.record.memory_records import MemoryRecords

    count, records = 0, MemoryRecords(data)
    while records.has_next():
        batch = records.next_batch()
        if not batch.validate_crc():
            raise ValueError("checksum")
        for record in batch:
            count += 1
            record.offset, record.timestamp, record.key, record.value, record.headers  # noqa: B018
    return count


def kafka_python(data: bytes) -> int:
    from kafka.record import MemoryRecords

    count, records = 0, MemoryRecords(data)
    while records.has_next():
        batch = records.next_batch()
        if not batch.validate_crc():
            raise ValueError("checksum")
        for record in batch:
            count += 1
            record.offset, record.timestamp, record.key, record.value, record.headers  # noqa: B018
    return count


def merely_decompress(data: bytes) -> int:
    """What the compression library alone takes for the same batches; an upper limit for compressed cases."""
    from kafkacodec.records.compression import decompress

    count = 0
    for codec, count_here, body in _bodies(data):
        decompress(codec, body, magic=2, limit=1 << 30)
        count += count_here
    return count


def _bodies(data: bytes) -> list[tuple[int, int, memoryview]]:
    """(codec, records, compressed bytes) of every batch; the 61 bytes of a batch header come before them."""
    view, found, position = memoryview(data), [], 0
    while position < len(data):
        size = int.from_bytes(view[position + 8 : position + 12], "big") + 12
        codec, count = view[position + 22] & 7, int.from_bytes(view[position + 57 : position + 61], "big")
        found.append((codec, count, view[position + 61 : position + size]))
        position += size
    return found


OURS: dict[str, Reader] = {
    "kafkacodec iter_columns": iter_columns,
    "kafkacodec decode": decode,
    "kafkacodec iter_records": iter_records,
}
PEERS: dict[str, Reader] = {"aiokafka": aiokafka, "kafka-python": kafka_python}
