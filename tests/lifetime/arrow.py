"""The same for Arrow data: exporters and consumers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

import kafkacodec as kc
from tests.arrow_capsules import Capsules, Stream
from tests.lifetime.entries import ROWS, SET, Entry, _rows, _spoiled
from tests.lifetime.exporters import Export

try:
    import polars as pl
except ImportError:  # not available for every version of Python
    pl = None


def _array(values: list[Any]) -> Any:
    return pa.array(values, pa.binary())


def _sliced(values: list[Any]) -> Any:
    return pa.array([b"before", None, *values, b"after"], pa.binary())[2:-1]


def _chunked(values: list[Any]) -> Any:
    return pa.chunked_array([_sliced(values[:1]), _array([]), _sliced(values[1:])])


def _over_buffers(values: list[Any]) -> Any:
    """An array over memory owned by Python."""
    offsets = [0]
    for value in values:
        offsets.append(offsets[-1] + len(value))
    ends = b"".join(end.to_bytes(4, "little") for end in offsets)
    buffers = [None, pa.py_buffer(bytearray(ends)), pa.py_buffer(bytearray(b"".join(values)))]
    return pa.Array.from_buffers(pa.binary(), len(values), buffers)


def _exporter(make: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Export]:
    return lambda values: Export(make(values), lambda: None)


ARROW_EXPORTERS: dict[str, Callable[[list[Any]], Export]] = {
    "pyarrow array": _exporter(_array),
    "pyarrow slice": _exporter(_sliced),
    "pyarrow chunks": _exporter(_chunked),
    "pyarrow large": _exporter(lambda values: _array(values).cast(pa.large_binary())),
    "pyarrow view": _exporter(lambda values: _array(values).cast(pa.binary_view())),
    "pyarrow over bytearrays": _exporter(_over_buffers),
    "capsules of an array": _exporter(lambda values: Capsules(_sliced(values))),
    "capsule of a stream": _exporter(lambda values: Stream(_chunked(values))),
}
if pl is not None:
    ARROW_EXPORTERS["polars"] = _exporter(lambda values: pl.Series(values, dtype=pl.Binary))


def _table(column: Any) -> Any:
    """A table with the column as its values; pyarrow converts capsules to one."""
    if isinstance(column, (Capsules, Stream)):
        column = pa.chunked_array(column) if isinstance(column, Stream) else pa.array(column)
    if pl is not None and isinstance(column, pl.Series):
        return pl.DataFrame({"value": column})
    return pa.table({"value": column})


def _numbered(column: Any) -> Any:
    """The same with a row for each value."""
    table = _table(column)
    return pa.table({"row": _NUMBERS[: len(table)], "value": pa.table(table)["value"]})


def _reread(data: Any) -> Any:
    """The decoded data as objects of other libraries; no objects of kafkacodec remain."""
    table = kc.decode_batches(data)
    return [pa.record_batch(table), table["offset"], table.buffers("value")["data"], table.__arrow_c_stream__()]


def _payloads(data: Any) -> Any:
    return pa.array(kc.split_confluent(data).payloads)


GOOD = [SET, SET]
BAD = [SET, _spoiled(SET)]
_NUMBERS = pa.array(range(len(ROWS)), pa.int64())
FRAMED = [b"\0\0\0\0\7" + row[4] for row in ROWS]

ARROW_ENTRIES: dict[str, Entry] = {
    "decode_batches": Entry(GOOD, BAD, kc.decode_batches, _rows),
    "decode_batches, views": Entry(GOOD, BAD, lambda data: kc.decode_batches(data, layout="view"), _rows),
    "decoded, in other hands": Entry(
        GOOD, BAD, _reread, lambda held: [held[0].to_pydict(), held[1].tolist(), bytes(held[2])]
    ),
    "encode Arrow": Entry(FRAMED, None, lambda data: kc.encode(_table(data))),
    "iter_encoded Arrow": Entry(FRAMED, None, lambda data: list(kc.iter_encoded(_table(data), codec="lz4"))),
    "encode_rows Arrow": Entry(
        FRAMED, None, lambda data: kc.encode_rows(_numbered(data)), lambda column: pa.array(column).to_pylist()
    ),
    "partition Arrow": Entry(FRAMED, None, lambda data: kc.partition(data, 7).tolist()),
    "split_confluent Arrow": Entry(FRAMED, None, kc.split_confluent, lambda columns: pa.array(columns[1]).to_pylist()),
    "payloads, in other hands": Entry(FRAMED, None, _payloads, lambda array: array.to_pylist()),
}  # type: ignore[arg-type]
