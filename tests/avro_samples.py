"""Avro schemas with values: as fastavro writes them, and as columns have them."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, NamedTuple

import fastavro
from hypothesis import strategies as st

from kafkacodec.records._varint import encode_varint

Schema = Any


class Sample(NamedTuple):
    """A schema, the values that fastavro takes, and those that a column gives."""

    schema: Schema
    written: list[Any]
    read: list[Any]


def encoded(schema: Schema, values: list[Any]) -> list[bytes]:
    """Each value as fastavro writes it."""
    parsed = fastavro.parse_schema(schema)
    found = []
    for value in values:
        file = io.BytesIO()
        fastavro.schemaless_writer(file, parsed, value)
        found.append(file.getvalue())
    return found


Types = tuple[Schema, st.SearchStrategy[tuple[Any, Any]], str]
"""A schema, pairs of a value as written and as read, and the field of a branch of this type."""


def _same(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, Any]]:
    return strategy.map(lambda value: (value, value))


_INTS = st.integers(-(2**31), 2**31 - 1)
_LONGS = st.integers(-(2**63), 2**63 - 1)
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)

_TIMES = st.times()
_LOCAL = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1))
_MOMENTS = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))


def _in_millis(moment: Any) -> Any:
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def _big_decimal(value: Decimal) -> bytes:
    """The bytes that Java's Conversions.BigDecimalConversion writes."""
    sign, digits, exponent = value.as_tuple()
    number = int("".join(map(str, digits))) * (-1 if sign else 1)
    unscaled = number.to_bytes(number.bit_length() // 8 + 1, signed=True)
    return encode_varint(len(unscaled)) + unscaled + encode_varint(-int(exponent))


_PLAIN: list[Callable[[str], Types]] = [
    lambda name: ("null", _same(st.none()), "null"),
    lambda name: ("boolean", _same(st.booleans()), "boolean"),
    lambda name: ("int", _same(_INTS), "int"),
    lambda name: ("long", _same(_LONGS), "long"),
    lambda name: ("float", _same(st.floats(width=32, allow_nan=False)), "float"),
    lambda name: ("double", _same(st.floats(allow_nan=False)), "double"),
    lambda name: ("bytes", _same(st.binary(max_size=8)), "bytes"),
    lambda name: ("string", _same(_TEXT), "string"),
    lambda name: ({"type": "fixed", "name": name, "size": 3}, _same(st.binary(min_size=3, max_size=3)), name),
    lambda name: ({"type": "enum", "name": name, "symbols": ["A", "B"]}, _same(st.sampled_from(["A", "B"])), name),
    lambda name: ({"type": "int", "logicalType": "date"}, _same(st.dates()), "int"),
    lambda name: (
        {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 3},
        _same(st.decimals(-999999, 999999, places=3)),
        "bytes",
    ),
    lambda name: (
        {"type": "string", "logicalType": "uuid"},
        st.uuids().map(lambda value: (value, str(value))),
        "string",
    ),
    lambda name: (
        {"type": "fixed", "name": name, "size": 16, "logicalType": "uuid"},
        st.uuids().map(lambda value: (value.bytes, str(value))),
        name,
    ),
    lambda name: (
        {"type": "fixed", "name": name, "size": 40, "logicalType": "decimal", "precision": 76, "scale": 2},
        _same(st.decimals(Decimal("-9e70"), Decimal("9e70"), places=2)),
        name,
    ),
    lambda name: (
        {"type": "bytes", "logicalType": "big-decimal"},
        st.decimals(allow_nan=False, allow_infinity=False)
        .filter(lambda value: not value.is_zero() or not value.is_signed())
        .map(lambda value: (_big_decimal(value), str(value))),
        "bytes",
    ),
    lambda name: ({"type": "int", "logicalType": "time-millis"}, _same(_TIMES.map(_in_millis)), "int"),
    lambda name: ({"type": "long", "logicalType": "time-micros"}, _same(_TIMES), "long"),
    lambda name: ({"type": "long", "logicalType": "timestamp-micros"}, _same(_MOMENTS), "long"),
    lambda name: ({"type": "long", "logicalType": "timestamp-millis"}, _same(_MOMENTS.map(_in_millis)), "long"),
    lambda name: ({"type": "long", "logicalType": "local-timestamp-micros"}, _same(_LOCAL), "long"),
    lambda name: ({"type": "long", "logicalType": "local-timestamp-millis"}, _same(_LOCAL.map(_in_millis)), "long"),
]


_FIRST_LOGICAL = 10


@st.composite
def types(draw: st.DrawFn, name: str = "T", depth: int = 3, branch: bool = False) -> Types:
    """Any type but recursive ones; a branch of a union is neither null nor a union. `name` is for a named type."""
    kinds = ["plain"] if not depth else ["plain", "record", "array", "map"] + ["nullable", "union"] * (not branch)
    kind = draw(st.sampled_from(kinds))
    if kind == "plain":
        # fastavro takes values of other types for logical types, and chooses the branch by the value.
        return draw(st.sampled_from(_PLAIN[1:_FIRST_LOGICAL] if branch else _PLAIN))(name)
    if kind == "record":
        return draw(_records(name, depth))
    if kind in ("nullable", "union"):
        return draw(_unions(name, depth, 1 if kind == "nullable" else 3))
    inner, values, _ = draw(types(f"{name}_i", depth - 1))
    if kind == "array":
        return {"type": "array", "items": inner}, _pairs(st.lists(values, max_size=3), list), "array"
    return {"type": "map", "values": inner}, st.dictionaries(_TEXT, values, max_size=3).map(_map_pair), "map"


def _pairs(strategy: st.SearchStrategy[Any], make: Callable[[Any], Any]) -> st.SearchStrategy[tuple[Any, Any]]:
    return strategy.map(lambda pairs: (make(pair[0] for pair in pairs), make(pair[1] for pair in pairs)))


def _map_pair(pairs: dict[str, tuple[Any, Any]]) -> tuple[Any, Any]:
    return {k: v[0] for k, v in pairs.items()}, [(k, v[1]) for k, v in pairs.items()]


@st.composite
def _records(draw: st.DrawFn, name: str, depth: int) -> Types:
    fields = [draw(types(f"{name}_{i}", depth - 1)) for i in range(draw(st.integers(0, 4)))]
    schema = {"type": "record", "name": name, "fields": [{"name": f"f{i}", "type": f[0]} for i, f in enumerate(fields)]}
    values = st.tuples(*(f[1] for f in fields)).map(
        lambda pairs: ({f"f{i}": p[0] for i, p in enumerate(pairs)}, {f"f{i}": p[1] for i, p in enumerate(pairs)})
    )
    return schema, values, name


@st.composite
def _unions(draw: st.DrawFn, name: str, depth: int, most: int) -> Types:
    branches: dict[str, Types] = {}
    for i in range(draw(st.integers(1, most))):
        branch = draw(types(f"{name}_{i}", depth - 1, branch=True))
        if all(branch[2] != other[2] for other in branches.values()):
            branches.setdefault(_python_kind(branch[0]), branch)  # fastavro chooses the branch by the value
    return _union(draw, list(branches.values()))


def _union(draw: st.DrawFn, branches: list[Types]) -> Types:
    nullable = len(branches) == 1 or draw(st.booleans())
    schema = [b[0] for b in branches]
    if nullable:
        schema.insert(draw(st.integers(0, len(schema))), "null")
    values = [_branch(b, branches) for b in branches] + ([_same(st.none())] if nullable else [])
    return schema, st.one_of(values), "union"


def _branch(chosen: Types, branches: list[Types]) -> st.SearchStrategy[tuple[Any, Any]]:
    if len(branches) == 1:
        return chosen[1]
    return chosen[1].map(lambda pair: (pair[0], {b[2]: pair[1] if b is chosen else None for b in branches}))


def _python_kind(schema: Schema) -> str:
    kind = schema if isinstance(schema, str) else schema["type"]
    groups = {
        "int": "number", "long": "number", "float": "number", "double": "number", "boolean": "number",
        "fixed": "bytes", "enum": "string", "map": "record", "bytes": "bytes",
        "array": "bytes",  # b"" is an empty array too
    }  # fmt: skip
    return groups.get(kind, kind)


@st.composite
def samples(draw: st.DrawFn) -> Sample:
    """A schema and some values."""
    schema, values, _ = draw(types())
    pairs = draw(st.lists(values, max_size=5))
    return Sample(schema, [pair[0] for pair in pairs], [pair[1] for pair in pairs])
