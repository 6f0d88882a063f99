"""The time that a read may wait for records."""

from __future__ import annotations

import threading
import time

__all__ = ["Deadline"]


class Deadline:
    """A number of seconds from now, or from the last `restart`; None, or more than a thread can wait, is no limit.

    Attributes:
        waits: whether the time to wait is more than 0.
    """

    def __init__(self, seconds: float | None) -> None:
        self._seconds = None if seconds is None or seconds > threading.TIMEOUT_MAX else seconds
        self.waits = seconds != 0
        self.restart()

    def restart(self) -> None:
        """Start the time again."""
        self._end = None if self._seconds is None else time.monotonic() + self._seconds

    @property
    def left(self) -> float | None:
        """The seconds that are left, 0.0 when the time is over; None without an end."""
        return None if self._end is None else max(self._end - time.monotonic(), 0.0)
