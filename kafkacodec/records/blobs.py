"""Columns of blobs, one record set per row: decoding into a table of records, and encoding back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kafkacodec.arguments import limit, refuse_unknown, require_int
from kafkacodec.arrow._reader import ArrowReader
from kafkacodec.records._decoder import first_blob
from kafkacodec.records.columns import Problems, RecordColumns
from kafkacodec.records.encode import EncodeOptions, EncodePlan, arrow_chunks
from kafkacodec.records.plan import DEFAULT_MAX_TOTAL_BYTES, TABLE_ROWS, DecodeOptions, budget_of, plan_of
from kafkacodec.records.reading import handle_fault
from kafkacodec.signatures import shows_options

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from kafkacodec.arrow._single_column import SingleColumn

__all__ = ["decode_batches", "encode_rows"]


@shows_options(DecodeOptions, plan_of)
def decode_batches(
    column: object, *, max_total_bytes: int = DEFAULT_MAX_TOTAL_BYTES, **options: Unpack[DecodeOptions]
) -> RecordColumns:
    """Decodes a column of blobs, each a record set.

    Args:
        column: a column with the Arrow PyCapsule interface, of type binary, large binary, binary view, fixed size
            binary or string, such as a ``pyarrow.Array``, a ``pyarrow.ChunkedArray`` or a ``polars.Series``. Null and
            empty blobs have no records.
        max_total_bytes: as in `kafkacodec.decode`, for all blobs together.
        The other options: those of `kafkacodec.decode`, without ``threads``. ``on_error`` applies to each blob:
            ``"stop"`` skips the rest of the damaged blob and continues with the next one. With ``layout="view"`` the
            result keeps the blobs of the column alive; ``"auto"`` depends on the first blob that is not empty.

    Returns:
        RecordColumns: the columns of `kafkacodec.decode`, then ``row`` int64, the row of the blob in the column.
        ``consumed`` is the sum over all blobs. The position of a `Problem` counts from the start of its blob; the
        path of its exception names the row.

    Raises:
        DecodeError: as `kafkacodec.decode`; the path names the row.
        TypeError: the column has another type.
    """
    arrays = iter(ArrowReader(column))
    array = next(arrays, None)
    plan = plan_of(**options).for_data(b"" if array is None else first_blob(array))
    budget = budget_of(max_total_bytes, "pass fewer blobs at once, and large ones to iter_columns")
    decoder = plan.with_columns("row").decoder(b"", budget=budget)
    result = decoder.empty_table(RecordColumns)
    result.problems = Problems()

    def pass_over(row: int) -> bool:
        """Handles a fault according to `on_error`; returns whether to continue in the same blob."""
        return handle_fault(decoder, plan.on_error, result.problems, f"row {row}")

    row = 0
    while array is not None:
        result.consumed += decoder.read_blobs(result, array, row, TABLE_ROWS, pass_over)
        row += len(array)
        array = next(arrays, None)
    return result


@shows_options(EncodeOptions, EncodePlan)
def encode_rows(
    records: object | Iterable[object],
    *,
    num_rows: int | None = None,
    max_total_bytes: int = DEFAULT_MAX_TOTAL_BYTES,
    **options: Unpack[EncodeOptions],
) -> SingleColumn:
    """Encodes records as a column of blobs, one record set for each ``row``. The inverse of `decode_batches`.

    Args:
        records: Arrow data as in `kafkacodec.encode`, a table or an iterable of tables, with a column ``row`` (int64 or
            int32) that never decreases.
        num_rows: number of blobs; by default one more than the last row. Blobs without records are empty, also those
            that were null before `decode_batches`.
        max_total_bytes: limit on the memory of the column, in bytes.
        The other options: those of `kafkacodec.encode`, for each blob separately: without a column ``offset`` its
            records are numbered from `base_offset`, and its first batch has `base_sequence`. The batch columns of
            `decode_batches` are ignored.

    Returns:
        SingleColumn: large_binary, without nulls. ``pyarrow.array(x)`` and ``polars.Series(x)`` take it without a
        copy.

    Raises:
        EncodeError: as `kafkacodec.encode`; or a row is null, negative, less than the one before or not below
            `num_rows`; or the column would exceed `max_total_bytes`.
        ValueError, TypeError: an option is wrong, or `records` is not Arrow data.
    """
    refuse_unknown(options, EncodeOptions.__annotations__)
    plan = EncodePlan.of(options)
    if num_rows is not None:
        require_int("num_rows", num_rows, 0, TABLE_ROWS)
    most = limit("max_total_bytes", max_total_bytes)
    return plan.encoder().encode_rows(
        arrow_chunks(records), plan.compressor(), -1 if num_rows is None else num_rows, most
    )
