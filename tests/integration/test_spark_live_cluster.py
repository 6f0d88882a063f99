"""Streams of the directory of one of three brokers, which is killed as a leader and truncates its log as a follower.

Its last records were on no other broker: the next leader begins a new epoch before them (KIP-101).
"""

from __future__ import annotations

import signal

import pytest

from kafkacodec.client import Admin
from kafkacodec.log import Partition
from kafkacodec.spark.errors import OptionError
from tests.integration import kafka_jvm
from tests.integration.kafka_cluster import Cluster
from tests.patience import eventually
from tests.stream_query import Query

pytestmark = [pytest.mark.java, pytest.mark.slow]


@pytest.fixture
def cluster(tmp_path):
    settings = {
        "log_segment_bytes": "200000",
        **kafka_jvm.SOON_BACK,
        "replica_high_watermark_checkpoint_interval_ms": "500",
    }
    cluster = Cluster(tmp_path, 3, **settings)
    cluster.start()
    yield cluster
    cluster.kill_all()


def log_of(broker):
    return Partition(broker.logs / "orders-0")


def leads(broker, epochs):
    """Whether the broker has written as a leader of so many epochs; followers write the epoch when they fetch it."""
    known = log_of(broker).leader_epochs
    return len(known) >= epochs and log_of(broker).end_offset() > known[-1].start_offset + 50


def test_a_leader_that_is_killed_truncates_its_log(cluster, tmp_path):
    kafka_jvm.create_topic(cluster.servers, "orders", 1, 3)
    load = ("load", cluster.servers, "orders", 1, 1000, "1")
    producer = kafka_jvm.background(*load, output=tmp_path / "acknowledged")
    try:
        eventually(lambda: all(leads(broker, 1) for broker in cluster.brokers))
        victim, others = stop_all_but_the_leader(cluster)
        read = Query(victim.logs, subscribe="orders")
        beyond = Query(victim.logs, subscribe="orders", endAt="logEnd")
        committed, phantoms = rows(read), rows(beyond)
        assert 0 < len(committed) < len(phantoms)
        at = beyond.at
        cluster.kill(victim)
        for broker in others:
            broker.signal(signal.SIGCONT)
        eventually(lambda: any(leads(broker, 2) for broker in others))
        cluster.start()
        eventually(lambda: leads(victim, 2))
        producer.communicate(b"stop", timeout=60)
    finally:
        producer.kill()
        producer.wait()
    consumed = [
        (record.offset, record.value)
        for record in kafka_jvm.records(kafka_jvm.tool("consume", cluster.servers, "orders", 1, "read_uncommitted"))
    ]
    eventually(lambda: (log_of(victim).high_watermark or 0) == len(consumed))

    cut = log_of(victim).leader_epochs[1].start_offset
    assert committed[-1][0] < cut < phantoms[-1][0] + 1
    assert phantoms[cut:] != consumed[cut : len(phantoms)]
    assert committed + rows(read) == consumed  # up to the high watermark: what a consumer reads
    with pytest.raises(OptionError) as raised:
        beyond.plan()
    assert str(raised.value) == (
        f"failOnDataLoss: orders-0, which was read up to offset {len(phantoms)}, was truncated at offset {cut}; "
        f"with failOnDataLoss=false reading continues at offset {cut}"
    )
    lenient = Query(victim.logs, at, subscribe="orders", endAt="logEnd", failOnDataLoss="false")
    assert rows(lenient) == consumed[cut:]


def rows(query):
    return [(row["offset"], row["value"]) for row in query.rows(query.plan())]


def stop_all_but_the_leader(cluster):
    """Stop the followers, so that the leader gets records that nobody fetches; returns it, and the others."""
    with Admin(cluster.servers) as admin:
        leader = admin.describe_topics("orders")["orders"].partitions[0].leader
    victim = cluster.brokers[leader - 1]
    others = [broker for broker in cluster.brokers if broker is not victim]
    eventually(lambda: log_of(victim).high_watermark)
    for broker in others:
        broker.signal(signal.SIGSTOP)
    before = log_of(victim).end_offset()
    eventually(lambda: log_of(victim).end_offset() > before + 200)
    return victim, others
