"""Damaged record sets: an error with a position, or the same data as from another reader; nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

import kafkacodec as kc
from tests.corpus import Sample, blobs, rows, segments
from tests.examples import examples

SMALL = [s for s in blobs("builder", "foreign", magics={2}) if 200 < s.path.stat().st_size < 1500][:8]
LARGER = [s for s in segments(magics={2}) if s.path.stat().st_size < 20_000][:20]


def attempt(data: bytes, **options: bool) -> kc.RecordColumns | None:
    try:
        return kc.decode(data, include_control=True, **options)  # type: ignore[arg-type]
    except kc.DecodeError as caught:
        error = caught
    assert error.reason
    assert error.position is None or 0 <= error.position <= len(data)
    return None


@pytest.mark.parametrize("sample", SMALL, ids=str)
def test_every_truncation_gives_the_batches_before_it(sample: Sample) -> None:
    data = sample.data()
    batches = sample.expected.batches
    records = [row[:6] for row in sample.expected.records]
    for end in range(len(data)):
        result = attempt(data[:end])
        assert result is not None
        whole = [i for i, b in enumerate(batches) if b["position"] + b["sizeInBytes"] <= end]
        assert result.consumed == (batches[whole[-1]]["position"] + batches[whole[-1]]["sizeInBytes"] if whole else 0)
        expected = [r[:6] for r in sample.expected.records if r.batch in whole]
        if end % 50 == 0:
            assert [r[:6] for r in rows(result)] == expected
        assert len(result) == len(expected) <= len(records)


@pytest.mark.parametrize("sample", SMALL, ids=str)
def test_every_damaged_byte_is_noticed(sample: Sample) -> None:
    """The checksum covers a batch except offset, leader epoch, length and magic."""
    data = bytearray(sample.data())
    starts = [b["position"] for b in sample.expected.batches]
    for at in range(len(data)):
        inside = at - max(start for start in starts if start <= at)
        for flip in (0x01, 0x80, 0xFF):
            data[at] ^= flip
            result = attempt(bytes(data))
            data[at] ^= flip
            if inside >= 17:
                assert result is None
    assert attempt(bytes(data)) is not None


@pytest.mark.parametrize("sample", SMALL, ids=str)
def test_without_checksums_damage_is_still_harmless(sample: Sample) -> None:
    data = bytearray(sample.data())
    for at in range(61, len(data)):
        for flip in (0x01, 0x40, 0x80, 0xFF):
            data[at] ^= flip
            for chunk in kc.iter_columns(bytes(data), verify_crc=False, on_error="skip", max_rows=3):
                assert len(chunk) <= 3
            data[at] ^= flip


@st.composite
def damaged_segments(draw: st.DrawFn) -> bytes:
    """The bytes of a golden segment with one to four places damaged; never empty."""
    data = bytearray(draw(st.sampled_from(LARGER)).data())
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data) - 1))
        kind = draw(st.sampled_from(["flip", "cut", "repeat", "swap"]))
        size = draw(st.integers(1, 64))
        if kind == "flip":
            data[at] = draw(st.integers(0, 255))
        elif kind == "cut":
            del data[max(at, 1) : at + size]
        elif kind == "repeat":
            data[at:at] = data[at : at + size]
        else:
            data[at : at + size] = data[at : at + size][::-1]
    return bytes(data)


@settings(deadline=None, max_examples=examples(300))
@given(damaged_segments())
def test_random_damage(data: bytes) -> None:
    attempt(data)
    attempt(data, verify_crc=False)
    skipped = kc.decode(data, on_error="skip", verify_crc=False, batch_columns=True)
    assert skipped.consumed <= len(data)


@settings(deadline=None, max_examples=examples(300))
@given(st.binary(max_size=300))
def test_random_bytes(data: bytes) -> None:
    attempt(data)
    attempt(data, verify_crc=False)
