"""Tables of a consumer with keys and values as typed columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
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
    """Makes typed tables from tables of records.

    Attributes:
        fit: what is made of each typed table in the end, by which it may also be refused.
    """

    def __init__(self, values: RecordValues) -> None:
        self._values = values
        self.fit: Callable[[pa.RecordBatch], pa.RecordBatch] | None = None

    def __call__(self, table: RecordColumns) -> pa.RecordBatch:
        """The typed table. Raises as `RecordValues.decoded` does, and as `fit` does."""
        found = self._values.decoded(import_extra("pyarrow").record_batch(table))
        return found if self.fit is None else self.fit(found)

    def before_error(self, table: RecordColumns) -> tuple[pa.RecordBatch, int, DecodeError | SchemaError | None]:
        """The typed rows before the first invalid key or value, their number, and the error.

        Raises an error that no row comes before, or that is about no single row.
        """
        from kafkacodec.values.record_values import before_error

        return before_error(table, self, self._values)


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


def reader_of(tables: Iterator[Any], nothing: RecordColumns, typing: Typing | None) -> pa.RecordBatchReader:
    """A reader of tables, of one schema.

    Args:
        tables: the tables of a consumer, made with `typing`. The first ones are read until every column has had a
            value, which has its type, but not more than `_MOST_WAITED` bytes.
        nothing: one of them without rows and without decoders.
        typing: what `typing_of` returned for its decoders. It refuses a table of another schema while the consumer
            reads it, so that the position stays before it.
    """
    arrow = import_extra("pyarrow")
    if typing is None:
        return arrow.RecordBatchReader.from_batches(arrow.record_batch(nothing).schema, map(arrow.record_batch, tables))
    first: list[Any] = []
    schema, room = typing(nothing).schema, _MOST_WAITED
    failed: Exception | None = None
    while room > 0 and any(arrow.types.is_null(field.type) for field in schema):
        typing.fit = partial(_fitted, schema, False)
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
        schema = table.schema
    typing.fit = fit = partial(_fitted, schema, True)

    def batches() -> Iterator[pa.RecordBatch]:
        yield from map(fit, first)
        yield from tables
        if failed is not None:
            raise failed

    return arrow.RecordBatchReader.from_batches(schema, batches())


def _fitted(schema: pa.Schema, final: bool, batch: pa.RecordBatch) -> pa.RecordBatch:
    """A table with the types of a schema. Before it is final, a column that has had no value takes any type.

    Raises:
        SchemaError: a column has another type.
    """
    arrow = import_extra("pyarrow")
    for i, (field, own) in enumerate(zip(schema, batch.schema, strict=True)):
        if arrow.types.is_null(own.type):
            batch = batch.set_column(i, field, arrow.nulls(len(batch), field.type))
    kinds = [
        f"{own.name} of {own.type}"
        for field, own in zip(schema, batch.schema, strict=True)
        if own != field and (final or not arrow.types.is_null(field.type))
    ]
    if kinds:
        raise SchemaError(f"a table has {', '.join(kinds)}, unlike the first one: give the decoder a reader_schema")
    return batch
