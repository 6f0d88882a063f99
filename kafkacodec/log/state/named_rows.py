"""Lists of named tuples that are shown as tables and become tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from kafkacodec.records.columns import import_extra
from kafkacodec.records.plan import DEFAULT_MAX_TOTAL_BYTES
from kafkacodec.shown import cell_text, counted, html_table

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

Row = TypeVar("Row", bound=tuple[Any, ...])

_SHOWN_ROWS = 50


class NamedRows(list[Row]):
    """A list of named tuples of one class.

    Class attributes:
        row_type: the class.
        schema: the name of the schema of their table in `kafkacodec.log.state.table_schemas`.
    """

    row_type: ClassVar[Any]
    schema: ClassVar[str]

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        super().__init__(rows)

    @staticmethod
    def cells(row: Any) -> dict[str, Any]:
        """The values of a row of the table, by column."""
        raise NotImplementedError

    def to_arrow(self) -> pa.Table:
        """The rows as a ``pyarrow.Table``, as `kafkacodec.log.offsets_table` and `groups_table` make it."""
        import_extra("pyarrow")
        from kafkacodec.log.state import table_schemas

        rows, schema = map(self.cells, self), getattr(table_schemas, self.schema)
        return table_schemas.table_of(rows, schema, DEFAULT_MAX_TOTAL_BYTES)

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a ``pandas.DataFrame``. Needs pandas and pyarrow."""
        import_extra("pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """The rows as a ``polars.DataFrame``. Needs polars and pyarrow."""
        return import_extra("polars").DataFrame(self.to_arrow())

    def _repr_html_(self) -> str:
        shown: list[Any] = self[:_SHOWN_ROWS]
        rows = ([cell_text(cell, _kind(name)) for name, cell in row._asdict().items()] for row in shown)
        more = f", the first {_SHOWN_ROWS} of which are" if len(self) > _SHOWN_ROWS else ""
        return html_table(f"{type(self).__name__}: {counted(len(self), 'row')}{more}", self.row_type._fields, rows)


def _kind(name: str) -> str:
    return "timestamp" if name.endswith("timestamp") else ""
