"""Message sets of magic 0 and 1 built by hand: offsets, timestamps, wrappers, limits, errors and their positions."""

from __future__ import annotations

import gzip
import struct
import zlib
from typing import Any

import pytest

import kafkacodec as kc


def message(
    offset: int,
    value: bytes | None,
    *,
    key: bytes | None = None,
    magic: int = 1,
    attributes: int = 0,
    timestamp: int = 1_000,
    crc: int | None = None,
) -> bytes:
    body = struct.pack(">bb", magic, attributes)
    if magic:
        body += struct.pack(">q", timestamp)
    for field in (key, value):
        body += struct.pack(">i", -1) if field is None else struct.pack(">i", len(field)) + field
    crc = zlib.crc32(body) if crc is None else crc
    return struct.pack(">qiI", offset, len(body) + 4, crc) + body


def wrapper(offset: int, *inner: bytes, **options: Any) -> bytes:
    attributes = options.pop("attributes", 0)
    return message(offset, gzip.compress(b"".join(inner)), attributes=attributes | 1, **options)


def table(data: bytes, **options: Any) -> dict[str, list[Any]]:
    import pyarrow as pa

    columns = pa.table(kc.decode(data, **options))
    if "timestamp" in columns.column_names:
        index = columns.column_names.index("timestamp")
        columns = columns.set_column(index, "timestamp", columns["timestamp"].cast(pa.int64()))
    content: dict[str, list[Any]] = columns.to_pydict()
    return content


def test_magic_0() -> None:
    data = message(7, b"v", key=b"k", magic=0) + message(9, None, magic=0) + message(12, b"", key=b"", magic=0)
    assert table(data) == {
        "offset": [7, 9, 12],
        "timestamp": [None] * 3,
        "timestamp_type": [-1] * 3,
        "key": [b"k", None, b""],
        "value": [b"v", None, b""],
        "headers": [[], [], []],
    }


def test_magic_1() -> None:
    data = message(7, b"v", timestamp=5) + message(8, b"w", timestamp=6, attributes=8) + message(9, b"x", timestamp=-1)
    got = table(data)
    assert got["timestamp"] == [5, 6, None]
    assert got["timestamp_type"] == [0, 1, 0]


def test_all_formats_in_one_buffer() -> None:
    v2 = kc.encode([(b"k", b"v2")], base_offset=2)
    data = message(0, b"v0", magic=0) + message(1, b"v1") + v2 + wrapper(4, message(0, b"a"), message(1, b"b"))
    assert table(data, columns=["offset", "value"])["value"] == [b"v0", b"v1", b"v2", b"a", b"b"]


def test_inner_offsets_are_relative_in_magic_1() -> None:
    data = wrapper(109, message(0, b"a"), message(5, b"b"), message(9, b"c"))
    assert table(data)["offset"] == [100, 105, 109]


def test_inner_offsets_are_absolute_in_magic_0() -> None:
    data = wrapper(109, message(100, b"a", magic=0), message(109, b"b", magic=0), magic=0)
    assert table(data)["offset"] == [100, 109]


def test_wrapper_offset_0_leaves_inner_offsets_alone() -> None:
    data = wrapper(0, message(0, b"a"), message(1, b"b"))
    assert table(data)["offset"] == [0, 1]
    assert table(data, start_offset=1)["offset"] == [1]


def test_append_time_of_the_wrapper_stands_for_all() -> None:
    data = wrapper(1, message(0, b"a", timestamp=3), message(1, b"b", timestamp=4), attributes=8, timestamp=99)
    got = table(data)
    assert got["timestamp"] == [99, 99]
    assert got["timestamp_type"] == [1, 1]


def test_batch_columns() -> None:
    data = message(3, b"x", magic=0) + wrapper(5, message(0, b"a"), message(1, b"b"))
    got = table(data, batch_columns=True)
    assert got["magic"] == [0, 1, 1]
    assert got["codec"] == ["none", "gzip", "gzip"]
    assert got["batch_offset"] == [3, 4, 4]
    assert got["batch_position"] == [0, 27, 27]
    assert got["is_transactional"] == got["is_control"] == [False] * 3
    for name in ("partition_leader_epoch", "producer_id", "producer_epoch", "sequence"):
        assert got[name] == [None] * 3


