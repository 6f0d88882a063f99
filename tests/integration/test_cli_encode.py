"""kafkacodec encode: files to segments and back."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import csv, feather, parquet

import kafkacodec as kc
from kafkacodec.cli.__main__ import BAD_INPUT, DONE, WRONG_USAGE
from kafkacodec.log import LogDirectory
from tests.corpus import ROOT, assert_same_records, sample

SEGMENT = "logs/kraft-4.1.0/none-0/00000000000000000000.log"

Command = Callable[..., tuple[int, str, str]]


def read(directory: Path, topic: str, partition: int = 0) -> list[kc.Record]:
    chunks = LogDirectory(directory).read(topic, partition)
    data = b"".join(kc.encode(chunk) for chunk in chunks if len(chunk))
    return list(kc.iter_records(data))


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_bytes_as_hex_and_base64(suffix: str, tmp_path: Path, kafkacodec: Command) -> None:
    file = tmp_path / f"records.{suffix}"
    rows = [("00ff", "/+8="), (None, ""), ("", "AA==")]
    if suffix == "csv":
        file.write_text('key,value\n00ff,/+8=\n,""\n"",AA==\n')
    else:
        file.write_text("".join(json.dumps({"key": key, "value": value}) + "\n" for key, value in rows))
    options = ("--key-encoding", "hex", "--value-encoding", "base64")
    assert kafkacodec("encode", file, "-o", tmp_path / "logs", "--topic", "t", *options)[0] == DONE
    found = [(r.key, r.value) for r in read(tmp_path / "logs", "t")]
    assert found == [(b"\x00\xff", b"\xff\xef"), (None, b""), (b"", b"\x00")]
    code, _, err = kafkacodec("encode", file, "-o", tmp_path / "no", "--topic", "t", "--value-encoding", "hex")
    assert code == BAD_INPUT
    assert "value '/+8=' is not hex" in err
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "jsonl"])
def test_what_convert_wrote_comes_back(suffix: str, tmp_path: Path, kafkacodec: Command) -> None:
    file = tmp_path / f"records.{suffix}"
    assert kafkacodec("convert", ROOT / SEGMENT, "-o", file)[0] == DONE
    code, _, err = kafkacodec("encode", file, "-o", tmp_path / "logs", "--topic", "again", "--keep-offsets")
    assert code == DONE
    assert "in 1 partition of again" in err
    (log,) = (tmp_path / "logs" / "again-0").glob("*.log")
    assert_same_records(kc.decode(log.read_bytes()), [r for r in sample(SEGMENT).expected.records if not r.is_control])


def test_csv_and_other_names(tmp_path: Path, kafkacodec: Command) -> None:
    file = tmp_path / "records.csv"
    file.write_text('user,text,at\n7,"a ""quoted"" text",2024-05-06 07:08:09\n8,,\n9,"",2024-05-06 07:08:10\n')
    columns = ("--key-column", "user", "--value-column", "text", "--timestamp-column", "at")
    assert kafkacodec("encode", file, "-o", tmp_path, "--topic", "t", *columns) == (
        DONE, "", f"{tmp_path}: 3 records in 1 partition of t\n",
    )  # fmt: skip
    found = read(tmp_path, "t")
    assert [(r.key, r.value) for r in found] == [(b"7", b'a "quoted" text'), (b"8", None), (b"9", b"")]
    assert [r.timestamp for r in found] == [1714979289000, None, 1714979290000]


def test_json_values_stay_json(tmp_path: Path, kafkacodec: Command) -> None:
    file = tmp_path / "records.jsonl"
    rows = [
        {"key": "ü", "value": {"a": [1, "ü"]}, "headers": [{"key": "h", "value": {"base64": "/w=="}}]},
        {"key": None, "value": 5, "timestamp": 17},
        {"value": {"base64": "AP8="}},
    ]
    file.write_text("".join(json.dumps(row) + "\n\n" for row in rows))
    assert kafkacodec("encode", file, "-o", tmp_path, "--topic", "t", "--codec", "gzip")[0] == DONE
    assert [(r.key, r.value, r.timestamp, list(r.headers)) for r in read(tmp_path, "t")] == [
        ("ü".encode(), '{"a":[1,"ü"]}'.encode(), None, [("h", b"\xff")]),
        (None, b"5", 17, []),
        (None, b"\0\xff", None, []),
    ]


def test_partitions_by_key_and_continued(tmp_path: Path, kafkacodec: Command) -> None:
    file = tmp_path / "records.parquet"
    keys = [b"%d" % n for n in range(1000)]
    parquet.write_table(pa.table({"key": keys, "value": keys}), file)
    command = ("encode", file, "-o", tmp_path, "--topic", "t", "--partitions", 3)
    assert kafkacodec(*command)[0] == DONE
    code, _, err = kafkacodec(*command)
    assert (code, "--append" in err) == (BAD_INPUT, True)
    assert kafkacodec(*command, "--append")[0] == DONE
    for number in range(3):
        found = read(tmp_path, "t", number)
        mine = [k for k, p in zip(keys, kc.partition(keys, 3), strict=True) if p == number]
        assert [r.key for r in found] == mine * 2
        assert [r.offset for r in found] == list(range(len(found)))


@pytest.mark.parametrize(
    ("name", "content", "options", "code", "words"),
    [
        ("a.txt", "", [], WRONG_USAGE, "add --format"),
        ("a.csv", "a,b\n1,2\n", [], BAD_INPUT, "no column 'key' or 'value'"),
        ("a.jsonl", '{"value": "a"}\n{"value"\n', [], BAD_INPUT, "line 2"),
        (
            "a.jsonl",
            '{"value": "a", "timestamp": "now"}\n',
            [],
            BAD_INPUT,
            "line 1: timestamp 'now' is not a date and time",
        ),
        ("a.jsonl", '{"value": {"base64": "?"}}\n', [], BAD_INPUT, "line 1: base64"),
        ("a.jsonl", '{"value": "a"}\n', ["--partition", 1, "--partitions", 2], WRONG_USAGE, "exclude each other"),
        ("a.jsonl", '{"value": "a"}\n', ["--codec", "gzip", "--level", 99], WRONG_USAGE, "level of gzip"),
        ("a.parquet", "no parquet", [], BAD_INPUT, "a.parquet"),
    ],
)
def test_refused(
    name: str, content: str, options: list[Any], code: int, words: str, tmp_path: Path, kafkacodec: Command
) -> None:
    (tmp_path / name).write_text(content)
    got, out, err = kafkacodec("encode", tmp_path / name, "-o", tmp_path / "logs", "--topic", "t", *options)
    assert (got, out) == (code, "")
    assert words in err
    assert not list(tmp_path.glob("logs/*/*.log"))


@pytest.mark.parametrize(
    ("suffix", "content", "reason"),
    [
        ("csv", 'value,headers\na,"[{"\n', "Expecting property name"),
        ("csv", 'value,headers\na,"[{""k"":1}]"\n', "a header must be an object"),
        ("csv", "value,headers\na,3\n", "headers are not a list"),
        ("csv", "value,timestamp\na,yesterday\n", "timestamp: the column is neither"),
        ("jsonl", '{"value":"a","timestamp":99999999999999999999999}\n', "line 1: timestamp does not fit 64 bits"),
        ("jsonl", '{"value":"a","timestamp":true}\n', "line 1: timestamp is not an integer"),
        ("jsonl", '{"value":"a"}\n{"value":"a","headers":[{"key":3,"value":"x"}]}\n', "line 2: a header must be"),
        ("jsonl", '{"value":"a","headers":[{"key":"\\ud800"}]}\n', "line 1: 'utf-8' codec can't encode"),
        ("jsonl", '{"value":{"base64":3}}\n', "line 1: base64"),
        ("jsonl", "[" * 100_000, "line 1: JSON is nested too deeply"),
        ("csv", 'value,headers\na,"' + "[" * 100_000 + '"\n', "headers: JSON is nested too deeply"),
        ("jsonl", '{"other":3}\n', "line 1: no field 'key' or 'value'"),
        (
            "jsonl",
            '{"key":"a","value":"b"}\n{"key":"b","valeu":"2"}\n',
            "line 2: unknown field 'valeu'; did you mean 'value'?; with --value-column or --key-column others",
        ),
        (
            "jsonl",
            '\n{"value":"a"}\n{"value":"a", x}\n',
            "records.jsonl: line 3 is not JSON: column 15: Expecting property",
        ),
        ("jsonl", '{"value":"a"}\n{"value":"\udcff"}\n', "records.jsonl: line 2 is not UTF-8: byte 11 is 0xff"),
    ],
)
def test_bad_files_leave_no_files(suffix: str, content: str, reason: str, tmp_path: Path, kafkacodec: Command) -> None:
    file = tmp_path / f"records.{suffix}"
    file.write_text(content, errors="surrogateescape")
    code, out, err = kafkacodec("encode", file, "-o", tmp_path / "logs", "--topic", "t")
    assert (code, out) == (BAD_INPUT, "")
    assert reason in err
    assert not (tmp_path / "logs").exists()


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "csv", "jsonl", "json"])
def test_a_misspelt_column_makes_no_tombstones(suffix: str, tmp_path: Path, kafkacodec: Command) -> None:
    file, kind = tmp_path / f"records.{suffix}", "field" if suffix.startswith("json") else "column"
    table = pa.table({"key": ["a"], "Value": ["x"]})
    if kind == "field":
        file.write_text(json.dumps(table.to_pylist()[0]))
    else:
        {"parquet": parquet.write_table, "arrow": feather.write_feather, "csv": csv.write_csv}[suffix](table, file)
    code, _, err = kafkacodec("encode", file, "-o", tmp_path / "logs", "--topic", "t")
    assert (code, f"unknown {kind} 'Value'; did you mean 'value'?; with --value-column" in err) == (BAD_INPUT, True)
    code, _, err = kafkacodec("encode", file, "-o", tmp_path / "logs", "--topic", "keys", "--key-column", "key")
    assert (code, f"no {kind} 'value', but 'Value': --value-column names that of the values; " in err) == (
        BAD_INPUT,
        True,
    )
    assert not (tmp_path / "logs").exists()
    only_keys = ("--key-column", "key", "--value-column", "-")
    assert kafkacodec("encode", file, "-o", tmp_path, "--topic", "keys", *only_keys)[0] == DONE
    assert [(r.key, r.value) for r in read(tmp_path, "keys")] == [(b"a", None)]
    assert kafkacodec("encode", file, "-o", tmp_path, "--topic", "t", "--value-column", "Value")[0] == DONE
    assert [(r.key, r.value) for r in read(tmp_path, "t")] == [(b"a", b"x")]


def test_columns_may_be_left_out(tmp_path: Path, kafkacodec: Command) -> None:
    file = tmp_path / "records.csv"
    file.write_text("key,value,timestamp\na,x,1\n")
    for topic, options, expected in [
        ("none", ("--key-column", "-", "--timestamp-column", "-"), (None, b"x", None)),
        ("keys", ("--value-column", "-"), (b"a", None, 1)),
    ]:
        assert kafkacodec("encode", file, "-o", tmp_path, "--topic", topic, *options)[0] == DONE
        (record,) = read(tmp_path, topic)
        assert (record.key, record.value, record.timestamp) == expected
    code, _, err = kafkacodec(
        "encode", file, "-o", tmp_path, "--topic", "u", "--key-column", "-", "--value-column", "-"
    )
    assert (code, "no column of keys or values is read" in err) == (BAD_INPUT, True)


def test_a_row_of_json_may_lack_its_value(tmp_path: Path, kafkacodec: Command) -> None:
    file = tmp_path / "records.jsonl"
    file.write_text('{"id": "a", "at": 1, "value": "x"}\n{"id": "a", "at": 2}\n')
    assert kafkacodec("encode", file, "-o", tmp_path, "--topic", "t", "--key-column", "id")[0] == DONE
    assert [(r.key, r.value) for r in read(tmp_path, "t")] == [(b"a", b"x"), (b"a", None)]


@pytest.mark.parametrize("depth", [*range(900, 1010, 5), 5000])
def test_depth_ends_in_a_segment_or_an_error(depth: int, tmp_path: Path, kafkacodec: Command) -> None:
    """Reading the JSON and writing it as a value have separate limits."""
    file = tmp_path / "records.jsonl"
    file.write_text('{"value":' + "[" * depth + "]" * depth + "}\n")
    code, out, err = kafkacodec("encode", file, "-o", tmp_path / "logs", "--topic", "t")
    assert (code, out) in ((DONE, ""), (BAD_INPUT, ""))
    assert code == DONE or "line 1: JSON is nested too deeply" in err


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "csv", "jsonl"])
def test_columns_named_by_options_must_exist(suffix: str, tmp_path: Path, kafkacodec: Command) -> None:
    file = tmp_path / f"records.{suffix}"
    assert kafkacodec("convert", ROOT / SEGMENT, "-o", file)[0] == DONE
    code, _, err = kafkacodec("encode", file, "-o", tmp_path / "logs", "--topic", "t", "--key-column", "id")
    assert (code, "missing column 'id'" in err) == (BAD_INPUT, True)
    assert not list(tmp_path.glob("logs/*/*.log"))
    assert kafkacodec("encode", file, "-o", tmp_path / "logs", "--topic", "t", "--level", "99")[0] == WRONG_USAGE


def test_keep_offsets_needs_the_column(tmp_path: Path, kafkacodec: Command) -> None:
    file = tmp_path / "records.csv"
    file.write_text("key,value\na,b\n")
    code, _, err = kafkacodec("encode", file, "-o", tmp_path / "logs", "--topic", "t", "--keep-offsets")
    assert (code, "missing column 'offset'" in err) == (BAD_INPUT, True)


def test_the_package_is_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "kafkacodec", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith(kc.__version__)
