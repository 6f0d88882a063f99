"""Doing something with many files at a time: opening one may take a millisecond, in which others can be opened."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import TypeVar

from kafkacodec.records.arguments import num_threads

__all__ = ["in_threads"]

# Handing work to a thread takes longer than opening a cached file: each one gets several files.
_CHUNK = 64

T = TypeVar("T")
R = TypeVar("R")


def in_threads(
    action: Callable[[T], R], items: Sequence[T], threads: int | None, *, chunk: int = _CHUNK
) -> Iterable[R]:
    """The results of an action on each item, in order.

    Args:
        action: called in any of the threads. The first error ends the work.
        items: few of them are done by the calling thread.
        threads: at most this many; None: the number of processors.
        chunk: how many items a thread gets at a time.
    """
    count = min(num_threads(threads), -(-len(items) // chunk))
    if count <= 1:
        return map(action, items)
    return _chained(action, [items[i : i + chunk] for i in range(0, len(items), chunk)], count)


def _chained(action: Callable[[T], R], chunks: Sequence[Sequence[T]], count: int) -> Iterator[R]:
    with ThreadPoolExecutor(count) as pool:
        try:
            yield from chain.from_iterable(pool.map(lambda chunk: list(map(action, chunk)), chunks))
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
