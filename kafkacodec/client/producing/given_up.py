"""Warnings about records that were given up, and whose outcome nobody has looked at."""

from __future__ import annotations

import logging
import weakref
from collections import deque
from collections.abc import Callable
from typing import ClassVar, Final, Protocol

from kafkacodec.client.core.calls import Send, Watcher
from kafkacodec.datatypes import dataclass
from kafkacodec.shown import counted

__all__ = ["GivenUp", "Unseen"]

_log = logging.getLogger("kafkacodec.client.producer")

_AGAIN_MS: Final = 60_000.0
_MOST: Final = 100  # topics and errors that are counted apart


class _Outcome(Protocol):
    """What is needed of an `Outcome`."""

    unseen: Unseen | None
    is_table: ClassVar[bool]


_Kind = tuple[str | None, type, type]


class Unseen:
    """The records of an outcome that were given up, until somebody looks at each, or the last delivery is dropped.

    Args:
        given_up: counts and logs them.
        whole: whether index 0 stands for all records, as for a table.
    """

    __slots__ = ("__weakref__", "_given_up", "_parts", "_seen", "_whole")

    def __init__(self, given_up: GivenUp, *, whole: bool = False) -> None:
        self._given_up, self._whole = given_up, whole
        self._parts: list[tuple[int, int, str, Exception]] = []
        self._seen: set[int] = set()
        given_up.keep(self)

    def add(self, first: int, end: int, topic: str, reason: Exception) -> None:
        """Records [first, end) were given up."""
        self._parts.append((first, end, topic, reason))

    def look(self, index: int) -> None:
        """Somebody has seen that this record was given up."""
        if self._whole:
            self._parts.clear()
        else:
            self._seen.add(index)

    def hand_over(self, first: int, end: int, table: _Outcome, row: int, topic: str, reason: Exception) -> None:
        """From now on the outcome of a table stands for records [first, end), which are its rows from `row` on."""
        self._seen.update(range(first, end))
        if table.unseen is None:
            table.unseen = Unseen(self._given_up, whole=True)
        table.unseen.add(row, row + end - first, topic, reason)

    def take(self) -> list[tuple[str, Exception, int]]:
        """Topic, reason and number of the records that nobody has looked at, once."""
        parts, self._parts = self._parts, []
        counts = ((topic, reason, self._count(first, end)) for first, end, topic, reason in parts)
        return [found for found in counts if found[2]]

    def _count(self, first: int, end: int) -> int:
        return end - first - sum(first <= index < end for index in self._seen)

    def __del__(self) -> None:
        if hasattr(self, "_given_up"):  # not if the constructor has not run
            self._given_up.dropped(self)


@dataclass(slots=True)
class _Loss:
    records: int = 0
    reason: Exception | None = None
    next_at: float = 0.0


class GivenUp(Watcher):
    """A machine that logs records given up without a look at their outcome: a line per topic and error.

    The first line is logged at once, others at most once a minute, with the number of records since the one before.

    Args:
        wake: has the machine polled soon; for any thread.
    """

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._kept: dict[int, weakref.ref[Unseen]] = {}
        self._dropped: deque[tuple[str, Exception, int]] = deque()
        self._losses: dict[_Kind, _Loss] = {}
        self._closed = False

    def note(self, outcome: _Outcome, first: int, count: int, topic: str, reason: Exception) -> None:
        """Records of an outcome, from index `first` on, are given up. Call this before that is told."""
        if self._closed:
            return
        if outcome.unseen is None:
            outcome.unseen = Unseen(self, whole=outcome.is_table)
        outcome.unseen.add(first, first + count, topic, reason)

    def keep(self, unseen: Unseen) -> None:
        """Ask for these records at the end, if their deliveries are kept until then."""
        self._kept[id(unseen)] = weakref.ref(unseen)

    def dropped(self, unseen: Unseen) -> None:
        """The last delivery of these records is gone. For any thread, at any time: garbage may be collected."""
        self._kept.pop(id(unseen), None)
        if not self._closed and (found := unseen.take()):
            self._dropped += found
            self._wake()

    def close(self) -> None:
        """Log all that is not logged, also what deliveries are kept of, which may be looked at later."""
        self._closed = True
        for known in list(self._kept.values()):
            if (unseen := known()) is not None:
                self._dropped += unseen.take()
        self._kept.clear()
        self._count()
        for kind, loss in self._losses.items():
            self._tell(kind, loss)

    # A machine

    def poll(self, now: float) -> list[Send]:
        """Log what is due; there is nothing to send."""
        if self._dropped or self._losses:
            self._count()
            for kind, loss in list(self._losses.items()):
                if now < loss.next_at:
                    continue
                if loss.records:
                    self._tell(kind, loss)
                    loss.next_at = now + _AGAIN_MS
                else:
                    del self._losses[kind]
        return []

    def next_deadline(self) -> float | None:
        """When the next line is due."""
        return min((loss.next_at for loss in self._losses.values() if loss.records), default=None)

    def _count(self) -> None:
        while self._dropped:
            topic, reason, records = self._dropped.popleft()
            kind: _Kind = (topic, type(reason), type(reason.__cause__))
            if kind not in self._losses and len(self._losses) >= _MOST:
                kind = (None, *kind[1:])
            loss = self._losses.setdefault(kind, _Loss())
            loss.records += records
            loss.reason = reason

    def _tell(self, kind: _Kind, loss: _Loss) -> None:
        if loss.records:
            where = "other topics" if kind[0] is None else f"topic {kind[0]!r}"
            lost = f"{counted(loss.records, 'record')} of {where}"
            _log.warning("gave up %s, and nobody has asked for the outcome: %s", lost, loss.reason)
            loss.records = 0
