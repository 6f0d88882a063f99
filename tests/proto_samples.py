"""Random Protobuf schemas as text, random bytes for them, and what protobuf's own library reads in those."""

from __future__ import annotations

import struct
from collections.abc import Callable
from random import Random
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

SCALARS = """
    double float int32 int64 uint32 uint64 sint32 sint64 fixed32 fixed64 sfixed32 sfixed64 bool string bytes
""".split()  # noqa: SIM905
KEYS = [kind for kind in SCALARS if kind not in ("double", "float", "bytes")]
KNOWN = ["Timestamp", "Duration", "Int32Value", "UInt64Value", "StringValue", "BytesValue", "DoubleValue", "BoolValue"]
IMPORTS = "".join(f'import "google/protobuf/{name}.proto";\n' for name in ("timestamp", "duration", "wrappers", "any"))
NUMBERS = [*range(1, 19), 2047, 536870911]
HEADS = {"proto2": 'syntax = "proto2";', "proto3": 'syntax = "proto3";', "2023": 'edition = "2023";'}


@st.composite
def schemas(draw: st.DrawFn) -> str:
    """The text of a .proto file whose first message, A, has all others that are used."""
    syntax = draw(st.sampled_from(sorted(HEADS)))
    count = draw(st.integers(1, 4))
    enums = [_enum(draw, syntax, i) for i in range(2)]
    messages = [_message(draw, syntax, i, count) for i in range(count)]
    return "\n".join([HEADS[syntax], IMPORTS, *enums, *messages])


def _enum(draw: st.DrawFn, syntax: str, i: int) -> str:
    numbers = draw(st.lists(st.integers(-3, 8), min_size=1, max_size=4, unique=True))
    if syntax != "proto2" or i:  # a map's enum starts with 0
        numbers = [0, *(n for n in numbers if n)]
    closed = "option features.enum_type = CLOSED; " if syntax == "2023" and draw(st.booleans()) else ""
    values = "".join(f"E{i}_{j} = {number}; " for j, number in enumerate(numbers))
    alias = f"option allow_alias = true; E{i}_ALIAS = {numbers[-1]};" if draw(st.booleans()) else ""
    return f"enum E{i} {{ {closed}{values}{alias} }}"


def _message(draw: st.DrawFn, syntax: str, i: int, count: int) -> str:
    numbers = draw(st.lists(st.sampled_from(NUMBERS), min_size=0, max_size=7, unique=True))
    fields = [_field(draw, syntax, number, i, count) for number in numbers]
    if syntax == "proto2" and draw(st.booleans()):
        fields.append("extensions 100 to 200;")
    name = chr(ord("A") + i)
    extend = (
        f"extend {name} {{ optional int32 x{i} = 100; repeated Y{i} y{i} = 101; }}"
        if len(fields) > len(numbers)
        else ""
    )
    extra = f"message Y{i} {{ optional string s = 1; }} {extend}" if extend else ""
    return f"message {name} {{ {' '.join(fields)} }} {extra}"


def _field(draw: st.DrawFn, syntax: str, number: int, i: int, count: int) -> str:
    name = f"f{number}"
    form = draw(st.sampled_from(["single", "single", "repeated", "map", "oneof", "group"]))
    if form == "map":
        value = _type(draw, i, count, in_map=True)
        return f"map<{draw(st.sampled_from(KEYS))}, {value}> {name} = {number};"
    if form == "oneof":
        other = number + 20 if number < 2047 else number - 1
        members = f"{_type(draw, i, count)} {name} = {number}; {_type(draw, i, count)} {name}b = {other};"
        return f"oneof o{number} {{ {members} }}"
    if form == "group" and syntax == "proto2":
        label = draw(st.sampled_from(["optional", "repeated", "required"]))
        return (
            f"{label} group G{number} = {number} {{ optional {_type(draw, i, count)} a = 1; repeated string b = 2; }}"
        )
    kind = _type(draw, i, count)
    is_message = kind[0] in "gABCD"
    if form == "group" and syntax == "2023" and is_message:
        return f"{kind} {name} = {number} [features.message_encoding = DELIMITED];"
    if form == "repeated":
        packable = kind not in ("string", "bytes") and not is_message
        packed = (
            draw(st.sampled_from(["", " [packed = true]", " [packed = false]"]))
            if packable and syntax != "2023"
            else ""
        )
        return f"repeated {kind} {name} = {number}{packed};"
    if syntax == "2023":
        presence = draw(st.sampled_from(["EXPLICIT", "IMPLICIT", "LEGACY_REQUIRED"]))
        plain = is_message or kind.startswith("E") or presence == "EXPLICIT"
        return f"{kind} {name} = {number}{'' if plain else f' [features.field_presence = {presence}]'};"
    label = draw(st.sampled_from(["optional", "required"] if syntax == "proto2" else ["", "optional"]))
    default = " [default = 7]" if label == "optional" and syntax == "proto2" and kind == "int32" else ""
    return f"{label} {kind} {name} = {number}{default};"


