"""Warnings while the application waits, and brokers refuse what it takes to go on."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ClassVar, Final

from kafkacodec.client.core.calls import Send, Watcher
from kafkacodec.datatypes import dataclass
from kafkacodec.errors import error

__all__ = ["LONG_MS", "RECENT_MS", "HeldUp", "HeldUpCalls", "Hindrances"]

RECENT_MS: Final = 5000.0
"""How long brokers must refuse what a consumer needs before it is told, and how long ago records may be asked for."""

LONG_MS: Final = 2000.0
"""How long brokers must refuse what somebody waits for before it is told."""

_log = logging.getLogger("kafkacodec.client")

_AGAIN_MS: Final = 60_000.0
_BRIEF_MS: Final = 500.0  # new topics have leaders sooner
_PASSED_MS: Final = 10_000.0  # without a refusal
_MOST: Final = 1000


@dataclass(slots=True)
class _Hindrance:
    since: float
    last: float
    text: str


class Hindrances:
    """What brokers refuse for now, so that a client tries again.

    Args:
        most_ms: the longest wait between attempts.
    """

    def __init__(self, most_ms: float) -> None:
        self._passed_ms = _PASSED_MS + 2 * most_ms
        self._known: dict[str, _Hindrance] = {}

    def __bool__(self) -> bool:
        return bool(self._known)

    def refused(self, what: str, code: int, now: float) -> None:
        """A broker has refused it, with a temporary error.

        Args:
            what: what does not work, as the beginning of a sentence.
            code: the error.
            now: the time in ms.
        """
        text = f"{what}: {error(code).name}"
        known = self._known.get(what)
        if known is not None and now - known.last < self._passed_ms:
            known.last, known.text = now, text
            return
        if len(self._known) >= _MOST:
            self._known = {what: h for what, h in self._known.items() if now - h.last < self._passed_ms}
        if len(self._known) < _MOST:
            self._known[what] = _Hindrance(now, now, text)

    def long(self, now: float, least_ms: float, since: float = -math.inf) -> tuple[float, str] | None:
        """What has been refused time after time until now, for longest: for how many ms, and what it is.

        Args:
            now: the time in ms.
            least_ms: how long it must have been refused.
            since: refusals before this time do not count.
        """
        self._known = {what: h for what, h in self._known.items() if now - h.last < self._passed_ms}
        held = [h for h in self._known.values() if h.last - max(h.since, since) >= least_ms]
        if not held:
            return None
        first = min(held, key=lambda h: h.since)
        return now - first.since, first.text + (f", and {len(held) - 1} more" if len(held) > 1 else "")


class HeldUp(Watcher):
    """A machine that warns once a minute of what holds up an application that waits: here, for records of a consumer.

    Args:
        hindrances: what brokers refuse.
        asks: whether the application waits now; None once it is gone.
    """

    _WHO: ClassVar[str] = "the consumer"

    def __init__(self, hindrances: Hindrances, asks: Callable[[], bool | None]) -> None:
        self._hindrances, self._asks = hindrances, asks
        self._next_at = 0.0

    def poll(self, now: float) -> list[Send]:
        """Warn if that is due; there is nothing to send. It is polled after each refusal, as all machines are."""
        if self._hindrances and now >= self._next_at and self._asks():
            self._tell(self._long(now), now)
        return []

    def waited_in_vain(self, now: float) -> None:
        """Warn, if that is due, at the end of a wait that brought nothing: it may have been shorter than `RECENT_MS`.

        Whoever takes the end of such a wait for the end of the records would miss some in silence.
        """
        if now >= self._next_at:
            self._tell(self._hindrances.long(now, _BRIEF_MS), now)

    def next_deadline(self) -> float | None:
        """Never: it has something to do only after a refusal."""
        return None

    def _tell(self, found: tuple[float, str] | None, now: float) -> None:
        if found is not None:
            self._next_at = now + _AGAIN_MS
            ms, text = found
            end = self._end()
            limit = "" if end is None else f", for at most {max(end - now, 0) / 1000:.0f} s more"
            _log.warning("%s; for %.0f s %s; %s keeps trying%s", self._waits(), ms / 1000, text, self._WHO, limit)

    def _waits(self) -> str:
        """What waits, as the beginning of a sentence."""
        return "records are waited for"

    def _long(self, now: float) -> tuple[float, str] | None:
        return self._hindrances.long(now, RECENT_MS)

    def _end(self) -> float | None:
        """When the application stops to wait; None if it does not."""
        return None


class HeldUpCalls(HeldUp):
    """Of calls that wait, such as a look-up of offsets.

    Args:
        hindrances: what brokers refuse.
        clock: the time in ms.
    """

    _WHO = "the client"

    def __init__(self, hindrances: Hindrances, clock: Callable[[], float]) -> None:
        self._calls: dict[object, tuple[float, float]] = {}  # since when, and until when
        super().__init__(hindrances, lambda: bool(self._calls))
        self._clock = clock

    @contextmanager
    def waiting(self, limit_ms: float) -> Iterator[None]:
        """Around the wait of a call.

        Args:
            limit_ms: how long it waits; infinite for no limit.
        """
        now, call = self._clock(), object()
        self._calls[call] = now, now + limit_ms
        try:
            yield
        finally:
            del self._calls[call]
            if not self._calls:
                self._next_at = 0.0  # the next call is another matter

    def _waits(self) -> str:
        return "a call waits" if len(self._calls) == 1 else f"{len(self._calls)} calls wait"

    def _long(self, now: float) -> tuple[float, str] | None:
        return self._hindrances.long(now, LONG_MS, min(since for since, _ in self._calls.values()))

    def _end(self) -> float | None:
        last = max(until for _, until in self._calls.values())
        return None if last == math.inf else last
