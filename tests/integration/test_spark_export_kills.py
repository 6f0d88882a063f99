"""Exports whose driver or tasks are killed: nothing is half visible, and the next run neither doubles nor loses."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import deltalake
import pyarrow.parquet as pq
import pytest

import kafkacodec as kc
from kafkacodec.spark.exporting import job
from kafkacodec.spark.exporting.task import ExportTask
from tests.integration.conftest import ROOT
from tests.integration.test_spark_export import append, values
from tests.integration.test_spark_kills import ended, in_a_child

ROUNDS = 40 if os.environ.get("KAFKACODEC_KILLS") == "all" else 12
CALLS = ("rename", "fsync", "mkdir", "makedirs", "open", "unlink", "rmdir")


def without_spark(spark: object, task: ExportTask) -> list[object]:
    """The tasks of a run, one after the other in this process."""
    return [task.write(number) for number in task.pieces]


def killed_at(number: int, work) -> bool:
    """Do this in a process that is killed before its call of that number to the file system; False if it has fewer."""

    def counting() -> None:
        left = number
        for name in CALLS:
            original = getattr(os, name)

            def call(*arguments, original=original, **options):
                nonlocal left
                left -= 1
                if left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                return original(*arguments, **options)

            setattr(os, name, call)
        work()

    status = ended(in_a_child(counting))
    assert status in (0, -signal.SIGKILL)
    return status != 0


def offsets_of(target: Path) -> list[int]:
    """The offsets that a reader of the directory sees."""
    return sorted(
        o for path in target.rglob("*.parquet") for o in pq.read_table(path, partitioning=None)["offset"].to_pylist()
    )


@pytest.mark.parametrize("format", ["parquet", "delta"])
def test_killed_anywhere(tmp_path, monkeypatch, format):
    """After each kill all of a run is visible or nothing, and the next one continues."""
    monkeypatch.setattr(job, "_run", without_spark)
    log, target = tmp_path / "log", tmp_path / "out"
    total = kills = 0
    chance = random.Random(7)

    def seen() -> list[int]:
        if format == "parquet" or not target.exists() or not deltalake.DeltaTable.is_deltatable(str(target)):
            return offsets_of(target) if format == "parquet" else []
        return sorted(deltalake.DeltaTable(target).to_pyarrow_table()["offset"].to_pylist())

    number = 0
    while kills < ROUNDS:
        append(log, total, 40)
        total += 40
        before = len(seen())
        if killed_at(number, lambda: kc.spark.export(None, log, target, format=format)):
            kills += 1
        found = seen()
        assert found == list(range(len(found)))
        assert len(found) in (before, total)
        number = number + 1 + chance.randrange(5) if len(found) == before else 0
    kc.spark.export(None, log, target, format=format)
    assert seen() == list(range(total))
    assert not list(tmp_path.glob(".out.kafkacodec/*/owner"))  # without it, nothing was written yet


DRIVER = """
import os, signal, sys
import kafkacodec as kc
from kafkacodec.spark.exporting import job, task

class Killing(task.ExportTask):
    def write(self, number):
        done = super().write(number)
        try:
            os.close(os.open(f"{marks}/{number}", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return done
        os.kill(os.getpid(), signal.SIGKILL)  # after the files are written, before Spark knows of them

log, target, marks = sys.argv[1:]
spark = kc.spark.session({"spark.driver.memory": "512m"}, master="local[2,4]", quick_start=True)
spark.sparkContext.setLogLevel("OFF")
plain, job.ExportTask = job.ExportTask, Killing
source = {"path": log, "maxPartitionBytes": 1000}
print(kc.spark.export(spark, source, target).rows, flush=True)
job.ExportTask = plain
while True:
    sys.stdin.readline()
    print(kc.spark.export(spark, source, target).rows, flush=True)
"""


@pytest.mark.spark
def test_tasks_and_the_driver_are_killed(tmp_path):
    log, target, marks = tmp_path / "log", tmp_path / "out", tmp_path / "marks"
    marks.mkdir()
    append(log, 0, 300)
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER, log, target, marks],
        env={**os.environ, "PYTHONPATH": ROOT},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert driver.stdout.readline() == "300\n"
        assert len(list(marks.iterdir())) > 1  # so many tasks were killed
        assert values(target) == [b"%d" % n for n in range(300)]
        append(log, 300, 2000)
        driver.stdin.write("\n")
        driver.stdin.flush()
        deadline = time.monotonic() + 60
        while not any(tmp_path.glob(".out.kafkacodec/*/*/*.parquet")) and time.monotonic() < deadline:
            time.sleep(0.005)
    finally:
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
        driver.stdin.close()
        driver.stdout.close()
    seen = values(target)
    assert len(seen) in (300, 2300)
    assert seen == [b"%d" % n for n in range(len(seen))]


def test_what_a_killed_run_left_is_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(job, "_run", without_spark)
    append(tmp_path / "log", 0, 10)
    assert killed_at(26, lambda: kc.spark.export(None, tmp_path / "log", tmp_path / "out"))
    assert list(tmp_path.glob(".out.kafkacodec/*/owner"))
    kc.spark.export(None, tmp_path / "log", tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log", "out"]
    assert json.loads((tmp_path / "out" / "run=1" / "_SUCCESS").read_text())["rows"] == 10
