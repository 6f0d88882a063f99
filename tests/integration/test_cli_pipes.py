"""Standard input and output of the command, its text formats, and compressed input."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
import zstandard
from pyarrow import parquet

import kafkacodec as kc
from kafkacodec.cli.__main__ import BAD_INPUT, DONE, INTERRUPTED, WRONG_USAGE, run
from kafkacodec.log import LogDirectory, LogWriter
from tests.corpus import ROOT, assert_same_records, sample
from tests.integration.cli_samples import BROKER, SEGMENT, expected, from_json
from tests.terminal import on_a_terminal

COMMAND = [sys.executable, "-m", "kafkacodec.cli"]
SECONDS = 120
RECORDS = [row for row in sample(SEGMENT).expected.records if not row.is_control]


def piped(*arguments: object, data: bytes = b"", code: int = DONE) -> tuple[bytes, str]:
    """Standard output and standard error of the command with this standard input."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with mock.patch.multiple(sys, stdin=io.TextIOWrapper(io.BytesIO(data)), stdout=out, stderr=err):
        got = run(list(map(str, arguments)))
    printed, errors = (stream.buffer.getvalue() for stream in (out, err))
    assert got == code, errors.decode()
    return printed, errors.decode()


def values(directory: Path, topic: str = "t", partition: int = 0) -> list[bytes | None]:
    return [record.value for record in records(directory, topic, partition)]


def records(directory: Path, topic: str = "t", partition: int = 0) -> list[kc.Record]:
    chunks = LogDirectory(directory).read(topic, partition)
    return [record for chunk in chunks for record in chunk.records()]


# --- segments from a pipe ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [SEGMENT, "logs/v0-0.8.2.2/lz4-0/00000000000000000000.log"])
def test_a_segment_from_a_pipe(path: str) -> None:
    data, name = sample(path).data(), ROOT / path
    for options in (["scan", "--batches"], ["scan"], ["dump"]):
        from_file, _ = piped(*options, name, "--json")
        from_pipe, _ = piped(*options, "-", "--json", data=data)
        assert without_place(from_pipe) == without_place(from_file) != []
    out, _ = piped("verify", "-", "--json", data=data)
    assert json.loads(out)["findings"] == []
    out, _ = piped("dump", "-", data=data)
    assert out.count(b"\n") == 1 + len([row for row in sample(path).expected.records if not row.is_control])


def without_place(lines: bytes) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in lines.splitlines()]
    for line in found:
        assert line.pop("path", "standard input") in ("standard input", str(ROOT / SEGMENT)) or line["topic"]
        del line["topic"], line["partition"]
    return found


def test_in_a_shell() -> None:
    kafkacodec = " ".join(COMMAND)
    line = f"cat {ROOT / SEGMENT} | {kafkacodec} convert - -o - --format jsonl | head -n 3"
    finished = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert [json.loads(row)["offset"] for row in finished.stdout.splitlines()] == [row.offset for row in RECORDS[:3]]


@pytest.mark.parametrize("kind", ["csv", "ndjson"])
def test_into_duckdb(kind: str) -> None:
    reader = {"csv": "read_csv", "ndjson": "read_json"}[kind]
    query = f"SELECT sum(t.offset) FROM {reader}('/dev/stdin') t"
    program = f"import duckdb; print(duckdb.connect().execute({query!r}).fetchall()[0][0])"
    command = f"{' '.join(COMMAND)} convert {ROOT / SEGMENT} -o - --format {kind}"
    line = f"{command} | {sys.executable} -c {shlex.quote(program)}"
    finished = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert finished.stdout.strip() == str(sum(row.offset for row in RECORDS)), finished.stderr


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
def test_into_jq() -> None:
    line = f"{' '.join(COMMAND)} dump {ROOT / SEGMENT} --json | jq .offset"
    finished = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert list(map(int, finished.stdout.split())) == [row.offset for row in RECORDS]


