"""Protobuf values that parsers take but few serializers write, and schemas of all kinds, as protobuf reads them."""

from __future__ import annotations

import base64
from collections.abc import Mapping

import pyarrow as pa
import pytest

import kafkacodec as kc
from kafkacodec.values.contained import LibraryPanic, contained
from kafkacodec.values.protobuf.compile import compiled_files
from tests.proto_samples import expected, plain, sized, varint

PROTO3 = """
syntax = "proto3";
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/wrappers.proto";
message A {
  map<string, B> by_text = 1;
  map<int32, google.protobuf.Timestamp> times = 2;
  map<fixed32, google.protobuf.Int32Value> wrapped = 3;
  map<string, int32> counts = 4;
  B single = 5;
  google.protobuf.Timestamp at = 6;
  google.protobuf.Duration lasts = 7;
  google.protobuf.StringValue text = 8;
  oneof choice { int32 number = 9; B inner = 10; string word = 11; }
  repeated int32 packed = 12;
  E kind = 13;
  int32 small = 14;
}
message B { int32 x = 1; repeated int32 list = 2; string name = 3; }
enum E { option allow_alias = true; NONE = 0; ONE = 1; UN = 1; }
"""
PROTO2 = """
syntax = "proto2";
message A {
  optional group Part = 1 { optional int32 x = 1; repeated string names = 2; }
  repeated group Row = 2 { optional int32 y = 1; }
  optional E kind = 3;
  repeated E kinds = 4;
  map<int32, E> by_number = 5;
  required int32 needed = 6;
  optional int32 count = 7 [default = 5];
  optional string text = 8;
  map<string, string> words = 9;
  extensions 100 to 200;
}
enum E { ZERO = 0; TWO = 2; }
message X { optional int32 x = 1; }
extend A { optional X more = 100; }
"""
EDITION = """
edition = "2023";
message A {
  int32 explicit = 1;
  int32 implicit = 2 [features.field_presence = IMPLICIT];
  B delimited = 3 [features.message_encoding = DELIMITED];
  repeated int32 packed = 4;
  repeated int32 expanded = 5 [features.repeated_field_encoding = EXPANDED];
  Open open = 6;
  Closed closed = 7;
  map<string, B> parts = 8;
  oneof choice { string word = 9; B part = 10; }
  int32 needed = 11 [features.field_presence = LEGACY_REQUIRED];
  string unchecked = 12 [features.utf8_validation = NONE];
}
message B { int32 x = 1; int32 y = 2 [default = 3]; }
enum Open { OPEN_ZERO = 0; }
enum Closed { option features.enum_type = CLOSED; CLOSED_ZERO = 0; }
"""


