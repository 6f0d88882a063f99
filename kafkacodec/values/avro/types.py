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

__all__ = ["arrow_type", "branch_names", "column_of", "plain_default"]

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

    Numbers, text and bytes are as Avro stores them, without logical types; bytes may be text of Latin-1, as in JSON.
    A record is a dict, a map a list of pairs or a dict, an enum its symbol, and a value of a union with several
    branches a pair of the branch's field name and the value.
    """
    if kind.kind == "record":
        columns = [column_of(f.type, [None if v is None else v[f.name] for v in values]) for f in kind.fields]
        return _struct(columns, arrow_type(kind), values)
    if kind.kind == "union":
        inner = kind.nullable
        return column_of(inner, values) if inner is not None else _branches(kind, values)
    if kind.kind == "array":
        offsets, items = _flat(values, list)
        return pa.ListArray.from_arrays(
            offsets, column_of(kind.parts[0], items), type=arrow_type(kind), mask=_nulls(values)
        )
    if kind.kind == "map":
        offsets, pairs = _flat(values, lambda value: list(value.items()) if isinstance(value, dict) else value)
        items = column_of(kind.parts[0], [value for _, value in pairs])
        keys = pa.array([key for key, _ in pairs], pa.string())
        return pa.MapArray.from_arrays(offsets, keys, items, type=arrow_type(kind), mask=_nulls(values))
    return _leaf(kind, values)


def _nulls(values: Sequence[Any]) -> pa.Array:
    return pa.array([value is None for value in values], pa.bool_())


def _struct(columns: list[pa.Array], kind: pa.DataType, values: Sequence[Any]) -> pa.Array:
    if not columns:
        return pa.array([None if value is None else {} for value in values], kind)
    return pa.StructArray.from_arrays(columns, fields=list(kind), mask=_nulls(values))


def _branches(union: AvroType, values: Sequence[Any]) -> pa.Array:
    columns = [
        column_of(part, [v[1] if v is not None and v[0] == name else None for v in values])
        for name, part in branch_names(union)
    ]
    return _struct(columns, arrow_type(union), values)


def _flat(values: Sequence[Any], items_of: Callable[[Any], list[Any]]) -> tuple[pa.Array, list[Any]]:
    """The offsets of lists and all their items."""
    lists = [[] if value is None else items_of(value) for value in values]
    offsets = np.zeros(len(lists) + 1, np.int32)
    np.cumsum([len(each) for each in lists], out=offsets[1:])
    return pa.array(offsets), [item for each in lists for item in each]


def _leaf(kind: AvroType, values: Sequence[Any]) -> pa.Array:
    target = arrow_type(kind)
    if kind.kind in ("bytes", "fixed"):
        values = [value.encode("latin-1") if isinstance(value, str) else value for value in values]
    if kind.logical == "decimal":
        return decimals(values, target)
    stored = _PLAIN.get(kind.kind) or pa.binary(kind.size)
    return from_stored(pa.array(values, stored), kind.logical, target)


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
    return default


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
