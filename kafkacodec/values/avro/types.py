"""The Arrow types of Avro types, and Arrow columns of plain Python values.

A union of null and one more type is that type with nulls. Any other union is a struct with a field for each branch but
null, named after its type; the field of the branch in use has the value, and the struct is null for the branch null.
An enum is a string; a duration is a struct of months, days and milliseconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from kafkacodec.values.avro.logical import DURATION, decimals, from_stored
from kafkacodec.values.avro.schema import MISSING, AvroType

__all__ = ["Maker", "arrow_type", "branch_names", "column_maker", "column_of", "plain_default"]

_PLAIN = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
}

_LOGICAL = {
    "date": pa.date32(),
    "time-millis": pa.time32("ms"),
    "time-micros": pa.time64("us"),
    "timestamp-millis": pa.timestamp("ms", "UTC"),
    "timestamp-micros": pa.timestamp("us", "UTC"),
    "timestamp-nanos": pa.timestamp("ns", "UTC"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "local-timestamp-micros": pa.timestamp("us"),
    "local-timestamp-nanos": pa.timestamp("ns"),
    "uuid": pa.string(),
    "big-decimal": pa.string(),
    "duration": DURATION,
}


def arrow_type(kind: AvroType) -> pa.DataType:
    """The type of a column of these values. All its fields are nullable."""
    if kind.logical == "decimal":
        decimal = pa.decimal128 if kind.precision <= 38 else pa.decimal256
        return decimal(kind.precision, kind.scale)
    if kind.logical is not None:
        return _LOGICAL[kind.logical]
    if kind.kind in _PLAIN:
        return _PLAIN[kind.kind]
    if kind.kind == "fixed":
        return pa.binary(kind.size)
    if kind.kind == "array":
        return pa.list_(arrow_type(kind.parts[0]))
    if kind.kind == "map":
        return pa.map_(pa.string(), arrow_type(kind.parts[0]))
    if kind.kind == "record":
        return pa.struct([pa.field(f.name, arrow_type(f.type)) for f in kind.fields])
    if (inner := kind.nullable) is not None:
        return arrow_type(inner)
    return pa.struct([pa.field(name, arrow_type(part)) for name, part in branch_names(kind)])


def branch_names(union: AvroType) -> list[tuple[str, AvroType]]:
    """The branches but null, each with its field's name: the type's name, or the full one where that is shared."""
    parts = [part for part in union.parts if part.kind != "null"]
    uses = Counter(part.label for part in parts)
    return [(part.label if uses[part.label] == 1 else part.name or part.kind, part) for part in parts]


def column_of(kind: AvroType, values: Sequence[Any]) -> pa.Array:
    """A column of plain Python values, with None for null.

    Numbers, text and bytes are as Avro stores them, without logical types. A record is a dict, a map a list of pairs or
    a dict, an enum its symbol, and a value of a union with several branches a pair of the branch's field name and the
    value.
    """
    return column_maker(kind)(values)


Maker = Callable[[Sequence[Any]], pa.Array]


def column_maker(kind: AvroType) -> Maker:
    """What makes columns as `column_of` does, for many calls."""
    target = arrow_type(kind)
    if _is_direct(kind):
        return lambda values: pa.array(values, target)
    if kind.kind == "record":
        return _record_maker(kind, target)
    if kind.kind == "union":
        inner = kind.nullable
        return column_maker(inner) if inner is not None else _branches_maker(kind, target)
    if kind.kind == "array":
        return _list_maker(kind, target)
    if kind.kind == "map":
        return _map_maker(kind, target)
    if kind.logical == "decimal":
        return lambda values: decimals(values, target)
    stored = _PLAIN.get(kind.kind) or pa.binary(kind.size)
    return lambda values: from_stored(pa.array(values, stored), kind.logical, target)


def _is_direct(kind: AvroType) -> bool:
    """Whether Arrow makes the column from plain values by itself."""
    if kind.kind in ("record", "array") or kind.nullable is not None:
        return all(map(_is_direct, kind.parts))
    if kind.kind in ("union", "map"):
        return False
    return kind.logical is None or (kind.logical in _LOGICAL and kind.kind in ("int", "long", "string"))


def _nulls(values: Sequence[Any]) -> pa.Array:
    return pa.array([value is None for value in values], pa.bool_())


def _record_maker(kind: AvroType, target: pa.DataType) -> Maker:
    makers = [(f.name, column_maker(f.type)) for f in kind.fields]

    def make(values: Sequence[Any]) -> pa.Array:
        columns = [each([None if v is None else v[name] for v in values]) for name, each in makers]
        return pa.StructArray.from_arrays(columns, fields=list(target), mask=_nulls(values))

    return make


def _branches_maker(union: AvroType, target: pa.DataType) -> Maker:
    makers = [(name, column_maker(part)) for name, part in branch_names(union)]
    if not makers:
        return lambda values: pa.array(values, target)  # all null

    def make(values: Sequence[Any]) -> pa.Array:
        columns = [each([v[1] if v is not None and v[0] == name else None for v in values]) for name, each in makers]
        return pa.StructArray.from_arrays(columns, fields=list(target), mask=_nulls(values))

    return make


def _list_maker(kind: AvroType, target: pa.DataType) -> Maker:
    items = column_maker(kind.parts[0])

    def make(values: Sequence[Any]) -> pa.Array:
        offsets, flat = _flat(values, list)
        return pa.ListArray.from_arrays(offsets, items(flat), type=target, mask=_nulls(values))

    return make


def _map_maker(kind: AvroType, target: pa.DataType) -> Maker:
    items = column_maker(kind.parts[0])

    def make(values: Sequence[Any]) -> pa.Array:
        offsets, pairs = _flat(values, lambda value: list(value.items()) if isinstance(value, dict) else value)
        keys = pa.array([key for key, _ in pairs], pa.string())
        return pa.MapArray.from_arrays(offsets, keys, items([v for _, v in pairs]), type=target, mask=_nulls(values))

    return make


def _flat(values: Sequence[Any], items_of: Callable[[Any], list[Any]]) -> tuple[pa.Array, list[Any]]:
    """The offsets of lists and all their items."""
    lists = [[] if value is None else items_of(value) for value in values]
    offsets = np.zeros(len(lists) + 1, np.int32)
    np.cumsum([len(each) for each in lists], out=offsets[1:])
    return pa.array(offsets), [item for each in lists for item in each]


def plain_default(kind: AvroType, default: Any) -> Any:
    """The default of a field, from its JSON, as `column_of` takes it. That of a union is of any of its branches.

    Raises:
        ValueError: it is not a value of the type.
    """
    if kind.kind == "union":
        return _plain_branch(kind, default)
    if kind.kind == "record":
        return {f.name: plain_default(f.type, _of_field(default, f.name, f.default)) for f in kind.fields}
    if kind.kind == "array":
        return [plain_default(kind.parts[0], item) for item in default]
    if kind.kind == "map":
        return [(key, plain_default(kind.parts[0], value)) for key, value in default.items()]
    if not _fits(kind, default):
        raise ValueError(f"default {default!r} is not a value of {kind.label}")
    return default.encode("latin-1") if kind.kind in ("bytes", "fixed") else default


def _of_field(default: Any, name: str, own: Any) -> Any:
    value = default.get(name, own)
    if value is MISSING:
        raise ValueError(f"default without a value of {name}")
    return value


def _plain_branch(union: AvroType, default: Any) -> Any:
    inner = union.nullable
    names = {id(part): name for name, part in branch_names(union)}
    for part in union.parts:
        if _fits(part, default):
            if part.kind == "null":
                return None
            return (
                plain_default(part, default) if inner is not None else (names[id(part)], plain_default(part, default))
            )
    raise ValueError(f"default {default!r} is not a value of any branch")


_JSON_TYPES: dict[str, tuple[type, ...]] = {
    "null": (type(None),),
    "boolean": (bool,),
    "int": (int,),
    "long": (int,),
    "float": (int, float),
    "double": (int, float),
    "bytes": (str,),
    "string": (str,),
    "fixed": (str,),
    "enum": (str,),
    "array": (list,),
    "map": (dict,),
    "record": (dict,),
}


def _fits(kind: AvroType, default: Any) -> bool:
    """Whether JSON of this type can be a default of the type."""
    if kind.kind == "union":
        return any(_fits(part, default) for part in kind.parts)
    if isinstance(default, bool) and kind.kind != "boolean":
        return False
    if isinstance(default, str) and kind.kind == "fixed":
        return len(default) == kind.size
    if not isinstance(default, _JSON_TYPES[kind.kind]):
        return False
    return kind.kind != "enum" or default in kind.symbols
