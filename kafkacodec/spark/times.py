"""Kafka's times, which are any 64 bits of milliseconds, in Spark's microseconds."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkacodec.errors import LimitExceeded

__all__ = ["TIME", "FarTimes", "beyond_spark", "bounds", "far_text", "microseconds", "values_of", "with_values"]

TIME = pa.timestamp("us", tz="UTC")

MOST_MILLISECONDS = ((1 << 63) - 1) // 1000
"""10 January 294247; some producers write microseconds or nanoseconds, which are later."""


def microseconds(milliseconds: pa.Array) -> pa.Array:
    """Timestamps in Spark's unit; null where it cannot hold them, see `beyond_spark`."""
    values = values_of(milliseconds, np.dtype("<i8"))
    far = _far(values)
    if not far.any():
        return with_values(milliseconds, TIME, values * 1000)
    return pa.array(np.where(far, 0, values) * 1000, TIME, mask=far | milliseconds.is_null().to_numpy(False))


def beyond_spark(milliseconds: pa.Array) -> npt.NDArray[np.intp]:
    """The rows with a timestamp that Spark cannot hold."""
    far = _far(values_of(milliseconds, np.dtype("<i8")))
    if far.any() and milliseconds.null_count:
        far &= milliseconds.is_valid().to_numpy(False)
    return np.flatnonzero(far)


def _far(values: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    return (values < -MOST_MILLISECONDS) | (values > MOST_MILLISECONDS)


class FarTimes:
    """The records of one place with times that Spark cannot hold.

    Args:
        place: the topic and the partition, or what else is known, for texts.
        instead: how to read on without an error; None to count them.

    Attributes:
        count (int): how many there were so far.
    """

    def __init__(self, place: str, instead: str | None) -> None:
        self._place, self._instead = place, instead
        self.count = 0
        self._first = self._last = 0

    def check(self, offsets: npt.NDArray[np.int64], timestamps: pa.Array) -> None:
        """Look at more records.

        Raises:
            LimitExceeded: the first time that is too far, unless they are counted.
        """
        rows = beyond_spark(timestamps)
        if not len(rows):
            return
        if not self.count:
            self._first = int(offsets[rows[0]])
            self._text = far_text(f"{self._place}: offset {self._first}: the timestamp", timestamps, rows[0])
        self._last = int(offsets[rows[-1]])
        self.count += len(rows)
        if self._instead is not None:
            raise LimitExceeded(f"{self._text}; {self._instead}")

    def error(self) -> LimitExceeded:
        """The first of the counted records, and their number."""
        others = f", as are those of {self.count - 1} more records up to offset {self._last}" if self.count > 1 else ""
        return LimitExceeded(f"{self._text}: it is null{others}")


def far_text(what: str, timestamps: pa.Array, row: int) -> str:
    """That a timestamp in a column cannot be held; `what` says which one it is."""
    value = int(values_of(timestamps, np.dtype("<i8"))[row])
    return f"{what} {value} ms is beyond the times that Spark's 64 bits of microseconds can hold"


def values_of(column: pa.Array, kind: np.dtype[np.generic]) -> npt.NDArray[np.int64]:
    """The values as they are in memory, also those of nulls.

    For the few rows of a batch, numpy takes a fifth of the time of Arrow's functions.
    """
    return np.frombuffer(column.buffers()[1], kind, len(column), column.offset * kind.itemsize)


def bounds(numbers: pa.Array) -> tuple[int, int] | None:
    """The least and the largest of 64-bit integers or times; None if there is none."""
    if not numbers.null_count and len(numbers):
        values = values_of(numbers, np.dtype("<i8"))
        return int(values.min()), int(values.max())
    import pyarrow.compute as pc  # slow to import, and few columns have nulls

    least, most = pc.min_max(numbers.view(pa.int64())).as_py().values()
    return None if least is None else (least, most)


def with_values(column: pa.Array, kind: pa.DataType, values: npt.NDArray[np.generic]) -> pa.Array:
    """An array with other values and the nulls of `column`."""
    valid = None
    if column.null_count:
        valid = pa.py_buffer(np.packbits(column.is_valid().to_numpy(zero_copy_only=False), bitorder="little"))
    return pa.Array.from_buffers(kind, len(column), [valid, pa.py_buffer(values)], column.null_count)
