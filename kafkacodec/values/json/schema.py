"""Conversion of JSON Schema to the types of columns.

An object with properties is a struct, one with only ``additionalProperties`` a map, an array with one schema for its
items a list; string, integer (int64), number (double) and boolean are what they are called. ``null`` beside one other
type makes no difference: all columns are nullable. What has no such type (several types, objects or arrays of anything,
recursive parts) is a string of JSON. Only types are checked, not formats, ranges or required properties.

Source: JSON Schema, drafts 4 to 2020-12.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

import pyarrow as pa

from kafkacodec.datatypes import NamedTuple, dataclass
from kafkacodec.errors import SchemaError
from kafkacodec.values.schemas import Schema

__all__ = ["TEXT", "JsonType", "parse_json_schema"]

MAX_TYPES = 10_000
MAX_DEPTH = 60


@dataclass(frozen=True, slots=True)
class JsonType:
    """The type of a column.

    Attributes:
        arrow (pa.DataType): the Arrow type.
        kind (str): ``struct``, ``map``, ``list``, ``string``, ``integer``, ``number``, ``boolean``, ``null``, or
            ``text`` for any JSON.
        fields (tuple[tuple[str, JsonType], ...]): the properties of a struct; the part of a map or list has no name.
    """

    arrow: pa.DataType
    kind: str
    fields: tuple[tuple[str, JsonType], ...] = ()

    @property
    def is_plain(self) -> bool:
        """Whether Arrow's own reader knows the type."""
        return self.kind not in ("text", "map", "null") and all(part.is_plain for _, part in self.fields)


TEXT = JsonType(pa.string(), "text")

_PLAIN = {
    "string": JsonType(pa.string(), "string"),
    "integer": JsonType(pa.int64(), "integer"),
    "number": JsonType(pa.float64(), "number"),
    "boolean": JsonType(pa.bool_(), "boolean"),
    "null": JsonType(pa.null(), "null"),
}

_TYPES = {*_PLAIN, "object", "array", "any"}  # draft 3 had any
_AVRO = {"record", "enum", "fixed", "map", "bytes", "long", "int", "float", "double"}


def parse_json_schema(schema: Schema, references: Mapping[str, Schema]) -> JsonType:
    """The type of the values of a schema.

    Raises:
        SchemaError: it is not a JSON Schema, or too large.
    """
    documents = {name: _json(used.text) for name, used in references.items()}
    root = _json(schema.text)
    kind = root.get("type") if isinstance(root, dict) else None
    if isinstance(kind, str) and kind not in _TYPES:
        avro = "; this is an Avro schema" if kind in _AVRO else ""
        raise SchemaError(f"JSON Schema has no type {kind!r}{avro}")
    return _Parser({"": root, **documents}).type(root, "", 0)


def _json(text: str) -> Any:
    try:
        found = json.loads(text)
    except RecursionError:
        raise SchemaError("the schema is nested too deeply") from None
    except ValueError as error:
        raise SchemaError(f"the schema is not JSON: {error}") from None
    if not isinstance(found, (dict, bool)):
        raise SchemaError("a JSON Schema is an object or a boolean")
    return found


class _Placed(NamedTuple):
    """A part of a schema, and the document that its references start from."""

    schema: dict[str, Any]
    document: str


