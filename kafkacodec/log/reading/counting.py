"""Counting records from batch headers, where these are exact."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from kafkacodec.datatypes import replace
from kafkacodec.errors import DecodeError
from kafkacodec.log.opening import fault_of, open_file
from kafkacodec.log.order.placement import Bounds, in_order
from kafkacodec.log.reading.ends import misplaced_ends
from kafkacodec.log.segments.walk import goes_on_after, walk

if TYPE_CHECKING:
    from kafkacodec.log.reading.options import ReadOptions
    from kafkacodec.log.reading.ranges import SegmentRange
    from kafkacodec.records.columns import BatchHeaders

_COLUMNS = ("base_offset", "last_offset", "magic", "count", "is_control")


def count_by_headers(pieces: Iterable[SegmentRange], options: ReadOptions) -> int | None:
    """The number of records in `pieces`; None if only reading them shows it.

    Headers are enough for intact batches of magic 2. A piece in which an offset limit cuts a batch is decoded.
    """
    total = 0
    for piece in pieces:
        try:
            found = _count(piece, options)
        except DecodeError:  # an upload that is damaged
            return None
        except OSError as error:
            if fault_of(piece.path, error) is None:
                raise
            return None
        if found is None:
            return None
        total += found
    return total


def _count(piece: SegmentRange, options: ReadOptions) -> int | None:
    """Likewise, for one piece."""
    if not piece.kind.has_batches or piece.aborted or piece.misplaced:
        return None
    if options.get("gaps", "error") == "error" and misplaced_ends(replace(piece, start_position=piece.end_position)):
        return None
    total, before = 0, -1
    with open_file(piece.path) as file:
        if piece.identity is not None and file.identity != piece.identity:
            return None
        order = piece.order(file)
        bounds = None if order is None else Bounds(order.least, order.most + 1)
        verify = options.get("verify_crc", True)
        columns = (*_COLUMNS, "crc_ok") if verify else _COLUMNS
        span = piece.start_position, piece.end_position
        threads = options.get("threads", 1)
        for headers in walk(file, *span, verify_crc=verify, columns=columns, threads=threads):
            if headers.problems or not _is_plain(headers):
                return None
            if bounds is not None and not in_order(headers["base_offset"], headers["last_offset"], bounds, before):
                return None
            before = int(headers["last_offset"][-1]) if len(headers) else before
            within = _within(piece, headers)
            if within is None:
                return _decoded(piece, options)
            if not options.get("include_control"):
                within &= ~headers["is_control"]
            total += int(headers["count"][within].sum(dtype=np.int64))
        end = piece.end_position
        if headers.consumed < end < file.size or goes_on_after(file, headers.consumed, end):
            return None
    return total


def _is_plain(headers: BatchHeaders) -> bool:
    """Whether all batches are of magic 2, with a right checksum and a plausible count."""
    offsets = headers["last_offset"] - headers["base_offset"] + 1
    plausible = (headers["count"] >= 0) & (headers["count"] <= offsets)
    right = headers["crc_ok"].all() if "crc_ok" in headers.column_names else True
    return bool(right and (headers["magic"] >= 2).all() and plausible.all())


def _within(piece: SegmentRange, headers: BatchHeaders) -> np.ndarray[tuple[int], np.dtype[np.bool_]] | None:
    """Which batches are between the offset limits; None if a limit is inside one."""
    base, last = headers["base_offset"], headers["last_offset"]
    within = np.ones(len(headers), np.bool_)
    if piece.start_offset is not None:
        if ((base < piece.start_offset) & (piece.start_offset <= last)).any():
            return None
        within &= base >= piece.start_offset
    if piece.end_offset is not None:
        if ((base < piece.end_offset) & (piece.end_offset <= last)).any():
            return None
        within &= last < piece.end_offset
    return within


def _decoded(piece: SegmentRange, options: ReadOptions) -> int:
    """The number of records, by decoding them."""
    known = {name: value for name, value in options.items() if name not in _OF_THE_SPAN}
    plain: dict[str, Any] = {**known, "columns": ("offset",), "batch_columns": False, "layout": "copy"}
    return sum(len(chunk) for chunk in piece.read(**plain))


_OF_THE_SPAN = ("start_offset", "end_offset", "start_timestamp", "end_timestamp", "isolation_level")
"""Options that the limits of a piece stand for."""
