"""Contests with Spark: by the clock, and by the processor time of all processes that work for a session."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.contest import Contest, Measured

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["PROCESSOR", "Clock", "Seconds", "measure"]

PROCESSOR = ", processor time"


class Seconds(NamedTuple):
    """What has passed. A competitor returns it if only a part of its call counts."""

    wall: float
    processor: float

    def since(self, start: Seconds) -> Seconds:
        """From then to now."""
        return Seconds(self.wall - start.wall, self.processor - start.processor)


class _Process(NamedTuple):
    """What a process has had of the processor, in ticks; `children` are those that it has waited for."""

    parent: int
    own: int
    children: int


class Clock:
    """Seconds by the clock, and of the processor for this process, Spark's JVM and its workers; not for brokers."""

    def __init__(self, spark: SparkSession) -> None:
        self._jvm: int = spark.sparkContext._gateway.proc.pid
        self._workers: dict[int, _Process] = {}

    def __call__(self) -> Seconds:
        """The seconds so far."""
        found = _processes()
        jvm = found[self._jvm]
        self._workers |= {number: it for number, it in found.items() if self._is_worker(it, found)}
        # The JVM waits for its children. pyspark.daemon does not: of its workers counts what was seen last.
        for number in [number for number, it in self._workers.items() if number not in found]:
            if self._workers[number].parent == self._jvm:
                del self._workers[number]
        ticks = jvm.own + jvm.children + sum(it.own for it in self._workers.values())
        return Seconds(time.perf_counter(), time.process_time() + ticks / os.sysconf("SC_CLK_TCK"))

    def _is_worker(self, process: _Process, found: Mapping[int, _Process]) -> bool:
        while process.parent in found and process.parent != self._jvm:
            process = found[process.parent]
        return process.parent == self._jvm


def _processes() -> dict[int, _Process]:
    """All processes, by number."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):  # it has ended
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                # proc(5): after the name come state and parent; fields 14 to 17 are times, of ended children too.
                own, children = sum(map(int, fields[11:13])), sum(map(int, fields[13:15]))
                found[int(entry.name)] = _Process(int(fields[1]), own, children)
    return found


def measure(contest: Contest, rounds: int, clock: Clock) -> dict[str, Measured]:
    """The rates of every competitor by the clock, and by processor time in a contest of the name with `PROCESSOR`.

    Each runs once more before, which warms up the JVM and the workers.
    """
    for work in contest.competitors.values():
        work()
    found = {contest.name: Measured(contest.unit), contest.name + PROCESSOR: Measured(contest.unit)}
    for _ in range(rounds):
        for name, work in contest.competitors.items():
            for measured, seconds in zip(found.values(), _spent(work, clock), strict=True):
                measured.add(name, contest.amount / seconds)
    return found


def _spent(work: Callable[[], object], clock: Clock) -> Seconds:
    start = clock()
    part = work()
    return part if isinstance(part, Seconds) else clock().since(start)
