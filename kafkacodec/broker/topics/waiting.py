"""Requests that wait for records or for time."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable
from itertools import count
from typing import Any, Protocol

from kafkacodec.net.service import NOTHING, Effect, Reply, together
from kafkacodec.net.timers import Alarm

__all__ = ["Parked", "Waiting"]


class Parked(Protocol):
    """A request that waits."""

    session: Any
    deadline: float

    def enough(self) -> bool:
        """Whether it can be answered before its time."""

    def answer(self, now: float) -> Reply:
        """The answer, with what there is."""


class Waiting:
    """Requests that wait for appends to logs, each until its deadline.

    Attributes:
        alarm: gets each deadline of the broker.
        touched: the logs changed since the last `woken`.
    """

    def __init__(self) -> None:
        self.alarm = Alarm()
        self._by_log: dict[Hashable, dict[int, Parked]] = {}
        self._logs: dict[int, tuple[Hashable, ...]] = {}
        self._parked: dict[int, Parked] = {}
        self._due: list[tuple[float, int]] = []
        self._numbers = count()
        self.touched: set[Hashable] = set()

    def __len__(self) -> int:
        return len(self._parked)

    def park(self, parked: Parked, logs: Iterable[Hashable]) -> None:
        """Add a request that waits for one of some logs."""
        number = next(self._numbers)
        self._parked[number] = parked
        self._logs[number] = tuple(logs)
        for log in self._logs[number]:
            self._by_log.setdefault(log, {})[number] = parked
        heapq.heappush(self._due, (parked.deadline, number))
        self.alarm.ring()

    def touch(self, log: Hashable) -> None:
        """Note that a log has changed; `woken` answers the requests that wait for it."""
        if log in self._by_log:
            self.touched.add(log)

    def woken(self, now: float) -> Effect:
        """Return the answers of requests whose logs have changed."""
        if not self.touched:
            return NOTHING
        touched, self.touched = self.touched, set()
        numbers = {number for log in touched for number in self._by_log.get(log, ())}
        return self._answers([number for number in sorted(numbers) if self._parked[number].enough()], now)

    def due(self, now: float) -> Effect:
        """Return the answers whose time has come."""
        numbers = []
        while self._due and self._due[0][0] <= now:
            _, number = heapq.heappop(self._due)
            if number in self._parked:
                numbers.append(number)
        return self._answers(numbers, now)

    def next_deadline(self) -> float | None:
        """Return when `due` has something to do."""
        while self._due and self._due[0][1] not in self._parked:
            heapq.heappop(self._due)
        return self._due[0][0] if self._due else None

    def forget(self, session: Any) -> None:
        """Drop the requests of a session."""
        for number in [number for number, parked in self._parked.items() if parked.session is session]:
            self._take(number)

    def _answers(self, numbers: list[int], now: float) -> Effect:
        return together(Effect((), (self._take(number).answer(now),)) for number in numbers)

    def _take(self, number: int) -> Parked:
        for log in self._logs.pop(number):
            waiting = self._by_log[log]
            del waiting[number]
            if not waiting:
                del self._by_log[log]
        return self._parked.pop(number)
