"""Streams into the format `kafkalog` whose query is killed, driver and JVM, and started again: each record once.

KAFKACODEC_KILLS=all kills more often.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kafkacodec.log import LogDirectory, LogWriter
from kafkacodec.spark.writing.recovery import read_state
from tests.integration.conftest import ROOT

pytestmark = pytest.mark.spark

KILLS = 8 if os.environ.get("KAFKACODEC_KILLS") == "all" else 1
RECORDS, PER_BATCH = 140, 20

QUERY = """
import sys
import kafkacodec as kc

kind, source, out, checkpoint, limit = sys.argv[1:]
conf = {"spark.sql.shuffle.partitions": "2", "spark.driver.memory": "600m", "spark.ui.enabled": "false"}
spark = kc.spark.session(conf, master="local[2]", quick_start=True)
options = {"topic": "copy", "numPartitions": 3}
stream = spark.readStream.format("kafkalog").option("maxOffsetsPerTrigger", limit).load(source).select("key", "value")

def write(frame, number):
    txn = {"txnAppId": "copying", "txnVersion": number}
    frame.repartition(2).write.format("kafkalog").mode("append").options(**options, **txn).save(out)

if kind == "writeStream":
    writer = stream.writeStream.format("kafkalog").options(**options).option("path", out)
else:
    writer = stream.writeStream.foreachBatch(write)
writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()
"""


def start(kind: str, place: Path, log: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", QUERY, kind, *(place / name for name in ("source", "out", "checkpoint"))]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [ROOT, os.environ.get("PYTHONPATH")]))}
    with open(log, "ab") as said:
        return subprocess.Popen(
            [*command, str(PER_BATCH)], env=environment, stdout=said, stderr=said, start_new_session=True
        )


def batches(out: Path) -> int:
    """The number of micro-batches that are recorded as written."""
    versions = read_state(str(out)).versions.values() if out.exists() else ()
    return max(versions, default=-1) + 1


@pytest.mark.parametrize("kind", ["writeStream", "foreachBatch"])
def test_a_killed_query_writes_each_record_once(kind: str, tmp_path: Path) -> None:
    rnd = random.Random(11)
    with LogWriter(tmp_path / "source", "t", 0, sync=False) as writer:
        writer.write([(b"%d" % (n % 7), b"%d" % n) for n in range(RECORDS)])
    out, log = tmp_path / "out", tmp_path / "log"
    kills = 0
    while True:
        query = start(kind, tmp_path, log)
        wanted = batches(out) + rnd.randrange(1, 3)
        deadline = time.monotonic() + 120
        while kills < KILLS and batches(out) < min(wanted, RECORDS // PER_BATCH - 1) and query.poll() is None:
            assert time.monotonic() < deadline, log.read_text()[-3000:]
            time.sleep(0.01)
        if kills < KILLS:
            time.sleep(rnd.random() * 0.5)
            os.killpg(query.pid, signal.SIGKILL)
            kills += query.wait() == -signal.SIGKILL
        else:
            assert query.wait(120) == 0, log.read_text()[-3000:]
            break
    assert kills == KILLS
    found = [r.value or b"" for p in LogDirectory(out).all_partitions for chunk in p.read() for r in chunk.records()]
    assert sorted(found) == sorted(b"%d" % n for n in range(RECORDS))
    assert batches(out) == RECORDS // PER_BATCH
    assert LogDirectory(out).verify().ok
    assert not list(out.glob("kafkalog.*"))
