"""Results of named rows: shown as tables in notebooks, and made into tables of pyarrow, pandas and polars.

What a class annotates its fields with decides the types of columns. An int is an int64, or an int32 if Kafka's
protocol has it so under that name; a time in ms is a timestamp, null where it is -1.
"""

from __future__ import annotations

import types
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from kafkacodec.arguments import limit
from kafkacodec.datatypes import dataclass, field, fields, is_dataclass
from kafkacodec.errors import CorruptRecord, LimitExceeded
from kafkacodec.lazy import import_extra
from kafkacodec.shown import cell_text, counted, html_table, repr_of_rows

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

__all__ = ["KnownRows", "NamedRows", "RowsByKey", "Shape", "Tabular", "fields_of", "table_of"]

K = TypeVar("K")
V = TypeVar("V")

_SHOWN_ROWS = 50
_ROWS_AT_ONCE = 4096
_MOST_BYTES = 2 << 30

_INT32 = frozenset({"broker", "coordinator", "generation", "leader_epoch", "partition", "partitions"})

_SCALARS = {bool: "bool_", int: "int64", float: "float64", bytes: "binary"}


class Tabular:
    """Rows of named columns. A subclass says in `_columns` and `_rows` what they are."""

    def _columns(self) -> Mapping[str, Any]:
        """The type of each column, as an annotation."""
        raise NotImplementedError

    def _rows(self) -> Iterator[dict[str, Any]]:
        """The rows: a value for each column."""
        raise NotImplementedError

    def _hidden(self) -> Set[str]:
        """The columns that notebooks do not show."""
        return frozenset()

    def _caption(self) -> str:
        """What stands above the table in a notebook, before the number of rows."""
        return type(self).__name__

    def _num_rows(self) -> int | None:
        """The number of rows, if it is known without counting them."""
        return None

    def _schema(self) -> pa.Schema:
        return import_extra("pyarrow").schema({name: _arrow(kind, name) for name, kind in self._columns().items()})

    def to_arrow(self) -> pa.Table:
        """The rows as a ``pyarrow.Table``. Needs pyarrow."""
        return table_of(map(_plain_row, self._rows()), self._schema())

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a ``pandas.DataFrame``. Needs pandas and pyarrow."""
        import_extra("pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """The rows as a ``polars.DataFrame``. Needs polars and pyarrow."""
        return import_extra("polars").DataFrame(self.to_arrow())

    def _repr_html_(self) -> str:
        rows, hidden = self._rows(), self._hidden()
        first = list(islice(rows, _SHOWN_ROWS))
        known = self._num_rows()
        count = len(first) + sum(1 for _ in rows) if known is None else known
        columns = {name: kind for name, kind in self._columns().items() if name not in hidden}
        more = f", the first {_SHOWN_ROWS} of which are" if count > _SHOWN_ROWS else ""
        caption = f"{self._caption()}: {counted(count, 'row')}{more}"
        shown = [[_cell(row[name], name) for name in columns] for row in first]
        return html_table(caption, list(columns), shown, [name for name, kind in columns.items() if _is_number(kind)])


class KnownRows(Tabular):
    """Rows that are in memory: their ``repr`` has the number of them and the first ones."""

    def __repr__(self) -> str:
        hidden = self._hidden()
        columns = [name for name in self._columns() if name not in hidden]
        rows = ([row[name] for name in columns] for row in self._rows())
        known = self._num_rows()
        count = sum(1 for _ in self._rows()) if known is None else known
        return repr_of_rows(self._caption(), count, columns, rows)


class NamedRows(KnownRows, list[V]):
    """A list of named tuples, or of objects of a dataclass, that notebooks show as a table.

    Args:
        rows: the rows.
        row_type: their class, if it is not the class attribute.
    """

    row_type: Any = None

    def __init__(self, rows: Iterable[V] = (), row_type: Any = None) -> None:
        super().__init__(rows)
        if row_type is not None:
            self.row_type = row_type

    def _hidden(self) -> Set[str]:
        return _secret(self.row_type)

    def _caption(self) -> str:
        kind = self.row_type if type(self) is NamedRows else type(self)
        return str(kind.__name__)

    @staticmethod
    def cells(row: Any) -> dict[str, Any]:
        """The values of a row of the table, by column."""
        return _fields(row)

    def _columns(self) -> Mapping[str, Any]:
        return fields_of(self.row_type)

    def _rows(self) -> Iterator[dict[str, Any]]:
        return map(self.cells, self)

    def _num_rows(self) -> int:
        return len(self)


@dataclass(frozen=True)
class Shape:
    """How the items of a dict become rows.

    Attributes:
        row: the class of the values; or the type of the last column.
        keys: the columns of a key, with their types: of its parts if they are several. Default: the rows have them.
        inner: where the values are dicts of rows, the columns of their keys.
        cell: the name of the last column, where `row` is its type.
    """

    row: Any
    keys: Mapping[str, Any] = field(default_factory=dict)
    inner: Mapping[str, Any] = field(default_factory=dict)
    cell: str = ""

    def columns(self) -> dict[str, Any]:
        """The columns with their types."""
        return {**self.keys, **self.inner, **({self.cell: self.row} if self.cell else fields_of(self.row))}

    def rows(self, key: Any, value: Any) -> Iterator[dict[str, Any]]:
        """The rows of an item: one, or one for each item of a list or a dict."""
        first = _parts(self.keys, key)
        if isinstance(value, dict):
            for name, item in value.items():
                yield {**first, **_parts(self.inner, name), **self._last(item)}
        elif isinstance(value, list):
            for item in value:
                yield {**first, **self._last(item)}
        else:
            yield {**first, **self._last(value)}

    def _last(self, value: Any) -> dict[str, Any]:
        return {self.cell: value} if self.cell else _fields(value)


class RowsByKey(KnownRows, dict[K, V], Generic[K, V]):
    """A dict that notebooks show as a table.

    Args:
        items: the dict.
        shape: how its items become rows.
    """

    def __init__(self, items: Mapping[K, V], shape: Shape) -> None:
        super().__init__(items)
        self._shape = shape

    def _caption(self) -> str:
        return self._shape.cell or str(self._shape.row.__name__)

    def _columns(self) -> Mapping[str, Any]:
        return self._shape.columns()

    def _rows(self) -> Iterator[dict[str, Any]]:
        for key, value in self.items():
            yield from self._shape.rows(key, value)


def table_of(rows: Iterator[dict[str, Any]], schema: pa.Schema, max_total_bytes: int = _MOST_BYTES) -> pa.Table:
    """A table built in chunks, so that at most one of them exceeds the limit.

    Raises:
        CorruptRecord: a number is out of its column's range.
        LimitExceeded: the table needs more than `max_total_bytes`.
    """
    arrow = import_extra("pyarrow")
    left = limit("max_total_bytes", max_total_bytes)
    parts: list[pa.RecordBatch] = []
    try:
        while chunk := list(islice(rows, _ROWS_AT_ONCE)):
            parts.append(arrow.RecordBatch.from_pylist(chunk, schema))
            left -= parts[-1].nbytes
            if left < 0:
                raise LimitExceeded(f"the table would exceed max_total_bytes ({max_total_bytes})")
    except (arrow.ArrowInvalid, OverflowError) as error:
        raise CorruptRecord(f"a stored number is out of range: {error}") from None
    return arrow.Table.from_batches(parts, schema)


@cache
def fields_of(row_type: Any) -> dict[str, Any]:
    """The fields of a named tuple or a dataclass, with their types."""
    hints = get_type_hints(row_type)
    names = row_type._fields if hasattr(row_type, "_fields") else [f.name for f in fields(row_type)]
    return {name: hints[name] for name in names}


@cache
def _secret(row_type: Any) -> Set[str]:
    """The fields that ``repr`` leaves out."""
    return frozenset(f.name for f in fields(row_type) if not f.repr) if is_dataclass(row_type) else set()


def _is_row(kind: Any) -> bool:
    return hasattr(kind, "_fields") or is_dataclass(kind)


def _fields(row: Any) -> dict[str, Any]:
    found: dict[str, Any] = row._asdict() if hasattr(row, "_asdict") else vars(row)
    return found


def _parts(columns: Mapping[str, Any], key: Any) -> dict[str, Any]:
    return dict(zip(columns, key if len(columns) > 1 else (key,), strict=False))


def _is_time(name: str) -> bool:
    return name.endswith(("timestamp", "_time_ms"))


def _cell(value: Any, name: str) -> str:
    return cell_text(value, "timestamp") if _is_time(name) else cell_text(_as_text(value))


def _as_text(value: Any) -> Any:
    """A value for a cell: lists and dicts as text with commas."""
    if _is_row(type(value)):
        return " ".join(f"{name}={cell_text(_as_text(part))}" for name, part in _fields(value).items())
    if isinstance(value, Mapping):
        return ", ".join(f"{cell_text(_as_text(key))}={cell_text(_as_text(part))}" for key, part in value.items())
    if isinstance(value, (list, tuple, Set)):
        return ", ".join(cell_text(_as_text(part)) for part in (sorted(value) if isinstance(value, Set) else value))
    return value


def _plain_row(row: dict[str, Any]) -> dict[str, Any]:
    return {name: None if value == -1 and _is_time(name) else _plain(value) for name, value in row.items()}


def _plain(value: Any) -> Any:
    """A value as pyarrow takes it."""
    if value is None or isinstance(value, (int, float, str, bytes)):
        return value
    if _is_row(type(value)):
        return _plain_row(_fields(value))
    if isinstance(value, Mapping):
        return [
            {**_plain(key), **_plain(part)} if _is_row(type(key)) and _is_row(type(part)) else (key, _plain(part))
            for key, part in value.items()
        ]
    if isinstance(value, (list, Set)):
        return [_plain(part) for part in (sorted(value) if isinstance(value, Set) else value)]
    return tuple(map(_plain, value)) if isinstance(value, tuple) else str(value)


def _required(kind: Any) -> Any:
    """A type without None."""
    if get_origin(kind) in (Union, types.UnionType):
        (kind,) = (part for part in get_args(kind) if part is not types.NoneType)
    return kind


def _is_number(kind: Any) -> bool:
    return _required(kind) in (int, float)


def _arrow(kind: Any, name: str) -> Any:
    """The Arrow type of a column, or of a part of one."""
    pa = import_extra("pyarrow")
    kind = _required(kind)
    if kind is int and _is_time(name):
        return pa.timestamp("ms", tz="UTC")
    if kind is int and name in _INT32:
        return pa.int32()
    make: Callable[[], Any] | None = getattr(pa, _SCALARS.get(kind, ""), None)
    if make is not None:
        return make()
    if _is_row(kind):
        return pa.struct(_arrow_fields(kind))
    whole, parts = get_origin(kind), get_args(kind)
    if whole in (dict, Mapping) and _is_row(parts[0]):
        return pa.list_(pa.struct({**_arrow_fields(parts[0]), **_arrow_fields(parts[1])}))
    if whole is Counter:
        return pa.map_(_arrow(parts[0], ""), pa.int64())
    if whole in (dict, Mapping):
        return pa.map_(_arrow(parts[0], ""), _arrow(parts[1], ""))
    if whole in (list, set, frozenset, tuple):
        return pa.list_(_arrow(parts[0], name))
    assert kind in (str, uuid.UUID) or whole is Literal or isinstance(kind, type), kind
    return pa.string()


def _arrow_fields(row_type: Any) -> dict[str, Any]:
    return {name: _arrow(kind, name) for name, kind in fields_of(row_type).items()}
