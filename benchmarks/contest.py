"""Contests: competitors that do the same work on the same bytes, in turns, in one run."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

SLOW_SECONDS = 0.5

Rates = dict[str, float]


@dataclass(frozen=True)
class Contest:
    """`amount` is the work of one call of a competitor, in `unit`s (records, bytes, keys)."""

    name: str
    unit: str
    amount: float
    competitors: dict[str, Callable[[], object]]
    clock: Callable[[], float] | None = None  # where the usual one would not measure the work


def run(
    contest: Contest, rounds: int, clock: Callable[[], float] = time.thread_time, slow: float = SLOW_SECONDS
) -> Rates:
    """Units per second of every competitor in its best round. One that needs `slow` seconds gets no further rounds.

    The clock is the thread's processor time, which excludes other processes, so that a busy machine disturbs the ratios
    less.
    """
    best: dict[str, float] = {}
    for _ in range(rounds):
        for name, work in contest.competitors.items():
            if best.get(name, 0) < slow:
                start = clock()
                work()
                best[name] = min(best.get(name, float("inf")), clock() - start)
    return {name: contest.amount / seconds for name, seconds in best.items()}
