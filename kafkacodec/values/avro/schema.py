"""Avro schemas: from JSON to a tree of types without references by name.

Source: "Schema Declaration" and "Logical Types" in the Avro specification, 1.12. A logical type whose attributes are
invalid, or that is unknown, is ignored, as the specification says.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from kafkacodec.datatypes import dataclass, field
from kafkacodec.errors import SchemaError

__all__ = ["MISSING", "AvroField", "AvroType", "parse_avro"]

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")

MAX_TYPES = 10_000
"""Limit on the types of a schema, with each named type counted where it is used."""

MAX_DEPTH = 60
"""Limit on the levels of nested types."""

MAX_FIXED_BYTES = 1 << 24
"""Limit on the size of a fixed type, in bytes."""

# Logical type -> the types that it annotates. Those of fixed types and decimals are checked one by one.
_LOGICAL = {
    "date": ("int",),
    "time-millis": ("int",),
    "time-micros": ("long",),
    "timestamp-millis": ("long",),
    "timestamp-micros": ("long",),
    "timestamp-nanos": ("long",),
    "local-timestamp-millis": ("long",),
    "local-timestamp-micros": ("long",),
    "local-timestamp-nanos": ("long",),
    "uuid": ("string",),
    "big-decimal": ("bytes",),
}

# Logical type -> the size of the fixed type that it annotates.
_LOGICAL_FIXED = {"uuid": 16, "duration": 12}

MAX_PRECISION = 76
"""The most digits of a decimal in Arrow."""


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


MISSING = _Missing()
"""Stands for the default of a field without one."""


@dataclass(frozen=True, slots=True)
class AvroField:
    """A field of a record."""

    name: str
    type: AvroType
    aliases: frozenset[str]
    default: Any


@dataclass(frozen=True, slots=True, eq=False)
class AvroType:
    """A type, with its parts in place of their names.

    Attributes:
        kind (str): a primitive type, ``fixed``, ``enum``, ``record``, ``array``, ``map`` or ``union``.
        name (str): full name of a fixed, enum or record.
        parts (tuple[AvroType, ...]): types of the fields, of the items or values, or the branches.
        logical (str | None): the logical type, if it is known and valid.
        count (int): number of types in it, with itself.
        depth (int): levels of types in it, with itself.
        is_empty (bool): its values have no bytes.
    """

    kind: str
    name: str = ""
    aliases: frozenset[str] = frozenset()
    parts: tuple[AvroType, ...] = ()
    fields: tuple[AvroField, ...] = ()
    symbols: tuple[str, ...] = ()
    default_symbol: str | None = None
    size: int = 0
    logical: str | None = None
    precision: int = 0
    scale: int = 0
    count: int = field(init=False, default=1)
    depth: int = field(init=False, default=1)
    is_empty: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", 1 + sum(part.count for part in self.parts))
        object.__setattr__(self, "depth", 1 + max((part.depth for part in self.parts), default=0))
        empty = (
            self.kind == "null"
            or (self.kind == "fixed" and self.size == 0)
            or (self.kind == "record" and all(part.is_empty for part in self.parts))
        )
        object.__setattr__(self, "is_empty", empty)

    @property
    def label(self) -> str:
        """The name of the type as a branch of a union: the last part of its full name, or its kind."""
        return self.name.rpartition(".")[2] or self.kind

    @property
    def nullable(self) -> AvroType | None:
        """The other branch of a union of null and one more type; None for other types."""
        if self.kind != "union" or len(self.parts) != 2 or not any(part.kind == "null" for part in self.parts):
            return None
        return next((part for part in self.parts if part.kind != "null"), None)


def parse_avro(text: str, references: Sequence[str] = ()) -> AvroType:
    """The type that a schema describes.

    Args:
        text: the schema as JSON; a bare type name is allowed too.
        references: schemas with named types that it uses, each after those that it uses itself.

    Raises:
        SchemaError: it is not an Avro schema, or it is recursive or too large; the path names the field.
    """
    parser = _Parser()
    for reference in references:
        parser.parse(_json(reference))
    return parser.parse(_json(text))


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise SchemaError("the schema is nested too deeply") from None
    except ValueError as error:
        if text.strip() in PRIMITIVES:
            return text.strip()
        raise SchemaError(f"the schema is not JSON: {error}") from None


class _Parser:
    """Replaces names by types. Named types are kept, so that a later schema can use them."""

    def __init__(self) -> None:
        self.named: dict[str, AvroType | None] = {}  # None while the type is being parsed
        self.path: list[str] = []
        self.depth = 0

    def parse(self, schema: Any) -> AvroType:
        self.path, self.depth = [], 0
        return self._type(schema, "")

    def _fail(self, reason: str) -> SchemaError:
        return SchemaError(reason, path=".".join(self.path) or None)

    def _type(self, schema: Any, namespace: str) -> AvroType:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self._fail(f"the schema is nested more than {MAX_DEPTH} levels deep")
        if isinstance(schema, str):
            found = self._reference(schema, namespace)
        elif isinstance(schema, list):
            found = self._union(schema, namespace)
        elif isinstance(schema, dict):
            found = self._declaration(schema, namespace)
        else:
            raise self._fail(f"expected a type, not {json.dumps(schema)[:60]}")
        if found.depth > MAX_DEPTH:
            raise self._fail(f"the schema is nested more than {MAX_DEPTH} levels deep")
        if found.count > MAX_TYPES:
            raise self._fail(f"the schema has more than {MAX_TYPES} types")
        self.depth -= 1
        return found

    def _reference(self, name: str, namespace: str) -> AvroType:
        if name in PRIMITIVES:
            return AvroType(name)
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        full = full if full in self.named else name
        try:
            found = self.named[full]
        except KeyError:
            raise self._fail(f"unknown type {name!r}") from None
        if found is None:
            raise self._fail(f"{full} contains itself; columns cannot represent recursive types")
        return found

    def _union(self, branches: list[Any], namespace: str) -> AvroType:
        if not branches:
            raise self._fail("a union without branches")
        parts = tuple(self._type(branch, namespace) for branch in branches)
        names = [part.name or part.kind for part in parts]
        if any(part.kind == "union" for part in parts):
            raise self._fail("a union as a branch of a union")
        if len(set(names)) < len(names):
            raise self._fail(f"a union with twice the same branch: {', '.join(names[:10])}")
        return AvroType("union", parts=parts)

    def _declaration(self, schema: dict[str, Any], namespace: str) -> AvroType:
        kind = schema.get("type")
        if isinstance(kind, (dict, list)):
            return self._type(kind, namespace)
        if kind in ("record", "error"):
            return self._record(schema, namespace)
        if kind == "enum":
            return self._enum(schema, namespace)
        if kind == "fixed":
            return self._fixed(schema, namespace)
        if kind == "array":
            return AvroType("array", parts=(self._part(schema, "items", "[]", namespace),))
        if kind == "map":
            return AvroType("map", parts=(self._part(schema, "values", "{}", namespace),))
        if isinstance(kind, str):
            found = self._reference(kind, namespace)
            return AvroType(kind, **_logical(schema, kind, 0)) if kind in PRIMITIVES else found
        raise self._fail("a type without 'type'")

    def _part(self, schema: dict[str, Any], key: str, place: str, namespace: str) -> AvroType:
        if key not in schema:
            raise self._fail(f"a type without {key!r}")
        self.path.append(place)
        found = self._type(schema[key], namespace)
        self.path.pop()
        return found

    def _name(self, schema: dict[str, Any], namespace: str) -> tuple[str, str, frozenset[str]]:
        """The full name, its namespace and the full aliases."""
        name = schema.get("name")
        if not isinstance(name, str) or not name:
            raise self._fail(f"a {schema['type']} without a name")
        within = schema.get("namespace")
        within = namespace if within is None else within
        if not isinstance(within, str):
            raise self._fail("a namespace that is not text")
        full = name if "." in name or not within else f"{within}.{name}"
        if full in self.named or full in PRIMITIVES:
            raise self._fail(f"{full} is defined twice")
        within = full.rpartition(".")[0]
        return full, within, frozenset(a if "." in a or not within else f"{within}.{a}" for a in _texts(schema))

    def _record(self, schema: dict[str, Any], namespace: str) -> AvroType:
        name, within, aliases = self._name(schema, namespace)
        declared = schema.get("fields")
        if not isinstance(declared, list):
            raise self._fail(f"record {name} without fields")
        self.named[name] = None
        fields = tuple(self._field(each, within) for each in declared)
        if len({f.name for f in fields}) < len(fields):
            raise self._fail(f"record {name} has two fields of the same name")
        found = AvroType("record", name, aliases, tuple(f.type for f in fields), fields)
        self.named[name] = found
        return found

    def _field(self, schema: Any, namespace: str) -> AvroField:
        name = schema.get("name") if isinstance(schema, dict) else None
        if not isinstance(name, str) or "type" not in schema:
            raise self._fail("a field without name or type")
        self.path.append(name)
        kind = self._type(schema["type"], namespace)
        self.path.pop()
        return AvroField(name, kind, frozenset(_texts(schema)), schema.get("default", MISSING))

    def _enum(self, schema: dict[str, Any], namespace: str) -> AvroType:
        name, _, aliases = self._name(schema, namespace)
        symbols = schema.get("symbols")
        if not isinstance(symbols, list) or not symbols or not all(isinstance(s, str) for s in symbols):
            raise self._fail(f"enum {name} without symbols")
        default = schema.get("default")
        if default is not None and default not in symbols:
            raise self._fail(f"enum {name} has a default that is not one of its symbols")
        found = AvroType("enum", name, aliases, symbols=tuple(symbols), default_symbol=default)
        self.named[name] = found
        return found

    def _fixed(self, schema: dict[str, Any], namespace: str) -> AvroType:
        name, _, aliases = self._name(schema, namespace)
        size = schema.get("size")
        if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= MAX_FIXED_BYTES:
            raise self._fail(f"fixed {name} has the size {size!r}, not 0 to {MAX_FIXED_BYTES}")
        found = AvroType("fixed", name, aliases, size=size, **_logical(schema, "fixed", size))
        self.named[name] = found
        return found


def _texts(schema: Mapping[str, Any]) -> list[str]:
    """The aliases that are text."""
    aliases = schema.get("aliases")
    return [alias for alias in aliases if isinstance(alias, str)] if isinstance(aliases, list) else []


def _logical(schema: Mapping[str, Any], kind: str, size: int) -> dict[str, Any]:
    """The attributes of a valid logical type, or none."""
    logical = schema.get("logicalType")
    if logical == "decimal":
        return _decimal(schema, kind, size)
    if isinstance(logical, str) and (
        kind in _LOGICAL.get(logical, ()) or (kind == "fixed" and _LOGICAL_FIXED.get(logical) == size)
    ):
        return {"logical": logical}
    return {}


def _decimal(schema: Mapping[str, Any], kind: str, size: int) -> dict[str, Any]:
    """The attributes of a decimal, or none if they are invalid or exceed Arrow's decimals."""
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    if type(precision) is not int or type(scale) is not int:
        return {}
    if not 0 < precision <= MAX_PRECISION or not 0 <= scale <= precision:
        return {}
    if kind != "bytes" and not (kind == "fixed" and 10**precision < 1 << max(8 * size - 1, 0)):
        return {}
    return {"logical": "decimal", "precision": precision, "scale": scale}