@pytest.mark.parametrize("columns", [["value"], ["offset", "timestamp"], ["key", "magic"], ["headers"]])
def test_some_columns(columns: list[str]) -> None:
    data = message(3, b"x", key=b"k") + wrapper(5, message(0, b"a"), message(1, b"b", key=b"l"))
    everything = table(data, batch_columns=True)
    assert table(data, columns=columns) == {name: everything[name] for name in columns}


def test_offset_range_passes_over_messages_unverified() -> None:
    data = message(1, b"a", crc=0) + message(2, b"b") + message(3, b"c", crc=0)
    assert table(data, start_offset=2, end_offset=3)["offset"] == [2]
    data = wrapper(9, message(0, b"a"), message(4, b"b"), message(9, b"c"))
    assert table(data, start_offset=2, end_offset=9)["offset"] == [4]
    assert table(data, start_offset=10)["offset"] == []
    assert table(data, end_offset=0)["offset"] == []


def test_long_runs_and_long_values() -> None:
    values = [b"x" * size for size in (0, 1, 31, 32, 33, 255, 256, 257, 70_000, 3)] * 40
    data = b"".join(message(i, value) for i, value in enumerate(values))
    assert table(data)["value"] == values
    chunks = list(kc.iter_columns(data, max_bytes=1000))
    assert sum(map(len, chunks)) == len(values)
    assert max(chunk.buffers("value")["data"].nbytes for chunk in chunks) <= 70_000 + 1000


