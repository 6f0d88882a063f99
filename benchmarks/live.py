"""The client beside its peers, with a broker: records per second of the client's processor time, and by the clock.

Each client runs in a process of its own, in turns with the others; the broker has the other processor. All consume the
same topic, which confluent-kafka has filled, and produce to topics of one partition.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from benchmarks import (
    compiled,
    latencies,
    live_clients,
    live_latency,
    live_limits,
    live_sends,
    live_standing,
    live_waits,
    programs,
)
from benchmarks.contest import Measured
from benchmarks.report import Distributions

CODECS = ("none", "lz4")
WALL = ", wall clock"
SLOW = ", 99 of 100"
SECONDS = 300


def contest_name(work: str, codec: str) -> str:
    """The name of the contest by processor time; with `WALL` that by the clock."""
    return f"live, {work}, {codec}"


class Run:
    """The contests with one broker. `chosen` tells by name which contests are run, `note` gets their names."""

    def __init__(self, server: str, rounds: int, note: Callable[[str], None], chosen: Callable[[str], bool]) -> None:
        self.results: dict[str, Measured] = {}
        self.distributions: Distributions = {}
        self._server, self._rounds, self._note, self._chosen = server, rounds, note, chosen
        self._filled: set[str] = set()

    def of_clients(self, everyone: list[str]) -> None:
        """All records of a topic consumed, and as many produced."""
        for codec in CODECS:
            for work in ("consume", "produce"):
                name, limits = contest_name(work, codec), live_limits.OF_CLIENTS[work]
                for number, client in self._in_turns(name, [*everyone, *limits]):
                    topic = self._topic(codec) if work == "consume" else topic_of(f"made-{codec}", number, client)
                    program = ("live_limits", limits[client]) if client in limits else ("live_clients", client, work)
                    self._keep(name, client, rates_of(*program, self._server, topic, codec))

    def of_sends(self) -> None:
        """Records sent one by one."""
        for shape in live_sends.SHAPES:
            clients = [client for client in live_sends.CLIENTS if live_sends.has(client, shape)]
            for number, client in self._in_turns(sends_name(shape), clients):
                topic = topic_of(f"sent-{live_sends.SHAPES.index(shape)}", number, client)
                rates = rates_of("live_sends", client, shape, self._server, topic)
                if client != live_limits.KEEPING:
                    check_filled(self._server, topic, live_sends.COUNTS[client] + 1)
                self._keep(sends_name(shape), client, rates)

    def of_waits(self) -> None:
        """Calls that wait for the broker, one after the other."""
        for work in live_waits.WORKS:
            clients = [client for client, works in live_waits.CLIENTS.items() if work in works]
            for number, client in self._in_turns(waits_name(work), clients):
                waited = topic_of(f"waited-{work[:4]}", number, client)
                topic = self._topic("none") if work.startswith("commit") else waited
                self._keep(waits_name(work), client, rates_of("live_waits", client, work, self._server, topic))

    def of_latencies(self) -> None:
        """The time of each record, and of each transaction: all of all rounds are in the distributions."""
        for load in live_latency.LOADS:
            name, seconds = latency_name(load), dict[str, list[float]]()
            for number, client in self._in_turns(name, live_latency.clients_of(load), SLOW):
                topic = topic_of(f"latency-{live_latency.LOADS.index(load)}", number, client)
                places = live_latency.environment(client)
                found = printed("live_latency", client, load, self._server, topic, environment=places)
                half, most = live_latency.quantiles(found)
                self._keep(name, client, (1 / half, 1 / most), SLOW)
                seconds.setdefault(client, []).extend(found)
            if seconds:
                self.distributions[name] = {client: latencies.classes(found) for client, found in seconds.items()}

    def of_standing(self) -> None:
        """The contests of many partitions: the memory while they are read."""
        for work, partitions in live_standing.PARTITIONS.items():
            topic = f"standing-{partitions}"
            for _, client in self._in_turns(standing_name(work), live_standing.clients_of(work)):
                if topic not in self._filled:
                    create(self._server, topic, partitions)
                    self._fill(topic, "none")
                self._keep(standing_name(work), client, rates_of("live_standing", client, work, self._server, topic))

    def _in_turns(self, name: str, clients: list[str], other: str = WALL) -> Iterator[tuple[int, str]]:
        """The number of each round with each client, for a new contest and the one with the `other` rates."""
        if self._chosen(name):
            self.results[name], self.results[name + other] = Measured("records"), Measured("records")
            yield from ((number, client) for number in range(self._rounds) for client in clients)
            self._note(name)

    def _keep(self, name: str, client: str, rates: tuple[float, float], other: str = WALL) -> None:
        """Keep a round's rates by processor time and by the clock; or those of the contest with the `other` ones."""
        for contest, rate in zip((name, name + other), rates, strict=True):
            self.results[contest].add(client, rate)

    def _topic(self, codec: str) -> str:
        """The topic that all consumers read."""
        topic = f"filled-{codec}"
        if topic not in self._filled:
            self._fill(topic, codec)
        return topic

    def _fill(self, topic: str, codec: str) -> None:
        fill(self._server, topic, codec)
        self._filled.add(topic)


def run(
    rounds: int, note: Callable[[str], None], chosen: Callable[[str], bool]
) -> tuple[dict[str, Measured], Distributions, list[str]]:
    """The rates of each client in its best round, the times of single calls, and why some clients are missing.

    Rates are those of each work and codec, by processor time and by the clock.
    """
    everyone, left_out = list(live_clients.WORK), []
    for program in programs.LIVE:
        if program.absent:
            left_out.append(program.absent)
            everyone.remove(program.name)
        elif any(chosen(contest_name(work, codec)) for work in ("consume", "produce") for codec in CODECS):
            program.build()
    if not live_latency.UVLOOP.exists():
        left_out.append(f"uvloop was skipped: it is not in {live_latency.UVLOOP}, where `make bench` installs it.")
    if compiled.absent():
        left_out.append(f"{live_limits.KEEPING} was skipped: {compiled.absent()}.")
    with broker() as server:
        made = Run(server, rounds, note, chosen)
        made.of_clients(everyone)
        made.of_sends()
        made.of_waits()
        made.of_latencies()
        made.of_standing()
    return made.results, made.distributions, left_out


def topic_of(work: str, number: int, client: str) -> str:
    """The topic that a client produces to in a round."""
    return f"{work}-{number}-{re.sub('[^a-zA-Z0-9.-]+', '-', client)}"


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


def rates_of(module: str, *arguments: str) -> tuple[float, float]:
    """Records per second of a program of this directory: by processor time, by the clock."""
    count, processor, wall = printed(module, *arguments)
    return count / processor, count / wall


def printed(module: str, *arguments: str, environment: Mapping[str, str] = MappingProxyType({})) -> list[float]:
    """The numbers that a program of this directory prints."""
    command = [sys.executable, "-m", f"benchmarks.{module}", *arguments]
    variables = {**os.environ, **environment}
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False, env=variables)
    if done.returncode:
        raise RuntimeError(f"{', '.join(arguments)}: {done.stderr[-2000:]}")
    return list(map(float, done.stdout.split()))


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
