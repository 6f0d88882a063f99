"""The command: its output, its files, its errors and exit codes."""

import csv
import hashlib
import json
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from kafkacodec.cli.__main__ import BAD_INPUT, DONE, PIPE_CLOSED, WRONG_USAGE
from tests.corpus import ROOT, Row, assert_same_records, log_directories, read_committed, sample, segments

BROKER = ROOT / "logs" / "kraft-4.1.0"
SEGMENT = "logs/kraft-4.1.0/none-0/00000000000000000000.log"
EXTRA_ARROW_COLUMNS = ["topic", "partition"]


def command(*arguments, **options):
    """Run the command in a new process."""
    return subprocess.run([sys.executable, "-m", "kafkacodec.cli", *map(str, arguments)], text=True, **options)


def expected(topic, partition=0) -> list[Row]:
    """All records of a partition except control records, in order."""
    samples = [s for s in segments(writer="kraft-4.1.0") if s.path.parent.name == f"{topic}-{partition}"]
    return [row for s in sorted(samples, key=str) for row in s.expected.records if not row.is_control]


# --- scan -------------------------------------------------------------------------------------------------------------


def test_scan_lists_the_batches_of_a_file(kafkacodec):
    code, out, err = kafkacodec("scan", ROOT / SEGMENT, "--json")
    assert (code, err) == (DONE, "")
    lines = [json.loads(line) for line in out.splitlines()]
    for mine, theirs in zip(lines, sample(SEGMENT).expected.batches, strict=True):
        assert (mine["topic"], mine["partition"]) == ("none", 0)
        assert mine["position"] == theirs["position"]
        assert mine["size_in_bytes"] == theirs["sizeInBytes"]
        assert (mine["base_offset"], mine["last_offset"]) == (theirs["baseOffset"], theirs["lastOffset"])
        assert mine["max_timestamp"] == theirs["maxTimestamp"]
        assert mine["codec"] == theirs["codec"]
        assert (mine["crc"], mine["crc_ok"], mine["count"]) == (theirs["crc"], True, theirs["count"])


def test_scan_sums_up_the_segments_of_a_directory(kafkacodec):
    code, out, _ = kafkacodec("scan", BROKER, "--topic", "txn", "--json")
    assert code == DONE
    lines = [json.loads(line) for line in out.splitlines()]
    samples = [s for s in segments(writer="kraft-4.1.0") if s.path.parent.name == "txn-0"]
    assert [line["path"] for line in lines] == sorted(str(s.path) for s in samples)
    assert sum(line["num_records"] for line in lines) == sum(len(s.expected.records) for s in samples)
    assert sum(line["num_batches"] for line in lines) == sum(len(s.expected.batches) for s in samples)
    assert all(line["crc_failures"] == line["trailing_bytes"] == 0 and line["error"] is None for line in lines)


def test_scan_tables_name_what_matters(kafkacodec):
    code, out, _ = kafkacodec("scan", BROKER, "--topic", "gzip")
    assert code == DONE
    assert "v2 gzip" in out
    assert out.splitlines()[0].split() == [
        "partition",
        "size",
        "batches",
        "records",
        "offsets",
        "latest",
        "(UTC)",
        "format",
        "notes",
    ]
    code, out, _ = kafkacodec("scan", BROKER / "txn-0", "--batches")
    assert "transaction, control" in out


def test_scan_shows_trailing_bytes(kafkacodec):
    path = "logs/truncated/kraft-4.1.0/gzip-0/00000000000000000157.log"
    _, out, _ = kafkacodec("scan", ROOT / path, "--segments", "--json")
    assert json.loads(out)["trailing_bytes"] == sample(path).expected.trailing_bytes > 0


def test_scan_shows_a_wrong_checksum_without_failing(kafkacodec, damaged):
    code, out, _ = kafkacodec("scan", damaged)
    assert code == DONE
    assert "WRONG" in out
    code, out, _ = kafkacodec("scan", damaged, "--no-crc")
    assert "WRONG" not in out


def test_scan_prints_what_comes_before_a_fault(kafkacodec, tmp_path):
    data = sample(SEGMENT).data()
    path = tmp_path / "a.log"
    path.write_bytes(data + b"\xff" * 100)
    code, out, err = kafkacodec("scan", path)
    assert code == BAD_INPUT
    assert len(out.splitlines()) == 1 + len(sample(SEGMENT).expected.batches)
    assert err.startswith(f"kafkacodec: error: {path}: ")
    assert f"(byte {len(data) + 8})" in err
    code, out, err = kafkacodec("scan", path, "--segments", "--json")
    assert (code, json.loads(out)["num_batches"]) == (BAD_INPUT, len(sample(SEGMENT).expected.batches))


