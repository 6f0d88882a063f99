"""What clients do wrong, in the log: each kind seldom enough that no client can fill a disk with it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

__all__ = ["Notes"]

_log = logging.getLogger("kafkacodec.broker")
_PAUSE_SECONDS: Final = 60.0
_MOST: Final = 100


class Notes:
    """Logs a text as a warning at most once a minute, and at most 100 different ones; others are information.

    Args:
        clock: the time in seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._said: dict[str, float] = {}

    def say(self, text: str, who: str = "") -> None:
        """Log a text; `who` stands before it, and may differ each time."""
        now = self._clock()
        if now - self._said.get(text, now - _PAUSE_SECONDS) >= _PAUSE_SECONDS:
            self._said = {said: at for said, at in self._said.items() if now - at < _PAUSE_SECONDS}
            is_new = len(self._said) < _MOST
        else:
            is_new = False
        if is_new:
            self._said[text] = now
        _log.log(logging.WARNING if is_new else logging.INFO, "%s%s", f"{who}: " if who else "", text)
