"""The time of a broker, which a test may put forward or stop."""

from __future__ import annotations

import time

__all__ = ["Clock"]


class Clock:
    """The time of a broker: that of its host and what `advance` has added, or one that only `advance` moves.

    All times are milliseconds since 1970.

    Args:
        at: the time at which it stands until `advance`; None: it goes with the host's.
    """

    def __init__(self, at: float | None = None) -> None:
        self._at = at
        self._ahead = 0.0

    def __call__(self, now: float) -> float:
        """The broker's time at a time of its host."""
        return now + self._ahead if self._at is None else self._at

    def now(self) -> int:
        """The broker's time now; for any thread."""
        return int(self(time.time() * 1000))

    @property
    def is_hosts(self) -> bool:
        """Whether it shows the time of the host."""
        return self._at is None and not self._ahead

    def advance(self, milliseconds: float) -> None:
        """Put it forward."""
        if self._at is None:
            self._ahead += milliseconds
        else:
            self._at += milliseconds

    def of_host(self, time: float) -> float | None:
        """The host's time at which this clock shows a time; None if it does not go there by itself."""
        if self._at is None:
            return time - self._ahead
        return 0.0 if time <= self._at else None
