"""Checksums can be computed in parts; varints are decoded to the encoded value."""

from __future__ import annotations

import zlib

import crc32c as peer
from hypothesis import given, strategies as st

import kafkacodec as kc
from kafkacodec.records import _crc


@given(st.binary(max_size=3000), st.data())
def test_checksum_of_pieces(data: bytes, draw: st.DataObject) -> None:
    cut = draw.draw(st.integers(0, len(data)))
    assert kc.crc32c(data[cut:], kc.crc32c(data[:cut])) == kc.crc32c(data) == peer.crc32c(data)
    assert _crc.crc32(data[cut:], _crc.crc32(data[:cut])) == _crc.crc32(data) == zlib.crc32(data)


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_varints_one_after_another(values: list[int]) -> None:
    data = b"".join(map(kc.encode_varint, values))
    position = 0
    for value in values:
        got, position = kc.decode_varint(data, position)
        assert got == value
    assert position == len(data)


@given(st.binary(max_size=12))
def test_any_bytes_give_a_value_or_a_decode_error(data: bytes) -> None:
    for decode, encode in ((kc.decode_varint, kc.encode_varint), (kc.decode_uvarint, kc.encode_uvarint)):
        try:
            value, end = decode(data)
        except kc.DecodeError:
            continue
        assert 1 <= end <= len(data)
        assert len(encode(value)) <= end
        assert decode(encode(value))[0] == value
