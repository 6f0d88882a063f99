"""The longest chain of batches whose offsets increase."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["knots", "longest_chain"]

Ints = npt.NDArray[np.signedinteger[Any]]


def knots(base: Ints, last: Ints) -> list[tuple[int, int]]:
    """The stretches of rows that are not in order, each with the row before and after it, which are."""
    if not len(base):
        return []
    highest = np.maximum.accumulate(last)
    lowest = np.minimum.accumulate(base[::-1])[::-1]
    cuts = np.concatenate([[0], np.flatnonzero(highest[:-1] < lowest[1:]) + 1, [len(base)]])
    found = np.flatnonzero(np.diff(cuts) > 1)
    return [(max(0, int(cuts[i]) - 1), min(int(cuts[i + 1]) + 1, len(base))) for i in found]


def longest_chain(base: list[int], last: list[int], fit: list[int], named: list[int]) -> list[int]:
    """The rows of the longest chain of increasing offsets; of several, one with the most that are named or fit."""
    weight = 4 * len(base)
    worth, previous = [0] * len(base), [-1] * len(base)
    frontier = _Frontier()
    fitting: dict[int, int] = {}  # the row where the best chain ends, for each value of `fit`
    for row, first in enumerate(base):
        best, before = frontier.below(first)
        same = fitting.get(fit[row])
        if same is not None and last[same] < first and worth[same] + 2 >= best:
            best, before = worth[same] + 2, same
        worth[row], previous[row] = best + weight + named[row], before
        if same is None or worth[row] >= worth[same]:
            fitting[fit[row]] = row
        frontier.add(last[row], worth[row], row)
    chain = []
    row = frontier.rows[-1]
    while row >= 0:
        chain.append(row)
        row = previous[row]
    return chain[::-1]


class _Frontier:
    """The chains that may be continued, by their last offsets: one that ends later is worth more."""

    def __init__(self) -> None:
        self.ends: list[int] = []
        self.worths: list[int] = []
        self.rows: list[int] = []

    def below(self, offset: int) -> tuple[int, int]:
        """The worth of the best chain that ends before an offset, and its last row; 0 and -1: none."""
        at = bisect_left(self.ends, offset) - 1
        return (self.worths[at], self.rows[at]) if at >= 0 else (0, -1)

    def add(self, end: int, worth: int, row: int) -> None:
        """Add a chain, and remove those that are not better and end later."""
        at = bisect_left(self.ends, end)
        if at and self.worths[at - 1] >= worth:
            return
        stop = at
        while stop < len(self.ends) and self.worths[stop] <= worth:
            stop += 1
        if at == stop and at < len(self.ends) and self.ends[at] == end:
            return
        self.ends[at:stop], self.worths[at:stop], self.rows[at:stop] = [end], [worth], [row]
