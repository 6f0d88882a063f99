"""A stream from live brokers to a table, whose driver is killed, or leaders of its partitions: each record once.

Processes of their own begin what is killed with them; the session of the tests goes on at their checkpoints.

Once each, if KAFKACODEC_BROKER_STREAM_KILLS does not say how often; -s shows the counts.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import kafkacodec as kc
from tests.integration import kafka_jvm, stream_to_broker, stream_to_table
from tests.integration.kafka_cluster import Cluster
from tests.integration.kafka_jvm import SOON_BACK, Broker
from tests.integration.stream_to_table import written
from tests.patience import LATE
from tests.wheel import ROOT

pytestmark = [pytest.mark.spark, pytest.mark.java, pytest.mark.slow]

KILLS = int(os.environ.get("KAFKACODEC_BROKER_STREAM_KILLS", "1"))
PARTITIONS, STEP = 2, 200
RECORDS = STEP * 10 * (KILLS + 1)  # more than the micro-batches before all kills can read
ALL = 1_000_000  # more than a micro-batch finds


def test_a_killed_stream_writes_each_record_once(spark, tmp_path):
    with kc.broker.serve(topics={"orders": PARTITIONS}) as broker:
        server = broker.bootstrap_servers
        with kc.client.Producer(server) as producer:
            for n in range(RECORDS):
                producer.send("orders", b"%d" % n, partition=n % PARTITIONS)
        for _ in range(KILLS):
            killed(tmp_path, server)
        query = stream_to_table.start(spark, *arguments(tmp_path, server, maxOffsetsPerTrigger=RECORDS), "once")
        assert query.awaitTermination(240)
    found = ds.dataset(written(tmp_path / "out")).to_table(["partition", "offset", "value"]).to_pylist()
    places = sorted((row["partition"], row["offset"]) for row in found)
    assert places == [(p, offset) for p in range(PARTITIONS) for offset in range(RECORDS // PARTITIONS)]
    assert all(int(row["value"]) == PARTITIONS * row["offset"] + row["partition"] for row in found)
    assert batches(tmp_path) > KILLS
    print(f"{KILLS} kills, {batches(tmp_path)} micro-batches, {len(places)} records, each once")


class Load:
    """A producer at work, until the block ends.

    Attributes:
        deliveries: of the numbers in each partition of "orders".
    """

    def __init__(self, servers):
        self.servers, self.stop = servers, threading.Event()
        self.deliveries = [[] for _ in range(PARTITIONS)]
        self.thread = threading.Thread(target=self.run)

    def run(self):
        with kc.client.Producer(self.servers, linger_ms=20, delivery_timeout_ms=90_000) as producer:
            while not self.stop.wait(0.01):
                for partition, deliveries in enumerate(self.deliveries):
                    deliveries.append(producer.send("orders", b"%d" % len(deliveries), partition=partition))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()


def test_leaders_are_killed_under_a_stream(tmp_path):
    cluster = Cluster(tmp_path / "cluster", 3, **SOON_BACK, min_insync_replicas="2")
    cluster.start()
    query = None
    try:
        kafka_jvm.create_topic(cluster.servers, "orders", PARTITIONS, 3)
        with Load(cluster.servers) as load:
            query = start(tmp_path, cluster.servers, maxOffsetsPerTrigger=ALL)
            progress(tmp_path, query, 1)
            for number in range(KILLS):
                broker = leader_of(cluster, number % PARTITIONS)
                cluster.kill(broker)
                progress(tmp_path, query, 2)
                cluster.start()
                progress(tmp_path, query, 1)
        ends = [len(deliveries) for deliveries in load.deliveries]
        until(tmp_path, query, lambda: read_up_to(tmp_path) == ends)
    finally:
        if query is not None:
            end(query)
        cluster.kill_all()
    found = ds.dataset(written(tmp_path / "out")).to_table(["partition", "offset", "value"]).to_pylist()
    places = sorted((row["partition"], row["offset"], int(row["value"])) for row in found)
    sent = [(p, d.offset, n) for p, deliveries in enumerate(load.deliveries) for n, d in enumerate(deliveries)]
    assert [d.error for deliveries in load.deliveries for d in deliveries] == [None] * len(sent)
    assert places == sorted(sent)
    print(f"{KILLS} leaders killed, {batches(tmp_path)} micro-batches, {len(places)} records, each once")


def leader_of(cluster, partition):
    with kc.client.Admin(cluster.servers) as admin:
        for _ in range(300):
            leader = admin.describe_topics("orders")["orders"].partitions[partition].leader
            if leader is not None:
                return cluster.brokers[leader - 1]
            time.sleep(0.1)
    raise AssertionError("no leader")


def progress(directory, query, more):
    """Wait until so many more micro-batches are complete; the query must run."""
    wanted = batches(directory) + more
    until(directory, query, lambda: batches(directory) >= wanted)


def until(directory, query, holds):
    """Wait for what a query brings about; it must run."""
    end = time.monotonic() + LATE
    while not holds():
        assert query.poll() is None, (directory / "query.out").read_text()[-3000:]
        assert time.monotonic() < end
        time.sleep(0.05)


def end(query):
    """Kill a query, its JVM and its workers."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(query.pid, signal.SIGKILL)
    query.wait()


