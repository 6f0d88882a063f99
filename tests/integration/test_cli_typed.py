"""``produce``, ``consume`` and ``dump`` with values of Avro, Protobuf and JSON, and a stand-in for a registry."""

from __future__ import annotations

import io
import json

import pytest
from pyarrow import parquet

import kafkacodec as kc
from kafkacodec.cli.__main__ import BAD_INPUT, DONE, WRONG_USAGE, run
from tests.registry_server import serving

AVRO = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "note", "type": ["null", "string"]},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        ],
    }
)
PROTO = 'syntax = "proto3"; message Order { int64 id = 1; string note = 2; }'
JSON = '{"type": "object", "properties": {"id": {"type": "integer"}, "note": {"type": "string"}}}'
SCHEMAS = {"avro": (AVRO, "AVRO", 1), "protobuf": (PROTO, "PROTOBUF", 2), "json": (JSON, "JSON", 3)}


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """A broker with its data directory, and a registry."""
    answers = {}
    for topic, (text, kind, number) in SCHEMAS.items():
        found = {"schema": text, "schemaType": kind, "id": number, "subject": f"{topic}-value", "version": 1}
        answers |= {f"/subjects/{topic}-value/versions/latest": found, f"/schemas/ids/{number}": found}
    data = tmp_path_factory.mktemp("data")
    with (
        serving(answers) as registry,
        kc.broker.serve(data, topics=dict.fromkeys((*SCHEMAS, "keyed", "filed"), 1)) as broker,
    ):
        yield broker.bootstrap_servers, registry.url, data


@pytest.fixture
def command(capsys, monkeypatch):
    def call(*arguments, stdin=""):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        code = run([*map(str, arguments)])
        found = capsys.readouterr()
        return code, found.out, found.err

    return call


@pytest.mark.parametrize("kind", SCHEMAS)
def test_there_and_back(command, places, kind):
    server, registry, data = places
    more = {"at": 1_700_000_000_000} if kind == "avro" else {}
    lines = [{"id": 1, "note": "grün", **more}, {"id": 2**40, "note": "", **more}]
    stdin = "".join(json.dumps(line) + "\n" for line in lines)
    typed = ["--values", kind, "--schemas", registry]
    assert command("produce", kind, "-b", server, *typed, stdin=stdin)[0] == DONE
    for arguments in (["consume", kind, "-b", server, "-e"], ["dump", data / f"{kind}-0"]):
        code, out, err = command(*arguments, *typed, "--json")
        assert (code, err) == (DONE, "")
        found = [json.loads(line)["value"] for line in out.splitlines()]
        assert [(value["id"], value["note"]) for value in found] == [(line["id"], line["note"]) for line in lines]
        if kind == "avro":
            assert found[0]["at"] == "2023-11-14T22:13:20.000Z"
        code, out, _ = command(*arguments, *typed, "-f", "%s\n")
        assert [json.loads(line)["id"] for line in out.splitlines()] == [1, 2**40]
        assert '{"id":1,' in command(*arguments, *typed)[1]


def test_keys_there_and_back(command, places):
    server, registry, _ = places
    typed = ["--keys", "protobuf", "--values", "json", "--schemas", registry]
    lines = '{"id": 7, "note": "k"}|{"id": 1}\n{"id": 9}\n{"id": 8}|{"id": 2}\n'
    key = ["--key-subject", "protobuf-value", "--subject", "json-value", "-K", "|"]
    code, _, err = command("produce", "keyed", "-b", server, *typed, *key, stdin=lines)
    assert (code, "keyed: 3 records" in err) == (DONE, True)
    code, out, _ = command("consume", "keyed", "-b", server, "-e", *typed, "--json")
    rows = [json.loads(line) for line in out.splitlines()]
    assert [row["key"] and row["key"]["note"] for row in rows] == ["k", None, ""]
    assert [row["value"]["id"] for row in rows] == [1, 9, 2]
    code, _, err = command("produce", "keyed", "-b", server, *typed, *key, stdin='{"id": 1}|{}\n{"id": []}|{}\n')
    assert (code, "error: record 2: key: the value does not match" in err) == (BAD_INPUT, True)
    assert err.startswith("keyed: 1 record went out\n")
    for wrong in (["--keys", "avro"], ["--values", "avro", "--schemas", registry, "--key-subject", "x"]):
        assert command("produce", "keyed", "-b", server, *wrong)[0] == WRONG_USAGE


def test_typed_records_in_a_file(command, places, tmp_path):
    server, registry, _ = places
    typed = ["--values", "json", "--schemas", registry, "--subject", "json-value"]
    assert command("produce", "filed", "-b", server, *typed, stdin='{"id": 1}\n{"id": 2, "note": "x"}\n')[0] == DONE
    with kc.client.Producer(server) as producer:
        producer.send("filed", b"plain")
    reading = ["consume", "filed", "-b", server, "-e", "--values", "json", "--schemas", registry, "--output"]
    wrong, output = tmp_path / "wrong.parquet", tmp_path / "typed.parquet"
    code, _, err = command(*reading, wrong)
    assert (code, "filed-0: offset 2: value: " in err, wrong.exists()) == (BAD_INPUT, True, False)
    code, _, err = command(*reading, output, "--on-value-error", "null")
    assert (code, "1 value could not be decoded" in err, "3 records" in err) == (DONE, True, True)
    table = parquet.read_table(output)
    assert table.column("value").to_pylist() == [{"id": 1, "note": None}, {"id": 2, "note": "x"}, None]
    assert table.column_names[-2:] == ["value_schema_id", "value_error"]
    assert table.column("value_schema_id").to_pylist() == [3, 3, None]


