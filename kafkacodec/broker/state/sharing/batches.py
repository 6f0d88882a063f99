"""States of ranges of offsets in a share group, and their combination."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from itertools import pairwise

from kafkacodec.datatypes import NamedTuple

__all__ = ["Batch", "combined"]


class Batch(NamedTuple):
    """A range of offsets: its state and number of deliveries. The names are those of Kafka's messages."""

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


def combined(known: Iterable[Batch], new: Iterable[Batch], start: int) -> tuple[Batch, ...]:
    """Return ranges of two sources as one list without overlaps, from an offset on.

    In an overlap, the range with more deliveries counts, then the greater state: acknowledged and archived are greater
    than available. Equal neighbours become one. It takes O(n log n) steps for n ranges.
    """
    ranges = sorted(
        batch._replace(first_offset=max(batch.first_offset, start))
        for batch in (*known, *new)
        if max(batch.first_offset, start) <= batch.last_offset
    )
    bounds = sorted({bound for batch in ranges for bound in (batch.first_offset, batch.last_offset + 1)})
    made: list[Batch] = []
    open_now: list[tuple[int, int, int]] = []  # count and state, negative, and the end
    at = 0
    for first, end in pairwise(bounds):
        while at < len(ranges) and ranges[at].first_offset <= first:
            batch = ranges[at]
            heapq.heappush(open_now, (-batch.delivery_count, -batch.delivery_state, batch.last_offset))
            at += 1
        while open_now and open_now[0][2] < first:
            heapq.heappop(open_now)
        if open_now:
            count, state, _ = open_now[0]
            last = made[-1] if made else None
            if last is not None and (last.last_offset, last[2:]) == (first - 1, (-state, -count)):
                made[-1] = last._replace(last_offset=end - 1)
            else:
                made.append(Batch(first, end - 1, -state, -count))
    return tuple(made)
