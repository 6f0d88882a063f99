"""Whether work leaks objects, and how much memory it takes."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable

from kafkacodec.messages._struct import MOST_KEPT

_ROUNDS = 5
_NOISE = 300  # blocks, or references, that other threads may leave meanwhile


KEPT_BY_SANITIZER = 0 if MOST_KEPT else 96 << 20
"""Bytes that AddressSanitizer keeps after they are freed, and what it notes of them."""


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


def assert_takes_less(most: int, work: Callable[[], object]) -> None:
    """Do the work, whose result or exception is forgotten with it: it takes less than `most` bytes at any moment.

    What threads of other tests and the ends of their objects allocate meanwhile counts as well, so one clean round is
    enough: what the work itself takes, it takes every time.
    """
    taken = []
    for _ in range(_ROUNDS):
        tracemalloc.start()
        try:
            work()
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        if peak < most:
            return
        taken.append(peak)
        gc.collect()
    raise AssertionError(f"bytes that each round took, where less than {most} are right: {taken}")
