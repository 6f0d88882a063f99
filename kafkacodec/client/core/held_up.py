"""Warnings while the application waits for records, and brokers refuse what it takes to read them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from kafkacodec.client.core.calls import Send, Watcher
from kafkacodec.datatypes import dataclass
from kafkacodec.errors import error

__all__ = ["RECENT_MS", "HeldUp", "Hindrances"]

RECENT_MS: Final = 5000.0
"""How long brokers must refuse a thing before it is told, and how long ago the application may have asked last."""

_log = logging.getLogger("kafkacodec.client")

_AGAIN_MS: Final = 60_000.0
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

    def long(self, now: float) -> tuple[float, str] | None:
        """What has been refused time after time until now, for longest: for how many ms, and what it is."""
        self._known = {what: h for what, h in self._known.items() if now - h.last < self._passed_ms}
        held = [h for h in self._known.values() if h.last - h.since >= RECENT_MS]
        if not held:
            return None
        first = min(held, key=lambda h: h.since)
        return now - first.since, first.text + (f", and {len(held) - 1} more" if len(held) > 1 else "")


class HeldUp(Watcher):
    """A machine that warns once a minute of what holds up an application that waits for records.

    Args:
        hindrances: what brokers refuse.
        asks: whether the application asks for records now; None once it is gone.
    """

    def __init__(self, hindrances: Hindrances, asks: Callable[[], bool | None]) -> None:
        self._hindrances, self._asks = hindrances, asks
        self._next_at = 0.0

    def poll(self, now: float) -> list[Send]:
        """Warn if that is due; there is nothing to send. It is polled after each refusal, as all machines are."""
        if self._hindrances and now >= self._next_at and self._asks():
            found = self._hindrances.long(now)
            if found is not None:
                self._next_at = now + _AGAIN_MS
                ms, text = found
                _log.warning("records are waited for; for %.0f s %s; the consumer keeps trying", ms / 1000, text)
        return []

    def next_deadline(self) -> float | None:
        """Never: it has something to do only after a refusal."""
        return None
