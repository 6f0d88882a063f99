"""Which rows of two tables of records differ, column by column, without an object per row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from kafkacodec.datatypes import NamedTuple
from kafkacodec.records.columns import RecordColumns

__all__ = ["COMPARED", "differing"]

COMPARED = ("timestamp", "key", "value", "headers")
"""The columns that are compared."""

Rows = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool_]


class _Bytes(NamedTuple):
    """Values of a binary column, one after another in `data`, and which of them are not null."""

    sizes: npt.NDArray[np.int32]
    data: npt.NDArray[np.uint8]
    valid: Flags


def differing(a: RecordColumns, a_rows: Rows, b: RecordColumns, b_rows: Rows) -> dict[str, Flags]:
    """For each of the columns `COMPARED`, which of the pairs of rows differ.

    Args:
        a, b: tables with these columns, keys and values in the layout ``"copy"``.
        a_rows, b_rows: as many rows of each, in increasing order.
    """
    found = {"timestamp": a["timestamp"].view(np.int64)[a_rows] != b["timestamp"].view(np.int64)[b_rows]}
    for name in ("key", "value"):
        found[name] = _binary(a.buffers(name), a_rows, b.buffers(name), b_rows)
    found["headers"] = _headers(a.buffers("headers"), a_rows, b.buffers("headers"), b_rows)
    return found


Buffers = Mapping[str, Any]


def _binary(a: Buffers, a_rows: Rows, b: Buffers, b_rows: Rows) -> Flags:
    left, right = _taken(a, a_rows), _taken(b, b_rows)
    wrong: Flags = (left.sizes != right.sizes) | (left.valid != right.valid)
    if wrong.any():
        same = np.flatnonzero(~wrong)
        left, right = _taken(a, a_rows[same]), _taken(b, b_rows[same])
        wrong[same] = _of_same_sizes(left, right)
        return wrong
    return _of_same_sizes(left, right)


def _of_same_sizes(a: _Bytes, b: _Bytes) -> Flags:
    wrong = np.zeros(len(a.sizes), np.bool_)
    if not np.array_equal(a.data, b.data):
        ends = np.cumsum(a.sizes, dtype=np.int64)
        wrong[np.searchsorted(ends, np.flatnonzero(a.data != b.data), "right")] = True
    return wrong


def _taken(column: Buffers, rows: Rows) -> _Bytes:
    """The values of some rows, without a copy if they follow one another."""
    offsets: npt.NDArray[np.int32] = column["offsets"]
    valid = _valid(column["validity"], len(offsets) - 1)[rows]
    if not len(rows):
        return _Bytes(np.empty(0, np.int32), np.empty(0, np.uint8), valid)
    first, last = int(rows[0]), int(rows[-1])
    if last - first == len(rows) - 1:
        sizes = np.diff(offsets[first : last + 2])
        return _Bytes(sizes, column["data"][offsets[first] : offsets[last + 1]], valid)
    starts = offsets[rows].astype(np.int64)
    sizes = offsets[rows + 1] - offsets[rows]
    return _Bytes(sizes, column["data"][_spans(starts, sizes)], valid)


def _spans(starts: npt.NDArray[np.int64], sizes: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """The numbers in all spans from `starts` on, one after another."""
    ends = np.cumsum(sizes, dtype=np.int64)
    total = int(ends[-1]) if len(ends) else 0
    found: npt.NDArray[np.int64] = np.arange(total, dtype=np.int64) + np.repeat(starts - (ends - sizes), sizes)
    return found


def _valid(validity: npt.NDArray[np.uint8] | None, count: int) -> Flags:
    if validity is None:
        return np.ones(count, np.bool_)
    return np.unpackbits(validity, count=count, bitorder="little").view(np.bool_)


def _headers(a: Buffers, a_rows: Rows, b: Buffers, b_rows: Rows) -> Flags:
    a_sizes, b_sizes = np.diff(a["offsets"])[a_rows], np.diff(b["offsets"])[b_rows]
    wrong: Flags = a_sizes != b_sizes
    same = np.flatnonzero(~wrong & (a_sizes > 0))
    if not len(same):
        return wrong
    counts = a_sizes[same]
    a_items = _spans(a["offsets"][a_rows[same]].astype(np.int64), counts)
    b_items = _spans(b["offsets"][b_rows[same]].astype(np.int64), counts)
    items = np.zeros(len(a_items), np.bool_)
    for name in ("key", "value"):
        items |= _binary(a["items"][name], a_items, b["items"][name], b_items)
    wrong[same[np.repeat(np.arange(len(same)), counts)[items]]] = True
    return wrong
