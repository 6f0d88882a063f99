"""The clock of a broker, which a test may advance or stop."""

from __future__ import annotations

import math
import time

from kafkacodec.arguments import is_number

__all__ = ["Clock"]


class Clock:
    """A broker's clock: its host's time plus what `advance` has added, or a time that only `advance` moves.

    All times are milliseconds since 1970.

    Args:
        at: the time of a clock that only `advance` moves; None: it follows the host's time.
    """

    def __init__(self, at: float | None = None) -> None:
        self._at = at
        self._ahead = 0.0

    def __call__(self, now: float) -> float:
        """Return the broker's time for a time of its host."""
        return now + self._ahead if self._at is None else self._at

    def now(self) -> int:
        """Return the broker's time now; from any thread."""
        return int(time.time() * 1000 + self._ahead if self._at is None else self._at)

    @property
    def is_hosts(self) -> bool:
        """Whether it shows the host's time."""
        return self._at is None and not self._ahead

    def advance(self, seconds: float) -> None:
        """Move the clock forward. Raises TypeError, ValueError."""
        if not is_number(seconds):
            raise TypeError(f"seconds must be a number, not {seconds!r}")
        if not 0 <= seconds < math.inf:
            raise ValueError(f"seconds is {seconds}; a clock only moves forward")
        milliseconds = float(seconds) * 1000
        if self._at is None:
            self._ahead += milliseconds
        else:
            self._at += milliseconds

    def of_host(self, time: float) -> float | None:
        """Return the host's time at which this clock shows a time; None if only `advance` can reach it."""
        if self._at is None:
            return time - self._ahead
        return 0.0 if time <= self._at else None
