"""Rates as Apache Kafka measures them for quotas, and how long who is over one has to wait. No I/O; a clock in."""

from __future__ import annotations

from collections import deque
from typing import Final

__all__ = ["Rate", "Tokens"]

_WINDOW_MS: Final = 1000
_WINDOWS: Final = 11  # quota.window.num: the present one and ten before it


class Tokens:
    """What may be used at once of a quota by the second: it grows by the quota, to that of eleven seconds (KIP-599)."""

    def __init__(self) -> None:
        self._left, self._since = 0.0, float("-inf")

    def wait(self, quota: float, now: float) -> float:
        """For how many ms nothing more may be used: until what was used beyond it has grown again."""
        most = _WINDOWS * quota * _WINDOW_MS / 1000
        self._left = min(most, self._left + quota * (now - self._since) / 1000) if quota > 0 else self._left
        self._since = now
        return 0.0 if self._left >= 0 else -self._left * 1000 / quota if quota > 0 else float(_WINDOWS * _WINDOW_MS)

    def use(self, value: float) -> None:
        """Use some; there may be less than that."""
        self._left -= value

    def is_old(self, now: float) -> bool:
        """Whether it is most likely full again."""
        return now - self._since >= 60 * _WINDOWS * _WINDOW_MS


class Rate:
    """A sum for each second, of the last eleven seconds in which there was any."""

    def __init__(self) -> None:
        self._samples: deque[list[float]] = deque()  # when each began, and its sum

    def throttle(self, value: float, quota: float, now: float) -> float:
        """Add a value; returns for how many ms whoever caused it has to wait, so that the rate is the quota."""
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
        """Count off a value that was added last."""
        if self._samples:
            self._samples[-1][1] -= value

    def is_old(self, now: float) -> bool:
        """Whether nothing of it counts any more."""
        return not self._samples or now - self._samples[-1][0] >= _WINDOWS * _WINDOW_MS

    def _window(self, now: float) -> float:
        """The time over which it is the mean: at least ten full windows, though the rate may be younger."""
        elapsed = now - self._samples[0][0]
        missing = max(0, _WINDOWS - 1 - int(elapsed // _WINDOW_MS))
        return elapsed + missing * _WINDOW_MS
