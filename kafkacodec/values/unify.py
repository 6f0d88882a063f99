"""One Arrow type for columns of several schemas, and columns changed to it."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from kafkacodec.errors import SchemaError
from kafkacodec.values.times import time_texts

__all__ = ["conformed", "nullable", "unified"]

# Types of numbers by what they can hold: each holds those before it.
_NUMBERS = ["int32", "int64", "float", "double"]


def nullable(kind: pa.DataType) -> pa.DataType:
    """The type with nullable fields only."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, nullable(f.type)) for f in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, nullable(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(nullable(kind.value_type))
    return kind


def unified(first: pa.DataType, second: pa.DataType) -> pa.DataType:
    """A type that has the values of both: all fields of structs, the wider of two numbers.

    Raises:
        SchemaError: there is none; the path names the field.
    """
    if first == second or pa.types.is_null(second):
        return first
    if pa.types.is_null(first):
        return second
    if pa.types.is_struct(first) and pa.types.is_struct(second):
        return _structs(first, second)
    if pa.types.is_map(first) and pa.types.is_map(second) and first.key_type == second.key_type:
        return pa.map_(first.key_type, _within("{}", first.item_type, second.item_type))
    if pa.types.is_list(first) and pa.types.is_list(second):
        return pa.list_(_within("[]", first.value_type, second.value_type))
    if str(first) in _NUMBERS and str(second) in _NUMBERS:
        return max(first, second, key=lambda kind: _NUMBERS.index(str(kind)))
    raise SchemaError(f"schemas of this column have both {first} and {second} here")


def _within(place: str, first: pa.DataType, second: pa.DataType) -> pa.DataType:
    try:
        return unified(first, second)
    except SchemaError as error:
        raise SchemaError(error.reason, path=f"{place}.{error.path}" if error.path else place) from None


def _structs(first: pa.DataType, second: pa.DataType) -> pa.DataType:
    others = {f.name: f.type for f in second}
    fields = [pa.field(f.name, _within(f.name, f.type, others.pop(f.name, pa.null()))) for f in first]
    return pa.struct(fields + [pa.field(name, kind) for name, kind in others.items()])


def conformed(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """The column in a type that `unified` or `nullable` made of its own."""
    if column.type == kind:
        return column
    mask = column.is_null() if column.null_count else None
    if pa.types.is_null(column.type):
        return pa.nulls(len(column), kind)
    if pa.types.is_struct(kind):
        if not kind.num_fields:
            return column
        names = {f.name: i for i, f in enumerate(column.type)}
        children = [
            conformed(column.field(names[f.name]), f.type) if f.name in names else pa.nulls(len(column), f.type)
            for f in kind
        ]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=mask)
    if pa.types.is_map(kind):
        items = conformed(column.items, kind.item_type)
        return pa.MapArray.from_arrays(column.offsets, column.keys, items, type=kind, mask=mask)
    if pa.types.is_list(kind):
        return pa.ListArray.from_arrays(column.offsets, conformed(column.values, kind.value_type), type=kind, mask=mask)
    if pa.types.is_string(kind) and (pa.types.is_timestamp(column.type) or pa.types.is_date32(column.type)):
        return pc.replace_substring(time_texts(column), " ", "T")
    return column.cast(kind, safe=False)
