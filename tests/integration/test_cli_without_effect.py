"""Options that would have no effect beside others are errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import kafkacodec as kc
from kafkacodec.cli.__main__ import BAD_INPUT, WRONG_USAGE

FILES = {
    "lines.txt": "a\nb\n",
    "rows.csv": "key,value\nk,v\n",
    "avro.avsc": json.dumps({"type": "record", "name": "R", "fields": [{"name": "order", "type": "long"}]}),
}


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("dump logs --on-value-error null", "--on-value-error needs --values or --keys"),
        ("convert logs -o o.csv --on-value-error null", "--on-value-error needs --values or --keys"),
        ("consume t -b localhost:1 -e --on-value-error null", "--on-value-error needs --values or --keys"),
        ("encode lines.txt --format lines -o out --topic t --key-encoding hex", "does not apply to lines"),
        ("encode rows.csv -o - --segment-bytes 100", "--segment-bytes does not apply to -o -"),
        ("encode rows.csv -o - --keep-partitions", "--keep-partitions does not apply to -o -"),
        ("encode rows.csv -o - --topic t --append", "--topic, --append do not apply to -o -"),
        ("encode rows.csv -o out --topic t --kafka07 --key-column key", "--key-column does not apply to --kafka07"),
        ("encode rows.csv -o out --topic t --kafka07 --timestamp-column value", "does not apply to --kafka07"),
        ("encode rows.csv -o out --topic t --partition 1 --keep-partitions", "exclude each other"),
        ("metadata logs --table brokers --topic orders", "--topic does not choose brokers"),
    ],
)
def test_options_without_effect(arguments, reason, tmp_path, monkeypatch, kafkacodec):
    monkeypatch.chdir(tmp_path)
    kc.sample("logs")
    for name, text in FILES.items():
        Path(name).write_text(text)
    code, out, err = kafkacodec(*arguments.split())
    assert (code, out, reason in err) == (WRONG_USAGE, "", True), err
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("--value-column value --key-encoding hex --key-column -", "--key-encoding hex: its column is left out"),
        ("--value-encoding base64", "--value-encoding base64: no column 'value'"),
    ],
)
def test_an_encoding_of_a_column_that_is_not_there(options, reason, tmp_path, kafkacodec):
    file = tmp_path / "rows.csv"
    file.write_text(FILES["rows.csv"] if "--value-column" in options else "key\nk\n")
    code, _, err = kafkacodec("encode", file, "-o", tmp_path / "out", "--topic", "t", *options.split())
    assert (code, f"{file}: {reason}" in err) == (BAD_INPUT, True), err


def test_an_avro_schema_is_no_json_schema(tmp_path, kafkacodec):
    logs, schema = kc.sample(tmp_path / "logs").path, tmp_path / "avro.avsc"
    schema.write_text(FILES["avro.avsc"])
    for options in (("--reader-schema", schema), ("--schemas", schema)):
        code, out, err = kafkacodec("dump", logs, "--topic", "orders", "-n", 1, "--values", "json", *options)
        assert (code, out) == (BAD_INPUT, "")
        assert "JSON Schema has no type 'record'; this is an Avro schema" in err
    schema.write_text('{"type": "object", "properties": {"order": {"type": "integer"}}}')
    code, out, _ = kafkacodec(
        "dump", logs, "--topic", "orders", "-n", 1, "--values", "json", "--reader-schema", schema, "--json"
    )
    assert (code, json.loads(out)["value"]) == (0, {"order": 1001})


@pytest.fixture(params=["parquet", "arrow", "csv", "jsonl", "json"])
def several(request, tmp_path, kafkacodec):
    """A file with the records of three partitions, and what those have."""
    logs = kc.sample(tmp_path / "logs")
    file = tmp_path / f"orders.{request.param}"
    assert kafkacodec("convert", logs.path, "--topic", "orders", "-o", file)[0] == 0
    return file, logs


def test_rows_of_several_partitions(several, tmp_path, kafkacodec):
    file, logs = several
    code, _, err = kafkacodec("encode", file, "-o", tmp_path / "out", "--topic", "t")
    assert (code, "the rows are of several partitions, such as 0 and 1: --keep-partitions" in err) == (
        WRONG_USAGE,
        True,
    )
    assert not (tmp_path / "out").exists()
    keep = ("--keep-partitions", "--keep-offsets")
    code, _, err = kafkacodec("encode", file, "-o", tmp_path / "out", "--topic", "orders", *keep)
    assert (code, err) == (0, f"{tmp_path / 'out'}: 600 records in 3 partitions of orders\n")
    code, out, _ = kafkacodec("diff", logs.path, tmp_path / "out", "--topic", "orders", "--json")
    assert (code, [json.loads(line)["equal"] for line in out.splitlines()]) == (0, [True] * 3)
    for option in ("--partition", "--partitions"):
        code, _, err = kafkacodec("encode", file, "-o", tmp_path / option, "--topic", "t", option, 1)
        assert (code, "600 records in 1 partition of t" in err) == (0, True)


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl"])
def test_rows_of_several_topics(suffix, tmp_path, kafkacodec):
    logs, file = kc.sample(tmp_path / "logs").path, tmp_path / f"all.{suffix}"
    assert kafkacodec("convert", logs, "--partition", 0, "-o", file)[0] == 0
    code, _, err = kafkacodec("encode", file, "-o", tmp_path / "out", "--topic", "t")
    assert (code, "warning: the rows are of 3 topics, such as customers and orders; all go to one" in err) == (
        0,
        True,
    )
    code, _, err = kafkacodec("convert", logs, "--topic", "payments", "-o", file, "--force")
    code, _, err = kafkacodec("encode", file, "-o", tmp_path / "out", "--topic", "u")
    assert (code, "warning" in err) == (0, False)


@pytest.mark.parametrize("cell", ["-1", "2147483648", "x", ""])
def test_cells_that_are_no_partition(cell, tmp_path, kafkacodec):
    file = tmp_path / "rows.csv"
    file.write_text(f"value,partition\na,{cell}\n")
    code, _, err = kafkacodec("encode", file, "-o", tmp_path / "out", "--topic", "t", "--keep-partitions")
    assert (code, "partition" in err) == (BAD_INPUT, True), err
    assert not list(tmp_path.glob("out/*"))


def test_a_column_partition_of_something_else(tmp_path, kafkacodec):
    file = tmp_path / "rows.csv"
    file.write_text("id,body,partition\n1,a,EU\n2,b,US\n")
    columns = ("--key-column", "id", "--value-column", "body")
    for topic, options in (("chosen", columns), ("plain", ("--value-column", "body"))):
        code, _, err = kafkacodec("encode", file, "-o", tmp_path / "out", "--topic", topic, *options)
        assert (code, "2 records in 1 partition" in err) == (0, True), err
