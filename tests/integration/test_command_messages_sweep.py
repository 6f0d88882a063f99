"""``kafkacodec message`` and ``kafkacodec encode`` on valid, damaged and unusual input."""

from __future__ import annotations

import base64
import json
import os
import random
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from kafkacodec import messages
from tests import dialect_vectors, protocol_vectors
from tests.command_runner import Runner, faults
from tests.corpus import ROOT
from tests.hostile_trees import STRANGE

FULL = os.environ.get("KAFKACODEC_SWEEP") == "full"


def some(rows: Sequence[Any], one_of: int) -> Sequence[Any]:
    """All items in a full run, else a sample."""
    return rows if FULL else rows[::one_of]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    with Runner(tmp_path_factory.mktemp("runner")) as runner:
        yield runner


class Sweep:
    """Runs commands and collects failures."""

    def __init__(self, run: Runner) -> None:
        self.run = run
        self.count, self.wrong = 0, list[str]()

    def __call__(self, *arguments: object, about: str = "", json_output: bool = False) -> bytes:
        line = f"{' '.join(map(str, arguments))} {about}"[-300:]
        outcome = self.run(arguments)
        found = faults(arguments, outcome)
        if not found and json_output and outcome.code == 0:
            try:
                json.loads(outcome.out, parse_constant=float.fromhex)
            except ValueError as error:
                found = [f"no JSON: {error}"]
        self.count += 1
        self.wrong += [f"{line}: {fault}" for fault in found]
        return outcome.out if outcome.code == 0 else b""

    def end(self) -> None:
        assert self.count
        if self.wrong:
            pytest.fail(f"{len(self.wrong)} of {self.count}:\n" + "\n".join(self.wrong[:40]))


# --- message ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["requests", "responses", "bad", "data", "control"])
def test_bodies_to_json_and_back(run: Runner, tmp_path: Path, name: str) -> None:
    sweep = Sweep(run)
    rng = random.Random(name)
    for i, vector in enumerate(some(protocol_vectors.vectors(name), 61)):
        kind = vector["kind"].capitalize() if "kind" in vector and "api" in vector else ""
        called = vector.get("api", vector.get("name", vector.get("type", ""))) + kind
        raw = bytes.fromhex(vector["hex"]) if "hex" in vector else base64.b64decode(vector.get("base64", ""))
        body = tmp_path / f"{name}-{i}"
        for how, data in (("", raw), (" flipped", flipped(raw, rng)), (" cut", raw[: rng.randrange(len(raw) + 1)])):
            body.write_bytes(data.hex().encode())
            made = sweep(
                *("message", "decode", "--rpc", called, "--version", vector["version"], body),
                about=how,
                json_output=True,
            )
            if made and not how and name in ("requests", "responses"):
                body.write_bytes(made)
                assert (
                    bytes.fromhex(sweep("message", "encode", called, vector["version"], body).decode() or raw.hex())
                    == raw
                )
    sweep.end()


def test_frames(run: Runner, tmp_path: Path) -> None:
    sweep = Sweep(run)
    rng = random.Random(1)
    for i, vector in enumerate(some(protocol_vectors.vectors("frames"), 13)):
        raw = bytes.fromhex(vector["hex"])
        path = tmp_path / f"frame-{i}"
        for data in (raw, flipped(raw, rng), raw[: rng.randrange(len(raw))]):
            path.write_bytes(data)
            sweep("message", "decode", "--frame", path, json_output=True)
            called = f"{vector['api']}Response"
            sweep(
                "message", "decode", "--frame", "--rpc", called, "--version", vector["version"], path, json_output=True
            )
    sweep.end()


JSON = [
    "",
    "null",
    "[]",
    "3",
    '"text"',
    "{",
    "NaN",
    '{"no_such_field": 1}',
    '{"client_software_name": 5}',
    '{"client_software_name": "\\ud800"}',
    '{"topics": [[[]]]}',
    '{"topics": {"name": 1}}',
    '{"topics": [null]}',
    '{"topics": [{"topic_id": "no uuid"}]}',
    '{"topics": [{"topic_id": 7}]}',
    '{"unknown_tagged_fields": {"a": "b"}}',
    '{"unknown_tagged_fields": {"3": 4}}',
    '{"unknown_tagged_fields": {"-3": "AAAA"}}',
    '{"unknown_tagged_fields": {"99999999999999999999": "AAAA"}}',
    '{"unknown_tagged_fields": [1]}',
    '{"timeout_ms": 1e400, "acks": 1e10}',
    '{"timeout_ms": 99999999999999999999999}',
    '{"timeout_ms": true, "acks": "1"}',
    '{"topic_data": [{"partition_data": [{"records": "no base64"}]}]}',
    '{"topic_data": [{"partition_data": [{"records": 5}]}]}',
    "[" * 100_000,
    '{"topics":' * 100_000,
    '{"x":"' + "y" * 1_000_000 + '"}',
    "1" * 100_000,
]


