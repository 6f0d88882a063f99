"""Tables of a consumer with keys and values as typed columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from kafkacodec.errors import SchemaError
from kafkacodec.lazy import import_extra
from kafkacodec.records.columns import RecordColumns

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkacodec.values.decoding import ValueDecoder
    from kafkacodec.values.framing import Part

__all__ = ["reader_of", "typing_of"]

_MOST_WAITED: Final = 64 << 20  # bytes of tables; a column may never have a value


def typing_of(
    names: tuple[str, ...], keys: ValueDecoder | None, values: ValueDecoder | None
) -> Callable[[RecordColumns], pa.RecordBatch] | None:
    """Return a function that makes typed tables from tables with these columns; None without decoders.

    Raises:
        TypeError: a decoder has the wrong type.
        ValueError: its column is not among the columns.
    """
    given: dict[Part, ValueDecoder | None] = {"key": keys, "value": values}
    decoders = {part: decoder for part, decoder in given.items() if decoder is not None}
    if not decoders:
        return None
    arrow = import_extra("pyarrow")
    from kafkacodec.values.decoding import ValueDecoder as Decoder
    from kafkacodec.values.record_values import RecordValues

    for part, decoder in decoders.items():
        if not isinstance(decoder, Decoder):
            raise TypeError(f"{part}s must be a kafkacodec.values.ValueDecoder, not {type(decoder).__name__}")
        if part not in names:
            raise ValueError(f"{part}s decodes the column {part!r}, which is not among columns")
    typed = RecordValues(decoders)
    return lambda table: typed.decoded(arrow.record_batch(table))


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
    while decoded is not None and room > 0 and any(arrow.types.is_null(field.type) for field in schema):
        table = next(tables, None)
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

    return arrow.RecordBatchReader.from_batches(schema, batches())
