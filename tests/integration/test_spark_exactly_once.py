"""Streams into the format `kafkalog` whose query is killed, driver and JVM, and started again: each record once.

KAFKACODEC_KILLS=all kills more often. `test_spark_kills` kills at each moment of a job, without a JVM.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kafkacodec.log import LogDirectory, LogWriter
from kafkacodec.spark.writing.recovery import read_state
from tests.integration import ready_python
from tests.integration.conftest import ROOT

pytestmark = pytest.mark.spark

KILLS = 8 if os.environ.get("KAFKACODEC_KILLS") == "all" else 1
PER_BATCH = 20
BATCHES = 4 * KILLS + 4
RECORDS = PER_BATCH * BATCHES

QUERY = """
import os, sys, time
import kafkacodec as kc
from tests.integration import ready_python

place, limit = sys.argv[1:]
ready_python.use()
spark = kc.spark.session({"spark.driver.memory": "600m"}, master="local[2]", quick_start=True)
options = {"topic": "copy", "numPartitions": 3}

def write(frame, number):
    txn = {"txnAppId": "copying", "txnVersion": number}
    frame.repartition(2).write.format("kafkalog").mode("append").options(**options, **txn).save(f"{place}/foreachBatch")

def held(rows):
    while os.path.exists(f"{place}/hold"):
        time.sleep(0.01)
    yield from rows

def start(kind):
    stream = spark.readStream.format("kafkalog").option("maxOffsetsPerTrigger", limit).load(f"{place}/source")
    stream = stream.select("key", "value")
    writer = stream.mapInArrow(held, stream.schema).writeStream
    writer = writer.option("checkpointLocation", f"{place}/{kind}.checkpoint")
    if kind == "writeStream":
        writer = writer.format("kafkalog").options(**options).option("path", f"{place}/{kind}")
    else:
        writer = writer.foreachBatch(write)
    return writer.trigger(availableNow=True).start()

for query in [start("writeStream"), start("foreachBatch")]:
    query.awaitTermination()
"""
KINDS = "writeStream", "foreachBatch"


def start(place: Path, log: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", QUERY, place, str(PER_BATCH)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [ROOT, os.environ.get("PYTHONPATH")]))}
    with open(log, "ab") as said:
        return subprocess.Popen(command, env=environment, stdout=said, stderr=said, start_new_session=True)


def _batches(out: Path) -> int:
    versions = read_state(str(out)).versions.values() if out.exists() else ()
    return max(versions, default=-1) + 1


def _staged(out: Path) -> bool:
    return any(out.glob("kafkalog.*/owner"))


def _pending(out: Path) -> bool:
    return out.exists() and read_state(str(out)).journal is not None


def kill(query: subprocess.Popen[bytes], place: Path, said: Path, *, writing: bool) -> None:
    """Kill it after a micro-batch or two: while tasks of both kinds write, or while one of them publishes."""
    wanted, hold = {kind: min(_batches(place / kind) + 2, BATCHES) for kind in KINDS}, place / "hold"

    def reached(kind: str) -> bool:
        return _batches(place / kind) >= wanted[kind]

    def now() -> bool:
        if not writing:
            return any(map(reached, KINDS)) and any(_pending(place / kind) for kind in KINDS)
        if any(map(reached, KINDS)):
            hold.touch()
        return all(_staged(place / kind) or _batches(place / kind) == BATCHES for kind in KINDS) and hold.exists()

    deadline = time.monotonic() + 300
    while not now():
        assert query.poll() is None, said.read_text()[-3000:]
        assert time.monotonic() < deadline
        time.sleep(0.001)
    os.killpg(query.pid, signal.SIGKILL)
    assert query.wait() == -signal.SIGKILL
    hold.unlink(missing_ok=True)


def test_killed_queries_write_each_record_once(tmp_path: Path) -> None:
    """One of each kind, which one driver runs."""
    ready_python.start(*ready_python.prepare())  # no query's JVM is an ancestor of its workers
    with LogWriter(tmp_path / "source", "t", 0, sync=False) as writer:
        writer.write([(b"%d" % (n % 7), b"%d" % n) for n in range(RECORDS)])
    log = tmp_path / "log"
    for number in range(KILLS):
        kill(start(tmp_path, log), tmp_path, log, writing=number % 2 == 0)
        for out in filter(Path.exists, (tmp_path / kind for kind in KINDS)):
            assert {partition.topic for partition in LogDirectory(out).all_partitions} <= {"copy"}
    query = start(tmp_path, log)
    assert query.wait(240) == 0, log.read_text()[-3000:]
    for out in (tmp_path / kind for kind in KINDS):
        rows = [r.value or b"" for p in LogDirectory(out).all_partitions for chunk in p.read() for r in chunk.records()]
        assert sorted(rows) == sorted(b"%d" % n for n in range(RECORDS))
        assert _batches(out) == BATCHES
        assert LogDirectory(out).verify().ok
        assert not list(out.glob("kafkalog.*"))
