"""Options that are checked once, for many record sets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Unpack

from kafkacodec.arguments import num_threads
from kafkacodec.records import _record_rows
from kafkacodec.records.columns import RecordColumns
from kafkacodec.records.plan import (
    DEFAULT_MAX_BYTES,
    DEFAULT_MAX_TOTAL_BYTES,
    NO_BYTE_LIMIT,
    TABLE_ROWS,
    DecodeOptions,
    Plan,
    TableOptions,
    allowance_of,
    plan_of,
)
from kafkacodec.records.reading import ended, read_chunks
from kafkacodec.records.record import Record
from kafkacodec.shown import repr_of
from kafkacodec.signatures import shows_options

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from kafkacodec.records._decoder import Decoder as Core

__all__ = ["Decoder", "DecoderOptions"]

_RECORDS_AT_ONCE = 2048
"""The records of which `Decoder.iter_records` makes columns at a time."""


class DecoderOptions(TableOptions, total=False):
    """The keyword options of `decode` and of `Decoder`."""

    threads: int | None


class Decoder:
    """Decodes record sets with options that are checked once: for many small ones, as a proxy or a consumer has them.

        >>> decoder = kc.Decoder(on_error="skip")
        >>> rows = [decoder.decode(data) for data in [one, another]]

    Options and their errors are those of `kafkacodec.decode`. A decoder may be used by any number of threads at once,
    and keeps no reference to what it has read. Copies and pickles have its options.

    Raises:
        ValueError, TypeError: an option is wrong.
    """

    __slots__ = ("_allowance", "_idle", "_max_total_bytes", "_plan", "_readers", "_threads")

    @shows_options(DecoderOptions, plan_of)
    def __init__(
        self,
        *,
        threads: int | None = 1,
        max_total_bytes: int = DEFAULT_MAX_TOTAL_BYTES,
        **options: Unpack[DecodeOptions],
    ) -> None:
        self.__setstate__((plan_of(**options), num_threads(threads), max_total_bytes))

    def __getstate__(self) -> tuple[Plan, int, int]:
        return self._plan, self._threads, self._max_total_bytes

    def __setstate__(self, made_of: tuple[Plan, int, int]) -> None:
        self._plan, self._threads, self._max_total_bytes = made_of
        self._allowance = allowance_of(self._max_total_bytes, "read chunks with iter_columns")
        self._idle: list[Core] = []  # decoders of `_plan`, none with several threads or layouts that depend on the data
        self._readers: list[Core] = []  # decoders of all records' columns

    def __repr__(self) -> str:
        return repr_of(self, f"layout {self._plan.layout}", f"on_error {self._plan.on_error}")

    def decode(self, data: Buffer) -> RecordColumns:
        """All records of a record set as one table, as `kafkacodec.decode` returns them.

        Args:
            data: any contiguous buffer.

        Raises:
            DecodeError: as `kafkacodec.decode`.
        """
        idle = self._idle
        try:
            core = idle.pop()
        except IndexError:
            if self._threads > 1 or self._plan.layout == "auto":
                return self._decode_large(data)
            core = self._plan.decoder(b"")
        at_once = False
        try:
            table: RecordColumns = core.read_from(RecordColumns, data, self._allowance, TABLE_ROWS, NO_BYTE_LIMIT)
            at_once = core.done
            return ended(core, self._plan.on_error, table)
        finally:
            if not at_once:  # else it has no reference to the data any more
                core.close()
            idle.append(core)

    def _decode_large(self, data: Buffer) -> RecordColumns:
        """With several threads, or with a layout that is chosen for this data."""
        plan = self._plan.for_data(data)
        if self._threads > 1:
            from kafkacodec.records.parallel.decoding import read_whole_in_threads

            table = read_whole_in_threads(plan, data, self._allowance.budget(), self._threads)
            if table is not None:
                return table
        with plan.decoder(b"") as core:
            table = core.read_from(RecordColumns, data, self._allowance, TABLE_ROWS, NO_BYTE_LIMIT)
            return ended(core, plan.on_error, table)

    def iter_records(self, data: Buffer) -> Iterator[Record]:
        """The records one at a time, always with all six fields, as `kafkacodec.iter_records` gives them.

        Args:
            data: any contiguous buffer.

        Raises:
            DecodeError: as `kafkacodec.decode`; with ``on_error="raise"`` after the records before the error.
        """
        try:
            core = self._readers.pop()
        except IndexError:
            core = self._plan.of_records().decoder(b"")
        try:
            first: RecordColumns = core.read_from(RecordColumns, data, None, _RECORDS_AT_ONCE, DEFAULT_MAX_BYTES)
        except BaseException:
            core.close()
            raise
        if core.done:
            self._readers.append(core)
            return _record_rows.RecordIterator((first,), Record)
        chunks = read_chunks(core, self._plan.on_error, _RECORDS_AT_ONCE, DEFAULT_MAX_BYTES, first)
        return _record_rows.RecordIterator(chunks, Record)
