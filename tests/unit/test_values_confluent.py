"""What Confluent's serializers write, with the schema before the payload and in headers, is what columns have."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

import kafkacodec as kc
from kafkacodec.values.protobuf.compile import compiled_files

registry = pytest.importorskip("confluent_kafka.schema_registry")

from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer  # noqa: E402
from confluent_kafka.schema_registry.json_schema import JSONSerializer  # noqa: E402
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer  # noqa: E402
from confluent_kafka.serialization import MessageField, SerializationContext  # noqa: E402

AVRO = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"]},
        {"name": "lines", "type": {"type": "array", "items": {"type": "map", "values": "double"}}},
    ],
}
ORDERS = [{"id": 1, "note": None, "lines": []}, {"id": -2, "note": "é", "lines": [{"a": 0.5}, {}]}]
READ = [{"id": 1, "note": None, "lines": []}, {"id": -2, "note": "é", "lines": [[("a", 0.5)], []]}]
JSON = {"title": "Order", "type": "object", "properties": {"id": {"type": "integer"}, "note": {"type": "string"}}}
PROTO = (
    'syntax = "proto3"; message Other { int32 n = 1; } message Order { int64 id = 1; message Line { string sku = 1; } }'
)
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


class Source:
    """The schemas of Confluent's client, as a source."""

    def __init__(self, client):
        self.client = client

    def find(self, key):
        found = (
            self.client.get_schema(key.value) if key.kind == "id" else self.client.get_schema_by_guid(str(key.value))
        )
        return self.schema(found)

    def version(self, subject, version):
        return self.schema(self.client.get_version(subject, version).schema)

    def schema(self, found):
        kind = {"AVRO": "avro", "JSON": "json", "PROTOBUF": "protobuf"}[found.schema_type]
        return kc.values.Schema(self.texts[kind], kind)

    texts = {"avro": json.dumps(AVRO), "json": json.dumps(JSON), "protobuf": PROTO}  # noqa: RUF012


@pytest.fixture
def client():
    return registry.SchemaRegistryClient.new_client({"url": "mock://"})


def written(make, client, values, part="value", **conf):
    """Values and headers as Confluent's serializer writes them."""
    payloads, headers = [], []
    for value in values:
        context = SerializationContext("orders", MessageField.KEY if part == "key" else MessageField.VALUE, [])
        payloads.append(make(client, conf)(value, context))
        headers.append(list(context.headers))
    return payloads, pa.array(headers, HEADERS)


def avro(client, conf):
    return AvroSerializer(client, json.dumps(AVRO), conf=conf)


def as_json(client, conf):
    return JSONSerializer(json.dumps(JSON), client, conf=conf)


def test_avro_before_the_payload(client):
    payloads, _ = written(avro, client, ORDERS)
    found = kc.values.decode(payloads, Source(client))
    assert found.values.to_pylist() == READ
    deserializer = AvroDeserializer(client, json.dumps(AVRO))
    context = SerializationContext("orders", MessageField.VALUE)
    assert [deserializer(payload, context) for payload in payloads] == ORDERS


@pytest.mark.parametrize("part", ["key", "value"])
def test_avro_in_headers(client, part):
    conf = {"schema.id.serializer": registry.header_schema_id_serializer}
    payloads, headers = written(avro, client, ORDERS, part, **conf)
    assert headers[0][0]["key"].as_py() == f"__{part}_schema_id"
    found = kc.values.decode(payloads, Source(client), headers=headers, part=part)
    assert found.values.to_pylist() == READ
    assert found.schema_uuids.null_count == 0


@pytest.mark.parametrize("header", [False, True])
def test_json(client, header):
    conf = {"schema.id.serializer": registry.header_schema_id_serializer} if header else {}
    payloads, headers = written(as_json, client, [{"id": 1, "note": "x"}, {"id": 2}], **conf)
    found = kc.values.decode(payloads, Source(client), headers=headers)
    assert found.values.to_pylist() == [{"id": 1, "note": "x"}, {"id": 2, "note": None}]


@pytest.mark.parametrize("header", [False, True])
@pytest.mark.parametrize(
    ("name", "field", "value"), [("Order", "id", 7), ("Other", "n", -7), ("Order.Line", "sku", "s")]
)
def test_protobuf(client, name, field, value, header):
    from google.protobuf.message_factory import GetMessageClass

    conf = {"schema.id.serializer": registry.header_schema_id_serializer} if header else {}
    types = compiled_files(kc.values.Schema(PROTO, "protobuf"), {})[-1].message_types_by_name
    outer, _, inner = name.partition(".")
    cls = GetMessageClass(types[outer].nested_types_by_name[inner] if inner else types[outer])
    payloads, headers = written(
        lambda client, conf: ProtobufSerializer(cls, client, conf={"use.deprecated.format": False, **conf}),
        client,
        [cls(**{field: value})],
        **conf,
    )
    found = kc.values.decode(payloads, Source(client), headers=headers)
    assert found.values.to_pylist() == [{field: value}]


class Registered:
    """The schemas as the serializer registered them."""

    def __init__(self, client):
        self.client = client

    def find(self, key):
        return self.schema(self.client.get_schema(key.value))

    def version(self, subject, version):
        return self.schema(self.client.get_version(subject, version).schema)

    def schema(self, found):
        used = tuple(kc.values.Reference(each.name, each.subject, each.version) for each in found.references)
        return kc.values.Schema(found.schema_str, "protobuf", used)


def test_protobuf_schemas_as_the_serializer_registers_them(client):
    """It registers descriptors in base64, with references to other files, but not to those that registries know."""
    from google.protobuf.message_factory import GetMessageClass

    outer = """
        syntax = "proto3";
        import "geo/city.proto";
        import "google/type/money.proto";
        import "google/protobuf/timestamp.proto";
        message Order { geo.City city = 1; google.type.Money price = 2; google.protobuf.Timestamp at = 3; }
    """
    city = kc.values.Schema('syntax = "proto3"; package geo; message City { string name = 1; }', "protobuf")
    files = compiled_files(kc.values.Schema(outer, "protobuf"), {"geo/city.proto": city})
    cls = GetMessageClass(files[-1].message_types_by_name["Order"])
    payloads, _ = written(
        lambda client, conf: ProtobufSerializer(cls, client, conf={"use.deprecated.format": False}),
        client,
        [cls(city={"name": "Rome"}, price={"currency_code": "EUR", "units": 5}, at={"seconds": 1})],
    )
    source = Registered(client)
    registered = source.find(kc.values.SchemaKey("id", int.from_bytes(payloads[0][1:5])))
    assert "message" not in registered.text
    assert [each.name for each in registered.references] == ["geo/city.proto"]
    (row,) = kc.values.decode(payloads, source).values.to_pylist()
    assert (row["city"], row["at"].timestamp()) == ({"name": "Rome"}, 1)
    assert row["price"] == {"currency_code": "EUR", "units": 5, "nanos": 0}
