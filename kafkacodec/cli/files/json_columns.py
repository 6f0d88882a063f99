"""Columns as values that JSON can hold."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from kafkacodec.cli.output import json_tree

__all__ = ["json_values", "nested_values"]


def json_values(column: pa.Array) -> list[Any]:
    """The values: bytes as `output.json_value` has them, maps as objects, other types as text.

    A column of timestamps is milliseconds, as in records; timestamps inside structs are text.
    """
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("ms"), safe=False).cast(pa.int64())
    return nested_values(column)


def nested_values(column: pa.Array) -> list[Any]:
    """The values of keys or values: as `json_values`, but timestamps are text in ISO 8601."""
    if not _needs_conversion(column.type):
        return column.to_pylist()  # type: ignore[no-any-return]
    return [json_tree(_objects(value, column.type)) for value in _spelt(column).to_pylist()]


def _needs_conversion(kind: pa.DataType) -> bool:
    return not (pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_boolean(kind))


def _spelt(column: pa.Array) -> pa.Array:
    """The column with text for times and decimals: not all of them have Python values."""
    from kafkacodec.values.unify import conformed

    return conformed(column, _spelt_type(column.type))


def _spelt_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, _spelt_type(f.type)) for f in kind])
    if pa.types.is_map(kind):
        return pa.map_(_spelt_type(kind.key_type), _spelt_type(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(_spelt_type(kind.value_type))
    if pa.types.is_duration(kind):
        return pa.int64()
    return pa.string() if pa.types.is_temporal(kind) or pa.types.is_decimal(kind) else kind


def _objects(value: Any, kind: pa.DataType) -> Any:
    """The value with objects for maps, which are lists of pairs."""
    if value is None or not pa.types.is_nested(kind):
        return value
    if pa.types.is_struct(kind):
        return {f.name: _objects(value[f.name], f.type) for f in kind}
    if pa.types.is_map(kind):
        return {name: _objects(inner, kind.item_type) for name, inner in value}
    return [_objects(item, kind.value_type) for item in value]