def test_errors_name_standard_input(tmp_path: Path) -> None:
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    for command in ("scan", "dump", "verify"):
        finished = subprocess.run(
            [*COMMAND, command, "-"],
            input=b"just text, nothing else",
            capture_output=True,
            env=environment,
            check=False,
        )
        assert finished.returncode == BAD_INPUT
        assert finished.stderr.decode().splitlines()[-1].startswith("kafkacodec: error: ")
        assert b"standard input" in finished.stderr + finished.stdout
        assert str(tmp_path).encode() not in finished.stderr + finished.stdout
    assert os.listdir(tmp_path) == []


def test_standard_input_is_read_once() -> None:
    _, err = piped("dump", "-", "-", code=WRONG_USAGE)
    assert "- is given twice" in err
    finished = subprocess.run(["bash", "-c", f"{' '.join(COMMAND)} dump - <&-"], capture_output=True, check=False)
    assert finished.returncode == BAD_INPUT
    assert finished.stderr == b"kafkacodec: error: standard input is closed\n"


def test_recover_from_a_pipe(tmp_path: Path) -> None:
    data = sample(SEGMENT).data()
    piped("recover", "-", tmp_path / "saved", data=data)
    (segment,) = (tmp_path / "saved").glob("*/*.log")
    assert segment.read_bytes() == data


# --- tables to a pipe -------------------------------------------------------------------------------------------------


def test_every_format_to_a_pipe() -> None:
    written = {kind: piped("convert", BROKER, "--topic", "mixed", "-o", "-", "--format", kind)[0] for kind in READ}
    rows = expected("mixed")
    for kind, read in READ.items():
        table = read(written[kind])
        if isinstance(table, pa.Table):
            assert_same_records(table.drop_columns(["topic", "partition"]), rows)
        else:
            assert [int(row["offset"]) for row in table] == [row.offset for row in rows]
    assert [from_json(json.dumps(row)) for row in json.loads(written["json"])] == [row[:6] for row in rows]


READ: dict[str, Callable[[bytes], Any]] = {
    "parquet": lambda data: parquet.read_table(pa.BufferReader(data)),
    "arrow": lambda data: pa.ipc.open_file(data).read_all(),
    "feather": lambda data: pa.ipc.open_file(data).read_all(),
    "arrow-stream": lambda data: pa.ipc.open_stream(data).read_all(),
    "csv": lambda data: list(csv.DictReader(io.StringIO(data.decode(), newline=""))),
    "json": json.loads,
    "jsonl": lambda data: [json.loads(line) for line in data.splitlines()],
    "ndjson": lambda data: [json.loads(line) for line in data.splitlines()],
}


@pytest.mark.parametrize(("suffix", "kind"), [("arrows", "arrow-stream"), ("feather", "feather"), ("json", "json")])
def test_the_suffix_names_the_format(suffix: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"out.{suffix}"
    piped("convert", ROOT / SEGMENT, "-o", path)
    found = READ[kind](path.read_bytes())
    assert (found.num_rows if isinstance(found, pa.Table) else len(found)) == len(RECORDS)


def test_json_without_rows_is_an_array(tmp_path: Path) -> None:
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / f"{0:020d}.log").touch()
    assert json.loads(piped("convert", tmp_path, "-o", "-", "--format", "json")[0]) == []


def test_groups_and_offsets_to_a_pipe() -> None:
    out, _ = piped("offsets", BROKER, "-o", "-", "--format", "jsonl")
    assert {json.loads(line)["topic"] for line in out.splitlines()}
    out, _ = piped("groups", BROKER, "-o", "-", "--format", "parquet")
    assert parquet.read_table(pa.BufferReader(out)).num_rows > 0


def test_no_bytes_on_a_terminal_and_no_guessed_format() -> None:
    code, shown = on_a_terminal("convert", BROKER, "-o", "-", "--format", "parquet")
    assert (code, "redirect standard output" in shown) == (WRONG_USAGE, True)
    _, err = piped("convert", BROKER, "-o", "-", code=WRONG_USAGE)
    assert "add --format with one of parquet, " in err