@pytest.mark.parametrize("name", ["ApiVersionsRequest", "MetadataRequest", "ProduceRequest", "FetchResponse"])
def test_json_that_is_not_a_message(run: Runner, tmp_path: Path, name: str) -> None:
    sweep = Sweep(run)
    for i, text in enumerate(JSON):
        path = tmp_path / f"{i}.json"
        path.write_text(text)
        for version in (0, 4, 9, 99, -1):
            sweep("message", "encode", name, version, path, about=text[:40])
    path.write_bytes(b'\xff\xfe{"a":1}')
    sweep("message", "encode", name, 0, path)
    sweep.end()


def test_descriptions(run: Runner) -> None:
    sweep = Sweep(run)
    for name in [*some(messages.message_names(), 7), "Fetch", *STRANGE, ""]:
        for options in ([], ["--version", 0], ["--version", 99], ["--version", -1]):
            sweep("message", "describe", *options, "--", name)
    sweep.end()


def test_dialects(run: Runner, tmp_path: Path) -> None:
    sweep = Sweep(run)
    rng = random.Random(2)
    path = tmp_path / "message"

    def decode(data: bytes, *options: object, about: str) -> None:
        for content in (data, flipped(data, rng), data[: rng.randrange(len(data) + 1)]):
            path.write_bytes(content)
            sweep("message", "decode", *options, path, about=about)

    requests = dialect_vectors.rows("kafka07/requests") + dialect_vectors.rows("kafka07/bad")
    for row in some(requests, 4):
        if row.get("hex"):
            decode(bytes.fromhex(row["hex"]), "--protocol", "kafka07", about=row["name"])
    for row in some(dialect_vectors.rows("kafka07/responses"), 7):
        for asked in (row.get("request_hex", "zz"), "", "00"):
            data = bytes.fromhex(row.get("hex") or row.get("response_hex") or "")
            decode(data, "--protocol", "kafka07", "--answers", asked, about=row["name"])
    for row in some(dialect_vectors.rows("rewrite/rpcs") + dialect_vectors.rows("rewrite/bad"), 7):
        if row.get("hex"):
            decode(bytes.fromhex(row["hex"]), "--protocol", "rewrite", "--rpc", row["rpc"], about=row["name"])
    for row in some(dialect_vectors.rows("line_v1/bad"), 7):
        decode(row["line"].encode("utf-8", "replace"), "--protocol", "line", about=row["name"])
        decode(row["line"].encode("utf-8", "replace"), "--protocol", "line", "--answers", "CONSUME", about=row["name"])
    for text in STRANGE:
        decode(f"V1|1|PRODUCE|topic={text}\n".encode("utf-8", "replace"), "--protocol", "line", about=repr(text))
        decode(
            f"V1|1|ERR|BAD_REQUEST|{text}\n".encode("utf-8", "replace"),
            *("--protocol", "line", "--answers", text),
            about="",
        )
    sweep.end()


