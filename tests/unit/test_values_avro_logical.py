"""Avro's logical types on every type that the specification (1.12) has them on, and ignored on others."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime, time
from decimal import Decimal

import fastavro
import pyarrow as pa
import pytest

import kafkacodec as kc
from kafkacodec.values.contained import LibraryPanic

UUID_TEXT = "01234567-89ab-cdef-fedc-ba9876543210"


def fixed(size, logical, **more):
    return {"type": "fixed", "name": "F", "size": size, "logicalType": logical, **more}


def logical(kind, name, **more):
    return {"type": kind, "logicalType": name, **more}


def written(schema, value):
    """The value as fastavro writes it for the schema without logical types."""
    plain = {key: part for key, part in schema.items() if key not in ("logicalType", "precision", "scale")}
    file = io.BytesIO()
    fastavro.schemaless_writer(file, fastavro.parse_schema(plain), value)
    return file.getvalue()


def decimal(kind, precision, scale=0):
    return logical(kind, "decimal", precision=precision, scale=scale)


NINES = 10**76 - 1

# Schema, a value without its logical type, the type of the column, and the value in it. Those of uuid and big-decimal
# are what Java's library, 1.12.1, writes.
VALUES = {
    "uuid": (logical("string", "uuid"), UUID_TEXT, pa.string(), UUID_TEXT),
    "uuid in fixed": (
        fixed(16, "uuid"),
        bytes.fromhex("0123456789abcdeffedcba9876543210"),
        pa.string(),
        UUID_TEXT,
    ),
    "decimal": (decimal("bytes", 5, 2), b"\xff\x85", pa.decimal128(5, 2), Decimal("-1.23")),
    "decimal that repeats its sign": (
        decimal("bytes", 5, 2),
        b"\xff" * 39 + b"\x85",
        pa.decimal128(5, 2),
        Decimal("-1.23"),
    ),
    "long decimal that repeats its sign": (
        decimal("bytes", 76),
        NINES.to_bytes(50),
        pa.decimal256(76, 0),
        Decimal(NINES),
    ),
    "decimal in fixed": (fixed(3, "decimal", precision=6), b"\x0f\x42\x3f", pa.decimal128(6, 0), Decimal(999_999)),
    "decimal in a long fixed": (
        fixed(40, "decimal", precision=4, scale=1),
        b"\xff" * 39 + b"\x85",
        pa.decimal128(4, 1),
        Decimal("-12.3"),
    ),
    "long decimal in a long fixed": (
        fixed(33, "decimal", precision=76),
        NINES.to_bytes(33),
        pa.decimal256(76, 0),
        Decimal(NINES),
    ),
    "big decimal": (logical("bytes", "big-decimal"), bytes.fromhex("028504"), pa.string(), "-1.23"),
    "big decimal, 0": (logical("bytes", "big-decimal"), bytes.fromhex("020004"), pa.string(), "0.00"),
    "big decimal, large": (logical("bytes", "big-decimal"), bytes.fromhex("020109"), pa.string(), "1E+5"),
    "big decimal, small": (logical("bytes", "big-decimal"), bytes.fromhex("0201a006"), pa.string(), "1E-400"),
    "big decimal of many digits": (
        logical("bytes", "big-decimal"),
        bytes.fromhex("205ce0e9a56015fec5aadfa328ae39811512"),
        pa.string(),
        "123456789012345678901234567890.123456789",
    ),
    "date": (logical("int", "date"), -1, pa.date32(), date(1969, 12, 31)),
    "time-millis": (logical("int", "time-millis"), 86_399_999, pa.time32("ms"), time(23, 59, 59, 999_000)),
    "time-micros": (logical("long", "time-micros"), 86_399_999_999, pa.time64("us"), time(23, 59, 59, 999_999)),
    "timestamp-millis": (
        logical("long", "timestamp-millis"),
        -1,
        pa.timestamp("ms", "UTC"),
        datetime(1969, 12, 31, 23, 59, 59, 999_000, UTC),
    ),
    "timestamp-micros": (
        logical("long", "timestamp-micros"),
        1,
        pa.timestamp("us", "UTC"),
        datetime(1970, 1, 1, 0, 0, 0, 1, UTC),
    ),
    "timestamp-nanos": (
        logical("long", "timestamp-nanos"),
        2**63 - 1,
        pa.timestamp("ns", "UTC"),
        2**63 - 1,
    ),
    "local-timestamp-millis": (
        logical("long", "local-timestamp-millis"),
        1,
        pa.timestamp("ms"),
        datetime(1970, 1, 1, 0, 0, 0, 1000),
    ),
    "local-timestamp-micros": (
        logical("long", "local-timestamp-micros"),
        1,
        pa.timestamp("us"),
        datetime(1970, 1, 1, 0, 0, 0, 1),
    ),
    "local-timestamp-nanos": (logical("long", "local-timestamp-nanos"), -(2**63), pa.timestamp("ns"), -(2**63)),
    "duration": (
        fixed(12, "duration"),
        b"\1\0\0\0\2\0\0\0\xff\xff\xff\xff",
        pa.struct([("months", pa.uint32()), ("days", pa.uint32()), ("milliseconds", pa.uint32())]),
        {"months": 1, "days": 2, "milliseconds": 2**32 - 1},
    ),
    # What is not allowed, or not known, is ignored.
    "uuid in a short fixed": (fixed(15, "uuid"), b"a" * 15, pa.binary(15), b"a" * 15),
    "uuid in bytes": (logical("bytes", "uuid"), b"a" * 16, pa.binary(), b"a" * 16),
    "big decimal in fixed": (fixed(3, "big-decimal"), b"\2\1\0", pa.binary(3), b"\2\1\0"),
    "duration in another fixed": (fixed(11, "duration"), b"a" * 11, pa.binary(11), b"a" * 11),
    "date in a long": (logical("long", "date"), 5, pa.int64(), 5),
    "timestamp in an int": (logical("int", "timestamp-millis"), 5, pa.int32(), 5),
    "time in another number": (logical("long", "time-millis"), -5, pa.int64(), -5),
    "decimal in a double": (decimal("double", 5), 1.5, pa.float64(), 1.5),
    "decimal without precision": (logical("bytes", "decimal"), b"\1", pa.binary(), b"\1"),
    "decimal of scale above precision": (decimal("bytes", 3, 4), b"\1", pa.binary(), b"\1"),
    "decimal of more digits than a fixed has": (fixed(2, "decimal", precision=5), b"\0\1", pa.binary(2), b"\0\1"),
    "decimal of more digits than Arrow has": (decimal("bytes", 77), b"\1", pa.binary(), b"\1"),
    "another case": (logical("int", "DATE"), 5, pa.int32(), 5),
    "not text": (logical("int", ["date"]), 5, pa.int32(), 5),
    "null": (logical("int", None), 5, pa.int32(), 5),
}

SHAPES = {
    "alone": (lambda schema: schema, lambda value: value),
    "in a record": (
        lambda schema: {"type": "record", "name": "R", "fields": [{"name": "f", "type": schema}]},
        lambda value: {"f": value},
    ),
    "in an array": (lambda schema: {"type": "array", "items": schema}, lambda value: [value]),
}


def numbers(column):
    """The column with numbers for nanoseconds, which Python has no type for."""
    return column.cast(pa.int64()) if pa.types.is_timestamp(column.type) and column.type.unit == "ns" else column


@pytest.mark.parametrize("name", VALUES)
def test_values(name):
    schema, value, kind, want = VALUES[name]
    found = kc.values.decode([written(schema, value), None], kc.values.Schema(json.dumps(schema)))
    found.values.validate(full=True)
    assert found.values.type == kind
    assert numbers(found.values).to_pylist() == [want, None]


@pytest.mark.parametrize("name", [name for name in VALUES if "timestamp-nanos" not in name])
def test_values_that_the_library_does_not_decode(name):
    """An array of null makes fastavro read the whole record."""
    schema, value, _, want = VALUES[name]
    fields = [{"name": "f", "type": schema}, {"name": "n", "type": {"type": "array", "items": "null"}}]
    outer = {"type": "record", "name": "R", "fields": fields}
    found = kc.values.decode([written(schema, value) + b"\2\0"], kc.values.Schema(json.dumps(outer)))
    found.values.validate(full=True)
    assert found.values.to_pylist() == [{"f": want, "n": [None]}]


@pytest.mark.parametrize("name", [name for name in VALUES if "timestamp-nanos" not in name])
def test_values_for_a_reader(name):
    """A reader has a logical type that the writer does not name, and a reader without gets what is stored."""
    schema, value, _, want = VALUES[name]
    plain = {key: part for key, part in schema.items() if key not in ("logicalType", "precision", "scale")}
    data = written(schema, value)
    for writer, reader, row in ((plain, schema, want), (schema, plain, value)):
        texts = [kc.values.Schema(json.dumps(each)) for each in (writer, reader)]
        found = kc.values.decode([data], texts[0], reader_schema=texts[1])
        found.values.validate(full=True)
        assert found.values.to_pylist() == [row]


BAD = {
    "time-millis of a day": (logical("int", "time-millis"), 86_400_000, "time 86400000 is not within a day"),
    "negative time": (logical("long", "time-micros"), -1, "time -1 is not within a day"),
    "time-micros of a day": (logical("long", "time-micros"), 86_400_000_000, "is not within a day"),
    "decimal": (decimal("bytes", 3), b"\3\xe8", "more digits than its precision"),
    "long decimal": (decimal("bytes", 3), b"\1" + bytes(20), "more digits than its precision"),
    "decimal whose sign is not repeated": (decimal("bytes", 38), b"\0\xff" + bytes(15), "more digits"),
    "decimal in fixed": (fixed(20, "decimal", precision=3), b"\1" + bytes(19), "more digits than its precision"),
    "decimal in a long fixed": (fixed(40, "decimal", precision=3), b"\1" + bytes(39), "more digits"),
    "big decimal of nothing": (logical("bytes", "big-decimal"), b"", "ends inside a number"),
    "big decimal without digits": (logical("bytes", "big-decimal"), b"\0\0", "a big decimal has 0 bytes"),
    "big decimal without scale": (logical("bytes", "big-decimal"), b"\2\1", "ends inside a number"),
    "big decimal and more": (logical("bytes", "big-decimal"), b"\2\1\0\0", "1 bytes follow a big decimal"),
    "big decimal of a long scale": (logical("bytes", "big-decimal"), b"\2\1\x80\x80\x80\x80\x20", "exceeds 32 bits"),
    "big decimal of many digits": (
        logical("bytes", "big-decimal"),
        b"\x82\x10" + bytes(1025) + b"\0",
        "has 1025 bytes, not 1 to 1024",
    ),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("tail", [b"", b"\2\0"])
def test_values_that_are_none_of_the_type(name, tail):
    schema, value, reason = BAD[name]
    fields = [{"name": "f", "type": schema}]
    fields += [{"name": "n", "type": {"type": "array", "items": "null"}}] if tail else []
    text = json.dumps({"type": "record", "name": "R", "fields": fields})
    data = written(schema, value) + tail
    found = kc.values.decode([data, data], kc.values.Schema(text), on_error="null")
    found.values.validate(full=True)
    assert found.values.to_pylist() == [None, None]
    assert reason in found.errors[0].as_py()


@pytest.mark.parametrize("name", BAD)
def test_values_that_are_none_of_the_type_of_a_reader(name):
    schema, value, _ = BAD[name]
    plain = {key: part for key, part in schema.items() if key not in ("logicalType", "precision", "scale")}
    texts = [kc.values.Schema(json.dumps(each)) for each in (plain, schema)]
    found = kc.values.decode([written(schema, value)], texts[0], reader_schema=texts[1], on_error="null")
    assert found.values.to_pylist() == [None]
    assert found.num_errors == 1


def test_long_decimals_stay_in_their_rows():
    schema = decimal("bytes", 9, 1)
    values = [i.to_bytes(4 if i % 3 else 24, signed=True) for i in range(-50, 50)]
    found = kc.values.decode([written(schema, value) for value in values], kc.values.Schema(json.dumps(schema)))
    assert found.values.to_pylist() == [Decimal(i).scaleb(-1) for i in range(-50, 50)]


def test_a_default_of_a_logical_type_has_to_be_one():
    for kind, default in ((logical("bytes", "big-decimal"), "x"), (decimal("bytes", 2), "\x03\xe8")):
        reader = {"type": "record", "name": "R", "fields": [{"name": "f", "type": kind, "default": default}]}
        writer = {"type": "record", "name": "R", "fields": [{"name": "g", "type": "int"}]}
        with pytest.raises(kc.SchemaError, match="f: the default is not a value of the field"):
            kc.values.decode([b"\2"], kc.values.Schema(json.dumps(writer)), reader_schema=json.dumps(reader))


def test_what_the_library_panics_at_is_read_by_the_other(monkeypatch):
    from kafkacodec.values.avro.library import AvroLibrary

    def panics(self, joined):
        raise LibraryPanic("arrow-avro panicked")

    monkeypatch.setattr(AvroLibrary, "decode", panics)
    assert kc.values.decode([b"\2", b"\4"], kc.values.Schema('"int"')).values.to_pylist() == [1, 2]


def test_a_namespace_of_null_is_none():
    """As Java reads it."""
    schema = {"type": "record", "name": "R", "namespace": None, "fields": [{"name": "a", "type": "int"}]}
    assert kc.values.decode([b"\2"], kc.values.Schema(json.dumps(schema))).values.to_pylist() == [{"a": 1}]
