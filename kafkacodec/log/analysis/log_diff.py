"""Comparing two log directories, partition by partition."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

from kafkacodec.arguments import limit as checked_limit
from kafkacodec.log.analysis.difference import DEFAULT_LIMIT, Difference, compare
from kafkacodec.log.analysis.partition_statistics import partition_statistics
from kafkacodec.log.partitions.directory import discover
from kafkacodec.log.partitions.inside import origin_of
from kafkacodec.log.partitions.partition import Partition
from kafkacodec.named_rows import Tabular, fields_of
from kafkacodec.shown import counted
from kafkacodec.signatures import suggests_options

__all__ = ["Differences", "diff", "difference", "pairs"]

Source = str | os.PathLike[str] | Partition | Sequence[Partition]
Pair = tuple[Partition | None, Partition | None]


class Differences(Tabular, Iterator[Difference]):
    """An iterator of `Difference` that notebooks show as a table, with `to_arrow`, `to_pandas` and `to_polars`.

    The table has the differences that iteration has not reached, with a column for each attribute and ``equal``. It
    compares all of them, and iteration still yields each.
    """

    def __init__(self, both: Sequence[Pair], limit: int) -> None:
        self._left = deque(both)
        self._limit = limit
        self._found: deque[Difference] = deque()

    def __next__(self) -> Difference:
        if self._found:
            return self._found.popleft()
        if not self._left:
            raise StopIteration
        return self._compare()

    def _compare(self) -> Difference:
        """Compare the next pair; it stays the next if its files cannot be read."""
        found = difference(*self._left[0], self._limit)
        self._left.popleft()
        return found

    def __repr__(self) -> str:
        return f"<Differences: {counted(len(self._found) + len(self._left), 'partition')}>"

    def _columns(self) -> Mapping[str, Any]:
        return {**fields_of(Difference), "equal": bool}

    def _rows(self) -> Iterator[dict[str, Any]]:
        while self._left:
            self._found.append(self._compare())
        return (vars(found) | {"equal": found.equal} for found in self._found)

    def _hidden(self) -> Set[str]:
        return frozenset({"a_ranges", "b_ranges", "changed_columns", "records"})


@suggests_options
def diff(a: Source, b: Source, *, limit: int = DEFAULT_LIMIT) -> Differences:
    """Compare two copies of logs: two log directories, partitions or segments, or a directory and an older copy.

    It compares records by offset: timestamp, key, value and headers, in bounded memory. Batches and compression may
    differ, and so may the name of the topic if both sides are one partition. It does not read deleted records, before
    the log start offset.

    Args:
        a, b: paths, partitions, or lists of partitions.
        limit: the number of ranges of offsets, and of records, that a `Difference` lists; its counts include the
            others.

    Returns:
        Differences: an iterator of a `Difference` for each partition of either side, by topic and number; damage is in
            its `problems`.

    Raises:
        FileNotFoundError: a path does not exist, or is a directory without a partition or a segment.
        ValueError: one side has a partition in several directories.
        OSError: a segment cannot be read.
    """
    most = checked_limit("limit", limit)
    return Differences(pairs(_partitions(a), _partitions(b)), most)


def _partitions(source: Source) -> list[Partition]:
    if isinstance(source, (str, os.PathLike)):
        return discover(source)
    if isinstance(source, Partition):
        return [source]
    if not isinstance(source, Iterable):
        raise TypeError(f"what is compared must be a path, partitions or a log, not {type(source).__name__}")
    return list(source)


Key = tuple[str, int]


def pairs(a: Sequence[Partition], b: Sequence[Partition]) -> list[Pair]:
    """Return the pairs of partitions to compare; None for one that a side lacks.

    Raises:
        ValueError: one side has a partition in several directories.
    """
    if len(a) == len(b) == 1:
        return [(a[0], b[0])]
    left, right = _by_name(a), _by_name(b)
    return [(left.get(key), right.get(key)) for key in sorted(left.keys() | right.keys())]


def _by_name(partitions: Sequence[Partition]) -> dict[Key, Partition]:
    found: dict[Key, Partition] = {}
    for partition in partitions:
        key = partition.topic or origin_of(partition), partition.partition or 0
        if key in found:
            both = f"{found[key].path} and {partition.path}"
            raise ValueError(f"one side has {both}, which are the same partition; compare one log directory at a time")
        found[key] = partition
    return found


def difference(a: Partition | None, b: Partition | None, limit: int = DEFAULT_LIMIT) -> Difference:
    """The comparison of two partitions, one of which may be missing."""
    if a is not None and b is not None:
        return compare(a, b, limit)
    there = a or b
    assert there is not None
    found = Difference(
        there.topic, there.partition, None if a is None else origin_of(a), None if b is None else origin_of(b)
    )
    statistics = partition_statistics(there)
    if statistics.num_records is None:  # headers of old formats do not say
        statistics = partition_statistics(there, records=True)
    count = statistics.num_records or 0
    if a is None:
        found.b_records = found.b_only = count
    else:
        found.a_records = found.a_only = count
    found.problems += statistics.problems
    return found
