"""The command on Kafka 0.7 logs and on single messages of the dialects."""

from __future__ import annotations

import base64
import io
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from kafkacodec.cli.__main__ import BAD_INPUT, DONE, WRONG_USAGE, run
from kafkacodec.records.plan import BATCH_COLUMNS, RECORD_COLUMNS
from tests.corpus import ROOT as KAFKA, segments
from tests.dialect_vectors import ROOT, rows

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def kafkacodec(capsys: Any, monkeypatch: Any) -> Command:
    """Run the command with standard input; returns the exit code, standard output and standard error."""

    def call(*arguments: object, stdin: bytes = b"") -> tuple[int, str, str]:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = run([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return call


def test_dump_of_a_kafka07_directory(kafkacodec: Command) -> None:
    code, out, err = kafkacodec("dump", ROOT / "kafka07/segments/broker-0/short-0", "--log-format", "kafka07", "--json")
    assert (code, err) == (DONE, "")
    entries = [e for e in rows("kafka07/segments/index") if e.get("topic") == "short"]
    plain = [m for e in sorted(entries, key=lambda e: e["start_offset"]) for m in e["entries"]]
    got = [json.loads(text) for text in out.splitlines()]
    assert [(r["topic"], r["partition"], r["offset"]) for r in got] == [("short", 0, m["offset"]) for m in plain]
    assert [r["value"].encode() for r in got] == [base64.b64decode(m["payload"]) for m in plain]
    assert {(r["timestamp"], r["timestamp_type"], r["key"]) for r in got} == {(None, -1, None)}


def test_dump_takes_offsets_and_reports_damage(kafkacodec: Command) -> None:
    damaged = ROOT / "kafka07/segments/damaged/bad-crc-in-the-middle/00000000000000000000.kafka"
    code, _, err = kafkacodec("dump", damaged, "--log-format", "kafka07")
    assert code == BAD_INPUT
    assert "CRC-32" in err
    code, out, err = kafkacodec(
        "dump", damaged, "--log-format", "kafka07", "--json", "--on-error", "skip", "--start-offset", "203"
    )
    assert code == DONE
    assert "bytes skipped" in err
    offsets = [json.loads(text)["offset"] for text in out.splitlines()]
    assert min(offsets) == 203
    assert 438 not in offsets
    assert max(offsets) > 438


def test_dump_refuses_other_formats_and_times(kafkacodec: Command) -> None:
    old, new = ROOT / "kafka07/segments/broker-0/short-0", KAFKA / "logs/kraft-4.1.0/txn-0"
    for path, name in ((old, "kafka"), (new, "kafka07")):
        code, out, err = kafkacodec("dump", path, "--log-format", name)
        assert (code, out) == (BAD_INPUT, "")
        assert f"not a segment of format {name}" in err
    code, _, err = kafkacodec("dump", old, "--start-time", "0")
    assert code == WRONG_USAGE
    assert "no timestamps" in err


def test_messages_of_kafka07(kafkacodec: Command) -> None:
    vector = next(v for v in rows("kafka07/responses") if v["name"] == "offsets/latest-two")
    code, out, _ = kafkacodec("message", "decode", "--protocol", "kafka07", stdin=vector["request_hex"].encode())
    assert code == DONE
    assert json.loads(out) == {
        "type": "OffsetsRequest", "topic": "rolling", "partition": 0, "time": -1, "max_offsets": 2,
    }  # fmt: skip
    answer = bytes.fromhex(vector["hex"])
    arguments = ("message", "decode", "--protocol", "kafka07", "--answers")
    code, out, _ = kafkacodec(*arguments, vector["request_hex"], stdin=answer)
    assert json.loads(out) == {"type": "OffsetsResponse", "error_code": 0, "offsets": [3016, 2380]}
    assert kafkacodec(*arguments, "xyz", stdin=answer)[0] == WRONG_USAGE
    assert kafkacodec(*arguments, vector["request_hex"], stdin=answer[:-1])[0] == BAD_INPUT


def test_messages_of_the_rewrite(kafkacodec: Command) -> None:
    vector = rows("rewrite/rpcs")[0]
    arguments = ("message", "decode", "--protocol", "rewrite")
    code, out, _ = kafkacodec(*arguments, "--rpc", vector["rpc"], stdin=vector["hex"].encode())
    assert code == DONE
    assert json.loads(out)["client_id"] == vector["fields"]["ClientId"]
    assert kafkacodec(*arguments, stdin=b"00")[0] == WRONG_USAGE
    assert kafkacodec(*arguments, "--rpc", vector["rpc"], stdin=b"00")[0] == BAD_INPUT


def test_messages_of_the_line_protocol(kafkacodec: Command) -> None:
    arguments = ("message", "decode", "--protocol", "line")
    code, out, _ = kafkacodec(*arguments, stdin=b"V1|1|OFFSET|g t 0\nV1|2|CONSUME|t 0 5")
    assert code == DONE
    assert [json.loads(text)["args"] for text in out.splitlines()] == [
        {"group": "g", "topic": "t", "partition": 0},
        {"topic": "t", "partition": 0, "offset": 5},
    ]
    code, out, _ = kafkacodec(*arguments, "--answers", "OFFSET", stdin=b"V1|1|OK|offset=7\n")
    assert json.loads(out)["fields"] == {"offset": 7}
    code, _, err = kafkacodec(*arguments, stdin=b"V1|1|NOPE|\n")
    assert code == BAD_INPUT
    assert "command" in err


KAFKA07_BATCH_COLUMNS = ["magic", "codec"]


@pytest.mark.parametrize("suffix", ["arrow", "parquet", "csv", "jsonl"])
@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside later segments"])
def test_convert_with_the_columns_of_batches(tmp_path: Path, suffix: str, beside: bool) -> None:
    """In a new process: columns that do not match their schema crash pyarrow's CSV writer."""
    broker = tmp_path / "broker"
    shutil.copytree(ROOT / "kafka07/segments/broker-0/short-0", broker / "short-0")
    later = 0
    if beside:
        shutil.copytree(KAFKA / "logs/kraft-4.1.0/txn-0", broker / "txn-0")
        later = sum(
            not row.is_control
            for s in segments(writer="kraft-4.1.0")
            if s.path.parent.name == "txn-0"
            for row in s.expected.records
        )
    output = tmp_path / f"out.{suffix}"
    command = [sys.executable, "-m", "kafkacodec.cli", "convert", broker, "-o", output, "--batch-columns"]
    finished = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert finished.returncode == DONE, finished.stderr
    entries = [e for e in rows("kafka07/segments/index") if e.get("topic") == "short"]
    plain = [m for e in sorted(entries, key=lambda e: e["start_offset"]) for m in e["entries"]]
    names, written = _read(output)
    ours = [row for row in written if row["topic"] == "short"]
    assert [(row["offset"], row["magic"], row["codec"]) for row in ours] == [
        (m["offset"], m["magic"], m["codec"]) for m in plain
    ]
    assert len(written) == len(ours) + later
    expected = (*RECORD_COLUMNS, *(BATCH_COLUMNS if beside else KAFKA07_BATCH_COLUMNS))
    assert names == ["topic", "partition", *expected]
    assert all(row.get("producer_id") is None for row in ours)


def test_convert_of_an_empty_segment_has_the_columns_of_its_format(kafkacodec: Command, tmp_path: Path) -> None:
    empty = ROOT / "kafka07/segments/damaged/empty/00000000000000000000.kafka"
    output = tmp_path / "out.arrow"
    assert kafkacodec("convert", empty, "-o", output, "--batch-columns")[0] == DONE
    assert _read(output)[0] == ["topic", "partition", *RECORD_COLUMNS, *KAFKA07_BATCH_COLUMNS]


def _read(path: Path) -> tuple[list[str], list[dict[str, Any]]]:
    """The columns of a file and its rows."""
    if path.suffix == ".jsonl":
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        return list(lines[0]), lines
    readers = {".csv": csv.read_csv, ".parquet": parquet.read_table, ".arrow": lambda p: pa.ipc.open_file(p).read_all()}
    table = readers[path.suffix](path)
    return table.column_names, table.to_pylist()
