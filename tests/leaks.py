"""Whether work leaks objects."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable

_ROUNDS = 5


def assert_no_leak(work: Callable[[], None]) -> None:
    """Do the work again and again: what leaks, leaks memory blocks or references to None every time.

    Threads that other tests have started allocate and free as well, so one clean round is enough.
    """
    work()
    grown = []
    for _ in range(_ROUNDS):
        gc.collect()
        before = sys.getallocatedblocks(), sys.getrefcount(None)
        work()
        gc.collect()
        blocks, references = sys.getallocatedblocks() - before[0], sys.getrefcount(None) - before[1]
        if blocks < 100 and abs(references) < 100:
            return
        grown.append((blocks, references))
    raise AssertionError(f"memory blocks and references to None that each round left: {grown}")
