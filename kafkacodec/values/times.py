"""Times of any 64 bits: as text, and whether microseconds can hold them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["has_far_times", "rows_beyond_microseconds", "time_texts"]

# Unit -> units in a second, and the digits after the point.
_UNITS = {"s": (1, 0), "ms": (10**3, 3), "us": (10**6, 6), "ns": (10**9, 9)}

_DAY = 86_400

_MOST_DAYS = 10_000_000
"""About 27,000 years. Arrow's own text has years of 16 bits."""


def has_far_times(column: pa.Array) -> bool:
    """Whether a column has timestamps or dates for which Arrow's own text, also that of its CSV writer, is wrong."""
    kind = column.type
    return (pa.types.is_timestamp(kind) or pa.types.is_date32(kind)) and bool(_far(_numbers(column), kind).any())


def time_texts(column: pa.Array) -> pa.Array:
    """A column of timestamps or dates as text: ``2025-01-31 23:59:59.000Z``, without Z if there is no time zone."""
    numbers = _numbers(column)
    far = _far(numbers, column.type)
    if not far.any():
        return column.cast(pa.string())
    units, digits = _units(column.type)
    near = pc.if_else(pa.array(far), pa.scalar(None, column.type), column).cast(pa.string())
    found = [_text(number, column.type, units, digits) for number in numbers[far].tolist()]
    return pc.replace_with_mask(near, pa.array(far), pa.array(found, pa.string()))


def _units(kind: pa.DataType) -> tuple[int, int]:
    return (1, 0) if pa.types.is_date32(kind) else _UNITS[kind.unit]


def _numbers(column: pa.Array) -> npt.NDArray[Any]:
    """Units since 1970, 0 for null."""
    return column.cast(pa.int32() if pa.types.is_date32(column.type) else pa.int64()).fill_null(0).to_numpy()  # type: ignore[no-any-return]


def _far(numbers: npt.NDArray[Any], kind: pa.DataType) -> npt.NDArray[np.bool_]:
    most = _MOST_DAYS * (1 if pa.types.is_date32(kind) else _units(kind)[0] * _DAY)
    return (numbers > most) | (numbers < -most)


def _text(number: int, kind: pa.DataType, units: int, digits: int) -> str:
    if pa.types.is_date32(kind):
        return str(np.datetime64(number, "D"))
    seconds, rest = divmod(number, units)
    fraction = f".{rest:0{digits}d}" if digits else ""
    return str(np.datetime64(seconds, "s")).replace("T", " ") + fraction + ("" if kind.tz is None else "Z")


def rows_beyond_microseconds(column: pa.Array) -> npt.NDArray[np.bool_]:
    """Which rows have a timestamp, anywhere in them, that 64 bits of microseconds cannot hold."""
    kind = column.type
    found = np.zeros(len(column), bool)
    if pa.types.is_timestamp(kind):
        factor = max(10**6 // _UNITS[kind.unit][0], 1)
        numbers = column.cast(pa.int64()).fill_null(0).to_numpy()
        found = (numbers > (2**63 - 1) // factor) | (numbers < -(2**63) // factor)
    elif pa.types.is_struct(kind):
        for part in column.flatten():
            found |= rows_beyond_microseconds(part)
    elif pa.types.is_list(kind) or pa.types.is_map(kind):
        items = rows_beyond_microseconds(column.items if pa.types.is_map(kind) else column.values)
        before = np.concatenate([[0], np.cumsum(items)])
        offsets = column.offsets.to_numpy()
        found = before[offsets[1:]] > before[offsets[:-1]]
    return found
