"""Tables of a consumer with keys and values as typed columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from kafkacodec.errors import DecodeError, SchemaError
from kafkacodec.lazy import import_extra
from kafkacodec.records.columns import RecordColumns

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkacodec.values.decoding import ValueDecoder
    from kafkacodec.values.framing import Part
    from kafkacodec.values.record_values import RecordValues

__all__ = ["Typing", "reader_of", "typing_of"]

_MOST_WAITED: Final = 64 << 20  # bytes of tables; a column may never have a value


class Typing:
    """Makes typed tables from tables of records."""

    def __init__(self, values: RecordValues) -> None:
        self._values = values

    def __call__(self, table: RecordColumns) -> pa.RecordBatch:
        """The typed table. Raises as `RecordValues.decoded` does."""
        return self._values.decoded(import_extra("pyarrow").record_batch(table))

    def before_error(self, table: RecordColumns) -> tuple[pa.RecordBatch, int, DecodeError | SchemaError | None]:
        """The typed rows before the first invalid key or value, their number, and the error.

        Raises an error that no row comes before, or that is about no single row.
        """
        found: DecodeError | SchemaError | None = None
        while True:
            try:
                return self(table), len(table), found
            except (DecodeError, SchemaError) as error:
                if not self._values.bad_row:
                    raise
                found, table = error.with_traceback(None), table[: self._values.bad_row]


def typing_of(names: tuple[str, ...], keys: ValueDecoder | None, values: ValueDecoder | None) -> Typing | None:
    """Return a function that makes typed tables from tables with these columns; None without decoders.

    Raises:
        TypeError: a decoder has the wrong type.
        ValueError: its column is not among the columns.
    """
    given: dict[Part, ValueDecoder | None] = {"key": keys, "value": values}
    decoders = {part: decoder for part, decoder in given.items() if decoder is not None}
    if not decoders:
        return None
    import_extra("pyarrow")
    from kafkacodec.values.decoding import ValueDecoder as Decoder
    from kafkacodec.values.record_values import RecordValues as Values

    for part, decoder in decoders.items():
        if not isinstance(decoder, Decoder):
            raise TypeError(f"{part}s must be a kafkacodec.values.ValueDecoder, not {type(decoder).__name__}")
        if part not in names:
            raise ValueError(f"{part}s decodes the column {part!r}, which is not among columns")
    return Typing(Values(decoders))


def reader_of(
    tables: Iterator[Any], nothing: RecordColumns, decoded: Callable[[RecordColumns], pa.RecordBatch] | None
) -> pa.RecordBatchReader:
    """A reader of tables, of one schema.

    Args:
        tables: the tables of a consumer. The first ones are read until every column has had a value, which has its
            type, but not more than `_MOST_WAITED` bytes.
        nothing: one of them without rows and without decoders.
        decoded: what `typing_of` returned for its decoders.
    """
    arrow = import_extra("pyarrow")
    first: list[Any] = []
    schema = (arrow.record_batch(nothing) if decoded is None else decoded(nothing)).schema
    room = _MOST_WAITED
    failed: Exception | None = None
    while decoded is not None and room > 0 and any(arrow.types.is_null(field.type) for field in schema):
        try:
            table = next(tables, None)
        except Exception as error:
            if not first:
                raise
            failed = error  # it comes after the tables before it
            break
        if table is None:
            break
        first.append(table)
        room -= table.nbytes
        pairs = zip(schema, table.schema, strict=True)
        schema = arrow.schema([new if arrow.types.is_null(old.type) else old for old, new in pairs])

    def batches() -> Iterator[pa.RecordBatch]:
        for table in chain(first, tables):
            batch = arrow.record_batch(table)
            for i, field in enumerate(batch.schema):
                if arrow.types.is_null(field.type):
                    batch = batch.set_column(i, schema.field(i), arrow.nulls(len(batch), schema.field(i).type))
            if batch.schema != schema:
                kinds = ", ".join(f"{field.name} of {field.type}" for field in batch.schema if field not in schema)
                raise SchemaError(f"a table has {kinds}, unlike the first one: give the decoder a reader_schema")
            yield batch
        if failed is not None:
            raise failed

    return arrow.RecordBatchReader.from_batches(schema, batches())
