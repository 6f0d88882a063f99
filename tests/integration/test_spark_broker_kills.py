"""A stream from live brokers to a table, whose driver is killed again and again: each record once.

Once, if KAFKACODEC_BROKER_STREAM_KILLS does not say how often; -s shows the counts.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

import pyarrow.dataset as ds
import pytest

import kafkacodec as kc
from tests.integration.kafka_jvm import Broker
from tests.wheel import ROOT

pytestmark = [pytest.mark.spark, pytest.mark.java, pytest.mark.slow]

KILLS = int(os.environ.get("KAFKACODEC_BROKER_STREAM_KILLS", "1"))
PARTITIONS, STEP = 2, 200
RECORDS = STEP * 10 * (KILLS + 1)  # more than the micro-batches before all kills can read


def test_a_killed_stream_writes_each_record_once(tmp_path):
    broker = Broker(tmp_path)
    broker.start()
    try:
        with kc.client.Admin(broker.server) as admin:
            admin.create_topics([kc.client.NewTopic("orders", num_partitions=PARTITIONS)])
        with kc.client.Producer(broker.server) as producer:
            for n in range(RECORDS):
                producer.send("orders", b"%d" % n, partition=n % PARTITIONS)
        for _ in range(KILLS):
            killed(tmp_path, broker.server)
        finished = start(tmp_path, broker.server, "once", maxOffsetsPerTrigger=RECORDS)
        assert finished.wait(240) == 0, (tmp_path / "query.out").read_text()[-3000:]
    finally:
        broker.kill()
    found = ds.dataset(written(tmp_path / "out")).to_table(["partition", "offset", "value"]).to_pylist()
    places = sorted((row["partition"], row["offset"]) for row in found)
    assert places == [(p, offset) for p in range(PARTITIONS) for offset in range(RECORDS // PARTITIONS)]
    assert all(int(row["value"]) == PARTITIONS * row["offset"] + row["partition"] for row in found)
    assert batches(tmp_path) > KILLS
    print(f"{KILLS} kills, {batches(tmp_path)} micro-batches, {len(places)} records, each once")


def killed(directory, server):
    """Kill a query, and its JVM and workers, in the middle of a micro-batch after some that are complete."""
    wanted = batches(directory) + 2
    query = start(directory, server, maxOffsetsPerTrigger=STEP)
    try:
        end = time.monotonic() + 180
        while batches(directory) < wanted:
            assert query.poll() is None, (directory / "query.out").read_text()[-3000:]
            assert time.monotonic() < end
            time.sleep(0.05)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(query.pid, signal.SIGKILL)
        query.wait()


def start(directory, server, *more, **options):
    given = {"kafka.bootstrap.servers": server, "subscribe": "orders", "startingOffsets": "earliest", **options}
    places = ["", str(directory / "out"), str(directory / "checkpoint")]
    command = [sys.executable, "-m", "tests.integration.stream_to_table", *places]
    command += [f"{name}={value}" for name, value in given.items()]
    with open(directory / "query.out", "ab") as said:
        return subprocess.Popen([*command, *more], cwd=ROOT, stdout=said, stderr=said, start_new_session=True)


def batches(directory):
    """The number of micro-batches that are complete."""
    commits = directory / "checkpoint" / "commits"
    return sum(name.isdecimal() for name in os.listdir(commits)) if commits.is_dir() else 0


def written(out):
    """The files that the table has, by Spark's log of them: files of killed tasks lie beside."""
    log = sorted((out / "_spark_metadata").glob("[0-9]*"), key=lambda path: int(path.name.split(".")[0]))
    compact = [path for path in log if path.suffix == ".compact"]
    lines = [line for path in log[log.index(compact[-1]) if compact else 0 :] for line in path.read_text().splitlines()]
    return sorted({json.loads(line)["path"].removeprefix("file://") for line in lines if line.startswith("{")})
