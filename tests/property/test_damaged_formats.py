"""Ten thousand damaged variants of every format: only complete, verified records are returned, with bounded work."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

import kafkacodec as kc

VARIANTS = 10_000
RECORDS = [
    kc.Record(offset, 1_600_000_000_000 + offset, 0, b"key-%d" % offset, b"value-%d" % offset * (offset % 5), ())
    for offset in range(24)
]


def flip_bits(data: bytearray, r: random.Random) -> None:
    for _ in range(r.randrange(1, 4)):
        data[r.randrange(len(data))] ^= 1 << r.randrange(8)


def cut(data: bytearray, r: random.Random) -> None:
    del data[r.randrange(len(data)) :]


def remove(data: bytearray, r: random.Random) -> None:
    at = r.randrange(len(data))
    del data[at : at + r.randrange(1, 80)]


def swap(data: bytearray, r: random.Random) -> None:
    size = r.randrange(1, 60)
    a, b = sorted(r.randrange(len(data) - size) for _ in range(2))
    data[a : a + size], data[b : b + size] = data[b : b + size], data[a : a + size]


def duplicate(data: bytearray, r: random.Random) -> None:
    at, size = r.randrange(len(data)), r.randrange(1, 300)
    data[at:at] = data[at : at + size]


def overlap(data: bytearray, r: random.Random) -> None:
    """A part is written over another position, as in a torn write."""
    size = r.randrange(1, 200)
    source, target = r.randrange(len(data)), r.randrange(len(data))
    piece = data[source : source + size]
    data[target : target + len(piece)] = piece


def edge(data: bytearray, r: random.Random) -> None:
    """An extreme number at the position of a length or count."""
    at = r.randrange(len(data))
    data[at : at + 4] = r.choice([b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\xff\xff\xff\xff", b"\0\0\0\0"])


DAMAGES: list[Callable[[bytearray, random.Random], None]] = [flip_bits, cut, remove, swap, duplicate, overlap, edge]


def damaged(data: bytes, r: random.Random) -> bytes:
    copy = bytearray(data)
    for _ in range(r.randrange(1, 3)):
        if len(copy) > 300:
            r.choice(DAMAGES)(copy, r)
    return bytes(copy)


def sound(magic: int) -> bytes:
    """Two codecs and many batches in one log."""
    first, second = RECORDS[:12], RECORDS[12:]
    options = {"magic": magic, "batch_bytes": 160, "drop_unsupported": True}
    return kc.encode(first, **options) + kc.encode(second, codec="lz4", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_only_verified_records_come_out(magic: int) -> None:
    data = sound(magic)
    written = {(r.timestamp, r.key, r.value) for r in kc.iter_records(data)}
    assert len(written) == len(RECORDS)
    r = random.Random(magic)
    reported = 0
    for _ in range(VARIANTS):
        variant = damaged(data, r)
        result = kc.decode(variant, on_error="skip", columns=["timestamp", "key", "value"])
        assert result.consumed <= len(variant)
        assert len(result) <= len(variant) // 7
        assert sum(problem.size_in_bytes for problem in result.problems) <= len(variant)
        assert len(result.problems) <= len(variant)
        reported += bool(result.problems)
        if r.random() < 0.2:
            assert {(x.timestamp, x.key, x.value) for x in kc.iter_records(variant, on_error="skip")} <= written
    assert reported > VARIANTS // 3


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_without_checksums_nothing_but_decode_errors(magic: int) -> None:
    data = sound(magic)
    r = random.Random(magic + 10)
    for _ in range(VARIANTS):
        variant = damaged(data, r)
        result = kc.decode(variant, on_error="skip", verify_crc=False, max_decompressed_bytes=1 << 16)
        assert all(isinstance(problem.exception, kc.DecodeError) for problem in result.problems)
        assert len(result) <= (1 << 16) * (len(result.problems) + 40)
