"""The brokers that scenarios are played against, and their settings: Apache Kafka and the embedded one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import kafkacodec as kc
from kafkacodec.broker.options import STANDARD_AUTHORIZER
from tests.differential.golden import Answers
from tests.differential.playing import Playing, play
from tests.differential.scenario import Server

FOLDERS: dict[str, dict[str, Any]] = {
    "scripts": {
        "group.consumer.assignment.interval.ms": 0,
        "group.streams.initial.rebalance.delay.ms": 3000,
        "group.streams.assignment.interval.ms": 0,
    },
    "lifetimes": {
        "log.retention.check.interval.ms": 500,
        "log.cleaner.backoff.ms": 500,
        "log.segment.delete.delay.ms": 500,
        "offsets.retention.check.interval.ms": 500,
        "group.min.session.timeout.ms": 500,
        "group.consumer.assignment.interval.ms": 0,
        "group.share.record.lock.duration.ms": 1500,
        "group.share.delivery.count.limit": 3,
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": "User:ANONYMOUS",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
    },
    "given": {},
    "given-hours": {
        "log.retention.hours": 5,
        "log.roll.hours": 9,
        "log.roll.jitter.hours": 2,
        "log.flush.scheduler.interval.ms": 5000,
    },
    "given-finer": {
        "log.retention.minutes": 7,
        "log.retention.hours": 5,
        "log.roll.ms": 70_000,
        "log.roll.hours": 9,
        "log.roll.jitter.ms": 30,
        "log.roll.jitter.hours": 2,
        "log.flush.interval.ms": 3000,
        "log.flush.scheduler.interval.ms": 5000,
        "log.flush.interval.messages": 50,
    },
}
"""By folder of scripts: what the broker is configured with. Where time has to pass, the broker looks often.

A folder that is played with several configurations has a word for each after its name.
"""

OF_KAFKA: dict[str, Any] = {
    "offsets.topic.num.partitions": 50,
    "transaction.state.log.num.partitions": 50,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
}
"""What makes one node of Apache Kafka have the defaults of Apache Kafka."""
FIRST_CHECKS: dict[str, dict[str, Any]] = {
    "lifetimes": {"log.initial.task.delay.ms": 500, "group.share.min.record.lock.duration.ms": 1000}
}
"""Settings of Apache Kafka that the embedded broker does not need, so that it looks often from its start."""
JARS = {"3.9.1": "jars", "4.1.0": "4.1", "4.4.0": "newest"}


def answers(played: dict[str, Playing]) -> Answers:
    """All answers by step, as JSON has them."""
    found = {step: answer for one in played.values() for step, answer in one.answers.items()}
    return json.loads(json.dumps(found))


def of_this_broker(folder: str, directory: Path, release: str = "4", only: str = "") -> dict[str, Playing]:
    """Play the scenarios of a folder against the embedded broker."""
    started: list[kc.broker.Broker] = []

    def start(listen: str = "kafka://127.0.0.1:0") -> None:
        started.append(kc.broker.serve(directory, listen=listen, config=FOLDERS[folder], release=release))

    def restart() -> None:
        listen = started[-1].listeners[0]
        started[-1].stop()
        start(listen)

    start()
    try:
        return play(Server(started[-1].bootstrap_servers, directory), folder, restart, only=only)
    finally:
        started[-1].stop()


@contextmanager
def kafka(release: str, folder: str, directory: Path) -> Iterator[tuple[Server, Callable[[], None]]]:
    """A node of Apache Kafka with the settings of a folder: what scenarios know of it, and what restarts it."""
    from tests.integration.kafka_jvm import KEEPS_OLD_RECORDS, Broker

    given = {**OF_KAFKA, **FOLDERS[folder], **FIRST_CHECKS.get(folder, {})}
    settings = {name: str(value) for name, value in given.items()}
    broker = Broker(directory, JARS[release], **settings)
    properties = directory / "server.properties"
    properties.write_text(properties.read_text().replace(f"{KEEPS_OLD_RECORDS}\n", ""))

    def restart() -> None:
        broker.stop()
        broker.start()

    broker.start()
    try:
        yield Server(broker.server, broker.logs, patience=60), restart
    finally:
        broker.stop()
