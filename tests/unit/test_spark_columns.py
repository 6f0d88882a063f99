"""Errors of Spark's functions of columns: one sentence that says what to do; and one schema of framed values."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import kafkacodec as kc
from kafkacodec.spark.errors import OptionError
from kafkacodec.spark.sql.column_functions import UDFS
from kafkacodec.spark.sql.functions import decode_batches
from kafkacodec.spark.sql.register import _KafkaRecords
from kafkacodec.spark.sql.values import column_decoder

AVRO = kc.values.Schema(json.dumps({"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}))
JSON = kc.values.Schema(json.dumps({"type": "object", "properties": {"id": {"type": "integer"}}}), "json")
PROTO = kc.values.Schema('syntax="proto3"; message R { int64 id = 1; } message S { int64 other = 1; }', "protobuf")


@pytest.fixture(autouse=True)
def worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A worker before an error, which Spark shows with its traceback."""
    monkeypatch.setenv("SPARK_HIDE_TRACEBACK", "")
    yield
    monkeypatch.undo()


def call(name: str, *columns: pa.Array) -> pa.Array:
    return UDFS[name][0](*columns)


BODY = pa.array([b"\0\0\0\1\0\1a"])


@pytest.mark.parametrize(
    ("name", "columns", "message"),
    [
        ("kafka_partition", (pa.array([b"k"]), pa.array([0])), "num_partitions: 0 is not a positive number"),
        (
            "kafka_partition",
            (pa.array([1.5]), pa.array([3])),
            "key: must be a column of binary, int32, int64 or string",
        ),
        ("crc_ok", (pa.array([1]),), "column: must be a column of binary or string, not int64"),
        ("batch_headers", (pa.array([1]),), "column: must be a column of binary or string, not int64"),
        ("decode_records", (pa.array([1]),), "column: must be a column of binary or string, not int64"),
        (
            "decode_message",
            (pa.array([1]), pa.array(["MetadataRequest"]), pa.array([0])),
            "column: must be a column of ",
        ),
        ("decode_message", (BODY, pa.array(["MetadataRequst"]), pa.array([0])), "name: .* did you mean 'MetadataReque"),
        (
            "decode_message",
            (BODY, pa.array(["MetadataRequest"]), pa.array(["0"])),
            "version: expected a number, not '0'",
        ),
        ("decode_message", (pa.array([b""]), pa.array(["MetadataRequest"]), pa.array([0])), "topics: a length needs 4"),
    ],
)
def test_an_error_of_a_task_is_a_sentence(name: str, columns: tuple[pa.Array, ...], message: str) -> None:
    with pytest.raises(kc.KafkaCodecError, match=f"^{message}"):
        call(name, *columns)
    assert os.environ["SPARK_HIDE_TRACEBACK"] == "1"


def test_an_error_of_the_table_function_is_a_sentence() -> None:
    rows = pa.record_batch({"name": ["a"], "value": [b""]})
    with pytest.raises(kc.KafkaCodecError, match="one binary column, not name string, value binary"):
        list(_KafkaRecords().eval(rows))
    assert os.environ["SPARK_HIDE_TRACEBACK"] == "1"


@pytest.mark.parametrize(
    ("value", "reason"),
    [(b"{", "not JSON: .*"), (b'{"id": "x"}', "field id: expected integer, not string")],
)
def test_an_invalid_value_says_how_to_read_on(value: bytes, reason: str) -> None:
    with pytest.raises(kc.DecodeError, match=rf"^values\[1\]: {reason}; on_error='null' reads such values as null"):
        column_decoder(JSON)(pa.array([b'{"id": 1}', value]))
    assert os.environ["SPARK_HIDE_TRACEBACK"] == "1"
    found = column_decoder(JSON, on_error="null")(pa.array([b'{"id": 1}', value])).to_pylist()
    assert [row["value"] for row in found] == [{"id": 1}, None]
    assert "on_error" not in found[1]["error"]


def test_a_column_of_numbers_is_refused() -> None:
    with pytest.raises(OptionError, match=r"^column: must be a column of binary or string, not int64$"):
        column_decoder(JSON)(pa.array([1]))


def test_schemas_that_ids_do_not_name_are_told_with_those_that_they_do() -> None:
    found = column_decoder({7: AVRO.text, 8: AVRO.text}, ids=[7], on_error="null")(pa.array([b"\0\0\0\0\x08\2"]))
    assert found.to_pylist()[0]["error"] == "schema 8 is not one of the schemas that were prepared: 7"
    with pytest.raises(TypeError, match=r"^ids: expected a list of numbers or UUIDs, not 7$"):
        column_decoder({7: AVRO.text}, ids=7)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("schema", "payload"),
    [(AVRO, b"\x0a"), (JSON, b'{"id":5}'), (PROTO, b"\0\x08\x05")],
    ids=["avro", "json", "protobuf"],
)
def test_one_schema_of_framed_values_has_those_of_every_number(schema: kc.values.Schema, payload: bytes) -> None:
    """As for kafkacodec.values.decode, which does not ask for types in advance."""
    column = pa.array([b"\0\0\0\0\x07" + payload, b"\0\0\0\0\x09" + payload, b"junk", None])
    found = column_decoder(schema, framing="confluent", on_error="null")(column).to_pylist()
    assert [row["value"] for row in found] == [{"id": 5}, {"id": 5}, None, None]
    assert [row["schema_id"] for row in found] == [7, 9, None, None]
    plain = kc.values.decode(column, schema, framing="confluent", on_error="null")
    assert plain.values.to_pylist() == [row["value"] for row in found]


def test_another_message_of_the_one_schema_is_not_read_as_the_first() -> None:
    column = pa.array([b"\0\0\0\0\x07\x02\x02\x08\x05"])  # the message with the index 1
    found = column_decoder(PROTO, framing="confluent", on_error="null")(column).to_pylist()
    assert found[0]["value"] is None
    assert "(message 1) is not one of the schemas" in found[0]["error"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"columns": "offset"}, r"columns: expected a list of names, such as \['offset'\], not one text"),
        ({"keep": "name"}, r"keep: expected a list of names, such as \['name'\], not one text"),
        ({"column": 5}, "column: expected the name of a column, not int"),
        ({"keep": [5]}, "keep: expected the name of a column, not int"),
        ({"column": "vlaue"}, r"column: unknown column 'vlaue'; columns are name, value; did you mean 'value'\?"),
    ],
)
def test_columns_of_a_data_frame(arguments: dict[str, Any], message: str) -> None:
    frame: Any = SimpleNamespace(columns=["name", "value"])
    with pytest.raises(OptionError, match=f"^{message}$"):
        decode_batches(frame, **arguments)
