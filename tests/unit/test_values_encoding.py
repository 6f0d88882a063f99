"""``Encoder``, judged by Confluent's serializers and deserializers with their stand-in for a registry."""

from __future__ import annotations

import json

import pytest

import kafkacodec as kc
from kafkacodec.errors import DecodeError, EncodeError, RegistryError, SchemaError, SchemaNotFound
from kafkacodec.values import Encoder, Reference, Registry, Schema
from tests.registry_server import serving

confluent = pytest.importorskip("confluent_kafka.schema_registry")
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer  # noqa: E402
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer  # noqa: E402
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer  # noqa: E402
from confluent_kafka.serialization import MessageField, SerializationContext, SerializationError  # noqa: E402
from google.protobuf import struct_pb2, wrappers_pb2  # noqa: E402

SUBJECT = "orders-value"
CONTEXT = SerializationContext("orders", MessageField.VALUE)
AVRO = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "note", "type": ["null", "string"], "default": None},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "tags", "type": {"type": "map", "values": "double"}},
        ],
    }
)
JSON = json.dumps({"type": "object", "title": "Order", "properties": {"id": {"type": "integer"}}})
VALUES = [
    {"id": 1, "note": None, "at": 1_700_000_000_000, "tags": {}},
    {"id": -(2**62), "note": "grün", "at": 0, "tags": {"a": 1.5}},
]


def answers(number, text, kind, references=()):
    found = {"subject": SUBJECT, "version": 1, "id": number, "schema": text, "schemaType": kind}
    return {
        f"/subjects/{SUBJECT}/versions/latest": {**found, "references": list(references)},
        f"POST /subjects/{SUBJECT}/versions": {"id": number},
        f"POST /subjects/{SUBJECT}": found,
    }


def registered(text, kind):
    """Confluent's client for a registry without a server, and the number of the schema there."""
    client = confluent.SchemaRegistryClient.new_client({"url": "mock://"})
    if kind == "AVRO":  # numbers are not all 1
        client.register_schema("other", confluent.Schema('"string"', "AVRO"))
    return client, client.register_schema(SUBJECT, confluent.Schema(text, kind))


def test_avro_has_the_bytes_of_confluents_serializer():
    client, number = registered(AVRO, "AVRO")
    theirs = AvroSerializer(client, AVRO, conf={"auto.register.schemas": False, "use.latest.version": True})
    back = AvroDeserializer(client)
    with serving(answers(number, AVRO, "AVRO")) as registry:
        encoder = Encoder(registry.url, subject=SUBJECT)
        for value in VALUES:
            assert encoder(value) == theirs(value, CONTEXT)
            decoded = back(encoder(value), CONTEXT)
            assert (decoded["id"], decoded["note"]) == (value["id"], value["note"])
        assert encoder(None) is None
        assert len(registry.requests) == 1
        with pytest.raises(EncodeError, match="the value does not match the Avro schema"):
            encoder({"id": "one"})


def test_json_is_read_by_confluents_deserializer():
    client, number = registered(JSON, "JSON")
    back = JSONDeserializer(JSON, schema_registry_client=client)
    with serving(answers(number, JSON, "JSON")) as registry:
        encoder = Encoder(Registry(registry.url), subject=SUBJECT)
        for value in ({"id": 1}, {"id": 2, "more": ["ü", None]}):
            assert back(encoder(value), CONTEXT) == value
        with pytest.raises(EncodeError, match="the value is not JSON"):
            encoder({"id": object()})


@pytest.mark.parametrize("message", [struct_pb2.Value(string_value="x"), struct_pb2.ListValue(), struct_pb2.Struct()])
def test_protobuf_has_the_bytes_of_confluents_serializer(message):
    """The message types of a file with several, of which two are not the first."""
    client = confluent.SchemaRegistryClient.new_client({"url": "mock://"})
    theirs = ProtobufSerializer(type(message), client)(message, CONTEXT)
    text = client.get_latest_version(SUBJECT).schema.schema_str
    number = client.get_latest_version(SUBJECT).schema_id
    with serving(answers(number, text, "PROTOBUF")) as registry:
        encoder = Encoder(registry.url, subject=SUBJECT)
        assert encoder(message) == theirs
        with pytest.raises(EncodeError, match="the schema has no message type"):
            encoder(wrappers_pb2.StringValue(value="x"))


