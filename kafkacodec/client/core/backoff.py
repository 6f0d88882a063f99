"""Exponential backoff with jitter."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

__all__ = ["Backoff"]


@dataclass(frozen=True, slots=True)
class Backoff:
    """The wait before the next attempt: doubled after each failure up to a limit, and varied by a fifth (KIP-580).

    Args:
        first_ms: the wait after the first failure.
        most_ms: the longest wait.
        jitter: the part by which a wait varies up and down.
        random: a source of numbers from 0 to 1.
    """

    first_ms: float = 100
    most_ms: float = 1000
    jitter: float = 0.2
    random: random.Random = field(default_factory=random.Random, repr=False, compare=False)

    def after(self, failures: int) -> float:
        """The wait in ms after so many failures in a row; 0 after none."""
        if failures < 1:
            return 0.0
        wait = min(self.first_ms * 2.0 ** min(failures - 1, 60), self.most_ms)
        return wait * self.random.uniform(1 - self.jitter, 1 + self.jitter)
