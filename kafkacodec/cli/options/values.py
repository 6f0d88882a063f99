"""Options that decode keys and values: ``--values``, ``--keys``, ``--schemas`` and what belongs to them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from kafkacodec.cli.options.files import text_of
from kafkacodec.cli.options.gathering import Command, gathered
from kafkacodec.cli.options.given import refuse_given
from kafkacodec.datatypes import dataclass
from kafkacodec.errors import SchemaError

if TYPE_CHECKING:
    from kafkacodec.cli.rows.typed_rows import TypedRecords
    from kafkacodec.values import Registry, Schema, SchemaSource, ValueDecoder
    from kafkacodec.values.decoding import OnValueError
    from kafkacodec.values.framing import Framing, Part
    from kafkacodec.values.json.infer import JsonInference
    from kafkacodec.values.record_values import RecordValues
    from kafkacodec.values.schemas import Format

_FORMATS = click.Choice(["avro", "protobuf", "json"])
_FRAMINGS = click.Choice(["auto", "confluent", "glue", "apicurio"])

# Environment variables, since arguments of a process are visible to others.
USER, PASSWORD, TOKEN = "KAFKACODEC_REGISTRY_USER", "KAFKACODEC_REGISTRY_PASSWORD", "KAFKACODEC_REGISTRY_TOKEN"


@dataclass(frozen=True)
class ValueOptions:
    """The options as given."""

    values: Format | None
    keys: Format | None
    schemas: str | None
    framing: Framing | None
    reader_schema: str | None
    on_value_error: OnValueError

    def __post_init__(self) -> None:
        if not (self.values or self.keys) and (self.schemas or self.framing or self.reader_schema):
            raise click.UsageError("--schemas, --framing and --reader-schema need --values or --keys")
        if not (self.values or self.keys):
            refuse_given({"on_value_error": "--on-value-error needs --values or --keys"})
        if self.reader_schema is not None and self.values is None:
            raise click.UsageError("--reader-schema is for values: add --values")
        if self.framing is not None and self.schemas is None:
            raise click.UsageError("--framing needs --schemas: a directory, a URL or a log directory")
        if {self.values, self.keys} & {"avro", "protobuf"} and self.schemas is None:
            raise click.UsageError("avro and protobuf need --schemas: a directory, a URL, a log directory or a file")

    def record_values(self) -> RecordValues | None:
        """What decodes keys and values of records; None if they stay bytes.

        Raises:
            click.UsageError: there is no such directory, or the URL is wrong.
        """
        if not (self.values or self.keys):
            return None
        from kafkacodec.values.record_values import RecordValues

        return RecordValues(self._decoders())

    def typed_records(self) -> TypedRecords | None:
        """What decodes records that are printed; None if they stay bytes. Raises as `record_values`."""
        if not (self.values or self.keys):
            return None
        from kafkacodec.cli.rows.typed_rows import TypedRecords

        return TypedRecords(self._decoders())

    def _decoders(self) -> dict[Part, ValueDecoder | JsonInference]:
        from kafkacodec.values import ValueDecoder
        from kafkacodec.values.json.infer import JsonInference

        decoders: dict[Part, ValueDecoder | JsonInference] = {}
        formats: dict[Part, Format | None] = {"key": self.keys, "value": self.values}
        for part, format in formats.items():
            if format is None:
                continue
            source, reader = self._schemas(part, format)
            if source is None:
                decoders[part] = JsonInference(on_error=self.on_value_error)
            else:
                decoders[part] = ValueDecoder(
                    source,
                    format=format,
                    framing=self.framing,
                    part=part,
                    reader_schema=reader,
                    on_error=self.on_value_error,
                )
        return decoders

    def column_options(self) -> dict[Part, dict[str, Any]]:
        """The options of `kafkacodec.spark.decode_values` that decode keys and values.

        Raises:
            click.UsageError: as `record_values`; or the columns of an export would not be known before it reads.
        """
        from kafkacodec.values import Schema

        found: dict[Part, dict[str, Any]] = {}
        formats: dict[Part, Format | None] = {"key": self.keys, "value": self.values}
        for part, format in formats.items():
            if format is None:
                continue
            source, reader = self._schemas(part, format)
            if source is None or (reader is None and not isinstance(source, Schema)):
                needed = "--schemas FILE" if part == "key" else "--reader-schema FILE, or --schemas FILE"
                raise click.UsageError(f"--{part}s in an export needs {needed}: its columns are fixed before it reads")
            found[part] = {
                "schemas": source,
                "reader_schema": reader,
                "format": format,
                "framing": self.framing,
                "on_error": self.on_value_error,
            }
        return found

    def _schemas(self, part: Part, format: Format) -> tuple[SchemaSource | Schema | None, Schema | None]:
        """The source of schemas, and the schema of the reader. JSON is read by that alone, too."""
        path = self.reader_schema if part == "value" else None
        reader = None if path is None else _schema_in(path, format)
        return reader if self.schemas is None else self._source(format), reader

    def _source(self, format: Format) -> SchemaSource | Schema:
        """The schemas; a file has the one schema of all values, which then have no framing."""
        from kafkacodec.log import LogDirectory, read_schemas
        from kafkacodec.values import SchemaDirectory

        place = self.schemas or ""
        if place.startswith(("http://", "https://")):
            return registry(place)
        if os.path.isfile(place):
            return _schema_in(place, format)
        if not os.path.isdir(place):
            raise click.UsageError(f"--schemas: {place} is not a directory, a file or a URL")
        if LogDirectory(place).partitions("_schemas"):
            return read_schemas(place)
        return SchemaDirectory(place)


def registry(url: str) -> Registry:
    """A registry, with the credentials of the environment. Raises click.UsageError: the URL is wrong."""
    from kafkacodec.values import Registry

    user, token = os.environ.get(USER), os.environ.get(TOKEN)
    try:
        return Registry(url, auth=(user, os.environ.get(PASSWORD, "")) if user else None, token=token)
    except ValueError as error:
        raise click.UsageError(f"--schemas: {error}") from None


def _schema_in(path: str, format: Format) -> Schema:
    """The schema in a file. Raises SchemaError, which names the file: no value can be read with it."""
    from kafkacodec.values import Schema, SchemaKey, ValueDecoder
    from kafkacodec.values.sources import THE_SCHEMA

    schema = Schema(text_of(path), format)
    try:
        ValueDecoder(schema, format=format).prepare([SchemaKey("given", 0)])
    except SchemaError as error:
        raise SchemaError(error.reason, path=path + (error.path or "").removeprefix(THE_SCHEMA)) from None
    return schema


_OPTIONS = (
    click.option("--values", type=_FORMATS, help="Decode values to typed columns."),
    click.option("--keys", type=_FORMATS, help="Decode keys to typed columns."),
    click.option(
        "--schemas",
        metavar="DIR|URL|FILE",
        help="A directory of schemas, a URL, a log directory with _schemas, or a file with the schema of all.",
    ),
    click.option("--framing", type=_FRAMINGS, help="Where records have the number of their schema."),
    click.option("--reader-schema", metavar="FILE", help="Read values as columns of this schema."),
    click.option(
        "--on-value-error",
        type=click.Choice(["raise", "null"]),
        default="raise",
        show_default=True,
        help="Fail at a value that cannot be decoded, or make it null and give the reason.",
    ),
)


def value_options(command: Command) -> Command:
    """Adds the options to a command, which gets them as `ValueOptions` in the argument ``typed``."""
    return gathered(command, "typed", ValueOptions, _OPTIONS)
