"""What a consumer needs for many partitions: memory at full speed.

    python -m benchmarks.live_standing CLIENT WORK HOST:PORT TOPIC

At full speed it reads records of a filled topic, with all options at their defaults, by which each client may hold 64
MiB of records, and prints the number of records, the largest resident memory of the process in MiB, and the seconds by
the clock.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

FULL_SPEED = "100 partitions at full speed"
PARTITIONS = {FULL_SPEED: 100}
RECORDS = 1_500_000

Work = Callable[[str, str], None]


def resident(kind: str) -> float:
    """The resident memory of this process in MiB: VmRSS now, VmHWM at most."""
    with open("/proc/self/status", encoding="ascii") as lines:
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(kind))


def at_full_speed(some: Callable[[], int]) -> None:
    """Call `some`, which reads records and returns their number, until it has read enough."""
    found, begun = 0, time.perf_counter()
    while found < RECORDS:
        found += some()
    seconds = time.perf_counter() - begun
    print(found, resident("VmHWM"), seconds)


def _consumer(server: str, topic: str, work: str) -> Any:
    import kafkacodec as kc

    consumer = kc.client.Consumer(bootstrap_servers=server, auto_offset_reset="earliest")
    consumer.assign([(topic, number) for number in range(PARTITIONS[work])])
    return consumer


def records(server: str, topic: str) -> None:
    with _consumer(server, topic, FULL_SPEED) as consumer:
        found = iter(consumer)
        at_full_speed(lambda: sum(1 for _ in zip(range(10_000), found, strict=False)))


def columns(server: str, topic: str) -> None:
    with _consumer(server, topic, FULL_SPEED) as consumer:
        tables = consumer.columns(timeout=20)
        at_full_speed(lambda: len(next(tables)))


def _confluent(server: str, topic: str, work: str) -> Any:
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    settings = {"bootstrap.servers": server, "group.id": "unused", "enable.auto.commit": False, "check.crcs": True}
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(PARTITIONS[work])])
    return consumer


def records_confluent(server: str, topic: str) -> None:
    consumer = _confluent(server, topic, FULL_SPEED)
    at_full_speed(lambda: len(consumer.consume(10_000, 1)))
    consumer.close()


CLIENTS: dict[str, dict[str, Work]] = {
    "kafkacodec": {FULL_SPEED: records},
    "kafkacodec, columns": {FULL_SPEED: columns},
    "confluent-kafka": {FULL_SPEED: records_confluent},
}


def clients_of(work: str) -> list[str]:
    """The clients that take part."""
    return [client for client, works in CLIENTS.items() if work in works]


if __name__ == "__main__":
    _, client, work, server, topic = sys.argv
    CLIENTS[client][work](server, topic)