def field(number: int, value: bytes | int) -> bytes:
    """A field of a number or of bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + sized(value)


def group(number: int, value: bytes) -> bytes:
    return varint(number << 3 | 3) + value + varint(number << 3 | 4)


KEY = field(1, b"k")
DEEP = b"".join(varint(200 << 3 | 3) for _ in range(101)) + b"".join(varint(200 << 3 | 4) for _ in range(101))

VALUES: Mapping[str, tuple[str, bytes]] = {
    "map entry without its value": (PROTO3, field(1, KEY)),
    "map entry without a time": (PROTO3, field(2, field(1, 7))),
    "map entry without a wrapper": (PROTO3, field(3, b"")),
    "map entry without anything": (PROTO3, field(1, b"") + field(4, b"")),
    "map entry with an unknown field": (PROTO3, field(4, KEY + field(2, 1) + field(3, 1))),
    "map entry with its value in pieces": (PROTO3, field(1, KEY + field(2, field(1, 1)) + field(2, field(2, b"\1")))),
    "map entry with two keys": (PROTO3, field(4, KEY + field(1, b"l") + field(2, 1))),
    "repeated key": (PROTO3, field(4, KEY + field(2, 1)) + field(4, KEY + field(2, 2))),
    "repeated key of messages": (PROTO3, field(1, KEY + field(2, field(1, 1))) + field(1, KEY + field(2, b""))),
    "repeated key that is left out": (PROTO3, field(4, field(2, 1)) + field(4, field(1, b"") + field(2, 2))),
    "message in pieces": (PROTO3, field(5, field(1, 1) + field(2, b"\1")) + field(5, field(2, b"\2") + field(3, b"n"))),
    "time in pieces": (PROTO3, field(6, field(1, 5)) + field(6, field(2, 7))),
    "duration in pieces": (PROTO3, field(7, field(1, 5)) + field(7, field(2, 7))),
    "wrapper in pieces": (PROTO3, field(8, field(1, b"a")) + field(8, b"")),
    "time with its seconds twice": (PROTO3, field(6, field(1, 5) + field(1, 6))),
    "two members of a oneof": (PROTO3, field(9, 1) + field(11, b"w")),
    "two members in the other order": (PROTO3, field(11, b"w") + field(9, 1)),
    "member between two pieces of another": (PROTO3, field(10, field(1, 1)) + field(9, 1) + field(10, field(3, b"n"))),
    "member in pieces": (PROTO3, field(10, field(1, 1)) + field(10, field(3, b"n"))),
    "unpacked and packed": (PROTO3, field(12, 1) + field(12, b"\2\3") + field(12, b"")),
    "alias and unknown number": (PROTO3, field(13, 1)),
    "number of an open enum": (PROTO3, field(13, 77)),
    "number that exceeds 32 bits": (PROTO3, field(14, 1 << 32 | 5)),
    "negative number in five bytes": (PROTO3, varint(14 << 3) + b"\xff\xff\xff\xff\x0f"),
    "another wire type": (PROTO3, field(14, b"ab") + field(11, 1)),
    "unknown group": (PROTO3, group(300, field(1, 1)) + field(14, 1)),
    "unknown group that ends as another": (PROTO3, varint(300 << 3 | 3) + varint(301 << 3 | 4)),
    "unknown groups, too deep": (PROTO3, DEEP),
    "group": (PROTO2, group(1, field(1, 1) + field(2, b"a"))),
    "group in pieces": (PROTO2, group(1, field(1, 1)) + group(1, field(2, b"b"))),
    "repeated group": (PROTO2, group(2, field(1, 1)) + group(2, b"")),
    "group that ends as another": (PROTO2, varint(1 << 3 | 3) + varint(2 << 3 | 4)),
    "group with a length": (PROTO2, field(1, field(1, 1))),
    "unknown number of a closed enum": (PROTO2, field(3, 77) + field(6, 1)),
    "known and unknown numbers": (
        PROTO2,
        field(3, 2) + field(3, 77) + field(4, 77) + field(4, 2) + field(4, b"\x4d\0"),
    ),
    "unknown number in a map": (PROTO2, field(5, field(1, 1) + field(2, 77)) + field(5, field(1, 2) + field(2, 2))),
    "required field that is missing": (PROTO2, b""),
    "default": (PROTO2, field(7, 5)),
    "extension": (PROTO2, field(100, field(1, 5)) + field(6, 1)),
    "extension that is damaged": (PROTO2, field(100, b"\x08") + field(6, 1)),
    "edition": (EDITION, group(3, field(1, 4)) + field(4, b"\1\2") + field(5, 3) + field(1, 0) + field(8, KEY)),
    "edition, unset": (EDITION, b""),
    "edition, closed enum": (EDITION, field(6, 9) + field(7, 9)),
    "edition, oneof": (EDITION, field(9, b"a") + field(10, b"")),
}


@pytest.fixture(scope="module")
def parsers():
    from google.protobuf.message_factory import GetMessageClass

    found = {}
    for text in (PROTO3, PROTO2, EDITION):
        file = compiled_files(kc.values.Schema(text, "protobuf"), {})[-1]
        found[text] = GetMessageClass(file.message_types_by_name["A"]).FromString
    return found


@pytest.fixture(scope="module")
def decoders():
    return {
        text: kc.values.ValueDecoder(kc.values.Schema(text, "protobuf"), on_error="null")
        for text in (PROTO3, PROTO2, EDITION)
    }


@pytest.mark.parametrize("name", VALUES)
def test_columns_have_what_protobuf_reads(parsers, decoders, name):
    text, value = VALUES[name]
    found = decoders[text].decode([b"", value, b""])
    found.values.validate(full=True)
    want = expected(parsers[text], value)
    assert plain(found.values)[1] == want
    assert (found.errors.to_pylist()[1] is None) == (want is not None)
    assert plain(found.values)[0] == expected(parsers[text], b"")


def test_rows_keep_their_order(parsers, decoders):
    values = [value for text, value in VALUES.values() if text == PROTO3] * 3
    values[::2] = [field(14, i) for i in range(len(values[::2]))]
    found = decoders[PROTO3].decode(values)
    assert plain(found.values) == [expected(parsers[PROTO3], value) for value in values]


def test_text_that_is_not_utf8_is_an_error_of_its_row(decoders):
    """proto2 does not check text, but columns have to."""
    values = [field(8, b"a"), field(8, b"\xff"), group(1, field(2, b"\xff"))]
    values += [field(9, KEY) + field(9, field(1, b"\xff")), field(9, KEY + field(2, b"\xff"))]
    found = decoders[PROTO2].decode(values)
    assert [row and row["text"] for row in found.values.to_pylist()] == ["a", None, None, None, None]
    assert found.errors.to_pylist()[1:] == [
        "field text: a string is not UTF-8 (field text, byte 2)",
        "field names: a string is not UTF-8",
        "field words: a key is not UTF-8 (field WordsEntry.key, byte 9)",
        "field value: a string is not UTF-8 (field WordsEntry.value, byte 7)",
    ]


def test_errors_name_field_and_byte(decoders):
    found = decoders[PROTO3].decode([field(14, 1) + field(5, b"\x1a\x05ab"), field(12, b"\x80"), b"\x08\x00\x00"])
    reason = "Error parsing message with type 'A': Wire format was corrupt"
    assert found.errors.to_pylist() == [
        f"{reason} (field B.name, byte 5)",
        f"{reason} (field packed, byte 2)",
        f"{reason} (byte 2)",
    ]


NAMES = ["DESCRIPTOR", "HasField", "ListFields", "MergeFromString", "class", "None", "key", "value", "f0", "o0"]


def test_fields_may_have_any_name():
    fields = "".join(f"optional int32 {name} = {i};" for i, name in enumerate(NAMES, 1))
    text = f'syntax="proto3"; message A {{ {fields} message FromString {{ int32 x = 1; }} FromString inner = 30; }}'
    value = b"".join(field(i, i) for i in range(1, len(NAMES) + 1))
    rows = kc.values.decode([value, value + group(99, b"")], kc.values.Schema(text, "protobuf")).values.to_pylist()
    assert rows == [{**{name: i for i, name in enumerate(NAMES, 1)}, "inner": None}] * 2


def test_many_different_keys_and_then_one_twice(decoders, parsers):
    entries = [field(4, field(1, f"key {i}".encode()) + field(2, i)) for i in range(5000)]
    values = [b"".join(entries), b"".join([*entries, entries[1234]])]
    found = decoders[PROTO3].decode(values)
    assert plain(found.values) == [expected(parsers[PROTO3], value) for value in values]
    assert len(found.values[1].as_py()["counts"]) == 5000


# --- schemas ----------------------------------------------------------------------------------------------------------

IMPORTS = {
    "confluent/meta.proto": ("confluent.Meta", field(1, b"doc"), ("doc", "doc")),
    "confluent/type/decimal.proto": ("confluent.type.Decimal", field(2, 5), ("precision", 5)),
    "confluent/types/decimal.proto": ("confluent.type.Decimal", field(3, 2), ("scale", 2)),
    "confluent/type/variant.proto": ("confluent.type.Variant", field(2, b"v"), ("value", b"v")),
    "google/type/date.proto": ("google.type.Date", field(1, 2024), ("year", 2024)),
    "google/type/money.proto": ("google.type.Money", field(1, b"EUR"), ("currency_code", "EUR")),
    "google/type/latlng.proto": ("google.type.LatLng", b"", ("latitude", 0.0)),
    "google/type/timeofday.proto": ("google.type.TimeOfDay", field(1, 24), ("hours", 24)),
    "google/protobuf/any.proto": ("google.protobuf.Any", field(1, b"u"), ("type_url", "u")),
    "google/protobuf/field_mask.proto": ("google.protobuf.FieldMask", field(1, b"a"), ("paths", ["a"])),
    "google/api/launch_stage.proto": (None, b"", None),
    "google/rpc/status.proto": ("google.rpc.Status", field(1, 3), ("code", 3)),
}


def test_imports_that_registries_know_need_no_reference():
    lines = [f'import "{path}";' for path in IMPORTS]
    used = [each for each in IMPORTS.values() if each[0]]
    fields = [f"{name} f{i} = {i};" for i, (name, _, _) in enumerate(used, 1)]
    option = '[(confluent.field_meta) = { doc: "d", params: [{ key: "k", value: "v" }], tags: "PII" }]'
    text = f'syntax="proto3"; {" ".join(lines)} message A {{ {" ".join(fields)} int32 tagged = 99 {option}; }}'
    value = b"".join(field(i, inner) for i, (_, inner, _) in enumerate(used, 1))
    (row,) = kc.values.decode([value], kc.values.Schema(text, "protobuf")).values.to_pylist()
    assert [row[f"f{i}"][key] for i, (_, _, (key, _)) in enumerate(used, 1)] == [want for _, _, (_, want) in used]


def test_a_reference_takes_the_place_of_a_known_import():
    own = kc.values.Schema('syntax="proto3"; package google.type; message Date { string text = 1; }', "protobuf")
    text = 'syntax="proto3"; import "google/type/date.proto"; message A { google.type.Date d = 1; }'
    schema = kc.values.Schema(text, "protobuf", (kc.values.Reference("google/type/date.proto", "dates", 1),))
    source = kc.values.Schemas({7: schema}, {("dates", 1): own})
    found = kc.values.decode([b"\0\0\0\0\7\0" + field(1, field(1, b"today"))], source)
    assert found.values.to_pylist() == [{"d": {"text": "today"}}]


def descriptor(text: str, references: Mapping[str, kc.values.Schema], name: str) -> str:
    """A schema as Confluent's clients for Python and .NET register it."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    file = FileDescriptorProto()
    compiled_files(kc.values.Schema(text, "protobuf"), references)[-1].CopyToProto(file)
    file.name = name
    return base64.standard_b64encode(file.SerializeToString()).decode()


