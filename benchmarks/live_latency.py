"""The time from `send` to the acknowledgement, with 1 or 100 records in flight and linger 0; that of transactions.

    python -m benchmarks.live_latency CLIENT LOAD HOST:PORT TOPIC

prints the seconds of each record. A record is sent when another one is acknowledged, so that as many as asked for are
always in flight. All wait for `acks=all`. Transactions are those of `live_waits`, from the call that begins one to the
end of the call that commits it.

Clients of kafkacodec, for threads and for event loops, take uvloop's loop if that is installed: they run on it in a
process that finds the copy in `UVLOOP`, and on asyncio's own in others.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

from benchmarks import live_limits, live_waits
from benchmarks.live_clients import some_value

IN_FLIGHT = {"1 in flight": 1, "100 in flight": 100}
TRANSACTIONS = "transactions"
LOADS = (*IN_FLIGHT, TRANSACTIONS)
COUNT = 3000  # for each that is in flight up to ten; a third of it are transactions
UVLOOP = Path(__file__).parent.parent / ".cache" / "uvloop"
ON_UVLOOP = ", uvloop"

Work = Callable[[str, str, int], list[float]]


def count_of(in_flight: int) -> int:
    """How many records are measured."""
    return COUNT * min(in_flight, 10)


def quantiles(seconds: list[float]) -> tuple[float, float]:
    """The seconds within which half, and 99 of 100, ended."""
    ordered = sorted(seconds)
    return ordered[len(ordered) // 2], ordered[len(ordered) * 99 // 100]


def _blocking(send: Callable[[Callable[[], None]], None], in_flight: int) -> list[float]:
    """Send records, each when one before is acknowledged; `send` gets what to call then."""
    count, seconds, room = count_of(in_flight), list[float](), threading.Semaphore(in_flight)

    def one() -> None:
        room.acquire()
        begun = time.perf_counter()

        def acknowledged() -> None:
            seconds.append(time.perf_counter() - begun)
            room.release()

        send(acknowledged)

    for _ in range(count + count // 10):
        one()
    for _ in range(in_flight):
        room.acquire()
    return seconds[count // 10 :]


async def _in_tasks(send: Callable[[], Coroutine[Any, Any, object]], in_flight: int) -> list[float]:
    """Send records in as many tasks, each of which waits for its own."""
    count, seconds = count_of(in_flight), list[float]()
    numbers: Iterator[int] = iter(range(count + count // 10))

    async def some() -> None:
        for _ in numbers:
            begun = time.perf_counter()
            await send()
            seconds.append(time.perf_counter() - begun)

    await asyncio.gather(*(some() for _ in range(in_flight)))
    return seconds[count // 10 :]


def kafkacodec(server: str, topic: str, in_flight: int) -> list[float]:
    import kafkacodec as kc

    value = some_value()
    with kc.client.Producer(server, linger_ms=0) as producer:
        producer.send(topic, value).result()
        if in_flight > 1:
            return _blocking(lambda call: producer.send(topic, value).add_done_callback(lambda _: call()), in_flight)

        def one(acknowledged: Callable[[], None]) -> None:
            producer.send(topic, value).result()
            acknowledged()

        return _blocking(one, in_flight)


def confluent(server: str, topic: str, in_flight: int) -> list[float]:
    from confluent_kafka import Producer

    value = some_value()
    producer = Producer({"bootstrap.servers": server, "linger.ms": 0})
    producer.produce(topic, value)
    producer.flush(60)
    if in_flight > 1:
        over = threading.Event()

        def serve() -> None:
            while not over.is_set():
                producer.poll(0.1)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            return _blocking(lambda call: producer.produce(topic, value, on_delivery=lambda *_: call()), in_flight)
        finally:
            over.set()
            thread.join()

    def one(acknowledged: Callable[[], None]) -> None:
        producer.produce(topic, value, on_delivery=lambda *_: acknowledged())
        producer.flush(60)

    return _blocking(one, in_flight)


def _run(main: Coroutine[Any, Any, list[float]]) -> list[float]:
    if importlib.util.find_spec("uvloop") is None:
        return asyncio.run(main)
    import uvloop  # type: ignore[import-not-found, unused-ignore]

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)


def kafkacodec_asyncio(server: str, topic: str, in_flight: int) -> list[float]:
    import kafkacodec as kc

    async def main() -> list[float]:
        value = some_value()
        async with kc.client.aio.Producer(server, linger_ms=0) as producer:

            async def send() -> None:
                await (await producer.send(topic, value))

            await send()
            return await _in_tasks(send, in_flight)

    return _run(main())


def aiokafka(server: str, topic: str, in_flight: int) -> list[float]:
    from aiokafka import AIOKafkaProducer

    async def main() -> list[float]:
        value = some_value()
        producer = AIOKafkaProducer(bootstrap_servers=server, linger_ms=0, acks="all")
        await producer.start()
        await producer.send_and_wait(topic, value)
        try:
            return await _in_tasks(lambda: producer.send_and_wait(topic, value), in_flight)
        finally:
            await producer.stop()

    return _run(main())


def one_thread(server: str, topic: str, in_flight: int) -> list[float]:
    with live_limits.requests(server, topic) as ask:

        def one(acknowledged: Callable[[], None]) -> None:
            ask()
            acknowledged()

        return _blocking(one, in_flight)


def on_a_loop(server: str, topic: str, in_flight: int) -> list[float]:
    async def main() -> list[float]:
        async with live_limits.requests_of_loop(server, topic) as ask:

            async def send() -> None:
                await ask()

            return await _in_tasks(send, in_flight)

    return asyncio.run(main())


def _transactions(calls: Callable[[str, str], Iterator[None]], server: str, topic: str) -> list[float]:
    made, seconds, count = calls(server, topic), list[float](), COUNT // 3
    for _ in range(count + count // 10):
        begun = time.perf_counter()
        next(made)
        seconds.append(time.perf_counter() - begun)
    return seconds[count // 10 :]


CLIENTS: dict[str, Work] = {
    "kafkacodec": kafkacodec,
    "kafkacodec.aio": kafkacodec_asyncio,
    "aiokafka": aiokafka,
    "confluent-kafka": confluent,
}
LOOPS = {f"{client}{ON_UVLOOP}": CLIENTS[client] for client in ("kafkacodec", "kafkacodec.aio", "aiokafka")}
ALONE = {live_limits.ONE_THREAD: one_thread, live_limits.ON_A_LOOP: on_a_loop}
"""What clients with one record in flight cannot be without."""
TRANSACTING = {"kafkacodec": live_waits.transactions, "confluent-kafka": live_waits.transactions_confluent}


def clients_of(load: str) -> list[str]:
    """The clients that take part; those on uvloop only if there is a copy of it."""
    if load == TRANSACTIONS:
        return list(TRANSACTING)
    return [*CLIENTS, *(LOOPS if UVLOOP.exists() else ()), *(ALONE if IN_FLIGHT[load] == 1 else ())]


def environment(client: str) -> dict[str, str]:
    """The variables of the environment that the client's process needs."""
    if not client.endswith(ON_UVLOOP):
        return {}
    return {"PYTHONPATH": os.pathsep.join([str(UVLOOP), *filter(None, [os.environ.get("PYTHONPATH")])])}


def measure(client: str, load: str, server: str, topic: str) -> list[float]:
    """The seconds of each record or transaction."""
    if load == TRANSACTIONS:
        return _transactions(TRANSACTING[client], server, topic)
    return {**CLIENTS, **LOOPS, **ALONE}[client](server, topic, IN_FLIGHT[load])


if __name__ == "__main__":
    print(*measure(*sys.argv[1:]))
