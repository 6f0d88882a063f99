"""Schemas from the records of a registry's topic, ``_schemas``.

A record's key is JSON: ``{"keytype": "SCHEMA", "subject": ..., "version": ..., "magic": 1}``; its value is JSON with
the schema, its number, type and references. Source: ``SchemaKey`` and ``SchemaValue`` of Confluent Schema Registry;
Karapace writes the same. Records of other key types (configuration, modes, deleted subjects) describe no schemas.

Deleted schemas are kept: records that were written with them may still be there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any
from uuid import UUID

from kafkacodec.errors import SchemaError, SchemaNotFound
from kafkacodec.shown import counted, repr_of
from kafkacodec.values.schemas import Format, Reference, Schema, SchemaKey

__all__ = ["SchemaTopic"]

_FORMATS: dict[str, Format] = {"AVRO": "avro", "PROTOBUF": "protobuf", "JSON": "json"}


class SchemaTopic:
    """The schemas that records of ``_schemas`` describe.

    `kafkacodec.log.read_schemas` reads the topic of a log directory.

    Args:
        records: pairs of key and value as bytes, in the order of their offsets.

    Attributes:
        problems (list[str]): records that are damaged or of an unknown type, with their number in `records`.
    """

    def __init__(self, records: Iterable[tuple[bytes | None, bytes | None]]) -> None:
        self.problems: list[str] = []
        self._by_value: dict[int | UUID, Schema] = {}
        self._by_version: dict[tuple[str, int], Schema] = {}
        for number, (key, value) in enumerate(records):
            if key is None or value is None:
                continue  # a deletion
            try:
                self._add(json.loads(key), value)
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
                self.problems.append(f"record {number}: {type(error).__name__}: {error}")

    def __len__(self) -> int:
        return len(self._by_version)

    def __repr__(self) -> str:
        subjects = len({subject for subject, _ in self._by_version})
        return repr_of(self, f"{counted(len(self), 'version')} of {counted(subjects, 'subject')}")

    def find(self, key: SchemaKey) -> Schema:
        """The schema with this number or GUID."""
        try:
            return self._by_value[key.value]
        except KeyError:
            raise SchemaNotFound(f"there is no {key} in the topic of schemas") from None

    def version(self, subject: str, version: int) -> Schema:
        """The schema that is this version of a subject."""
        try:
            return self._by_version[subject, version]
        except KeyError:
            raise SchemaNotFound(f"there is no version {version} of {subject} in the topic of schemas") from None

    def _add(self, key: Any, value: bytes) -> None:
        if key.get("keytype") != "SCHEMA":
            return
        found = json.loads(value)
        kind = found.get("schemaType") or "AVRO"
        if kind not in _FORMATS:
            raise SchemaError(f"unknown schemaType {kind!r}")
        references = tuple(
            Reference(str(each["name"]), str(each["subject"]), int(each["version"]))
            for each in found.get("references") or ()
        )
        text, number = found["schema"], found["id"]
        if not isinstance(text, str) or not isinstance(number, int):
            raise TypeError("schema or id is missing")
        schema = Schema(text, _FORMATS[kind], references)
        self._by_value[number] = schema
        self._by_version[str(found["subject"]), int(found["version"])] = schema
        if isinstance(found.get("guid"), str):
            self._by_value[UUID(found["guid"])] = schema
