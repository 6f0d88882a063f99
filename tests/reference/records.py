"""A reader of record batches v2 with struct and the standard codecs, one field at a time."""

from __future__ import annotations

import gzip
import struct
from typing import Any, NamedTuple

import cramjam
import crc32c
import lz4.frame
import zstandard

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
HEADER = struct.Struct(">qiibIhiqqqhii")


class ReferenceError_(Exception):
    """The bytes are invalid."""


class Batch(NamedTuple):
    base_offset: int
    length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int


def varint(data: bytes, at: int, bits: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift >= bits:
            raise ReferenceError_("varint")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if value >> bits:
        raise ReferenceError_("varint overflows")
    return (value >> 1) ^ -(value & 1), at


def field(data: bytes, at: int) -> tuple[bytes | None, int]:
    size, at = varint(data, at, 32)
    if size < 0:
        return None, at
    if at + size > len(data):
        raise ReferenceError_("field")
    return data[at : at + size], at + size


def decompress(codec: str, data: bytes) -> bytes:
    if codec == "none":
        return data
    if codec == "gzip":
        return gzip.decompress(data)
    if codec == "lz4":
        return lz4.frame.decompress(data)
    if codec == "zstd":
        return zstandard.ZstdDecompressor().decompressobj(read_across_frames=True).decompress(data)
    if data[:8] != b"\x82SNAPPY\x00":
        return bytes(cramjam.snappy.decompress_raw(data))
    out, at = b"", 16
    while at < len(data):
        (size,) = struct.unpack_from(">i", data, at)
        out += bytes(cramjam.snappy.decompress_raw(data[at + 4 : at + 4 + size]))
        at += 4 + size
    return out


def wrapped(value: int) -> int:
    """Wrapped to 64 bits."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def read_record(batch: Batch, data: bytes) -> tuple[Any, ...]:
    delta, at = varint(data, 1, 64)
    offset_delta, at = varint(data, at, 32)
    key, at = field(data, at)
    value, at = field(data, at)
    count, at = varint(data, at, 32)
    if count < 0:
        raise ReferenceError_("header count")
    headers = []
    for _ in range(count):
        name, at = field(data, at)
        content, at = field(data, at)
        if name is None:
            raise ReferenceError_("null header key")
        headers.append((name.decode("utf-8", "replace"), content))
    if at != len(data):
        raise ReferenceError_("bytes left over in a record")
    append_time = bool(batch.attributes & 8)
    timestamp = batch.max_timestamp if append_time else wrapped(batch.base_timestamp + delta)
    offset = wrapped(batch.base_offset + offset_delta)
    return offset, None if timestamp == -1 else timestamp, int(append_time), key, value, headers


def read(data: bytes) -> list[tuple[Batch, list[tuple[Any, ...]]]]:
    """Every complete batch with its records (offset, timestamp, type, key, value, headers)."""
    found = []
    at = 0
    while len(data) - at >= HEADER.size:
        batch = Batch(*HEADER.unpack_from(data, at))
        if batch.magic != 2 or batch.length < HEADER.size - 12:
            raise ReferenceError_("header")
        end = at + 12 + batch.length
        if end > len(data):
            break
        if crc32c.crc32c(data[at + 21 : end]) != batch.crc:
            raise ReferenceError_("crc")
        payload = decompress(CODECS[batch.attributes & 7], data[at + HEADER.size : end])
        records, inside = [], 0
        for _ in range(batch.count):
            record, inside = field(payload, inside)
            if not record:
                raise ReferenceError_("record")
            records.append(read_record(batch, record))
        if inside != len(payload):
            raise ReferenceError_("bytes left over in a batch")
        found.append((batch, records))
        at = end
    return found
