"""Columns from plain Protobuf values, by ptars.

ptars reads whole columns, but it knows neither editions nor groups, and ends with a panic at some schemas and values.
It gets a schema of its own, of the same messages in syntax proto3 with numbers for names: each field that is nullable
has a oneof to itself. Only plain values (`proto_check`) come here.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from kafkacodec.values.contained import contained
from kafkacodec.values.protobuf.types import ProtoEnum, ProtoField, ProtoMessage, arrow_type, messages_of

__all__ = ["ProtoLibrary"]

_FILE, _PACKAGE = "kafkacodec_columns.proto", "k"

_TIMES = {"timestamp": "Timestamp", "duration": "Duration"}


class ProtoLibrary:
    """Decodes plain values of one message type.

    Raises:
        Exception: ptars does not take the type; or, from `read`, the values.
    """

    def __init__(self, message: ProtoMessage) -> None:
        from ptars import HandlerPool, PtarsConfig

        self._type = arrow_type(message)
        with contained("ptars"):
            file = _Spelling(message).file()
            pool = HandlerPool([file], PtarsConfig(enum_repr="string"))
            self._handler = pool.get_for_message(file.message_types_by_name["M0"])

    def read(self, column: pa.Array) -> pa.Array:
        """The messages of a binary column as a struct column."""
        with contained("ptars"):
            batch = self._handler.array_to_record_batch(column)
        if not batch.num_columns:
            return pa.array([{}] * len(column), self._type)
        return _renamed(pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema)), self._type)


def _renamed(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """The column with the names of a type that is the same in all else."""
    if column.type == kind:
        return column
    mask = column.is_null() if column.null_count else None
    if pa.types.is_struct(kind):
        children = [_renamed(column.field(i), f.type) for i, f in enumerate(kind)]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=mask)
    if pa.types.is_map(kind):
        items = _renamed(column.items, kind.item_type)
        return pa.MapArray.from_arrays(column.offsets, column.keys, items, type=kind, mask=mask)
    return pa.ListArray.from_arrays(column.offsets, _renamed(column.values, kind.value_type), type=kind, mask=mask)


class _Spelling:
    """A message type as a .proto file for the library, as a descriptor."""

    def __init__(self, root: ProtoMessage) -> None:
        from google.protobuf import descriptor_pb2

        self._make = descriptor_pb2
        self._file = descriptor_pb2.FileDescriptorProto(name=_FILE, package=_PACKAGE, syntax="proto3")
        self._enums: dict[ProtoEnum, str] = {}
        entries = {f.message for message in messages_of(root) for f in message.fields if f.kind == "map"}
        messages = [message for message in messages_of(root) if message not in entries]
        self._names = {message: f"M{i}" for i, message in enumerate(messages)}
        for message in messages:
            self._message(message, self._file.message_type.add(name=self._names[message]))

    def file(self) -> Any:
        """The descriptor of the file, in a pool of its own."""
        from google.protobuf import descriptor_pool, duration_pb2, timestamp_pb2, wrappers_pb2

        pool = descriptor_pool.DescriptorPool()
        for used in (duration_pb2, timestamp_pb2, wrappers_pb2):
            pool.AddSerializedFile(used.DESCRIPTOR.serialized_pb)
            self._file.dependency.append(used.DESCRIPTOR.name)
        pool.AddSerializedFile(self._file.SerializeToString())
        return pool.FindFileByName(_FILE)

    def _message(self, message: ProtoMessage, spelt: Any) -> None:
        for i, f in enumerate(message.fields):
            field = self._field(f, spelt.field.add(name=f"f{i}", number=f.number))
            if f.kind == "map":
                field.type_name = f".{_PACKAGE}.{spelt.name}.F{i}Entry"
                self._entry(f.message, spelt.nested_type.add(name=f"F{i}Entry"))
            elif f.is_nullable and f.message is None:
                field.oneof_index = len(spelt.oneof_decl)
                spelt.oneof_decl.add(name=f"o{i}")

    def _entry(self, entry: ProtoMessage | None, spelt: Any) -> None:
        assert entry is not None
        spelt.options.map_entry = True
        for name, f in zip(("key", "value"), entry.fields, strict=True):
            self._field(f, spelt.field.add(name=name, number=f.number))

    def _field(self, field: ProtoField, spelt: Any) -> Any:
        kinds = self._make.FieldDescriptorProto
        spelt.label = kinds.LABEL_REPEATED if field.is_repeated else kinds.LABEL_OPTIONAL
        if field.message is not None:
            spelt.type = kinds.TYPE_MESSAGE
            spelt.type_name = self._type_name(field.message)
        else:
            spelt.type = kinds.Type.Value(f"TYPE_{field.kind.upper()}")
            if field.enum is not None:
                spelt.type_name = self._enum(field.enum)
        return spelt

    def _type_name(self, message: ProtoMessage) -> str:
        if message.form == "wrapper" or message.form in _TIMES:
            return f".{message.name}"
        return f".{_PACKAGE}.{self._names.get(message, '')}"

    def _enum(self, enum: ProtoEnum) -> str:
        """An enum in a message of its own, since names of values are unique in a scope. Its first number is 0."""
        if enum not in self._enums:
            holder = self._file.message_type.add(name=f"E{len(self._enums)}")
            self._enums[enum] = f".{_PACKAGE}.{holder.name}.E"
            spelt = holder.enum_type.add(name="E")
            unused = max(enum.names.values(), key=len) + "_"
            for number, name in {0: unused, **enum.names}.items():
                spelt.value.add(name=name, number=number)
        return self._enums[enum]
