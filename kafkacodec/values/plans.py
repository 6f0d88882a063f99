"""Plans for decoding a column: its type, and a decoder for each schema."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from kafkacodec.datatypes import NamedTuple
from kafkacodec.errors import SchemaError
from kafkacodec.values.columns import Decoder
from kafkacodec.values.schemas import Schema, SchemaKey

__all__ = ["Plan", "ResolvedSchema"]


class ResolvedSchema(NamedTuple):
    """A schema with those that it refers to, by name, each after those that it uses itself."""

    schema: Schema
    references: Mapping[str, Schema] = {}


class Plan(NamedTuple):
    """A plan for decoding the values of a column.

    Attributes:
        type (pa.DataType | None): the type of the column; None if no schema can be used.
        decoders (Mapping[SchemaKey, Decoder]): the decoder for each schema that can be used.
        failures (Mapping[SchemaKey, SchemaError]): what is wrong with the others.
    """

    type: pa.DataType | None
    decoders: Mapping[SchemaKey, Decoder]
    failures: Mapping[SchemaKey, SchemaError]
