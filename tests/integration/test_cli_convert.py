"""``kafkacodec convert``: files of every format, and what is never overwritten."""

import csv
import json
import os

import pyarrow as pa
import pytest
from pyarrow import parquet

from kafkacodec.cli.__main__ import BAD_INPUT, DONE, WRONG_USAGE
from kafkacodec.records.plan import RECORD_COLUMNS
from tests.corpus import ROOT, assert_same_records, sample
from tests.integration.cli_samples import BROKER, SEGMENT, expected, from_json

EXTRA_ARROW_COLUMNS = ["topic", "partition"]


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_convert_to_columns(kafkacodec, tmp_path, suffix):
    output = tmp_path / f"out.{suffix}"
    code, _, err = kafkacodec("convert", BROKER, "--topic", "zstd", "-o", output)
    assert code == DONE
    assert "records from" in err
    table = parquet.read_table(output) if suffix == "parquet" else pa.ipc.open_file(output).read_all()
    assert table.column_names[:2] == EXTRA_ARROW_COLUMNS
    assert table.column("topic").unique().to_pylist() == ["zstd"]
    assert_same_records(table.drop_columns(EXTRA_ARROW_COLUMNS), expected("zstd"))


def test_convert_to_json_lines(kafkacodec, tmp_path):
    output = tmp_path / "out.jsonl"
    assert kafkacodec("convert", BROKER, "--topic", "mixed", "-o", output)[0] == DONE
    assert [from_json(line) for line in output.read_text().splitlines()] == [row[:6] for row in expected("mixed")]


def test_convert_to_csv(kafkacodec, tmp_path):
    output = tmp_path / "out.csv"
    assert kafkacodec("convert", BROKER, "--topic", "mixed", "-o", output)[0] == DONE
    with open(output, newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    rows = expected("mixed")
    assert [int(line["offset"]) for line in lines] == [row.offset for row in rows]
    for line, row in zip(lines, rows, strict=True):
        try:
            text = (row.value or b"").decode()
        except UnicodeDecodeError:
            text = "0x" + row.value.hex()
        assert line["value"] == text
        assert [h["key"] for h in json.loads(line["headers"])] == [key for key, _ in row.headers]


FORMULAS = ["=1+1", "+A1", "-A1", "@SUM(A1)", "\t=1", "\rx", "\nx", " =1", "\uff1d1", "-1-1", "+", "=", "--1", "-1\n"]
NO_FORMULAS = ["text", "", "-1", "+1.5", "-.5e-3", "1-1", "a=b", "'=1", " text", "0", "\u2212"]


def test_csv_for_spreadsheets_has_no_formulas(kafkacodec, tmp_path):
    lines = [json.dumps({"key": text, "value": text}) for text in FORMULAS + NO_FORMULAS]
    (tmp_path / "records.jsonl").write_text("\n".join([*lines, '{"key":null,"value":{"base64":"Pf8="}}']))
    assert kafkacodec("encode", tmp_path / "records.jsonl", "-o", tmp_path / "logs", "--topic", "=t")[0] != DONE
    assert kafkacodec("encode", tmp_path / "records.jsonl", "-o", tmp_path / "logs", "--topic", "-t")[0] == DONE
    for options, mark in ([], ""), (["--csv-safe"], "'"):
        output = tmp_path / f"out{mark}.csv"
        assert kafkacodec("convert", tmp_path / "logs", "-o", output, *options)[0] == DONE
        with open(output, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        assert [row["value"] for row in rows] == [mark + t for t in FORMULAS] + NO_FORMULAS + ["0x3dff"]
        assert [row["key"] for row in rows] == [mark + t for t in FORMULAS] + NO_FORMULAS + [""]
        assert {row["topic"] for row in rows} == {mark + "-t"}
        assert {row["timestamp_type"] for row in rows} == {"0"}
        assert [int(row["offset"]) for row in rows] == list(range(len(rows)))


@pytest.mark.parametrize(
    ("suffix", "options"),
    [
        ("parquet", ["--csv-safe"]),
        ("csv", ["--compression", "zstd"]),
        ("arrow", ["--compression", "gzip"]),
        ("parquet", ["--compression", "best"]),
    ],
)
def test_convert_refuses_what_a_format_does_not_have(kafkacodec, tmp_path, suffix, options):
    code, _, err = kafkacodec("convert", ROOT / SEGMENT, "-o", tmp_path / f"out.{suffix}", *options)
    assert (code, f"does not apply to {suffix}" in err) == (WRONG_USAGE, True)


def test_convert_adds_the_columns_of_batches(kafkacodec, tmp_path):
    output = tmp_path / "out.parquet"
    assert kafkacodec("convert", BROKER / "idempotent-0", "-o", output, "--batch-columns")[0] == DONE
    table = parquet.read_table(output)
    assert {"producer_id", "sequence", "codec", "batch_offset"} <= set(table.column_names)
    assert table.column("producer_id").null_count == 0


def test_convert_leaves_no_file_after_an_error(kafkacodec, tmp_path, damaged):
    output = tmp_path / "out.parquet"
    code, _, err = kafkacodec("convert", damaged, "-o", output)
    assert code == BAD_INPUT
    assert err.startswith(f"kafkacodec: error: {damaged}: ")
    assert sorted(os.listdir(tmp_path)) == [damaged.name]
    assert kafkacodec("convert", damaged, "-o", output, "--on-error", "stop")[0] == DONE
    assert parquet.read_table(output).num_rows > 0


def test_convert_refuses_to_overwrite(kafkacodec, tmp_path):
    output = tmp_path / "out.csv"
    output.write_text("mine")
    code, _, err = kafkacodec("convert", ROOT / SEGMENT, "-o", output)
    assert (code, output.read_text()) == (WRONG_USAGE, "mine")
    assert "--force" in err
    assert kafkacodec("convert", ROOT / SEGMENT, "-o", output, "--force")[0] == DONE
    assert output.read_text() != "mine"


def test_convert_never_writes_to_an_input(kafkacodec, tmp_path):
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(sample(SEGMENT).data())
    code, _, err = kafkacodec("convert", path, "-o", path, "--format", "csv", "--force")
    assert (code, path.read_bytes()) == (WRONG_USAGE, sample(SEGMENT).data())
    assert "is part of the input" in err


def test_convert_does_not_replace_a_pipe(kafkacodec, tmp_path):
    output = tmp_path / "pipe"
    os.mkfifo(output)
    for force in ([], ["--force"]):
        code, _, err = kafkacodec("convert", ROOT / SEGMENT, "-o", output, "--format", "csv", *force)
        assert (code, "is a device or a pipe" in err) == (WRONG_USAGE, True)
        assert output.is_fifo()


def test_convert_needs_a_format(kafkacodec, tmp_path):
    code, _, err = kafkacodec("convert", ROOT / SEGMENT, "-o", tmp_path / "out")
    assert code == WRONG_USAGE
    assert "--format" in err


def test_convert_of_no_segments_gives_a_file_without_rows(kafkacodec, tmp_path):
    (tmp_path / "data" / "t-0").mkdir(parents=True)
    assert kafkacodec("convert", tmp_path / "data", "-o", tmp_path / "none.parquet")[0] == DONE
    table = parquet.read_table(tmp_path / "none.parquet")
    assert table.num_rows == 0
    assert table.column_names == [*EXTRA_ARROW_COLUMNS, *RECORD_COLUMNS]
