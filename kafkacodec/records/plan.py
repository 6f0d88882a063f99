"""The options of reading record sets, their limits and defaults, and the plan that they become once checked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, TypedDict, get_args

from kafkacodec.arguments import column_names, int64, limit, one_of, refuse_unknown
from kafkacodec.arrow._columns import Allowance
from kafkacodec.datatypes import NamedTuple
from kafkacodec.records import _decoder
from kafkacodec.records.columns import RecordColumns
from kafkacodec.records.compression import DEFAULT_MAX_DECOMPRESSED_BYTES
from kafkacodec.signatures import describes_also

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from kafkacodec.arrow._columns import Budget

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

_OF_RECORDS = sum(_BIT[name] for name in RECORD_COLUMNS)

DEFAULT_MAX_ROWS = 8192
"""Rows in a chunk of `iter_columns`: enough to amortize the cost of a chunk, few enough to stay in cache."""

DEFAULT_MAX_BYTES = 512 << 10
"""A chunk of `iter_columns` ends with the record that reaches this many bytes of keys, values and headers."""

DEFAULT_MAX_VIEW_BYTES = 4 << 20
"""The same for views, of which only 16 bytes a row have to stay in cache."""

_AUTO_VALUE_BYTES = 64
"""The average size of a value, in bytes, at which views become faster than copies (see benchmarks/README.md)."""

_AUTO_ROWS = 64
"""The number of values that the average is taken of: the first ones."""

DEFAULT_MAX_TOTAL_BYTES = 2 << 30
"""Limit on the memory of the columns of one table, in bytes (2 GiB)."""

_FIRST, _LAST = -(1 << 63), (1 << 63) - 1
NO_BYTE_LIMIT = (1 << 63) - 1

TABLE_ROWS = (1 << 31) - 2
"""A table with this many rows is full."""

OnError = Literal["raise", "stop", "skip"]
ON_ERROR = get_args(OnError)


Layout = Literal["copy", "view", "auto"]

LAYOUTS: tuple[str, ...] = get_args(Layout)


class Order(NamedTuple):
    """What the offsets of batches must be that follow one another.

    Attributes:
        least, most: the smallest and the largest one.
        sets_compared: the first offsets of compressed sets of magic 1, which are not in their headers, are right.
    """

    least: int
    most: int
    sets_compared: bool = False


class RecordOptions(TypedDict, total=False):
    """The keyword options of `iter_records`.

    Keys:
        verify_crc: check the checksum of each batch before reading it.
        include_control: include the records of control batches (transaction markers, for example).
        start_offset: only records at or after this offset; by default from the start.
        end_offset: only records before this offset; by default to the end.
        on_error: ``"raise"``; ``"stop"`` ends before the first damage; ``"skip"`` goes on with the next intact batch.
        max_decompressed_bytes: limit on the decompressed records of one batch, in bytes.
    """

    verify_crc: bool
    include_control: bool
    start_offset: int | None
    end_offset: int | None
    on_error: OnError
    max_decompressed_bytes: int


@describes_also(RecordOptions)
class DecodeOptions(RecordOptions, total=False):
    """The keyword options that `decode` and `iter_columns` share.

    Keys:
        columns: names of the columns to build; others cost nothing.
        batch_columns: also build the columns about batches, such as ``producer_id`` and ``codec``.
        layout: ``"copy"``: keys and values as binary; ``"view"``: as views of the data; ``"auto"``: by their size.
    """

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
    order: Order | None = None
    """For data in which offsets increase; a batch with another offset is a fault."""
    only_control: bool = False
    """Batches that are not control batches are skipped without being verified."""
    search_partial: bool = False
    """A partial batch that intact ones follow is a fault, also if damage is not skipped: the data is a whole file."""

    def for_data(self, data: Buffer, start: int = 0, end: int | None = None) -> Plan:
        """This plan with a layout in place of ``"auto"``: the first values decide, regardless of the other options."""
        if self.layout != "auto":
            return self
        return self._replace(layout=self._measured(data, start, end))

    def _measured(self, data: Buffer, start: int, end: int | None) -> Layout:
        values = Plan(_BIT["value"], False, False, _FIRST, _LAST, "stop", self.limit, "view")
        with values.decoder(data, start, end) as decoder:
            chunk = decoder.read(RecordColumns, _AUTO_ROWS, NO_BYTE_LIMIT)
        sizes = chunk.buffers("value")["views"]["size"]
        return "view" if sizes.sum(dtype="i8") >= _AUTO_VALUE_BYTES * max(1, len(chunk)) else "copy"

    def of_records(self) -> Plan:
        """This plan with the columns of `kafkacodec.Record`."""
        return self._replace(wanted=_OF_RECORDS, layout="copy")

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
            only_control=self.only_control,
            start_offset=self.start_offset,
            end_offset=self.end_offset,
            limit=self.limit,
            search_partial=self.search_partial or self.on_error == "skip",
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
    first = _FIRST if start_offset is None else int64(start_offset, "start_offset")
    last = _LAST if end_offset is None else int64(end_offset, "end_offset")
    most = limit("max_decompressed_bytes", max_decompressed_bytes)
    return Plan(wanted, verify_crc, include_control, first, last, on_error, most, layout)


def check_layout(layout: object) -> None:
    """Raises ValueError if there is no such layout."""
    if layout not in LAYOUTS:
        raise ValueError(f'unknown layout {layout!r}; use "copy", "view" or "auto"')


def layout_of(data: Buffer, layout: Layout, start: int = 0, end: int | None = None) -> Layout:
    """The layout, ``"auto"`` replaced by the one for the data. Raises ValueError if there is no such layout."""
    return plan_of(layout=layout).for_data(data, start, end).layout


def allowance_of(max_total_bytes: int, remedy: str) -> Allowance:
    """The limit on each of many tables. Its error suggests `remedy`, or raising the limit."""
    return Allowance(limit("max_total_bytes", max_total_bytes), remedy)


def budget_of(max_total_bytes: int, remedy: str) -> Budget:
    """The budget of one table, as by `allowance_of`."""
    return allowance_of(max_total_bytes, remedy).budget()


def checked_range(start_position: int, end_position: int | None) -> tuple[int, int | None]:
    """A range of byte positions; raises ValueError or TypeError for what is none."""
    start = limit("start_position", start_position)
    return start, None if end_position is None else limit("end_position", end_position)
