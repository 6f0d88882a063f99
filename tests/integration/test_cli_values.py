"""``kafkacodec convert --values``: typed columns from schemas in a directory, in a log directory, at a URL."""

import json

import pyarrow as pa
import pytest
from pyarrow import parquet

import kafkacodec as kc
from kafkacodec.cli.__main__ import BAD_INPUT, DONE, WRONG_USAGE
from tests.avro_samples import encoded
from tests.registry_server import serving

ONE = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
TWO = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "tags", "type": {"type": "map", "values": "bytes"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}},
    ],
}
PROTO = 'syntax="proto3"; message Order { string name = 1; map<string, int32> counts = 2; }'


def framed(number, payload):
    return b"\x00" + number.to_bytes(4) + payload


@pytest.fixture
def data(tmp_path):
    """A data directory with orders of two schemas, and the topic of their registry."""
    second = {"id": 2, "at": 1000, "tags": {"a": b"\xff", "b": b"x"}, "price": b"\x7d"}
    plain = json.loads(json.dumps(TWO))
    plain["fields"][1]["type"], plain["fields"][3]["type"] = "long", "bytes"
    values = [framed(1, encoded(ONE, [{"id": 1}])[0]), framed(2, encoded(plain, [second])[0]), None]
    directory = tmp_path / "data"
    write(directory / "orders-0", [(framed(3, b"\x0a\x01k"), value) for value in values])
    schemas = {1: ("AVRO", json.dumps(ONE)), 2: ("AVRO", json.dumps(TWO)), 3: ("PROTOBUF", PROTO)}
    records = []
    for number, (kind, text) in schemas.items():
        key = {"keytype": "SCHEMA", "subject": f"s{number}", "version": 1, "magic": 1}
        records.append((key, {"subject": f"s{number}", "version": 1, "id": number, "schemaType": kind, "schema": text}))
    write(directory / "_schemas-0", [(json.dumps(k).encode(), json.dumps(v).encode()) for k, v in records])
    return directory


def write(directory, records):
    directory.mkdir(parents=True)
    (directory / f"{0:020}.log").write_bytes(kc.encode(records))


AT = "1970-01-01T00:00:01.000Z"
WANT = [
    {"id": 1, "at": None, "tags": None, "price": None},
    {"id": 2, "at": AT, "tags": {"a": {"base64": "/w=="}, "b": "x"}, "price": "1.25"},
    None,
]


def test_values_become_columns(kafkacodec, tmp_path, data):
    output = tmp_path / "out.parquet"
    code, _, err = kafkacodec("convert", data, "--topic", "orders", "--values", "avro", "--schemas", data, "-o", output)
    assert (code, "3 records" in err) == (DONE, True)
    table = parquet.read_table(output)
    assert table.column_names[-2:] == ["value_schema_id", "value_error"]
    assert table["value_schema_id"].to_pylist() == [1, 2, None]
    kind = table.schema.field("value").type
    assert kind.field("price").type == pa.decimal128(6, 2)
    assert [row and row["id"] for row in table["value"].to_pylist()] == [1, 2, None]


def test_json_lines_have_objects(kafkacodec, tmp_path, data):
    output = tmp_path / "out.jsonl"
    arguments = ("--topic", "orders", "--values", "avro", "--schemas", data, "-o", output)
    assert kafkacodec("convert", data, *arguments)[0] == DONE
    assert [json.loads(line)["value"] for line in output.read_text().splitlines()] == WANT


def test_csv_has_nested_values_as_json(kafkacodec, tmp_path, data):
    output = tmp_path / "out.csv"
    arguments = ("--topic", "orders", "--values", "avro", "--schemas", data, "-o", output)
    assert kafkacodec("convert", data, *arguments)[0] == DONE
    assert '""tags"": {""a"": {""base64"": ""/w==""}, ""b"": ""x""}' in output.read_text()


