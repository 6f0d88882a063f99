"""What listens, beside its peers: requests and bytes per second of the broker's processor time, with one connection.

Each broker is a process of its own; all run at the same time and are asked in turns. The same frames go to all of them,
made once, so that the one that asks costs little. Apache Kafka is warmed first, so that its compiler has finished. The
rate is that of all rounds together: a broker that collects garbage pays in some rounds for what others left behind, and
the system's clock of a process counts in steps of 10 ms.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from benchmarks import broker_load
from benchmarks.broker_load import Load
from benchmarks.broker_servers import KAFKA, SERVERS, Server, absent
from benchmarks.contest import Rates

IN_FLIGHT = 5
WARMING = 8
KIB, MIB = 1 << 10, 1 << 20


@dataclass(frozen=True)
class Work:
    """One contest: `run(load, data, amount)` does the work, `data` is its frame or its topic."""

    name: str
    unit: str
    amount: int
    prepare: Callable[[Load, str], Any]
    run: Callable[[Load, Any, int], int]


def _producing(records: int, value_bytes: int) -> Callable[[Load, str], bytearray]:
    return lambda _load, topic: broker_load.produce_frame(topic, broker_load.batch(records, value_bytes))


def _filled(load: Load, topic: str) -> str:
    """A topic with 64 MiB in batches of 16 KiB."""
    load.repeat(broker_load.produce_frame(topic, broker_load.batch(16, 1000)), 64 * 64, IN_FLIGHT)
    return topic


def _requests(in_flight: int) -> Callable[[Load, bytearray, int], int]:
    def run(load: Load, data: bytearray, amount: int) -> int:
        load.repeat(data, amount, in_flight)
        return amount

    return run


def _bytes(load: Load, data: bytearray, amount: int) -> int:
    load.repeat(data, amount, IN_FLIGHT)
    return amount * len(data)


def _fetched(load: Load, topic: str, amount: int) -> int:
    return load.read(topic, amount, MIB)


WORKS = (
    Work("produce, 16 KiB batches", "requests", 3000, _producing(16, 1000), _requests(IN_FLIGHT)),
    Work("produce, 1 MiB batches", "bytes", 200, _producing(1000, 1000), _bytes),
    Work("produce, one record at a time", "requests", 3000, _producing(1, 100), _requests(1)),
    Work("fetch, 1 MiB answers", "bytes", 400 * MIB, _filled, _fetched),
)


def contest_name(work: Work) -> str:
    """What its contest is called."""
    return f"broker, {work.name}, {work.unit}"


def run(rounds: int, note: Callable[[str], None]) -> tuple[dict[str, Rates], list[str]]:
    """The rates of each broker over all rounds; and what is to be said about those that are missing, and of all."""
    results: dict[str, Rates] = {contest_name(work): {} for work in WORKS}
    said = []
    with ExitStack() as stack:
        running: dict[str, tuple[Server, Load]] = {}
        for name, (start, _) in SERVERS.items():
            missing = absent(name)
            if missing:
                said.append(f"{name} was skipped: no {', '.join(missing)} on PATH.")
                continue
            server: Server = stack.enter_context(start())
            running[name] = server, stack.enter_context(broker_load.connected(server.address))
            said.append(f"{name}: ready in {server.ready:.3f} s, {server.resident_bytes() / MIB:.0f} MiB resident.")
        for number, work in enumerate(WORKS):
            contest = contest_name(work)
            for name, rate in _contest(work, f"contest-{number}", running, rounds, said).items():
                results[contest][name] = rate
            note(contest)
    return results, said


def _contest(
    work: Work, topic: str, running: dict[str, tuple[Server, Load]], rounds: int, said: list[str]
) -> dict[str, float]:
    """The rate of each broker; one that refuses the work has none."""
    prepared: dict[str, Any] = {}
    done = dict.fromkeys(running, 0)
    seconds = dict.fromkeys(running, 0.0)
    for turn in range(-1, rounds):
        for name, (server, load) in running.items():
            try:
                if turn < 0:
                    prepared[name] = _prepared(work, topic, name, load)
                elif name in prepared:
                    before = server.processor_seconds()
                    done[name] += work.run(load, prepared[name], work.amount)
                    seconds[name] += server.processor_seconds() - before
            except (RuntimeError, OSError) as error:
                said.append(f"{name} takes no part in {work.name!r}: {error}.")
                prepared.pop(name, None)
    return {name: done[name] / seconds[name] for name in prepared}


def _prepared(work: Work, topic: str, name: str, load: Load) -> Any:
    broker_load.make_topic(load, topic)
    data = work.prepare(load, topic)
    if name == KAFKA:
        for _ in range(WARMING):
            work.run(load, data, work.amount)
    return data
