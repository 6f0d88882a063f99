"""Message classes, made from schema tables.

`build` makes one class per message of a table, for all its versions; the classes of nested structs are attributes of
it. The encoder and decoder of a version are compiled on first use.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Self

from kafkacodec.errors import EncodeError, UnsupportedVersion
from kafkacodec.messages import _decode, _encode
from kafkacodec.messages._program import Program
from kafkacodec.messages._struct import Layout, LazyField, Struct, new_class
from kafkacodec.messages.compile import compile_message
from kafkacodec.messages.grammar import parse
from kafkacodec.messages.model import ZERO, FieldSpec, MessageSpec, StructSpec, version_text

__all__ = ["Message", "MessageStruct", "build"]

_ZERO_UUID = uuid.UUID(int=0)


def build(
    table: str | Iterable[MessageSpec], module: str, base: type[Message] | None = None
) -> dict[str, type[Message]]:
    """The classes of the messages of a schema table, by name.

    Args:
        table: the text of a table (see `kafkacodec.messages.grammar`), or its parsed messages.
        module: the name of the module where pickle finds the classes by name.
        base: the base class, a subclass of `Message` without fields. Default: `Message`.

    Raises:
        SchemaError: the table does not follow the grammar.
    """
    specs = parse(table) if isinstance(table, str) else table
    return {spec.name: _message_class(spec, module, base or Message) for spec in specs}


class MessageStruct(Struct):
    """A struct: fields as attributes, a keyword constructor, equality, copy and pickle.

    Kafka's types in Python: bool; int for all widths; float for float64; str for string; bytes; `uuid.UUID` for uuid;
    any buffer for records (a memoryview when decoded); lists for arrays; structs have the classes that are attributes
    of the message. Values are checked when encoded, not when set: the EncodeError has the path of the wrong field.
    """

    __slots__ = ()

    _spec: ClassVar[StructSpec]
    # By attribute: the default, whether it is made on first access, and the number of the slot.
    _rows: ClassVar[dict[str, tuple[Any, bool, int]]]
    _parts: ClassVar[dict[str, type[MessageStruct]]]

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values: structs as dicts, arrays as lists, records as bytes, uuids as `uuid.UUID`.

        If there are unknown tagged fields, they are under ``unknown_tagged_fields``.
        """
        out = {field.attribute: _plain(getattr(self, field.attribute)) for field in self._spec.fields}
        if self.unknown_tagged_fields:
            out["unknown_tagged_fields"] = dict(self.unknown_tagged_fields)
        return out

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """The reverse of `to_dict`; missing fields have their defaults.

        Raises EncodeError, with the path, for an unknown field, a struct that is not a dict, and an array that is not a
        list.
        """
        made: Self = _from_dict(cls, values, "")
        return made


class Message(MessageStruct):
    """A request, a response or a data schema.

    Attributes:
        api_key: the API key, or the record type of a data schema; None if there is neither.
        valid_versions: the supported versions.
        flexible_versions: those with compact lengths and tagged fields.
    """

    __slots__ = ()

    api_key: ClassVar[int | None]
    valid_versions: ClassVar[range]
    flexible_versions: ClassVar[range]
    _message: ClassVar[MessageSpec]
    _programs: ClassVar[_Programs]

    def encode(self, version: int) -> bytes:
        """The body as bytes, without frame size and header.

        Raises:
            EncodeError: a value of the wrong type or range, or one that the version lacks; `path` names the field.
            UnsupportedVersion: a version outside `valid_versions`.
        """
        return _encode.encode(self._programs[version], self)

    @classmethod
    def decode(cls, data: Any, version: int, start: int = 0) -> Self:
        """Decodes `data` (any buffer) from `start` to its end.

        Fields of type records are memoryviews of `data`; other fields are copied. All of `data` is checked now, but
        arrays of structs become lists on first access; until then the message keeps `data` alive.

        Raises:
            DecodeError: not a valid message, or bytes after it; `position` and `path` name the place.
            UnsupportedVersion: a version outside `valid_versions`.
        """
        made: Self = _decode.decode(cls._programs[version], data, start)
        return made

    def encode_frame(self, version: int, header: bytes) -> bytes:
        """A frame: int32 size, the encoded `header`, the body; errors as in `encode`."""
        return _encode.encode_frame(self._programs[version], self, header)

    def encode_frame_pieces(self, version: int, header: bytes) -> list[bytes | memoryview]:
        """The frame that `encode_frame` returns, in pieces to be written one after the other.

        Records of 16 KiB and more are views of the message's, which must stay as they are until they are written.
        """
        return _encode.encode_frame_pieces(self._programs[version], self, header)

    @classmethod
    def decode_prefix(cls, data: Any, version: int, start: int = 0) -> tuple[Self, int]:
        """The message at `start` and the position after it; more bytes may follow. Errors as in `decode`."""
        made: tuple[Self, int] = _decode.decode_prefix(cls._programs[version], data, start)
        return made

    @classmethod
    def require_version(cls, version: int) -> None:
        """Raises UnsupportedVersion for a version outside `valid_versions`."""
        if version not in cls.valid_versions:
            valid = version_text(cls.valid_versions)
            raise UnsupportedVersion(f"unsupported version {version!r} of {cls.__name__} (versions are {valid})")


class _Programs(dict[int, Program]):
    """The programs of a message class by version, each compiled on first use."""

    def __init__(self, cls: type[Message]) -> None:
        super().__init__()
        self.cls = cls

    def __missing__(self, version: int) -> Program:
        self.cls.require_version(version)
        number = int(version)  # True and 1.0 equal 1, but errors would show them
        program = self[number] = compile_message(self.cls._message, self.cls._parts, number)
        return program


