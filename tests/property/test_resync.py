"""Continuing after damage: only intact batches are returned, losses are reported, and the work is bounded."""

from __future__ import annotations

import random

import pytest

import kafkacodec as kc
from kafkacodec.log.segments._resync import Resync
from tests.corpus import segments

SAMPLES = [s for s in segments() if 5_000 < s.path.stat().st_size < 40_000][::23]


def damage(rng, data):
    """One of: flipped bytes, a cut-out, zeros, a repeated region, garbage in between."""
    at, size = rng.randrange(len(data)), rng.choice([1, 3, 40, 700, 5000])
    kind = rng.randrange(5)
    if kind == 0:
        return data[:at] + bytes(b ^ 0x55 for b in data[at : at + size]) + data[at + size :]
    if kind == 1:
        return data[:at] + data[at + size :]
    if kind == 2:
        return data[:at] + bytes(size) + data[at + size :]
    if kind == 3:
        return data[: at + size] + data[at:]
    return data[:at] + rng.randbytes(size) + data[at:]


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_every_intact_batch_is_found_again(sample):
    rng = random.Random(sample.name)
    data = sample.data()
    # The checksum covers a batch from its magic byte on: not its base offset and leader epoch.
    places = [(b["position"], b["position"] + b["sizeInBytes"]) for b in sample.expected.batches]
    whole = {data[start:end] for start, end in places}
    checked = {data[start + 16 : end] for start, end in places}
    for _ in range(40):
        bad = damage(rng, data)
        columns = kc.decode(bad, on_error="skip", include_control=True, columns=("offset",), batch_columns=True)
        # What came back lies in batches of the original, byte for byte.
        positions = sorted(set(columns["batch_position"].tolist()))
        for position in positions:
            size = int.from_bytes(bad[position + 8 : position + 12], "big") + 12
            assert bad[position + 16 : position + size] in checked
        # Between the passed stretches every byte is accounted for, up to a partial batch at the end.
        at = 0
        for problem in columns.problems:
            assert problem.position >= at
            at = problem.position + problem.size_in_bytes
        assert columns.consumed >= at
        # No intact batch lies inside what was passed over, except where a damaged one still says how long it is.
        for problem in columns.problems:
            stretch = bad[problem.position : problem.position + problem.size_in_bytes]
            size = int.from_bytes(stretch[8:12], "big") + 12
            if size != len(stretch):
                assert not any(batch in stretch for batch in whole)


def test_batches_inside_a_value_are_not_taken_for_batches_of_the_log():
    inner = kc.encode([(b"inner", b"x" * 50)], base_offset=5)
    outer = kc.encode([(b"outer", inner)], base_offset=100)
    after = kc.encode([(b"after", b"y")], base_offset=101)
    broken = bytearray(outer + after)
    broken[70] ^= 1
    columns = kc.decode(bytes(broken), on_error="skip")
    assert columns["offset"].tolist() == [101]
    assert [(p.position, p.size_in_bytes, p.base_offset) for p in columns.problems] == [(0, len(outer), 100)]


@pytest.mark.parametrize("filler", [bytes(1), b"\x00\x00\x01", b"A", b"\x00" * 16 + b"\x02", bytes(range(256))])
def test_work_is_bounded_in_garbage(filler):
    data = (filler * 200_000)[:200_000]
    search = Resync(data)
    assert search.next(0) == len(data)
    assert search.examined <= 2 * len(data)


def test_work_is_bounded_in_bytes_made_to_look_like_batches():
    """Headers of batches up to the end, every 61 bytes, all with a wrong checksum."""
    size, step = 400_000, 61
    data = bytearray(size)
    header = bytes(kc.encode([(None, b"")]))[:61]
    for at in range(0, size - step, step):
        left = size - at - 12
        data[at : at + step] = header[:8] + left.to_bytes(4, "big") + header[12:57] + b"\x00\x00\x00\x00"
    search = Resync(bytes(data))
    assert search.next(0) == size
    credit = 256 << 20
    assert search.examined <= credit + 17 * size
