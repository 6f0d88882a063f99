"""Record sets as answers show them, and batches that are not as they should be."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import kafkacodec as kc


def batches_in(data: bytes) -> Iterator[dict[str, Any]]:
    """The whole batches of a record set, with their records. A piece of a batch at the end means nothing."""
    at = 0
    while len(data) - at >= 17 and len(data) - at >= 12 + struct.unpack_from(">i", data, at + 8)[0]:
        size = 12 + struct.unpack_from(">i", data, at + 8)[0]
        one, at = data[at : at + size], at + size
        if one[16] < 2:
            headers = kc.scan(one)
            yield {
                "magic": one[16],
                "base_offset": int(headers["base_offset"][0]),
                "codec": one[17] & 7,
                "crc_ok": bool(headers["crc_ok"][0]),
                "items": [_record(r) for r in kc.iter_records(one)],
            }
            continue
        base, epoch, crc, attributes, last, base_time, max_time, producer, producer_epoch, sequence, count = (
            struct.unpack(">q4xixIhiqqqhii", one[:61])
        )
        yield {
            "base_offset": base,
            "last_offset_delta": last,
            "leader_epoch": epoch,
            "attributes": attributes,
            "base_timestamp": base_time,
            "max_timestamp": max_time,
            "producer_id": producer,
            "producer_epoch": producer_epoch,
            "sequence": sequence,
            "count": count,
            "crc_ok": crc == kc.crc32c(one[21:]),
            "items": [_record(r) for r in kc.iter_records(one, include_control=True)],
        }


def _record(record: kc.Record) -> dict[str, Any]:
    times = record.timestamp if record.timestamp is not None else -1
    headers = [f"{key}={value!r}" for key, value in record.headers]
    return {"offset": record.offset, "timestamp": times, "key": record.key, "value": record.value, "headers": headers}


FIELDS = {"base_offset": (0, "q"), "size": (8, "i"), "leader_epoch": (12, "i"), "magic": (16, "b"), "crc": (17, "I"),
          "attributes": (21, "h"), "last_offset_delta": (23, "i"), "base_timestamp": (27, "q"),
          "max_timestamp": (35, "q"), "producer_id": (43, "q"), "producer_epoch": (51, "h"), "sequence": (53, "i"),
          "count": (57, "i")}  # fmt: skip


def patched(batch: bytes, **fields: int) -> bytes:
    """The batch with other header fields, and the right checksum unless `crc` is one of them."""
    made = bytearray(batch)
    for name, value in fields.items():
        struct.pack_into(">" + FIELDS[name][1], made, FIELDS[name][0], value)
    if "crc" not in fields:
        struct.pack_into(">I", made, 17, kc.crc32c(bytes(made[21:])))
    return bytes(made)