def test_scan_chooses_by_offset(kafkacodec):
    _, out, _ = kafkacodec("scan", ROOT / SEGMENT, "--start-offset", 10, "--end-offset", 12, "--json")
    lines = [json.loads(line) for line in out.splitlines()]
    assert lines
    assert all(line["last_offset"] >= 10 and line["base_offset"] < 12 for line in lines)


@pytest.mark.parametrize("directory", log_directories(), ids=lambda path: path.name)
def test_scan_sums_up_every_format(kafkacodec, directory):
    """Values that headers of old formats lack are null."""
    code, out, err = kafkacodec("scan", directory, "--json")
    assert (code, err) == (DONE, "")
    found = {line["path"]: line for line in map(json.loads, out.splitlines())}
    for item in segments(writer=directory.name):
        if str(item.path) not in found:
            continue
        line, batches = found[str(item.path)], item.expected.batches
        times = [b["maxTimestamp"] for b in batches if b["maxTimestamp"] != -1]
        assert line["num_batches"] == len(batches)
        assert line["last_offset"] == batches[-1]["lastOffset"]
        assert line["max_timestamp"] == max(times, default=None)
        assert line["first_offset"] in (None, batches[0]["baseOffset"])
    code, out, _ = kafkacodec("scan", directory, "--batches")
    assert (code, "None" in out) == (DONE, False)
    assert kafkacodec("scan", directory, "--end-offset", 100)[0] == DONE


def test_scan_goes_on_to_the_next_segment(kafkacodec, tmp_path):
    broker = tmp_path / "broker"
    shutil.copytree(BROKER / "zstd-0", broker / "zstd-0")
    (broker / "a-0").mkdir()
    (broker / "a-0" / "00000000000000000000.kafka").write_bytes(b"\0\0\0\6")
    code, out, err = kafkacodec("scan", broker, "--json")
    assert code == BAD_INPUT
    assert "0.7 has no batches" in err
    assert [json.loads(line)["topic"] for line in out.splitlines()][:2] == ["a", "zstd"]


# --- dump -------------------------------------------------------------------------------------------------------------


def test_dump_gives_every_record_as_json(kafkacodec):
    code, out, err = kafkacodec("dump", BROKER, "--topic", "mixed", "--json")
    assert (code, err) == (DONE, "")
    assert [from_json(line) for line in out.splitlines()] == [row[:6] for row in expected("mixed")]


def test_dump_limits_and_chooses(kafkacodec):
    _, out, _ = kafkacodec("dump", ROOT / SEGMENT, "--start-offset", 3, "--end-offset", 9, "--json")
    assert [json.loads(line)["offset"] for line in out.splitlines()] == list(range(3, 9))
    _, out, _ = kafkacodec("dump", ROOT / SEGMENT, "-n", 2)
    assert len(out.splitlines()) == 3
    _, out, _ = kafkacodec("dump", BROKER, "--topic", "partitions", "--partition", 1, "--json")
    assert {json.loads(line)["partition"] for line in out.splitlines()} == {1}


