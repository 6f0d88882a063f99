"""Checkpoints that cannot be read: commands say which checks they go without, once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import kafkacodec as kc

RECOVERY, START = "recovery-point-offset-checkpoint", "log-start-offset-checkpoint"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    path = Path(kc.sample(tmp_path / "logs").path)
    (path / RECOVERY).write_text("nonsense")
    (path / START).unlink()
    (path / START).mkdir()
    return path


@pytest.mark.parametrize(
    "command",
    [
        ("topics",),
        ("scan",),
        ("dump", "-n", "1"),
        ("stats", "--top", "0"),
        ("lag",),
        ("convert", "--topic", "orders", "-o", "{}/o.csv"),
        ("convert", "--topic", "orders", "-o", "{}/o", "--partition-by", "topic"),
        ("report", "-o", "{}/page.html"),
    ],
    ids=" ".join,
)
def test_commands_warn(logs, tmp_path, kafkacodec, command):
    name, *options = (part.format(tmp_path) for part in command)
    code, _, err = kafkacodec(name, logs, *options)
    assert code == 0
    warnings = [line for line in err.splitlines() if "warning" in line]
    assert warnings == [
        f"kafkacodec: warning: {logs / RECOVERY}: the version line or the count line is missing; "
        "whether logs have lost their end cannot be checked",
        f"kafkacodec: warning: {logs / START}: the file cannot be read: Is a directory; "
        "logs begin where their files begin",
    ]


def test_commands_on_two_paths_warn(logs, tmp_path, kafkacodec):
    shutil.copytree(logs, tmp_path / "copy")
    (tmp_path / "copy" / RECOVERY).unlink()
    code, _, err = kafkacodec("diff", logs, tmp_path / "copy")
    assert (code, err.count(RECOVERY), err.count(START)) == (0, 1, 2)
    code, _, err = kafkacodec("recover", logs, tmp_path / "saved")
    assert (err.count(RECOVERY), err.count(START)) == (1, 1)


def test_verify_tells_it_once(logs, kafkacodec):
    code, out, err = kafkacodec("verify", logs)
    assert (code, out.count(RECOVERY), err) == (0, 1, "")
    code, out, err = kafkacodec("verify", logs / "orders-0")
    assert (code, out.count(RECOVERY), err.count(RECOVERY)) == (0, 0, 1)