@pytest.mark.parametrize("kind", ["csv", "json", "jsonl"])
def test_text_on_a_terminal_has_no_control_characters(kind: str, tmp_path: Path) -> None:
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / f"{0:020d}.log").write_bytes(kc.encode([(None, "\x1b[2J\u202e"), (None, b"\x9b31m")]))
    code, shown = on_a_terminal("convert", tmp_path, "-o", "-", "--format", kind)
    assert code == DONE
    assert "[2J" in shown
    assert all(line.isprintable() for line in shown.replace("\r\n", "\n").split("\n"))
    out, _ = piped("convert", tmp_path, "-o", "-", "--format", kind)
    assert "\x1b[2J\u202e".encode() in out or json.dumps("\x1b")[1:-1].encode() in out  # a pipe gets the data


@pytest.mark.parametrize("kind", READ)
def test_a_reader_that_stops_early(kind: str) -> None:
    line = f"{' '.join(COMMAND)} convert {BROKER} -o - --format {kind} | head -c 10 >&2; exit ${{PIPESTATUS[0]}}"
    finished = subprocess.run(["bash", "-c", line], capture_output=True, check=False)
    assert finished.returncode in (141, DONE)  # the smallest ones fit the pipe
    assert b"Traceback" not in finished.stderr


@pytest.mark.parametrize(
    ("target", "reason"),
    [("> /dev/full", "standard output: No space left on device"), (">&-", "standard output is closed")],
)
@pytest.mark.parametrize("kind", ["parquet", "arrow", "jsonl"])
def test_output_that_cannot_be_written(kind: str, target: str, reason: str) -> None:
    line = f"{' '.join(COMMAND)} convert {ROOT / SEGMENT} -o - --format {kind} {target}"
    finished = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert (finished.returncode, finished.stderr) == (BAD_INPUT, f"kafkacodec: error: {reason}\n")


# --- input of encode --------------------------------------------------------------------------------------------------

TEXTS = ["a", "", "ü", "x" * 3_000_000, "\r", "last"]


@pytest.mark.parametrize("end", ["\n", ""])
@pytest.mark.parametrize("compress", [bytes, gzip.compress, zstandard.compress], ids=["plain", "gzip", "zstd"])
def test_lines_are_values(end: str, compress: Callable[[bytes], bytes], tmp_path: Path) -> None:
    data = compress(("\n".join(TEXTS) + end).encode())
    piped("encode", "-", "--format", "lines", "-o", tmp_path, "--topic", "t", data=data)
    assert values(tmp_path) == [text.encode() for text in TEXTS]


@pytest.mark.parametrize("kind", READ)
def test_what_convert_writes_to_a_pipe_encode_reads_from_one(kind: str, tmp_path: Path) -> None:
    data, _ = piped("convert", ROOT / SEGMENT, "-o", "-", "--format", kind)
    options = ["--value-encoding", "text"]
    piped("encode", "-", "--format", kind, "-o", tmp_path, "--topic", "t", "--keep-offsets", *options, data=data)
    (log,) = (tmp_path / "t-0").glob("*.log")
    if kind != "csv":  # which has text only
        assert_same_records(kc.decode(log.read_bytes()), RECORDS)


@pytest.mark.parametrize("suffix", ["jsonl.gz", "json.gz", "csv.zst", "ndjson.zst", "json", "JSONL.GZ"])
def test_compressed_files(suffix: str, tmp_path: Path) -> None:
    rows = [{"value": f"number {n}"} for n in range(20_000)]
    if "csv" in suffix:
        text = "value\n" + "".join(f"{row['value']}\n" for row in rows)
    elif suffix.lower().startswith("json") and "l" not in suffix.lower():
        text = json.dumps(rows, indent=1)
    else:
        text = "".join(json.dumps(row) + "\n" for row in rows)
    data = text.encode()
    compressed = {".gz": gzip.compress, ".zst": zstandard.compress}.get(Path(suffix.lower()).suffix, bytes)
    path = tmp_path / f"rows.{suffix}"
    path.write_bytes(compressed(data[:99_990]) + compressed(data[99_990:]))  # members and frames may follow one another
    piped("encode", path, "-o", tmp_path / "logs", "--topic", "t")
    assert values(tmp_path / "logs") == [row["value"].encode() for row in rows]


