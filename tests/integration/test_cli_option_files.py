"""Options and arguments that name files: an error about what is in one says which file it is."""

from __future__ import annotations

from pathlib import Path

import pytest

import kafkacodec as kc

BROKER = ("-b", "localhost:1")
NOT_TEXT = "not UTF-8 text (byte 1)"
CONTENTS = {
    "binary": b"a\xff",
    "type.avsc": b'{"type": "record", "name": "R", "fields": [{"name": "a", "type": "strin"}]}',
    "json.avsc": b'{"type":\n "record"',
    "syntax.proto": b"message A {\n  int32 a = ;\n}\n",
    "wrong": b"\nuser:password\nnonsense\n",
}


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, content in CONTENTS.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "schemas").mkdir()
    kc.sample(tmp_path / "logs")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("command", [("dump", "logs"), ("convert", "logs", "--topic", "orders", "-o", "o.parquet")])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("avro", "--schemas", "type.avsc"), "type.avsc: a: unknown type 'strin'"),
        (("avro", "--schemas", "json.avsc"), "json.avsc: the schema is not JSON: Expecting ',' delimiter: line 2"),
        (("avro", "--schemas", "binary"), f"binary: {NOT_TEXT}"),
        (("avro", "--schemas", "schemas", "--reader-schema", "type.avsc"), "type.avsc: a: unknown type 'strin'"),
        (("avro", "--schemas", "schemas", "--reader-schema", "binary"), f"binary: {NOT_TEXT}"),
        (("protobuf", "--schemas", "syntax.proto"), "syntax.proto: the schema is not a .proto file: line 2:"),
    ],
)
def test_schemas(directory, kafkacodec, command, options, message):
    code, _, err = kafkacodec(*command, "--values", *options)
    assert code == 1
    assert f"error: {message}" in err


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("consume", *BROKER, "-F", "binary", "orders"), f"binary: {NOT_TEXT}"),
        (("consume", *BROKER, "-F", "wrong", "orders"), "wrong: line 2: not name=value"),
        (("admin", "groups", "reset-offsets", "g", *BROKER, "--from-file", "binary"), f"binary: {NOT_TEXT}"),
        (("serve", "--listen", "kafka+sasl://localhost:0", "--users", "binary"), f"binary: {NOT_TEXT}"),
        (("serve", "--listen", "kafka+sasl://localhost:0", "--users", "wrong"), "wrong: line 3 is not NAME:PASSWORD"),
        (("message", "encode", "FetchRequest", "4", "binary"), f"binary: {NOT_TEXT}"),
        (("message", "encode", "FetchRequest", "4", "wrong"), "wrong: invalid JSON: Expecting value: line 2 column 1"),
        (("message", "decode", "--rpc", "FetchRequest", "--version", "4", "binary"), "binary: replica_id: an int32"),
    ],
)
def test_other_files(directory, kafkacodec, command, message):
    code, _, err = kafkacodec(*command)
    assert code in (1, 2)
    assert f": {message}" in err
