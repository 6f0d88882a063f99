"""Rates as Apache Kafka measures them for quotas, and the wait of a client over its quota. No I/O; the caller passes
the time.
"""

from __future__ import annotations

from collections import deque
from typing import Final

__all__ = ["FULL_SECONDS", "Rate", "Tokens"]

_WINDOW_MS: Final = 1000
_WINDOWS: Final = 11  # quota.window.num: the present one and ten before it

FULL_SECONDS: Final = (_WINDOWS - 1) * _WINDOW_MS // 1000
"""The shortest time over which a rate is averaged."""


class Tokens:
    """Tokens of a quota per second: they grow by the quota, up to that of eleven seconds (KIP-599)."""

    def __init__(self) -> None:
        self._left, self._since = 0.0, float("-inf")

    def wait(self, quota: float, now: float) -> float:
        """Return the wait in ms until there are tokens again."""
        most = _WINDOWS * quota * _WINDOW_MS / 1000
        self._left = min(most, self._left + quota * (now - self._since) / 1000) if quota > 0 else self._left
        self._since = now
        return 0.0 if self._left >= 0 else -self._left * 1000 / quota if quota > 0 else float(_WINDOWS * _WINDOW_MS)

    def use(self, value: float) -> None:
        """Use some tokens; their number may become negative."""
        self._left -= value

    def is_old(self, now: float) -> bool:
        """Whether it is probably full again."""
        return now - self._since >= 60 * _WINDOWS * _WINDOW_MS


class Rate:
    """A sum for each of the last eleven seconds with values."""

    def __init__(self) -> None:
        self._samples: deque[list[float]] = deque()  # start and sum of each

    def throttle(self, value: float, quota: float, now: float) -> float:
        """Add a value; return the wait in ms that brings the rate down to the quota."""
        if not self._samples or now - self._samples[-1][0] >= _WINDOW_MS:
            self._samples.append([now, 0.0])
            while len(self._samples) > _WINDOWS:
                self._samples.popleft()
        self._samples[-1][1] += value
        while now - self._samples[0][0] >= _WINDOWS * _WINDOW_MS:
            self._samples.popleft()
        window = self._window(now)
        rate = sum(total for _, total in self._samples) / window * 1000
        return max(0.0, (rate - quota) / quota * window) if quota > 0 else window

    def take_back(self, value: float) -> None:
        """Subtract the last value."""
        if self._samples:
            self._samples[-1][1] -= value

    def is_old(self, now: float) -> bool:
        """Whether none of its values counts any longer."""
        return not self._samples or now - self._samples[-1][0] >= _WINDOWS * _WINDOW_MS

    def _window(self, now: float) -> float:
        """Return the time of the average: at least ten full windows, even for a younger rate."""
        elapsed = now - self._samples[0][0]
        missing = max(0, _WINDOWS - 1 - int(elapsed // _WINDOW_MS))
        return elapsed + missing * _WINDOW_MS
