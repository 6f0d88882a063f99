"""Writes the golden files and the results of Kafka's reader to one file for csrc/golden/golden.c.

    python -m tests.golden_cases CASES

The C program decodes them where there is no Python: on other processors, under sanitizers. It does not decompress, so
the decompressed records of every batch are in the file too. All numbers are big-endian; a text is its length (int32, -1
for null) and its bytes.

    case      name, data, undamaged, verify_crc, ending (int8), valid bytes (int64); then parts, batches and rows,
              each list after its count (int32)
    part      position of the batch (int64), decompressed records
    batch     magic, codec, timestamp type (int8), position, size, base offset, last offset, base and max timestamp,
              producer id, delete horizon (int64, INT64_MIN for none), crc (int64), producer epoch (int16),
              base sequence, leader epoch, count (int32), is transactional, is control, can be encoded to
              the same bytes (int8)
    row       batch (int32), offset, timestamp (int64, INT64_MIN for none), timestamp type (int8), key, value, headers
    header    key (of length -2 where it was no UTF-8 and is unknown), value

The ending is that of the whole: END, FAULT, or ANY where the two readers part. With END the rows are all; else they are
the first ones, as far as batches are whole.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

import kafkacodec as kc
from kafkacodec.records import compression
from tests import corpus
from tests.conformance import test_encode_golden, test_message_sets, test_records
from tests.corpus import Digest, Expected, Row, Sample

END, FAULT, ANY = range(3)
NONE = -(2**63)
LIMIT = 1 << 20  # of one part; larger ones are bombs

PARTED = {
    *test_records.STRICTER,
    *test_records.MILDER,
    *(f"{name}.bin" for name in (*test_message_sets.STRICTER, *test_message_sets.STRICTER_IN_V1)),
    *(f"{name}.bin" for name in test_message_sets.PARTIAL),
}


def text(content: bytes | None) -> bytes:
    return struct.pack(">i", -1) if content is None else struct.pack(">i", len(content)) + content


def listed(write: Callable[..., bytes], items: Iterable[Any]) -> bytes:
    written = [write(item) for item in items]
    return struct.pack(">i", len(written)) + b"".join(written)


def header(pair: tuple[str, bytes | None]) -> bytes:
    key, value = pair
    return (struct.pack(">i", -2) if "\ufffd" in key else text(key.encode())) + text(value)


def row(r: Row) -> bytes:
    timestamp = NONE if r.timestamp is None else r.timestamp
    assert not isinstance(r.value, Digest)
    head = struct.pack(">iqqb", r.batch, r.offset, timestamp, r.timestamp_type)
    return head + text(r.key) + text(r.value) + listed(header, r.headers)


def batch(b: dict[str, Any]) -> bytes:
    return struct.pack(
        ">bbbqqqqqqqqqhiiibbb",
        b["magic"],
        b["codecId"],
        corpus.TIMESTAMP_TYPES[b["timestampType"]],
        b["position"],
        b["sizeInBytes"],
        b["baseOffset"],
        b["lastOffset"],
        b.get("baseTimestamp", -1),
        b["maxTimestamp"],
        b["producerId"],
        NONE if b["deleteHorizonMs"] is None else b["deleteHorizonMs"],
        b["crc"],
        b["producerEpoch"],
        b["baseSequence"],
        b["partitionLeaderEpoch"],
        b["count"] if b["count"] is not None else -1,
        b["isTransactional"],
        b["isControl"],
        test_encode_golden.can_be_encoded(b),
    )


def compressed(data: bytes, position: int) -> tuple[int, int, bytes]:
    """Magic and codec of the batch or message, and the compressed bytes."""
    length, magic = struct.unpack_from(">i4xb", data, position + 8)
    end = position + 12 + length
    if magic == 2:
        return magic, data[position + 22] & 7, data[position + 61 : end]
    at = position + (26 if magic else 18)
    key_size = struct.unpack_from(">i", data, at)[0]
    return magic, data[position + 17] & 7, data[at + 8 + max(key_size, 0) : end]


def parts(data: bytes, batches: list[dict[str, Any]]) -> Iterator[tuple[int, bytes]]:
    for b in batches:
        magic, codec, content = compressed(data, b["position"])
        if codec == 0:
            continue
        try:
            yield b["position"], compression.decompress(codec, content, magic=magic, limit=LIMIT)
        except kc.DecodeError:
            continue  # the program takes a part that is not there for a fault


def spelt_out(sample: Sample, rows: list[Row]) -> list[Row]:
    """Rows with long values in full: the sidecar has only their hash, against which ours are checked."""
    if not any(isinstance(r.value, Digest) for r in rows):
        return rows
    result = kc.decode(sample.data(), include_control=True, on_error="stop")
    mine = corpus.rows(result)
    corpus.assert_same_records(result, rows[: len(mine)])
    return [r._replace(value=m.value) for r, m in zip(rows, mine, strict=False)]


def ending(sample: Sample, expected: Expected) -> int:
    name = sample.path.name
    for prefix in ("v0-", "v1-"):
        if name.startswith(prefix):
            name = name[3:].removeprefix("gzip-").removeprefix("lz4-").removeprefix("snappy-")
    if name in PARTED or sample.path.name in PARTED:
        return ANY
    zeros = not any(sample.data()[expected.valid_bytes :])  # of a preallocated file, which are no fault to us
    return FAULT if expected.error and not zeros else END


def case(sample: Sample, expected: Expected, verify_crc: bool) -> bytes:
    data, how = sample.data(), ending(sample, expected)
    rows = spelt_out(sample, expected.records)
    if how != END and expected.error:
        rows = [r for r in rows if r.batch < expected.error["batch"]]
    return b"".join(
        [
            text(f"{sample}{'' if verify_crc else ' without checksums'}".encode()),
            text(data),
            struct.pack(">bbbq", sample.writer != "blobs/corrupt", verify_crc, how, expected.valid_bytes),
            listed(lambda part: struct.pack(">q", part[0]) + text(part[1]), parts(data, expected.batches)),
            listed(batch, takewhile(lambda b: "header_error" not in b, expected.batches)),
            listed(row, rows),
        ]
    )


def cases() -> Iterator[bytes]:
    for sample in [*corpus.segments(), *corpus.blobs()]:
        if any(isinstance(r.value, Digest) and r.value.size > LIMIT for r in sample.expected.records):
            continue
        yield case(sample, sample.expected, True)
        if sample.writer == "blobs/corrupt":
            yield case(sample, sample.expected_without_crc, False)


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(".partial")
    with partial.open("wb") as file:
        file.writelines(cases())
    partial.replace(target)