def killed(directory, server):
    """Kill a query, and its JVM and workers, in the middle of a micro-batch after some that are complete."""
    query = start(directory, server, maxOffsetsPerTrigger=STEP)
    try:
        progress(directory, query, 2)
    finally:
        end(query)


def start(directory, server, **options):
    return in_a_process(directory, "stream_to_table", *arguments(directory, server, **options))


def arguments(directory, server, **options):
    """Of `stream_to_table`."""
    given = {"kafka.bootstrap.servers": server, "subscribe": "orders", "startingOffsets": "earliest", **options}
    places = ["", str(directory / "out"), str(directory / "checkpoint")]
    return places + [f"{name}={value}" for name, value in given.items()]


def in_a_process(directory, module, *given):
    command = [sys.executable, "-m", f"tests.integration.{module}", *given]
    with open(directory / "query.out", "ab") as said:
        return subprocess.Popen(command, cwd=ROOT, stdout=said, stderr=said, start_new_session=True)


def read_up_to(directory):
    """The next offset of each partition after the micro-batches that are complete."""
    lines = (directory / "checkpoint" / "offsets" / str(batches(directory) - 1)).read_text().splitlines()
    places = json.loads(lines[-1])["orders"]
    return [place if isinstance(place, int) else place["offset"] for _, place in sorted(places.items())]


def batches(directory):
    """The number of micro-batches that are complete."""
    commits = directory / "checkpoint" / "commits"
    return sum(name.isdecimal() for name in os.listdir(commits)) if commits.is_dir() else 0


def test_a_killed_query_of_six_tasks_goes_on_with_one(spark, tmp_path):
    """Each of the six has a transaction open when driver, JVM and workers are killed in the micro-batch."""
    values = [f"{n:01000}" for n in range(2400)]  # large ones, which wait in no buffer of Spark's
    for name in ("files", "broker"):
        (tmp_path / name).mkdir()
    pq.write_table(pa.table({"value": values}), tmp_path / "files" / "rows.parquet")
    broker = Broker(tmp_path / "broker")
    broker.start()
    try:
        with kc.client.Admin(broker.server) as admin:
            admin.create_topics([kc.client.NewTopic("six", num_partitions=2)])
            places = [str(tmp_path / "files"), broker.server, "six", str(tmp_path / "checkpoint")]
            query = in_a_process(tmp_path, "stream_to_broker", *places, "6", str(tmp_path / "gate"))
            try:
                end_of_time = time.monotonic() + 600
                while len(admin.list_transactions(states=["Ongoing"])) < 6:
                    assert query.poll() is None, (tmp_path / "query.out").read_text()[-3000:]
                    assert time.monotonic() < end_of_time
                    time.sleep(0.1)
            finally:
                end(query)
            assert len(admin.list_transactions(states=["Ongoing"])) == 6
            query = stream_to_broker.start(spark, *places, tasks="1")
            assert query.awaitTermination(600)
            assert admin.list_transactions(states=["Ongoing"]) == {}
        options = {"auto_offset_reset": "earliest", "isolation_level": "read_committed"}
        with kc.client.Consumer(bootstrap_servers=broker.server, **options) as consumer:
            ends = consumer.end_offsets([("six", 0), ("six", 1)])  # the last stable ones
            consumer.assign_ranges({key: (0, offset) for key, offset in ends.items()})
            found = [record.value.decode() for record in consumer]
    finally:
        broker.kill()
    assert sorted(found) == values
