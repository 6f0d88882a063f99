"""Encoding keys and values with a schema of a registry, in Confluent's framing.

Source: "Wire format" in Confluent's Schema Registry documentation: 0, the schema's number (int32, big-endian), for
Protobuf the indexes of the message type, and the payload.
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable, Mapping
from typing import Any

from kafkacodec.arguments import one_of
from kafkacodec.datatypes import NamedTuple
from kafkacodec.errors import EncodeError, SchemaError, SchemaNotFound
from kafkacodec.questions import leave_loop
from kafkacodec.shown import repr_of
from kafkacodec.signatures import suggests_options
from kafkacodec.values.decoding import require_packages
from kafkacodec.values.registry import Registry
from kafkacodec.values.schemas import FORMATS, Format, Schema, resolved_references
from kafkacodec.values.sources import NumberedSchemas

__all__ = ["Encoder"]

_HEAD = struct.Struct(">bI")


class _Ready(NamedTuple):
    """An encoder's data from the registry: the bytes before a payload, and the function from values to payloads."""

    head: bytes
    payload: Callable[[Any], bytes]


class Encoder:
    """Encodes values as Confluent's serializers do: a ``value_serializer`` or ``key_serializer`` of a producer.

    The registry is asked at the first value, and not again. May be called from several threads. A producer for asyncio
    lets it ask in a thread, so that the event loop goes on meanwhile; elsewhere a call waits, up to the registry's
    ``timeout`` for each attempt.

    Args:
        registry: a `Registry`, or its URL; in a test a dict of schemas by number, each registered for every subject.
        subject: where the schema is registered, such as ``"orders-value"``.
        schema: the schema, or its text. Default: the latest version of the subject.
        format: ``avro``, ``protobuf`` or ``json``: of a schema that is given as text, by default ``avro``; one of the
            registry has to be of it.
        register: register the schema if it is not there. Otherwise it has to be registered.
        validate: compare JSON with its schema, by the package jsonschema. Avro and Protobuf always match theirs.

    Values are dicts and the like for Avro and JSON, as fastavro and orjson take them; for Avro also what JSON has in
    place of times, decimals and bytes. For Protobuf they are messages, or dicts as protobuf's JSON has them. A field
    that the schema does not have is an error. None stays None: a tombstone.
    """

    @suggests_options
    def __init__(
        self,
        registry: Registry | str | Mapping[int, Schema | str],
        *,
        subject: str,
        schema: Schema | str | None = None,
        format: Format | None = None,
        register: bool = False,
        validate: bool = True,
    ) -> None:
        if format is not None:
            one_of("format", format, FORMATS)
        if register and schema is None:
            raise ValueError("register needs a schema")
        if not isinstance(registry, Registry | str | Mapping):
            raise TypeError(f"registry must be a Registry, its URL or a dict of schemas, not {type(registry).__name__}")
        self._registry: Registry | NumberedSchemas
        if isinstance(registry, Mapping):
            self._registry = NumberedSchemas.of(registry, format or "avro")
        else:
            self._registry = Registry(registry) if isinstance(registry, str) else registry
        self._subject, self._register, self._format = subject, register, format
        self._schema = Schema(schema, format or "avro") if isinstance(schema, str) else schema
        self._validate = validate
        self._ready: _Ready | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what the registry has answered: a copy in another process asks again."""
        return {**self.__dict__, "_ready": None}

    def __repr__(self) -> str:
        return repr_of(self, f"subject {self._subject}", self._registry)

    def __call__(self, value: Any) -> bytes | None:
        """The bytes of a value; None for None.

        Raises:
            EncodeError: the value does not match the schema.
            SchemaNotFound: the subject or the schema is not registered; SchemaError: it cannot be used.
            RegistryError: the registry does not answer.
            ImportError: a package of the extra ``values`` is missing.
        """
        if value is None:
            return None
        ready = self._ready
        if ready is None:
            if isinstance(self._registry, Registry):
                leave_loop(self.prepare)
            self.prepare()
            ready = self._ready
            assert ready is not None
        return ready.head + ready.payload(value)

    def prepare(self) -> None:
        """Ask the registry now, not at the first value. Does nothing if it has answered already.

        Raises as a call with a value does.
        """
        if self._ready is None:
            self._ready = self._asked()

    def _asked(self) -> _Ready:
        if self._schema is None:
            number, schema = self._registry.latest(self._subject)
        else:
            schema = self._schema
            number = self._number(schema)
        if self._format is not None and schema.format != self._format:
            raise SchemaError(f"the schema of {self._subject} is {schema.format}, not {self._format}")
        compares = self._validate and schema.format == "json"
        require_packages(schema.format, *(["jsonschema"] if compares else []))
        references = resolved_references(schema, self._registry)
        payload = _PAYLOADS[schema.format](schema, references) if compares or schema.format != "json" else _json_bytes
        return _Ready(_HEAD.pack(0, number), payload)

    def _number(self, schema: Schema) -> int:
        try:
            return self._registry.number(self._subject, schema, register=self._register)
        except SchemaNotFound as error:
            if self._register or not isinstance(self._registry, Registry):
                raise
            raise SchemaNotFound(f"{error}; register=True registers it") from None


def _avro(schema: Schema, references: Mapping[str, Schema]) -> Callable[[Any], bytes]:
    import fastavro

    from kafkacodec.values.avro.json_values import prepared_by

    named: dict[str, Any] = {}
    try:
        for used in references.values():
            fastavro.parse_schema(json.loads(used.text), named_schemas=named)
        parsed = fastavro.parse_schema(json.loads(schema.text), named_schemas=named)
    except Exception as error:  # fastavro raises its own, and those of wrong types
        raise SchemaError(f"fastavro does not accept the schema: {error}") from None

    prepare = prepared_by(parsed, named)

    def payload(value: Any) -> bytes:
        written = io.BytesIO()
        try:
            fastavro.schemaless_writer(written, parsed, value if prepare is None else prepare(value))
        except Exception as error:
            raise EncodeError(
                f"the value does not match the Avro schema: {str(error) or type(error).__name__}"
            ) from None
        return written.getvalue()

    return payload


def _json_bytes(value: Any) -> bytes:
    import orjson

    try:
        return orjson.dumps(value)
    except TypeError as error:  # orjson's own error is one
        raise EncodeError(f"the value is not JSON: {error}") from None


def _json(schema: Schema, references: Mapping[str, Schema]) -> Callable[[Any], bytes]:
    """JSON that the schema allows. What is compared are the bytes, since orjson also takes dates and dataclasses."""
    import orjson
    from jsonschema import Draft7Validator
    from jsonschema.validators import validator_for
    from referencing import Registry as Documents, Resource
    from referencing.jsonschema import DRAFT7

    try:
        document = json.loads(schema.text)
        named = {name: json.loads(used.text) for name, used in references.items()}
        resources = {name: Resource.from_contents(found, DRAFT7) for name, found in named.items()}
        known = {made.id() or name: made for name, made in resources.items()}
        kind = validator_for(document, default=Draft7Validator)
        kind.check_schema(document)
        validator = kind(document, registry=Documents().with_resources([*resources.items(), *known.items()]))
    except Exception as error:  # of json, jsonschema and referencing
        raise SchemaError(f"jsonschema does not accept the schema: {error}") from None

    def payload(value: Any) -> bytes:
        data = _json_bytes(value)
        try:
            wrong = next(validator.iter_errors(orjson.loads(data)), None)
        except Exception as error:  # a reference that nothing has, or a pattern that is none
            raise SchemaError(f"the JSON schema cannot be used: {error}") from None
        if wrong is not None:
            reason = wrong.message if len(wrong.message) <= _LONGEST else wrong.message[:_LONGEST] + "…"
            raise EncodeError(f"the value does not match the JSON schema: {wrong.json_path}: {reason}")
        return data

    return payload


_LONGEST = 200
"""Characters of a reason, which may contain the value."""


def _protobuf(schema: Schema, references: Mapping[str, Schema]) -> Callable[[Any], bytes]:
    from google.protobuf.json_format import ParseDict
    from google.protobuf.message import Message
    from google.protobuf.message_factory import GetMessageClass

    from kafkacodec.values.protobuf.compile import compiled_files, message_type

    file = compiled_files(schema, references)[-1]
    default = GetMessageClass(message_type(file, (), schema.message))
    indexes: dict[str, bytes] = {}

    def index(descriptor: Any) -> bytes:
        if descriptor.full_name not in indexes:
            indexes[descriptor.full_name] = _message_index(file, descriptor)
        return indexes[descriptor.full_name]

    def payload(value: Any) -> bytes:
        try:
            message = value if isinstance(value, Message) else ParseDict(value, default())
            data: bytes = index(message.DESCRIPTOR) + message.SerializeToString()
            return data
        except EncodeError:
            raise
        except Exception as error:  # protobuf's ParseError and EncodeError
            raise EncodeError(f"the value does not match the Protobuf schema: {error}") from None

    return payload


def _message_index(file: Any, descriptor: Any) -> bytes:
    """The indexes of a message type in its file, as zigzag varints after their number; a single 0 for the first."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    names, types = [], descriptor
    while types is not None:
        names.append(types.name)
        types = types.containing_type
    proto = FileDescriptorProto()
    file.CopyToProto(proto)
    path: list[int] = []
    level: Any = proto.message_type
    for name in reversed(names):
        here = [each.name for each in level]
        if name not in here or proto.package != descriptor.file.package:
            raise EncodeError(f"the schema has no message type {descriptor.full_name}")
        path.append(here.index(name))
        level = level[path[-1]].nested_type
    if path == [0]:
        return b"\x00"
    return b"".join(_zigzag(number) for number in (len(path), *path))


def _zigzag(number: int) -> bytes:
    rest, found = number << 1, bytearray()
    while rest > 0x7F:
        found.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*found, rest])


_PAYLOADS: dict[str, Callable[[Schema, Mapping[str, Schema]], Callable[[Any], bytes]]] = {
    "avro": _avro,
    "json": _json,
    "protobuf": _protobuf,
}
