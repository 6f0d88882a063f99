"""Sources of schemas that are made from an argument: a directory, a URL, a dict, or one schema for all values."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from kafkacodec.errors import SchemaNotFound
from kafkacodec.values.directory import SchemaDirectory
from kafkacodec.values.schemas import Format, Schema, SchemaKey, Schemas, SchemaSource
from kafkacodec.values.topic import SchemaTopic

__all__ = ["NumberedSchemas", "has_any", "is_one", "may_wait", "place_in", "source_of"]

THE_SCHEMA = "the schema"
"""The place of the one schema of all values in errors about its text."""


class _OneSchema(Schemas):
    """The schema of all values."""

    def find(self, key: SchemaKey) -> Schema:
        """The schema, whatever the key."""
        return self.by_key[0]


class NumberedSchemas(Schemas):
    """Schemas by number, in place of a registry: each is registered for every subject."""

    def latest(self, subject: str) -> tuple[int, Schema]:
        """The schema with the highest number."""
        numbers = [key for key in self.by_key if isinstance(key, int)]
        if not numbers:
            raise SchemaNotFound(f"there is no schema of {subject}")
        return max(numbers), self.by_key[max(numbers)]

    def number(self, subject: str, schema: Schema, *, register: bool = False) -> int:
        """The number of a schema, which has to be there."""
        for number, known in self.by_key.items():
            if known == schema and isinstance(number, int):
                return number
        raise SchemaNotFound(f"there is no such schema of {subject}")

    @classmethod
    def of(cls, schemas: Mapping[Any, Any], format: Format) -> NumberedSchemas:
        """Those of a dict, whose texts have this format. Raises TypeError."""
        return cls({_key(key): _schema(key, found, format) for key, found in schemas.items()})


def source_of(schemas: Any, format: Format) -> SchemaSource:
    """The source that the argument `schemas` of `kafkacodec.values.decode` means.

    Raises:
        TypeError: it is not a source, or a dict of something else than schemas by number or UUID.
        FileNotFoundError, NotADirectoryError: it is not the path of a directory.
    """
    if isinstance(schemas, Schema):
        return _OneSchema({0: schemas})
    if isinstance(schemas, Mapping):
        return Schemas({_key(key): _schema(key, found, format) for key, found in schemas.items()})
    if isinstance(schemas, str) and schemas.startswith(("http://", "https://")):
        from kafkacodec.values.registry import Registry

        return Registry(schemas)
    if isinstance(schemas, str) and _is_schema_text(schemas):
        raise TypeError(
            "schemas: the text of one schema for all values is given as kc.values.Schema(text) "
            "or Schema(text, 'protobuf')"
        )
    if isinstance(schemas, (str, os.PathLike)):
        return SchemaDirectory(schemas)
    if callable(getattr(schemas, "find", None)) and callable(getattr(schemas, "version", None)):
        source: SchemaSource = schemas
        return source
    raise TypeError(f"schemas: expected a source, a path, a URL, a dict or a Schema, not {type(schemas).__name__}")


def _is_schema_text(text: str) -> bool:
    """Whether a text can be no path but a schema: JSON or, where there is no such directory, Protobuf."""
    return text.lstrip().startswith(("{", "[", '"')) or (not os.path.exists(text) and ("\n" in text or ";" in text))


def is_one(source: SchemaSource) -> bool:
    """Whether a source is the one schema of all values."""
    return isinstance(source, _OneSchema)


def has_any(source: SchemaSource) -> bool:
    """Whether a source may have the schema of values without a number."""
    return is_one(source) or may_wait(source)


def place_in(source: SchemaSource, key: SchemaKey) -> str:
    """Where a source has a schema, for errors about its text: the file, else the number."""
    if isinstance(source, SchemaDirectory):
        return source.path_of(key)
    return THE_SCHEMA if key.kind == "given" else str(key)


def may_wait(source: SchemaSource) -> bool:
    """Whether a source may wait for another machine."""
    return not isinstance(source, Schemas | SchemaDirectory | SchemaTopic)


def _key(key: Any) -> int | UUID:
    if isinstance(key, int | UUID):
        return key
    raise TypeError(f"schemas: a dict has schemas by number (int) or UUID, not by {key!r:.40}")


def _schema(key: Any, found: Any, format: Format) -> Schema:
    if isinstance(found, Schema):
        return found
    if isinstance(found, str):
        return Schema(found, format)
    raise TypeError(f"schemas: {key} must be the text of a schema or a Schema, not {type(found).__name__}")