class _FieldsDoc:
    """A docstring that lists the fields, made when it is read."""

    def __init__(self, title: str, spec: StructSpec, versions: range) -> None:
        self.title, self.spec, self.versions = title, spec, versions

    def __get__(self, instance: object, owner: type) -> str:
        lines = [f"    {field.attribute} ({field.type_text}): {self._facts(field)}" for field in self.spec.fields]
        return "\n".join([self.title, "", "Fields and the versions that have them:", *(lines or ["    none"])])

    def _facts(self, field: FieldSpec) -> str:
        facts = [version_text(field.versions, self.versions)]
        if field.nullable:
            facts.append(f"null in {version_text(field.nullable, self.versions)}")
        if field.tagged:
            facts.append(f"tag {field.tag}")
        if field.default_text:
            facts.append(f"default {field.default_text}")
        return ", ".join(facts)


def _message_class(spec: MessageSpec, module: str, base: type[Message]) -> type[Message]:
    parts: dict[str, type[MessageStruct]] = {}
    attributes: dict[str, Any] = {
        "__doc__": _FieldsDoc(_title(spec), spec.struct, spec.versions),
        "api_key": spec.key,
        "valid_versions": spec.versions,
        "flexible_versions": spec.flexible,
        "_message": spec,
    }
    made: type[Message] = _struct_class(spec.struct, (base,), module, "", attributes, spec.versions, parts)
    made._programs = _Programs(made)
    for name, part in parts.items():
        if part is not made:
            setattr(made, name, part)
    return made


def _title(spec: MessageSpec) -> str:
    key = "" if spec.key is None else f", key {spec.key}"
    flexible = version_text(spec.flexible, spec.versions)
    return f"{spec.name}{key}, versions {version_text(spec.versions)}, flexible {flexible}."


def _struct_class(
    spec: StructSpec,
    bases: tuple[type, ...],
    module: str,
    outer: str,
    attributes: dict[str, Any],
    versions: range,
    parts: dict[str, type[MessageStruct]],
) -> Any:
    """The class of a struct; adds it and those of nested structs to `parts`."""
    qualified = f"{outer}.{spec.name}" if outer else spec.name
    for field in spec.fields:
        if field.struct and field.struct.name not in parts:
            title = f"{field.struct.name} of {outer or spec.name}."
            inner = {"__doc__": _FieldsDoc(title, field.struct, versions)}
            _struct_class(field.struct, (MessageStruct,), module, outer or spec.name, inner, versions, parts)
    names = tuple(field.attribute for field in spec.fields)
    made = new_class(f"{module}.{spec.name}", bases, names)
    factories = tuple(_factory(field, parts) for field in spec.fields)
    defaults = tuple(
        None if factory else _ZERO_UUID if field.default is ZERO else field.default
        for field, factory in zip(spec.fields, factories, strict=True)
    )
    # A mutable default is made on first access if some version lacks the field.
    lazy = tuple(
        factory is not None and (field.versions != versions or bool(field.tagged))
        for field, factory in zip(spec.fields, factories, strict=True)
    )
    made._layout = Layout(made, names, defaults, factories, lazy)
    made._rows = {
        name: (factory() if factory else default, late, i)
        for i, (name, factory, default, late) in enumerate(zip(names, factories, defaults, lazy, strict=True))
    }
    for i, field in enumerate(spec.fields):
        if lazy[i] or field.type == "records" or (field.array and field.struct):
            setattr(made, field.attribute, LazyField(made._layout, i))
    attributes = {"__qualname__": qualified, "__slots__": names, "_spec": spec, "_parts": parts, **attributes}
    for name, value in attributes.items():
        setattr(made, name, value)
    parts[spec.name] = made
    return made


def _factory(field: FieldSpec, parts: dict[str, type[MessageStruct]]) -> Callable[[], Any] | None:
    if field.default is None:
        return None
    if field.array:
        return list
    return parts[field.struct.name] if field.struct else None


def _plain(value: Any) -> Any:
    if isinstance(value, MessageStruct):
        return value.to_dict()
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return bytes(value) if isinstance(value, memoryview) else value


def _from_dict(cls: Any, values: Any, path: str) -> Any:
    if not isinstance(values, dict) and not path:
        raise TypeError(f"expected a dict, got {type(values).__name__}")
    if not isinstance(values, dict):
        raise EncodeError(f"expected a dict, got {type(values).__name__}", path=path)
    dot = path + "." if path else ""
    made = cls()
    known = {field.attribute: field for field in cls._spec.fields}
    for name, value in values.items():
        field = known.get(name)
        if field is not None:
            setattr(made, name, _field_from_dict(cls, field, value, dot + name))
        elif name == "unknown_tagged_fields":
            made.unknown_tagged_fields = value
        else:
            raise EncodeError(f"unknown field of {cls.__qualname__}", path=dot + str(name))
    return made


def _field_from_dict(cls: Any, field: FieldSpec, value: Any, path: str) -> Any:
    if value is None:
        return None
    if field.array:
        if not isinstance(value, (list, tuple)):
            raise EncodeError(f"expected a list, got {type(value).__name__}", path=path)
        if not field.struct:
            return list(value)
        inner = cls._parts[field.struct.name]
        return [_from_dict(inner, item, f"{path}[{i}]") for i, item in enumerate(value)]
    return _from_dict(cls._parts[field.struct.name], value, path) if field.struct else value
