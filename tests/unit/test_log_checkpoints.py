"""Offset checkpoints that cannot be read: readers go without their checks, and say so once."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path

import pytest

import kafkacodec as kc
from kafkacodec.errors import CheckpointWarning

RECOVERY, START = "recovery-point-offset-checkpoint", "log-start-offset-checkpoint"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return Path(kc.sample(tmp_path / "logs").path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (RECOVERY, "nonsense", "the version line or the count line is missing; whether logs have lost their end"),
        (RECOVERY, "1\n0\n", "unknown checkpoint version 1; whether logs have lost their end cannot be checked"),
        (START, "0\n1\norders 0\n", "line 3: expected 3 fields, found 2; logs begin where their files begin"),
        (START, None, "the file cannot be read: Is a directory; logs begin where their files begin"),
    ],
)
def test_readers_warn_once(logs: Path, name: str, content: str | None, message: str) -> None:
    (logs / name).unlink()
    if content is None:
        (logs / name).mkdir()
    else:
        (logs / name).write_text(content)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            assert kc.log.LogDirectory(logs).topic("orders").count() == 600
            assert kc.log.Partition(logs / "orders-0").count() > 0
    (only,) = caught
    assert f"{logs / name}: {message}" in str(only.message)
    assert (only.category, only.filename) == (CheckpointWarning, __file__)


def test_a_partition_alone_warns(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (logs / RECOVERY).write_text("nonsense")
    monkeypatch.chdir(logs)
    with pytest.warns(CheckpointWarning, match=f"{logs / RECOVERY}: the version line"):
        assert sum(len(chunk) for chunk in kc.log.Partition("orders-0").read()) > 0


def test_missing_and_empty_checkpoints_are_no_fault(logs: Path) -> None:
    (logs / RECOVERY).unlink()
    (logs / START).write_text("")
    assert kc.log.LogDirectory(logs).topic("orders").count() == 600
    copy = shutil.copytree(logs / "orders-0", logs.parent / "alone")
    assert kc.log.Partition(copy).count() > 0


def test_verify_tells_it_in_its_report(logs: Path) -> None:
    (logs / RECOVERY).write_text("1\n0\n")
    report = kc.log.LogDirectory(logs).verify()
    (finding,) = (f for f in report.findings if f.level == "warning")
    assert (finding.path, finding.text) == (str(logs / RECOVERY), "cannot be read: unknown checkpoint version 1")
    with pytest.warns(CheckpointWarning):
        assert kc.log.LogDirectory(logs).topics
