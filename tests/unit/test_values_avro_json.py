"""JSON as Avro values: what consumers print, and Avro's own JSON of unions, as a producer's Encoder takes them."""

from __future__ import annotations

import datetime
import io
import json
import time
import types
import uuid
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest

import kafkacodec as kc
from kafkacodec.cli.files.json_columns import nested_values

FIELDS: dict[str, Any] = {
    "flag": "boolean",
    "count": "int",
    "size": "long",
    "ratio": "double",
    "text": "string",
    "raw": "bytes",
    "sum": {"type": "fixed", "name": "Sum", "size": 4},
    "color": {"type": "enum", "name": "Color", "symbols": ["RED", "BLUE"]},
    "day": {"type": "int", "logicalType": "date"},
    "at": {"type": "long", "logicalType": "timestamp-millis"},
    "micros": {"type": "long", "logicalType": "timestamp-micros"},
    "local": {"type": "long", "logicalType": "local-timestamp-millis"},
    "time": {"type": "int", "logicalType": "time-millis"},
    "time_micros": {"type": "long", "logicalType": "time-micros"},
    "price": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
    "fixed_price": {"type": "fixed", "name": "Price", "size": 8, "logicalType": "decimal", "precision": 9, "scale": 3},
    "uuid": {"type": "string", "logicalType": "uuid"},
    "note": ["null", "string"],
    "tags": {"type": "map", "values": "bytes"},
    "items": {"type": "array", "items": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
    "either": ["null", "string", "long", "bytes"],
    "inner": {
        "type": "record",
        "name": "Inner",
        "fields": [{"name": "raw", "type": ["null", "bytes"], "default": None}],
    },
}
SCHEMA = {"type": "record", "name": "Row", "fields": [{"name": name, "type": kind} for name, kind in FIELDS.items()]}

# What fastavro takes, which are Python's own values.
AT = datetime.datetime(2025, 1, 31, 23, 59, 59, 250_000, datetime.UTC)
ROW = {
    "flag": True,
    "count": -1,
    "size": 1 << 40,
    "ratio": 0.5,
    "text": "é",
    "raw": b"\xff\x00",
    "sum": b"abcd",
    "color": "BLUE",
    "day": AT.date(),
    "at": AT,
    "micros": AT.replace(microsecond=250_001),
    "local": AT.replace(tzinfo=None),
    "time": AT.time(),
    "time_micros": AT.time().replace(microsecond=250_001),
    "price": Decimal("-12.50"),
    "fixed_price": Decimal("7.125"),
    "uuid": uuid.UUID(int=5),
    "note": None,
    "tags": {"a": b"\xff", "b": b"x"},
    "items": [AT, None],
    "either": 7,
    "inner": {"raw": b"z"},
}


def written(schema: Any, value: Any) -> bytes:
    """As fastavro alone writes it."""
    file = io.BytesIO()
    fastavro.schemaless_writer(file, fastavro.parse_schema(schema), value)
    return file.getvalue()


def encoded(schema: Any, value: Any) -> bytes:
    """The payload that an encoder writes of JSON."""
    data = kc.values.Encoder({1: json.dumps(schema)}, subject="s")(json.loads(json.dumps(value)))
    assert data is not None
    return data[5:]


def test_what_consumers_print_is_encoded_to_the_same_bytes() -> None:
    data = written(SCHEMA, ROW)
    column = kc.values.decode([data], kc.values.Schema(json.dumps(SCHEMA))).values
    (printed,) = nested_values(column.combine_chunks())
    assert printed["at"] == "2025-01-31T23:59:59.250Z"
    assert printed["local"] == "2025-01-31T23:59:59.250"
    assert (printed["time"], printed["day"], printed["price"]) == ("23:59:59.250", "2025-01-31", "-12.50")
    assert (printed["raw"], printed["tags"]) == ({"base64": "/wA="}, {"a": {"base64": "/w=="}, "b": "x"})
    assert encoded(SCHEMA, printed) == data


def test_values_of_python_are_as_before() -> None:
    encoder = kc.values.Encoder({1: json.dumps(SCHEMA)}, subject="s")
    assert encoder(ROW) == b"\0\0\0\0\1" + written(SCHEMA, ROW)


@pytest.mark.parametrize("unit", ["millis", "micros"])  # fastavro takes no datetime for nanos
@pytest.mark.skipif(not hasattr(time, "tzset"), reason="the time zone of a process cannot be set here")
def test_datetimes_without_a_zone_are_in_utc_wherever_the_machine_is(
    unit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    naive = datetime.datetime(2025, 7, 1, 12)
    aware, east = naive.replace(tzinfo=datetime.UTC), datetime.timezone(datetime.timedelta(hours=2))
    kinds = {name: {"type": "long", "logicalType": f"{name}-{unit}"} for name in ("timestamp", "local-timestamp")}
    fields = [{"name": "at", "type": kinds["timestamp"]}, {"name": "here", "type": kinds["local-timestamp"]}]
    fields += [{"name": "maybe", "type": ["null", kinds["timestamp"]]}]
    schema = {"type": "record", "name": "Row", "fields": fields}
    encode = kc.values.Encoder({1: json.dumps(schema)}, subject="s")
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "America/New_York")
        time.tzset()
        values = [encode(dict.fromkeys(("at", "here", "maybe"), value)) for value in (naive, aware.astimezone(east))]
    time.tzset()
    (first, second) = kc.values.decode(values, {1: json.dumps(schema)}).values.to_pylist()
    assert first == {"at": aware, "here": naive, "maybe": aware}
    assert second == {"at": aware, "here": naive.replace(hour=14), "maybe": aware}


@pytest.mark.parametrize(
    ("union", "value", "want"),
    [
        (["null", "string"], {"string": "x"}, "x"),
        (["null", "bytes"], {"bytes": "x"}, b"x"),
        (["null", "long", "string"], {"long": 5, "string": None}, 5),
        (["null", {"type": "map", "values": "int"}], {"map": {"a": 1}}, {"a": 1}),
        (["null", {"type": "map", "values": "int"}], {"map": 1}, {"map": 1}),
        (["null", {"type": "array", "items": ["null", "string"]}], {"array": [{"string": "a"}, None]}, ["a", None]),
        (["float", "double"], {"float": 1.5}, ("float", 1.5)),
        (["double", "string"], 5, 5.0),
        (["null", "double"], "-inf", float("-inf")),
        ("float", "nan", float("nan")),
        (["double", "string"], "nan", "nan"),
        (["string", {"type": "int", "logicalType": "date"}], "2025-01-01", "2025-01-01"),
        (["null", {"type": "int", "logicalType": "date"}], "1970-01-02", 1),
        (["null", {"type": "int", "logicalType": "date"}], {"int": "1970-01-02"}, 1),
    ],
)
def test_unions(union: Any, value: Any, want: Any) -> None:
    assert encoded(union, value) == written(union, want)


def test_branches_that_are_records() -> None:
    def record(name: str, *fields: str) -> dict[str, Any]:
        return {"type": "record", "name": f"n.{name}", "fields": [{"name": field, "type": "long"} for field in fields]}

    union = [record("A", "x"), record("B", "x", "y"), "n.A"][:2]
    for value in ({"x": 1, "y": 2}, {"n.B": {"x": 1, "y": 2}}, {"B": {"x": 1, "y": 2}}):
        assert encoded(union, value) == written(union, ("n.B", {"x": 1, "y": 2}))
    assert encoded(union, {"x": 1}) == written(union, ("n.A", {"x": 1}))
    with pytest.raises(kc.EncodeError, match="unknown field 'z'"):
        encoded(union, {"x": 1, "z": 2})


def test_a_record_that_contains_itself() -> None:
    schema = {
        "type": "record",
        "name": "Node",
        "fields": [{"name": "raw", "type": "bytes"}, {"name": "next", "type": ["null", "Node"], "default": None}],
    }
    value = {"raw": "a", "next": {"Node": {"raw": {"base64": "/w=="}, "next": None}}}
    assert encoded(schema, value) == written(schema, {"raw": b"a", "next": {"raw": b"\xff", "next": None}})
    with pytest.raises(kc.EncodeError, match=r"next\.nxt|next: unknown field 'nxt'; did you mean 'next'\?"):
        encoded(schema, {"raw": "a", "next": {"raw": "b", "nxt": None}})


def test_other_logical_types() -> None:
    nanos = {"type": "long", "logicalType": "timestamp-nanos"}
    assert encoded(nanos, "1970-01-01T00:00:01.000000002+01:00") == written("long", -3599 * 10**9 + 2)
    fixed = {"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"}
    assert encoded(fixed, str(uuid.UUID(int=5))) == uuid.UUID(int=5).bytes
    duration = {"type": "fixed", "name": "D", "size": 12, "logicalType": "duration"}
    parts = {"months": 1, "days": 2, "milliseconds": 3}
    assert encoded(duration, parts) == b"\1\0\0\0\2\0\0\0\3\0\0\0"
    big = {"type": "bytes", "logicalType": "big-decimal"}
    for text in ("12345678901234567890123456789012345.678", "-1", "0.000", "1E+3"):
        data = encoded(big, text)
        assert kc.values.decode([data], kc.values.Schema(json.dumps(big))).values.to_pylist() == [text]


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("notee", "typo", r"unknown field 'notee'; did you mean 'note'\?"),
        ("at", "yesterday", "at: 'yesterday' is not a date and time such as 2025-01-31T12:00:00Z"),
        ("at", "2025-02-31T00:00:00Z", "at: '2025-02-31T00:00:00Z': day is out of range"),
        ("at", "2025-01-31T00:00:00.0001Z", "at: .* has more than 3 digits of a second"),
        ("local", "2025-01-31T00:00:00Z", "local: .* is not a date and time such as 2025-01-31T12:00:00$"),
        ("day", "2025", "day: '2025' is not a date such as 2025-01-31"),
        ("time", "25:00", "time: '25:00' is not a time of day such as 12:00:00"),
        ("price", "much", "price: 'much' is not a number"),
        ("raw", {"base64": "?"}, r"raw: '\?' is not base64"),
        ("tags", {"a": {"base64": 5}}, r"tags\.a: '5' is not base64"),
        ("inner", {"rwa": None}, "inner: unknown field 'rwa'; did you mean 'raw'"),
    ],
)
def test_what_does_not_match_is_named(name: str, value: Any, reason: str) -> None:
    column = kc.values.decode([written(SCHEMA, ROW)], kc.values.Schema(json.dumps(SCHEMA))).values
    (row,) = nested_values(pa.concat_arrays(column.chunks))
    with pytest.raises(kc.EncodeError, match=f"the value does not match the Avro schema: {reason}"):
        encoded(SCHEMA, {**row, name: value})


