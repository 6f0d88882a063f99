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
}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path / "cluster", 3, **SETTINGS)
    cluster.start()
    yield cluster
    for broker in cluster.brokers:
        cluster.kill(broker)


async def kill_brokers(cluster: Cluster, load: asyncio.Future[Any], seed: int = 1) -> None:
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


class Load:
    """Producers and a group of consumers at work, and what came of it.

    Attributes:
        deliveries: of "orders", by partition.
        committed: the values of committed transactions in "ledger", by partition; the others were aborted.
        seen: what members of the group read: values by topic, partition and offset.
    """

    def __init__(self, servers: str) -> None:
        self.servers = servers
        self.stop = asyncio.Event()
        self.drained = asyncio.Event()
        self.deliveries: list[list[Any]] = [[] for _ in range(PARTITIONS)]
        self.committed: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
        self.seen: dict[tuple[str, int, int], bytes] = {}
        self.aborted = self.rebalances = 0

    async def produce(self) -> None:
        """Send numbered records to each partition of "orders"."""
        options: Any = {"linger_ms": 20, "delivery_timeout_ms": 90_000}
        async with kc.client.aio.Producer(self.servers, **options) as producer:
            number = 0
            while not self.stop.is_set():
                for partition in range(PARTITIONS):
                    delivery = await producer.send("orders", b"%d" % number, partition=partition)
                    self.deliveries[partition].append(delivery)
                number += 1
                if number % 10 == 0:
                    await asyncio.sleep(0.01)
            await producer.flush()
            assert producer.metrics()["producer.retries"] > 0  # the kills were noticed

    async def transact(self) -> None:
        """Write transactions over all partitions of "ledger", and abort every third of them."""
        options: Any = {"transactional_id": "writer", "max_block_ms": 90_000}
        async with kc.client.aio.Producer(self.servers, **options) as producer:
            await producer.init_transactions()
            number = 0
            while not self.stop.is_set():
                number += 1
                values = [b"%d %d" % (number, n) for n in range(5)]
                try:
                    async with producer.transaction():
                        for value in values:
                            for partition in range(PARTITIONS):
                                await producer.send("ledger", value, partition=partition)
                        if number % 3 == 0:
                            raise Unwanted
                except Unwanted:
                    self.aborted += 1
                    continue
                for partition in range(PARTITIONS):
                    self.committed[partition] += values

    async def consume(self, end: asyncio.Event) -> None:
        """A member of the group, until the event."""

        def assigned(partitions: Any) -> None:
            self.rebalances += 1

        consumer = kc.client.aio.Consumer(
            bootstrap_servers=self.servers, group_id="readers", auto_offset_reset="earliest",
            isolation_level="read_committed", auto_commit_interval_ms=500,
            partition_assignment_strategy="cooperative-sticky", session_timeout_ms=6000, heartbeat_interval_ms=1000,
        )  # fmt: skip
        async with consumer:
            await consumer.subscribe(["orders", "ledger"], on_assigned=assigned)
            while not end.is_set():
                for (topic, partition), records in (await consumer.getmany(0.2, 5000)).items():
                    for record in records:
                        known = self.seen.setdefault((topic, partition, record.offset), record.value or b"")
                        assert known == record.value

    async def come_and_go(self) -> None:
        """Another member, again and again, so that the group rebalances meanwhile."""
        while not self.stop.is_set():
            end = asyncio.Event()
            member = asyncio.create_task(self.consume(end))
            await asyncio.wait([member, asyncio.create_task(self.stop.wait())], timeout=5)
            end.set()
            await member
            await asyncio.sleep(2)

    def is_drained(self) -> bool:
        """Whether the group has seen as many records as were written."""
        written = sum(map(len, self.deliveries)) + sum(map(len, self.committed))
        return len(self.seen) >= written

    async def run(self, cluster: Cluster) -> None:
        """All of it, while brokers are killed."""
        writers = [asyncio.create_task(work()) for work in (self.produce, self.transact, self.come_and_go)]
        members = [asyncio.create_task(self.consume(self.drained)) for _ in range(2)]
        await kill_brokers(cluster, asyncio.gather(*writers))
        self.stop.set()
        await asyncio.gather(*writers)
        for _ in range(600):
            if self.is_drained() or any(member.done() for member in members):
                break
            await asyncio.sleep(0.1)
        self.drained.set()
        await asyncio.gather(*members)


class Unwanted(Exception):
    """Aborts a transaction."""


def test_nothing_is_lost_and_nothing_is_there_twice(cluster: Cluster) -> None:
    """All acknowledged records are in order, once; read_committed sees the committed transactions and no others."""
    for topic in ("orders", "ledger"):
        kafka_jvm.tool("create", cluster.servers, topic, PARTITIONS, 3)

    async def main() -> Load:
        load = Load(cluster.servers)
        await load.run(cluster)
        return load

    load = asyncio.run(main())
    orders, ledger = consumed(cluster, "orders"), consumed(cluster, "ledger", "read_committed")
    for partition, sent in enumerate(load.deliveries):
        assert len(sent) > 1000
        assert [delivery.error for delivery in sent] == [None] * len(sent)
        assert [value for _, value in orders[partition]] == [b"%d" % number for number in range(len(sent))]
        assert [offset for offset, _ in orders[partition]] == [delivery.offset for delivery in sent]
        assert len(load.committed[partition]) > 100
        assert [value for _, value in ledger[partition]] == load.committed[partition]
    assert load.aborted > 5
    assert load.rebalances > KILLS
    written = [("orders", orders), ("ledger", ledger)]
    assert load.seen == {
        (topic, partition, offset): value
        for topic, partitions in written
        for partition, rows in enumerate(partitions)
        for offset, value in rows
    }
