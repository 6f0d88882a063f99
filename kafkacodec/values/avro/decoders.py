"""Avro: decoders of the schemas of a column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafkacodec.errors import SchemaError
from kafkacodec.values.avro.decode import AvroDecoder
from kafkacodec.values.avro.merge import merged
from kafkacodec.values.avro.resolve import AvroResolver
from kafkacodec.values.avro.schema import AvroType, parse_avro
from kafkacodec.values.columns import Decoder
from kafkacodec.values.plans import Plan, ResolvedSchema
from kafkacodec.values.schemas import SchemaKey

__all__ = ["plan_avro"]


def plan_avro(schemas: Mapping[SchemaKey, ResolvedSchema], reader: ResolvedSchema | None) -> Plan:
    """Decoders of the writers' schemas, to columns of the reader's schema.

    Without a reader's schema, the columns have the fields of all schemas, of which the newest (the last) come first.
    """
    failures: dict[SchemaKey, SchemaError] = {}
    writers: dict[SchemaKey, AvroType] = {}
    for key, schema in schemas.items():
        try:
            writers[key] = _parsed(schema)
        except SchemaError as error:
            failures[key] = error
    target = None if reader is None else _parsed(reader)
    if target is None:
        target = _merged(writers, failures)
    decoders: dict[SchemaKey, Decoder] = {}
    for key, writer in writers.items():
        if key in failures or target is None:
            continue
        try:
            decoders[key] = AvroDecoder(writer) if writer is target else AvroResolver(writer, target)
        except SchemaError as error:
            failures[key] = error
    from kafkacodec.values.avro.types import arrow_type

    return Plan(None if target is None else arrow_type(target), decoders, failures)


def _parsed(schema: ResolvedSchema) -> AvroType:
    references: Sequence[str] = [used.text for used in schema.references.values()]
    return parse_avro(schema.schema.text, references)


def _merged(writers: Mapping[SchemaKey, AvroType], failures: dict[SchemaKey, SchemaError]) -> AvroType | None:
    """The union of the schemas; one that does not fit the newer ones is a failure."""
    target = None
    for key in reversed(list(writers)):
        try:
            target = writers[key] if target is None else merged(target, writers[key])
        except SchemaError as error:
            failures[key] = error
    return target