def test_partial_message_at_the_end() -> None:
    data = message(1, b"a") + message(2, b"b")
    for cut in range(len(data)):
        result = kc.decode(data[:cut])
        assert result.consumed == (len(data) // 2 if cut >= len(data) // 2 else 0)
        assert len(result) == (result.consumed > 0)


FIRST = message(1, b"good")
FAULTS = [
    (message(2, b"x", crc=1), kc.CrcMismatch, "CRC-32 of a message", 0),
    (wrapper(2, message(0, b"x"), crc=1), kc.CrcMismatch, "CRC-32 of a message", 0),
    (wrapper(2, message(0, b"x", crc=1)), kc.CrcMismatch, "record 0: the CRC-32 of a message", 0),
    (wrapper(3, message(0, b"x"), message(1, b"y", crc=1)), kc.CrcMismatch, "record 1: the CRC-32", 0),
    (wrapper(2, wrapper(0, message(0, b"x"))), kc.CorruptRecord, "contains another compressed message", 0),
    (wrapper(2, message(0, b"x", magic=2)), kc.UnsupportedMagic, "contains a message of magic 2", 0),
    (wrapper(2, message(0, b"x")[:-1]), kc.CorruptRecord, "ends with a partial message", 0),
    (wrapper(2, b"\0" * 11), kc.CorruptRecord, "ends with a partial message", 0),
    (wrapper(2), kc.CorruptRecord, "is empty", 0),
    (wrapper(2, message(0, b"x"), message(7, b"y")), kc.CorruptRecord, "smaller than the last offset inside", 0),
    (message(2, None, attributes=1), kc.CorruptRecord, "has no value", 0),
    (message(2, b"", attributes=2), kc.CorruptRecord, "has no value", 0),
    (message(2, b"x", attributes=4), kc.UnsupportedCodec, "codec 4", 17),
    (message(2, b"x", attributes=5), kc.UnsupportedCodec, "codec 5", 17),
    (message(2, b"not gzip", attributes=1), kc.DecodeError, "gzip", 0),
]


@pytest.mark.parametrize(("bad", "error", "text", "place"), FAULTS, ids=lambda v: "" if isinstance(v, bytes) else None)
def test_faults(bad: bytes, error: type[kc.DecodeError], text: str, place: int) -> None:
    data = FIRST + bad + message(90, b"after")
    with pytest.raises(error, match=text) as raised:
        kc.decode(data)
    assert raised.value.position == len(FIRST) + place
    assert raised.value.path is not None
    assert raised.value.path.startswith("batch at offset 2")
    stopped = kc.decode(data, on_error="stop")
    assert stopped["offset"][:1].tolist() == [1]
    assert stopped.consumed == len(FIRST)
    skipped = kc.decode(data, on_error="skip")
    assert skipped["offset"][0] == 1
    assert skipped["offset"][-1] == 90
    assert [(p.position, p.size_in_bytes) for p in skipped.problems] == [(len(FIRST), len(bad))]


@pytest.mark.parametrize(
    ("place", "value", "text"),
    [
        (26, 5, "key runs past"),
        (26, 2**31 - 1, "key runs past"),
        (30, 0, "value does not end"),
        (30, 2, "value does not end"),
        (30, 2**31 - 1, "value does not end"),
        (30, -1, "value does not end"),
    ],
)
def test_lengths_that_lie(place: int, value: int, text: str) -> None:
    bad = bytearray(message(2, b"x"))
    struct.pack_into(">i", bad, place, value)
    struct.pack_into(">I", bad, 12, zlib.crc32(bad[16:]))
    with pytest.raises(kc.CorruptRecord, match=text) as raised:
        kc.decode(bytes(FIRST + bad))
    assert raised.value.position == len(FIRST) + place + 4 * (place == 30) or place == 26


def test_magic_1_too_short_for_its_timestamp() -> None:
    body = struct.pack(">bbii", 1, 0, -1, -1)
    bad = struct.pack(">qiI", 2, len(body) + 4, zlib.crc32(body)) + body
    with pytest.raises(kc.CorruptRecord, match="too short"):
        kc.decode(bad)
    assert kc.scan(bad)["crc_ok"].tolist() == [True]


def test_crc_can_be_left_alone() -> None:
    data = message(2, b"x", crc=1) + wrapper(3, message(0, b"y", crc=1), crc=1)
    assert table(data, verify_crc=False)["value"] == [b"x", b"y"]
    assert kc.scan(data)["crc_ok"].tolist() == [False, False]


def test_expansion_is_limited() -> None:
    data = wrapper(0, message(0, bytes(1 << 20)))
    assert len(data) < 2000
    with pytest.raises(kc.LimitExceeded):
        kc.decode(data, max_decompressed_bytes=1 << 16)


def test_every_flipped_byte_is_found_or_harmless() -> None:
    data = message(1, b"value", key=b"key") + wrapper(3, message(0, b"a"), message(1, b"b")) + message(4, b"", magic=0)
    right = list(kc.iter_records(data))
    for position in range(len(data)):
        for flip in (0x01, 0x80, 0xFF):
            damaged = bytearray(data)
            damaged[position] ^= flip
            try:
                got = list(kc.iter_records(damaged))
            except kc.DecodeError:
                continue
            # Only the offset lies outside the checksum; a longer length may make the rest a partial message.
            assert all((a.key, a.value) == (b.key, b.value) for a, b in zip(got, right, strict=False))


def test_a_range_is_held_against_every_record() -> None:
    """Even if the header of a batch says that all of its records are in the range."""
    batch = bytearray(kc.encode([kc.Record(offset, None, 0, None, b"x", ()) for offset in (10, 11, 40)]))
    struct.pack_into(">i", batch, 23, 1)  # the last offset delta
    struct.pack_into(">I", batch, 17, kc.crc32c(batch[21:]))
    for columns in (None, ["offset"], ["offset", "value"], ["offset", "timestamp"]):
        assert table(bytes(batch), columns=columns, start_offset=10, end_offset=20)["offset"] == [10, 11]
    assert table(bytes(batch))["offset"] == [10, 11, 40]


def test_the_largest_offset_is_in_no_range_but_in_the_whole() -> None:
    data = message(2**63 - 1, b"x")
    assert table(data)["offset"] == [2**63 - 1]
    assert table(data, end_offset=2**63 - 2)["offset"] == []
