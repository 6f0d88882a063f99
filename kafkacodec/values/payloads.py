"""The bytes of a column's values, as places in one buffer."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kafkacodec.datatypes import NamedTuple
from kafkacodec.values.avro import _check as _avro_check

__all__ = ["Joined", "Payloads", "arrow_column", "payloads_of"]


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

    def common_head(self, count: int) -> bytes | None:
        """The first bytes, if all values have that many and the same."""
        alike = _avro_check.begin_alike(self.data, self.starts, self.sizes, count)
        return self.value(0)[:count] if alike else None

    def joined(self) -> Joined:
        """A copy of the values, next to one another."""
        ends = np.cumsum(self.sizes)
        data = np.empty(int(ends[-1]) if len(ends) else 0, np.uint8)
        _avro_check.join(self.data, np.ascontiguousarray(self.starts), np.ascontiguousarray(self.sizes), data)
        return Joined(data, ends)


def payloads_of(column: Any) -> tuple[Payloads, npt.NDArray[np.bool_]]:
    """The values of a column, and which of them are null.

    Args:
        column: bytes or text, as `arrow_column` takes it.

    Raises:
        TypeError: it is neither.
    """
    array = arrow_column(column, _BINARY)
    if array.type != _BINARY and not any(check(array.type) for check in _BYTES):
        raise TypeError(f"values: expected a column of bytes or text, not {array.type}")
    if array.type != _BINARY:
        array = array.cast(_BINARY)
    _, ends, buffer = array.buffers()
    offsets = np.frombuffer(ends, np.int64)[array.offset : array.offset + len(array) + 1]
    data = np.frombuffer(buffer, np.uint8) if buffer is not None and buffer.size else np.empty(0, np.uint8)
    nulls = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else np.zeros(len(array), bool)
    if not len(array):
        return Payloads(data, np.empty(0, np.int64), np.empty(0, np.int64)), nulls
    return Payloads(data, offsets[:-1].copy(), np.diff(offsets)), nulls


_BINARY = pa.large_binary()
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


def arrow_column(column: Any, kind: pa.DataType, name: str = "values") -> pa.Array:
    """A column in one chunk, without dictionaries, runs and extension types.

    Args:
        column: anything with the Arrow interface, in chunks or not; a numpy array or pandas column; or a list or tuple.
        kind: the type of columns of Python objects, in which None, NaN and what a mask hides are null.
        name: what errors call the column.

    Raises:
        TypeError: it is none of these, or has objects of other types.
    """
    dtype = getattr(column, "dtype", None)
    if isinstance(dtype, np.dtype) and hasattr(column, "__array__"):
        column = _of_numpy(np.ma.asanyarray(column), kind, name)
    elif hasattr(column, "__arrow_c_stream__"):
        column = pa.chunked_array(column)
    elif hasattr(column, "__arrow_c_array__") or hasattr(column, "__arrow_array__"):
        column = pa.array(column)
    elif isinstance(column, (list, tuple)):
        column = pa.array(column, kind)
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
        column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if not isinstance(column, pa.Array):
        raise TypeError(f"{name}: expected an Arrow or numpy column or a list, not {type(column).__name__}")
    return _plain(column)


def _of_numpy(column: npt.NDArray[Any], kind: pa.DataType, name: str) -> pa.Array:
    if column.ndim != 1:
        raise TypeError(f"{name}: expected a numpy array of one dimension, not {column.ndim}")
    if column.dtype.kind == "S":
        raise TypeError(f"{name}: numpy cuts zero bytes off the end of values of type S; use an array of objects")
    if column.dtype.kind == "V":
        data = np.ascontiguousarray(column).view(np.uint8)
        return pa.Array.from_buffers(pa.binary(column.itemsize), len(column), [None, pa.py_buffer(data)])
    return pa.array(column.astype(object), kind, from_pandas=True)


def _plain(array: pa.Array) -> pa.Array:
    while True:
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        elif pa.types.is_dictionary(array.type):
            values = array.dictionary.cast(_without_views(array.type.value_type))
            array = pa.DictionaryArray.from_arrays(array.indices, values).dictionary_decode()
        elif pa.types.is_run_end_encoded(array.type):
            array = pc.run_end_decode(array)
        else:
            return array


def _without_views(kind: pa.DataType) -> pa.DataType:
    """The type in a layout that all functions of pyarrow know."""
    return {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}.get(kind, kind)
