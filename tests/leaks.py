"""Whether work leaks objects."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable

_ROUNDS = 5
_NOISE = 300  # blocks, or references, that other threads may leave meanwhile


def assert_no_leak(work: Callable[[], None]) -> None:
    """Do the work again and again: what leaks, leaks memory blocks or references to None every time.

    Threads that other tests have started allocate and free as well, so one clean round is enough, and the work must
    repeat what could leak at least 200 times.
    """
    work()
    grown = []
    for _ in range(_ROUNDS):
        gc.collect()
        before = sys.getallocatedblocks(), sys.getrefcount(None)
        for _ in range(3):
            work()
        gc.collect()
        blocks, references = sys.getallocatedblocks() - before[0], sys.getrefcount(None) - before[1]
        if blocks < _NOISE and abs(references) < _NOISE:
            return
        grown.append((blocks, references))
    raise AssertionError(f"memory blocks and references to None that each round left: {grown}")
