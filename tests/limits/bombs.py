"""Small data that becomes large when it is decoded: in every format and codec, and by every count in the data.

Each batch stays below `MAX_DECOMPRESSED`; as columns, all of them need about eight times `MAX_TOTAL`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pyarrow as pa

import kafkacodec as kc
from kafkacodec.dialects import kafka07
from kafkacodec.dialects.kafka07 import _decoder as _decoder07
from kafkacodec.messages import FetchResponse
from kafkacodec.records.compression import CODECS, compress
from tests.limits.numbers import count, uvarint

MAX_DECOMPRESSED = 4 << 20
MAX_TOTAL = 32 << 20


def _rows(rows: int, value_bytes: int | None) -> pa.Table:
    values = pa.nulls(rows, pa.binary()) if value_bytes is None else pa.array([bytes(value_bytes)] * rows, pa.binary())
    return pa.table({"key": pa.nulls(rows, pa.binary()), "value": values})


def _repeated(batches: bytes, rows: int, times: int) -> bytes:
    """The batches again and again, each time with the offsets that follow. No checksum covers a base offset."""
    starts, at = [], 0
    while at < len(batches):
        starts.append(at)
        at += 12 + int.from_bytes(batches[at + 8 : at + 12], "big")
    positions = (np.array(starts)[:, None] + np.arange(8)).ravel()
    copies = np.tile(np.frombuffer(batches, np.uint8), (times, 1))
    first = copies[0, positions].view(">i8").astype(np.int64)
    for copy, offsets in enumerate(copies):
        offsets[positions] = (first + copy * rows).astype(">i8").view(np.uint8)
    return copies.tobytes()


@cache
def tiny_records(magic: int, codec: str, times: int = 30) -> bytes:
    """Batches with the maximum number of records without key and value."""
    rows = MAX_DECOMPRESSED // (10 if magic == 2 else 40)
    once = kc.encode(_rows(rows, None), magic=magic, codec=codec, batch_bytes=1 << 30)
    return _repeated(once, rows, times)


@cache
def large_values(magic: int, codec: str) -> bytes:
    """Many small batches, each with a value that compresses to almost nothing."""
    once = kc.encode(_rows(1, MAX_DECOMPRESSED - 4096), magic=magic, codec=codec, batch_bytes=1 << 30)
    return _repeated(once, 1, 60)


@cache
def too_large(codec: str) -> bytes:
    """One batch above the limit."""
    return kc.encode(_rows(1, 16 * MAX_DECOMPRESSED), codec=codec, batch_bytes=1 << 30)


@cache
def many_headers() -> bytes:
    """Records with only headers of two bytes."""
    kind = pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()}))
    headers = pa.array([[{"key": "", "value": None}] * (MAX_DECOMPRESSED // 4)], kind)
    table = pa.table({"value": pa.nulls(1, pa.binary()), "headers": headers})
    return _repeated(kc.encode(table, codec="zstd", batch_bytes=1 << 30), 1, 30)


@cache
def long_headers() -> bytes:
    """Batches with a short value, of which a view keeps a long header in memory."""
    headers = [("header", bytes(MAX_DECOMPRESSED - 4096))]
    return kc.encode([kc.Record(0, 0, 0, None, bytes(20), headers)], codec="zstd") * 200


@cache
def small_batches(magic: int) -> bytes:
    """As many batches as fit the bytes: many rows of headers."""
    return _repeated(kc.encode(_rows(50_000, None), magic=magic, batch_bytes=1), 50_000, 10)


@cache
def old_messages(nested: bool) -> bytes:
    """Compressed messages of Kafka 0.7; if `nested`, inside a compressed message."""
    inner = kafka07.encode_messages([b""] * (MAX_DECOMPRESSED // 40), codec="gzip")
    if not nested:
        return inner * 60
    gzip = CODECS.index("gzip")
    return _decoder07.encode_message(compress(gzip, inner * 40, magic=1), 1, gzip) * 4


RECORD_SETS: dict[str, Callable[[], bytes]] = {
    **{f"tiny records, v2, {codec}": lambda codec=codec: tiny_records(2, codec) for codec in CODECS[1:]},
    **{f"tiny records, v1, {codec}": lambda codec=codec: tiny_records(1, codec) for codec in CODECS[1:4]},
    "tiny records, v0, gzip": lambda: tiny_records(0, "gzip"),
    **{f"large values, {codec}": lambda codec=codec: large_values(2, codec) for codec in CODECS[1:]},
    "large values, v1, gzip": lambda: large_values(1, "gzip"),
    **{f"one batch too large, {codec}": lambda codec=codec: too_large(codec) for codec in CODECS[1:]},
    "headers": many_headers,
    "long headers": long_headers,
    "small batches, v0": lambda: small_batches(0),
    "small batches, v2": lambda: small_batches(2),
}

# Data for files.
LOGS = ("tiny records, v2, zstd", "large values, lz4", "headers", "small batches, v0")

OLD_SETS: dict[str, Callable[[], bytes]] = {
    "0.7": lambda: old_messages(False),
    "0.7, nested": lambda: old_messages(True),
}


def fetch_response(records: bytes, partitions: int = 4, topic: str = "t" * 249) -> FetchResponse:
    """The same records in several partitions of a topic with the longest name."""
    each = [FetchResponse.PartitionData(partition_index=i, records=records) for i in range(partitions)]
    return FetchResponse(responses=[FetchResponse.FetchableTopicResponse(topic=topic, partitions=each)])


FRAME = 1 << 20

# Bodies of messages of about `FRAME` bytes, by class and version.
MESSAGES: dict[str, Callable[[], tuple[str, int, bytes]]] = {
    "structs of two bytes": lambda: ("MetadataRequest", 0, count(FRAME // 2) + bytes(FRAME)),
    "structs of a byte": lambda: ("MetadataRequest", 9, _compact_count(FRAME) + b"\x01" * FRAME),
    "a count beyond the bytes": lambda: ("MetadataRequest", 0, count(2**31 - 1) + bytes(FRAME)),
    "a compact count beyond the bytes": lambda: ("MetadataRequest", 9, _compact_count(2**31 - 2) + bytes(FRAME)),
    "unknown tags": lambda: ("MetadataRequest", 9, _compact_count(0) + bytes(3) + _tags(FRAME // 5)),
    "arrays of arrays": lambda: ("OffsetCommitRequest", 0, b"\x00\x01g" + count(FRAME // 6) + bytes(FRAME)),
    "numbers": lambda: ("UpdateMetadataRequest", 0, bytes(12) + count(FRAME // 8) + bytes(FRAME)),
}


def _compact_count(value: int) -> bytes:
    """A count in a compact array: the number of items plus one."""
    return uvarint(value + 1)


def _tags(count: int) -> bytes:
    """Empty tagged fields, in order, that are not in the schema."""
    return uvarint(count) + b"".join(uvarint(1000 + tag) + b"\x00" for tag in range(count))
