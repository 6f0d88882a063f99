"""A client of three brokers that are killed and started again under load: nothing is lost, nothing is there twice.

The short form takes about a minute. KAFKACODEC_LONG=1 kills for 40 minutes, brokers of each release (make
cluster-proof).
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Iterator
from typing import Any

import pytest

import kafkacodec as kc
from tests.integration import kafka_jvm
from tests.integration.kafka_cluster import Cluster
from tests.integration.kafka_jars import RELEASES
from tests.integration.kafka_jvm import SOON_BACK, Broker
from tests.patience import until

pytestmark = [pytest.mark.java, pytest.mark.slow]

LONG = bool(os.environ.get("KAFKACODEC_LONG"))
KILLS = 60 if LONG else 2
COORDINATOR_KILLS = 20 if LONG else 2
COORDINATED = ("__transaction_state", "__consumer_offsets")
PARTITIONS = 3
PATIENCE = 120  # seconds, for clients that wait for brokers themselves
# Records in each partition of a topic.
LEAST, LEAST_COMMITTED = 1000, 100
SETTINGS = {
    **SOON_BACK,
    "replica_lag_time_max_ms": "3000",
    "min_insync_replicas": "2",
    "offsets_topic_replication_factor": "3",
    "transaction_state_log_replication_factor": "3",
    "transaction_state_log_min_isr": "2",
}


@pytest.fixture(scope="module", params=RELEASES if LONG else ["newest"])
def brokers(request: Any, tmp_path_factory: Any) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("cluster"), 3, release=request.param, **SETTINGS)
    yield cluster
    cluster.kill_all()


@pytest.fixture
def cluster(brokers: Cluster) -> Cluster:
    """All of the three brokers run."""
    brokers.start()
    return brokers


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
                await asyncio.sleep(0.005)
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

    def is_enough(self) -> bool:
        """Whether there is enough of everything to compare."""
        few = min(map(len, self.deliveries)) <= LEAST or min(map(len, self.committed)) <= LEAST_COMMITTED
        return not few and self.aborted > 5 and self.rebalances > KILLS

    def is_drained(self) -> bool:
        """Whether the group has seen as many records as were written."""
        written = sum(map(len, self.deliveries)) + sum(map(len, self.committed))
        return len(self.seen) >= written

    async def run(self, cluster: Cluster) -> None:
        """All of it, while brokers are killed."""
        writers = [asyncio.create_task(work()) for work in (self.produce, self.transact, self.come_and_go)]
        members = [asyncio.create_task(self.consume(self.drained)) for _ in range(2)]
        writing = asyncio.gather(*writers)
        await kill_brokers(cluster, writing)
        before = len(self.committed[0])
        await until(lambda: writing.done() or (self.is_enough() and len(self.committed[0]) > before), PATIENCE)
        self.stop.set()
        await writing
        await until(lambda: self.is_drained() or any(member.done() for member in members), PATIENCE)
        self.drained.set()
        await asyncio.gather(*members)


class Unwanted(Exception):
    """Aborts a transaction."""


def test_nothing_is_lost_and_nothing_is_there_twice(cluster: Cluster) -> None:
    """All acknowledged records are in order, once; read_committed sees the committed transactions and no others."""
    for topic in ("orders", "ledger"):
        kafka_jvm.create_topic(cluster.servers, topic, PARTITIONS, 3)

    async def main() -> Load:
        load = Load(cluster.servers)
        await load.run(cluster)
        return load

    load = asyncio.run(main())
    orders, ledger = consumed(cluster, "orders"), consumed(cluster, "ledger", "read_committed")
    for partition, sent in enumerate(load.deliveries):
        assert len(sent) > LEAST
        assert [delivery.error for delivery in sent] == [None] * len(sent)
        assert [value for _, value in orders[partition]] == [b"%d" % number for number in range(len(sent))]
        assert [offset for offset, _ in orders[partition]] == [delivery.offset for delivery in sent]
        assert len(load.committed[partition]) > LEAST_COMMITTED
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


class Copying:
    """Members of a group copy "source" to "target": each transaction has records and the positions after them.

    Attributes:
        sent: how many records each partition of "source" has.
        done: how many each partition of "target" has for certain.
        aborted: the transactions that were to be aborted.
        failed: why others were.
    """

    def __init__(self, servers: str) -> None:
        self.servers = servers
        self.stop, self.end = asyncio.Event(), asyncio.Event()
        self.sent, self.done = [0] * PARTITIONS, [0] * PARTITIONS
        self.committed = self.aborted = 0
        self.failed: list[Exception] = []

    async def feed(self) -> None:
        """Write numbers to each partition of "source"."""
        async with kc.client.aio.Producer(self.servers, delivery_timeout_ms=90_000) as producer:
            deliveries = []
            while not self.stop.is_set():
                for partition in range(PARTITIONS):
                    deliveries.append(await producer.send("source", b"%d" % self.sent[partition], partition=partition))
                    self.sent[partition] += 1
                await asyncio.sleep(0.01)
            await producer.flush()
            assert [delivery.error for delivery in deliveries] == [None] * len(deliveries)

    async def copy(self, name: str) -> None:
        """A member of the group, with its producer."""
        reading: Any = {"group_id": "copying", "auto_offset_reset": "earliest", "enable_auto_commit": False}
        # Who takes over a partition waits for the transaction that may still commit a position in it.
        reading["isolation_level"] = "read_committed"
        writing: Any = {"transactional_id": name, "max_block_ms": 90_000, "delivery_timeout_ms": 90_000}
        async with (
            kc.client.aio.Consumer("source", bootstrap_servers=self.servers, **reading) as consumer,
            kc.client.aio.Producer(self.servers, **writing) as producer,
        ):
            number = 0
            while not self.end.is_set():
                found = await consumer.getmany(0.2, 50)
                if not found:
                    continue
                number += 1
                ends = {place: records[-1].offset + 1 for place, records in found.items()}
                try:
                    async with producer.transaction():
                        for (_, partition), records in found.items():
                            for record in records:
                                await producer.send("target", record.value, partition=partition)
                        await producer.send_offsets_to_transaction(ends, consumer.group_metadata())
                        if number % 4 == 0:
                            raise Unwanted
                except Unwanted:
                    self.aborted += 1
                    await self.rewind(consumer, found)
                except kc.LocalProtocolError as error:  # the transaction was aborted
                    self.failed.append(error)
                    await self.rewind(consumer, found)
                else:
                    self.committed += 1
                    committed = await consumer.committed_offsets(found)
                    for (topic, partition), end in ends.items():
                        self.done[partition] = max(self.done[partition], end)
                        position = committed[topic, partition]
                        assert position is not None
                        assert position.offset >= end  # at once, not by the next transaction

    async def rewind(self, consumer: Any, found: Any) -> None:
        """Read again from the committed positions, where the member still has the partitions."""
        committed = await consumer.committed_offsets(found)
        for place in found.keys() & set(consumer.assignment()):
            await consumer.seek(*place, committed[place].offset if committed[place] is not None else 0)

    async def run(self, cluster: Cluster, seed: int = 1) -> None:
        """All of it, while the transaction coordinator and the group coordinator are killed in turns."""
        rnd = random.Random(seed)
        feeding = asyncio.create_task(self.feed())
        members = [asyncio.create_task(self.copy(name)) for name in ("left", "right")]
        tasks = feeding, *members
        await until(lambda: self.committed >= 10 or any(task.done() for task in tasks), PATIENCE)
        all_run(*tasks)
        for number in range(COORDINATOR_KILLS):
            broker = await leader_of(cluster, COORDINATED[number % 2])
            await asyncio.to_thread(cluster.kill, broker)
            await asyncio.sleep(rnd.uniform(3, 6))
            await asyncio.to_thread(cluster.start)
            await asyncio.sleep(rnd.uniform(0.5, 2))
            all_run(*tasks)
        await until(lambda: (min(self.sent) > 100 and self.aborted > 3) or any(task.done() for task in tasks), PATIENCE)
        self.stop.set()
        await feeding
        await until(lambda: self.done == self.sent or any(member.done() for member in members), PATIENCE)
        self.end.set()
        await asyncio.gather(*members)


def all_run(*tasks: asyncio.Task[None]) -> None:
    """Raises what has ended one of them."""
    for task in tasks:
        if task.done():
            raise AssertionError("a member has ended") from task.exception()


async def leader_of(cluster: Cluster, topic: str) -> Broker:
    """The broker that leads the only partition of an internal topic: the coordinator of what is kept there."""
    async with kc.client.aio.Admin(cluster.servers) as admin, asyncio.timeout(60):
        while True:
            leader = (await admin.describe_topics([topic]))[topic].partitions[0].leader
            if leader is not None:
                return cluster.brokers[leader - 1]
            await asyncio.sleep(0.2)


def test_records_and_positions_stay_together_when_coordinators_are_killed(cluster: Cluster) -> None:
    """read_committed sees each record of "source" once, and the group's positions are at its end."""
    for topic in ("source", "target"):
        kafka_jvm.create_topic(cluster.servers, topic, PARTITIONS, 3)

    async def main() -> Copying:
        copying = Copying(cluster.servers)
        await copying.run(cluster)
        return copying

    copying = asyncio.run(main())
    target = consumed(cluster, "target", "read_committed")
    for partition, count in enumerate(copying.sent):
        assert count > 100
        assert [value for _, value in target[partition]] == [b"%d" % number for number in range(count)]
    with kc.client.Admin(cluster.servers) as admin:
        positions = admin.list_group_offsets("copying")
    assert {place: found.offset for place, found in positions.items()} == {
        ("source", partition): count for partition, count in enumerate(copying.sent)
    }
    assert copying.aborted > 3
    written = consumed(cluster, "target")
    assert sum(map(len, written)) > sum(copying.sent)  # what was aborted is there too
