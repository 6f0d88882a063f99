"""Keys and values of an export as typed columns."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from kafkacodec.arguments import suggestion
from kafkacodec.datatypes import dataclass
from kafkacodec.errors import DecodeError, SchemaError
from kafkacodec.spark.errors import OptionError
from kafkacodec.spark.reading.options import TopicPartition
from kafkacodec.spark.sql.values import ColumnDecoder, column_decoder
from kafkacodec.values.framing import Part
from kafkacodec.values.record_values import placed

__all__ = ["TypedColumns", "typed_columns"]

_OPTIONS = tuple(name for name in inspect.signature(column_decoder).parameters if name != "part")


@dataclass(frozen=True)
class TypedColumns:
    """Replaces keys, values or both by typed columns; columns with the schema's number and with errors follow.

    They have the names that `kafkacodec.values.record_values.RecordValues` gives them.
    """

    decoders: Mapping[Part, ColumnDecoder]

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """The columns of typed records."""
        for part, decoder in self.decoders.items():
            schema = schema.set(schema.get_field_index(part), pa.field(part, decoder.kind.field("value").type))
            schema = schema.append(pa.field(f"{part}_schema_id", pa.int64()))
            schema = schema.append(pa.field(f"{part}_error", pa.string()))
        return schema

    def decode(self, batch: pa.RecordBatch, key: TopicPartition) -> tuple[pa.RecordBatch, int]:
        """The typed records of a partition, and how many keys and values could not be decoded.

        Raises:
            DecodeError, SchemaError: one could not be, with ``on_error="raise"``; the path has its place.
        """
        headers = batch.column("headers") if "headers" in batch.schema.names else None
        columns, errors = dict(zip(batch.schema.names, batch.columns, strict=True)), 0
        for part, decoder in self.decoders.items():
            try:
                found = decoder(batch.column(part), headers)
            except (DecodeError, SchemaError) as error:
                error.path = f"{key[0]}-{key[1]}: {placed(error.path or '', batch.select(['offset']), part)}"
                raise
            columns[part], columns[f"{part}_schema_id"], columns[f"{part}_error"] = found.flatten()
            errors += len(found) - columns[f"{part}_error"].null_count
        return pa.record_batch(list(columns.values()), schema=self.schema(batch.schema)), errors


def typed_columns(columns: Sequence[str], given: Mapping[Part, Mapping[str, Any] | None]) -> TypedColumns | None:
    """Check the arguments `values` and `keys`; None if both stay bytes.

    Raises:
        OptionError: an option is unknown or wrong, or the column is not exported.
        KafkaCodecError: a schema cannot be used.
    """
    decoders: dict[Part, ColumnDecoder] = {}
    for part, options in given.items():
        if options is None:
            continue
        name = f"{part}s"
        _require_mapping(name, options)
        for option in options:
            if option not in _OPTIONS:
                raise OptionError(f"{name}: {option!r} is unknown; {suggestion(str(option), _OPTIONS, 'these')}")
        if "schemas" not in options:
            raise OptionError(f"{name}: expected options of decode_values, such as {{'schemas': 'directory'}}")
        if part not in columns:
            raise OptionError(f"{name}: columns does not list {part}")
        try:
            decoders[part] = column_decoder(part=part, **options)
        except (TypeError, ValueError) as error:
            raise OptionError(f"{name}: {error}") from None
        lacking = _lacking(decoders[part].kind)
        if lacking is not None:
            raise OptionError(f"{name}: tables have no type for {lacking}; leave the field out of a reader_schema")
    return TypedColumns(decoders) if decoders else None


def _require_mapping(name: str, options: object) -> None:
    if not isinstance(options, Mapping):
        shape = "{'schemas': ...}"
        raise OptionError(f"{name}: expected options of decode_values, {shape}, not {type(options).__name__}")


def _lacking(kind: pa.DataType) -> pa.DataType | None:
    """A type inside of this one that Parquet, Iceberg or Delta cannot store."""
    types = pa.types
    if types.is_duration(kind) or types.is_interval(kind) or (types.is_struct(kind) and not kind.num_fields):
        return kind
    inner = (_lacking(kind.field(number).type) for number in range(kind.num_fields))
    return next((found for found in inner if found is not None), None)