def test_protobuf_takes_dicts():
    text = (
        'syntax = "proto3"; message Order { int64 id = 1; message Line { string name = 1; } repeated Line lines = 2; }'
    )
    value = {"id": 7, "lines": [{"name": "a"}]}
    schema = Schema(text, "protobuf")
    with serving(answers(5, text, "PROTOBUF")) as registry:
        data = Encoder(registry.url, subject=SUBJECT)(value)
        nested = Encoder(registry.url, subject=SUBJECT, schema=Schema(text, "protobuf", message="Order.Line"))
        assert nested({"name": "x"}) == b"\0\0\0\0\5" + b"\x04\0\0" + b"\n\x01x"  # two indexes: 0, 0
    found = kc.values.decode([data], {5: schema}, format="protobuf")
    assert found.values.to_pylist() == [value]


def test_schemas_that_others_refer_to():
    line = json.dumps({"type": "record", "name": "shop.Line", "fields": [{"name": "name", "type": "string"}]})
    text = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "line", "type": "shop.Line"}]})
    reference = {"name": "shop.Line", "subject": "lines", "version": 3}
    found = answers(9, text, "AVRO", [reference])
    found["/subjects/lines/versions/3"] = {"schema": line}
    with serving(found) as registry:
        assert Encoder(registry.url, subject=SUBJECT)({"line": {"name": "a"}}) == b"\0\0\0\0\t\x02a"
        schema = Schema(text, "avro", (Reference("shop.Line", "lines", 3),))
        Encoder(registry.url, subject=SUBJECT, schema=schema)({"line": {"name": "a"}})
        assert registry.posted == [
            (f"/subjects/{SUBJECT}", {"schema": text, "schemaType": "AVRO", "references": [reference]})
        ]


def test_schemas_are_registered_only_when_asked():
    with serving({**answers(3, AVRO, "AVRO"), f"POST /subjects/{SUBJECT}": (404, {"error_code": 40403})}) as registry:
        with pytest.raises(SchemaNotFound, match=f"no such schema of subject {SUBJECT}"):
            Encoder(registry.url, subject=SUBJECT, schema=AVRO)(VALUES[0])
        encoded = Encoder(registry.url, subject=SUBJECT, schema=AVRO, register=True)(VALUES[0])
        assert encoded[:5] == b"\0\0\0\0\3"
        assert registry.posted[-1] == (f"/subjects/{SUBJECT}/versions", {"schema": AVRO, "schemaType": "AVRO"})
    refusal = {f"POST /subjects/{SUBJECT}/versions": (409, {"message": "not compatible"})}
    with serving(refusal) as registry, pytest.raises(RegistryError, match="HTTP 409"):
        Encoder(registry.url, subject=SUBJECT, schema=AVRO, register=True)(VALUES[0])
    nonsense = {f"POST /subjects/{SUBJECT}": {"id": "one"}}
    with serving(nonsense) as registry, pytest.raises(RegistryError, match="no number of a schema"):
        Encoder(registry.url, subject=SUBJECT, schema=AVRO)(VALUES[0])
    with serving(answers(1, "{", "AVRO")) as registry, pytest.raises(SchemaError, match="fastavro does not accept"):
        Encoder(registry.url, subject=SUBJECT)(VALUES[0])
    with pytest.raises(ValueError, match="register needs a schema"):
        Encoder("http://localhost:1", subject=SUBJECT, register=True)
    with pytest.raises(TypeError, match="registry must be a Registry, its URL or a dict of schemas, not Schema"):
        Encoder(Schema(AVRO), subject=SUBJECT)  # type: ignore[arg-type]
    with serving({}) as registry, pytest.raises(SchemaNotFound, match="register=True registers it"):
        Encoder(registry.url, subject=SUBJECT, schema=AVRO)(VALUES[0])
    with pytest.raises(TypeError, match="did you mean 'subject'"):
        Encoder("http://localhost:1", **{"subjekt": SUBJECT})


