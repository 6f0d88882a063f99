"""Three brokers, killed while a producer writes: their directories, merged, are what a consumer reads after a restart.

With acks=1 the last records of a leader that is killed may be on its disk only; a new leader writes others in their
place. KAFKACODEC_REPLICAS sets how many times leaders are killed before all three brokers are.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkacodec.client import Admin
from kafkacodec.log import Partition
from kafkacodec.log.partitions.inside import identity_of_log
from kafkacodec.log.partitions.merged import MergedPartition, observe
from kafkacodec.log.partitions.replicas import agreed_end
from kafkacodec.spark.reading.discovery import selected
from kafkacodec.spark.reading.options import parse_read_options
from kafkacodec.spark.reading.planning import plan
from kafkacodec.spark.reading.tasks import read_ranges
from tests.integration import kafka_jvm
from tests.integration.kafka_cluster import Cluster
from tests.patience import eventually

pytestmark = [pytest.mark.java, pytest.mark.slow]

ROUNDS = int(os.environ.get("KAFKACODEC_REPLICAS", "1"))
PARTITIONS = 3


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    settings = {
        "log_segment_bytes": "200000",
        "replica_lag_time_max_ms": "3000",
        **kafka_jvm.SOON_BACK,
        "replica_high_watermark_checkpoint_interval_ms": "500",
    }
    cluster = Cluster(tmp_path / "cluster", 3, **settings)
    cluster.start()
    yield cluster
    cluster.kill_all()


def logs_of(broker: kafka_jvm.Broker) -> list[Partition]:
    return [Partition(broker.logs / f"orders-{n}") for n in range(PARTITIONS)]


def wait_for_a_new_leader(brokers: list[kafka_jvm.Broker], epoch: int) -> None:
    """Until a log has records of this leader epoch or a later one. The one before may have left none there."""
    for _ in range(600):
        for partition in (p for broker in brokers for p in logs_of(broker)):
            known = partition.leader_epochs
            if known and known[-1].epoch >= epoch and partition.end_offset() > known[-1].start_offset + 50:
                return
        time.sleep(0.2)
    raise AssertionError("no new leader wrote anything")


def wait_for_records(broker: kafka_jvm.Broker, count: int) -> None:
    """Until a log of the broker has so many more."""
    ends = [log.end_offset() + count for log in logs_of(broker)]
    eventually(lambda: any(log.end_offset() >= end for log, end in zip(logs_of(broker), ends, strict=True)))


def wait_for_replicas(cluster: Cluster) -> None:
    """Until all brokers are in sync again."""
    with Admin(cluster.servers) as admin:
        for _ in range(300):
            if all(len(part.isr) == 3 for part in admin.describe_topics("orders")["orders"].partitions):
                return
            time.sleep(0.1)
    raise AssertionError("replicas stay behind")


def merged(directory: Path) -> dict[int, list[tuple[int, bytes]]]:
    """The records below a directory: of one broker, or of several merged."""
    options = parse_read_options({"path": str(directory), "subscribe": "orders", "replicas": "merge"})
    rows: dict[int, list[tuple[int, bytes]]] = {n: [] for n in range(PARTITIONS)}
    for task in plan(options):
        for batch in read_ranges(task, ["partition", "offset", "value"], permissive=False):
            for row in batch.to_pylist():
                rows[row["partition"]].append((row["offset"], row["value"]))
    return rows


def consumed(cluster: Cluster) -> dict[int, list[tuple[int, bytes]]]:
    rows: dict[int, list[tuple[int, bytes]]] = {n: [] for n in range(PARTITIONS)}
    for record in kafka_jvm.records(
        kafka_jvm.tool("consume", cluster.servers, "orders", PARTITIONS, "read_uncommitted")
    ):
        rows[record.source].append((record.offset, record.value or b""))
    return rows


def test_directories_of_a_killed_cluster_are_one_log(cluster, tmp_path):
    kafka_jvm.create_topic(cluster.servers, "orders", PARTITIONS, 3)
    load = ("load", cluster.servers, "orders", PARTITIONS, 1500, "1")
    producer = kafka_jvm.background(*load, output=tmp_path / "acknowledged")
    try:
        wait_for_a_new_leader(cluster.brokers, 0)
        for number in range(ROUNDS):
            victim = cluster.brokers[number % 3]
            others = [broker for broker in cluster.brokers if broker is not victim]
            cluster.start()
            for broker in others:  # so that the leader has records that nobody has fetched
                broker.signal(signal.SIGSTOP)
            wait_for_records(victim, 100)  # an answer to a request from before may bring the others these
            wait_for_records(victim, 100)
            cluster.kill(victim)
            for broker in others:
                broker.signal(signal.SIGCONT)
            wait_for_a_new_leader(others, number + 1)
        for broker in cluster.brokers:
            cluster.kill(broker)
    finally:
        producer.kill()
        producer.communicate()
    copies = tmp_path / "copies"
    for broker in cluster.brokers:
        shutil.copytree(broker.logs, copies / broker.logs.parent.name / "data")

    found = merged(copies)
    assert all([offset for offset, _ in rows] == list(range(len(rows))) for rows in found.values())
    marks, parted = {}, 0
    for partition in selected(parse_read_options({"path": str(copies), "subscribe": "orders", "replicas": "merge"})):
        assert isinstance(partition, MergedPartition)
        marks[partition.partition] = partition.high_watermark or 0
        log = identity_of_log(partition).epochs, partition.end_offset()
        for replica in map(observe, partition.replicas):
            parted += replica.end_offset - agreed_end(replica.epochs, replica.end_offset, *log)
    assert parted > 0  # records of the killed leader that were never part of the log that went on

    cluster.start()
    wait_for_replicas(cluster)
    after, before = consumed(cluster), None
    while after != before:  # until the followers have caught up, so that the high watermark is the end
        before, after = after, consumed(cluster)
    alone = [merged(copies / broker.logs.parent.name) for broker in cluster.brokers]
    for number, rows in after.items():
        # After the high watermark the cluster may choose a replica in sync that lacks the last records, or that was
        # killed before it had truncated what the last leader did not have.
        assert len(rows) >= marks[number]
        assert rows[: marks[number]] == found[number][: marks[number]]
        assert any(rows == one[number][: len(rows)] for one in (found, *alone))
    cluster.stop()
    assert merged(tmp_path / "cluster") == after