def test_a_missing_field_is_named() -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "long"}, {"name": "b", "type": "long"}]}
    with pytest.raises(kc.EncodeError, match="no field 'b'"):
        encoded(schema, {"a": 1})


@pytest.mark.parametrize(
    ("kind", "given", "reason"),
    [
        ("int", 3.5, "3.5 is no whole number"),
        ("long", 1.0, "1.0 is no whole number"),
        ("int", True, "True is no whole number"),
        ("int", Decimal("1.5"), "is no whole number"),
        ("int", 1 << 31, "does not fit into int, which has 32 bits"),
        ("long", -(1 << 63) - 1, "does not fit into long, which has 64 bits"),
        ({"type": "int", "logicalType": "date"}, 3.7, "3.7 is no whole number"),
        ({"type": "array", "items": "int"}, [1, 1.5], "1.5 is no whole number"),
        ("boolean", "false", "'false' is neither true nor false"),
        ("boolean", 1, "1 is neither true nor false"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4}, Decimal("nan"), "NaN is not a number"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4}, Decimal("-inf"), "-Infinity is not a number"),
    ],
    ids=str,
)
def test_a_value_that_would_be_changed_is_refused(kind: Any, given: Any, reason: str) -> None:
    """Fastavro cuts fractions, takes any text for true, and writes numbers that no reader takes."""
    schema = {"type": "record", "name": "Row", "fields": [{"name": "part", "type": kind}]}
    encode = kc.values.Encoder({1: json.dumps(schema)}, subject="s")
    with pytest.raises(kc.EncodeError, match=rf"part.*{reason}"):
        encode({"part": given})


