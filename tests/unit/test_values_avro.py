"""Avro values to columns: the type of each kind, what is refused, hostile values, schema resolution."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal

import pyarrow as pa
import pytest

import kafkacodec as kc
from kafkacodec.values.avro.decode import FEW_ROWS
from tests.avro_samples import encoded

UTC = datetime.UTC


def schema(kind):
    return kc.values.Schema(json.dumps(kind))


def record(*fields, name="R"):
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": n, "type": t, **more} for n, t, *more_ in fields for more in more_ or [{}]],
    }


def annotated(kind, logical, **more):
    return {"type": kind, "logicalType": logical, **more}


def column(kind, values):
    return kc.values.decode(encoded(kind, values), schema(kind)).values


MOMENT = datetime.datetime(2024, 5, 6, 7, 8, 9, 123000, tzinfo=UTC)
KINDS = {
    "null": ("null", [None], pa.null(), [None]),
    "boolean": ("boolean", [True, False], pa.bool_(), [True, False]),
    "int": ("int", [-(2**31)], pa.int32(), [-(2**31)]),
    "long": ("long", [2**63 - 1], pa.int64(), [2**63 - 1]),
    "float": ("float", [1.5], pa.float32(), [1.5]),
    "double": ("double", [-2.25], pa.float64(), [-2.25]),
    "bytes": ("bytes", [b"\xff\x00"], pa.binary(), [b"\xff\x00"]),
    "string": ("string", ["hé"], pa.string(), ["hé"]),
    "fixed": ({"type": "fixed", "name": "F", "size": 2}, [b"ab"], pa.binary(2), [b"ab"]),
    "enum": ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, ["B"], pa.string(), ["B"]),
    "array": ({"type": "array", "items": "int"}, [[1, 2], []], pa.list_(pa.int32()), [[1, 2], []]),
    "map": ({"type": "map", "values": "long"}, [{"k": 1}], pa.map_(pa.string(), pa.int64()), [[("k", 1)]]),
    "nullable": (["null", "string"], [None, "a"], pa.string(), [None, "a"]),
    "nullable, null last": (["int", "null"], [None, 1], pa.int32(), [None, 1]),
    "union": (
        ["null", "int", "string"],
        [None, 1, "a"],
        pa.struct([("int", pa.int32()), ("string", pa.string())]),
        [None, {"int": 1, "string": None}, {"int": None, "string": "a"}],
    ),
    "union of records of the same short name": (
        [record(("a", "int"), name="x.R"), record(("b", "int"), name="y.R")],
        [{"b": 2}],
        pa.struct([("x.R", pa.struct([("a", pa.int32())])), ("y.R", pa.struct([("b", pa.int32())]))]),
        [{"x.R": None, "y.R": {"b": 2}}],
    ),
    "record": (record(("a", "int")), [{"a": 1}], pa.struct([("a", pa.int32())]), [{"a": 1}]),
    "record without fields": (record(), [{}], pa.struct([]), [{}]),
    "array of nulls": ({"type": "array", "items": "null"}, [[None, None]], pa.list_(pa.null()), [[None, None]]),
    "date": (annotated("int", "date"), [datetime.date(2024, 5, 6)], pa.date32(), [datetime.date(2024, 5, 6)]),
    "time-millis": (
        annotated("int", "time-millis"),
        [datetime.time(1, 2, 3)],
        pa.time32("ms"),
        [datetime.time(1, 2, 3)],
    ),
    "time-micros": (
        annotated("long", "time-micros"),
        [datetime.time(1, 2, 3)],
        pa.time64("us"),
        [datetime.time(1, 2, 3)],
    ),
    "timestamp-millis": (annotated("long", "timestamp-millis"), [MOMENT], pa.timestamp("ms", "UTC"), [MOMENT]),
    "timestamp-micros": (annotated("long", "timestamp-micros"), [MOMENT], pa.timestamp("us", "UTC"), [MOMENT]),
    "timestamp-nanos": (annotated("long", "timestamp-nanos"), [7000], pa.timestamp("ns", "UTC"), None),
    "local-timestamp-millis": (
        annotated("long", "local-timestamp-millis"),
        [MOMENT.replace(tzinfo=None)],
        pa.timestamp("ms"),
        [MOMENT.replace(tzinfo=None)],
    ),
    "local-timestamp-micros": (
        annotated("long", "local-timestamp-micros"),
        [MOMENT.replace(tzinfo=None)],
        pa.timestamp("us"),
        [MOMENT.replace(tzinfo=None)],
    ),
    "decimal": (
        annotated("bytes", "decimal", precision=6, scale=2),
        [Decimal("-1.25")],
        pa.decimal128(6, 2),
        [Decimal("-1.25")],
    ),
    "decimal of 50 digits": (
        annotated("bytes", "decimal", precision=50, scale=1),
        [Decimal("1" * 49 + ".1")],
        pa.decimal256(50, 1),
        [Decimal("1" * 49 + ".1")],
    ),
    "decimal in fixed": (
        {"type": "fixed", "name": "F", "size": 20, "logicalType": "decimal", "precision": 9, "scale": 3},
        [Decimal("-123456.789")],
        pa.decimal128(9, 3),
        [Decimal("-123456.789")],
    ),
    "uuid": (annotated("string", "uuid"), ["6f7a-not-checked"], pa.string(), ["6f7a-not-checked"]),
    "duration": (
        {"type": "fixed", "name": "F", "size": 12, "logicalType": "duration"},
        [bytes.fromhex("010000000200000003000080")],
        pa.struct([("months", pa.uint32()), ("days", pa.uint32()), ("milliseconds", pa.uint32())]),
        [{"months": 1, "days": 2, "milliseconds": 3 + 2**31}],
    ),
    "unknown logical type": (annotated("int", "colour"), [5], pa.int32(), [5]),
    "invalid decimal": (annotated("bytes", "decimal", precision=0), [b"\x05"], pa.binary(), [b"\x05"]),
}


@pytest.mark.parametrize("name", KINDS)
def test_types(name):
    kind, values, want_type, want = KINDS[name]
    if name in ("uuid", "timestamp-nanos", "invalid decimal"):  # fastavro checks the first, and converts the others
        kind_to_write = {"uuid": "string", "timestamp-nanos": "long", "invalid decimal": "bytes"}[name]
        found = kc.values.decode(encoded(kind_to_write, values), schema(kind)).values
    else:
        found = column(kind, values)
    assert found.type == want_type
    found.validate(full=True)
    assert (found.cast(pa.int64()).to_pylist() if want is None else found.to_pylist()) == (want or values)


@pytest.mark.parametrize("name", KINDS)
def test_a_few_rows_are_read_as_many_are(name):
    """A few are read one by one, and many by a library."""
    kind, values, *_ = KINDS[name]
    kind_to_write = {"uuid": "string", "timestamp-nanos": "long", "invalid decimal": "bytes"}.get(name, kind)
    payloads = encoded(kind_to_write, values)
    few = kc.values.decode(payloads, schema(kind)).values
    many = kc.values.decode(payloads * (FEW_ROWS + 1), schema(kind)).values
    assert many.type == few.type
    assert many.combine_chunks() == pa.concat_arrays(few.chunks * (FEW_ROWS + 1))


def test_equal_keys_of_a_map_all_stay_in_few_and_many_rows():
    twice = b"\x04\x02k\x02\x02k\x04\x00"
    kind = schema({"type": "map", "values": "long"})
    for rows in (1, FEW_ROWS + 1):
        assert kc.values.decode([twice] * rows, kind).values.to_pylist() == [[("k", 1), ("k", 2)]] * rows


def test_named_types_are_used_by_name_and_namespace():
    address = {
        "type": "record",
        "name": "Address",
        "namespace": "org.x",
        "fields": [{"name": "city", "type": "string"}],
    }
    kind = record(("home", address), ("work", ["null", "org.x.Address"]), name="org.x.Person")
    found = column(kind, [{"home": {"city": "A"}, "work": {"city": "B"}}, {"home": {"city": "C"}, "work": None}])
    assert found.to_pylist() == [{"home": {"city": "A"}, "work": {"city": "B"}}, {"home": {"city": "C"}, "work": None}]


def nested(levels):
    kind = "int"
    for _ in range(levels):
        kind = {"type": "array", "items": kind}
    return kind


def doubling(levels):
    """A schema of a few lines whose types, written out, are 2^levels."""
    fields = [("a0", record(("x", "int"), name="T0"))]
    for i in range(1, levels):
        fields.append((f"a{i}", record(("l", f"T{i - 1}"), ("r", f"T{i - 1}"), name=f"T{i}")))
    return record(*fields, name="Top")


BAD_SCHEMAS = {
    "no JSON": ("{", "not JSON"),
    "deep JSON": ("[" * 100_000, "nested too deeply"),
    "a number": ("5", "expected a type"),
    "unknown type": ('"Nope"', "unknown type 'Nope'"),
    "recursive": (
        json.dumps(record(("next", ["null", "R"]))),
        "next: R contains itself; columns cannot represent recursive types",
    ),
    "deep types": (json.dumps(nested(200)), "levels deep"),
    "exponential types": (json.dumps(doubling(30)), "more than 10000 types"),
    "huge union": (json.dumps([record(name=f"R{i}") for i in range(20_000)]), "more than 10000 types"),
    "empty union": ("[]", "without branches"),
    "union in a union": ('["null", ["int"]]', "as a branch"),
    "twice the same branch": ('["int", "int"]', "twice the same branch"),
    "no fields": ('{"type": "record", "name": "R"}', "without fields"),
    "negative size": ('{"type": "fixed", "name": "F", "size": -1}', "size -1"),
    "huge size": ('{"type": "fixed", "name": "F", "size": 1e99}', "size"),
    "no symbols": ('{"type": "enum", "name": "E", "symbols": []}', "without symbols"),
}


@pytest.mark.parametrize("name", BAD_SCHEMAS)
def test_bad_schemas_are_refused(name):
    text, reason = BAD_SCHEMAS[name]
    with pytest.raises(kc.SchemaError, match=reason):
        kc.values.decode([b""], kc.values.Schema(text))
    assert kc.values.decode([b"", None], kc.values.Schema(text), on_error="null").errors.null_count == 1


LIST = record(("items", {"type": "array", "items": "string"}))
HOSTILE = {
    "ends early": (record(("a", "int")), b"", "field a: the value ends inside a number \\(byte 0\\)"),
    "bytes after": (record(("a", "int")), b"\x02\x02\x02", "2 bytes follow the value \\(byte 1\\)"),
    "length lies": (
        record(("s", "string")),
        b"\xfe\xff\xff\xff\x0f",
        "field s: length 2147483647 exceeds the 0 bytes left",
    ),
    "negative length": (record(("s", "bytes")), b"\x01", "field s: negative length -1"),
    "not UTF-8": (record(("s", "string")), b"\x02\xff", "field s: a string is not UTF-8 \\(byte 1\\)"),
    "long varint": ("long", b"\xff" * 11, "more than 64 bits"),
    "int of 64 bits": ("int", b"\xff\xff\xff\xff\xff\x01", "exceeds an int of 32 bits"),
    "boolean 2": ("boolean", b"\x02", "boolean 2"),
    "unknown branch": (record(("u", ["null", "int"])), b"\x04", "field u: branch 2 of a union of 2"),
    "unknown symbol": ({"type": "enum", "name": "E", "symbols": ["A"]}, b"\x02", "symbol 1 of an enum of 1"),
    "many items": (LIST, b"\xfe\xff\xff\xff\x0f\x00", "field items: a block of 2147483647 items in the 1 bytes left"),
    "least count": (LIST, b"\xff" * 9 + b"\x01\x00", "field items: a block of -9223372036854775808 items"),
    "block size lies": (LIST, b"\x01\x08\x02a\x00\x00\x00", "does not end where its size says"),
    "nulls without end": ({"type": "array", "items": "null"}, b"\x80" * 8 + b"\x20\x00", "exceeds the memory limit"),
    "nulls that fit the memory, but not the time": (
        {"type": "array", "items": "null"},
        b"\x80\xa8\xd6\xb9\x07\x00",
        "exceeds the memory limit",
    ),
    "empty records without end": ({"type": "array", "items": record()}, b"\x80" * 8 + b"\x20\x00", "memory limit"),
    "decimal of no bytes": (annotated("bytes", "decimal", precision=4), b"\x00", "a decimal has 0 bytes"),
    "decimal of many digits": (
        annotated("bytes", "decimal", precision=2),
        b"\x04\x7f\xff",
        "more digits than its precision",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_values_are_errors_with_field_and_byte(name):
    kind, value, reason = HOSTILE[name]
    with pytest.raises(kc.DecodeError, match=rf"values\[1\]: .*{reason}"):
        kc.values.decode([None, value], schema(kind))
    found = kc.values.decode([None, value, None], schema(kind), on_error="null")
    assert found.values.to_pylist() == [None, None, None]
    assert [error is None for error in found.errors.to_pylist()] == [True, False, True]


def test_rows_beside_damaged_ones_are_decoded():
    kind = record(("s", "string"), ("n", ["null", "long"]))
    good = encoded(kind, [{"s": "a", "n": 1}, {"s": "b", "n": None}])
    found = kc.values.decode([good[0], good[0][:-1], good[1] + b"!", good[1]], schema(kind), on_error="null")
    assert found.values.to_pylist() == [{"s": "a", "n": 1}, None, None, {"s": "b", "n": None}]
    assert found.num_errors == 2


def test_memory_is_limited():
    values = [b"\xa0\x9c\x01" + bytes(10_000) + b"\x00"] * 10  # 10,000 items of one byte
    kind = {"type": "array", "items": "long"}
    assert kc.values.decode(values, schema(kind), max_total_bytes=2_000_000).num_errors == 0
    few = kc.values.decode(values, schema(kind), max_total_bytes=250_000, on_error="null")
    assert 0 < few.num_errors < 10
    assert "exceeds the memory limit" in next(e for e in few.errors.to_pylist() if e)


# --- resolution: expected values follow "Schema Resolution" in the specification --------------------------------------

E_AB = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
E_AC = {"type": "enum", "name": "E", "symbols": ["A", "C"]}
RESOLVED = {
    "promotion": (record(("a", "int")), record(("a", "double")), [{"a": 3}], [{"a": 3.0}]),
    "string to bytes": (record(("a", "string")), record(("a", "bytes")), [{"a": "é"}], [{"a": b"\xc3\xa9"}]),
    "bytes to string": (
        record(("a", "bytes")),
        record(("a", "string")),
        [{"a": b"ok"}, {"a": b"\xff"}],
        [{"a": "ok"}, None],
    ),
    "field left out": (record(("a", "int"), ("b", "int")), record(("b", "int")), [{"a": 1, "b": 2}], [{"b": 2}]),
    "default": (
        record(("a", "int")),
        record(
            ("a", "int"), ("b", "bytes", {"default": "ÿ"}), ("c", {"type": "array", "items": "int"}, {"default": [1]})
        ),
        [{"a": 1}],
        [{"a": 1, "b": b"\xff", "c": [1]}],
    ),
    "alias": (record(("old", "int")), record(("new", "int", {"aliases": ["old"]})), [{"old": 1}], [{"new": 1}]),
    "to nullable": (record(("a", "int")), record(("a", ["null", "long"])), [{"a": 1}], [{"a": 1}]),
    "from nullable": (record(("a", ["null", "int"])), record(("a", "long")), [{"a": 1}, {"a": None}], [{"a": 1}, None]),
    "to a union": (
        record(("a", "int")),
        record(("a", ["string", "long"])),
        [{"a": 1}],
        [{"a": {"string": None, "long": 1}}],
    ),
    "enum with a default": (
        record(("e", E_AB)),
        record(("e", {**E_AC, "default": "C"})),
        [{"e": "A"}, {"e": "B"}],
        [{"e": "A"}, {"e": "C"}],
    ),
    "enum without": (record(("e", E_AB)), record(("e", E_AC)), [{"e": "A"}, {"e": "B"}], [{"e": "A"}, None]),
    "nested": (
        record(("l", {"type": "array", "items": record(("x", "int"), name="I")})),
        record(("l", {"type": "array", "items": record(("y", "int", {"default": 7}), ("x", "long"), name="I")})),
        [{"l": [{"x": 1}, {"x": 2}]}, {"l": []}],
        [{"l": [{"y": 7, "x": 1}, {"y": 7, "x": 2}]}, {"l": []}],
    ),
    "decimal of the reader": (
        record(("d", "bytes")),
        record(("d", annotated("bytes", "decimal", precision=3, scale=1))),
        [{"d": b"\x7d"}, {"d": b"\x7f\xff"}, {"d": b""}],
        [{"d": Decimal("12.5")}, None, None],
    ),
    "logical type of the reader": (
        record(("t", "long")),
        record(("t", annotated("long", "timestamp-millis"))),
        [{"t": 0}],
        [{"t": datetime.datetime(1970, 1, 1, tzinfo=UTC)}],
    ),
}


@pytest.mark.parametrize("name", RESOLVED)
def test_values_are_resolved_to_the_reader(name):
    writer, reader, values, want = RESOLVED[name]
    found = kc.values.decode(encoded(writer, values), schema(writer), reader_schema=schema(reader), on_error="null")
    found.values.validate(full=True)
    assert found.values.to_pylist() == want


UNRESOLVED = {
    "no default": (record(("a", "int")), record(("b", "int")), "b: the writer has no such field"),
    "narrower": (record(("a", "long")), record(("a", "int")), "a: the reader's int cannot read the writer's long"),
    "wrong default": (record(), record(("a", "int", {"default": "x"})), "a: the default is not a value"),
    "other decimal": (
        record(("a", annotated("bytes", "decimal", precision=4, scale=1))),
        record(("a", annotated("bytes", "decimal", precision=4, scale=2))),
        "another precision or scale",
    ),
    "other size": (
        {"type": "fixed", "name": "F", "size": 1},
        {"type": "fixed", "name": "F", "size": 2},
        "fixed of 2 bytes",
    ),
}


@pytest.mark.parametrize("name", UNRESOLVED)
def test_schemas_that_do_not_resolve_are_errors(name):
    writer, reader, reason = UNRESOLVED[name]
    with pytest.raises(kc.SchemaError, match=reason):
        kc.values.decode([b"\x00"], schema(writer), reader_schema=schema(reader))


def test_several_schemas_have_the_fields_of_all():
    one = record(("a", "int"), ("b", "string"))
    two = record(("b", ["null", "string"]), ("a", "long"), ("c", E_AB))
    values = [
        b"\x00\x00\x00\x00\x01" + encoded(one, [{"a": 1, "b": "x"}])[0],
        b"\x00\x00\x00\x00\x02" + encoded(two, [{"a": 2, "b": None, "c": "B"}])[0],
    ]
    found = kc.values.decode([*values, values[0]], {1: json.dumps(one), 2: json.dumps(two)})
    assert found.values.type == pa.struct([("b", pa.string()), ("a", pa.int64()), ("c", pa.string())])
    assert found.values.to_pylist() == [
        {"b": "x", "a": 1, "c": None},
        {"b": None, "a": 2, "c": "B"},
        {"b": "x", "a": 1, "c": None},
    ]
    assert found.schema_ids.to_pylist() == [1, 2, 1]


def test_a_schema_that_fits_no_newer_one_is_an_error_of_its_rows():
    schemas = {1: json.dumps(record(("a", "string"))), 2: json.dumps(record(("a", "int")))}
    values = [b"\x00\x00\x00\x00\x01\x02x", b"\x00\x00\x00\x00\x02\x02"]
    found = kc.values.decode(values, schemas, on_error="null")
    assert found.values.to_pylist() == [None, {"a": 1}]
    assert found.errors.to_pylist() == ["schema 1: a: schemas of this column have both int and string here", None]
