"""Schema resolution value by value: conversion from a writer's schema to a reader's schema.

Source: "Schema Resolution" in the Avro specification, 1.12.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from kafkacodec.errors import SchemaError
from kafkacodec.values.avro.logical import big_decimal_text
from kafkacodec.values.avro.schema import MISSING, AvroField, AvroType
from kafkacodec.values.avro.types import branch_names, column_of, plain_default

__all__ = ["Convert", "converter", "default_column", "matched_fields"]

Convert = Callable[[Any], Any]
"""The conversion of a value from columns without logical types to one for `column_of`. ValueError: it has none."""

# Kind of the writer -> kinds of readers that it is promoted to.
PROMOTIONS = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}


def _within(error: SchemaError, place: str) -> SchemaError:
    return SchemaError(error.reason, path=f"{place}.{error.path}" if error.path else place)


def _mismatch(writer: AvroType, reader: AvroType) -> SchemaError:
    return SchemaError(f"the reader's {reader.label} cannot read the writer's {writer.label}")


def matched_fields(writer: AvroType, reader: AvroType) -> list[tuple[AvroField, AvroField | None]]:
    """The reader's fields, each with the writer's field of that name, or of an alias."""
    by_name = {f.name: f for f in writer.fields}
    found = []
    for f in reader.fields:
        names = [name for name in (f.name, *sorted(f.aliases)) if name in by_name]
        if not names and f.default is MISSING:
            raise SchemaError("the writer has no such field, and the reader no default for it", path=f.name)
        found.append((f, by_name[names[0]] if names else None))
    return found


def _branch_of(writer: AvroType, union: AvroType) -> AvroType:
    """The branch of the reader's union for a value of the writer: of its type and name, else the first that fits."""

    def rank(part: AvroType) -> int:
        if part.kind != writer.kind:
            return 2 if part.kind in PROMOTIONS.get(writer.kind, ()) else 3
        if not writer.name:
            return 0
        aliases = {alias.rpartition(".")[2] for alias in part.aliases}
        return 0 if part.label == writer.label or writer.label in aliases else 1 if writer.kind == "record" else 3

    best = min(union.parts, key=rank)
    if rank(best) == 3:
        raise _mismatch(writer, union)
    return best


def default_column(field: AvroField) -> pa.Array:
    """The default of a field as a column of one row."""
    try:
        column = column_of(field.type, [plain_default(field.type, field.default)])
        column.validate(full=True)
        return column
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise SchemaError(f"the default is not a value of the field: {error}", path=field.name) from None


def converter(writer: AvroType, reader: AvroType) -> Convert:
    """The function that converts one value of the writer.

    Raises:
        SchemaError: no value can be converted.
    """
    if writer.kind == "union":
        return _union_converter(writer, reader)
    if reader.kind == "union":
        part = _branch_of(writer, reader)
        step = converter(writer, part)
        if part.kind == "null" or reader.nullable is not None:
            return step
        name = next(name for name, branch in branch_names(reader) if branch is part)
        return lambda value: (name, step(value))
    if writer.kind != reader.kind:
        return _promotion(writer, reader)
    if writer.kind == "record":
        return _record_converter(writer, reader)
    if writer.kind == "array":
        item = converter(writer.parts[0], reader.parts[0])
        return lambda value: [item(each) for each in value]
    if writer.kind == "map":
        item = converter(writer.parts[0], reader.parts[0])
        return lambda value: [(key, item(each)) for key, each in value]
    if writer.kind == "enum":
        return _enum_converter(reader)
    return _plain_converter(writer, reader)


def _plain_converter(writer: AvroType, reader: AvroType) -> Convert:
    if writer.kind == "fixed" and writer.size != reader.size:
        raise SchemaError(f"the reader's fixed of {reader.size} bytes cannot read the writer's of {writer.size}")
    if {writer.logical, reader.logical} == {"decimal"} and (writer.scale, writer.precision) != (
        reader.scale,
        reader.precision,
    ):
        raise SchemaError("the decimals of writer and reader have another precision or scale")
    return _checked(reader)


_DAYS = {"time-millis": 86_400_000, "time-micros": 86_400_000_000}


def _checked(reader: AvroType) -> Convert:
    """The value itself, if it is one of the reader's logical type."""
    if reader.logical == "decimal":
        return _decimal(reader)
    if reader.logical == "big-decimal":
        return lambda value: (big_decimal_text(value), value)[1]
    if reader.logical in _DAYS:
        return lambda value: _time(value, _DAYS[reader.logical or ""])
    return lambda value: value


def _time(value: int, day: int) -> int:
    if not 0 <= value < day:
        raise ValueError(f"time {value} is not within a day of {day}")
    return value


def _decimal(reader: AvroType) -> Convert:
    """Checks that bytes are a decimal of the reader's precision."""
    limit = 10**reader.precision

    def convert(value: bytes) -> bytes:
        if not value or abs(int.from_bytes(value, signed=True)) >= limit:
            raise ValueError(f"bytes that are not a decimal of {reader.precision} digits")
        return value

    return convert


def _promotion(writer: AvroType, reader: AvroType) -> Convert:
    if reader.kind not in PROMOTIONS.get(writer.kind, ()):
        raise _mismatch(writer, reader)
    promote, check = _PROMOTE[reader.kind], _checked(reader)
    return lambda value: check(promote(value))


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise ValueError("bytes that are not UTF-8, for the reader's string") from None


_PROMOTE: dict[str, Convert] = {"float": float, "double": float, "string": _text, "bytes": str.encode, "long": int}


def _record_converter(writer: AvroType, reader: AvroType) -> Convert:
    steps: list[tuple[str, str | None, Any]] = []
    for f, source in matched_fields(writer, reader):
        if source is None:
            default_column(f)
            steps.append((f.name, None, plain_default(f.type, f.default)))
            continue
        try:
            steps.append((f.name, source.name, converter(source.type, f.type)))
        except SchemaError as error:
            raise _within(error, f.name) from None

    def convert(value: dict[str, Any]) -> dict[str, Any]:
        found = {}
        for name, source, step in steps:
            try:
                found[name] = step if source is None else step(value[source])
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
        return found

    return convert


def _enum_converter(reader: AvroType) -> Convert:
    symbols, default = frozenset(reader.symbols), reader.default_symbol

    def convert(value: str) -> str:
        if value in symbols:
            return value
        if default is None:
            raise ValueError(f"the reader's enum {reader.label} lacks the symbol {value!r}")
        return default

    return convert


def _union_converter(writer: AvroType, reader: AvroType) -> Convert:
    steps: dict[str | None, Convert | SchemaError] = {}
    names = {id(part): name for name, part in branch_names(writer)}
    for part in writer.parts:
        try:
            steps[None if part.kind == "null" else names[id(part)]] = converter(part, reader)
        except SchemaError as error:
            steps[None if part.kind == "null" else names[id(part)]] = error
    failures = [step for step in steps.values() if isinstance(step, SchemaError)]
    if len(failures) == len(steps):
        raise failures[0]
    single = writer.nullable

    def convert(value: Any) -> Any:
        if value is None:
            name = None
        elif single is not None:
            name = names[id(single)]
        else:
            name, value = next((each for each in value.items() if each[1] is not None), (None, None))
        step = steps[name]
        if isinstance(step, SchemaError):
            raise ValueError(str(step))
        return step(value)

    return convert
