"""Tables of records and of batch headers, with their Arrow and numpy interfaces."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterator
from functools import cache
from operator import index
from typing import TYPE_CHECKING, Any, Self, overload

from kafkacodec.arguments import is_integer, limit
from kafkacodec.arrow._columns import Table
from kafkacodec.arrow._rows import take
from kafkacodec.datatypes import NamedTuple
from kafkacodec.errors import CorruptRecord, KafkaCodecError
from kafkacodec.lazy import import_extra, np, pyarrow_table
from kafkacodec.records import _record_rows
from kafkacodec.records.record import Record
from kafkacodec.shown import cell_text, counted, html_table, repr_of_rows

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd
    import polars as pl
    import pyarrow as pa


__all__ = ["BatchHeaders", "Columns", "Field", "Problem", "Problems", "RecordColumns", "Schema"]

MAX_PROBLEMS = 10_000
"""Limit on the problems that a table lists: each takes about 700 bytes of memory, and a damaged batch as few as 26."""


_SHOWN_ROWS = 10
"""Rows of a table that a notebook shows."""


class Problem(NamedTuple):
    """A range of bytes that was left out.

    Attributes:
        position (int): its start, in bytes from the start of the data.
        base_offset (int | None): base offset of the batch that starts there; None if its header is not reliable.
        size_in_bytes (int): its size in bytes.
        exception (KafkaCodecError): what is wrong.
    """

    position: int
    base_offset: int | None
    size_in_bytes: int
    exception: KafkaCodecError


class Problems(list[Problem]):
    """The ranges that were left out, in order. After `MAX_PROBLEMS`, one more entry sums up all others.

    Attributes:
        merged (int): number of ranges that the last entry sums up; 0 if each has its own entry.
    """

    merged = 0
    _last: Problem

    def note(self, problem: Problem) -> None:
        """Add a problem."""
        if len(self) < MAX_PROBLEMS:
            self.append(problem)
        else:
            self._merge(problem.position, problem.size_in_bytes, 1, problem)

    def include(self, others: Problems) -> None:
        """Add the problems of the data that follows."""
        for problem in others[:MAX_PROBLEMS]:
            self.note(problem)
        if others.merged:
            self._merge(others[-1].position, others[-1].size_in_bytes, others.merged, others._last)

    def _merge(self, position: int, size_in_bytes: int, places: int, last: Problem) -> None:
        if not self.merged:
            self.append(Problem(position, None, 0, CorruptRecord("", position=position)))
        self.merged += places
        self._last = last
        exception = self[-1].exception
        assert isinstance(exception, CorruptRecord)
        exception.reason = f"{self.merged} more damaged places, the last at byte {last.position}: {last.exception}"
        self[-1] = self[-1]._replace(size_in_bytes=self[-1].size_in_bytes + size_in_bytes)


class Field(NamedTuple):
    """A column's name and its Arrow type as a string, such as ``timestamp[ms, tz=UTC]``."""

    name: str
    type: str


class Schema(tuple[Field, ...]):
    """The fields of a table, in order. Offers ``__arrow_c_schema__`` of the Arrow PyCapsule interface."""

    _table: Table

    @classmethod
    def of(cls, table: Table) -> Schema:
        """The schema of a table."""
        schema = cls(Field(name, kind) for name, kind in table.columns)
        schema._table = table
        return schema

    @property
    def names(self) -> list[str]:
        """The column names, in order."""
        return [field.name for field in self]

    def __arrow_c_schema__(self) -> object:
        return self._table.__arrow_c_schema__()