class _Parser:
    def __init__(self, documents: Mapping[str, Any]) -> None:
        self._documents = documents
        self._ids = {_id(schema): name for name, schema in documents.items()}
        self._open: list[int] = []
        self._count = 0

    def type(self, schema: Any, document: str, depth: int) -> JsonType:
        """The type of a part of a document."""
        if isinstance(schema, _Placed):
            schema, document = schema
        self._count += 1
        if self._count > MAX_TYPES:
            raise SchemaError(f"the schema has more than {MAX_TYPES} types")
        if not isinstance(schema, dict) or depth > MAX_DEPTH or id(schema) in self._open:
            return TEXT
        self._open.append(id(schema))
        try:
            return self._type(schema, document, depth + 1)
        finally:
            self._open.pop()

    def _type(self, schema: dict[str, Any], document: str, depth: int) -> JsonType:
        if isinstance(schema.get("$ref"), str):
            target, where = self._referred(schema["$ref"], document)
            return self.type(target, where, depth)
        for key in ("oneOf", "anyOf"):
            if isinstance(schema.get(key), list):
                return self._one(schema[key], document, depth)
        if isinstance(schema.get("allOf"), list):
            schema = _merged(self._parts(schema, document, []))
        kinds = schema.get("type", "object" if "properties" in schema else None)
        kinds = [kind for kind in (kinds if isinstance(kinds, list) else [kinds]) if kind != "null"] or ["null"]
        if kinds == [None] and isinstance(schema.get("enum"), list):
            return _PLAIN["string"] if all(isinstance(v, (str, type(None))) for v in schema["enum"]) else TEXT
        if sorted(map(str, kinds)) == ["integer", "number"]:
            kinds = ["number"]
        if len(kinds) != 1:
            return TEXT
        if kinds[0] == "object":
            return self._object(schema, document, depth)
        if kinds[0] == "array":
            return self._array(schema, document, depth)
        return _PLAIN.get(str(kinds[0]), TEXT)

    def _object(self, schema: dict[str, Any], document: str, depth: int) -> JsonType:
        properties = schema.get("properties")
        if isinstance(properties, dict) and properties:
            fields = tuple((str(name), self.type(part, document, depth)) for name, part in properties.items())
            return JsonType(pa.struct([pa.field(name, part.arrow) for name, part in fields]), "struct", fields)
        if isinstance(schema.get("additionalProperties"), (dict, _Placed)):
            part = self.type(schema["additionalProperties"], document, depth)
            return JsonType(pa.map_(pa.string(), part.arrow), "map", (("", part),))
        return TEXT

    def _array(self, schema: dict[str, Any], document: str, depth: int) -> JsonType:
        if not isinstance(schema.get("items"), (dict, _Placed)) or "prefixItems" in schema:
            return TEXT
        part = self.type(schema["items"], document, depth)
        return JsonType(pa.list_(part.arrow), "list", (("", part),))

    def _one(self, parts: list[Any], document: str, depth: int) -> JsonType:
        others = [part for part in parts if not (isinstance(part, dict) and part.get("type") == "null")]
        return self.type(others[0], document, depth) if len(others) == 1 else TEXT

    def _parts(self, schema: Any, document: str, above: list[int]) -> Iterator[_Placed]:
        """A schema, and all schemas in its ``allOf``, directly or not."""
        self._count += 1
        if self._count > MAX_TYPES:
            raise SchemaError(f"the schema has more than {MAX_TYPES} types")
        if not isinstance(schema, dict) or id(schema) in above or len(above) > MAX_DEPTH:
            return
        above = [*above, id(schema)]
        if isinstance(schema.get("$ref"), str):
            yield from self._parts(*self._referred(schema["$ref"], document), above)
            return
        yield _Placed(schema, document)
        for part in schema["allOf"] if isinstance(schema.get("allOf"), list) else ():
            yield from self._parts(part, document, above)

    def _referred(self, reference: str, document: str) -> tuple[Any, str]:
        name, fragment = urldefrag(reference)
        where = self._document(name, document) if name else document
        found = self._documents.get(where)
        for part in filter(None, fragment.split("/")):
            key = unquote(part).replace("~1", "/").replace("~0", "~")
            if isinstance(found, list) and key.isdecimal() and int(key) < len(found):
                found = found[int(key)]
            elif isinstance(found, dict) and key in found:
                found = found[key]
            else:
                raise SchemaError(f"unknown reference {reference!r}")
        return found, where

    def _document(self, name: str, document: str) -> str:
        """The name of the document that a reference names by its name or id, or relative to the id of its own."""
        for each in (name, urljoin(_id(self._documents[document]), name)):
            if each in self._documents:
                return each
            if each in self._ids:
                return self._ids[each]
        raise SchemaError(f"unknown reference {name!r}")


def _id(schema: Any) -> str:
    """The URL in a document's id."""
    found = schema.get("$id", schema.get("id")) if isinstance(schema, dict) else None
    return urldefrag(found)[0] if isinstance(found, str) else ""


def _merged(parts: Iterable[_Placed]) -> dict[str, Any]:
    """One object schema of all parts of ``allOf``."""
    found: dict[str, Any] = {}
    properties: dict[str, Any] = {}
    for part, document in parts:
        for key, value in part.items():
            if key == "properties" and isinstance(value, dict):
                properties |= {name: _placed(each, document) for name, each in value.items()}
            elif key in ("items", "additionalProperties"):
                found[key] = _placed(value, document)
            elif key != "allOf":
                found[key] = value
    return {**found, **({"properties": properties} if properties else {})}


def _placed(schema: Any, document: str) -> Any:
    return _Placed(schema, document) if isinstance(schema, dict) else schema
