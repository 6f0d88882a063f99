"""Values in Avro, Protobuf and JSON to columns, beside Confluent's deserializers and other libraries."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

import kafkacodec as kc
from benchmarks.contest import Contest

ROWS = 20_000
CONFLUENT = "Confluent's deserializer"

FIELDS = {"sku": "string", "quantity": "int", "price": "double"}
AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": "string"},
        {"name": "currency", "type": {"type": "enum", "name": "Currency", "symbols": ["EUR", "USD"]}},
        {"name": "created", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "note", "type": ["null", "string"]},
        {
            "name": "lines",
            "type": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "Line",
                    "fields": [{"name": name, "type": kind} for name, kind in FIELDS.items()],
                },
            },
        },
    ],
}
_OBJECT = {"type": "object"}
JSON = {
    **_OBJECT,
    "title": "Order",
    "properties": {
        "id": {"type": "integer"},
        "customer": {"type": "string"},
        "currency": {"type": "string"},
        "created": {"type": "integer"},
        "note": {"type": ["null", "string"]},
        "lines": {
            "type": "array",
            "items": {
                **_OBJECT,
                "properties": {
                    "sku": {"type": "string"},
                    "quantity": {"type": "integer"},
                    "price": {"type": "number"},
                },
            },
        },
    },
}
PROTO = """
syntax = "proto3";
enum Currency { EUR = 0; USD = 1; }
message Order {
  int64 id = 1;
  string customer = 2;
  Currency currency = 3;
  int64 created = 4;
  optional string note = 5;
  message Line { string sku = 1; int32 quantity = 2; double price = 3; }
  repeated Line lines = 6;
}
"""


def orders() -> list[dict[str, Any]]:
    """About 60 bytes each in Avro."""
    return [
        {
            "id": i,
            "customer": f"customer-{i % 977}",
            "currency": "EUR",
            "created": 1_700_000_000_000 + i,
            "note": None if i % 3 else "hello",
            "lines": [{"sku": f"sku-{j}", "quantity": j, "price": j * 1.5} for j in range(i % 4)],
        }
        for i in range(ROWS)
    ]


def contests() -> Iterator[Contest]:
    """Values per second, schema lookups left out."""
    for name, make in {"Avro": _avro, "Protobuf": _protobuf, "JSON": _json}.items():
        yield Contest(f"values in {name}", "values", float(ROWS), make())


def _avro() -> dict[str, Callable[[], object]]:
    import fastavro
    from confluent_kafka.schema_registry import SchemaRegistryClient
    from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer

    client = SchemaRegistryClient.new_client({"url": "mock://"})
    serialize, deserialize = AvroSerializer(client, json.dumps(AVRO)), AvroDeserializer(client)
    context = _context()
    values = [serialize(order, context) for order in orders()]
    parsed = fastavro.parse_schema(AVRO)
    competitors: dict[str, Callable[[], object]] = {
        "values.decode": _ours(values, kc.values.Schema(json.dumps(AVRO))),
        CONFLUENT: lambda: [deserialize(value, context) for value in values],
        "fastavro": lambda: [fastavro.schemaless_reader(io.BytesIO(value[5:]), parsed, None) for value in values],
    }
    payloads = [value[5:] for value in values]
    try:
        import pyruhvro
    except ImportError:
        return competitors
    competitors["pyruhvro"] = lambda: pyruhvro.deserialize_array(payloads, json.dumps(AVRO))
    return competitors


def _protobuf() -> dict[str, Callable[[], object]]:
    from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer
    from google.protobuf.message_factory import GetMessageClass

    from kafkacodec.values.protobuf.compile import compiled_files

    schema = kc.values.Schema(PROTO, "protobuf")
    order_class = GetMessageClass(compiled_files(schema, {})[-1].message_types_by_name["Order"])
    deserialize = ProtobufDeserializer(order_class, {"use.deprecated.format": False})
    context = _context()
    values = []
    for order in orders():
        message = order_class(**{name: value for name, value in order.items() if value is not None})
        values.append(b"\0\0\0\0\1\0" + message.SerializeToString())
    return {
        "values.decode": _ours(values, schema),
        CONFLUENT: lambda: [deserialize(value, context) for value in values],
        "protobuf": lambda: [order_class.FromString(value[6:]) for value in values],
    }


def _json() -> dict[str, Callable[[], object]]:
    import orjson
    from confluent_kafka.schema_registry.json_schema import JSONDeserializer

    deserialize = JSONDeserializer(json.dumps(JSON), conf={"validate": False}, from_dict=lambda found, _: found)
    context = _context()
    values = [b"\0\0\0\0\1" + json.dumps(order).encode() for order in orders()]
    return {
        "values.decode": _ours(values, kc.values.Schema(json.dumps(JSON), "json")),
        CONFLUENT: lambda: [deserialize(value, context) for value in values],
        "orjson": lambda: [orjson.loads(value[5:]) for value in values],
        "orjson and pyarrow": lambda: pa.array([orjson.loads(value[5:]) for value in values]),
    }


def _ours(values: list[bytes], schema: kc.values.Schema) -> Callable[[], object]:
    decoder = kc.values.ValueDecoder({1: schema})
    column = pa.array(values, pa.binary())
    decoder.decode(column)
    return lambda: decoder.decode(column)


def _context() -> Any:
    from confluent_kafka.serialization import MessageField, SerializationContext

    return SerializationContext("orders", MessageField.VALUE)
