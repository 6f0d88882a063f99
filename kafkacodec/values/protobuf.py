"""Protobuf values to columns, by ptars.

A field without presence has its default where it is not set; others (messages, wrappers, ``optional``, ``oneof``) are
null. Enums are their names, or the number as text if the schema lacks it. ``google.protobuf.Timestamp`` and
``Duration`` have nanoseconds; values that 64 bits cannot hold are errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkacodec.errors import SchemaError
from kafkacodec.values.columns import Decoded, Decoder, spread
from kafkacodec.values.payloads import Payloads
from kafkacodec.values.plans import Plan, ResolvedSchema
from kafkacodec.values.proto_compile import compiled_files, message_type
from kafkacodec.values.schemas import SchemaKey
from kafkacodec.values.unify import conformed, nullable, unified

__all__ = ["plan_protobuf"]

_GROUP_ROWS = 4096

# What ptars gives for a time that 64 bits of nanoseconds cannot hold.
_SATURATED = (1 << 63) - 1


def plan_protobuf(schemas: Mapping[SchemaKey, ResolvedSchema], reader: ResolvedSchema | None) -> Plan:
    """Decoders of the schemas. Fields have the same numbers in a reader's schema, so it reads all values."""
    failures: dict[SchemaKey, SchemaError] = {}
    readers: dict[SchemaKey, _Message] = {}
    common = None if reader is None else _Message(reader, ())
    files: dict[int, Any] = {}
    kind: pa.DataType | None = None
    for key in reversed(list(schemas)):
        try:
            readers[key] = common or _Message(schemas[key], key.message, files)
            kind = readers[key].type if kind is None else unified(kind, readers[key].type)
        except SchemaError as error:
            failures[key] = error
            readers.pop(key, None)
    decoders: dict[SchemaKey, Decoder] = {key: _ProtobufDecoder(each, kind) for key, each in readers.items()}
    return Plan(common.type if common else kind, decoders, failures)


class _Message:
    """A message type, and what parses it."""

    def __init__(self, schema: ResolvedSchema, indexes: tuple[int, ...], files: dict[int, Any] | None = None) -> None:
        from google.protobuf.message_factory import GetMessageClass
        from ptars import HandlerPool, PtarsConfig

        known = {} if files is None else files
        if id(schema) not in known:
            known[id(schema)] = compiled_files(*schema)
        compiled = known[id(schema)]
        descriptor = message_type(compiled[-1], indexes, schema.schema.message)
        self.parse = GetMessageClass(descriptor).FromString
        self._handler = HandlerPool(compiled, PtarsConfig(enum_repr="string")).get_for_message(descriptor)
        schema_of_none = self._handler.array_to_record_batch(pa.array([], pa.binary())).schema
        self.type = nullable(pa.struct(list(schema_of_none)))

    def read(self, column: pa.Array) -> pa.Array:
        """The messages of a binary column as a struct column.

        Raises:
            ValueError: one is not a message of this type, or has a time that 64 bits cannot hold.
        """
        batch = self._handler.array_to_record_batch(column)
        self._check(column)
        if _has_saturated(batch.columns):
            raise ValueError("a timestamp or duration exceeds 64 bits of nanoseconds")
        if not batch.num_columns:
            return pa.array([{}] * len(column), self.type)
        return conformed(pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema)), self.type)

    def _check(self, column: pa.Array) -> None:
        """Raise for what protobuf refuses and ptars reads: groups that end with the number of another one."""
        try:
            for value in column.to_pylist():
                self.parse(value)
        except Exception as refusal:  # DecodeError of protobuf
            raise ValueError(str(refusal)) from None


def _has_saturated(columns: list[pa.Array]) -> bool:
    for column in columns:
        kind = column.type
        if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
            ends = pc.min_max(column.cast(pa.int64())).as_py()
            if ends["max"] == _SATURATED or ends["min"] == -_SATURATED - 1:
                return True
        elif pa.types.is_struct(kind):
            if _has_saturated(column.flatten()):
                return True
        elif pa.types.is_map(kind):
            if _has_saturated([column.items]):
                return True
        elif pa.types.is_list(kind) and _has_saturated([column.values]):
            return True
    return False


class _ProtobufDecoder:
    """Decodes values of one message type to columns of the common type."""

    def __init__(self, message: _Message, kind: pa.DataType) -> None:
        self.type = kind
        self._message = message
        self._width = 8 * _slots(message.type)

    def decode(self, payloads: Payloads, max_bytes: int) -> Decoded:
        """The values; one that is not a message of the type is null."""
        rows = len(payloads.starts)
        problems = self._too_wide(payloads, max_bytes)
        parts, places = [], []
        for start in range(0, rows, _GROUP_ROWS):
            group = np.array(
                [row for row in range(start, min(start + _GROUP_ROWS, rows)) if row not in problems], np.int64
            )
            column, good, bad = self._group(payloads.take(group))
            parts.append(column)
            places.append(group[good])
            problems |= {int(group[row]): reason for row, reason in bad.items()}
        column = pa.concat_arrays(parts) if parts else pa.array([], self._message.type)
        where = np.concatenate(places) if places else np.empty(0, np.int64)
        return Decoded(spread(conformed(column, self.type), where, rows), problems)

    def _too_wide(self, payloads: Payloads, max_bytes: int) -> dict[int, str]:
        """Rows that could need more memory than the limit: each two bytes may be a message of all fields."""
        wide = np.flatnonzero(payloads.sizes // 2 > max(max_bytes, 0) // self._width)
        return {int(row): f"the value may need more than {max_bytes} bytes of memory" for row in wide}

    def _group(self, payloads: Payloads) -> tuple[pa.Array, Any, dict[int, str]]:
        """The messages, their rows, and what is wrong with the others."""
        column = payloads.joined().column().cast(pa.binary())
        try:
            return self._message.read(column), slice(None), {}
        except ValueError:
            pass
        good, parts, problems = [], [], {}
        for row in range(len(column)):
            try:
                parts.append(self._message.read(column.slice(row, 1)))
                good.append(row)
            except ValueError as error:
                problems[row] = self._reason(payloads.value(row), error)
        return pa.concat_arrays(parts) if parts else pa.array([], self._message.type), good, problems

    def _reason(self, value: bytes, error: ValueError) -> str:
        """What protobuf says, which names the type; else what ptars says."""
        try:
            self._message.parse(value)
        except Exception as refusal:  # DecodeError of protobuf
            return f"{refusal}: {str(error).removeprefix('failed to decode Protobuf message: ')}"
        return str(error)


def _slots(kind: pa.DataType) -> int:
    """The columns of a value, with those of nested messages."""
    if pa.types.is_struct(kind):
        return 1 + sum(_slots(f.type) for f in kind)
    if pa.types.is_map(kind):
        return 2 + _slots(kind.item_type)
    return 1 + _slots(kind.value_type) if pa.types.is_list(kind) else 2