def test_json_objects_one_after_another(tmp_path: Path) -> None:
    piped("encode", "-", "--format", "json", "-o", tmp_path, "--topic", "t", data=b'{"value":"a"} {"value":"b"}\n')
    assert values(tmp_path) == [b"a", b"b"]


TIMES = {
    "2024-05-01T12:00:00.123Z": datetime(2024, 5, 1, 12, 0, 0, 123_000, UTC),
    "2024-05-01T12:00:00": datetime(2024, 5, 1, 12, tzinfo=UTC),
    "2024-05-01T14:00:00+02:00": datetime(2024, 5, 1, 12, tzinfo=UTC),
    "2024-05-01": datetime(2024, 5, 1, tzinfo=UTC),
    "20240501T120000Z": datetime(2024, 5, 1, 12, tzinfo=UTC),
}


def test_times_in_iso_8601(tmp_path: Path) -> None:
    data = "".join(json.dumps({"value": text, "timestamp": text}) + "\n" for text in TIMES)
    piped("encode", "-", "--format", "jsonl", "-o", tmp_path, "--topic", "t", data=data.encode())
    assert [r.timestamp for r in records(tmp_path)] == [round(time.timestamp() * 1000) for time in TIMES.values()]


DAMAGED_GZIP = bytearray(gzip.compress(os.urandom(5000).hex().encode()))
DAMAGED_GZIP[2000] ^= 1
LINE = b'{"value":"a"}\n'


@pytest.mark.parametrize(
    ("kind", "data", "reason"),
    [
        ("jsonl", gzip.compress(LINE * 999, mtime=0)[:-9], "the gzip data end too early"),
        ("jsonl", zstandard.compress(LINE * 999)[:-3], "the zstd data end too early"),
        ("lines", bytes(DAMAGED_GZIP), "damaged gzip data"),
        ("jsonl", gzip.compress(LINE, mtime=0) + b"garbage", "damaged gzip data"),
        ("jsonl", zstandard.compress(LINE) + b"garbage", "damaged zstd data"),
        ("lines", lambda: zstandard.compress(bytes(140 << 20)), "a line is longer than 128 MiB"),
        ("jsonl", lambda: zstandard.compress(b'{"value":"' + b"a" * (140 << 20)), "line 1: longer than 128 MiB"),
        ("json", lambda: zstandard.compress(b'[{"value":"' + b"a" * (260 << 20)), "row 1: longer than 128 MiB"),
        ("json", b'[{"value":"a"}, {"value"', "row 2: Expecting"),
        ("json", b'[{"value":"a"}', "the array is not closed after row 1"),
        ("json", b'[{"value":"a"} {"value":"b"}]', "row 2: expected ',' or ']'"),
        ("json", b'[{"value":"a"}]{"value":"b"}', "unexpected '{' after row 1"),
        ("json", b'[{"value":"a"},]', "row 2: Expecting value"),
        ("json", b'{"value": nothing}' + LINE * 100_000, "row 1: Expecting value"),
        ("json", b"[3]", "row 1: not a JSON object"),
        ("json", b"[" * 100_000, "row 1: JSON is nested too deeply"),
        ("json", b'[{"value":"\xff"}]', "not UTF-8: a byte is 0xff"),
        ("jsonl", b'{"value":"a","timestamp":"soon"}', "line 1: timestamp 'soon' is not a date and time such as"),
        ("jsonl", b'{"value":"a","timestamp":1.5}', "line 1: timestamp is not an integer"),
        ("arrow", b"nothing of Arrow", "standard input: "),
        ("arrow-stream", b"nothing of Arrow", "standard input: "),
        ("parquet", b"nothing of Parquet", "standard input: "),
    ],
)
def test_bad_input_leaves_no_directory(
    kind: str, data: bytes | Callable[[], bytes], reason: str, tmp_path: Path
) -> None:
    given = data if isinstance(data, bytes) else data()  # what is large, of the one that runs
    _, err = piped("encode", "-", "--format", kind, "-o", tmp_path / "logs", "--topic", "t", data=given, code=BAD_INPUT)
    assert err.startswith("kafkacodec: error: standard input: ")
    assert reason in err
    assert err.count("\n") == 1
    assert not (tmp_path / "logs").exists()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["-"], "standard input: the format is unknown; add --format"),
        (["rows.parquet.gz"], "parquet has compression of its own"),
        (["rows.gz"], "the suffix names no known format; add --format"),
    ],
)
def test_unknown_formats(arguments: list[str], reason: str, tmp_path: Path) -> None:
    for name in arguments:
        if name != "-":
            (tmp_path / name).touch()
    paths = [name if name == "-" else tmp_path / name for name in arguments]
    _, err = piped("encode", *paths, "-o", tmp_path / "logs", "--topic", "t", code=WRONG_USAGE)
    assert reason in err