INNER = 'syntax="proto3"; package in; import "google/protobuf/timestamp.proto"; message Inner { string city = 1; }'
OUTER = 'syntax="proto3"; import "geo/inner.proto"; message Outer { in.Inner home = 1; }'


@pytest.mark.parametrize("inner_is_text", [True, False])
@pytest.mark.parametrize("outer_is_text", [True, False])
def test_schemas_may_be_descriptors_in_base64(outer_is_text, inner_is_text):
    inner = INNER if inner_is_text else descriptor(INNER, {}, "inner.proto")
    known = {"geo/inner.proto": kc.values.Schema(INNER, "protobuf")}
    outer = OUTER if outer_is_text else descriptor(OUTER, known, "any/name.proto") + "\n"
    schema = kc.values.Schema(outer, "protobuf", (kc.values.Reference("geo/inner.proto", "inner", 1),))
    source = kc.values.Schemas({7: schema}, {("inner", 1): kc.values.Schema(inner, "protobuf")})
    found = kc.values.decode([b"\0\0\0\0\7\0" + field(1, field(1, b"Hi"))], source)
    assert found.values.to_pylist() == [{"home": {"city": "Hi"}}]


BASE64 = {
    "of nothing": ("", "no message type"),
    "of a file without messages": ("CgdhLnByb3Rv", "no message type"),
    "of other bytes": ("AAAA", "not a .proto file"),
}


