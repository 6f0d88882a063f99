"""The model of a schema table: messages, structs and fields with the versions that have them."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

from kafkacodec.datatypes import NamedTuple

__all__ = ["ZERO", "FieldSpec", "MessageSpec", "StructSpec", "snake_case", "version_range", "version_text"]

# The default of fields whose zero value is an object: a zero uuid, a struct of defaults.
ZERO: Final = ...

# The last version of "3+" before it is limited to those of the message.
_OPEN_END = 1 << 15

_LOWER_THEN_UPPER = re.compile(r"([a-z0-9])([A-Z])")
_RUN_THEN_WORD = re.compile(r"([A-Z]+)([A-Z][a-z])")


@cache  # for the names of the schemas
def snake_case(name: str) -> str:
    """Kafka's name of a field as a Python attribute: ``isKRaftController`` becomes ``is_k_raft_controller``."""
    return _RUN_THEN_WORD.sub(r"\1_\2", _LOWER_THEN_UPPER.sub(r"\1_\2", name)).lower()


def version_range(text: str, within: range | None = None) -> range:
    """``3``, ``0-4``, ``2+`` or ``none`` as a range, limited to `within`."""
    if text == "none":
        return range(0)
    first, dash, last = text.partition("-")
    if text.endswith("+"):
        low, high = int(text[:-1]), _OPEN_END
    else:
        low, high = int(first), int(last if dash else first)
    if within is not None:
        low, high = max(low, within.start), min(high, within.stop - 1)
    return range(low, max(low, high + 1))


def version_text(versions: range, within: range | None = None) -> str:
    """A range as Kafka writes it: ``none``, ``3``, ``0-4``, or ``2+`` if it ends where `within` does."""
    if not versions:
        return "none"
    if within is not None and versions.stop == within.stop:
        return f"{versions.start}+"
    return str(versions.start) if len(versions) == 1 else f"{versions.start}-{versions.stop - 1}"


class FieldSpec(NamedTuple):
    """One field of a struct.

    Attributes:
        name: Kafka's name, in camel case.
        type: a primitive type's name, or the name of a struct of the same message.
        array: the type of an array's count: ``""`` if not an array, ``"int32"`` (an unsigned varint in flexible
            versions) or ``"int16"``.
        struct: the struct that `type` names, if it names one.
        versions, nullable, tagged: the versions that have the field, in which it may be null, in which it is tagged.
        tag: the number of a tagged field, else -1.
        default: the value of a field that a version lacks; None is null.
        ignorable: whether a value that a version lacks is dropped silently.
        compact: False for the one string that keeps its int16 length in flexible versions.
    """

    name: str
    type: str
    array: str
    struct: StructSpec | None
    versions: range
    nullable: range
    tagged: range
    tag: int
    default: Any
    ignorable: bool
    compact: bool

    @property
    def attribute(self) -> str:
        """The Python name."""
        return snake_case(self.name)

    @property
    def type_text(self) -> str:
        """The type as Kafka writes it, such as ``[]int32``."""
        return ("[]" if self.array else "") + self.type

    @property
    def default_text(self) -> str:
        """The default, such as ``null`` or ``-1``; empty if it is zero, empty or false."""
        if self.default is None:
            return "null"
        return "" if self.default in (0, "", b"", [], False, ZERO) else str(self.default)


class StructSpec(NamedTuple):
    """A named sequence of fields, in wire order."""

    name: str
    fields: tuple[FieldSpec, ...]


class MessageSpec(NamedTuple):
    """A request, a response or a data schema, with the structs inside it.

    `kind` is ``request``, ``response``, ``header``, ``data``, ``metadata``, ``coordinator-key`` or
    ``coordinator-value``; `key` is the API key or the record type, None if there is neither.
    """

    kind: str
    key: int | None
    versions: range
    flexible: range
    struct: StructSpec

    @property
    def name(self) -> str:
        """The class name, such as ``MetadataRequest``."""
        return self.struct.name
