"""Java's serializers and deserializers, which are named in configurations: the functions that do the same here.

Source: the classes of ``org.apache.kafka.common.serialization``; numbers are big-endian, UUIDs are their text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kafkacodec.datatypes import NamedTuple

__all__ = ["not_callable"]


class _Functions(NamedTuple):
    """The replacement of a pair of Java's classes, as Python."""

    serializer: str
    deserializer: str


_NOT_NEEDED: Final = "leave it out: without one, keys and values are bytes"


def _for_values(serializer: str, deserializer: str) -> _Functions:
    """Serializers get None for null, deserializers do not."""
    return _Functions(f"give lambda v: None if v is None else {serializer}", f"give {deserializer}")


def _whole_number(size: int) -> _Functions:
    return _for_values(f"v.to_bytes({size}, 'big', signed=True)", "lambda b: int.from_bytes(b, 'big', signed=True)")


def _real_number(code: str) -> _Functions:
    return _for_values(f"struct.pack('>{code}', v)", f"lambda b: struct.unpack('>{code}', b)[0]")


_NOTHING: Final = _Functions(_NOT_NEEDED, _NOT_NEEDED)
_SCHEMAS: Final = _Functions(
    "give kc.values.Encoder(url, subject=...), with the registry's URL",
    "leave it out, and read columns(values=kc.values.ValueDecoder(url)), with the registry's URL",
)

# The name of a class without its package and without -Serializer or -Deserializer.
_INSTEAD: Final[Mapping[str, _Functions]] = {
    "String": _for_values("v.encode()", "bytes.decode"),
    **dict.fromkeys(("ByteArray", "ByteBuffer", "Bytes"), _NOTHING),
    "Short": _whole_number(2),
    "Integer": _whole_number(4),
    "Long": _whole_number(8),
    "Float": _real_number("f"),
    "Double": _real_number("d"),
    "UUID": _for_values("str(v).encode()", "lambda b: uuid.UUID(b.decode())"),
    "Json": _for_values("json.dumps(v).encode()", "json.loads"),
    **dict.fromkeys(("KafkaAvro", "KafkaProtobuf", "KafkaJsonSchema"), _SCHEMAS),
}


def not_callable(option: str, value: object) -> TypeError:
    """Return the error about an option that must be a function; for a class of Java, with its replacement."""
    return TypeError(f"{option} must be callable, not {_shown(option, value)}")


def _shown(option: str, value: Any) -> str:
    if not isinstance(value, str):
        return type(value).__name__
    kind = option.rpartition("_")[2]
    name = value.rpartition(".")[2].removesuffix(kind.capitalize())
    if kind in _Functions._fields and name in _INSTEAD:
        return f"the name of a Java class; {getattr(_INSTEAD[name], kind)}"
    return f"a text: classes are not loaded by name ({value!r})"