def _type(draw: st.DrawFn, i: int, count: int, *, in_map: bool = False) -> str:
    names = [chr(ord("A") + j) for j in range(i + 1, count)]
    known = [f"google.protobuf.{name}" for name in [*KNOWN, "Any"]]
    enums = ["E1"] if in_map else ["E0", "E1"]
    return draw(st.sampled_from([*SCALARS, *SCALARS, *enums, *names * 4, *known]))


# --- bytes ------------------------------------------------------------------------------------------------------------


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def sized(data: bytes) -> bytes:
    return varint(len(data)) + data


_FORMATS = {1: "<d", 2: "<f", 6: "<Q", 7: "<I", 15: "<i", 16: "<q"}
_EIGHT, _FOUR = (1, 6, 16), (2, 7, 15)
_STRING, _GROUP, _MESSAGE, _BYTES, _ENUM, _BOOL = 9, 10, 11, 12, 14, 8


class Writer:
    """Writes values of message types: mostly as serializers do, and sometimes oddly, but never longer than a few KB.

    Args:
        oddity: the share of what is odd, from 0 to 1.
    """

    def __init__(self, random: Random, oddity: float) -> None:
        self._random, self._oddity = random, oddity

    def message(self, descriptor: Any, depth: int = 0) -> bytes:
        """The bytes of a message."""
        fields = list(descriptor.fields)
        if self._odd() and descriptor.is_extendable:
            fields += list(descriptor.file.pool.FindAllExtensions(descriptor))
        chosen = [f for f in fields if self._random.random() < 0.6]
        if descriptor.GetOptions().map_entry:
            chosen = [f for f in fields if not self._odd()]
        if self._odd():
            chosen += self._random.choices(fields, k=2) if fields else []
            self._random.shuffle(chosen)
        seen = set()
        parts = []
        for f in chosen:
            group = f.containing_oneof.name if f.containing_oneof else f.number
            if group in seen and not self._odd():
                continue
            seen.add(group)
            parts.append(self._field(f, depth))
        if self._odd():
            parts.insert(self._random.randint(0, len(parts)), self._unknown())
        return b"".join(parts)

    def _odd(self) -> bool:
        return self._random.random() < self._oddity

    def _field(self, f: Any, depth: int) -> bytes:
        repeated = is_repeated(f)
        count = self._random.choice([0, 1, 2, 3]) if repeated else 1
        if depth > 3:
            count = min(count, 1)
        if f.type in (_STRING, _BYTES, _MESSAGE, _GROUP):
            return b"".join(self._one(f, depth) for _ in range(count))
        packed = repeated and (f.is_packed != self._odd())
        wire = 1 if f.type in _EIGHT else 5 if f.type in _FOUR else 0
        if packed:
            return self._tag(f.number, 2) + sized(b"".join(self._number(f) for _ in range(count)))
        if self._odd():  # another wire type
            return self._tag(f.number, 2) + sized(b"a")
        return b"".join(self._tag(f.number, wire) + self._number(f) for _ in range(count))

    def _tag(self, number: int, wire: int) -> bytes:
        return varint(number << 3 | wire)

    def _one(self, f: Any, depth: int) -> bytes:
        if self._random.random() < self._oddity / 4:
            return self._tag(f.number, 0) + varint(1)
        if f.type == _STRING:
            texts = [b"", b"a", "é".encode(), b"k", b"a longer text than twelve", b"\0"]
            if self._odd():
                texts = [b"\xff", b"\xed\xa0\x80", b"\xc0\x80"]
            return self._tag(f.number, 2) + sized(self._random.choice(texts))
        if f.type == _BYTES:
            return self._tag(f.number, 2) + sized(self._random.choice([b"", b"\xff", b"abc"]))
        inner = self.message(f.message_type, depth + 1)
        if f.type == _GROUP:
            end = f.number + (self._random.random() < self._oddity / 8)
            return self._tag(f.number, 3) + inner + self._tag(end, 4)
        return self._tag(f.number, 2) + sized(inner)

    def _number(self, f: Any) -> bytes:
        if f.type in _FORMATS:
            edges: list[Any] = [0, 1, 2]
            return struct.pack(_FORMATS[f.type], self._random.choice([*edges, 1.5] if f.type < 3 else edges))
        if f.type == _BOOL and not self._odd():
            return varint(self._random.choice([0, 1]))
        if f.type == _ENUM:
            numbers = [value.number for value in f.enum_type.values]
            return varint(self._random.choice(numbers) if not self._odd() else self._random.choice([77, -77, 1 << 32]))
        edges = [0, 1, 2, 300, (1 << 31) - 1]
        signed = f.name != "nanos" and f.type in (3, 5)
        if signed:
            edges += [-1, -(1 << 31)]
        if f.name == "seconds" and not self._odd():
            edges = [0, 1, -1, 9223372035, -9223372035, 1700000000]
        if f.name == "nanos" and not self._odd():
            edges = [0, 1, -1, 999999999]
        if self._odd():
            edges += [1 << 31, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, 9223372036, -9223372037]
        number = varint(self._random.choice(edges))
        if self._odd() and len(number) < 9:  # not the shortest form
            number = number[:-1] + bytes([number[-1] | 0x80]) + b"\x80\x00"
        return number

    def _unknown(self, depth: int = 0) -> bytes:
        number = self._random.choice([4000, 90, 150])
        kind = self._random.choice([0, 1, 2, 3, 5] if depth < 3 else [0])
        if kind == 3:
            return self._tag(number, 3) + self._unknown(depth + 1) + self._tag(number, 4)
        return self._tag(number, kind) + {0: varint(5), 1: bytes(8), 2: sized(b"zz"), 5: bytes(4)}[kind]

    def damaged(self, value: bytes) -> bytes:
        """The bytes with a few changes."""
        at = self._random.randint(0, len(value))
        return (
            value[:at] + self._random.randbytes(self._random.randint(0, 2)) + value[at + self._random.randint(0, 2) :]
        )


