"""Numbers as the protocol writes them, without the code under test."""

from __future__ import annotations


def count(value: int) -> bytes:
    """A number of items: int32."""
    return value.to_bytes(4, "big")


def uvarint(value: int) -> bytes:
    """An unsigned varint."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)