def test_lines_have_no_columns(tmp_path: Path) -> None:
    options = ["--format", "lines", "--key-column", "id"]
    _, err = piped("encode", "-", *options, "-o", tmp_path / "logs", "--topic", "t", data=b"a\n", code=BAD_INPUT)
    assert "lines have no columns" in err


def test_a_segment_to_a_pipe() -> None:
    rows = b"".join(b'{"key":null,"value":"%d"}\n' % n for n in range(20_000))
    data, err = piped("encode", "-", "--format", "jsonl", "-o", "-", "--codec", "lz4", data=rows)
    assert err == "standard output: 20,000 records\n"
    assert [(r.offset, r.value) for r in kc.iter_records(data)] == [(n, b"%d" % n) for n in range(20_000)]
    out, _ = piped("dump", "-", "--json", data=data)
    assert out.count(b"\n") == 20_000
    for options in (["--topic", "t"], ["--partitions", "2"], ["--append"]):
        _, err = piped("encode", "-", "--format", "lines", "-o", "-", *options, code=WRONG_USAGE)
        assert "not apply to -o -, which is one segment" in err
    _, err = piped("encode", "-", "--format", "lines", "-o", "logs", code=WRONG_USAGE)
    assert "Missing option '--topic'" in err


# --- partitions, and what an interrupt leaves -------------------------------------------------------------------------


def test_rows_without_a_key_go_to_partitions_in_turn(tmp_path: Path) -> None:
    """Also where every batch of the input has one row."""
    path = tmp_path / "rows.arrow"
    schema = pa.schema([("key", pa.binary()), ("value", pa.binary())])
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:
        for n in range(10):
            key = b"keyed" if n == 4 else None
            writer.write_batch(pa.record_batch([[key], [b"%d" % n]], schema=schema))
    piped("encode", path, "-o", tmp_path / "logs", "--topic", "t", "--partitions", "3")
    keyless = [[v for r in records(tmp_path / "logs", "t", n) if r.key is None for v in [r.value]] for n in range(3)]
    assert keyless == [[b"0", b"3", b"7"], [b"1", b"5", b"8"], [b"2", b"6", b"9"]]


