"""Reads schema tables (``*.kmsg``), the text form of message definitions.

A table is a list of messages. A line is a list of words; a level is two spaces of indentation; ``#`` starts a comment::

    api 3 Metadata                                  the API of the next request and response
    request versions=0-13 flexible=9+               a message named MetadataRequest
      Topics []MetadataRequestTopic 0+ null=1+      a field: name, type, versions, attributes
        TopicId uuid 10+ ignorable                  fields of that struct, one level deeper
        Name string 0+ null=10+
      AllowAutoTopicCreation bool 4+ default=true
    data GroupMetadataKey key=2 versions=2          a message that is neither request nor response
    struct Endpoint                                 inside a message: a struct that several fields use

Types are ``bool int8 int16 int32 int64 uint16 uint32 float64 uuid string bytes records`` or a struct's name;
``[]T`` is an array with an int32 count, ``[int16]T`` one with an int16 count. Versions are ``3``, ``0-4``, ``2+`` or
``none``, cut to those of the message. Attributes of a field:

    null, null=V      may be null, in all its versions or in V
    tag=N, tag=N@V    a tagged field, in all its versions or in V
    default=X         the value if the field is absent; without it zero, empty, or a struct of defaults
    ignorable         a value that the version lacks is dropped instead of an error
    fixed             not compact in flexible versions
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kafkacodec.datatypes import NamedTuple
from kafkacodec.messages.model import ZERO, FieldSpec, MessageSpec, StructSpec, version_range

__all__ = ["SchemaError", "parse"]

_INTEGERS = frozenset(("int8", "int16", "int32", "int64", "uint16", "uint32"))
_ZERO: dict[str, Any] = {"bool": False, "float64": 0.0, "string": "", "bytes": b"", "records": b"", "uuid": ZERO}
_API_KINDS = frozenset(("request", "response"))
_DATA_KINDS = frozenset(("data", "header", "metadata", "coordinator-key", "coordinator-value"))
_MAX_DEPTH = 12


class SchemaError(ValueError):
    """A schema table that does not follow the grammar."""


class _Line(NamedTuple):
    number: int
    depth: int
    words: list[str]


def parse(text: str) -> tuple[MessageSpec, ...]:
    """The messages of a table. Raises SchemaError with the line number."""
    lines = list(_lines(text))
    messages: list[MessageSpec] = []
    api: tuple[int, str] | None = None
    at = 0
    while at < len(lines):
        line = lines[at]
        end = _block_end(lines, at)
        try:
            if line.words[0] == "api":
                api = int(line.words[1]), line.words[2]
            else:
                messages.append(_message(line, lines[at + 1 : end], api))
        except SchemaError:
            raise
        except (ValueError, IndexError, KeyError) as error:
            raise SchemaError(f"line {line.number}: {error}") from error
        at = end
    return tuple(messages)


def _lines(text: str) -> Iterator[_Line]:
    for number, raw in enumerate(text.splitlines(), 1):
        content = raw.partition("#")[0].rstrip()
        if content:
            body = content.lstrip(" ")
            yield _Line(number, (len(content) - len(body)) // 2, body.split())


def _block_end(lines: list[_Line], at: int) -> int:
    """The index after the last line that is deeper than the one at `at`."""
    depth = lines[at].depth
    at += 1
    while at < len(lines) and lines[at].depth > depth:
        at += 1
    return at


def _message(line: _Line, body: list[_Line], api: tuple[int, str] | None) -> MessageSpec:
    kind, *rest = line.words
    if kind not in _API_KINDS and kind not in _DATA_KINDS:
        raise SchemaError(f"line {line.number}: unknown message kind {kind!r}")
    if kind in _API_KINDS:
        if api is None:
            raise SchemaError(f"line {line.number}: a {kind} needs an api line before it")
        key: int | None = api[0]
        name = api[1] + kind.capitalize()
    else:
        name, key = rest.pop(0), None
    options = dict(word.split("=", 1) for word in rest)
    if "key" in options:
        key = int(options["key"])
    versions = version_range(options["versions"])
    flexible = version_range(options.get("flexible", "none"), versions)
    return MessageSpec(kind, key, versions, flexible, _Structs(versions).message(name, body))


class _Structs:
    """Builds the structs of one message; names refer to its common structs."""

    def __init__(self, versions: range) -> None:
        self.versions = versions
        self.common: dict[str, list[_Line]] = {}
        self.built: dict[str, StructSpec] = {}

    def message(self, name: str, body: list[_Line]) -> StructSpec:
        fields: list[_Line] = []
        at = 0
        while at < len(body):
            end = _block_end(body, at)
            if body[at].words[0] == "struct":
                self.common[body[at].words[1]] = body[at + 1 : end]
            else:
                fields += body[at:end]
            at = end
        return StructSpec(name, self.fields(fields, 0))

    def fields(self, body: list[_Line], depth: int) -> tuple[FieldSpec, ...]:
        if depth > _MAX_DEPTH:
            raise SchemaError(f"line {body[0].number}: structs are nested too deeply or recursively")
        fields = []
        at = 0
        while at < len(body):
            end = _block_end(body, at)
            try:
                fields.append(self.field(body[at], body[at + 1 : end], depth))
            except SchemaError:
                raise
            except (ValueError, IndexError, KeyError) as error:
                raise SchemaError(f"line {body[at].number}: {error}") from error
            at = end
        return tuple(fields)

    def field(self, line: _Line, inner: list[_Line], depth: int) -> FieldSpec:
        name, kind, versions_text, *attributes = line.words
        options = dict(_option(word) for word in attributes)
        versions = version_range(versions_text, self.versions)
        array = ""
        if kind[0] == "[":
            array, _, kind = kind[1:].partition("]")
            array = array or "int32"
        struct = None
        if kind not in _INTEGERS and kind not in _ZERO:
            struct = self.struct(kind, inner, depth)
        elif inner:
            raise SchemaError(f"line {line.number}: {kind} has no fields")
        nullable = version_range(options["null"], versions) if options.get("null") else range(0)
        if "null" in options and not options["null"]:
            nullable = versions
        tag_text, _, tagged_text = options.get("tag", "-1").partition("@")
        tagged = versions if "tag" in options else range(0)
        if tagged_text:
            tagged = version_range(tagged_text, versions)
        return FieldSpec(
            name=name,
            type=kind,
            array=array,
            struct=struct,
            versions=versions,
            nullable=nullable,
            tagged=tagged,
            tag=int(tag_text),
            default=_default(kind, array, options.get("default"), bool(nullable)),
            ignorable="ignorable" in options,
            compact="fixed" not in options,
        )

    def struct(self, name: str, inner: list[_Line], depth: int) -> StructSpec:
        if inner:
            self.built[name] = StructSpec(name, self.fields(inner, depth + 1))
        elif name not in self.built:
            if name not in self.common:
                raise SchemaError(f"unknown type {name!r}")
            self.built[name] = StructSpec(name, self.fields(self.common[name], depth + 1))
        return self.built[name]


def _option(word: str) -> tuple[str, str]:
    name, _, value = word.partition("=")
    if name not in ("null", "tag", "default", "ignorable", "fixed"):
        raise SchemaError(f"unknown attribute {name!r}")
    return name, value


def _default(kind: str, array: str, text: str | None, nullable: bool) -> Any:
    """The default as a value: a list for arrays, None for null, ZERO for a uuid and for a struct of defaults."""
    if text == "null":
        return None
    if array:
        return []
    if kind in _INTEGERS:
        return int(text or "0", 0)
    if kind == "bool":
        return text == "true"
    if kind == "string":
        return text or ""
    if kind == "records" and nullable:
        return None
    return _ZERO.get(kind, ZERO)
