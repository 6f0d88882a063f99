"""Schema resolution: columns of a writer's schema as columns of a reader's schema.

Source: "Schema Resolution" in the Avro specification, 1.12. Outside unions, names of records, enums and fixed types are
not compared, as Java does for records. What can fail for a value (a symbol or branch that the reader lacks, bytes that
are not text) is resolved value by value (`avro_convert`); all else is changed as whole columns.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkacodec.datatypes import replace
from kafkacodec.errors import SchemaError
from kafkacodec.values.avro.convert import PROMOTIONS, converter, default_column, matched_fields
from kafkacodec.values.avro.decode import AvroDecoder
from kafkacodec.values.avro.schema import AvroType
from kafkacodec.values.avro.types import arrow_type, column_of
from kafkacodec.values.columns import Decoded, spread
from kafkacodec.values.payloads import Payloads

__all__ = ["AvroResolver"]

Change = Callable[[pa.Array], pa.Array]


class _ByValue(Exception):
    """The types are resolved value by value."""


class AvroResolver:
    """Decodes values of the writer's schema to columns of the reader's.

    Attributes:
        type (pa.DataType): the type of the columns, `arrow_type` of the reader's schema.

    Raises:
        SchemaError: no value of the writer is one of the reader; the path names the field.
    """

    def __init__(self, writer: AvroType, reader: AvroType) -> None:
        self.type = arrow_type(reader)
        self._reader = reader
        self._convert = converter(writer, reader)
        try:
            self._change: Change | None = _change(writer, reader)
        except (_ByValue, SchemaError):  # an error of one branch concerns the values that have it
            self._change, writer = None, _stored(writer)
        self._decoder = AvroDecoder(writer)

    def decode(self, payloads: Payloads, max_bytes: int) -> Decoded:
        """The values; one that is not a value of the writer's schema, or has none in the reader's, is null."""
        decoded = self._decoder.decode(payloads, max_bytes)
        if self._change is not None:
            return Decoded(self._change(decoded.column), decoded.problems)
        problems = dict(decoded.problems)
        values, good = [], []
        for row, value in enumerate(decoded.column.to_pylist()):
            if row in problems:
                continue
            try:
                values.append(self._convert(value))
                good.append(row)
            except ValueError as error:
                problems[row] = str(error)
        column = column_of(self._reader, values)
        return Decoded(spread(column, np.array(good, np.int64), len(decoded.column)), problems)


def _stored(kind: AvroType) -> AvroType:
    """The type without logical types."""
    fields = tuple(replace(f, type=_stored(f.type)) for f in kind.fields)
    parts = tuple(f.type for f in fields) if fields else tuple(map(_stored, kind.parts))
    return replace(kind, logical=None, fields=fields, parts=parts)


def _change(writer: AvroType, reader: AvroType) -> Change:
    """The change of columns. Raises `_ByValue` where it can fail for a value."""
    if writer.kind == "union" or reader.kind == "union":
        return _change_union(writer, reader)
    if writer.kind != reader.kind:
        promoted = reader.kind in PROMOTIONS.get(writer.kind, ())
        if not promoted or writer.kind == "bytes" or writer.logical or reader.logical:
            raise _ByValue
        target = arrow_type(reader)
        return lambda column: column.cast(target, safe=False)
    if writer.kind == "record":
        return _change_record(writer, reader)
    if writer.kind in ("array", "map"):
        return _change_list(writer, reader)
    if writer.kind == "enum":
        return _change_enum(writer, reader)
    if arrow_type(writer) != arrow_type(reader):
        raise _ByValue
    return lambda column: column


def _change_union(writer: AvroType, reader: AvroType) -> Change:
    inner = reader.nullable
    if inner is not None and (writer.nullable or writer).kind != "union":
        if writer.kind == "null":
            raise _ByValue
        return _change(writer.nullable or writer, inner)
    if _same(writer, reader):
        return lambda column: column
    raise _ByValue


def _same(writer: AvroType, reader: AvroType) -> bool:
    """Whether two types have the same columns, part by part."""
    if writer.kind != reader.kind or len(writer.parts) != len(reader.parts) or arrow_type(writer) != arrow_type(reader):
        return False
    if writer.kind == "enum" and not set(writer.symbols) <= set(reader.symbols):
        return False
    return all(map(_same, writer.parts, reader.parts))


def _change_record(writer: AvroType, reader: AvroType) -> Change:
    target = arrow_type(reader)
    places = {f.name: i for i, f in enumerate(writer.fields)}
    steps: list[tuple[int, Change]] = []
    for f, source in matched_fields(writer, reader):
        if source is None:
            steps.append((-1, _constant(default_column(f))))
        else:
            steps.append((places[source.name], _change(source.type, f.type)))

    def change(column: pa.Array) -> pa.Array:
        if not steps:
            return pa.array([{} if valid else None for valid in column.is_valid().to_pylist()], target)
        children = [step(column if place < 0 else column.field(place)) for place, step in steps]
        mask = column.is_null() if column.null_count else None
        return pa.StructArray.from_arrays(children, fields=list(target), mask=mask)

    return change


def _constant(value: pa.Array) -> Change:
    return lambda column: value.take(pa.array(np.zeros(len(column), np.int64)))


def _change_list(writer: AvroType, reader: AvroType) -> Change:
    target = arrow_type(reader)
    step = _change(writer.parts[0], reader.parts[0])
    is_map = writer.kind == "map"

    def change(column: pa.Array) -> pa.Array:
        mask = column.is_null() if column.null_count else None
        if is_map:
            return pa.MapArray.from_arrays(column.offsets, column.keys, step(column.items), type=target, mask=mask)
        return pa.ListArray.from_arrays(column.offsets, step(column.values), type=target, mask=mask)

    return change


def _change_enum(writer: AvroType, reader: AvroType) -> Change:
    unknown = [symbol for symbol in writer.symbols if symbol not in reader.symbols]
    if not unknown:
        return lambda column: column
    if reader.default_symbol is None:
        raise _ByValue
    replaced, default = pa.array(unknown), pa.scalar(reader.default_symbol)
    return lambda column: pc.if_else(pc.and_(pc.is_in(column, replaced), column.is_valid()), default, column)
