"""Protobuf values to columns: types, message indexes, hostile schemas and values, Confluent's serializer as oracle."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import kafkacodec as kc
from kafkacodec.values.protobuf.compile import compiled_files
from tests.examples import examples

TEXT = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
enum Currency { EUR = 0; USD = 1; }
message Order {
  int64 id = 1;
  string customer = 2;
  Currency currency = 3;
  google.protobuf.Timestamp created = 4;
  optional string note = 5;
  message Item { string sku = 1; sint32 quantity = 2; }
  repeated Item items = 6;
  map<string, double> prices = 7;
  oneof payment { string card = 8; uint64 account = 9; }
  bytes raw = 10;
  google.protobuf.BoolValue paid = 11;
}
message Other { int32 number = 1; message Inner { string text = 1; } }
"""
ORDER = kc.values.Schema(TEXT, "protobuf")
EMPTY = {
    "id": 0,
    "customer": "",
    "currency": "EUR",
    "created": None,
    "note": None,
    "items": [],
    "prices": [],
    "card": None,
    "account": None,
    "raw": b"",
    "paid": None,
}


@pytest.fixture(scope="module")
def order_class():
    from google.protobuf.message_factory import GetMessageClass

    return GetMessageClass(compiled_files(ORDER, {})[-1].message_types_by_name["Order"])


def test_types(order_class):
    order = order_class(id=-1, customer="é", currency=1, note="", card="c", raw=b"\xff")
    order.created.FromSeconds(1_700_000_000)
    order.items.add(sku="s", quantity=-3)
    order.prices["a"] = 0.5
    order.paid.value = False
    found = kc.values.decode([order.SerializeToString(), b"", None], ORDER)
    found.values.validate(full=True)
    assert found.values.type == pa.struct(
        [
            ("id", pa.int64()),
            ("customer", pa.string()),
            ("currency", pa.string()),
            ("created", pa.timestamp("ns", "UTC")),
            ("note", pa.string()),
            ("items", pa.list_(pa.struct([("sku", pa.string()), ("quantity", pa.int32())]))),
            ("prices", pa.map_(pa.string(), pa.float64())),
            ("card", pa.string()),
            ("account", pa.uint64()),
            ("raw", pa.binary()),
            ("paid", pa.bool_()),
        ]
    )
    want = {
        "id": -1,
        "customer": "é",
        "currency": "USD",
        "created": datetime.datetime(2023, 11, 14, 22, 13, 20, tzinfo=datetime.UTC),
        "note": "",
        "items": [{"sku": "s", "quantity": -3}],
        "prices": [("a", 0.5)],
        "card": "c",
        "account": None,
        "raw": b"\xff",
        "paid": False,
    }
    assert found.values.to_pylist() == [want, EMPTY, None]


INDEXES: dict[str, tuple[bytes, bytes, dict[str, object]]] = {
    "first, short": (b"\x00", b"\x08\x05", {"id": 5}),
    "first": (b"\x02\x00", b"\x08\x05", {"id": 5}),
    "second": (b"\x02\x02", b"\x08\x05", {"number": 5}),
    "nested": (b"\x04\x02\x00", b"\x0a\x01x", {"text": "x"}),
}


@pytest.mark.parametrize("name", INDEXES)
def test_message_indexes(name):
    prefix, payload, want = INDEXES[name]
    found = kc.values.decode([b"\x00\x00\x00\x00\x07" + prefix + payload], {7: ORDER}).values.to_pylist()[0]
    assert {key: found[key] for key in want} == want
    guid = b"\x01" + bytes(16)
    headers = pa.array(
        [[("__value_schema_id", guid + prefix)]], pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    )
    schemas = {__import__("uuid").UUID(int=0): ORDER}
    found = kc.values.decode([payload], schemas, headers=headers).values.to_pylist()[0]
    assert {key: found[key] for key in want} == want


BAD_INDEXES = {
    "none": (b"", "message indexes: truncated varint"),
    "negative": (b"\x09", "-5 message indexes"),
    "many": (b"\xfe\xff\xff\xff\x0f", "2147483647 message indexes"),
    "unknown": (b"\x02\x10", "no message type with the indexes"),
    "unknown nested": (b"\x04\x00\x08", "no message type with the indexes"),
}


@pytest.mark.parametrize("name", BAD_INDEXES)
def test_bad_message_indexes(name):
    prefix, reason = BAD_INDEXES[name]
    found = kc.values.decode([b"\x00\x00\x00\x00\x07" + prefix], {7: ORDER}, on_error="null")
    assert reason in found.errors.to_pylist()[0]


BAD_VALUES = {
    "ends early": (b"\x12\x05a", "Wire format was corrupt"),
    "length lies": (b"\x12\xff\xff\xff\xff\x0f", "Wire format was corrupt"),
    "not UTF-8": (b"\x12\x01\xff", "UTF-8"),
    "long varint": (b"\x08" + b"\xff" * 11, "Wire format was corrupt"),
    "unknown wire type": (b"\x0f", "Wire format was corrupt"),
    "a time after 2262": (b"\x22\x06\x08\xff\xff\xff\xff\x7f", "exceeds 64 bits of nanoseconds"),
}