def is_repeated(f: Any) -> bool:
    return bool(f.is_repeated if hasattr(f, "is_repeated") else f.label == f.LABEL_REPEATED)


# --- what protobuf reads ----------------------------------------------------------------------------------------------


class Unfit(Exception):
    """A column cannot have the value."""


def read(message: Any) -> dict[str, Any]:
    """The message as plain Python values: maps as sorted pairs, times as nanoseconds, floats as text."""
    return {f.name: _read_field(message, f) for f in message.DESCRIPTOR.fields}


def _read_field(message: Any, f: Any) -> Any:
    if f.message_type is not None and f.message_type.GetOptions().map_entry:
        value = f.message_type.fields_by_name["value"]
        try:
            pairs = [(k, found[k]) for found in [getattr(message, f.name)] for k in found]
        except UnicodeDecodeError:
            raise Unfit from None
        return sorted((_read_one(k, f.message_type.fields_by_name["key"]), _read_one(v, value)) for k, v in pairs)
    if is_repeated(f):
        return [_read_one(value, f) for value in getattr(message, f.name)]
    if f.has_presence and not message.HasField(f.name):
        return None
    return _read_one(getattr(message, f.name), f)


def _read_one(value: Any, f: Any) -> Any:
    if f.enum_type is not None:
        names = [v.name for v in f.enum_type.values if v.number == value]
        return names[0] if names else str(value)
    if isinstance(value, float):
        return repr(value)
    if f.message_type is None:
        if f.type == _STRING and isinstance(value, bytes):
            raise Unfit
        return value
    name = f.message_type.full_name
    if name in ("google.protobuf.Timestamp", "google.protobuf.Duration"):
        time = value.seconds * 10**9 + value.nanos
        if not -(2**63) <= time < 2**63:
            raise Unfit
        return time
    if name.startswith("google.protobuf.") and name.endswith("Value"):
        return _read_one(value.value, value.DESCRIPTOR.fields_by_name["value"])
    return read(value)


def expected(parse: Callable[[bytes], Any], value: bytes) -> dict[str, Any] | None:
    """What protobuf reads; None if it refuses the bytes, or columns cannot have the value."""
    from google.protobuf.message import DecodeError

    try:
        return read(parse(value))
    except (DecodeError, Unfit):
        return None


def plain(column: pa.ChunkedArray) -> list[Any]:
    """The rows of a column in the same form."""
    return [
        None if row is None else _plain(row, column.type) for row in column.cast(_with_numbers(column.type)).to_pylist()
    ]


def _with_numbers(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, _with_numbers(f.type)) for f in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _with_numbers(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(_with_numbers(kind.value_type))
    return pa.int64() if pa.types.is_timestamp(kind) or pa.types.is_duration(kind) else kind


def _plain(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {f.name: _plain(value[f.name], f.type) for f in kind}
    if pa.types.is_map(kind):
        return sorted((key, _plain(item, kind.item_type)) for key, item in value)
    if pa.types.is_list(kind):
        return [_plain(item, kind.value_type) for item in value]
    return repr(value) if isinstance(value, float) else value
