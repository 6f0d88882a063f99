"""Decoding a column of raw record sets: a table with one blob per row, into one table with a row per record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkacodec.arrow._reader import ArrowReader
from kafkacodec.errors import DecodeError, KafkaCodecError
from kafkacodec.records.columns import Problem, Problems, RecordColumns
from kafkacodec.records.decode import (
    DEFAULT_MAX_TOTAL_BYTES,
    TABLE_ROWS,
    DecodeOptions,
    budget_of,
    plan_of,
    take_fault,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["decode_batches"]


def decode_batches(
    column: object, *, max_total_bytes: int = DEFAULT_MAX_TOTAL_BYTES, **options: Unpack[DecodeOptions]
) -> RecordColumns:
    """Decodes every blob of a column, each a record set of its own.

    Args:
        column: anything with the Arrow PyCapsule interface that is one column of binary, large binary, binary view,
            fixed size binary or text, such as a ``pyarrow.Array``, a ``pyarrow.ChunkedArray`` or a ``polars.Series``.
            Null and empty blobs have no records.
        max_total_bytes: as in `kafkacodec.decode`, for all blobs together.
        options: those of `kafkacodec.decode`, without ``threads``. ``on_error`` holds for each blob: ``"stop"`` leaves
            the rest of the faulty blob and goes on with the next one.

    Returns:
        RecordColumns: the columns of `kafkacodec.decode` and, last, ``row`` int64, the row of the blob in the column.
        ``consumed`` is the sum over all blobs. The position in a `Problem` counts from the start of its blob; the
        path of its exception names the row.

    Raises:
        DecodeError: as `kafkacodec.decode`; the path names the row.
        TypeError: the column is of another type.
    """
    plan = plan_of(**options)
    budget = budget_of(max_total_bytes, "pass fewer blobs at once, and large ones to iter_columns")
    decoder = plan.with_columns("row").decoder(b"", budget=budget)
    result = decoder.empty_table(RecordColumns)
    result.problems = Problems()

    def settle(row: int) -> bool:
        """Notes a fault; whether to go on in the same blob."""
        going_on = plan.on_error == "skip" and decoder.fault is not None
        fault = take_fault(decoder)
        if isinstance(fault, DecodeError):
            fault.within(f"row {row}")
        if plan.on_error == "raise" or decoder.exhausted or not isinstance(fault, KafkaCodecError):
            raise fault
        position, base_offset = decoder.position, decoder.base_offset
        size = decoder.skip() if going_on else decoder.size - position
        result.problems.note(Problem(position, base_offset, size, fault))
        return going_on

    row = 0
    for array in ArrowReader(column):
        result.consumed += decoder.read_blobs(result, array, row, TABLE_ROWS, settle)
        row += len(array)
    return result
