"""Work on many files at a time: opening one may take a millisecond, in which others can be opened."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import TypeVar

from kafkacodec.arguments import num_threads

__all__ = ["in_threads"]

# Handing work to a thread takes longer than opening a cached file: each one gets several files.
_CHUNK = 64

# Files that are cached are opened faster by one thread: others start when it has waited this long for a disk.
_WAIT_SECONDS = 0.002
_LOOK_EVERY = 16

T = TypeVar("T")
R = TypeVar("R")


def in_threads(
    action: Callable[[T], R], items: Sequence[T], threads: int | None, *, chunk: int = _CHUNK
) -> Iterator[R]:
    """Return the results of an action on each item, in order.

    The calling thread starts. If the actions make it wait, mostly for a file system, other threads do the rest.

    Args:
        action: called in any of the threads. The first error ends the work.
        items: few of them are done by the calling thread.
        threads: at most this many; None: the number of processors.
        chunk: the number of items that a thread gets at a time.
    """
    most, step = num_threads(threads), min(chunk, _LOOK_EVERY)
    waited = 0.0
    for start in range(0, len(items), step):
        count = min(most, -(-(len(items) - start) // chunk))
        if count <= 1:
            yield from map(action, items[start:])
            return
        if waited > _WAIT_SECONDS:
            yield from _chained(action, [items[i : i + chunk] for i in range(start, len(items), chunk)], count)
            return
        begin, busy = time.perf_counter(), time.thread_time()
        results = list(map(action, items[start : start + step]))
        waited += time.perf_counter() - begin - (time.thread_time() - busy)
        yield from results


def _chained(action: Callable[[T], R], chunks: Sequence[Sequence[T]], count: int) -> Iterator[R]:
    with ThreadPoolExecutor(count) as pool:
        try:
            yield from chain.from_iterable(pool.map(lambda chunk: list(map(action, chunk)), chunks))
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
