"""The last records of a partition, found from its end: earlier segments are not read."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Unpack

import numpy as np

from kafkacodec.arguments import limit
from kafkacodec.log.partitions.inside import is_read_by_name, readable_end_offset
from kafkacodec.log.partitions.partition import Partition
from kafkacodec.log.reading.options import ReadOptions
from kafkacodec.records.columns import RecordColumns
from kafkacodec.records.searching import Search

__all__ = ["read_last"]

Span = tuple[int | None, int | None]
"""A start and an end offset; None is no bound."""


def read_last(
    partition: Partition, count: int, *, search: Search | None = None, **options: Unpack[ReadOptions]
) -> list[RecordColumns]:
    """The last records of a partition, in order, in chunks.

    Args:
        partition: the partition.
        count: how many records; there are fewer if the partition or the span between `start_offset` and `end_offset`
            has fewer.
        search: only records that match; their columns must be among those requested.
        The other options: as in `Partition.read`.

    Raises:
        As `Partition.read`, for the part of the log that is read.
    """

    def read(span: Span) -> Iterator[RecordColumns]:
        options["start_offset"], options["end_offset"] = span
        for chunk in partition.read(**options):
            yield search.select(chunk) if search else chunk

    bounds = options.get("start_offset"), options.get("end_offset")
    return last_chunks(partition, limit("count", count), bounds, read)


def last_chunks(
    partition: Partition, count: int, bounds: Span, read: Callable[[Span], Iterator[RecordColumns]]
) -> list[RecordColumns]:
    """The last `count` records that `read` gives between two offsets."""
    found: list[RecordColumns] = []
    missing = count
    for span in _spans(partition, max(count, 1), bounds):
        if missing <= 0:
            break
        if not is_read_by_name(partition, *span):  # a read gives records in the order of files, not of offsets
            return _last_rows(read(bounds), count)
        last = _last_rows(read(span), missing)
        found = last + found
        missing -= sum(map(len, last))
    return found


def _spans(partition: Partition, count: int, bounds: Span) -> Iterator[Span]:
    """Spans of offsets, the last one first: each is twice as long as the one after it."""
    start, end = bounds
    if partition.is_kafka07:  # offsets are positions, and only those of messages can be read from
        yield bounds
        return
    first = max(partition.start_offset(), 0) if start is None else start
    until = readable_end_offset(partition)  # the first span has what cannot be read, too
    until = until if end is None else min(end, until)
    stop, size = end, count
    while until - size > first:
        until -= size
        yield until, stop
        stop, size = until, size * 2
    yield start, stop


def _last_rows(chunks: Iterator[RecordColumns], count: int) -> list[RecordColumns]:
    """The last rows of all chunks; keeps at most one chunk more than needed."""
    kept: deque[RecordColumns] = deque()
    rows = 0
    for chunk in chunks:
        kept.append(chunk)
        rows += len(chunk)
        while rows - len(kept[0]) >= count:
            rows -= len(kept.popleft())
    if rows > count:
        kept[0] = kept[0].take(np.arange(rows - count, len(kept[0])))
    return list(kept)