def test_keys_become_columns(kafkacodec, tmp_path, data):
    schemas = tmp_path / "schemas"
    schemas.mkdir()
    (schemas / "3.proto").write_text(PROTO)
    output = tmp_path / "out.jsonl"
    damaged = framed(3, b"\x00\x0a\x01k"), b"x"
    write(data / "keyed-0", [damaged, (b"no", b"y"), (None, b"z")])
    arguments = ("--topic", "keyed", "--keys", "protobuf", "--schemas", schemas, "-o", output)
    code, _, err = kafkacodec("convert", data, *arguments)
    assert (code, "keyed-0: offset 1: key: no schema id" in err) == (BAD_INPUT, True)
    assert not output.exists()
    code, _, err = kafkacodec("convert", data, *arguments, "--on-value-error", "null")
    assert (code, "1 value could not be decoded" in err) == (DONE, True)
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    assert [row["key"] for row in rows] == [{"name": "k", "counts": {}}, None, None]
    assert [row["key_error"] for row in rows] == [None, "no schema id: the value starts with the byte 0x6e", None]


def test_a_registry_and_a_readers_schema(kafkacodec, tmp_path, data, monkeypatch):
    reader = tmp_path / "reader.avsc"
    reader.write_text(json.dumps(ONE))
    answers = {"/schemas/ids/1": {"schema": json.dumps(ONE)}, "/schemas/ids/2": {"schema": json.dumps(TWO)}}
    output = tmp_path / "out.jsonl"
    monkeypatch.setenv("KAFKACODEC_REGISTRY_TOKEN", "secret")
    with serving(answers) as server:
        arguments = ("--values", "avro", "--schemas", server.url, "--reader-schema", reader, "-o", output)
        assert kafkacodec("convert", data, "--topic", "orders", *arguments)[0] == DONE
        assert {headers["Authorization"] for _, headers in server.requests} == {"Bearer secret"}
    assert [json.loads(line)["value"] for line in output.read_text().splitlines()] == [{"id": 1}, {"id": 2}, None]


def test_plain_values_have_the_schema_of_a_file(kafkacodec, tmp_path, data):
    schema = tmp_path / "order.json"
    schema.write_text('{"type": "object", "properties": {"id": {"type": "integer"}, "name": {"type": "string"}}}')
    write(data / "plain-0", [(None, b'{"id": 1, "name": "a"}'), (None, b"{"), (None, None)])
    output = tmp_path / "out.jsonl"
    arguments = ("--topic", "plain", "--values", "json", "--schemas", schema, "--on-value-error", "null", "-o", output)
    assert kafkacodec("convert", data, *arguments)[0] == DONE
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    assert [row["value"] for row in rows] == [{"id": 1, "name": "a"}, None, None]
    assert [row["value_schema_id"] for row in rows] == [None, None, None]
    assert [row["value_error"] and row["value_error"][:8] for row in rows] == [None, "not JSON", None]


def test_parquet_without_a_type(kafkacodec, tmp_path, data):
    schema = tmp_path / "empty.avsc"
    schema.write_text('{"type": "record", "name": "E", "fields": []}')
    write(data / "empty-0", [(None, b"")])
    output = tmp_path / "out.parquet"
    arguments = ("--topic", "empty", "--values", "avro", "--schemas", schema, "-o", output)
    code, _, err = kafkacodec("convert", data, *arguments)
    assert (code, "choose another --format" in err, output.exists()) == (WRONG_USAGE, True, False)


def test_plain_json_needs_no_schema(kafkacodec, tmp_path, data):
    rows = [b'{"id": 1, "x": [1]}', b'{"id": 2.5, "x": [null], "y": "a"}', b"null", b'{"y": 5}', b"{"]
    write(data / "plain-0", [(None, row) for row in rows])
    output = tmp_path / "out.jsonl"
    arguments = ("--topic", "plain", "--values", "json", "-o", output)
    code, _, err = kafkacodec("convert", data, *arguments)
    assert (code, "plain-0: offset 4: value: not JSON" in err) == (BAD_INPUT, True)
    assert kafkacodec("convert", data, *arguments, "--on-value-error", "null")[0] == DONE
    assert [json.loads(line)["value"] for line in output.read_text().splitlines()] == [
        {"id": 1.0, "x": [1], "y": None},
        {"id": 2.5, "x": [None], "y": '"a"'},
        None,
        {"id": None, "x": None, "y": "5"},
        None,
    ]


