"""Warnings while a consumer waits for records and no broker answers."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kafkacodec.client.consuming.positions import Positions
from kafkacodec.client.core.calls import Send, Watcher

if TYPE_CHECKING:
    from kafkacodec.client.consuming.reading import Reader

__all__ = ["Unanswered"]

_log = logging.getLogger("kafkacodec.client")

_AGAIN_MS: Final = 60_000.0
_NAMED: Final = 3


class Unanswered(Watcher):
    """A machine that warns once a minute while the user waits for records, and no broker answers.

    A consumer that has partitions fetches all the time, so that answers come as often as brokers may let it wait.

    Args:
        positions: the assigned partitions.
        reader: knows whether the user waits, and since when.
        answered_at: when the last answer came, in ms of the network's clock.
        limit_ms: how long the answers may be away.
    """

    def __init__(self, positions: Positions, reader: Reader, answered_at: Callable[[], float], limit_ms: float) -> None:
        self._positions, self._reader, self._answered_at, self._limit_ms = positions, reader, answered_at, limit_ms
        self._told_at = -_AGAIN_MS
        self._due: float | None = None

    def poll(self, now: float) -> list[Send]:
        """Warn if that is due; there is nothing to send."""
        self._due = None
        if self._reader.waiting:
            asked_at = now - (time.monotonic() - self._reader.asked_at) * 1000  # the loop may have another clock
            since = max(self._answered_at(), asked_at)
            self._due = max(since + self._limit_ms, self._told_at + _AGAIN_MS)
            if now >= self._due:
                self._warn(now, since)
        return []

    def next_deadline(self) -> float | None:
        """When the next warning is due, if the user waits until then."""
        return self._due

    def _warn(self, now: float, since: float) -> None:
        self._due = now + _AGAIN_MS
        names = [f"{s.topic}-{s.number}" for s in list(self._positions.partitions.values()) if not s.paused]
        if not names:
            return
        self._told_at = now
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        awaited = f"records of {', '.join(names[:_NAMED])}{more} are waited for, and the consumer keeps trying"
        _log.warning("no broker has answered for %.0f s; %s", (now - since) / 1000, awaited)