def test_dump_chooses_by_time(kafkacodec):
    rows = expected("none")
    middle = rows[len(rows) // 2].timestamp
    _, out, _ = kafkacodec("dump", BROKER / "none-0", "--start-time", middle, "--json")
    assert json.loads(out.splitlines()[0])["offset"] == next(r.offset for r in rows if r.timestamp >= middle)
    _, out, _ = kafkacodec("dump", BROKER / "none-0", "--end-time", "1999-01-01T00:00", "--json")
    assert out == ""
    code, _, err = kafkacodec("dump", BROKER / "none-0", "--end-time", "tomorrow")
    assert (code, "'tomorrow' is neither" in err) == (WRONG_USAGE, True)


def test_dump_excludes_uncommitted_records(kafkacodec):
    item = next(c for c in read_committed() if c.directory == BROKER and c.topic == "txn-open")
    _, out, _ = kafkacodec("dump", BROKER / "txn-open-0", "--isolation-level", "read_committed", "--json")
    assert [json.loads(line)["offset"] for line in out.splitlines()] == item.offsets


def test_dump_includes_control_records_when_asked(kafkacodec):
    path = BROKER / "txn-0" / "00000000000000000000.log"
    _, without, _ = kafkacodec("dump", path, "--json")
    _, with_control, _ = kafkacodec("dump", path, "--json", "--control")
    records = sample(path.relative_to(ROOT).as_posix()).expected.records
    assert len(with_control.splitlines()) == len(records)
    assert len(without.splitlines()) == sum(not row.is_control for row in records)


def test_dump_prints_what_comes_before_a_fault(kafkacodec, damaged):
    code, out, err = kafkacodec("dump", damaged, "--json")
    good = next(b for b in sample(SEGMENT).expected.batches if b["position"] > 2000)["baseOffset"]
    assert code == BAD_INPUT
    assert [json.loads(line)["offset"] for line in out.splitlines()] == list(range(good))
    assert err.count("\n") == 1
    assert "CRC-32C" in err


def test_dump_skips_a_fault_with_a_warning(kafkacodec, damaged):
    bad = next(b for b in sample(SEGMENT).expected.batches if b["position"] > 2000)
    code, out, err = kafkacodec("dump", damaged, "--json", "--on-error", "skip")
    lost = {row.offset for row in sample(SEGMENT).expected.records if row.batch == bad["index"]}
    assert code == DONE
    assert [json.loads(line)["offset"] for line in out.splitlines()] == [
        row.offset for row in sample(SEGMENT).expected.records if row.offset not in lost
    ]
    assert err.startswith(f"kafkacodec: warning: {damaged}: {bad['sizeInBytes']:,} bytes skipped: ")


def test_dump_shows_text_or_hex(kafkacodec):
    _, out, _ = kafkacodec("dump", ROOT / SEGMENT)
    rows = [row for row in sample(SEGMENT).expected.records if not row.is_control]
    lines = out.splitlines()[1:]
    assert len(lines) == len(rows)
    for line, row in zip(lines, rows, strict=True):
        assert line.split()[0] == str(row.offset)
        assert ("0x" in line) == any(map(is_binary, [row.key, row.value, *(value for _, value in row.headers)]))
        if is_binary(row.value):
            assert "0x" + row.value.hex() in line


# --- verify and recover -----------------------------------------------------------------------------------------------


def test_verify_finds_a_broker_s_directory_intact(kafkacodec):
    code, out, err = kafkacodec("verify", BROKER, "--topic", "txn*", "--json", "--strict")
    assert (code, err) == (DONE, "")
    reports = [json.loads(line) for line in out.splitlines()]
    assert [(r["topic"], r["ok"], r["clean"], r["damaged_bytes"]) for r in reports] == [
        (topic, True, True, 0) for topic in ("txn", "txn-codecs", "txn-open")
    ]
    samples = [s for s in segments(writer="kraft-4.1.0") if s.path.parent.name == "txn-0"]
    assert reports[0]["num_records"] == sum(len(s.expected.records) for s in samples)


def test_verify_names_the_damage(kafkacodec, damaged):
    bad = next(b for b in sample(SEGMENT).expected.batches if b["position"] > 2000)
    code, out, err = kafkacodec("verify", damaged)
    assert code == BAD_INPUT
    assert "DAMAGED" in out
    assert f"error: {damaged} at byte {bad['position']}, {bad['sizeInBytes']} bytes" in out
    assert err == "kafkacodec: error: 1 of 1 partition failed verification\n"


def test_verify_fails_for_warnings_only_when_strict(kafkacodec, tmp_path):
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(sample(SEGMENT).data()[:-5])
    assert kafkacodec("verify", path)[0] == DONE
    assert kafkacodec("verify", path, "--strict")[0] == BAD_INPUT


def test_recover_keeps_what_is_intact(kafkacodec, tmp_path, damaged):
    source, saved = tmp_path / "broker", tmp_path / "saved"
    (source / "none-0").mkdir(parents=True)
    damaged.rename(source / "none-0" / damaged.name)
    code, out, err = kafkacodec("recover", source, saved, "--json")
    assert code == BAD_INPUT  # something was lost
    bad = next(b for b in sample(SEGMENT).expected.batches if b["position"] > 2000)
    kept = [row.offset for row in sample(SEGMENT).expected.records if row.batch != bad["index"]]
    _, out, _ = kafkacodec("dump", saved, "--json")
    assert [json.loads(line)["offset"] for line in out.splitlines()] == kept
    assert kafkacodec("verify", saved)[0] == DONE
    code, _, err = kafkacodec("recover", source, saved)
    assert code != DONE
    assert "Traceback" not in err


# --- convert ----------------------------------------------------------------------------------------------------------


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


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["scan", "dump", "convert"])
@pytest.mark.parametrize(
    "content", [b"just a text file, nothing more", b"short", b"PAR1" + bytes(100)], ids=["text", "short", "binary"]
)
def test_not_a_segment(kafkacodec, tmp_path, name, content):
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    output = ["-o", tmp_path / "out.csv"] if name == "convert" else []
    code, _, err = kafkacodec(name, path, *output)
    assert code == BAD_INPUT
    assert err.startswith(f"kafkacodec: error: {path}: ")
    assert "(byte " in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("content", [b"", bytes(4096)], ids=["empty", "preallocated"])
