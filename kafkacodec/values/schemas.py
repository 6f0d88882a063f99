"""Schemas of keys and values, their keys, and their sources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol, get_args
from uuid import UUID

from kafkacodec.datatypes import NamedTuple, dataclass, field
from kafkacodec.errors import SchemaError, SchemaNotFound

__all__ = ["FORMATS", "Format", "Reference", "Schema", "SchemaKey", "SchemaSource", "Schemas", "resolved_references"]

Format = Literal["avro", "protobuf", "json"]

FORMATS: tuple[str, ...] = get_args(Format)

MAX_TEXT_BYTES = 4 << 20
"""Limit on the text of one schema, in bytes."""

MAX_REFERENCES = 1_000
"""Limit on the schemas that one schema refers to, directly or not."""


class Reference(NamedTuple):
    """A schema that another one uses.

    Attributes:
        name (str): what the other one calls it: an Avro type, a path to import in Protobuf, a URL in JSON Schema.
        subject (str): where it is registered.
        version (int): its version there, from 1.
    """

    name: str
    subject: str
    version: int


class SchemaKey(NamedTuple):
    """The identity of a schema, from a value or its headers.

    Attributes:
        kind (str): ``id`` (Confluent's number), ``guid`` (Confluent's GUID), ``glue`` (the UUID of a version in AWS
            Glue), ``global`` and ``content`` (Apicurio's numbers), or ``given`` for the one schema of all values.
        value (int | UUID): the number or UUID.
        message (tuple[int, ...]): Protobuf only: the index of the message type in the file, then of the nested types.
    """

    kind: Literal["id", "guid", "glue", "global", "content", "given"]
    value: int | UUID
    message: tuple[int, ...] = ()

    def __str__(self) -> str:
        names = {"id": "schema", "guid": "schema", "glue": "schema version", "given": "schema"}
        where = f" (message {'.'.join(map(str, self.message))})" if any(self.message) else ""
        return f"{names.get(self.kind, f'schema with the {self.kind} id')} {self.value}{where}"


@dataclass(frozen=True, slots=True)
class Schema:
    """The text of a schema.

    Attributes:
        text (str): an Avro or JSON schema as JSON, or a .proto file.
        format (str): ``avro``, ``protobuf`` or ``json``.
        references (tuple[Reference, ...]): the schemas that it uses.
        message (str | None): Protobuf only: the full name of the message type of unframed values, or of framed ones
            without message indexes. Default: the first one of the file.
    """

    text: str
    format: Format = "avro"
    references: tuple[Reference, ...] = ()
    message: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise TypeError(f"the text of a schema must be str, not {type(self.text).__name__}")
        if self.format not in FORMATS:
            raise ValueError(f"format is {self.format!r}; formats are {', '.join(FORMATS)}")
        if len(self.text) > MAX_TEXT_BYTES:
            raise SchemaError(f"the schema has {len(self.text)} characters, more than the limit of {MAX_TEXT_BYTES}")


class SchemaSource(Protocol):
    """A source of schemas: `SchemaDirectory`, `SchemaTopic`, `Registry`, `Schemas`."""

    def find(self, key: SchemaKey) -> Schema:
        """The schema of a key.

        Raises:
            SchemaNotFound: there is none.
            SchemaError: it cannot be used.
            RegistryError: the registry does not answer.
        """

    def version(self, subject: str, version: int) -> Schema:
        """The schema registered as this version of a subject. Raises as `find`."""


@dataclass(frozen=True)
class Schemas:
    """Schemas in memory.

    Attributes:
        by_key (Mapping[int | UUID, Schema]): schemas by the number or UUID in the values.
        by_version (Mapping[tuple[str, int], Schema]): schemas by subject and version, for references.
    """

    by_key: Mapping[int | UUID, Schema] = field(default_factory=dict)
    by_version: Mapping[tuple[str, int], Schema] = field(default_factory=dict)

    def find(self, key: SchemaKey) -> Schema:
        """The schema of a key of any kind."""
        try:
            return self.by_key[key.value]
        except KeyError:
            raise SchemaNotFound(f"there is no {key}") from None

    def version(self, subject: str, version: int) -> Schema:
        """The schema that is registered as this version of a subject."""
        try:
            return self.by_version[subject, version]
        except KeyError:
            raise SchemaNotFound(f"there is no version {version} of {subject}") from None


def resolved_references(schema: Schema, source: SchemaSource) -> dict[str, Schema]:
    """The schemas that a schema refers to, directly or not, by name; a schema comes after those that it uses itself.

    Raises:
        SchemaError: one is missing, they refer to one another in a circle, or there are too many.
        RegistryError: the registry does not answer.
    """
    found: dict[str, Schema] = {}
    open_names: list[str] = []

    def add(references: tuple[Reference, ...]) -> None:
        for reference in references:
            if reference.name in open_names:
                raise SchemaError(f"references form a circle: {' -> '.join([*open_names, reference.name])}")
            if reference.name in found:
                continue
            if len(found) + len(open_names) >= MAX_REFERENCES:
                raise SchemaError(f"the schema refers to more than {MAX_REFERENCES} others")
            used = source.version(reference.subject, reference.version)
            open_names.append(reference.name)
            add(used.references)
            open_names.pop()
            found[reference.name] = used

    try:
        add(schema.references)
    except RecursionError:
        raise SchemaError("references are nested too deeply") from None
    return found
