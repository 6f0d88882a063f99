"""Warnings that are due: each once in a while, whichever connections it is about."""

from __future__ import annotations

from typing import Final

__all__ = ["QUIET_MS", "Quiet"]

QUIET_MS: Final = 60_000.0
"""How long a warning is not repeated."""

_MOST: Final = 100


class Quiet:
    """Which warnings were logged in the last minute. Several connections to a broker fail for the same reason."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}

    def wants(self, text: str, now: float) -> bool:
        """Whether to log a warning; then it is not due again for a minute."""
        if now < self._until.get(text, 0.0):
            return False
        if len(self._until) >= _MOST:
            self._until = {said: until for said, until in self._until.items() if now < until}
        if len(self._until) < _MOST:
            self._until[text] = now + QUIET_MS
        return True