def test_plain_json_is_read_by_a_readers_schema_alone(kafkacodec, tmp_path, data):
    write(data / "plain-0", [(None, b'{"id": 1, "x": [1], "more": 3}'), (None, b'{"x": []}')])
    schema, output = tmp_path / "reader.json", tmp_path / "out.jsonl"
    schema.write_text('{"type": "object", "properties": {"id": {"type": "integer"}, "y": {"type": "string"}}}')
    arguments = ("--topic", "plain", "--values", "json", "--reader-schema", schema, "-o")
    assert kafkacodec("convert", data, *arguments, output)[0] == DONE
    want = [{"id": 1, "y": None}, {"id": None, "y": None}]
    assert [json.loads(line)["value"] for line in output.read_text().splitlines()] == want
    assert kafkacodec("convert", data, *arguments, tmp_path / "tables", "--partition-by", "topic")[0] == DONE
    (file,) = (tmp_path / "tables").glob("**/*.parquet")
    assert parquet.ParquetFile(file).read(columns=["value"])["value"].to_pylist() == want


def test_values_without_their_schemas_may_be_null(kafkacodec, tmp_path, data):
    (tmp_path / "empty").mkdir()
    output = tmp_path / "out.jsonl"
    arguments = ("--values", "avro", "--schemas", tmp_path / "empty", "--on-value-error", "null", "-o", output)
    code, _, err = kafkacodec("convert", data, "--topic", "orders", *arguments)
    assert (code, "2 values could not be decoded" in err) == (DONE, True)
    assert [json.loads(line)["value"] for line in output.read_text().splitlines()] == [None, None, None]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--values", "avro"], "need --schemas"),
        (["--schemas", "x"], "need --values or --keys"),
        (["--values", "avro", "--schemas", "/no/such"], "is not a directory"),
        (["--values", "avro", "--schemas", "http://me:pw@host"], "not in the URL"),
        (["--values", "xml", "--schemas", "."], "xml"),
        (["--keys", "json", "--reader-schema", "x"], "--reader-schema is for values: add --values"),
        (["--values", "json", "--framing", "confluent"], "--framing needs --schemas"),
    ],
)
def test_wrong_options(kafkacodec, tmp_path, data, arguments, reason):
    code, _, err = kafkacodec("convert", data, "-o", tmp_path / "out.parquet", *arguments)
    assert (code, reason in err) == (WRONG_USAGE, True)


def test_errors_of_schemas_name_the_file(kafkacodec, tmp_path, data):
    schemas = tmp_path / "schemas"
    schemas.mkdir()
    (schemas / "1.avsc").write_text('"recrod"')
    (schemas / "2.avsc").write_text("{")
    reading = ("--topic", "orders", "--values", "avro", "--schemas", schemas)
    for arguments in (("dump", data, *reading), ("convert", data, *reading, "-o", tmp_path / "out.jsonl")):
        code, _, err = kafkacodec(*arguments)
        assert code == BAD_INPUT
        assert f"{schemas / '1.avsc'}: unknown type 'recrod'" in err
    assert "orders-0: offset 0: value: " in kafkacodec("dump", data, *reading)[2]
    code, _, err = kafkacodec("dump", data, *reading, "--on-value-error", "null", "--json")
    assert (code, err) == (DONE, "2 values could not be decoded; --json gives the reason\n")


def test_a_schema_of_another_format_is_told_with_the_record(kafkacodec, data):
    arguments = ("dump", data, "--topic", "orders", "--values", "json", "--schemas", data)
    code, _, err = kafkacodec(*arguments)
    assert code == BAD_INPUT
    assert "orders-0: offset 0: value: schema 1 is avro, not json; --on-value-error null" in err, err


def test_framed_json_without_schemas_has_a_hint(kafkacodec, data, tmp_path):
    write(data / "framed-0", [(None, framed(1, b"{}"))])
    for command in (("dump", data), ("convert", data, "-o", tmp_path / "out.jsonl")):
        code, _, err = kafkacodec(*command, "--topic", "framed", "--values", "json")
        assert code == BAD_INPUT
        assert (
            "not JSON: it begins with a byte 0, as values do that have the number of a schema; --schemas names" in err
        )


def test_missing_schemas_and_registries(kafkacodec, tmp_path, data):
    (tmp_path / "empty").mkdir()
    arguments = ("--topic", "orders", "--values", "avro", "-o", tmp_path / "out.jsonl")
    code, _, err = kafkacodec("convert", data, *arguments, "--schemas", tmp_path / "empty")
    assert (code, "there is no schema 1" in err) == (BAD_INPUT, True)
    with serving({"/schemas/ids/1": (403, b"")}) as server:
        code, _, err = kafkacodec("convert", data, *arguments, "--schemas", server.url)
    assert (code, "HTTP 403" in err) == (BAD_INPUT, True)
