"""The bytes of a column's values, as places in one buffer."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkacodec.values import _avro_check

__all__ = ["Joined", "Payloads", "payloads_of"]


class Joined(NamedTuple):
    """Values next to one another; value i ends at ``ends[i]``, where the next one starts."""

    data: npt.NDArray[np.uint8]
    ends: npt.NDArray[np.int64]

    def value(self, row: int) -> bytes:
        """The bytes of a value."""
        return self.data[self.start(row) : self.ends[row]].tobytes()

    def start(self, row: int) -> int:
        """Where a value starts."""
        return int(self.ends[row - 1]) if row else 0

    def column(self) -> pa.Array:
        """The values as a large_binary column."""
        offsets = np.zeros(len(self.ends) + 1, np.int64)
        offsets[1:] = self.ends
        return pa.Array.from_buffers(
            pa.large_binary(), len(self.ends), [None, pa.py_buffer(offsets), pa.py_buffer(self.data)]
        )


class Payloads(NamedTuple):
    """Where the value of each row is in the data."""

    data: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]

    def take(self, rows: npt.NDArray[np.int64]) -> Payloads:
        """The values of these rows."""
        return Payloads(self.data, self.starts[rows], self.sizes[rows])

    def without(self, count: npt.NDArray[np.int64] | int) -> Payloads:
        """The values without their first bytes."""
        return Payloads(self.data, self.starts + count, self.sizes - count)

    def head(self, rows: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.uint8]:
        """The first bytes of these rows, which have that many, as a matrix."""
        matrix: npt.NDArray[np.uint8] = self.data[self.starts[rows][:, None] + np.arange(count)]
        return matrix

    def value(self, row: int) -> bytes:
        """The bytes of a value."""
        start = int(self.starts[row])
        return self.data[start : start + int(self.sizes[row])].tobytes()

    def joined(self) -> Joined:
        """A copy of the values, next to one another."""
        ends = np.cumsum(self.sizes)
        data = np.empty(int(ends[-1]) if len(ends) else 0, np.uint8)
        _avro_check.join(self.data, np.ascontiguousarray(self.starts), np.ascontiguousarray(self.sizes), data)
        return Joined(data, ends)


def payloads_of(column: Any) -> tuple[Payloads, npt.NDArray[np.bool_]]:
    """The values of a column, and which of them are null.

    Args:
        column: binary or text, with the Arrow interface, in chunks or not; or a list of bytes and None.

    Raises:
        TypeError: it is neither.
    """
    array = _as_array(column)
    if not any(check(array.type) for check in _BYTES):
        raise TypeError(f"values: expected a column of bytes or text, not {array.type}")
    array = array.cast(pa.large_binary())
    offsets = np.frombuffer(array.buffers()[1], np.int64)[array.offset : array.offset + len(array) + 1]
    buffer = array.buffers()[2]
    data = np.frombuffer(buffer, np.uint8) if buffer is not None and buffer.size else np.empty(0, np.uint8)
    nulls = array.is_null().to_numpy(zero_copy_only=False)
    if not len(array):
        return Payloads(data, np.empty(0, np.int64), np.empty(0, np.int64)), nulls
    return Payloads(data, offsets[:-1].copy(), np.diff(offsets)), nulls


_BYTES = (
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_binary_view,
    pa.types.is_fixed_size_binary,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
    pa.types.is_null,
)


def _as_array(column: Any) -> pa.Array:
    if isinstance(column, (list, tuple)):
        return pa.array(column, pa.large_binary())
    if hasattr(column, "__arrow_c_stream__"):
        column = pa.chunked_array(column)
    elif hasattr(column, "__arrow_c_array__"):
        column = pa.array(column)
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
        column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if not isinstance(column, pa.Array):
        raise TypeError(f"values: expected an Arrow column or a list of bytes, not {type(column).__name__}")
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column