def test_segments_without_batches_are_fine(kafkacodec, tmp_path, content):
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(content)
    for name in ("scan", "dump"):
        code, out, err = kafkacodec(name, path, "--json")
        assert (code, out, err) == (DONE, "", "")
    output = tmp_path / "out.parquet"
    assert kafkacodec("convert", path, "-o", output)[0] == DONE
    assert parquet.read_table(output).num_rows == 0


def test_missing_and_unreadable_paths(kafkacodec, tmp_path):
    code, _, err = kafkacodec("scan", tmp_path / "missing")
    assert code == WRONG_USAGE
    assert "does not exist" in err
    code, _, err = kafkacodec("scan", tmp_path)
    assert (code, err) == (BAD_INPUT, f"kafkacodec: error: {tmp_path}: no Kafka log segments in this directory\n")
    code, _, err = kafkacodec("scan", BROKER, "--topic", "nothing-like-it")
    assert code == BAD_INPUT
    code, _, err = kafkacodec("convert", ROOT / SEGMENT, "-o", tmp_path / "no" / "such" / "place.csv")
    assert code == BAD_INPUT
    assert "Traceback" not in err


def test_a_bomb_is_refused(kafkacodec):
    code, _, err = kafkacodec("dump", ROOT / "blobs" / "corrupt" / "v2-gzip-bomb-one-record.bin")
    assert code == BAD_INPUT
    assert err.count("\n") == 1


def test_inputs_are_not_touched(kafkacodec, tmp_path):
    path = tmp_path / "none-0" / "00000000000000000000.log"
    path.parent.mkdir()
    path.write_bytes(sample(SEGMENT).data())
    path.chmod(0o444)
    before = hashlib.sha256(path.read_bytes()).digest(), path.stat().st_mtime_ns
    for arguments in (["scan", path], ["dump", path], ["convert", path, "-o", tmp_path / "out.csv"]):
        assert kafkacodec(*arguments)[0] == DONE
    assert (hashlib.sha256(path.read_bytes()).digest(), path.stat().st_mtime_ns) == before
    assert os.listdir(path.parent) == [path.name]


# --- how the process ends ---------------------------------------------------------------------------------------------


def test_a_closed_pipe_prints_no_error():
    script = f"{sys.executable} -m kafkacodec.cli dump {BROKER} --json | head -n 1; exit ${{PIPESTATUS[0]}}"
    finished = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
    assert finished.returncode == PIPE_CLOSED
    assert finished.stderr == ""
    assert len(finished.stdout.splitlines()) == 1


def test_help_lists_commands_and_exit_codes_without_importing_them():
    script = """
import sys
from kafkacodec.cli.__main__ import run
code = run(["--help"])
heavy = {"numpy", "pyarrow", "pyspark", "kafkacodec.cli.scan", "rich"} & set(sys.modules)
sys.exit(f"imported {heavy}" if heavy else code)
"""
    finished = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert finished.returncode == DONE, finished.stderr
    for word in ("scan", "dump", "convert", "Exit codes"):
        assert word in finished.stdout


def test_every_command_of_the_table_has_help(kafkacodec):
    from kafkacodec.cli.app import COMMANDS

    for name in COMMANDS:
        code, out, _ = kafkacodec(name, "--help")
        assert (code, out.startswith(f"Usage: kafkacodec {name} ")) == (DONE, True)


