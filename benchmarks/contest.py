"""Contests: competitors that do the same work on the same bytes, in turns, in one run."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

SLOW_SECONDS = 0.5
TURN_SECONDS = 0.02
"""A turn repeats shorter calls for so long: the first of them finds in the caches what others have left there."""

Rates = dict[str, float]


class Measured(Rates):
    """The best rate of every competitor, in `unit`s per second, and those of all its `rounds`."""

    def __init__(self, unit: str) -> None:
        super().__init__()
        self.unit = unit
        self.rounds: dict[str, list[float]] = {}

    def add(self, name: str, rate: float) -> None:
        """Add a round of a competitor."""
        self.rounds.setdefault(name, []).append(rate)
        self[name] = max(self.rounds[name])


@dataclass(frozen=True)
class Contest:
    """`amount` is the work of one call of a competitor, in `unit`s (records, bytes, keys)."""

    name: str
    unit: str
    amount: float
    competitors: Mapping[str, Callable[[], object]]


def run(
    contest: Contest, rounds: int, clock: Callable[[], float] = time.thread_time, slow: float = SLOW_SECONDS
) -> Measured:
    """The rates of every competitor. One that needs `slow` seconds gets no further rounds.

    The clock is the thread's processor time, which excludes other processes, so that a busy machine disturbs the ratios
    less.
    """
    measured = Measured(contest.unit)
    for _ in range(rounds):
        for name, work in contest.competitors.items():
            if name not in measured or contest.amount / measured[name] < slow:
                measured.add(name, contest.amount / _turn(work, clock))
    return measured


def _turn(work: Callable[[], object], clock: Callable[[], float]) -> float:
    """The seconds of the fastest call of a turn."""
    begin = start = clock()
    best = float("inf")
    while start - begin < TURN_SECONDS:
        work()
        end = clock()
        best, start = min(best, end - start), end
    return best
