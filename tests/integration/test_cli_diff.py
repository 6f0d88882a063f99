"""``kafkacodec diff``: tables, JSON, exit codes; the comparison is tested in tests/unit/test_log_diff.py."""

import json
import shutil
import subprocess
import sys

import pytest

import kafkacodec as kc
from kafkacodec.cli.__main__ import BAD_INPUT, DONE, WRONG_USAGE
from tests.corpus import ROOT, log_directories
from tests.dialect_vectors import ROOT as DIALECTS
from tests.integration.cli_samples import BROKER
from tests.terminal import on_a_terminal


@pytest.mark.parametrize(
    "directory", [*log_directories(), DIALECTS / "kafka07/segments/broker-0"], ids=lambda path: path.name
)
def test_a_directory_equals_itself(kafkacodec, directory):
    code, out, err = kafkacodec("diff", directory, directory)
    assert (code, err) == (DONE, "")
    count = len(list(directory.glob("*-[0-9]*/")))
    partitions = f"{count} partition{'s' if count > 1 else ''}"
    assert out.splitlines()[-1] == f"{partitions}, {count} equal"


def test_differences_are_listed_and_fail(kafkacodec):
    a, b = BROKER / "gzip-0", ROOT / "logs/truncated/kraft-4.1.0/gzip-0"
    code, out, err = kafkacodec("diff", a, b)
    assert (code, err) == (BAD_INPUT, "kafkacodec: error: 1 of 1 partition differs\n")
    lines = out.splitlines()
    assert lines[1].split() == ["gzip-0", "206", "44", "44", "162", "0", "0", "differs"]
    assert lines[2:4] == [
        "gzip-0: only in A: offsets 0 to 156 (157 records), deleted at the start of B",
        "gzip-0: only in A: offsets 201 to 205 (5 records), after the end of B",
    ]
    code, out, _ = kafkacodec("diff", b, a, "--json")
    (line,) = map(json.loads, out.splitlines())
    assert code == BAD_INPUT
    assert (line["equal"], line["b_only"], line["b_ranges"][1]["cause"]) == (False, 162, "end")


def test_lists_have_a_limit(kafkacodec):
    _, out, _ = kafkacodec("diff", BROKER / "gzip-0", BROKER / "lz4-0", "--limit", 2)
    listed = [line for line in out.splitlines() if ": offset " in line]
    assert len(listed) == 2
    assert "more records with other content" in out
    _, out, _ = kafkacodec("diff", BROKER / "gzip-0", BROKER / "lz4-0", "--limit", 0)
    assert len(out.splitlines()) == 3


def test_partitions_that_one_side_lacks(kafkacodec, tmp_path):
    shutil.copytree(BROKER / "gzip-0", tmp_path / "backup" / "gzip-0")
    code, out, _ = kafkacodec("diff", BROKER, tmp_path / "backup", "--topic", "g*")
    assert (code, out.splitlines()[-1]) == (DONE, "1 partition, 1 equal")
    code, out, _ = kafkacodec("diff", BROKER, tmp_path / "backup", "--topic", "gzip", "--topic", "lz4")
    assert code == BAD_INPUT
    assert next(line for line in out.splitlines() if line.startswith("lz4")).endswith("not in B")


def test_what_cannot_be_compared_is_an_error(kafkacodec, tmp_path):
    code, _, err = kafkacodec("diff", BROKER)
    assert code == WRONG_USAGE
    assert "Usage: kafkacodec diff [OPTIONS] A B" in err
    assert "Error: 1 path instead of two, A and B" in err
    assert kafkacodec("diff", BROKER, tmp_path / "nothing")[0] == WRONG_USAGE
    assert kafkacodec("diff", BROKER, tmp_path)[0] == BAD_INPUT
    assert kafkacodec("diff", BROKER, BROKER, "--topic", "nothing")[0] == BAD_INPUT
    for name in ("a", "b"):
        shutil.copytree(BROKER / "gzip-0", tmp_path / name / "gzip-0")
    code, _, err = kafkacodec("diff", tmp_path, BROKER)
    assert code == WRONG_USAGE
    assert "the same partition" in err


def test_diff_fits_a_terminal():
    code, out = on_a_terminal("diff", BROKER, BROKER)
    assert code == DONE
    assert all(len(line) <= 80 for line in out.replace("\r", "").splitlines())


def test_a_segment_from_standard_input():
    path = BROKER / "zstd-0" / "00000000000000000000.log"
    for arguments, code in ((["-", path], DONE), ([path, "-"], DONE), (["-", BROKER / "gzip-0"], BAD_INPUT)):
        with open(path, "rb") as file:
            command = [sys.executable, "-m", "kafkacodec.cli", "diff", *map(str, arguments)]
            finished = subprocess.run(command, stdin=file, capture_output=True, check=False)
        assert finished.returncode == code, finished.stderr


def test_a_directory_with_only_the_name_of_a_partition_is_none(tmp_path, kafkacodec):
    for name in ("a", "b"):
        kc.sample(tmp_path / name)
    notes = tmp_path / "a" / "notes-1"
    notes.mkdir()
    (notes / "README").touch()
    code, out, _ = kafkacodec("diff", tmp_path / "a", tmp_path / "b")
    assert (code, out.splitlines()[-1]) == (DONE, "8 partitions, 8 equal")
    assert {p.topic for p in kc.log.discover(tmp_path / "a")} == {p.topic for p in kc.log.discover(tmp_path / "b")}
    assert {d.topic for d in kc.log.diff(tmp_path / "a", tmp_path / "b")} >= {"orders"}
    (notes / "partition.metadata").touch()  # a broker has just begun
    code, out, _ = kafkacodec("diff", tmp_path / "a", tmp_path / "b")
    assert "notes-1" in out


def test_nothing_but_such_directories(tmp_path, kafkacodec):
    notes = tmp_path / "notes-1"
    notes.mkdir()
    (notes / "README").touch()
    for arguments in (("diff", tmp_path, tmp_path), ("topics", tmp_path), ("recover", tmp_path, tmp_path / "out")):
        code, _, err = kafkacodec(*arguments)
        assert (code, f"{notes} has the name of a partition, but none of its files" in err) == (1, True)
