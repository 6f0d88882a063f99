"""The command: bad input of every kind, help, errors and exit codes."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyarrow import parquet

from kafkacodec.cli.__main__ import BAD_INPUT, DONE, PIPE_CLOSED, WRONG_USAGE
from tests.corpus import ROOT, sample
from tests.integration.cli_samples import BROKER, SEGMENT
from tests.terminal import on_a_terminal


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


def test_a_file_of_three_bytes_is_not_taken_for_an_intact_segment(kafkacodec, tmp_path):
    path = tmp_path / "t-0" / "00000000000000000000.log"
    path.parent.mkdir()
    path.write_bytes(b"\0\0\1")
    assert "3 B after the last batch" in kafkacodec("scan", path.parent)[1]
    assert kafkacodec("verify", path.parent)[1].splitlines()[1].split()[-1] == "warnings"
    code, _, err = kafkacodec("dump", path.parent)
    assert (code, err) == (DONE, f"kafkacodec: warning: {path}: no complete batch in 3 bytes\n")
    path.write_bytes(b"abc")
    for name in ("scan", "verify", "dump"):
        code, out, err = kafkacodec(name, path.parent)
        assert (code, ", intact" in out, err.count("\n")) == (BAD_INPUT, False, 1)


def test_missing_and_unreadable_paths(kafkacodec, tmp_path):
    code, _, err = kafkacodec("scan", tmp_path / "missing")
    assert code == WRONG_USAGE
    assert "does not exist" in err
    code, _, err = kafkacodec("scan", tmp_path)
    reason = "no Kafka log segments in this directory, nor in log directories up to 2 levels below it"
    assert (code, err) == (BAD_INPUT, f"kafkacodec: error: {tmp_path}: {reason}\n")
    code, _, err = kafkacodec("dump", BROKER.parent)
    assert code == BAD_INPUT
    assert f"{BROKER.parent}: no Kafka log segments in this directory, but in directories below it" in err
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
heavy = {"numpy", "pyarrow", "pyspark", "kafkacodec.cli.commands.scan", "rich"} & set(sys.modules)
sys.exit(f"imported {heavy}" if heavy else code)
"""
    finished = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert finished.returncode == DONE, finished.stderr
    for word in ("scan", "dump", "convert", "Exit codes"):
        assert word in finished.stdout


def test_the_first_record_of_a_file_needs_no_randomness():
    """`secrets` loads a library for cryptography, for a name that only temporary files have."""
    script = f"""
import sys
from kafkacodec.cli.__main__ import run
code = run(["dump", "--json", "-n", "1", {str(BROKER)!r}])
heavy = {{"secrets", "hashlib", "tempfile"}} & set(sys.modules)
sys.exit(f"imported {{heavy}}" if heavy else code)
"""
    finished = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert finished.returncode == DONE, finished.stderr
    assert len(finished.stdout.splitlines()) == 1


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
    code, shown = on_a_terminal("dump", ROOT / SEGMENT, "-n", 5, columns=70, kind="xterm")
    assert code == DONE
    lines = shown.replace("\x1b[1m", "").replace("\x1b[0m", "").splitlines()
    assert len(lines) == 6
    assert all(len(line) <= 70 for line in lines)
    assert "…" in lines[1]


def test_directories_that_only_have_the_names_of_partitions(kafkacodec, tmp_path):
    (tmp_path / "dbus-1").mkdir()
    (tmp_path / "dbus-1" / "session.conf").write_text("text")
    for command in ("dump", "topics", "verify", "stats"):
        code, out, err = kafkacodec(command, tmp_path)
        assert (code, out, "has the name of a partition, but none of its files" in err) == (BAD_INPUT, "", True)
