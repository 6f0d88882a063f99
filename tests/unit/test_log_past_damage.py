"""What follows damage inside a segment: every way of reading, planning and looking up finds the same intact batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

import kafkacodec as kc
from kafkacodec.log import Partition, Segment

OFFSETS = 40
PER_BATCH = 4
STEP_MS = 1000
FIRST_TIME = 1_700_000_000_000

Damage = Callable[[list[bytes]], bytes]


def batches(magic: int) -> list[bytes]:
    """The bytes of each batch."""
    found = []
    for first in range(0, OFFSETS, PER_BATCH):
        rows = [
            kc.Record(offset, FIRST_TIME + offset * STEP_MS, 0, b"key", b"value %d" % offset, ())
            for offset in range(first, first + PER_BATCH)
        ]
        found.append(kc.encode(rows, magic=magic, drop_unsupported=True))
    return found


def a_long_length(parts: list[bytes]) -> bytes:
    """The fourth batch, or its first message, says that it is longer than the file."""
    broken = bytearray(parts[3])
    broken[8] = 0x40
    return b"".join([*parts[:3], broken, *parts[4:]])


def a_stranger(parts: list[bytes]) -> bytes:
    """Bytes that look like the start of a long batch, at an offset that none has."""
    return b"".join([*parts[:3], b"\x18" + bytes(7) + b"\x70\0\0\0" + bytes(30), *parts[4:]])


def an_unknown_magic(parts: list[bytes]) -> bytes:
    """The fourth batch has one."""
    broken = bytearray(parts[3])
    broken[16] = 9
    return b"".join([*parts[:3], broken, *parts[4:]])


DAMAGES = (a_long_length, a_stranger, an_unknown_magic)


@pytest.fixture(params=[0, 1, 2])
def magic(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def partition(directory: Path, data: bytes) -> Partition:
    """The only segment of a log without index files and checkpoints."""
    place = directory / "t-0"
    place.mkdir()
    (place / f"{0:020}.log").write_bytes(data)
    return Partition(place)


def offsets(chunks: Iterable[kc.RecordColumns]) -> list[int]:
    return [offset for chunk in chunks for offset in chunk["offset"].tolist()]


def kept(magic: int, damage: Damage) -> list[int]:
    """The offsets that the damage leaves: of the fourth batch none, or of its messages all but the first."""
    lost = range(12, 16) if magic == 2 or damage is a_stranger else range(12, 13)
    return [offset for offset in range(OFFSETS) if offset not in lost]


@pytest.mark.parametrize("damage", DAMAGES)
def test_pieces_have_what_the_whole_has(tmp_path: Path, magic: int, damage: Damage) -> None:
    log = partition(tmp_path, damage(batches(magic)))
    expected = kept(magic, damage)
    assert offsets(log.read(on_error="skip")) == expected
    assert offsets(log.read(on_error="stop")) == list(range(12))
    with pytest.raises(kc.DecodeError):
        offsets(log.read())
    for size in (1, 300, 1000):
        pieces = log.ranges(max_bytes=size)
        assert offsets(chunk for piece in pieces for chunk in piece.read(on_error="skip")) == expected
        with pytest.raises(kc.DecodeError):
            offsets(chunk for piece in pieces for chunk in piece.read())
    assert log.count(on_error="skip", problems=[]) == len(expected)
    with pytest.raises(kc.DecodeError):
        log.count()


@pytest.mark.parametrize("damage", DAMAGES)
def test_spans_after_damage(tmp_path: Path, magic: int, damage: Damage) -> None:
    log = partition(tmp_path, damage(batches(magic)))
    expected = kept(magic, damage)
    for start in (12, 16, 17, 30, 39):
        found = offsets(log.read(start_offset=start, end_offset=39, on_error="skip"))
        assert found == [offset for offset in expected if start <= offset < 39]
        assert log.count(start_offset=start, end_offset=39, on_error="skip", problems=[]) == len(found)
    assert log.end_offset() == OFFSETS
    assert Segment(log.segments[0].path).last_offset() == OFFSETS - 1


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("magic", [1, 2])
def test_times_after_damage(tmp_path: Path, magic: int, damage: Damage) -> None:
    log = partition(tmp_path, damage(batches(magic)))
    expected = kept(magic, damage)
    for offset in (16, 17, 30, 39):
        time = FIRST_TIME + offset * STEP_MS
        assert log.offset_of_timestamp(time) == offset
        assert offsets(log.read(start_timestamp=time, on_error="skip")) == list(range(offset, OFFSETS))
        before = [kept for kept in expected if kept < offset]
        assert offsets(log.read(end_timestamp=time, on_error="skip")) == before
    assert log.offset_of_timestamp(FIRST_TIME + OFFSETS * STEP_MS) is None


def test_a_copy_between_damage_is_not_read_twice(tmp_path: Path) -> None:
    """As after a torn write: a batch of elsewhere, with damage around it."""
    parts = batches(2)
    for copied in (parts[8], parts[1]):  # of offsets after those that follow, and of such before
        place = tmp_path / str(copied[7])
        place.mkdir()
        log = partition(place, b"".join([*parts[:3], b"\xff" * 50, copied, b"\xff" * 50, *parts[5:]]))
        expected = [*range(12), *range(20, OFFSETS)]
        assert offsets(log.read(on_error="skip")) == expected
        pieces = log.ranges(max_bytes=1)
        assert offsets(chunk for piece in pieces for chunk in piece.read(on_error="skip")) == expected
        saved = place / "saved"
        kc.log.recover(log.path, saved)
        assert offsets(Partition(saved / "t-0").read()) == expected


def test_a_torn_end_is_none(tmp_path: Path, magic: int) -> None:
    """Whatever bytes its value has: batches of earlier offsets are part of it."""
    parts = batches(magic)
    last = kc.Record(OFFSETS, FIRST_TIME, 0, None, b"".join(parts[:4]) + bytes(50), ())
    torn = kc.encode([last], magic=magic, drop_unsupported=True)[:-20]
    log = partition(tmp_path, b"".join(parts) + torn)
    assert offsets(log.read()) == list(range(OFFSETS))
    assert log.count() == log.end_offset() == OFFSETS
    pieces = log.ranges(max_bytes=1)
    assert offsets(chunk for piece in pieces for chunk in piece.read()) == list(range(OFFSETS))


def test_a_follower_goes_past_damage(tmp_path: Path) -> None:
    parts = batches(2)
    log = partition(tmp_path, a_long_length(parts[:8]))
    follower = kc.log.Follower(log)
    growth = follower.poll()
    assert growth is not None
    assert follower.next_offset == 8 * PER_BATCH
    with open(log.segments[0].path, "ab") as file:
        file.write(b"".join(parts[8:]))
    growth = follower.poll()
    assert growth is not None
    assert (growth.start_offset, growth.end_offset) == (8 * PER_BATCH, OFFSETS)