def interrupted(output: Path, *options: object, number: int = signal.SIGINT, code: int = INTERRUPTED) -> str:
    """Standard error of an `encode` that got a signal after it had written several segments."""
    process = subprocess.Popen(
        [*COMMAND, "encode", "-", "--format", "lines", "-o", str(output), "--topic", "t", *map(str, options)],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert process.stdin is not None
    process.stdin.write(os.urandom(3 << 20).hex().encode() + b"\n" + b"".join(b"%d\n" % n for n in range(300_000)))
    process.stdin.flush()
    deadline = time.monotonic() + SECONDS
    while len(list(output.glob("t-*/*.log"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(number)
    _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == code
    return err.decode().strip()


@pytest.mark.parametrize(
    ("number", "code", "words"),
    [
        (signal.SIGINT, INTERRUPTED, "interrupted"),
        (signal.SIGTERM, 143, "ended by SIGTERM"),
        (signal.SIGHUP, 129, "ended by SIGHUP"),
    ],
)
def test_an_interrupted_encode_leaves_nothing(tmp_path: Path, number: int, code: int, words: str) -> None:
    err = interrupted(tmp_path / "logs", "--segment-bytes", 20_000, number=number, code=code)
    assert err == f"kafkacodec: error: {words}"
    assert os.listdir(tmp_path) == []


def test_an_interrupted_encode_removes_only_its_partitions(tmp_path: Path) -> None:
    piped("encode", "-", "--format", "lines", "-o", tmp_path, "--topic", "other", data=b"a\n")
    before = sorted(os.listdir(tmp_path))
    err = interrupted(tmp_path, "--segment-bytes", 20_000, "--partitions", 2)
    assert err == "kafkacodec: error: interrupted"
    assert sorted(os.listdir(tmp_path)) == before
    assert values(tmp_path, "other") == [b"a"]


def test_an_interrupted_encode_says_what_it_appended(tmp_path: Path) -> None:
    piped("encode", "-", "--format", "lines", "-o", tmp_path, "--topic", "t", data=b"a\n")
    err = interrupted(tmp_path, "--segment-bytes", 20_000, "--append")
    assert "keeps the records appended at offset 1 and later" in err
    assert values(tmp_path)[0] == b"a"
    assert LogDirectory(tmp_path).verify().ok


def test_an_interrupted_recover_leaves_nothing_in_the_way(tmp_path: Path) -> None:
    source, saved = tmp_path / "logs", tmp_path / "saved"
    (source / "t-0").mkdir(parents=True)
    data = kc.encode([(None, os.urandom(1000)) for _ in range(2_000)], codec="none")
    for n in range(40):
        moved = kc.encode(kc.decode(data, columns=("value",)), codec="none", base_offset=2_000 * n)
        (source / "t-0" / f"{2_000 * n:020d}.log").write_bytes(moved)
    process = subprocess.Popen(
        [*COMMAND, "recover", str(source), str(saved)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    deadline = time.monotonic() + SECONDS
    while len(list(tmp_path.glob("saved*/t-0/*.log"))) < 3 and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, err.strip()) == (INTERRUPTED, b"kafkacodec: error: interrupted")
    assert os.listdir(tmp_path) == ["logs"]
    assert piped("recover", source, saved)[1] == ""
    assert len(values(saved)) == 80_000


@pytest.mark.parametrize("form", [["--json"], ["-f", "%s\\n"]])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_an_interrupt_does_not_cut_the_line_that_a_full_pipe_holds_up(
    tmp_path: Path, form: list[str], number: int, unbuffered: str
) -> None:
    value = b"v" * 300_000
    with LogWriter(tmp_path, "t", 0) as writer:
        writer.write(pa.table({"value": [value] * 4}))
    process = subprocess.Popen(
        [*COMMAND, "dump", str(tmp_path), "--topic", "t", *form],
        env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
        bufsize=0,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.read(1)  # the first line is being written, and more than a pipe holds
    process.send_signal(number)
    rest, err = process.communicate(timeout=SECONDS)
    said = "interrupted" if number == signal.SIGINT else "ended by SIGTERM"
    assert err.decode().strip() == f"kafkacodec: error: {said}"
    assert rest.endswith(b"\n")
    lines = rest.count(b"\n")
    assert 1 <= lines < 4
    assert rest.count(b"v") >= lines * len(value) - 1
