"""Varints over Python buffers: base 128, least significant group first, at most ten bytes for 64 bits.

Source: KIP-98 (signed ones, zigzag-coded, in records) and KIP-482 (unsigned ones, in compact types).
"""

from typing_extensions import Buffer

def encode_varint(value: int) -> bytes:
    """`value` zigzag-coded, as Kafka's records hold lengths and deltas: 1 to 10 bytes.

    Raises:
        EncodeError: `value` does not fit 64 bits with sign.
    """

def decode_varint(data: Buffer, position: int = 0) -> tuple[int, int]:
    """The zigzag-coded varint at `position` of `data`.

    Returns:
        The value, 64 bits with sign, and the position of the byte behind it. Forms longer than needed are read.

    Raises:
        Truncated: `data` ends first, or `position` lies outside it.
        CorruptRecord: the value has more than 64 bits, or the form more than ten bytes.
    """

def encode_uvarint(value: int) -> bytes:
    """`value` without zigzag, as the protocol's compact types and tagged fields hold lengths: 1 to 10 bytes.

    Raises:
        EncodeError: `value` is negative or does not fit 64 bits.
    """

def decode_uvarint(data: Buffer, position: int = 0) -> tuple[int, int]:
    """The unsigned varint at `position` of `data`; as `decode_varint`, with a value of 64 bits without sign."""
