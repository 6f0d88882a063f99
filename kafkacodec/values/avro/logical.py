"""Columns of Avro's logical types from columns of the types that they annotate.

Source: "Logical Types" in the Avro specification, 1.12; of big decimals, which it does not describe, the bytes that
Java's ``Conversions.BigDecimalConversion`` writes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkacodec.errors import DecodeError
from kafkacodec.records._varint import decode_varint

__all__ = ["DURATION", "MAX_BIG_DECIMAL_BYTES", "big_decimal_text", "decimals", "from_stored"]

DURATION = pa.struct([("months", pa.uint32()), ("days", pa.uint32()), ("milliseconds", pa.uint32())])
"""The type of durations: three numbers that Avro does not add up."""

MAX_BIG_DECIMAL_BYTES = 1024
"""Limit on the bytes of a big decimal's digits: about 2,460 digits."""

_UUID_DIGITS = [place for place in range(36) if place not in (8, 13, 18, 23)]


def from_stored(column: pa.Array, logical: str | None, target: pa.DataType) -> pa.Array:
    """The column of a logical type, but of no decimal, from a column of the type that it annotates."""
    make = _FROM_BYTES.get((logical or "", column.type))
    if make is not None:
        return make(column)
    return column if column.type == target else column.cast(target)


def decimals(values: Sequence[bytes | None], target: pa.DataType) -> pa.Array:
    """Decimals from big-endian numbers, whose digits are not counted."""
    size = target.bit_width // 8
    numbers = [v if v is None else int.from_bytes(v, signed=True).to_bytes(size, "little", signed=True) for v in values]
    column = pa.array(numbers, pa.binary(size))
    return pa.Array.from_buffers(target, len(column), column.buffers())


def _durations(column: pa.Array) -> pa.Array:
    """Three little-endian numbers of 4 bytes."""
    numbers = _matrix(column).view("<u4")
    parts = [pa.array(np.ascontiguousarray(numbers[:, i])) for i in range(3)]
    mask = column.is_null() if column.null_count else None
    return pa.StructArray.from_arrays(parts, fields=list(DURATION), mask=mask)


def _uuids(column: pa.Array) -> pa.Array:
    rows = len(column)
    text = np.full((rows, 36), ord("-"), np.uint8)
    text[:, _UUID_DIGITS] = np.frombuffer(_matrix(column).tobytes().hex().encode(), np.uint8).reshape(rows, 32)
    offsets = pa.py_buffer(np.arange(0, 36 * rows + 1, 36, dtype=np.int32))
    found = pa.StringArray.from_buffers(rows, offsets, pa.py_buffer(text))
    return pc.if_else(column.is_valid(), found, pa.scalar(None, pa.string())) if column.null_count else found


def _matrix(column: pa.Array) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    """The bytes of a fixed_size_binary column, a row for each value."""
    size = column.type.byte_width
    if not len(column):
        return np.empty((0, size), np.uint8)
    return np.frombuffer(column.buffers()[1], np.uint8).reshape(-1, size)[column.offset : column.offset + len(column)]


def _big_decimals(column: pa.Array) -> pa.Array:
    return pa.array([None if value is None else big_decimal_text(value) for value in column.to_pylist()], pa.string())


def big_decimal_text(value: bytes) -> str:
    """A big decimal as text, in the form of Java's ``BigDecimal.toString``.

    Raises:
        ValueError: the bytes are none.
    """
    try:
        size, at = decode_varint(value, 0)
        scale, end = decode_varint(value, at + max(size, 0))
    except DecodeError:
        size, scale, end = 0, 0, 0
    if not 0 < size <= MAX_BIG_DECIMAL_BYTES or end != len(value) or not -(2**31) <= scale < 2**31:
        raise ValueError("bytes that are not a big decimal")
    number = int.from_bytes(value[at : at + size], signed=True)
    return str(Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -scale)))


# Logical type and the type that it annotates -> what makes its column. Others are numbers that Arrow casts.
_FROM_BYTES: dict[tuple[str, pa.DataType], Callable[[pa.Array], pa.Array]] = {
    ("duration", pa.binary(12)): _durations,
    ("uuid", pa.binary(16)): _uuids,
    ("big-decimal", pa.binary()): _big_decimals,
}
