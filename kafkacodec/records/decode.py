"""Decoding record sets: from bytes to columns and to records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict, Unpack, get_args

from kafkacodec.arrow._columns import Budget
from kafkacodec.errors import DecodeError, KafkaCodecError, LimitExceeded
from kafkacodec.records import _decoder, _record_rows
from kafkacodec.records.arguments import column_names, int64, limit, num_threads, one_of, refuse_unknown
from kafkacodec.records.columns import Problem, Problems, RecordColumns
from kafkacodec.records.record import Record
from kafkacodec.records.signatures import shows_options

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from kafkacodec.records._chunk_decoder import ChunkDecoder

__all__ = [
    "BATCH_COLUMNS",
    "DEFAULT_MAX_BYTES",
    "DEFAULT_MAX_DECOMPRESSED_BYTES",
    "DEFAULT_MAX_ROWS",
    "DEFAULT_MAX_TOTAL_BYTES",
    "RECORD_COLUMNS",
    "DecodeOptions",
    "Layout",
    "decode",
    "iter_columns",
    "iter_records",
]

_ALL = _decoder.record_columns()
_BIT = {name: 1 << i for i, name in enumerate(_ALL)}

PLACE_COLUMNS = ("topic", "partition")
"""The first columns where the topic and partition of the bytes are known."""


class Place(NamedTuple):
    """The topic and partition that bytes belong to; None where they are not known."""

    topic: str | None = None
    partition: int | None = None


NOWHERE = Place()

_FROM_BYTES = [name for name in _ALL if name not in (*PLACE_COLUMNS, "row")]

RECORD_COLUMNS: tuple[str, ...] = tuple(_FROM_BYTES[:6])
"""The columns that `decode` builds by default, in order."""

BATCH_COLUMNS: tuple[str, ...] = tuple(_FROM_BYTES[6:])
"""The columns that ``batch_columns=True`` adds, in order."""

DEFAULT_MAX_ROWS = 8192
"""Rows in a chunk of `iter_columns`: enough to amortize the cost of a chunk, few enough to stay in cache."""

DEFAULT_MAX_BYTES = 512 << 10
"""A chunk of `iter_columns` ends with the record that reaches this many bytes of keys, values and headers."""

DEFAULT_MAX_VIEW_BYTES = 4 << 20
"""The same for views, of which only 16 bytes a row have to stay in cache."""

DEFAULT_MAX_DECOMPRESSED_BYTES = 128 << 20
"""Limit on the decompressed records of one batch, in bytes (128 MiB)."""

_AUTO_VALUE_BYTES = 64
"""The average size of a value, in bytes, at which views become faster than copies (see benchmarks/README.md)."""

_AUTO_ROWS = 64
"""The number of values that the average is taken of: the first ones."""

DEFAULT_MAX_TOTAL_BYTES = 2 << 30
"""Limit on the memory of the columns of one table, in bytes (2 GiB)."""

_FIRST, _LAST = -(1 << 63), (1 << 63) - 1
_NO_BYTE_LIMIT = (1 << 63) - 1

TABLE_ROWS = (1 << 31) - 2
"""A table with this many rows is full."""

OnError = Literal["raise", "stop", "skip"]
ON_ERROR = get_args(OnError)


Layout = Literal["copy", "view", "auto"]

LAYOUTS: tuple[str, ...] = get_args(Layout)


class RecordOptions(TypedDict, total=False):
    """The keyword options of `iter_records`."""

    verify_crc: bool
    include_control: bool
    start_offset: int | None
    end_offset: int | None
    on_error: OnError
    max_decompressed_bytes: int


class DecodeOptions(RecordOptions, total=False):
    """The keyword options that `decode` and `iter_columns` share."""

    columns: Iterable[str] | None
    batch_columns: bool
    layout: Layout


class TableOptions(DecodeOptions, total=False):
    """The keyword options of functions that return all records as one table."""

    max_total_bytes: int


class Plan(NamedTuple):
    """Checked options, as the core expects them."""

    wanted: int
    verify_crc: bool
    include_control: bool
    start_offset: int
    end_offset: int
    on_error: OnError
    limit: int
    layout: Layout
    order: tuple[int, int] | None = None
    """The smallest and largest offset, for data in which offsets increase; a batch with another offset is a fault."""

    def for_data(self, data: Buffer, start: int = 0, end: int | None = None) -> Plan:
        """This plan with a layout in place of ``"auto"``: the first values decide, regardless of the other options."""
        if self.layout != "auto":
            return self
        return self._replace(layout=self._measured(data, start, end))

    def _measured(self, data: Buffer, start: int, end: int | None) -> Layout:
        values = Plan(_BIT["value"], False, False, _FIRST, _LAST, "stop", self.limit, "view")
        with values.decoder(data, start, end) as decoder:
            chunk = decoder.read(RecordColumns, _AUTO_ROWS, _NO_BYTE_LIMIT)
        sizes = chunk.buffers("value")["views"]["size"]
        return "view" if sizes.sum(dtype="i8") >= _AUTO_VALUE_BYTES * max(1, len(chunk)) else "copy"

    def with_columns(self, *names: str) -> Plan:
        """This plan with additional columns that the caller fills, such as `row` of `decode_batches`."""
        return self._replace(wanted=self.wanted | sum(_BIT[name] for name in names))

    def decoder(
        self,
        data: Buffer,
        start: int = 0,
        end: int | None = None,
        aborted: Buffer = b"",
        *,
        budget: Budget | None = None,
        owned: bool = False,
    ) -> _decoder.Decoder:
        """A decoder of the data. With `owned`, views point into copies of it. The layout must not be ``"auto"``."""
        return _decoder.Decoder(
            data,
            wanted=self.wanted,
            verify_crc=self.verify_crc,
            include_control=self.include_control,
            start_offset=self.start_offset,
            end_offset=self.end_offset,
            limit=self.limit,
            search_partial=self.on_error == "skip",
            start=start,
            end=end,
            aborted=aborted,
            budget=budget,
            views=self.layout == "view",
            owned=owned,
            order=self.order,
        )


def plan_of(
    *,
    columns: Iterable[str] | None = None,
    batch_columns: bool = False,
    verify_crc: bool = True,
    include_control: bool = False,
    start_offset: int | None = None,
    end_offset: int | None = None,
    on_error: OnError = "raise",
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
    layout: Layout = "copy",
    place_columns: bool = False,
    **others: Any,
) -> Plan:
    """Checks options. With `place_columns`, `columns` may name `PLACE_COLUMNS` too."""
    refuse_unknown(others, ())
    names = column_names(columns, RECORD_COLUMNS, [*PLACE_COLUMNS, *_FROM_BYTES] if place_columns else _FROM_BYTES)
    if batch_columns:
        names += BATCH_COLUMNS
    one_of("on_error", on_error, ON_ERROR)
    check_layout(layout)
    wanted = 0
    for name in names:
        wanted |= _BIT[name]
    first = _FIRST if start_offset is None else int64(start_offset)
    last = _LAST if end_offset is None else int64(end_offset)
    most = limit("max_decompressed_bytes", max_decompressed_bytes)
    return Plan(wanted, verify_crc, include_control, first, last, on_error, most, layout)


def check_layout(layout: object) -> None:
    """Raises ValueError if there is no such layout."""
    if layout not in LAYOUTS:
        raise ValueError(f'unknown layout {layout!r}; use "copy", "view" or "auto"')


def layout_of(data: Buffer, layout: Layout, start: int = 0, end: int | None = None) -> Layout:
    """The layout, ``"auto"`` replaced by the one for the data. Raises ValueError if there is no such layout."""
    return plan_of(layout=layout).for_data(data, start, end).layout


def budget_of(max_total_bytes: int, remedy: str) -> Budget:
    """The budget of one table. Its error suggests `remedy`, or raising the limit."""
    return Budget(limit("max_total_bytes", max_total_bytes), remedy)


@shows_options(DecodeOptions, plan_of)
def decode(
    data: Buffer,
    *,
    threads: int | None = 1,
    max_total_bytes: int = DEFAULT_MAX_TOTAL_BYTES,
    **options: Unpack[DecodeOptions],
) -> RecordColumns:
    """Decodes a record set into one table.

    Batches of different magics (0, 1, 2) and codecs may be mixed. A partial batch at the end, or the zeros of a
    preallocated file, are not an error: `RecordColumns.consumed` is the number of bytes in complete batches.

    Args:
        data: any contiguous buffer (bytes, memoryview, mmap, numpy, pyarrow.Buffer); it is not copied.
        columns: names of the columns to build; records are validated in the same way for any choice. Default:
            `RECORD_COLUMNS`.
        batch_columns: also build `BATCH_COLUMNS`.
        verify_crc: check the checksum of each batch before reading it.
        include_control: include the records of control batches (transaction markers, for example).
        start_offset, end_offset: return only records with start_offset <= offset < end_offset. Batches completely
            outside this range are skipped without verification.
        on_error: ``"raise"``; ``"stop"`` returns what precedes the first error; ``"skip"`` continues with the next
            intact batch. Both list the bytes left out in `RecordColumns.problems`. If the checksum of the damaged
            batch is correct, its records before the error are kept.
        max_decompressed_bytes: limit on the decompressed records of one batch, in bytes.
        layout: ``"copy"`` copies keys and values into columns of type binary. ``"view"`` makes them binary_view: 16
            bytes a row, which hold a value of up to 12 bytes or point to it, in `data` or in decompressed records.
            `data` then stays alive, and must not change, while the table or anything made from it is in use.
            ``"auto"`` is ``"view"`` if the first 64 values have 64 bytes on average or more, else ``"copy"``, for the
            whole call and regardless of the other options.
        threads: number of threads that share the work, including the caller's, from 1 to 1,024; None for one per
            processor that the process may use. The result is the same for any number.
        max_total_bytes: limit on the memory of the columns, in bytes. Room for the keys and values of a batch is
            reserved before it is read. Chunks that threads are working on are not counted.

    Raises:
        DecodeError: the bytes are not a record set (`CorruptRecord`, `CrcMismatch`, `UnsupportedMagic`,
            `UnsupportedCodec`) or exceed a limit (`LimitExceeded`; also if a column would exceed 2 GiB or the table
            2^31 - 3 rows; use `iter_columns` for more). Exceeding `max_total_bytes` raises for any `on_error`, since
            the data is not at fault.
        ValueError, TypeError: an option is wrong.

    Source: KIP-98 (record batch v2), KIP-82 (headers), KIP-31 and KIP-32 (message set v1); specs/kafka-protocol-guide.
    """
    plan = plan_of(**options).for_data(data)
    count = num_threads(threads)
    if count > 1:
        from kafkacodec.records.parallel.decoding import read_whole_in_threads

        table = read_whole_in_threads(plan, data, _budget_of_table(max_total_bytes), count)
        if table is not None:
            return table
    with plan.decoder(data, budget=_budget_of_table(max_total_bytes)) as decoder:
        return read_whole(decoder, plan.on_error)


def _budget_of_table(max_total_bytes: int) -> Budget:
    return budget_of(max_total_bytes, "read chunks with iter_columns")


@shows_options(DecodeOptions, plan_of)
def iter_columns(
    data: Buffer,
    *,
    max_rows: int = DEFAULT_MAX_ROWS,
    max_bytes: int | None = None,
    start_position: int = 0,
    end_position: int | None = None,
    threads: int | None = 1,
    **options: Unpack[DecodeOptions],
) -> Iterator[RecordColumns]:
    """Decodes a record set in chunks that stay in cache. The fastest way, in bounded memory.

    Args:
        data: as in `decode`, like the other options.
        max_rows: maximum number of rows in a chunk.
        max_bytes: a chunk ends with the record that reaches this many bytes of keys, values and headers. Default:
            512 KiB, or 4 MiB if keys and values are views. Views keep complete decompressed batches in memory; a chunk
            also ends after the batch with which these reach `max_bytes`.
        start_position: byte position in data at which to start; a batch must begin there.
        end_position: byte position at which the data ends; by default the end of the buffer.
        threads: number of threads that share the work, including the caller's, from 1 to 1,024; None for one per
            processor that the process may use. Order, errors and problems are those of one thread, but chunks may be
            smaller: the run of batches that a thread reads at once, at most 8 MiB, also ends a chunk. At most 18 chunks
            and 3 decompressed batches per thread are in memory. The buffer stays in use (a bytearray cannot be resized)
            until the iterator ends or is closed, which also ends the threads. In a forked process the iterator raises
            RuntimeError.

    Yields:
        RecordColumns: at least one, which may be empty. `consumed` counts from the start of data to the end of the
        chunk; `problems` are those of the chunk.

    Raises:
        As `decode`; with ``on_error="raise"`` the rows before the error are yielded first.
    """
    start, end = checked_range(start_position, end_position)
    return columns_between(data, start, end, max_rows=max_rows, max_bytes=max_bytes, threads=threads, **options)


def columns_between(
    data: Buffer,
    start: int,
    end: int | None,
    aborted: Buffer = b"",
    *,
    max_rows: int,
    max_bytes: int | None,
    place: Place | None = None,
    owned: bool = False,
    threads: int | None = 1,
    order: tuple[int, int] | None = None,
    **options: Unpack[DecodeOptions],
) -> Iterator[RecordColumns]:
    """As `iter_columns`, but skips the batches of aborted transactions. `aborted` is as for `Decoder.open`.

    With a `place`, `columns` may name `PLACE_COLUMNS` too. With `owned`, each chunk copies the part of the data that
    its views point to. With `order`, the smallest and the largest offset, a batch whose offsets are not between them
    and below those of the next one raises `_OutOfOrder` for any `on_error`, after the records before it.
    """
    plan = plan_of(place_columns=place is not None, **options).for_data(data, start, end)._replace(order=order)
    if max_bytes is None:
        max_bytes = DEFAULT_MAX_VIEW_BYTES if plan.layout == "view" and not owned else DEFAULT_MAX_BYTES
    rows, size = limit("max_rows", max_rows, 1), limit("max_bytes", max_bytes, 1)
    count = num_threads(threads)
    decoder = plan.decoder(data, start, end, aborted, owned=owned)
    decoder.set_place(*(place or NOWHERE))
    if count == 1:
        return read_chunks(decoder, plan.on_error, rows, size)
    from kafkacodec.records.parallel.decoding import Source, read_chunks_in_threads

    source = Source(plan, memoryview(data), start, end, aborted, place or NOWHERE, owned)
    return read_chunks_in_threads(source, decoder, rows, size, count)


@shows_options(RecordOptions, plan_of)
def iter_records(data: Buffer, **options: Unpack[RecordOptions]) -> Iterator[Record]:
    """Decodes a record set one record at a time, for tools, tests and small data.

    Options and errors are those of `iter_columns`, without ``columns``, ``batch_columns`` and ``layout``.
    """
    for name in ("columns", "batch_columns", "layout"):
        if options.get(name):
            raise ValueError(f"iter_records has no option {name!r}: a record always has all six fields")
    return _record_rows.RecordIterator(iter_columns(data, max_rows=2048, **options), Record)


def checked_range(start_position: int, end_position: int | None) -> tuple[int, int | None]:
    start = limit("start_position", start_position)
    return start, None if end_position is None else limit("end_position", end_position)


def read_chunks(decoder: ChunkDecoder, on_error: OnError, max_rows: int, max_bytes: int) -> Iterator[RecordColumns]:
    """All chunks of a decoder, as `iter_columns` gives them. The decoder is closed at the end."""
    reported = -1  # `consumed` of the last chunk
    with closing(decoder):
        while True:
            chunk, going_on, errors = _next_chunk(decoder, on_error, max_rows, max_bytes)
            last = decoder.done or not going_on
            if len(chunk) or chunk.problems or (last and not errors and chunk.consumed != reported):
                reported = chunk.consumed
                yield chunk
            if errors:
                raise errors.pop()  # frames must not keep it: its traceback refers to them
            if last:
                return


def _next_chunk(
    decoder: ChunkDecoder, on_error: OnError, max_rows: int, max_bytes: int
) -> tuple[RecordColumns, bool, list[Exception]]:
    """A chunk, whether decoding continues after it, and a list of the error to raise after it, if any."""
    chunk: RecordColumns = decoder.read(RecordColumns, max_rows, max_bytes)
    chunk.problems = Problems()
    going_on, errors = end_chunk(decoder, on_error, chunk)
    return chunk, going_on, errors


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
    whole: RecordColumns = decoder.read(RecordColumns, TABLE_ROWS, _NO_BYTE_LIMIT, whole=True)
    whole.problems = Problems()
    _finish(decoder, on_error, whole)
    whole.consumed = decoder.position
    return whole


def read_further(decoder: ChunkDecoder, on_error: OnError, whole: RecordColumns) -> None:
    """Adds all records of a decoder to those of others; `consumed` becomes the sum."""
    decoder.read_on(whole, TABLE_ROWS, _NO_BYTE_LIMIT)
    _finish(decoder, on_error, whole)
    whole.consumed += decoder.position


def _finish(decoder: ChunkDecoder, on_error: OnError, whole: RecordColumns) -> None:
    """Continues after faults to the end, or until `on_error` says to stop."""
    while not decoder.done:
        if not handle_fault(decoder, on_error, whole.problems):
            return
        decoder.read_on(whole, TABLE_ROWS, _NO_BYTE_LIMIT)
