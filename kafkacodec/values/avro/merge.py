"""One reader's schema for several writers: each field of any of them, of a type that fits all."""

from __future__ import annotations

from kafkacodec.datatypes import replace
from kafkacodec.errors import SchemaError
from kafkacodec.values.avro.convert import PROMOTIONS
from kafkacodec.values.avro.schema import AvroField, AvroType

__all__ = ["merged"]

_NULL = AvroType("null")


def merged(first: AvroType, second: AvroType) -> AvroType:
    """A type that reads the values of both. A field that only one has is nullable.

    Raises:
        SchemaError: two parts have no type in common; the path names the field.
    """
    if first.kind == "null" or second.kind == "null" or "union" in (first.kind, second.kind):
        return _unions(first, second)
    if first.kind != second.kind:
        return _promoted(first, second)
    if first.kind == "record":
        return _records(first, second)
    if first.kind in ("array", "map"):
        return replace(first, parts=(_within("[]", first.parts[0], second.parts[0]),))
    if first.kind == "enum":
        new = [symbol for symbol in second.symbols if symbol not in first.symbols]
        return replace(first, symbols=(*first.symbols, *new))
    if first.size != second.size or (first.precision, first.scale) != (second.precision, second.scale):
        raise SchemaError(f"{first.label} has different sizes in schemas of this column")
    return first if first.logical == second.logical else replace(first, logical=None, precision=0, scale=0)


def _promoted(first: AvroType, second: AvroType) -> AvroType:
    for narrow, wide in ((first, second), (second, first)):
        if wide.kind in PROMOTIONS.get(narrow.kind, ()) and wide.kind != "string":
            return replace(wide, logical=None, precision=0, scale=0)
    raise SchemaError(f"schemas of this column have both {first.label} and {second.label} here")


def _within(place: str, first: AvroType, second: AvroType) -> AvroType:
    try:
        return merged(first, second)
    except SchemaError as error:
        raise SchemaError(error.reason, path=f"{place}.{error.path}" if error.path else place) from None


def _records(first: AvroType, second: AvroType) -> AvroType:
    others = {f.name: f for f in second.fields}
    fields = [
        replace(f, type=_within(f.name, f.type, others.pop(f.name).type)) if f.name in others else _optional(f)
        for f in first.fields
    ]
    fields += [_optional(f) for f in others.values()]
    return replace(first, fields=tuple(fields), parts=tuple(f.type for f in fields))


def _optional(field: AvroField) -> AvroField:
    return replace(field, type=_unions(_NULL, field.type), default=None)


def _unions(first: AvroType, second: AvroType) -> AvroType:
    sides = [_branches(first), _branches(second)]
    plain = [[part for part in side if part.kind != "null"] for side in sides]
    single = len(plain[0]) == len(plain[1]) == 1
    inner = [merged(plain[0][0], plain[1][0])] if single else _combined(plain[0], plain[1])
    has_null = any(part.kind == "null" for side in sides for part in side)
    parts = ([_NULL] if has_null else []) + inner
    return parts[0] if len(parts) == 1 else AvroType("union", parts=tuple(parts))


def _combined(first: list[AvroType], second: list[AvroType]) -> list[AvroType]:
    """All branches; those of the same kind and name become one. Two kinds cannot share a full name."""
    found = {(part.kind, part.label): part for part in first}
    kinds = {part.name: part.kind for part in first if part.name}
    for part in second:
        if kinds.get(part.name, part.kind) != part.kind:
            raise SchemaError(f"schemas of this column have {part.name} as {kinds[part.name]} and as {part.kind}")
        key = part.kind, part.label
        found[key] = merged(found[key], part) if key in found else part
    return list(found.values())


def _branches(kind: AvroType) -> tuple[AvroType, ...]:
    return kind.parts if kind.kind == "union" else (kind,)
