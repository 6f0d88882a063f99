"""Batch headers of a mapped segment, piece by piece, so that memory stays bounded however many batches there are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kafkacodec.errors import CorruptRecord, DecodeError
from kafkacodec.log._resync import Resync
from kafkacodec.log.files import MappedFile
from kafkacodec.records.columns import BatchHeaders
from kafkacodec.records.decode import scan

MAX_BATCHES = 65536
"""Rows of a piece: about 8 MiB of columns."""

FEW_BATCHES = 64
"""Rows of a piece where only the next few batches are looked at."""


def walk(
    file: MappedFile,
    start: int = 0,
    end: int | None = None,
    *,
    verify_crc: bool = False,
    max_batches: int = MAX_BATCHES,
) -> Iterator[BatchHeaders]:
    """The headers of the whole batches in file[start, end), without an error for what ends them.

    Yields:
        BatchHeaders: at least one, with positions from the start of the file. The last one's `consumed` is where
            the whole batches end, its `problems` say what follows them where that is neither the end nor a partial
            batch.
    """
    position = start
    while True:
        headers = scan(
            file.data,
            verify_crc=verify_crc,
            on_error="stop",
            start_position=position,
            end_position=end,
            max_batches=max_batches,
        )
        file.check_size()
        yield headers
        if len(headers) < max_batches:
            return
        position = headers.consumed
        file.drop_before(position)


def first_batches(file: MappedFile, position: int, count: int = 1, *, verify_crc: bool = False) -> BatchHeaders:
    """The headers of at most `count` batches from a position on; none where no whole batch lies there."""
    return next(walk(file, position, verify_crc=verify_crc, max_batches=count))


class Damage(NamedTuple):
    """Bytes of a segment that are no batches.

    Attributes:
        start, end (int): the positions that they lie between.
        error (DecodeError): why nothing could be read at the start.
    """

    start: int
    end: int
    error: DecodeError


def walk_over_damage(file: MappedFile, start: int = 0, end: int | None = None) -> Iterator[BatchHeaders | Damage]:
    """As `walk`, but goes on with the next intact batch where no batch can be, and tells what lay between."""
    search: Resync | None = None
    position, size = start, file.size if end is None else min(end, file.size)
    while True:
        headers = None
        for headers in walk(file, position, size):
            yield headers
        fault = headers.consumed if headers is not None else size
        if headers is None or fault >= size:
            return
        search = search or Resync(file.data, size)
        position = search.behind(fault)
        file.check_size()
        if headers.problems:
            error = headers.problems[0].exception
            assert isinstance(error, DecodeError)
            yield Damage(fault, position, error.within(file.path))
        elif position < size:
            text = "a batch's length exceeds the file, yet valid batches follow"
            yield Damage(fault, position, CorruptRecord(text, position=fault, path=file.path))
        if position >= size:
            return
