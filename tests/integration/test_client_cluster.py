"""A client of three brokers that are killed and started again under load: nothing is lost, nothing is there twice.

The short form takes about a minute. KAFKACODEC_LONG=1 kills for ten minutes (make cluster-proof).
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kafkacodec as kc
from tests.integration import kafka_jvm
from tests.integration.kafka_cluster import Cluster

pytestmark = [pytest.mark.java, pytest.mark.slow]

KILLS = 60 if os.environ.get("KAFKACODEC_LONG") else 3
PARTITIONS = 3
SETTINGS = {
    # A killed broker loses its partitions after three seconds instead of nine.
    "broker_session_timeout_ms": "3000",
    "broker_heartbeat_interval_ms": "500",
    "replica_lag_time_max_ms": "3000",
    "min_insync_replicas": "2",
    "offsets_topic_replication_factor": "3",
    "transaction_state_log_replication_factor": "3",
    "transaction_state_log_min_isr": "2",
    "group_initial_rebalance_delay_ms": "0",
}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path / "cluster", 3, **SETTINGS)
    cluster.start()
    yield cluster
    for broker in cluster.brokers:
        cluster.kill(broker)


async def kill_brokers(cluster: Cluster, load: asyncio.Task[Any], seed: int = 1) -> None:
    """Kill one broker after the other while the load runs, and start each again a little later."""
    rnd = random.Random(seed)
    for number in range(KILLS):
        await asyncio.sleep(rnd.uniform(1, 3))
        broker = cluster.brokers[number % len(cluster.brokers)]
        await asyncio.to_thread(cluster.kill, broker)
        await asyncio.sleep(rnd.uniform(3, 6))
        await asyncio.to_thread(cluster.start)
        if load.done():
            return
    await asyncio.sleep(3)


def consumed(cluster: Cluster, topic: str, isolation: str = "read_uncommitted") -> list[list[tuple[int, bytes]]]:
    """Offset and value of the records of each partition, as Kafka's consumer reads them."""
    rows: list[list[tuple[int, bytes]]] = [[] for _ in range(PARTITIONS)]
    for record in kafka_jvm.records(kafka_jvm.tool("consume", cluster.servers, topic, PARTITIONS, isolation)):
        rows[record.source].append((record.offset, record.value or b""))
    return rows


async def produce(servers: str, stop: asyncio.Event, deliveries: list[list[Any]]) -> None:
    """Send numbered records to each partition until told to stop."""
    async with kc.client.aio.Producer(servers, linger_ms=20, delivery_timeout_ms=90_000) as producer:
        number = 0
        while not stop.is_set():
            for partition in range(PARTITIONS):
                value = b"%d" % number
                deliveries[partition].append(await producer.send("orders", value, partition=partition))
            number += 1
            if number % 10 == 0:
                await asyncio.sleep(0.01)
        await producer.flush()
        assert producer.metrics()["producer.retries"] > 0  # the kills were noticed


def test_a_producer_loses_nothing_and_writes_nothing_twice(cluster: Cluster) -> None:
    kafka_jvm.tool("create", cluster.servers, "orders", PARTITIONS, 3)
    deliveries: list[list[Any]] = [[] for _ in range(PARTITIONS)]

    async def main() -> None:
        stop = asyncio.Event()
        load = asyncio.create_task(produce(cluster.servers, stop, deliveries))
        await kill_brokers(cluster, load)
        stop.set()
        await load

    asyncio.run(main())
    rows = consumed(cluster, "orders")
    for partition, sent in enumerate(deliveries):
        assert len(sent) > 1000
        assert [delivery.error for delivery in sent] == [None] * len(sent)
        assert [value for _, value in rows[partition]] == [b"%d" % number for number in range(len(sent))]
        assert [offset for offset, _ in rows[partition]] == [delivery.offset for delivery in sent]
