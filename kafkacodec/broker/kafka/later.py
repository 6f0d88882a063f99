"""Effects that wait for a time."""

from __future__ import annotations

import heapq
from itertools import count

from kafkacodec.net.service import NOTHING, Effect, together
from kafkacodec.net.timers import Alarm

__all__ = ["Later"]


class Later:
    """Effects by their time on the host's clock, in milliseconds.

    Args:
        alarm: gets the deadlines.
    """

    def __init__(self, alarm: Alarm) -> None:
        self._alarm = alarm
        self._waiting: list[tuple[float, int, Effect]] = []
        self._numbers = count()

    def add(self, at: float, effect: Effect) -> Effect:
        """Add an effect for later."""
        heapq.heappush(self._waiting, (at, next(self._numbers), effect))
        self._alarm.ring()
        return NOTHING

    def due(self, now: float) -> Effect:
        """Return the due effects."""
        found = []
        while self._waiting and self._waiting[0][0] <= now:
            found.append(heapq.heappop(self._waiting)[2])
        return together(found)

    def next_deadline(self) -> float | None:
        """Return the time of the next effect."""
        return self._waiting[0][0] if self._waiting else None