@pytest.mark.parametrize(
    ("package", "arguments", "extra"),
    [
        ("click", ["scan", str(ROOT / SEGMENT)], "cli"),
        ("pyarrow", ["convert", str(ROOT / SEGMENT), "-o", "out.csv"], "arrow"),
    ],
)
def test_a_missing_extra_is_named(tmp_path, package, arguments, extra):
    script = f"""
import sys
sys.modules[{package!r}] = None
sys.argv = ["kafkacodec", *{arguments!r}]
from kafkacodec.cli.__main__ import main
main()
"""
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    finished = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path, env=environment
    )
    assert finished.returncode == WRONG_USAGE
    assert f"pip install 'kafkacodec[{extra}]'" in finished.stderr
    assert finished.stderr.count("\n") == 1
    assert os.listdir(tmp_path) == []


def test_a_terminal_gets_lines_that_fit():
    primary, secondary = pty.openpty()
    environment = os.environ | {"COLUMNS": "70", "LINES": "20"}
    process = subprocess.Popen(
        [sys.executable, "-m", "kafkacodec.cli", "dump", str(ROOT / SEGMENT), "-n", "5"],
        stdout=secondary,
        stderr=subprocess.PIPE,
        env=environment,
    )
    os.close(secondary)
    shown = b""
    try:
        while chunk := os.read(primary, 65536):
            shown += chunk
    except OSError:  # how Linux ends a pseudo-terminal
        pass
    os.close(primary)
    assert process.wait() == DONE
    process.stderr.close()
    lines = shown.decode().replace("\x1b[1m", "").replace("\x1b[0m", "").splitlines()
    assert len(lines) == 6
    assert all(len(line) <= 70 for line in lines)
    assert "…" in lines[1]


# --- helpers ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def damaged(tmp_path) -> Path:
    """A real segment with a wrong checksum in the first batch after byte 2000."""
    data = bytearray(sample(SEGMENT).data())
    batch = next(b for b in sample(SEGMENT).expected.batches if b["position"] > 2000)
    data[batch["position"] + 70] ^= 1
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(data)
    return path


def is_binary(value) -> bool:
    try:
        return value is not None and not value.decode().isprintable()
    except UnicodeDecodeError:
        return True


def from_json(line: str) -> tuple:
    """A record of `dump --json` in the form of the expected rows."""
    record = json.loads(line)
    headers = [(header["key"], from_json_value(header["value"])) for header in record["headers"]]
    names = ("offset", "timestamp", "timestamp_type")
    return (*(record[n] for n in names), from_json_value(record["key"]), from_json_value(record["value"]), headers)


def from_json_value(value):
    import base64

    if isinstance(value, dict):
        return base64.b64decode(value["base64"])
    return None if value is None else value.encode()


# --- bench ------------------------------------------------------------------------------------------------------------


def test_bench_measures_every_reading(kafkacodec):
    code, out, err = kafkacodec("bench", BROKER, "--topic", "zstd", "--seconds", "0", "--json")
    assert (code, err) == (DONE, "")
    rates = [json.loads(line) for line in out.splitlines()]
    assert len({rate["reading"] for rate in rates}) == 5
    assert all(rate["bytes_per_second"] > 0 for rate in rates)
    assert [rate["records_per_second"] is None for rate in rates] == [True, True, False, False, False]


def test_bench_takes_whole_segments_up_to_the_limit(kafkacodec):
    code, out, _ = kafkacodec("bench", BROKER, "--seconds", "0", "--limit", "1")
    count = int(out.split()[0])
    assert code == DONE
    assert 1 < count < len(segments(writer="kraft-4.1.0"))
    assert "all columns" in out


@pytest.mark.parametrize("seconds", ["nan", "inf", "-1", "1e9"])
def test_bench_comes_to_an_end(kafkacodec, seconds):
    assert kafkacodec("bench", BROKER, "--topic", "zstd", "--seconds", seconds)[0] == WRONG_USAGE


def test_bench_of_nothing_fails(kafkacodec, tmp_path):
    (tmp_path / "00000000000000000000.log").touch()
    code, _, err = kafkacodec("bench", tmp_path)
    assert code == BAD_INPUT
    assert "all segments are empty" in err


# --- demo -------------------------------------------------------------------------------------------------------------


def test_demo_replaces_nothing_but_parquet(kafkacodec, tmp_path):
    """Refused before Spark starts."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    for output in (tmp_path / "mine", tmp_path / "mine" / "notes.txt"):
        code, _, err = kafkacodec("demo", BROKER / "zstd-0", "-o", output)
        assert (code, "choose another output" in err) == (BAD_INPUT, True)
    assert (tmp_path / "mine" / "notes.txt").read_text() == "mine"