class Columns(Table):
    """A table in Arrow's memory layout.

    pyarrow, polars, DuckDB and pandas take it without a copy through the Arrow PyCapsule interface
    (``__arrow_c_schema__``, ``__arrow_c_array__``, ``__arrow_c_stream__``): ``pyarrow.record_batch(x)``,
    ``pyarrow.table(x)``, ``polars.DataFrame(x)``. The memory lives as long as anything made from it.

    Attributes:
        consumed (int): number of bytes in complete or skipped batches, from the start of the data.
        problems (list[Problem]): the ranges that were left out; after 10,000, one more entry sums up all others.
    """

    consumed: int = 0
    _problems: Problems | None = None

    @property
    def problems(self) -> Problems:
        """The ranges that were left out, in order."""
        if self._problems is None:  # made when they are asked for: a table of one record takes little longer to decode
            self._problems = Problems()
        return self._problems

    @problems.setter
    def problems(self, found: Problems) -> None:
        self._problems = found

    @property
    def schema(self) -> Schema:
        """The columns' names and types."""
        return Schema.of(self)

    @property
    def column_names(self) -> list[str]:
        """The names of the columns, in order."""
        return [name for name, _ in self.columns]

    @overload
    def __getitem__(self, key: str) -> npt.NDArray[Any]: ...
    @overload
    def __getitem__(self, key: slice) -> Self: ...
    @overload
    def __getitem__(self, key: int) -> Any: ...
    def __getitem__(self, key: str | slice | int) -> Any:
        """A column, by name; a row, by number; or a table of some rows, by a slice.

        A column of a fixed-width type is a read-only numpy array over the same memory. Timestamps are
        ``datetime64[ms]`` in UTC with NaT for null. Booleans are unpacked from bits into a new array. Nulls of the
        other fixed-width types are 0; ``buffers(name)["validity"]`` marks them.

        A column of bytes, text or headers is a new numpy array of Python objects (bytes, str, or a tuple of pairs for
        each row), None for null: convenient for looking at some rows; Arrow or `buffers` are for bulk work.

        A row is a named tuple, as in iteration. A slice is a new table, as `take` makes it.

        Raises:
            KeyError: the table does not have this column.
            IndexError: the table does not have this row.
            TypeError: the argument is neither a name nor a number nor a slice.
        """
        if isinstance(key, str):
            return self.view(key) if self._is_fixed(key) else self._cells(key)
        if isinstance(key, slice):
            return self.take(range(*key.indices(len(self))))
        if not is_integer(key):
            raise TypeError(f"expected a column name, a row number or a slice, not {type(key).__name__}")
        row = index(key)
        return self._row_type()._make(self._row(row + len(self) if row < 0 else row))

    def __iter__(self) -> Iterator[Any]:
        """The rows as named tuples of the columns; times are milliseconds, headers tuples of pairs."""
        make = self._row_type()._make
        return (make(self._row(row)) for row in range(len(self)))

    def head(self, n: int = 5) -> Self:
        """A table of the first rows.

        Args:
            n: the most rows.
        """
        return self[: limit("n", n)]

    def _row_type(self) -> Any:
        return _row_type(tuple(self.column_names))

    def buffers(self, name: str) -> dict[str, Any]:
        """The Arrow buffers of a column as numpy views.

        Returns:
            dict: ``validity`` (uint8, a bit per row, least significant first; None if nothing is null), and
            ``offsets`` (int32, rows + 1) with ``data`` (uint8) for binary and string; for binary_view ``views``, a
            struct of ``size``, ``prefix`` (4 bytes), ``buffer`` and ``position`` for each row (a value of up to 12
            bytes takes the place of the last three), and ``data``, a list of uint8 arrays; for list ``offsets`` with
            ``items``, the buffers of its items; for struct the buffers of its fields by name; else ``values``.
        """
        return super().buffers(name)

    def take(self, rows: npt.ArrayLike) -> Self:
        """A new table with the rows of these numbers, in their order.

        Keys and values as views share their memory with this table. `consumed` and `problems` are this table's.

        Raises:
            IndexError: there is no such row; negative numbers do not count from the end.
        """
        made = take(self, rows)
        made.consumed = self.consumed
        made.problems = self.problems
        return made

    def filter(self, mask: npt.ArrayLike) -> Self:
        """A new table with the rows for which `mask` is true, as `take` makes it.

        Raises:
            ValueError: `mask` is not an array of one bool for each row.
        """
        chosen = np.asarray(mask)
        if chosen.dtype != np.bool_ or chosen.shape != (len(self),):
            raise ValueError(
                f"a mask has one bool for each of {len(self)} rows, not {chosen.dtype}{list(chosen.shape)}"
            )
        return self.take(np.flatnonzero(chosen))

    def to_pyarrow(self) -> pa.RecordBatch:
        """The same as `to_arrow`, as one ``pyarrow.RecordBatch``."""
        return import_extra("pyarrow").record_batch(self)

    def to_arrow(self) -> pa.Table:
        """The table as a ``pyarrow.Table``, without a copy. Needs pyarrow."""
        return pyarrow_table(self)

    def to_pandas(self) -> pd.DataFrame:
        """The table as a ``pandas.DataFrame``. Needs pandas and pyarrow."""
        import_extra("pandas")
        return self.to_pyarrow().to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """The table as a ``polars.DataFrame``, without a copy of keys and values. Needs polars."""
        return import_extra("polars").DataFrame(self)

    def __repr__(self) -> str:
        facts = [counted(self.nbytes, "byte")]
        if self._problems:
            facts.append(counted(len(self.problems), "problem"))
        rows = map(self._row, range(len(self)))
        return repr_of_rows(type(self).__name__, len(self), self.column_names, rows, *facts)

    def _repr_html_(self) -> str:
        kinds = [kind for _, kind in self.columns]
        rows = min(len(self), _SHOWN_ROWS)
        cells = ([cell_text(*pair) for pair in zip(self._row(row), kinds, strict=True)] for row in range(rows))
        more = f", the first {rows} of which are" if rows < len(self) else ""
        faults = f"; {counted(len(self.problems), 'problem')}" if self._problems else ""
        caption = f"{type(self).__name__}: {counted(len(self), 'row')}{more}{faults}"
        numbers = [name for name, kind in self.columns if kind.startswith(("int", "uint"))]
        return html_table(caption, self.column_names, cells, numbers)