def flipped(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(1 + len(data) // 200 if data else 0):
        changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(changed)


# --- encode -----------------------------------------------------------------------------------------------------------

LINES = {
    "deep": '{"value":' + "[" * 900 + "]" * 900 + "}",
    "not a number": '{"value":NaN,"key":Infinity}',
    "numbers": '{"value":1e400,"timestamp":-9223372036854775808,"offset":9223372036854775807}',
    "surrogate": '{"value":"\\ud800"}',
    "types": '{"value":{"a":[1,null,true]},"key":false,"headers":null,"timestamp":null}',
    "offsets that fall": '{"value":"a","offset":5}\n{"value":"b","offset":5}',
    "negative offset": '{"value":"a","offset":-5}',
    "byte order mark": '\ufeff{"value":"a"}',
    "nul": '{"value":"\\u0000"}\n\0',
    "strange": "\n".join(json.dumps({"key": t, "value": t, "headers": [{"key": t, "value": t}]}) for t in STRANGE[:7]),
    "no header": '{"value":"a","headers":[{"key":1}]}',
    "no object": "[1,2]",
    "duplicate": '{"value":"a","value":"b"}',
}
TABLES = {
    "lists": pa.table({"value": [[1], [2]]}),
    "structs": pa.table({"key": [{"a": 1}], "value": ["x"]}),
    "dictionary": pa.table({"value": pa.array(["a", "b", "a"]).dictionary_encode()}),
    "large": pa.table({"value": pa.array([b"a"], pa.large_binary()), "key": pa.array(["k"], pa.large_string())}),
    "nulls": pa.table({"value": pa.nulls(3), "key": pa.nulls(3), "timestamp": pa.nulls(3)}),
    "numbers": pa.table({"value": [1, 2], "key": [1.5, float("nan")]}),
    "nanoseconds": pa.table({"value": ["x"], "timestamp": pa.array([1], pa.timestamp("ns"))}),
    "dates": pa.table({"value": ["x"], "timestamp": pa.array([1], pa.date32())}),
    "times of a day": pa.table({"value": ["x"], "timestamp": pa.array([1], pa.time32("s"))}),
    "views": pa.table({"value": pa.array(["abc"], pa.string_view())}),
    "no rows": pa.table({"value": pa.array([], pa.binary())}),
    "no columns": pa.table({}),
    "twice": pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["value", "value"]),
    "headers of numbers": pa.table({"value": ["x"], "headers": [[1]]}),
    "headers without a key": pa.table({"value": ["x"], "headers": [[{"value": b"x"}]]}),
    "null header key": pa.table({"value": ["x"], "headers": [[{"key": None, "value": b"x"}]]}),
    "strange": pa.table({"value": [t.encode("utf-8", "replace") for t in STRANGE]}),
}
OPTIONS = [
    [],
    ["--keep-offsets"],
    ["--partitions", 3],
    ["--codec", "none", "--batch-bytes", 1],
    ["--codec", "gzip", "--segment-bytes", 1],
    ["--codec", "lz4", "--batch-bytes", -1],
    ["--codec", "zstd", "--level", 10**12],
    ["--codec", "snappy", "--segment-bytes", 10**30],
    ["--key-encoding", "hex", "--value-encoding", "base64"],
    ["--timestamp-column", "value"],
    ["--key-column", "headers"],
    ["--value-column", "offset"],
    ["--partition", 2**31],
    ["--partition", 10**30],
    ["--topic", "..", "--append"],
    ["--topic", "\x1b[31m"],
]


def test_encode(run: Runner, tmp_path: Path) -> None:
    sweep = Sweep(run)
    for at, path in enumerate(list(sources(tmp_path, run))):
        for number, options in enumerate(OPTIONS):
            if not FULL and (at + number) % 6:
                continue
            output = tmp_path / "logs"
            sweep("encode", path, "-o", output, "--topic", "t", *options, about=f"{path.name} {number}")
            if output.exists() and number < 3:
                sweep("verify", output, "--json")
                sweep("encode", path, "-o", output, "--topic", "t", *options, "--append")
            assert not list(tmp_path.glob("logs/**/*.partial")), path
            shutil.rmtree(output, ignore_errors=True)
    sweep.end()


def sources(place: Path, run: Runner) -> Iterator[Path]:
    """Files to encode: output of convert, intact and damaged, and unusual files."""
    rng = random.Random(3)
    for suffix in ("parquet", "arrow", "csv", "jsonl"):
        good = place / f"good.{suffix}"
        assert run(["convert", ROOT / "logs/kraft-4.1.0/zstd-0", "-o", good]).code == 0
        yield good
        data = good.read_bytes()
        for number in range(20 if FULL else 3):
            for how, changed in (("flipped", flipped(data, rng)), ("cut", data[: rng.randrange(len(data))])):
                bad = place / f"{how} {number}.{suffix}"
                bad.write_bytes(changed)
                yield bad
        for how, content in (("empty", b""), ("zeros", bytes(5000)), ("noise", rng.randbytes(5000))):
            bad = place / f"{how}.{suffix}"
            bad.write_bytes(content)
            yield bad
    for name, text in LINES.items():
        path = place / f"{name}.jsonl"
        path.write_text(text, "utf-8")
        yield path
    for name, table in TABLES.items():
        parquet.write_table(table, place / f"{name}.parquet") if name != "views" else None
        with pa.ipc.new_file(place / f"{name}.arrow", table.schema) as file:
            file.write_table(table)
        yield from (path for path in (place / f"{name}.parquet", place / f"{name}.arrow") if path.exists())
    for name, text in STRANGE_CSV.items():
        path = place / f"{name}.csv"
        path.write_bytes(text)
        yield path


STRANGE_CSV = {
    "not utf-8": b"key,value\n\xff,\xfe\n",
    "rows differ": b"key,value\n1\n1,2,3\n",
    "same names": b"value,value\n1,2\n",
    "no rows": b"key,value\n",
    "quote": b'key,value\n"a,b\n',
    "headers": b'value,headers\nx,"{""a"": 1}"\n',
    "times": b"value,timestamp\nx,2024-01-01T00:00:00Z\ny,yesterday\n",
    "offsets": b"value,offset\nx,1.5\n",
    "late": b"value,timestamp\n" + b"x,1\n" * 100_000 + b"y,never\n",
    "nul": b"value\n\0\n",
}
