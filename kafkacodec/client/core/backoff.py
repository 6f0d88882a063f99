"""Exponential backoff with jitter."""

from __future__ import annotations

import random

from kafkacodec.chance import RANDOM
from kafkacodec.datatypes import NamedTuple

__all__ = ["Backoff"]


class Backoff(NamedTuple):
    """The wait before the next attempt: doubles with each failure up to a limit, plus or minus a fifth (KIP-580).

    Args:
        first_ms: the wait after the first failure.
        most_ms: the longest wait.
        jitter: the fraction by which a wait varies up or down.
        random: a source of numbers from 0 to 1; None: the package's.
    """

    first_ms: float = 100
    most_ms: float = 1000
    jitter: float = 0.2
    random: random.Random | None = None

    def after(self, failures: int) -> float:
        """The wait in ms after this many consecutive failures; 0 for none."""
        if failures < 1:
            return 0.0
        wait = min(self.first_ms * 2.0 ** min(failures - 1, 60), self.most_ms)
        return wait * (self.random or RANDOM).uniform(1 - self.jitter, 1 + self.jitter)
