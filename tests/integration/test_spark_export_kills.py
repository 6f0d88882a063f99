"""Exports whose driver or tasks are killed: nothing is half visible, and the next run neither doubles nor loses."""

from __future__ import annotations

import itertools
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
from kafkacodec.spark.writing import owner, staging
from tests.integration.conftest import ROOT
from tests.integration.test_spark_export import append, values
from tests.integration.test_spark_kills import ended, in_a_child, killed_at

ALL = os.environ.get("KAFKACODEC_KILLS") == "all"
ROUNDS = 40 if ALL else 12
RANDOM_KILLS = 300 if ALL else 12
DONE = os.WEXITED | os.WNOHANG | os.WNOWAIT


def offsets_of(target: Path) -> list[int]:
    """The offsets that a reader of the directory sees."""
    return sorted(
        o for path in target.rglob("*.parquet") for o in pq.read_table(path, partitioning=None)["offset"].to_pylist()
    )


def delta_offsets(target: Path, place: Path) -> list[int]:
    """The offsets in a Delta table, read in a child: a process that has used the library cannot be forked any more."""

    def read() -> None:
        found = []
        if target.exists() and deltalake.DeltaTable.is_deltatable(str(target)):
            found = sorted(deltalake.DeltaTable(target).to_pyarrow_table()["offset"].to_pylist())
        (place / "seen").write_text(json.dumps(found))

    assert ended(in_a_child(read)) == 0
    return json.loads((place / "seen").read_text())


@pytest.mark.parametrize("format", ["parquet", "delta"])
def test_killed_anywhere(tmp_path, format):
    """After each kill all of a run is visible or nothing, and the next one continues."""
    # In a process of its own: this one may have used Delta's library, and cannot be forked any more then.
    script = f"from {__name__} import kill_anywhere; kill_anywhere({str(tmp_path)!r}, {format!r})"
    subprocess.run([sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": ROOT}, check=True)


def kill_anywhere(place, format):
    tmp_path = Path(place)
    log, target = tmp_path / "log", tmp_path / "out"
    total = kills = 0
    chance = random.Random(7)

    def seen() -> list[int]:
        return offsets_of(target) if format == "parquet" else delta_offsets(target, tmp_path)

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
    assert not killed_at(1 << 30, lambda: kc.spark.export(None, log, target, format=format))
    assert seen() == list(range(total))
    assert not list(tmp_path.glob(".out.kafkacodec"))


def test_what_a_killed_run_left_is_removed_if_nothing_is_new(tmp_path):
    append(tmp_path / "log", 0, 40)
    kc.spark.export(None, tmp_path / "log", tmp_path / "out")
    child = in_a_child(lambda: None)
    gone = staging.Owner(owner.driver().replace(f" {os.getpid()} ", f" {child} "))
    ended(child)
    left = staging.new_directory(str(tmp_path / ".out.kafkacodec"))
    staging.new_task(left, gone, 0)
    assert kc.spark.export(None, tmp_path / "log", tmp_path / "out").rows == 0
    assert not (tmp_path / ".out.kafkacodec").exists()


class Iceberg:
    """A table in a catalog that processes share, and exports to it in processes of their own."""

    def __init__(self, place: Path) -> None:
        self.place, self.log, self.total = place, place / "log", 0
        self.catalog = {"type": "sql", "uri": f"sqlite:///{place}/catalog.db", "warehouse": f"file://{place}/tables"}

    def export(self) -> kc.spark.ExportReport:
        return kc.spark.export(None, self.log, "kafka.records", format="iceberg", catalog=self.catalog)

    def append(self, count: int) -> None:
        append(self.log, self.total, count)
        self.total += count

    def offsets(self) -> list[int]:
        """The offsets that a reader sees; they end where the next run starts."""
        from pyiceberg.catalog import load_catalog  # slow to import

        from kafkacodec.spark.exporting.iceberg import OFFSETS

        with load_catalog("default", **self.catalog) as catalog:
            if not catalog.table_exists("kafka.records"):
                return []
            table = catalog.load_table("kafka.records")
            seen = sorted(table.scan(selected_fields=("offset",)).to_arrow()["offset"].to_pylist())
        stored = json.loads(table.properties.get(OFFSETS, "{}"))
        assert (stored["orders"]["0"]["offset"] if stored else 0) == len(seen)
        return seen

    def killed(self, after: float, *, moved: bool) -> bool:
        """Whether an export was killed, so many seconds after its start, or after its files were moved."""
        before = set(self.moved())
        child = in_a_child(self.export)
        while moved and set(self.moved()) == before and os.waitid(os.P_PID, child, DONE) is None:
            time.sleep(0.0005)
        time.sleep(after)
        os.kill(child, signal.SIGKILL)  # a process that has ended stays until `ended`
        status = ended(child)
        assert status in (0, -signal.SIGKILL)
        return status != 0

    def moved(self) -> list[Path]:
        return list(self.place.glob("tables/kafka/records/data/*"))


def test_killed_at_random_moments(tmp_path):
    """The driver of exports to Iceberg: all of a run is in the table or nothing, and the next one continues."""
    table, chance, kills = Iceberg(tmp_path), random.Random(int(os.environ.get("KAFKACODEC_SEED", 11))), [0, 0]
    table.append(40)
    table.export()  # imports modules
    window = 0.1
    while sum(kills) < RANDOM_KILLS:
        before = len(table.offsets())
        table.append(40)
        moved = chance.random() < 0.5
        was_killed = table.killed(chance.uniform(0, window), moved=moved)
        seen = table.offsets()
        assert seen == list(range(len(seen)))
        assert len(seen) in (before, table.total) if was_killed else len(seen) == table.total
        kills[len(seen) == table.total] += was_killed
        window *= 1.2 if len(seen) == before else 0.7  # about as many kills before the commit as after it
    print(f"{kills[0]} killed before their commit, {kills[1]} after it")
    report = table.export()
    assert table.offsets() == list(range(table.total))
    assert report.rows in (0, table.total - len(seen))
    assert not list(tmp_path.glob("tables/kafka/records/.data.kafkacodec"))


DRIVER = """
import os, signal, sys
import kafkacodec as kc
from kafkacodec.spark.writing import owner
from kafkacodec.spark.writing import staging
from kafkacodec.spark.exporting import job, task
from tests.integration import ready_python

class Killing(task.ExportTask):
    def write(self, number):
        done = super().write(number)
        try:
            os.close(os.open(f"{marks}/{number}", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return done
        os.kill(os.getpid(), signal.SIGKILL)  # after the files are written, before Spark knows of them

log, target, marks = sys.argv[1:]
ready_python.use()
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


def test_what_a_killed_run_left_is_removed(tmp_path):
    append(tmp_path / "log", 0, 10)
    moment = itertools.count()
    while not list(tmp_path.glob(".out.kafkacodec/*/owner")):
        assert killed_at(next(moment), lambda: kc.spark.export(None, tmp_path / "log", tmp_path / "out"))
    kc.spark.export(None, tmp_path / "log", tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log", "out"]
    assert json.loads((tmp_path / "out" / "run=1" / "_SUCCESS").read_text())["rows"] == 10