@pytest.mark.parametrize("name", BAD_VALUES)
def test_bad_values(name):
    value, reason = BAD_VALUES[name]
    found = kc.values.decode([b"\x08\x01", value, b"\x08\x02"], ORDER, on_error="null")
    assert [row and row["id"] for row in found.values.to_pylist()] == [1, None, 2]
    assert reason in found.errors.to_pylist()[1]


BAD_SCHEMAS = {
    "no .proto": ("nonsense", "line 1:1: Expected top-level statement"),
    "missing import": ('import "x.proto";', "x.proto: File not found"),
    "recursive": ('syntax="proto3"; message A { A a = 1; }', "A contains itself"),
    "recursive by another": (
        'syntax="proto3"; message A { B b = 1; } message B { repeated A a = 1; }',
        "A contains itself",
    ),
    "no message": ('syntax="proto3";', "no message type"),
    "exponential": (
        'syntax="proto3"; message M0 { int32 x = 1; }'
        + "".join(f"message M{i} {{ M{i - 1} l = 1; M{i - 1} r = 2; }}" for i in range(1, 30))
        + "message Top { M29 m = 1; }",
        "more than 10000 fields",
    ),
}


@pytest.mark.parametrize("name", BAD_SCHEMAS)
def test_bad_schemas(name):
    text, reason = BAD_SCHEMAS[name]
    schema = kc.values.Schema(text, "protobuf", message="Top" if name == "exponential" else None)
    with pytest.raises(kc.SchemaError, match=reason):
        kc.values.decode([b""], schema)


def test_references_are_imports_and_stay_in_their_directory():
    inner = kc.values.Schema('syntax="proto3"; package in; message Inner { string city = 1; }', "protobuf")
    outer = 'syntax="proto3"; import "geo/inner.proto"; message Outer { in.Inner home = 1; }'
    for name, want in {
        "geo/inner.proto": [{"home": {"city": "Hi"}}],
        "../inner.proto": None,
        "/inner.proto": None,
    }.items():
        schema = kc.values.Schema(outer, "protobuf", (kc.values.Reference(name, "inner", 1),))
        source = kc.values.Schemas({7: schema}, {("inner", 1): inner})
        found = kc.values.decode([b"\x00\x00\x00\x00\x07\x00\x0a\x04\x0a\x02Hi"], source, on_error="null")
        assert found.values.to_pylist() == (want or [None])
        assert (found.errors.to_pylist()[0] is None) == (want is not None)


def test_a_message_type_may_be_chosen():
    schema = kc.values.Schema(TEXT, "protobuf", message="shop.Other.Inner")
    assert kc.values.decode([b"\x0a\x01x"], schema).values.to_pylist() == [{"text": "x"}]


def test_wide_messages_do_not_fill_the_memory():
    fields = "".join(f"int64 f{i} = {i};" for i in range(1, 2000))
    text = f'syntax="proto3"; message Wide {{ {fields} }} message Top {{ repeated Wide wide = 1; }}'
    schema = kc.values.Schema(text, "protobuf", message="Top")
    with pytest.raises(kc.DecodeError, match="may need more than"):
        kc.values.decode([b"\x0a\x00" * 100_000], schema, max_total_bytes=1 << 30)


@settings(max_examples=examples(50))
@given(
    st.lists(
        st.tuples(
            st.integers(-(2**63), 2**63 - 1),
            st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
            st.none() | st.text("ab"),
            st.lists(st.tuples(st.text("xy", max_size=3), st.integers(-(2**31), 2**31 - 1)), max_size=3),
        ),
        max_size=5,
    )
)
def test_columns_have_what_protobuf_wrote(order_class, rows):
    messages = [order_class(id=n, customer=text, note=note) for n, text, note, _ in rows]
    for message, row in zip(messages, rows, strict=True):
        for sku, quantity in row[3]:
            message.items.add(sku=sku, quantity=quantity)
    found = kc.values.decode([message.SerializeToString() for message in messages], ORDER)
    assert [
        (r["id"], r["customer"], r["note"], [(i["sku"], i["quantity"]) for i in r["items"]])
        for r in found.values.to_pylist()
    ] == rows


@settings(max_examples=examples(200))
@given(st.lists(st.binary(max_size=30), max_size=5))
def test_any_bytes_are_errors_or_what_protobuf_reads(order_class, values):
    from google.protobuf.message import DecodeError

    found = kc.values.decode(values, ORDER, on_error="null")
    found.values.validate(full=True)
    for value, row, error in zip(values, found.values.to_pylist(), found.errors.to_pylist(), strict=True):
        try:
            message = order_class.FromString(value)
        except DecodeError:
            assert row is None
            continue
        assert error is None or "nanoseconds" in error or row is None
        if row is not None:
            assert (row["id"], row["customer"], row["raw"]) == (message.id, message.customer, message.raw)
