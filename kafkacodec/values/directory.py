"""Schemas in the files of a directory.

A file's name says what the schema is: ``7.avsc`` has the number 7, ``6cf...e1.avsc`` a UUID, ``orders-value-3.avsc``
is version 3 of the subject ``orders-value``. The ending says the format: ``.avsc`` Avro, ``.proto`` Protobuf,
``.json`` JSON Schema. A file ``schemas.json`` may say more:

    {"schemas": [{"id": 7, "file": "orders.avsc", "subject": "orders-value", "version": 3, "uuid": "...",
                  "references": [{"name": "Address", "subject": "address", "version": 1}]}]}

All keys but ``file`` are optional; ``format`` replaces what the ending says, and ``message`` is the full name of the
message type of a .proto file.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import UUID

from kafkacodec.errors import SchemaError, SchemaNotFound
from kafkacodec.shown import repr_of
from kafkacodec.values.schemas import FORMATS, MAX_TEXT_BYTES, Format, Reference, Schema, SchemaKey, Schemas

__all__ = ["SchemaDirectory"]

MAPPING = "schemas.json"

_FORMATS: dict[str, Format] = {".avsc": "avro", ".proto": "protobuf", ".json": "json"}

_VERSIONED = re.compile(r"(?P<subject>.+)-(?P<version>[0-9]+)")


class SchemaDirectory:
    """Schemas in the files of a directory; the module describes their names.

    The names are read once, a file when its schema is first needed.

    Args:
        path: the directory.

    Raises:
        FileNotFoundError, NotADirectoryError: there is no such directory.
        SchemaError: ``schemas.json`` is damaged.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        self._by_value: dict[int | UUID, dict[str, Any]] = {}
        self._by_version: dict[tuple[str, int], dict[str, Any]] = {}
        self._read: dict[str, Schema] = {}
        for entry in sorted(self._path.iterdir()):
            if entry.suffix in _FORMATS and entry.name != MAPPING:
                self._add(_described(entry.name))
        for described in self._mapping():
            self._add(described)

    def __repr__(self) -> str:
        return repr_of(self, os.fspath(self._path))

    def find(self, key: SchemaKey) -> Schema:
        """The schema with this number or UUID."""
        try:
            return self._schema(self._by_value[key.value])
        except KeyError:
            raise SchemaNotFound(f"there is no {key} in {self._path}") from None

    def version(self, subject: str, version: int) -> Schema:
        """The schema that is this version of a subject."""
        try:
            return self._schema(self._by_version[subject, version])
        except KeyError:
            raise SchemaNotFound(f"there is no version {version} of {subject} in {self._path}") from None

    def path_of(self, key: SchemaKey) -> str:
        """The file of the schema with this number or UUID."""
        return str(self._path / self._by_value[key.value]["file"])

    def loaded(self) -> Schemas:
        """All schemas of the directory, in memory, without damaged files."""
        by_value, by_version = {}, {}
        for value, described in self._by_value.items():
            with suppress(SchemaError):
                by_value[value] = self._schema(described)
        for version, described in self._by_version.items():
            with suppress(SchemaError):
                by_version[version] = self._schema(described)
        return Schemas(by_value, by_version)

    def _add(self, described: dict[str, Any]) -> None:
        for value in (described.get("id"), described.get("uuid")):
            if value is not None:
                self._by_value[value] = described
        if "subject" in described and "version" in described:
            self._by_version[described["subject"], described["version"]] = described

    def _schema(self, described: dict[str, Any]) -> Schema:
        name = described["file"]
        if name not in self._read:
            self._read[name] = Schema(
                self._text(name), described["format"], described.get("references", ()), described.get("message")
            )
        return self._read[name]

    def _text(self, name: str) -> str:
        path = self._path / name
        try:
            if path.stat().st_size > MAX_TEXT_BYTES:
                raise SchemaError(f"{path} has more than {MAX_TEXT_BYTES} bytes")
            return path.read_text("utf-8-sig")
        except UnicodeDecodeError:
            raise SchemaError(f"{path} is not UTF-8") from None
        except OSError as error:
            raise SchemaNotFound(f"{path}: {error.strerror}") from None

    def _mapping(self) -> list[dict[str, Any]]:
        path = self._path / MAPPING
        if not path.exists():
            return []
        try:
            entries = json.loads(self._text(MAPPING))["schemas"]
            return [_checked(entry) for entry in entries]
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            if isinstance(error, SchemaError):
                raise
            raise SchemaError(f"{path}: {type(error).__name__}: {error}") from None


def _described(name: str) -> dict[str, Any]:
    """The number, UUID or subject and version in the name of a file."""
    stem, ending = os.path.splitext(name)
    found: dict[str, Any] = {"file": name, "format": _FORMATS[ending]}
    if stem.isascii() and stem.isdigit():
        return {**found, "id": int(stem)}
    try:
        return {**found, "uuid": UUID(stem)}
    except ValueError:
        match = _VERSIONED.fullmatch(stem)
    return {**found, "subject": match["subject"], "version": int(match["version"])} if match else found


def _checked(entry: dict[str, Any]) -> dict[str, Any]:
    """An entry of the mapping file with its values converted."""
    name = entry["file"]
    if not isinstance(name, str) or os.path.isabs(name) or ".." in Path(name).parts:
        raise ValueError(f"file {name!r} is not in the directory")
    found = {"file": name, "format": entry.get("format", _FORMATS.get(os.path.splitext(name)[1], "avro"))}
    if found["format"] not in FORMATS:
        raise ValueError(f"format {found['format']!r} is not one of {', '.join(FORMATS)}")
    for key, kind in {"id": int, "version": int, "subject": str, "message": str}.items():
        if key in entry:
            found[key] = kind(entry[key])
    if "uuid" in entry:
        found["uuid"] = UUID(entry["uuid"])
    found["references"] = tuple(
        Reference(str(each["name"]), str(each["subject"]), int(each["version"])) for each in entry.get("references", ())
    )
    return found
