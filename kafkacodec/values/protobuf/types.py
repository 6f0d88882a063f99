"""Protobuf message types as a graph of plain objects, and the Arrow types of their columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from kafkacodec.datatypes import dataclass
from kafkacodec.errors import SchemaError

__all__ = ["ProtoEnum", "ProtoField", "ProtoMessage", "arrow_type", "messages_of", "proto_message"]

MAX_FIELDS = 10_000
"""Limit on the fields of a message type, with those of nested messages counted where they are used."""

MAX_DEPTH = 60
"""Limit on the levels of nested messages."""


@dataclass(frozen=True, slots=True, eq=False)
class ProtoEnum:
    """An enum.

    Attributes:
        names (Mapping[int, str]): the first name of each number.
        is_closed (bool): other numbers are unknown fields.
    """

    names: Mapping[int, str]
    is_closed: bool


@dataclass(frozen=True, slots=True, eq=False)
class ProtoField:
    """A field.

    Attributes:
        kind (str): a scalar type as in .proto files, ``enum``, ``message``, ``group`` or ``map``.
        is_nullable (bool): it has presence, so that it is null where it is not set.
        choice (int): the number of its oneof in the message; -1 for none.
        message (ProtoMessage | None): of a message or group; of a map the entry, with the fields 1 and 2.
    """

    number: int
    name: str
    kind: str
    is_repeated: bool
    is_nullable: bool
    choice: int
    message: ProtoMessage | None
    enum: ProtoEnum | None


@dataclass(frozen=True, slots=True, eq=False)
class ProtoMessage:
    """A message type.

    Attributes:
        name (str): its full name.
        fields (tuple[ProtoField, ...]): by number.
        form (str): ``timestamp``, ``duration`` or ``wrapper`` if columns have what it stands for, else empty.
        is_extended (bool): values may have more fields, declared elsewhere, which protobuf checks.
    """

    name: str
    fields: tuple[ProtoField, ...]
    form: str
    is_extended: bool


# The numbers of types in descriptors; those of messages come below.
_SCALARS = {
    1: "double",
    2: "float",
    3: "int64",
    4: "uint64",
    5: "int32",
    6: "fixed64",
    7: "fixed32",
    8: "bool",
    9: "string",
    12: "bytes",
    13: "uint32",
    14: "enum",
    15: "sfixed32",
    16: "sfixed64",
    17: "sint32",
    18: "sint64",
}
_GROUP = 10

# Full name -> form, and what the fields must be for that.
_TIMES = {"google.protobuf.Timestamp": "timestamp", "google.protobuf.Duration": "duration"}
_TIME_FIELDS = [(1, "int64"), (2, "int32")]
_WRAPPED = ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
_WRAPPERS = {f"google.protobuf.{name}Value": [(1, name.lower())] for name in _WRAPPED}

_ARROW = {
    "double": pa.float64(),
    "float": pa.float32(),
    "int64": pa.int64(),
    "uint64": pa.uint64(),
    "int32": pa.int32(),
    "fixed64": pa.uint64(),
    "fixed32": pa.uint32(),
    "bool": pa.bool_(),
    "string": pa.string(),
    "bytes": pa.binary(),
    "uint32": pa.uint32(),
    "enum": pa.string(),
    "sfixed32": pa.int32(),
    "sfixed64": pa.int64(),
    "sint32": pa.int32(),
    "sint64": pa.int64(),
}

_FORMS = {"timestamp": pa.timestamp("ns", "UTC"), "duration": pa.duration("ns")}


def proto_message(descriptor: Any) -> ProtoMessage:
    """The message type of a descriptor.

    Raises:
        SchemaError: it contains itself, or is too large.
    """
    _measure(descriptor, [])
    return _Types().message(descriptor)


def _measure(message: Any, open_types: list[str], count: int = 0) -> int:
    """The number of fields with nested ones, from `count` on."""
    if message.full_name in open_types:
        raise SchemaError(f"{message.full_name} contains itself; columns cannot represent recursive types")
    if len(open_types) >= MAX_DEPTH:
        raise SchemaError(f"messages are nested more than {MAX_DEPTH} levels deep")
    open_types.append(message.full_name)
    for field in message.fields:
        count += 1
        if count > MAX_FIELDS:
            raise SchemaError(f"the message type has more than {MAX_FIELDS} fields")
        if field.message_type is not None:
            count = _measure(field.message_type, open_types, count)
    open_types.pop()
    return count


class _Types:
    """Messages and enums by full name, each made once."""

    def __init__(self) -> None:
        self._messages: dict[str, ProtoMessage] = {}
        self._enums: dict[str, ProtoEnum] = {}

    def message(self, descriptor: Any) -> ProtoMessage:
        name = descriptor.full_name
        if name not in self._messages:
            fields = tuple(map(self._field, sorted(descriptor.fields, key=lambda field: field.number)))
            self._messages[name] = ProtoMessage(name, fields, _form(name, fields), _is_extended(descriptor))
        return self._messages[name]

    def _field(self, descriptor: Any) -> ProtoField:
        inner, enum, oneof = descriptor.message_type, descriptor.enum_type, descriptor.containing_oneof
        kind = _SCALARS.get(descriptor.type, "group" if descriptor.type == _GROUP else "message")
        return ProtoField(
            number=descriptor.number,
            name=descriptor.name,
            kind="map" if inner is not None and inner.GetOptions().map_entry else kind,
            is_repeated=_is_repeated(descriptor),
            is_nullable=bool(descriptor.has_presence),
            choice=-1 if oneof is None or len(oneof.fields) == 1 else oneof.index,
            message=None if inner is None else self.message(inner),
            enum=None if enum is None else self._enum(enum),
        )

    def _enum(self, descriptor: Any) -> ProtoEnum:
        name = descriptor.full_name
        if name not in self._enums:
            names: dict[int, str] = {}
            for value in descriptor.values:
                names.setdefault(value.number, value.name)
            self._enums[name] = ProtoEnum(names, bool(descriptor.is_closed))
        return self._enums[name]


def _is_repeated(descriptor: Any) -> bool:
    found = getattr(descriptor, "is_repeated", None)  # `label` before protobuf 6, and no longer since 7
    return descriptor.label == descriptor.LABEL_REPEATED if found is None else bool(found)


def _is_extended(descriptor: Any) -> bool:
    return bool(descriptor.is_extendable and descriptor.file.pool.FindAllExtensions(descriptor))


def _form(name: str, fields: tuple[ProtoField, ...]) -> str:
    """What a well-known type stands for, if it has the fields of that type."""
    kinds = [(f.number, f.kind) for f in fields if not f.is_repeated]
    if name in _TIMES and kinds == _TIME_FIELDS and len(fields) == 2:
        return _TIMES[name]
    return "wrapper" if name in _WRAPPERS and kinds == _WRAPPERS[name] and len(fields) == 1 else ""


def messages_of(root: ProtoMessage) -> list[ProtoMessage]:
    """The message and all that it contains, each once and before those that it contains."""
    known: set[ProtoMessage] = set()
    found: list[ProtoMessage] = []

    def visit(message: ProtoMessage) -> None:
        known.add(message)
        for f in message.fields:
            if f.message is not None and f.message not in known:
                visit(f.message)
        found.append(message)

    visit(root)
    return found[::-1]


def arrow_type(message: ProtoMessage) -> pa.DataType:
    """The type of a column of messages, as a struct. All fields are nullable."""
    return pa.struct([pa.field(f.name, field_type(f)) for f in message.fields])


def field_type(field: ProtoField) -> pa.DataType:
    """The type of a field's column."""
    if field.kind == "map":
        assert field.message is not None
        key, value = field.message.fields
        return pa.map_(item_type(key), item_type(value))
    return pa.list_(item_type(field)) if field.is_repeated else item_type(field)


def item_type(field: ProtoField) -> pa.DataType:
    """The type of one value of a field."""
    if field.message is None:
        return _ARROW[field.kind]
    if field.message.form == "wrapper":
        return item_type(field.message.fields[0])
    return _FORMS.get(field.message.form) or arrow_type(field.message)
