"""The application's reads, as its group's membership hears of them."""

from __future__ import annotations

import time

from kafkacodec.client.consuming.reading import Reader
from kafkacodec.client.core.calls import Answer, Send
from kafkacodec.client.groups.membership import Membership

__all__ = ["Reads"]


class Reads:
    """A machine that sends nothing: it tells the membership when the application last asked for records.

    For speed, reading does not wake the driver. The driver polls this machine before the membership, so the membership
    knows of all reads when a time limit is over.
    """

    def __init__(self, reader: Reader, membership: Membership) -> None:
        self._reader = reader
        self._membership = membership
        # Reads before this membership do not count, but a running wait does.
        self._told = None if reader.waiting else (reader.asked_at, False)

    @property
    def news(self) -> bool:
        """Whether the membership does not know of the last read."""
        return self._told != (self._reader.asked_at, self._reader.waiting)

    def poll(self, now: float) -> list[Send]:
        """Tell the membership of the last read."""
        if self.news:
            asked_at, waiting = self._told = self._reader.asked_at, self._reader.waiting
            if asked_at:
                self._membership.polled(now - (time.monotonic() - asked_at) * 1000, waiting=waiting)
        return []

    def next_deadline(self) -> float | None:
        """None: its owner wakes the driver from time to time."""
        return None

    def answered(self, send: Send, answer: Answer, now: float) -> None:
        """Never called."""

    def failed(self, send: Send, error: Exception, now: float) -> None:
        """Never called."""
