"""Batch headers of a mapped segment, piece by piece, so that memory is bounded for any number of batches."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from kafkacodec.datatypes import NamedTuple
from kafkacodec.errors import CorruptRecord, DecodeError, _OutOfOrder
from kafkacodec.log.formats import layout
from kafkacodec.log.opening import StoredFile
from kafkacodec.log.segments._resync import Resync
from kafkacodec.records.columns import BatchHeaders
from kafkacodec.records.headers import scan
from kafkacodec.records.plan import Order

MAX_BATCHES = 65536
"""Rows of a piece: about 8 MiB of columns."""

LARGEST_WINDOW = 4 << 20
"""The largest window in bytes if the caller named none and the file has windows."""

LARGEST_REQUEST = 16 << 20
"""The largest request in bytes for what follows a window."""

AHEAD_BYTES = 4 * LARGEST_REQUEST
"""How many bytes after a window are fetched while it is decoded, once several windows were."""

FEW_BATCHES = 64
"""Rows of a piece if only the next few batches are needed."""

NO_SEGMENT = "not a log segment: the first 8 bytes are not an offset"
_LARGEST_PLAUSIBLE_OFFSET = 1 << 56
_SIZE_AT, _MAGIC_AT = 8, 16
_LEAST_SIZE, _LARGEST_MAGIC = 14, 2

_BESIDE = {
    layout.OFFSET_INDEX_SUFFIX: "the offset index",
    layout.TIME_INDEX_SUFFIX: "the time index",
    layout.TRANSACTION_INDEX_SUFFIX: "the transaction index",
    layout.PRODUCER_SNAPSHOT_SUFFIX: "the producer snapshot",
}


def begins_like_a_batch(file: StoredFile) -> bool:
    """Whether the first bytes are or may become an offset, with which every batch begins; so may an empty file."""
    return int.from_bytes(file.read(0, 8), "big") << 8 * max(0, 8 - file.size) < _LARGEST_PLAUSIBLE_OFFSET


def _begins_like_a_size(file: StoredFile) -> bool:
    """Whether the bytes after the offset are the size and the magic byte of a batch in this file."""
    start = file.read(_SIZE_AT, _MAGIC_AT + 1 - _SIZE_AT)
    size = int.from_bytes(start[:4], "big")
    return _LEAST_SIZE <= size <= file.size - _SIZE_AT - 4 and start[-1] <= _LARGEST_MAGIC


def refuse_other(file: StoredFile) -> None:
    """Raise CorruptRecord if a file with another name than a segment's is clearly something else.

    It is if no offset is where each batch has it, and no size with a magic byte: damage to one of them is left to
    those who read damaged segments. Or if it has the name of a file that belongs to a segment.
    """
    name = layout.parse_file_name(os.path.basename(file.path))
    if name is not None and name.suffix in _BESIDE:
        raise CorruptRecord(f"not a log segment, but {_BESIDE[name.suffix]} of one", path=file.path)
    if name is None and not begins_like_a_batch(file) and not _begins_like_a_size(file):
        raise CorruptRecord(NO_SEGMENT, position=0, path=file.path)


def walk(
    file: StoredFile,
    start: int = 0,
    end: int | None = None,
    *,
    verify_crc: bool = False,
    max_batches: int = MAX_BATCHES,
    columns: Sequence[str] | None = None,
    window: int | None = None,
    threads: int | None = 1,
    growing: bool = False,
) -> Iterator[BatchHeaders]:
    """The headers of the complete batches in file[start, end); damage after them is not raised.

    With few `columns` it takes half the time. A piece has `window` bytes at most, or one larger batch: so many bytes of
    the mapped file are in memory. `growing` pieces begin with few batches, for those that may stop early.

    Yields:
        BatchHeaders: at least one, with positions from the start of the file. The last one's `consumed` is the end of
            the complete batches; its `problems` has the fault after them, unless the end or a partial batch follows.
    """
    position, size, reach = start, file.size if end is None else min(end, file.size), window or file.window
    most = FEW_BATCHES if growing else max_batches
    while True:
        stop = size if reach is None else min(position + reach, size)
        headers = scan(
            file.view(position, stop),
            columns=columns,
            verify_crc=verify_crc,
            on_error="stop",
            start_position=position,
            end_position=stop,
            max_batches=most,
            threads=threads,
        )
        file.check_size()
        at_window = reach is not None and stop < size and not headers.problems and len(headers) < most
        if at_window and not len(headers):  # a batch that is larger than the window, or damage that looks like one
            reach = 2 * (stop - position)
            continue
        yield headers
        if len(headers) < most and not at_window:
            return
        position, most = headers.consumed, min(4 * most, max_batches)
        reach = window or (reach and min(2 * reach, LARGEST_WINDOW))
        file.drop_before(position)


def first_batches(file: StoredFile, position: int, count: int = 1, *, verify_crc: bool = False) -> BatchHeaders:
    """The headers of at most `count` batches from a position on; empty if no complete batch is there."""
    return next(walk(file, position, verify_crc=verify_crc, max_batches=count))


class Damage(NamedTuple):
    """Bytes of a segment that are not batches.

    Attributes:
        start, end (int): their first position and the one after the last.
        error (DecodeError): the fault at the start.
    """

    start: int
    end: int
    error: DecodeError


def walk_over_damage(
    file: StoredFile,
    start: int = 0,
    end: int | None = None,
    *,
    verify_crc: bool = False,
    columns: Sequence[str] | None = None,
    window: int | None = None,
    threads: int | None = 1,
    growing: bool = False,
) -> Iterator[BatchHeaders | Damage]:
    """As `walk`, but continues with the next intact batch after damage, and yields the damage too."""
    search: Resync | None = None
    position, size = start, file.size if end is None else min(end, file.size)
    while True:
        headers = None
        for headers in walk(
            file,
            position,
            size,
            verify_crc=verify_crc,
            columns=columns,
            window=window,
            threads=threads,
            growing=growing,
        ):
            yield headers
        fault = headers.consumed if headers is not None else size
        if headers is None or fault >= size:
            return
        search = search or Resync(file.view(), size)
        position = search.after(fault)
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


def goes_on_after(file: StoredFile, position: int, end: int) -> bool:
    """Whether intact batches follow what is at a position, where complete batches end: not a torn or an unused end."""
    return position < end and Resync(file.view(), end).after(position) < end


def windows(file: StoredFile, start: int, end: int, order: Order | None = None) -> Iterator[tuple[int, int]]:
    """Stretches of whole batches that cover file[start, end), fetched or being fetched; one if there are no windows.

    From damage on there is one stretch: what follows it is for the decoder to find. With `order`, a stretch that does
    not follow the one before raises `_OutOfOrder`.
    """
    before = -1
    position, reach = start, LARGEST_WINDOW
    # Few large requests, several at a time, but little at first: the reader may stop early.
    asked, request, ahead = start, LARGEST_WINDOW, LARGEST_REQUEST
    while file.window is not None and position + reach < min(end, file.size):
        stop = position + reach
        while asked < min(stop + ahead, end):
            file.ahead(asked, min(asked + request, end))
            asked, request = asked + request, min(2 * request, LARGEST_REQUEST)
        ahead = min(2 * ahead, AHEAD_BYTES)
        headers = scan(
            file.view(position, stop),
            columns=("base_offset", "last_offset", "magic"),
            verify_crc=False,
            on_error="stop",
            start_position=position,
            end_position=stop,
        )
        if headers.problems:
            break
        if not len(headers):  # a batch that is larger than the window
            reach *= 2
            continue
        first = headers["base_offset" if int(headers["magic"][0]) >= 2 else "last_offset"]
        if order is not None and int(first[0]) <= before:
            raise _OutOfOrder("a batch's offsets are out of order", position=position)
        before = int(headers["last_offset"][-1])
        yield position, headers.consumed
        position, reach = headers.consumed, LARGEST_WINDOW
    if before >= 0 and order is not None and position < end:
        batch = first_batches(file, position)
        if len(batch) and int(batch["last_offset"][0]) <= before:
            raise _OutOfOrder("a batch's offsets are out of order", position=position)
    yield position, end
