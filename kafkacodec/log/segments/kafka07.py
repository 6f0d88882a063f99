"""Segments of Kafka 0.6 and 0.7 (``.kafka``), with the interface of newer ones. An offset is a position in the log."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from kafkacodec.dialects import kafka07
from kafkacodec.dialects.kafka07.message_set import placed_columns
from kafkacodec.errors import DecodeError
from kafkacodec.log.formats import layout
from kafkacodec.log.opening import StoredFile
from kafkacodec.records.columns import Problem, Problems, RecordColumns
from kafkacodec.records.plan import (
    DEFAULT_MAX_BYTES,
    NOWHERE,
    RECORD_COLUMNS,
    DecodeOptions,
    Layout,
    Place,
    check_layout,
)

if TYPE_CHECKING:
    from kafkacodec.log.segments.extent import Extent

# Options that apply to this format; the others are ignored.
_SHARED = ("batch_columns", "verify_crc", "on_error", "max_decompressed_bytes")


_LARGEST_FIRST = 64 << 20  # bytes of a message by which a file is recognized


def begins_with_message(file: StoredFile) -> bool:
    """Whether a file begins with a message of Kafka 0.6 or 0.7 whose checksum is right."""
    start = file.read(0, 10)
    size = int.from_bytes(start[:4], "big", signed=True)
    before = {0: 9, 1: 10}.get(start[4]) if len(start) == 10 else None  # magic 1 has attributes
    if before is None or not before - 4 <= size <= _LARGEST_FIRST:
        return False
    payload = file.read(before, size + 4 - before)
    crc = int.from_bytes(start[before - 4 : before], "big")
    return len(payload) == size + 4 - before and zlib.crc32(payload) == crc


def read(
    file: StoredFile,
    piece: Extent,
    max_rows: int,
    max_bytes: int | None,
    _owned: bool,
    _threads: int,
    options: DecodeOptions,
    _order: object,
) -> Iterator[RecordColumns]:
    """The messages of a range, as `kafkacodec.iter_columns` returns records.

    A start offset must be that of a message, as in a fetch request of these versions.
    """
    base_offset, start, end = _bytes_between(file, piece, options)
    chunks = placed_columns(
        memoryview(file.view())[start:end],
        Place(piece.topic, piece.partition),
        max_rows=max_rows,
        max_bytes=DEFAULT_MAX_BYTES if max_bytes is None else max_bytes,
        **_shared(options, base_offset + start),
    )
    try:
        for chunk in chunks:
            chunk.consumed += start
            for problem in chunk.problems:
                _move(problem.exception, start)
            chunk.problems = Problems(Problem(p.position + start, *p[1:]) for p in chunk.problems)
            yield chunk
    except DecodeError as error:
        _move(error, start)
        raise


def _bytes_between(file: StoredFile, piece: Extent, options: DecodeOptions) -> tuple[int, int, int]:
    """The base offset, and the start and end of the messages with the offsets of a range."""
    name = layout.parse_file_name(os.path.basename(piece.path))
    base_offset = 0 if name is None else name.base_offset
    first, end_offset = options.get("start_offset"), options.get("end_offset")
    start = piece.start_position if first is None else max(piece.start_position, first - base_offset)
    if end_offset is None:
        return base_offset, start, max(start, piece.end_position)
    end = max(start, min(piece.end_position, end_offset - base_offset))
    return base_offset, start, _complete(file, start, end)


def _complete(file: StoredFile, start: int, end: int) -> int:
    """The end of the message that contains the byte before `end`; `end` if damage comes first."""
    data = memoryview(file.view())[start:]
    for chunk in kafka07.iter_columns(
        data, initial_offset=start, columns=("next_offset",), deep=False, verify_crc=False, on_error="stop"
    ):
        if chunk.consumed >= end - start:
            ends = chunk["next_offset"]
            return int(ends[np.searchsorted(ends, end)]) if end > start else end
    return end


def _move(error: Exception, start: int) -> None:
    """Count the position of an error from the start of the file."""
    if isinstance(error, DecodeError) and error.position is not None:
        error.position += start


def layout_of(_file: StoredFile, _piece: Extent, wanted: Layout) -> Layout:
    """The layout of `read`: ``"copy"``. Raises ValueError for views and unknown layouts."""
    check_layout(wanted)
    if wanted == "view":
        raise ValueError('segments of Kafka 0.6 and 0.7 have no layout "view"; use "copy" or "auto"')
    return "copy"


def nothing(options: DecodeOptions) -> RecordColumns:
    """No rows, with the columns of `read`."""
    return next(placed_columns(b"", NOWHERE, max_rows=1, max_bytes=1, **_shared(options, 0)))


def _shared(options: DecodeOptions, initial_offset: int) -> kafka07.DecodeOptions:
    chosen: Any = {name: options[name] for name in _SHARED if name in options}  # type: ignore[literal-required]
    columns = options.get("columns")
    chosen |= {"columns": RECORD_COLUMNS if columns is None else columns, "initial_offset": initial_offset}
    shared: kafka07.DecodeOptions = chosen
    return shared


def end_of(file: StoredFile, base_offset: int) -> tuple[int, int | None]:
    """The end of the complete messages, in bytes, and the offset of the last one."""
    position, last = 0, None
    for chunk in kafka07.iter_columns(
        file.view(), initial_offset=base_offset, columns=("offset",), deep=False, verify_crc=False, on_error="stop"
    ):
        position = chunk.consumed
        last = int(chunk["offset"][-1]) if len(chunk) else last
    return position, last