@pytest.mark.parametrize("name", BASE64)
def test_base64_of_other_things(name):
    text, reason = BASE64[name]
    with pytest.raises(kc.SchemaError, match=reason):
        kc.values.decode([b""], kc.values.Schema(text, "protobuf"))


# What Apicurio's FileDescriptorUtils.fileDescriptorToProtoFile (2.6.5, with Wire 4.9.9) prints, and so registers, for
#   message Order { map<string, int32> counts = 1; message Line { string sku = 1; } map<string, Line> by = 3; }
WIRE = """// Proto schema formatted by Wire, do not edit.
// Source:

syntax = "proto3";

package shop;

message Order {
  repeated .shop.Order.CountsEntry counts = 1;

  repeated .shop.Order.ByEntry by = 3;

  message CountsEntry {
    option map_entry = true;

    string key = 1;

    int32 value = 2;
  }

  message Line {
    string sku = 1;
  }

  message ByEntry {
    option map_entry = true;

    string key = 1;

    .shop.Order.Line value = 2;
  }
}
"""
MAPS = """
    syntax = "proto3"; package shop;
    message Order { map<string, int32> counts = 1; message Line { string sku = 1; } map<string, Line> by = 3; }
"""


@pytest.mark.parametrize("text", [WIRE, MAPS])
def test_maps_as_wire_prints_them(text):
    value = field(1, KEY + field(2, 5)) + field(3, KEY + field(2, field(1, b"s")))
    found = kc.values.decode([value], kc.values.Schema(text, "protobuf"))
    assert found.values.to_pylist() == [{"counts": [("k", 5)], "by": [("k", {"sku": "s"})]}]


