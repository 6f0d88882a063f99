"""Decoding in several threads, in chunks or into one table."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from typing import TYPE_CHECKING

from kafkacodec.arrow._columns import append, fits
from kafkacodec.errors import LimitExceeded
from kafkacodec.records.columns import Problems, RecordColumns
from kafkacodec.records.compression import DEFAULT_MAX_DECOMPRESSED_BYTES
from kafkacodec.records.parallel import runs
from kafkacodec.records.parallel.runs import Reader, Source
from kafkacodec.records.plan import (
    DEFAULT_MAX_BYTES,
    DEFAULT_MAX_ROWS,
    TABLE_ROWS,
    Plan,
)
from kafkacodec.records.reading import read_chunks

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from kafkacodec.arrow._columns import Budget
    from kafkacodec.records._decoder import Decoder

__all__ = ["Source", "read_chunks_in_threads", "read_whole_in_threads"]


def read_chunks_in_threads(
    source: Source, first: Decoder, max_rows: int, max_bytes: int, threads: int
) -> Generator[RecordColumns]:
    """As `read_chunks` of the first decoder, but in several threads. The end of a run also ends a chunk.

    Args:
        source: the data.
        first: a new decoder of the data.
        max_rows, max_bytes: of a chunk.
        threads: number of threads, including the caller's.
    """
    on_error = source.plan.on_error
    if first.size - first.position <= 2 * runs.FIRST_RUN:
        source.data.release()
        yield from read_chunks(first, on_error, max_rows, max_bytes)
        return
    reported = -1  # `consumed` of the last chunk
    with closing(Reader(source, first, max_rows, max_bytes, threads)) as reader:
        for part in reader.parts():
            while part.chunks:
                chunk = part.chunks.popleft()
                if len(chunk) or chunk.problems:
                    reported = chunk.consumed
                    yield chunk
            if part.errors:
                raise part.errors.pop()  # frames must not keep it: its traceback refers to them
        if part.going_on and chunk.consumed != reported:
            yield chunk


def read_whole_in_threads(plan: Plan, data: Buffer, budget: Budget, threads: int) -> RecordColumns | None:
    """As `read_whole` of a decoder of all data with the budget. None if one thread must read it.

    That is the case for small data, and if the table comes close to a limit: the result then depends on the batch that
    reaches it, and on how the table has grown.
    """
    with plan.decoder(data, budget=budget) as decoder:
        if decoder.size <= 2 * runs.FIRST_RUN:
            return None
        whole = decoder.empty_table(RecordColumns)
        decoder.expect(whole, decoder.size)
    whole.problems = Problems()
    source = Source(plan, memoryview(data), 0, None)
    chunks = read_chunks_in_threads(source, source.decoder(0), DEFAULT_MAX_ROWS, DEFAULT_MAX_BYTES, threads)
    try:
        with closing(chunks):
            for chunk in chunks:
                if len(whole) + len(chunk) >= TABLE_ROWS or not fits(whole, chunk, DEFAULT_MAX_DECOMPRESSED_BYTES):
                    return None
                try:
                    append(whole, chunk)
                except LimitExceeded:
                    return None
                whole.problems.include(chunk.problems)
                whole.consumed = chunk.consumed
    except MemoryError:  # one thread needs less
        return None
    return whole
