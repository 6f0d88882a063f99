"""Records that applications send one by one, with a broker, in the shapes that they have.

    python -m benchmarks.live_sends CLIENT SHAPE HOST:PORT TOPIC

prints what `live_clients` prints. Every record is acknowledged by all replicas; who counts the topic's records later
knows that all of them are there. `live_limits.KEEPING` sends nothing: it is what the calls cost alone.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
import threading
from collections.abc import Callable
from typing import Any

from benchmarks import compiled
from benchmarks.live_clients import LINGER_MS, Stopwatch, key, some_value
from benchmarks.live_limits import KEEPING, keeper

SHAPES = ("value", "key", "headers", "callback", "8 threads")
THREADS = 8
HEADERS = [("trace", b"0123456789abcdef"), ("kind", b"test")]
COUNTS = {"kafkacodec": 300_000, "confluent-kafka": 300_000, "aiokafka": 60_000, KEEPING: 300_000}

Send = Callable[[int], object]


def timed(sends: dict[str, Send], flush: Callable[[], object], shape: str, count: int) -> None:
    """Send so many records of a shape, wait for all of them, and print how long it took."""
    send = sends[shape]

    def some(numbers: range) -> None:
        for number in numbers:
            send(number)

    watch = Stopwatch()
    if shape == "8 threads":
        threads = [threading.Thread(target=some, args=(range(n, count, THREADS),)) for n in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    else:
        some(range(count))
    flush()
    watch.stop(count)


def kafkacodec(server: str, topic: str, shape: str, count: int) -> None:
    import kafkacodec as kc

    value, called = some_value(), itertools.count()

    def known(*_: object) -> None:
        next(called)

    with kc.client.Producer(bootstrap_servers=server, linger_ms=LINGER_MS) as producer:
        send = producer.send
        send(topic, b"").result()
        timed(shaped(send, topic, value, known), producer.flush, shape, count)
    assert next(called) == (count if shape == "callback" else 0)


def shaped(send: Callable[..., Any], topic: str, value: bytes, known: Callable[..., None]) -> dict[str, Send]:
    """How each shape is sent with a method such as `Producer.send`."""
    return {
        "value": lambda i: send(topic, value),
        "key": lambda i: send(topic, value, key=key(i)),
        "headers": lambda i: send(topic, value, key=key(i), headers=HEADERS),
        "callback": lambda i: send(topic, value, key=key(i)).add_done_callback(known),
        "8 threads": lambda i: send(topic, value, key=key(i)),
    }


def kept(_server: str, topic: str, shape: str, count: int) -> None:
    """The calls alone: nothing is sent."""
    keeps = keeper()
    timed(shaped(keeps.send, topic, some_value(), print), keeps.flush, shape, count)


def confluent(server: str, topic: str, shape: str, count: int) -> None:
    from confluent_kafka import Producer

    value, called = some_value(), itertools.count()

    def known(*_: object) -> None:
        next(called)

    settings = {"linger.ms": LINGER_MS, "queue.buffering.max.messages": 1_000_000}
    producer = Producer({"bootstrap.servers": server, **settings})
    send, poll = producer.produce, producer.poll
    send(topic, b"")
    producer.flush(60)

    def with_callback(i: int) -> None:
        send(topic, value, key=key(i), on_delivery=known)
        poll(0)

    sends: dict[str, Send] = {
        "value": lambda i: send(topic, value),
        "key": lambda i: send(topic, value, key=key(i)),
        "headers": lambda i: send(topic, value, key=key(i), headers=HEADERS),
        "callback": with_callback,
        "8 threads": lambda i: send(topic, value, key=key(i)),
    }
    timed(sends, lambda: producer.flush(60), shape, count)
    assert len(producer) == 0
    assert next(called) == (count if shape == "callback" else 0)


def aiokafka(server: str, topic: str, shape: str, count: int) -> None:
    from aiokafka import AIOKafkaProducer

    async def main() -> None:
        value, called = some_value(), itertools.count()

        def known(_: object) -> None:
            next(called)

        producer = AIOKafkaProducer(bootstrap_servers=server, linger_ms=LINGER_MS, acks="all")
        await producer.start()
        await producer.send_and_wait(topic, b"")
        headers = HEADERS if shape == "headers" else None
        watch = Stopwatch()
        for i in range(count):
            future = await producer.send(topic, value, None if shape == "value" else key(i), headers=headers)
            if shape == "callback":
                future.add_done_callback(known)
        await producer.flush()
        watch.stop(count)
        await producer.stop()
        assert next(called) == (count if shape == "callback" else 0)

    asyncio.run(main())


CLIENTS = {"kafkacodec": kafkacodec, "confluent-kafka": confluent, "aiokafka": aiokafka, KEEPING: kept}


def has(client: str, shape: str) -> bool:
    """Whether a client can do it: coroutines are of one thread, and the limit needs a compiler."""
    if client == KEEPING and compiled.absent():
        return False
    return (client, shape) != ("aiokafka", "8 threads")


if __name__ == "__main__":
    _, client, shape, server, topic = sys.argv
    CLIENTS[client](server, topic, shape, COUNTS[client])
