"""Calls that wait for a broker one after the other: records that are sent, offsets and transactions committed.

    python -m benchmarks.live_waits CLIENT WORK HOST:PORT TOPIC

prints what `live_clients` prints. "commit" works read a filled topic of one partition. A transaction has ten records.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from benchmarks import live_limits
from benchmarks.live_clients import LINGER_MS, Stopwatch, some_value

WORKS = ("send and wait", "commit and wait", "commit", "transaction")
COUNT, WARM_UP = 2000, 200
TRANSACTION_RECORDS = 10

Work = Callable[[str, str], None]


def timed(calls: Iterator[object], over: Callable[[], object] = lambda: None) -> None:
    """Print how long it takes to make so many calls, after some that are not measured."""
    for _ in islice(calls, WARM_UP):
        pass
    watch = Stopwatch()
    for _ in islice(calls, COUNT):
        pass
    over()
    watch.stop(COUNT)


def _group() -> str:
    return f"waits-{time.time_ns()}"


def send(server: str, topic: str) -> None:
    import kafkacodec as kc

    value = some_value()
    with kc.client.Producer(bootstrap_servers=server, linger_ms=0) as producer:
        timed(iter(lambda: producer.send(topic, value).result(), None))


def commit(server: str, topic: str, wait: bool = True) -> None:
    import kafkacodec as kc

    options: dict[str, Any] = {"auto_offset_reset": "earliest", "enable_auto_commit": False}
    with kc.client.Consumer(topic, bootstrap_servers=server, group_id=_group(), **options) as consumer:
        records = iter(consumer)

        def one() -> None:
            consumer.commit({(topic, 0): next(records).offset + 1}, wait=wait)

        timed(iter(one, 0), lambda: consumer.commit({}))
        assert consumer.committed(topic, 0) == COUNT + WARM_UP


def transactions(server: str, topic: str) -> Iterator[None]:
    """A transaction for each item."""
    import kafkacodec as kc

    value = some_value()
    options: dict[str, Any] = {"transactional_id": _group(), "linger_ms": LINGER_MS}
    with kc.client.Producer(bootstrap_servers=server, **options) as producer:
        producer.init_transactions()
        while True:
            producer.begin_transaction()
            for _ in range(TRANSACTION_RECORDS):
                producer.send(topic, value)
            producer.commit_transaction()
            yield


def transactions_confluent(server: str, topic: str) -> Iterator[None]:
    """As `transactions`."""
    from confluent_kafka import Producer

    value = some_value()
    producer = Producer({"bootstrap.servers": server, "transactional.id": _group(), "linger.ms": LINGER_MS})
    producer.init_transactions(60)
    while True:
        producer.begin_transaction()
        for _ in range(TRANSACTION_RECORDS):
            producer.produce(topic, value)
        producer.commit_transaction(60)
        yield


def send_confluent(server: str, topic: str) -> None:
    from confluent_kafka import Producer

    value = some_value()
    producer = Producer({"bootstrap.servers": server, "linger.ms": 0})

    def one() -> None:
        producer.produce(topic, value)
        assert producer.flush(60) == 0

    timed(iter(one, 0))


def commit_confluent(server: str, topic: str, wait: bool = True) -> None:
    from confluent_kafka import Consumer, TopicPartition

    options = {"auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = Consumer({"bootstrap.servers": server, "group.id": _group(), **options})
    consumer.subscribe([topic])

    def one() -> None:
        message: Any = None
        while message is None:
            message = consumer.poll(10)
        consumer.commit(offsets=[TopicPartition(topic, 0, message.offset() + 1)], asynchronous=not wait)

    def over() -> None:
        end = TopicPartition(topic, 0, COUNT + WARM_UP)
        consumer.commit(offsets=[end], asynchronous=False)

    timed(iter(one, 0), over)
    (place,) = consumer.committed([TopicPartition(topic, 0)], 30)
    assert place.offset == COUNT + WARM_UP
    consumer.close()


async def _timed(one: Callable[[], Any]) -> None:
    for _ in range(WARM_UP):
        await one()
    watch = Stopwatch()
    for _ in range(COUNT):
        await one()
    watch.stop(COUNT)


def send_aiokafka(server: str, topic: str) -> None:
    from aiokafka import AIOKafkaProducer

    async def main() -> None:
        value = some_value()
        producer = AIOKafkaProducer(bootstrap_servers=server, linger_ms=0, acks="all")
        await producer.start()
        await _timed(lambda: producer.send_and_wait(topic, value))
        await producer.stop()

    asyncio.run(main())


def transactions_aiokafka(server: str, topic: str) -> None:
    from aiokafka import AIOKafkaProducer

    async def main() -> None:
        value = some_value()
        producer = AIOKafkaProducer(bootstrap_servers=server, transactional_id=_group(), linger_ms=LINGER_MS)
        await producer.start()

        async def one() -> None:
            async with producer.transaction():
                for _ in range(TRANSACTION_RECORDS):
                    await producer.send(topic, value)

        await _timed(one)
        await producer.stop()

    asyncio.run(main())


def commit_aiokafka(server: str, topic: str) -> None:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    async def main() -> None:
        options: dict[str, Any] = {"auto_offset_reset": "earliest", "enable_auto_commit": False}
        consumer = AIOKafkaConsumer(topic, bootstrap_servers=server, group_id=_group(), **options)
        await consumer.start()
        place = TopicPartition(topic, 0)

        async def one() -> None:
            record = await consumer.getone()
            await consumer.commit({place: record.offset + 1})

        await _timed(one)
        assert await consumer.committed(place) == COUNT + WARM_UP
        await consumer.stop()

    asyncio.run(main())


def send_alone(server: str, topic: str) -> None:
    with live_limits.requests(server, topic) as ask:
        timed(iter(ask, 0))


def send_on_a_loop(server: str, topic: str) -> None:
    async def main() -> None:
        async with live_limits.requests_of_loop(server, topic) as ask:
            await _timed(ask)

    asyncio.run(main())


CLIENTS: dict[str, dict[str, Work]] = {
    "kafkacodec": {
        "send and wait": send,
        "commit and wait": commit,
        "commit": lambda server, topic: commit(server, topic, wait=False),
        "transaction": lambda server, topic: timed(transactions(server, topic)),
    },
    "confluent-kafka": {
        "send and wait": send_confluent,
        "commit and wait": commit_confluent,
        "commit": lambda server, topic: commit_confluent(server, topic, wait=False),
        "transaction": lambda server, topic: timed(transactions_confluent(server, topic)),
    },
    "aiokafka": {
        "send and wait": send_aiokafka,
        "commit and wait": commit_aiokafka,
        "transaction": transactions_aiokafka,
    },
    live_limits.ONE_THREAD: {"send and wait": send_alone},
    live_limits.ON_A_LOOP: {"send and wait": send_on_a_loop},
}


if __name__ == "__main__":
    _, client, work, server, topic = sys.argv
    CLIENTS[client][work](server, topic)
