"""Compaction of one log by this broker and by Apache Kafka, in bytes per second of the broker's processor time."""

from __future__ import annotations

import time

import kafkacodec as kc
from benchmarks import broker_load
from benchmarks.broker_servers import KAFKA, OURS, SERVERS, Server, absent
from kafkacodec.client import Admin, ConfigResource, NewTopic

_MIB = 1 << 20
_BATCHES, _RECORDS, _KEYS, _VALUE_BYTES = 200, 1000, 50_000, 1000
_KEPT = {"segment.bytes": str(16 * _MIB), "cleanup.policy": "delete"}
_COMPACTED = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "delete.retention.ms": "0"}
_WARMING = 1
_IDLE_SECONDS, _STEADY_SECONDS, _MOST_SECONDS = 4, 3, 150


def run() -> list[str]:
    """What is said about each broker; Apache Kafka compacts another log first."""
    said = []
    for name in (OURS, KAFKA):
        if absent(name):
            continue
        with SERVERS[name][0]() as server, Admin(server.address) as admin:
            for number in range(_WARMING + 1):
                before, after, spent = _compacted(server, admin, f"compacted-{number}")
        said.append(
            f"compaction, {name}: {before // _MIB} MiB became {after // _MIB} MiB in {spent:.2f} s of processor time, "
            f"{before / _MIB / spent:.0f} MiB a second."
        )
    return said


def _compacted(server: Server, admin: Admin, topic: str) -> tuple[int, int, float]:
    """The bytes of a log before and after it is compacted, and what this took beside what an idle broker takes."""
    admin.create_topics([NewTopic(topic, 1, 1, configs=_KEPT)])
    with broker_load.connected(server.address) as load:
        broker_load.make_topic(load, topic)
        for number in range(_BATCHES):
            load.produce(topic, 0, _batch(number))
    before = _size(admin, topic)
    spent, began = server.processor_seconds(), time.monotonic()
    time.sleep(_IDLE_SECONDS)
    idle = (server.processor_seconds() - spent) / (time.monotonic() - began)
    spent, began = server.processor_seconds(), time.monotonic()
    admin.incremental_alter_configs({ConfigResource("topic", topic): dict(_COMPACTED)})
    size, changed = before, began
    while (now := time.monotonic()) < began + _MOST_SECONDS and (size == before or now < changed + _STEADY_SECONDS):
        time.sleep(0.2)
        if (found := _size(admin, topic)) != size:
            size, changed = found, time.monotonic()
            used = server.processor_seconds() - spent - idle * (changed - began)
    if size == before:
        raise RuntimeError(f"{topic} was not compacted in {_MOST_SECONDS} s")
    return before, size, used


def _batch(number: int) -> bytes:
    """Records whose keys return after some batches."""
    numbers = range(number * _RECORDS, (number + 1) * _RECORDS)
    rows = [(b"key-%06d" % (n * 7919 % _KEYS), b"%0*d" % (_VALUE_BYTES, n)) for n in numbers]
    return kc.encode(rows, batch_bytes=2 << 20)


def _size(admin: Admin, topic: str) -> int:
    directories = [found for of_broker in admin.describe_log_dirs().values() for found in of_broker.values()]
    return sum(row.size for one in directories for place, row in one.replicas.items() if place.topic == topic)
