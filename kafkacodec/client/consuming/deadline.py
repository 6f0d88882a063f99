"""How long a read of the user may wait for records."""

from __future__ import annotations

import threading
import time

__all__ = ["Deadline"]


class Deadline:
    """So many seconds from now, or from the last `restart`; None or more than a thread can wait: no end.

    Attributes:
        waits: whether there is any time to wait.
    """

    def __init__(self, seconds: float | None) -> None:
        self._seconds = None if seconds is None or seconds > threading.TIMEOUT_MAX else seconds
        self.waits = seconds != 0
        self.restart()

    def restart(self) -> None:
        """The time begins again."""
        self._end = None if self._seconds is None else time.monotonic() + self._seconds

    @property
    def left(self) -> float | None:
        """The seconds that are left, 0.0 when the time is over; None without an end."""
        return None if self._end is None else max(self._end - time.monotonic(), 0.0)