@cache
def _row_type(names: tuple[str, ...]) -> Any:
    return Record if names == Record._fields else namedtuple("Row", names)


class RecordColumns(Columns):
    """Decoded records, one per row.

    Columns, in this order, unless fewer were requested: ``offset`` int64; ``timestamp`` timestamp[ms, UTC], null
    if the format or the record has none; ``timestamp_type`` int8 (0 create time, 1 log append time, -1 none);
    ``key`` and ``value`` binary, or binary_view with ``layout="view"``; ``headers`` list<struct<key: string, value:
    binary>>, empty if there are none.
    With ``batch_columns=True`` also ``partition_leader_epoch`` int32, ``producer_id`` int64, ``producer_epoch`` int16,
    ``sequence`` int32, ``is_transactional`` bool, ``is_control`` bool, ``magic`` int8, ``codec`` string,
    ``batch_offset`` int64 (the batch's base offset) and ``batch_position`` int64 (bytes from the start of the data).
    An uncompressed message of magic 0 or 1 counts as a batch, and so does a compressed message with the messages
    inside it; the four columns about leader and producer are null there, and the two booleans false.
    `kafkacodec.protocol.fetch_to_columns` adds ``topic`` string and ``partition`` int32 at the front, and so does
    reading a log where `columns` names them; `kafkacodec.decode_batches` adds ``row`` int64 at the end.
    """

    @property
    def num_records(self) -> int:
        """The number of rows."""
        return len(self)

    def records(self) -> list[Record]:
        """The rows as named tuples, for tools and tests.

        Raises:
            KeyError: one of the six columns of `kafkacodec.Record` was not requested.
        """
        missing = {*Record._fields} - {*self.column_names}
        if missing:
            raise KeyError(f"no column {', '.join(sorted(missing))}: records have all of {', '.join(Record._fields)}")
        return list(_record_rows.RecordIterator((self,), Record))

    def __iter__(self) -> Iterator[Any]:
        """The rows: a `kafkacodec.Record` each, or a named tuple of the columns if these are others."""
        if self.column_names == [*Record._fields]:
            return iter(_record_rows.RecordIterator((self,), Record))
        return super().__iter__()


class BatchHeaders(Columns):
    """Batch headers, one batch per row, read without decompressing.

    Columns: ``position`` and ``size_in_bytes`` int64 (bytes), ``base_offset``, ``last_offset`` int64, ``magic`` int8,
    ``codec`` string, ``timestamp_type`` int8, ``base_timestamp``, ``max_timestamp`` timestamp[ms, UTC] (null for -1),
    ``count`` int32, ``producer_id`` int64, ``producer_epoch`` int16, ``base_sequence``, ``partition_leader_epoch``
    int32, ``is_transactional``, ``is_control`` bool, ``delete_horizon_ms`` int64 (ms since the epoch, null without
    one), ``crc`` uint32, ``crc_ok`` bool (null if not verified). A message of magic 0 or 1 counts as a batch. The base
    offset and count of a compressed one are null, since its header does not contain them, and so are fields that the
    format does not have.
    """

    @property
    def num_batches(self) -> int:
        """The number of rows."""
        return len(self)
