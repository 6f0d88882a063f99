"""Reading a decoder to its end: in chunks or into one table, with a problem for every fault."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING

from kafkacodec.errors import DecodeError, KafkaCodecError, LimitExceeded
from kafkacodec.records.columns import Problem, Problems, RecordColumns
from kafkacodec.records.plan import NO_BYTE_LIMIT, TABLE_ROWS, OnError

if TYPE_CHECKING:
    from kafkacodec.records._chunk_decoder import ChunkDecoder


def read_chunks(
    decoder: ChunkDecoder, on_error: OnError, max_rows: int, max_bytes: int, first: RecordColumns | None = None
) -> Iterator[RecordColumns]:
    """All chunks of a decoder, as `iter_columns` gives them, from one that it has just read, if `first` is that.

    The decoder is closed at the end.
    """
    reported = -1  # `consumed` of the last chunk
    chunk = first
    with closing(decoder):
        while True:
            if chunk is None:
                chunk = decoder.read(RecordColumns, max_rows, max_bytes)
            going_on, errors = end_chunk(decoder, on_error, chunk)
            last = decoder.done or not going_on
            if len(chunk) or chunk.problems or (last and not errors and chunk.consumed != reported):
                reported = chunk.consumed
                yield chunk
            if errors:
                raise errors.pop()  # frames must not keep it: its traceback refers to them
            if last:
                return
            chunk = None


def end_chunk(decoder: ChunkDecoder, on_error: OnError, chunk: RecordColumns) -> tuple[bool, list[Exception]]:
    """Handles the fault after a chunk, if there is one, and sets the chunk's `consumed`.

    Returns whether decoding continues, and a list of the error to raise after the chunk, if any.
    """
    going_on = True
    errors = []
    if decoder.fault is not None:
        try:
            going_on = handle_fault(decoder, on_error, chunk.problems)
        except Exception as error:
            going_on = False
            errors.append(error)
    chunk.consumed = decoder.position
    return going_on, errors


def handle_fault(decoder: ChunkDecoder, on_error: OnError, problems: Problems, place: str | None = None) -> bool:
    """Handles the fault of a decoder, or a table that is full, according to `on_error`.

    Raises the fault, or adds the skipped range to `problems`. `place`, if any, is added to the path of the fault.
    Returns whether decoding continues.
    """
    full = decoder.fault is None
    fault = decoder.take_fault() or LimitExceeded(
        f"a table cannot hold {TABLE_ROWS} rows or more; use iter_columns", position=decoder.position
    )
    if place is not None and isinstance(fault, DecodeError):
        fault.within(place)
    if on_error == "raise" or decoder.exhausted or not isinstance(fault, KafkaCodecError):
        try:
            raise fault
        finally:
            del fault  # avoids a cycle with the exception's traceback
    going_on = on_error == "skip" and not full
    position, base_offset = decoder.position, decoder.base_offset
    size = decoder.skip() if going_on else decoder.size - position
    problems.note(Problem(position, base_offset, size, fault))
    return going_on


def read_whole(decoder: ChunkDecoder, on_error: OnError) -> RecordColumns:
    """All records of a decoder, as `decode` returns them."""
    return ended(decoder, on_error, decoder.read(RecordColumns, TABLE_ROWS, NO_BYTE_LIMIT, whole=True))


def ended(decoder: ChunkDecoder, on_error: OnError, whole: RecordColumns) -> RecordColumns:
    """A table that a decoder has begun to read, with all of its records."""
    if not decoder.done:
        _finish(decoder, on_error, whole)
    whole.consumed = decoder.position
    return whole


def read_further(decoder: ChunkDecoder, on_error: OnError, whole: RecordColumns) -> None:
    """Adds all records of a decoder to those of others; `consumed` becomes the sum."""
    decoder.read_on(whole, TABLE_ROWS, NO_BYTE_LIMIT)
    _finish(decoder, on_error, whole)
    whole.consumed += decoder.position


def _finish(decoder: ChunkDecoder, on_error: OnError, whole: RecordColumns) -> None:
    """Continues after faults to the end, or until `on_error` says to stop."""
    while not decoder.done:
        if not handle_fault(decoder, on_error, whole.problems):
            return
        decoder.read_on(whole, TABLE_ROWS, NO_BYTE_LIMIT)
