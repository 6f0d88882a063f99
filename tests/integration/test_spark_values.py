"""Values as typed columns in a real Spark session."""

import datetime
import json

import pytest
from pyspark.errors import PythonException

import kafkacodec as kc
from tests.avro_samples import encoded

pytestmark = pytest.mark.spark

ONE = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
TWO = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "hour", "type": {"type": "int", "logicalType": "time-millis"}},
        {"name": "tags", "type": {"type": "map", "values": "string"}},
        {"name": "lines", "type": {"type": "array", "items": ["null", "int", "string"]}},
    ],
}
AT = datetime.datetime(2024, 5, 6, 7, 8, 9, 123000, tzinfo=datetime.UTC)
SECOND = {"id": 2, "at": AT, "hour": datetime.time(1, 2, 3), "tags": {"a": "b"}, "lines": [None, 5, "x"]}


def framed(number, payload):
    return b"\x00" + number.to_bytes(4) + payload


@pytest.fixture(scope="module")
def values(spark):
    rows = [framed(1, encoded(ONE, [{"id": 1}])[0]), framed(2, encoded(TWO, [SECOND])[0]), None]
    return spark.createDataFrame([(value and bytearray(value),) for value in rows], "value binary").coalesce(1)


def test_values_of_several_schemas_from_a_directory(values, tmp_path):
    (tmp_path / "1.avsc").write_text(json.dumps(ONE))
    (tmp_path / "2.avsc").write_text(json.dumps(TWO))
    column = kc.spark.decode_values("value", str(tmp_path), ids=[1, 2])
    (tmp_path / "1.avsc").unlink()  # shipped with the query
    frame = values.select(column.alias("d")).select("d.value.*", "d.schema_id", "d.error")
    assert dict(frame.dtypes) == {
        "id": "bigint",
        "at": "timestamp",
        "hour": "string",
        "tags": "map<string,string>",
        "lines": "array<struct<int:int,string:string>>",
        "schema_id": "bigint",
        "error": "string",
    }
    first, second, null = [row.asDict(recursive=True) for row in frame.collect()]
    assert (first["id"], first["at"], first["schema_id"]) == (1, None, 1)
    assert second["at"].astimezone(datetime.UTC) == AT
    assert second["tags"] == {"a": "b"}
    assert second["lines"] == [None, {"int": 5, "string": None}, {"int": None, "string": "x"}]
    assert second["hour"].startswith("01:02:03")
    assert set(null.values()) == {None}


def test_a_readers_schema_reads_all(values):
    schemas = {1: json.dumps(ONE), 2: json.dumps(TWO)}
    column = kc.spark.decode_values("value", schemas, reader_schema=json.dumps(ONE))
    assert [row[0] and row[0]["id"] for row in values.select(column["value"]).collect()] == [1, 2, None]


def test_damaged_values(spark):
    schema = kc.values.Schema(json.dumps({"type": "object", "properties": {"a": {"type": "integer"}}}), "json")
    frame = spark.createDataFrame([(bytearray(b'{"a": 1}'),), (bytearray(b"{"),)], "value binary").coalesce(1)
    with pytest.raises(PythonException, match=r"values\[1\]: not JSON"):
        frame.select(kc.spark.decode_values("value", schema)).collect()
    rows = frame.select(kc.spark.decode_values("value", schema, on_error="null").alias("d")).select("d.*").collect()
    assert [row.value and row.value.a for row in rows] == [1, None]
    assert [row.error is None for row in rows] == [True, False]


def test_schemas_in_headers(spark):
    proto = kc.values.Schema('syntax="proto3"; message A { uint64 n = 1; }', "protobuf")
    header = bytearray(b"\x00\x00\x00\x00\x07\x00")
    frame = spark.createDataFrame(
        [(bytearray(b"\x08\x05"), [("__value_schema_id", header)])],
        "value binary, headers array<struct<key: string, value: binary>>",
    )
    column = kc.spark.decode_values("value", {7: proto}, reader_schema=proto, format="protobuf", headers="headers")
    assert int(frame.select(column["value"]["n"]).collect()[0][0]) == 5


def test_the_type_has_to_be_known():
    with pytest.raises(kc.spark.OptionError, match="reader_schema"):
        kc.spark.decode_values("value", {1: json.dumps(ONE)})
    with pytest.raises(kc.SchemaNotFound, match="there is no schema 9"):
        kc.spark.decode_values("value", {1: json.dumps(ONE)}, ids=[9])
