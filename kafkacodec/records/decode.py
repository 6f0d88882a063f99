"""Decoding record sets: from bytes to columns and to records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Unpack

from kafkacodec.arguments import limit, num_threads, refuse_unknown
from kafkacodec.records.columns import RecordColumns
from kafkacodec.records.decoder import Decoder, DecoderOptions
from kafkacodec.records.plan import (
    DEFAULT_MAX_BYTES,
    DEFAULT_MAX_ROWS,
    DEFAULT_MAX_VIEW_BYTES,
    NOWHERE,
    DecodeOptions,
    Order,
    Place,
    RecordOptions,
    checked_range,
    plan_of,
)
from kafkacodec.records.reading import read_chunks
from kafkacodec.records.record import Record
from kafkacodec.signatures import shows_options

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["decode", "iter_columns", "iter_records"]


_WITHOUT_OPTIONS = Decoder()


@shows_options(DecoderOptions, Decoder, plain=_WITHOUT_OPTIONS.decode)
def decode(data: Buffer, **options: Unpack[DecoderOptions]) -> RecordColumns:
    """Decodes a record set into one table. `Decoder` checks the options once for many record sets.

    Batches of different magics (0, 1, 2) and codecs may be mixed. A partial batch at the end, or the zeros of a
    preallocated file, are not an error: `RecordColumns.consumed` is the number of bytes in complete batches. If it is 0
    for data that is not empty, there was no complete batch.

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
        threads (int | None): number of threads that share the work, including the caller's, from 1 to 1,024; None for
            one per processor that the process may use; 1 by default. The result is the same for any number.
        max_total_bytes (int): limit on the memory of the columns, in bytes. Room for the keys and values of a batch is
            reserved before it is read. Chunks that threads are working on are not counted.

    Raises:
        DecodeError: the bytes are not a record set (`CorruptRecord`, `CrcMismatch`, `UnsupportedMagic`,
            `UnsupportedCodec`) or exceed a limit (`LimitExceeded`; also if a column would exceed 2 GiB or the table
            2^31 - 3 rows; use `iter_columns` for more). Exceeding `max_total_bytes` raises for any `on_error`, since
            the data is not at fault.
        ValueError, TypeError: an option is wrong.

    Source: KIP-98 (record batch v2), KIP-82 (headers), KIP-31 and KIP-32 (message set v1); specs/kafka-protocol-guide.
    """
    return (Decoder(**options) if options else _WITHOUT_OPTIONS).decode(data)


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
    order: Order | None = None,
    **options: Unpack[DecodeOptions],
) -> Iterator[RecordColumns]:
    """As `iter_columns`, but skips the batches of aborted transactions. `aborted` is as for `Decoder.open`.

    With a `place`, the data is of a file: `columns` may name `PLACE_COLUMNS` too, and a partial batch that intact ones
    follow is a fault for any `on_error`. With `owned`, each chunk copies the part of the data that its views point to.
    With `order`, a batch whose offsets are not as it says, and between those of the batches around it, raises
    `_OutOfOrder` for any `on_error`, after the records before it.
    """
    plan = plan_of(place_columns=place is not None, **options).for_data(data, start, end)
    plan = plan._replace(order=order, search_partial=place is not None)
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


@shows_options(RecordOptions, plan_of, plain=_WITHOUT_OPTIONS.iter_records)
def iter_records(data: Buffer, **options: Unpack[RecordOptions]) -> Iterator[Record]:
    """Decodes a record set one record at a time, for tools, tests and small data.

    Options and errors are those of `iter_columns`, without ``columns``, ``batch_columns`` and ``layout``.
    """
    for name in ("columns", "batch_columns", "layout"):
        if options.get(name):
            raise ValueError(f"iter_records has no option {name!r}: a record always has all six fields")
    refuse_unknown(options, RecordOptions.__annotations__)
    return (Decoder(**options) if options else _WITHOUT_OPTIONS).iter_records(data)
