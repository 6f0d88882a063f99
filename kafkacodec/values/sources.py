"""Sources of schemas that are made from an argument: a directory, a URL, a dict, or one schema for all values."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from kafkacodec.values.directory import SchemaDirectory
from kafkacodec.values.schemas import Format, Schema, SchemaKey, Schemas, SchemaSource

__all__ = ["source_of"]


class _OneSchema(Schemas):
    """The schema of all values."""

    def find(self, key: SchemaKey) -> Schema:
        """The schema, whatever the key."""
        return self.by_key[0]


def source_of(schemas: Any, format: Format) -> SchemaSource:
    """The source that the argument `schemas` of `kafkacodec.values.decode` means.

    Raises:
        TypeError: it is not a source.
        FileNotFoundError, NotADirectoryError: it is not the path of a directory.
    """
    if isinstance(schemas, Schema):
        return _OneSchema({0: schemas})
    if isinstance(schemas, Mapping):
        return Schemas(
            {key: Schema(found, format) if isinstance(found, str) else found for key, found in schemas.items()}
        )
    if isinstance(schemas, str) and schemas.startswith(("http://", "https://")):
        from kafkacodec.values.registry import Registry

        return Registry(schemas)
    if isinstance(schemas, (str, os.PathLike)):
        return SchemaDirectory(schemas)
    if callable(getattr(schemas, "find", None)) and callable(getattr(schemas, "version", None)):
        source: SchemaSource = schemas
        return source
    raise TypeError(f"schemas: expected a source, a path, a URL, a dict or a Schema, not {type(schemas).__name__}")
