"""Streams into the format `kafkalog` whose query is killed, driver and JVM, and started again: each record once.

KAFKACODEC_KILLS=all kills more often. `test_spark_kills` kills at each moment of a job, without a JVM.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from kafkacodec.log import LogDirectory, LogWriter
from kafkacodec.spark.writing.recovery import read_state
from tests.integration import stream_to_logs
from tests.integration.conftest import ROOT
from tests.integration.stream_to_logs import KINDS, PER_BATCH

pytestmark = pytest.mark.spark

KILLS = 8 if os.environ.get("KAFKACODEC_KILLS") == "all" else 1
BATCHES_PER_KILL = 3
HUNG = 900  # seconds
CHANGES = 30  # of files, of the two queries together in a micro-batch of each


def start(place: Path, log: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.integration.stream_to_logs", place]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [ROOT, os.environ.get("PYTHONPATH")]))}
    with open(log, "ab") as said:
        return subprocess.Popen(command, env=environment, stdout=said, stderr=said, start_new_session=True)


def batches(place: Path) -> int:
    """The number of micro-batches that are recorded as written, of the query that has fewer."""
    return min(_batches(place / kind) for kind in KINDS)


def _batches(out: Path) -> int:
    versions = read_state(str(out)).versions.values() if out.exists() else ()
    return max(versions, default=-1) + 1


def files(place: Path) -> set[str]:
    """Everything that the queries have written."""
    places = [place / f"{kind}{suffix}" for kind in KINDS for suffix in ("", ".checkpoint")]
    return {os.path.join(at, name) for out in places for at, _, names in os.walk(out) for name in names}


def let_write(query: subprocess.Popen[bytes], place: Path, wanted: int, changes: int) -> None:
    """Wait for micro-batches, and then until files have come and gone so often; less if the query ends."""
    seen: set[str] = set()
    hung = time.monotonic() + HUNG
    while query.poll() is None and (batches(place) < wanted or changes):
        before, seen = seen, files(place)
        changes -= seen != before and batches(place) >= wanted
        assert time.monotonic() < hung, sorted(seen)
        time.sleep(0.001)


def test_killed_queries_write_each_record_once(spark: Any, tmp_path: Path) -> None:
    """One of each kind, which one driver runs. They are killed at moments of their work, however fast they are.

    The session of the tests goes on where the last killed ones were.
    """
    rnd = random.Random(11)
    log = tmp_path / "log"
    kills = records = 0
    while kills < KILLS:
        with LogWriter(tmp_path / "source", "t", 0, sync=False, append=records > 0) as writer:
            new = range(records, records + BATCHES_PER_KILL * PER_BATCH)
            writer.write([(b"%d" % (n % 7), b"%d" % n) for n in new])
            records = new.stop
        query = start(tmp_path, log)
        let_write(query, tmp_path, batches(tmp_path) + rnd.randrange(1, 3), rnd.randrange(1, CHANGES))
        with contextlib.suppress(ProcessLookupError):
            os.killpg(query.pid, signal.SIGKILL)
        status = query.wait()
        assert status in (0, -signal.SIGKILL), log.read_text()[-3000:]
        kills += status != 0
    for query in stream_to_logs.start(spark, tmp_path):
        assert query.awaitTermination(HUNG)
    for out in (tmp_path / kind for kind in KINDS):
        rows = [r.value or b"" for p in LogDirectory(out).all_partitions for chunk in p.read() for r in chunk.records()]
        assert sorted(rows) == sorted(b"%d" % n for n in range(records))
        assert _batches(out) == records // PER_BATCH
        assert LogDirectory(out).verify().ok
        assert not list(out.glob("kafkalog.*"))