@pytest.mark.parametrize(
    ("kind", "given", "path"),
    [
        ({"type": "array", "items": {"type": "map", "values": "int"}}, [{"a": 1}, {"a": 1, "b": 1.5}], r"\[1\]\.b"),
        (["null", "long"], 1 << 63, None),
        (["null", "long"], True, None),
        (["null", "boolean"], 1, None),
    ],
    ids=str,
)
def test_the_place_of_a_value_that_is_refused(kind: Any, given: Any, path: str | None) -> None:
    schema = {"type": "record", "name": "Row", "fields": [{"name": "part", "type": kind}]}
    encode = kc.values.Encoder({1: json.dumps(schema)}, subject="s")
    with pytest.raises(kc.EncodeError, match=rf"schema: part{'' if path is None else chr(92) + '.' + path}: "):
        encode({"part": given})


@pytest.mark.parametrize(
    ("kind", "given", "want"),
    [
        ({"type": "array", "items": "double"}, [0.5, 1, "nan"], [0.5, 1.0, float("nan")]),
        ({"type": "array", "items": "double"}, [0.5, 1.5], [0.5, 1.5]),
        ({"type": "map", "values": "float"}, {"a": 1, "b": 0.5}, {"a": 1.0, "b": 0.5}),
        ({"type": "map", "values": "long"}, types.MappingProxyType({"a": 1}), {"a": 1}),
        ({"type": "array", "items": ["null", "long"]}, [None, 1 << 62, {"long": 5}], [None, 1 << 62, 5]),
        (["null", "double"], 0.5, 0.5),
    ],
    ids=str,
)
def test_values_in_records_are_replaced_in_copies(kind: Any, given: Any, want: Any) -> None:
    schema = {"type": "record", "name": "Row", "fields": [{"name": "part", "type": kind}]}
    before = repr(given)
    for row in ({"part": given}, types.MappingProxyType({"part": given}), {"part": given, "-type": "Row"}):
        data = kc.values.Encoder({1: json.dumps(schema)}, subject="s")(row)
        assert data is not None
        assert data[5:] == written(schema, {"part": want})
        assert row["part"] is given
        assert repr(given) == before


@pytest.mark.parametrize("kind", ["array", "map", "record"])
def test_a_value_in_itself_is_refused(kind: str) -> None:
    node = {"array": {"type": "array", "items": "Node"}, "map": {"type": "map", "values": "Node"}, "record": "Node"}
    field = {"name": "inner", "type": ["null", node[kind]], "default": None}
    number = {"name": "number", "type": "long"}
    schema = {"type": "record", "name": "Node", "fields": [number, field]}
    value: dict[str, Any] = {"number": 1}
    value["inner"] = {"array": [value], "map": {"a": value}, "record": value}[kind]
    encode = kc.values.Encoder({1: json.dumps(schema)}, subject="s")
    with pytest.raises(kc.EncodeError, match="recursion"):
        encode(value)
