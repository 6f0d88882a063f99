"""The command on Kafka 0.7 logs and on single messages of the dialects."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable
from typing import Any

import pytest

from kafkacodec.cli.__main__ import BAD_INPUT, DONE, WRONG_USAGE, run
from tests.dialect_vectors import ROOT, rows

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def kafkacodec(capsys: Any, monkeypatch: Any) -> Command:
    """Run the command, with standard input; gives exit code, standard output and standard error."""

    def call(*arguments: object, stdin: bytes = b"") -> tuple[int, str, str]:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = run([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return call


def test_dump_of_a_kafka07_directory(kafkacodec: Command) -> None:
    code, out, err = kafkacodec("dump", ROOT / "kafka07/segments/broker-0/short-0", "--format", "kafka07", "--json")
    assert (code, err) == (DONE, "")
    entries = [e for e in rows("kafka07/segments/index") if e.get("topic") == "short"]
    plain = [m for e in sorted(entries, key=lambda e: e["start_offset"]) for m in e["entries"]]
    got = [json.loads(text) for text in out.splitlines()]
    assert [(r["topic"], r["partition"], r["offset"]) for r in got] == [("short", 0, m["offset"]) for m in plain]
    assert [r["value"].encode() for r in got] == [base64.b64decode(m["payload"]) for m in plain]
    assert {(r["timestamp"], r["timestamp_type"], r["key"]) for r in got} == {(None, -1, None)}


def test_dump_takes_offsets_and_tells_of_damage(kafkacodec: Command) -> None:
    damaged = ROOT / "kafka07/segments/damaged/bad-crc-in-the-middle/00000000000000000000.kafka"
    code, _, err = kafkacodec("dump", damaged, "--format", "kafka07")
    assert code == BAD_INPUT
    assert "CRC-32" in err
    code, out, err = kafkacodec(
        "dump", damaged, "--format", "kafka07", "--json", "--on-error", "skip", "--start-offset", "203"
    )
    assert code == DONE
    assert "bytes passed over" in err
    offsets = [json.loads(text)["offset"] for text in out.splitlines()]
    assert min(offsets) == 203
    assert 438 not in offsets
    assert max(offsets) > 438
    assert kafkacodec("dump", ROOT / "kafka07", "--format", "kafka")[0] == BAD_INPUT


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
