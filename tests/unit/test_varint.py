"""Varints: boundary values in both directions, truncation, overflow, buffers."""

from __future__ import annotations

import pytest

import kafkacodec as kc

UNSIGNED = [
    (0, "00"),
    (1, "01"),
    (127, "7f"),
    (128, "8001"),
    (300, "ac02"),
    (16383, "ff7f"),
    (16384, "808001"),
    (2**32 - 1, "ffffffff0f"),
    (2**63, "80808080808080808001"),
    (2**64 - 1, "ffffffffffffffffff01"),
]
SIGNED = [
    (0, "00"),
    (-1, "01"),
    (1, "02"),
    (63, "7e"),
    (-64, "7f"),
    (64, "8001"),
    (-65, "8101"),
    (2**31 - 1, "feffffff0f"),
    (-(2**31), "ffffffff0f"),
    (2**63 - 1, "feffffffffffffffff01"),
    (-(2**63), "ffffffffffffffffff01"),
]
BOTH = [(kc.encode_uvarint, kc.decode_uvarint, v, h) for v, h in UNSIGNED] + [
    (kc.encode_varint, kc.decode_varint, v, h) for v, h in SIGNED
]


@pytest.mark.parametrize(("encode", "decode", "value", "form"), BOTH)
def test_boundaries(encode, decode, value, form) -> None:
    data = bytes.fromhex(form)
    assert encode(value) == data
    assert decode(data) == (value, len(data))
    assert decode(b"\xff" + data + b"\xff", 1) == (value, len(data) + 1)
    for cut in range(len(data)):
        with pytest.raises(kc.Truncated, match="truncated varint"):
            decode(data[:cut])


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_takes_any_contiguous_buffer(kind: type) -> None:
    assert kc.decode_uvarint(kind(b"\xac\x02")) == (300, 2)


@pytest.mark.parametrize("decode", [kc.decode_varint, kc.decode_uvarint])
def test_overflow(decode) -> None:
    for form in ("ffffffffffffffffff02", "80808080808080808080", "8080808080808080808001"):
        with pytest.raises(kc.CorruptRecord, match="overflows 64 bits") as raised:
            decode(b"\x00" + bytes.fromhex(form), 1)
        assert raised.value.position == 1


def test_longer_forms_are_read() -> None:
    assert kc.decode_uvarint(b"\x81\x80\x00") == (1, 3)


@pytest.mark.parametrize("decode", [kc.decode_varint, kc.decode_uvarint])
@pytest.mark.parametrize("position", [-1, 2, 2**62, 2**63, 2**70, -(2**70)])
def test_position_outside(decode, position: int) -> None:
    with pytest.raises(kc.Truncated, match="is outside the"):
        decode(b"\x00", position)


@pytest.mark.parametrize("position", [1.0, "1", None])
def test_positions_that_are_no_integers(position) -> None:
    with pytest.raises(TypeError):
        kc.decode_varint(b"\x00", position)


def test_position_at_the_end() -> None:
    with pytest.raises(kc.Truncated):
        kc.decode_varint(b"\x00", 1)


@pytest.mark.parametrize(
    ("encode", "value"),
    [(kc.encode_varint, 2**63), (kc.encode_varint, -(2**63) - 1), (kc.encode_uvarint, -1), (kc.encode_uvarint, 2**64)],
)
def test_values_that_do_not_fit(encode, value: int) -> None:
    with pytest.raises(kc.EncodeError, match="64-bit integer"):
        encode(value)


@pytest.mark.parametrize("value", [1.0, "1", None])
def test_values_that_are_no_integers(value) -> None:
    with pytest.raises(TypeError):
        kc.encode_varint(value)