@pytest.mark.parametrize("text", [WIRE, MAPS])
@pytest.mark.parametrize("index", [0, 1])
def test_messages_of_maps_may_be_counted_or_not(text, index):
    """Line is the first nested message of the text, and the second one of its descriptor."""
    prefix = b"\0\0\0\0\7" + bytes([4, 0, index * 2])
    assert kc.values.decode([prefix + field(1, b"s")], {7: kc.values.Schema(text, "protobuf")}).values.to_pylist() == [
        {"sku": "s"}
    ]


# --- panics -----------------------------------------------------------------------------------------------------------


def test_a_panic_is_an_exception_like_others():
    """The bytes are not plain, so they do not get to ptars but here."""
    from kafkacodec.values.protobuf.library import ProtoLibrary
    from kafkacodec.values.protobuf.types import proto_message

    descriptor = compiled_files(kc.values.Schema(PROTO3, "protobuf"), {})[-1].message_types_by_name["A"]
    library = ProtoLibrary(proto_message(descriptor))
    with pytest.raises(LibraryPanic, match="ptars panicked"):
        library.read(pa.array([field(1, KEY)], pa.binary()))


def test_what_a_library_panics_at_is_read_by_the_other(monkeypatch, parsers):
    from kafkacodec.values.protobuf.library import ProtoLibrary

    def panics(self, column):
        raise LibraryPanic("ptars panicked")

    monkeypatch.setattr(ProtoLibrary, "read", panics)
    values = [field(14, 3), field(5, field(3, b"n"))]
    found = kc.values.decode(values, kc.values.Schema(PROTO3, "protobuf"))
    assert plain(found.values) == [expected(parsers[PROTO3], value) for value in values]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit, ValueError, MemoryError])
def test_other_exceptions_pass(error):
    with pytest.raises(error), contained("ptars"):
        raise error
