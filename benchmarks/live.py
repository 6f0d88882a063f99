"""The client beside its peers, with a broker: records per second of the client's processor time, and by the clock.

Each client runs in a process of its own, in turns with the others; the broker has the other processor. All consume the
same topic, which confluent-kafka has filled, and produce to topics of one partition.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks import live_clients, live_latency, live_sends, live_standing, live_waits, programs
from benchmarks.contest import Measured

CODECS = ("none", "lz4")
WALL = ", wall clock"
SLOW = ", 99 of 100"
SECONDS = 300


def contest_name(work: str, codec: str) -> str:
    """The name of the contest by processor time; with `WALL` that by the clock."""
    return f"live, {work}, {codec}"


def run(rounds: int, note: Callable[[str], None]) -> dict[str, Measured]:
    """The rates of each client in its best round, for each work and codec, by processor time and by the clock."""
    results: dict[str, Measured] = {}
    everyone = list(live_clients.WORK)
    if programs.FRANZ_GO.absent:
        note(programs.FRANZ_GO.absent)
        everyone.remove(programs.FRANZ_GO.name)
    else:
        programs.FRANZ_GO.build()
    with broker() as server:
        for codec in CODECS:
            fill(server, f"filled-{codec}", codec)
            for work in ("consume", "produce"):
                name = contest_name(work, codec)
                for number, client in in_turns(results, name, rounds, everyone):
                    topic = f"filled-{codec}" if work == "consume" else f"made-{codec}-{number}-{len(client)}"
                    keep(results, name, client, measured(client, work, server, topic, codec))
                note(name)
        for shape in live_sends.SHAPES:
            clients = [client for client in live_sends.CLIENTS if live_sends.has(client, shape)]
            name, place = sends_name(shape), f"sent-{live_sends.SHAPES.index(shape)}"
            for number, client in in_turns(results, name, rounds, clients):
                topic = f"{place}-{number}-{client}"
                rates = rates_of("live_sends", client, shape, server, topic)
                check_filled(server, topic, live_sends.COUNTS[client] + 1)
                keep(results, name, client, rates)
            note(name)
        for work in live_waits.WORKS:
            clients = [client for client, works in live_waits.CLIENTS.items() if work in works]
            for number, client in in_turns(results, waits_name(work), rounds, clients):
                topic = "filled-none" if work.startswith("commit") else f"waited-{work[:4]}-{number}-{client}"
                keep(results, waits_name(work), client, rates_of("live_waits", client, work, server, topic))
            note(waits_name(work))
        for load in live_latency.LOADS:
            for number, client in in_turns(results, latency_name(load), rounds, live_latency.clients_of(load), SLOW):
                topic = f"latency-{live_latency.LOADS.index(load)}-{number}-{client.replace(', ', '-')}"
                _, half, most = printed("live_latency", client, load, server, topic)
                keep(results, latency_name(load), client, (1 / half, 1 / most), SLOW)
            note(latency_name(load))
        standing(results, rounds, server, note)
    return results


def standing(results: dict[str, Measured], rounds: int, server: str, note: Callable[[str], None]) -> None:
    """The contests of many partitions: the memory while they are read."""
    for work, partitions in live_standing.PARTITIONS.items():
        topic = f"standing-{partitions}"
        create(server, topic, partitions)
        fill(server, topic, "none")
        for _, client in in_turns(results, standing_name(work), rounds, live_standing.clients_of(work)):
            keep(results, standing_name(work), client, rates_of("live_standing", client, work, server, topic))
        note(standing_name(work))


def in_turns(
    results: dict[str, Measured], name: str, rounds: int, clients: list[str], other: str = WALL
) -> Iterator[tuple[int, str]]:
    """The number of each round with each client, for a new contest and the one with the `other` rates."""
    results[name], results[name + other] = Measured("records"), Measured("records")
    return ((number, client) for number in range(rounds) for client in clients)


def keep(results: dict[str, Measured], name: str, client: str, rates: tuple[float, float], other: str = WALL) -> None:
    """Keep the rates of a round, by processor time and by the clock; or those of the contest with the `other` ones."""
    for contest, rate in zip((name, name + other), rates, strict=True):
        results[contest].add(client, rate)


def waits_name(work: str) -> str:
    """The name of the contest of calls one after the other."""
    return f"live, one after the other, {work}"


def latency_name(load: str) -> str:
    """The name of the contest of latencies, by 1 / the median; with `SLOW` by 1 / what 99 of 100 need at most."""
    return f"live, latency, {load}"


def standing_name(work: str) -> str:
    """The name of a contest of many partitions, by records for each MiB of memory; with `WALL` for each second."""
    return f"live, {work}"


def sends_name(shape: str) -> str:
    """The name of the contest of records that are sent one by one."""
    return f"live, send, {shape}"


def measured(client: str, work: str, server: str, topic: str, codec: str) -> tuple[float, float]:
    """Records per second of one run: by processor time, by the clock."""
    return rates_of("live_clients", client, work, server, topic, codec)


def rates_of(module: str, *arguments: str) -> tuple[float, float]:
    """Records per second of a program of this directory: by processor time, by the clock."""
    count, processor, wall = printed(module, *arguments)
    return count / processor, count / wall


def printed(module: str, *arguments: str) -> tuple[float, float, float]:
    """The three numbers that a program of this directory prints."""
    command = [sys.executable, "-m", f"benchmarks.{module}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode:
        raise RuntimeError(f"{', '.join(arguments)}: {done.stderr[-2000:]}")
    first, second, third = map(float, done.stdout.split())
    return first, second, third


def check_filled(server: str, topic: str, records: int) -> None:
    """Raise RuntimeError if a topic of one partition does not have so many records."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": server, "group.id": "unused"})
    first, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)
    consumer.close()
    if (first, end) != (0, records):
        raise RuntimeError(f"{topic} has the offsets {first} to {end}, not {records} records")


def create(server: str, topic: str, partitions: int) -> None:
    """Create a topic with so many partitions."""
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": server})
    admin.create_topics([NewTopic(topic, partitions)], request_timeout=120)[topic].result(SECONDS)


def fill(server: str, topic: str, codec: str) -> None:
    """Produce what all consumers read, in batches of 16 KiB, the size of Java's producer."""
    from confluent_kafka import Producer

    settings = {"compression.type": codec, "linger.ms": 100, "batch.size": 16384}
    producer = Producer({"bootstrap.servers": server, **settings, "queue.buffering.max.messages": 1_000_000})
    values = [live_clients.some_value() for _ in range(1000)]
    for i in range(live_clients.FILLED):
        producer.produce(topic, values[i % 1000], key=live_clients.key(i))
        if i % 10_000 == 0:
            while len(producer) > 500_000:
                producer.poll(0.1)
    if producer.flush(120):
        raise RuntimeError(f"{topic} could not be filled")


@contextmanager
def broker() -> Iterator[str]:
    """Host and port of a broker of its own, with topics of one partition."""
    from tests.integration.kafka_jvm import Broker

    with tempfile.TemporaryDirectory() as directory:
        made = Broker(Path(directory), "newest", num_partitions="1")
        made.start()
        try:
            yield made.server
        finally:
            made.stop()