def test_what_does_not_fit(command, places):
    server, registry, _ = places
    typed = ["--values", "avro", "--schemas", registry]
    code, _, err = command("produce", "avro", "-b", server, *typed, stdin='{"id": "one"}\n')
    assert (
        code,
        err.startswith("avro: 0 records went out\nkafkacodec: error: record 1: value: the value does not match"),
    ) == (BAD_INPUT, True)
    code, _, err = command("produce", "avro", "-b", server, *typed, stdin="{\n")
    assert (code, "error: record 1: the value is not JSON: column 2: " in err) == (BAD_INPUT, True)
    wrong = ["--values", "json", "--schemas", registry, "--subject", "avro-value"]
    code, _, err = command("produce", "avro", "-b", server, *wrong, stdin="{}\n")
    assert (code, "the schema of avro-value is avro, not json" in err) == (BAD_INPUT, True)
    code, _, err = command("produce", "avro", "-b", server, *typed, "--subject", "none", stdin="{}\n")
    assert (code, "there is no subject none in" in err) == (BAD_INPUT, True)
    assert command("produce", "avro", "-b", server, "--values", "avro")[0] == WRONG_USAGE
    assert command("produce", "avro", "-b", server, "--schemas", registry)[0] == WRONG_USAGE
    with kc.client.Producer(server) as producer:
        producer.send("json", b"plain")
    code, _, err = command("consume", "json", "-b", server, "-e", "--values", "json", "--schemas", registry, "--json")
    assert (code, "json-0: offset " in err and ": value" in err) == (BAD_INPUT, True)
    shown = ["--values", "json", "--schemas", registry, "--on-value-error", "null"]
    _, out, err = command("consume", "json", "-b", server, "-e", *shown, "--json")
    last = json.loads(out.splitlines()[-1])
    assert (last["value"], last["value_error"]) == (None, "no schema id: the value starts with the byte 0x70")
    assert err == "1 value could not be decoded; --json gives the reason\n"
    assert "plain" not in command("consume", "json", "-b", server, "-e", *shown, "-f", "%s\n")[1]


def test_good_values_are_printed_before_a_bad_one(command, tmp_path):
    with kc.broker.serve(tmp_path, topics={"t": 1}) as broker:
        server = broker.bootstrap_servers
        with kc.client.Producer(server, transactional_id="x") as producer, producer.transaction():
            for value in (b'{"id": 1}', b'{"id": 2}', b"plain", b'{"id": 3}'):
                producer.send("t", value)
        consume, typed = ("consume", "t", "-b", server, "-e"), ("--values", "json", "-f", "%o %s\n")
        code, out, err = command(*consume, *typed)
        assert (code, out) == (BAD_INPUT, '0 {"id":1}\n1 {"id":2}\n')
        assert err.startswith("kafkacodec: error: t-0: offset 2: value: not JSON")
        assert command(*consume, *typed, "--group", "g")[:2] == (BAD_INPUT, '0 {"id":1}\n1 {"id":2}\n')
        assert command(*consume, *typed, "--group", "g")[:2] == (BAD_INPUT, "")
        with kc.client.Admin(server) as admin:
            assert admin.list_group_offsets("g")["t", 0].offset == 2
    assert command("dump", tmp_path / "t-0", *typed) == (BAD_INPUT, '0 {"id":1}\n1 {"id":2}\n', err)
    code, out, err = command("dump", tmp_path / "t-0", *typed, "--control", "--on-value-error", "null")
    assert (code, out.splitlines()[:4]) == (DONE, ['0 {"id":1}', '1 {"id":2}', "2 ", '3 {"id":3}'])
    assert err == "1 value could not be decoded; --json gives the reason\n"
    limited = ("-n", 2, "--on-value-error", "null")
    assert command("dump", tmp_path / "t-0", *typed, *limited) == (DONE, '0 {"id":1}\n1 {"id":2}\n', "")


def test_null_in_json_is_not_a_string(command, tmp_path):
    with kc.broker.serve(tmp_path, topics={"t": 1}) as broker, kc.client.Producer(broker.bootstrap_servers) as producer:
        for value in (b"null", b'"null"', b"plain", None):
            producer.send("t", value, key=b"{}")
    typed = ("--values", "json", "--keys", "json", "--json", "--on-value-error", "null")
    _, out, _ = command("dump", tmp_path / "t-0", *typed)
    rows = [json.loads(line) for line in out.splitlines()]
    assert [(row["value"], "value_error" in row) for row in rows] == [
        (None, False), ("null", False), (None, True), (None, False),
    ]  # fmt: skip
    assert {row["topic"] for row in rows} == {"t"}


def test_internal_topics_and_control_records_are_not_decoded(command, tmp_path):
    with (
        kc.broker.serve(tmp_path, topics={"t": 1}) as broker,
        kc.client.Producer(broker.bootstrap_servers, transactional_id="x") as producer,
        producer.transaction(),
    ):
        producer.send("t", b'{"id": 1}')
    for options in ((), ("--raw",)):
        code, out, err = command(
            "dump", tmp_path, "--values", "json", "--keys", "json", "--control", "--json", *options
        )
        assert (code, '{"id":1}' in out, err) == (DONE, True, "")