def test_a_producer_and_a_decoder():
    found = answers(4, AVRO, "AVRO")
    found["/schemas/ids/4"] = {"schema": AVRO}
    with serving(found) as registry, kc.broker.serve(topics={"orders": 1}) as broker:
        encoder = Encoder(registry.url, subject=SUBJECT)
        with kc.client.Producer(broker.bootstrap_servers, value_serializer=encoder) as producer:
            for value in VALUES:
                producer.send("orders", value)
            with pytest.raises(EncodeError):
                producer.send("orders", {"id": None})
        with kc.client.Consumer(
            "orders", bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest"
        ) as consumer:
            rows = []
            while len(rows) < len(VALUES):
                for columns in consumer.columns(timeout=1):
                    rows += kc.values.decode(columns["value"], registry.url).values.to_pylist()
        assert [(row["id"], row["note"]) for row in rows] == [(value["id"], value["note"]) for value in VALUES]


def test_json_is_compared_with_its_schema_as_confluents_serializer_does():
    text = json.dumps(
        {
            "type": "object",
            "title": "Order",
            "properties": {"id": {"type": "integer", "minimum": 1}, "kind": {"enum": ["a", "b"]}},
            "required": ["id"],
        }
    )
    client, number = registered(text, "JSON")
    theirs = JSONSerializer(text, client, conf={"auto.register.schemas": False, "use.latest.version": True})
    with serving(answers(number, text, "JSON")) as registry:
        encoder = Encoder(registry.url, subject=SUBJECT)
        cases = [("id", {"id": "1"}), ("id", {"id": 0}), ("", {"kind": "a"}), ("kind", {"id": 1, "kind": "c"})]
        for name, wrong in cases:
            place = rf"\$\.{name}" if name else r"\$"
            with pytest.raises(SerializationError):
                theirs(wrong, CONTEXT)
            with pytest.raises(EncodeError, match=rf"the value does not match the JSON schema: {place}: "):
                encoder(wrong)
        assert json.loads(encoder({"id": 1, "kind": "b"})[5:]) == {"id": 1, "kind": "b"}
        assert Encoder(registry.url, subject=SUBJECT, validate=False)({"id": "1"})[5:] == b'{"id":"1"}'
    with (
        serving(answers(number, '{"type": 5}', "JSON")) as registry,
        pytest.raises(SchemaError, match="jsonschema does"),
    ):
        Encoder(registry.url, subject=SUBJECT)({})


def test_json_is_compared_with_schemas_that_its_schema_refers_to():
    text = json.dumps({"type": "object", "properties": {"line": {"$ref": "line.json"}}})
    found = answers(9, text, "JSON", [{"name": "line.json", "subject": "lines", "version": 3}])
    found["/subjects/lines/versions/3"] = {"schema": json.dumps({"type": "string"}), "schemaType": "JSON"}
    with serving(found) as registry:
        encoder = Encoder(registry.url, subject=SUBJECT)
        assert encoder({"line": "a"})[5:] == b'{"line":"a"}'
        with pytest.raises(EncodeError, match=r"\$\.line: 5 is not of type 'string'"):
            encoder({"line": 5})


def test_a_dict_stands_for_a_registry_both_ways():
    number, client = 7, confluent.SchemaRegistryClient.new_client({"url": "mock://"})
    theirs = AvroSerializer(client, AVRO)(VALUES[1], CONTEXT)
    encoder, decoder = Encoder({3: '"string"', number: AVRO}, subject=SUBJECT), kc.values.ValueDecoder({number: AVRO})
    data = encoder(VALUES[1])
    assert data[:5] == b"\0" + number.to_bytes(4)
    assert data[5:] == theirs[5:]
    assert Encoder({3: '"string"', number: AVRO}, subject=SUBJECT, schema='"string"')("a")[:5] == b"\0\0\0\0\3"
    found = decoder(data)
    assert (found["id"], found["note"]) == (VALUES[1]["id"], VALUES[1]["note"])
    assert decoder(None) is None
    with pytest.raises(SchemaNotFound, match="there is no such schema"):
        Encoder({3: AVRO}, subject=SUBJECT, schema='"string"')("a")
    with pytest.raises(DecodeError, match=r"^values\[0\]"):
        decoder(data[:7])
