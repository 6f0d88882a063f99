"""Scanning record sets: from bytes to batch headers."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Literal

from kafkacodec.arguments import column_names, limit, num_threads, one_of
from kafkacodec.errors import KafkaCodecError
from kafkacodec.records import _decoder
from kafkacodec.records.columns import BatchHeaders, Problem, Problems
from kafkacodec.records.plan import DEFAULT_MAX_TOTAL_BYTES, budget_of, checked_range
from kafkacodec.signatures import suggests_options

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from kafkacodec.arrow._columns import Budget
    from kafkacodec.records.parallel.scanning import ScanResult

__all__ = ["scan", "scan_stretches"]

_COLUMNS = _decoder.header_columns()

_POSITIONS = 1
"""The column ``position`` alone, as a mask of the columns of batch headers."""

_LAST = (1 << 63) - 1


@suggests_options
def scan(
    data: Buffer,
    *,
    columns: Iterable[str] | None = None,
    verify_crc: bool = True,
    on_error: Literal["raise", "stop"] = "raise",
    start_position: int = 0,
    end_position: int | None = None,
    max_batches: int | None = None,
    max_total_bytes: int = DEFAULT_MAX_TOTAL_BYTES,
    threads: int | None = 1,
) -> BatchHeaders:
    """Reads batch headers without decompressing or reading records.

    Args:
        data: any contiguous buffer; it is not copied.
        columns: names of the columns to build. Default: all, which take about 100 bytes of memory for each batch. A
            message of magic 0, which counts as a batch, may be as small as 26 bytes.
        verify_crc: compute the checksum of each batch for the column ``crc_ok``. A wrong one does not raise.
        on_error: ``"raise"``, or ``"stop"`` to keep the headers before the error and list it in ``problems``.
        start_position: byte position in data at which to start; a batch must begin there.
        end_position: byte position at which the data ends; by default the end of the buffer, after which nothing
            follows: a few bytes there that no batch begins with are an error, as in `decode`.
        max_batches: stop after this many batches; ``consumed`` is then the position of the next one.
        max_total_bytes: limit on the memory of the columns, in bytes.
        threads: number of threads that compute checksums, including the caller's, from 1 to 1,024; None for one per
            processor that the process may use.

    Raises:
        DecodeError: there is no batch where one must start (`CorruptRecord`, `UnsupportedMagic`), or the columns would
            exceed `max_total_bytes` (`LimitExceeded`, for any `on_error`).
        ValueError, TypeError: an option is wrong.
    """
    one_of("on_error", on_error, ("raise", "stop"))
    start, end = checked_range(start_position, end_position)
    most = _LAST if max_batches is None else limit("max_batches", max_batches)
    wanted, count = _header_bits(columns), num_threads(threads)

    def new_budget() -> Budget:
        return budget_of(max_total_bytes, "read it in parts with max_batches and start_position")

    def read(budget: Budget, first: int, stop: int | None, num_batches: int) -> ScanResult:
        return _decoder.scan(BatchHeaders, data, wanted, verify_crc, first, stop, num_batches, budget)

    result: ScanResult | None = None
    if count > 1 and verify_crc:
        from kafkacodec.records.parallel.scanning import scan_in_threads

        found: BatchHeaders = _decoder.scan(BatchHeaders, data, _POSITIONS, False, start, end, most, new_budget())[0]
        result = scan_in_threads(partial(read, new_budget()), found["position"], end, most, count)
    table, position, size, fault, exhausted = result or read(new_budget(), start, end, most)
    headers: BatchHeaders = table
    headers.consumed = position
    headers.problems = Problems()
    if fault is not None:
        if on_error == "raise" or exhausted or not isinstance(fault, KafkaCodecError):
            try:
                raise fault
            finally:
                del fault  # avoids a cycle with the exception's traceback
        headers.problems.note(Problem(position, None, size - position, fault))
    return headers


def scan_stretches(data: Buffer, stretches: Buffer) -> BatchHeaders:
    """The headers of all batches in `stretches` of the data (int64 pairs of start and end) as one table.

    Each stretch is read like ``scan(verify_crc=False, on_error="stop")``, up to its first error.
    """
    headers: BatchHeaders = _decoder.scan_stretches(BatchHeaders, data, _header_bits(None), stretches)
    headers.problems = Problems()
    return headers


def _header_bits(columns: Iterable[str] | None) -> int:
    if columns is None:
        return (1 << len(_COLUMNS)) - 1
    return sum(1 << _COLUMNS.index(name) for name in set(column_names(columns, _COLUMNS, _COLUMNS)))
