"""The file that a command writes: complete or absent, and no other file is touched."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kafkacodec.cli.__main__ import BAD_INPUT, DONE, WRONG_USAGE, run
from tests.corpus import ROOT

SOURCE = ROOT / "logs" / "kraft-4.1.0" / "txn-0"


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "csv", "jsonl"])
def test_planted_files_are_not_touched(suffix: str, tmp_path: Path) -> None:
    bystander, out = tmp_path / "bystander", tmp_path / f"out.{suffix}"
    bystander.write_bytes(b"untouched")
    for name in (f"{out}.partial", f"{out}.tmp"):
        os.symlink(bystander, name)
    before = sorted(os.listdir(tmp_path))
    assert run(["convert", str(SOURCE), "-o", str(out)]) == DONE
    assert sorted(os.listdir(tmp_path)) == sorted([*before, out.name])
    assert bystander.read_bytes() == b"untouched"
    first = out.read_bytes()
    assert run(["convert", str(SOURCE), "-o", str(out)]) == WRONG_USAGE
    assert run(["convert", str(SOURCE), "-o", str(out), "--force"]) == DONE
    assert out.read_bytes() == first
    assert sorted(os.listdir(tmp_path)) == sorted([*before, out.name])


def test_a_link_is_not_written_through(tmp_path: Path) -> None:
    bystander, out = tmp_path / "bystander", tmp_path / "out.csv"
    bystander.write_bytes(b"untouched")
    for target in (bystander, tmp_path / "nowhere"):
        os.symlink(target, out)
        assert run(["convert", str(SOURCE), "-o", str(out)]) == WRONG_USAGE
        assert run(["convert", str(SOURCE), "-o", str(out), "--force"]) == DONE
        assert not out.is_symlink()
        out.unlink()
    assert bystander.read_bytes() == b"untouched"
    assert os.listdir(tmp_path) == ["bystander"]


def test_damage_on_the_way_leaves_the_old_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    segment, out = tmp_path / "t-0" / f"{0:020d}.log", tmp_path / "out.parquet"
    segment.parent.mkdir()
    data = bytearray((SOURCE / f"{0:020d}.log").read_bytes())
    data[-100] ^= 1
    segment.write_bytes(data)
    out.write_bytes(b"old")
    assert run(["convert", str(segment), "-o", str(out), "--force"]) == BAD_INPUT
    assert str(segment) in capsys.readouterr().err
    assert out.read_bytes() == b"old"
    assert sorted(os.listdir(tmp_path)) == ["out.parquet", "t-0"]
