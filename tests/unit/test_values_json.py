"""JSON values to columns: types of JSON Schema, what is refused, hostile values, Confluent's deserializer as oracle."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

import kafkacodec as kc

ORDER = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "name": {"type": ["null", "string"]},
        "price": {"type": "number"},
        "open": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "lines": {"type": "array", "items": {"type": "object", "properties": {"sku": {"type": "string"}}}},
    },
}
NOTHING = dict.fromkeys(ORDER["properties"])


def schema(description):
    return kc.values.Schema(json.dumps(description), "json")


def decoded(values, description=ORDER):
    return kc.values.decode(values, schema(description), on_error="null")


def test_types():
    found = decoded([b'{"id": 1, "name": "a", "price": 2, "open": true, "tags": ["x", null], "lines": [{"sku": "s"}]}'])
    assert found.values.type == pa.struct(
        [
            ("id", pa.int64()),
            ("name", pa.string()),
            ("price", pa.float64()),
            ("open", pa.bool_()),
            ("tags", pa.list_(pa.string())),
            ("lines", pa.list_(pa.struct([("sku", pa.string())]))),
        ]
    )
    want = {"id": 1, "name": "a", "price": 2.0, "open": True, "tags": ["x", None], "lines": [{"sku": "s"}]}
    assert found.values.to_pylist() == [want]


VALUES = {
    "unknown properties": (b'{"id": 1, "more": {"a": [1, "x"]}}', {"id": 1}),
    "an integer with a point": (b'{"id": 1.0}', {"id": 1}),
    "on several lines": (b'{\n\t"id":\r\n 1\n}\n', {"id": 1}),
    "escapes": (b'{"name": "\\u00e9\\n\\"}{"}', {"name": 'é\n"}{'}),
    "NaN in text": (b'{"name": ":NaN"}', {"name": ":NaN"}),
    "last of two": (b'{"id": 1, "id": 2}', {"id": 2}),
    "deep unknown properties": (b'{"id": 1, "x": ' + b"[" * 900 + b"]" * 900 + b"}", {"id": 1}),
    "brackets in text": (b'{"name": "' + b"[" * 900 + b'"}', {"name": "[" * 900}),
    "empty": (b"{}", {}),
    "an integer of 2^53 and more with a point": (b'{"id": 9007199254740993.0}', {"id": 9007199254740993}),
    "an integer with an exponent": (b'{"id": -1E18}', {"id": -(10**18)}),
    "the smallest integer": (b'{"id": -9223372036854775808}', {"id": -(2**63)}),
    "an escaped name": (b'{"id": 1, "\\u0069d": 2}', {"id": 2}),
    "a number that is almost infinite": (b'{"price": 1.7976931348623157e308}', {"price": 1.7976931348623157e308}),
}


@pytest.mark.parametrize("name", VALUES)
def test_values(name):
    value, want = VALUES[name]
    found = decoded([b'{"id": 9}', value])
    assert found.errors.to_pylist() == [None, None]
    assert found.values.to_pylist() == [{**NOTHING, "id": 9}, {**NOTHING, **want}]


BAD = {
    "nothing": (b"", "not JSON"),
    "a word": (b"x", "not JSON"),
    "two values": (b'{"id": 1}{"id": 2}', "not JSON"),
    "the end of the line": (b'{"id": 1}}\n{"v": {"id": 2}', "not JSON"),
    "more columns": (b'{"id": 1},"x":{"id": 2}', "not JSON"),
    "ends early": (b'{"id": 1', "not JSON"),
    "NaN": (b'{"price": NaN}', "not JSON"),
    "infinity": (b'{"price": -Infinity}', "not JSON"),
    "a line end in text": (b'{"name": "a\nb"}', "not JSON"),
    "not UTF-8": (b'{"name": "\xff"}', "not JSON"),
    "half a surrogate": (b'{"name": "\\ud800"}', "not JSON"),
    "depth": (b'{"x": ' + b"[" * 1_000_000, "not JSON"),
    "depth, closed": (b'{"x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "not JSON"),
    "an array": (b"[]", "expected object, not array"),
    "text for a number": (b'{"id": "1"}', "field id: expected integer, not string"),
    "a fraction": (b'{"id": 1.5}', "field id: expected integer, not number"),
    "a boolean for a number": (b'{"price": true}', "field price: expected number, not boolean"),
    "a large number": (b'{"id": 9223372036854775808}', "field id: a number exceeds an integer of 64 bits"),
    "a small number": (b'{"id": -9223372036854775809}', "field id: a number exceeds an integer of 64 bits"),
    "a large number with a point": (b'{"id": 9223372036854775808.0}', "field id: a number exceeds an integer"),
    "a fraction of a large number": (b'{"id": 9007199254740993.5}', "field id: expected integer, not number"),
    "a number that is infinite as a double": (b'{"price": 1.7976931348623159e308}', "not JSON"),
    "the same in a list": (b'{"more": [1e999]}', "not JSON"),
    "a byte order mark": (b'\xef\xbb\xbf{"id": 1}', "not JSON"),
    "a comment": (b'{"id": 1} // one', "not JSON"),
    "deep in lists": (b'{"lines": [{"sku": "a"}, {"sku": 5}]}', r"field lines\[\].sku: expected string, not integer"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_values(name):
    value, reason = BAD[name]
    found = decoded([b'{"id": 1}', value, b'{"id": 2}'])
    assert [row and row["id"] for row in found.values.to_pylist()] == [1, None, 2]
    with pytest.raises(kc.DecodeError, match=rf"values\[1\]: {reason}"):
        kc.values.decode([b'{"id": 1}', value], schema(ORDER))


SCHEMAS = {
    "map": ({"type": "object", "additionalProperties": {"type": "integer"}}, b'{"a": 1}', [("a", 1)]),
    "anything": ({}, b'{"a": [1]}', '{"a":[1]}'),
    "true": (True, b"5", "5"),
    "several types": ({"type": ["string", "integer"]}, b"5", "5"),
    "text of null": ({}, b"null", "null"),
    "text of a large integer": ({}, b'[{"a": 123456789012345678901}]', '[{"a":123456789012345678901}]'),
    "text of a small integer": ({}, b"-9223372036854775809", "-9223372036854775809"),
    "text like a large number": ({}, b'["5e99", 1.5]', '["5e99",1.5]'),
    "allOf in allOf": (
        {
            "allOf": [{"$ref": "#/$defs/b"}],
            "$defs": {
                "b": {"allOf": [{"$ref": "#/$defs/c"}], "properties": {"b": {"type": "integer"}}},
                "c": {"properties": {"c": {"type": "string"}}},
            },
        },
        b'{"b": 1, "c": "x"}',
        {"b": 1, "c": "x"},
    ),
    "allOf of itself": ({"allOf": [{"$ref": "#"}], "properties": {"a": {"type": "integer"}}}, b'{"a": 1}', {"a": 1}),
    "a reference into a list": (
        {"$defs": [{"type": "string"}, {"type": "integer"}], "properties": {"a": {"$ref": "#/$defs/1"}}},
        b'{"a": 1}',
        {"a": 1},
    ),
    "a reference by the id": (
        {"$id": "http://x.org/a.json", "$defs": {"n": {"type": "integer"}}, "$ref": "http://x.org/a.json#/$defs/n"},
        b"1",
        1,
    ),
    "oneOf with null": ({"oneOf": [{"type": "null"}, {"type": "string"}]}, b'"x"', "x"),
    "anyOf": ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, b'"x"', '"x"'),
    "integer and number": ({"type": ["integer", "number"]}, b"5", 5.0),
    "enum of text": ({"enum": ["A", "B"]}, b'"A"', "A"),
    "local reference": (
        {"$defs": {"n": {"type": "integer"}}, "properties": {"a": {"$ref": "#/$defs/n"}}},
        b'{"a":1}',
        {"a": 1},
    ),
    "recursive": (
        {"properties": {"n": {"type": "integer"}, "next": {"$ref": "#"}}},
        b'{"n": 1, "next": {"n": 2}}',
        {"n": 1, "next": '{"n":2}'},
    ),
    "allOf": (
        {"allOf": [{"properties": {"a": {"type": "integer"}}}, {"properties": {"b": {"type": "string"}}}]},
        b'{"a": 1, "b": "x"}',
        {"a": 1, "b": "x"},
    ),
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas(name):
    description, value, want = SCHEMAS[name]
    assert decoded([value], description).values.to_pylist() == [want]


ADDRESS = {
    "$id": "http://x.org/address.json",
    "$defs": {"zip": {"type": "integer"}},
    "type": "object",
    "properties": {"zip": {"$ref": "#/$defs/zip"}},
}


@pytest.mark.parametrize("name", ["address.json", "http://x.org/address.json"])
@pytest.mark.parametrize("used", ["address.json", "http://x.org/address.json"])
@pytest.mark.parametrize("described", [lambda ref: {"allOf": [ref]}, lambda ref: {"properties": {"zip": ref}}])
def test_references_are_found_by_name_and_id_and_start_from_their_own_document(name, used, described):
    zip_code = "" if "allOf" in described({}) else "#/$defs/zip"
    order = {
        "$id": "http://x.org/order.json",
        "$defs": {"zip": {"type": "string"}},
        **described({"$ref": used + zip_code}),
    }
    root = kc.values.Schema(json.dumps(order), "json", (kc.values.Reference(name, "address", 1),))
    source = kc.values.Schemas({7: root}, {("address", 1): schema(ADDRESS)})
    found = kc.values.decode([b'\0\0\0\0\7{"zip": 12345}'], source)
    assert found.values.to_pylist() == [{"zip": 12345}]


@pytest.mark.parametrize("text", ["{", "5", "[" * 100_000, '{"$ref": "other.json"}', '{"$ref": "#/nope"}'])
def test_bad_schemas(text):
    with pytest.raises(kc.SchemaError):
        kc.values.decode([b"{}"], kc.values.Schema(text, "json"))


def test_several_schemas_have_the_properties_of_all():
    schemas = {
        1: schema({"properties": {"a": {"type": "integer"}}}),
        2: schema({"properties": {"b": {"type": "string"}, "a": {"type": "number"}}}),
    }
    found = kc.values.decode([b'\0\0\0\0\1{"a": 1}', b'\0\0\0\0\2{"b": "x", "a": 0.5}'], schemas)
    assert found.values.to_pylist() == [{"b": None, "a": 1.0}, {"b": "x", "a": 0.5}]


def test_memory_is_limited():
    properties = {f"p{i}": {"type": "integer"} for i in range(500)}
    wide = {"type": "array", "items": {"type": "object", "properties": properties}}
    value = b"[" + b",".join([b"{}"] * 20_000) + b"]"
    with pytest.raises(kc.DecodeError, match="may need more than"):
        kc.values.decode([value], schema(wide), max_total_bytes=10 << 20)


JSON_ORDERS = st.fixed_dictionaries(
    {},
    optional={
        "id": st.integers(-(2**63), 2**63 - 1),
        "name": st.none() | st.text(st.characters(exclude_categories=["Cs"])),
        "price": st.floats(allow_nan=False, allow_infinity=False),
        "open": st.booleans(),
        "tags": st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), max_size=4),
        "lines": st.lists(st.fixed_dictionaries({"sku": st.text('ab"\\{}[]\n', max_size=5)}), max_size=3),
    },
)


@given(st.lists(JSON_ORDERS, max_size=8), st.sampled_from([None, 2]))
def test_columns_have_what_confluents_deserializer_gives(orders, indent):
    from confluent_kafka.schema_registry.json_schema import JSONDeserializer
    from confluent_kafka.serialization import MessageField, SerializationContext

    values = [b"\0\0\0\0\1" + json.dumps(order, indent=indent).encode() for order in orders]
    oracle = JSONDeserializer(json.dumps({**ORDER, "title": "Order"}), from_dict=lambda found, _: found)
    context = SerializationContext("orders", MessageField.VALUE)
    want = [{**NOTHING, **oracle(value, context)} for value in values]
    assert kc.values.decode(values, {1: schema(ORDER)}).values.to_pylist() == want


INFERRED: dict[str, tuple[list[bytes | None], pa.DataType]] = {
    "numbers": ([b'{"a": 1}', b'{"a": 0.5}'], pa.struct([("a", pa.float64())])),
    "large numbers": ([b"18446744073709551615"], pa.float64()),
    "several types": ([b'{"a": 1}', b'{"a": [1]}'], pa.struct([("a", pa.string())])),
    "fields of all": (
        [b'{"a": 1}', None, b'{"b": {"c": true}}'],
        pa.struct([("a", pa.int64()), ("b", pa.struct([("c", pa.bool_())]))]),
    ),
    "lists": ([b"[]", b"[null]", b'["a"]'], pa.list_(pa.string())),
    "names that are data": ([json.dumps({f"k{i}": 1 for i in range(2000)}).encode()], pa.string()),
    "many names in all": ([json.dumps({f"k{j}{i}": 1 for i in range(600)}).encode() for j in "ab"], pa.string()),
    "nothing": ([b"{", None], pa.null()),
    "empty objects": ([b"{}"], pa.string()),
}


@pytest.mark.parametrize("name", INFERRED)
def test_types_of_values_without_a_schema(name):
    values, want = INFERRED[name]
    found = kc.values.infer_json([values])
    decoded = kc.values.decode(values, found, on_error="null")
    assert decoded.values.type == want
    assert [error is None for error in decoded.errors.to_pylist()] == [value != b"{" for value in values]
