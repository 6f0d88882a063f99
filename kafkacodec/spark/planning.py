"""From options to tasks: which byte ranges of which segment files each Spark task reads.

`kafkacodec.log` finds partitions, looks up offsets and cuts segments at batch boundaries, by index files and batch
headers alone. This module translates Spark's options into its terms.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from kafkacodec.log import Partition, Segment, SegmentRange
from kafkacodec.spark.discovery import partitions_of, steadily
from kafkacodec.spark.errors import OptionError
from kafkacodec.spark.options import EARLIEST, LATEST, Bound, ReadOptions

__all__ = ["Pruning", "divide", "plan", "readable_end", "span"]

_NO_LIMIT = (1 << 63) - 1


@dataclass(frozen=True)
class Pruning:
    """What remains after the filters that Spark pushes down: a half-open range of offsets, timestamps in ms."""

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    start_offset: int = 0
    end_offset: int = _NO_LIMIT
    start_timestamp: int | None = None

    def leaves(self, partition: Partition) -> bool:
        """Whether records of this partition may pass."""
        return (self.topics is None or partition.topic in self.topics) and (
            self.partitions is None or partition.partition in self.partitions
        )


def plan(options: ReadOptions, pruning: Pruning | None = None) -> list[tuple[SegmentRange, ...]]:
    """The ranges that each task reads, in the order of partitions and offsets.

    Raises:
        OptionError: `path` does not exist, or an option about topics, partitions or offsets does not match the files.
        OSError: a directory or file cannot be read.
    """
    pruning = pruning or Pruning()
    spans = []
    for partition in partitions_of(options):
        start, end = steadily(partition, lambda p: span(p, options))
        if pruning.leaves(partition) and max(start, pruning.start_offset) < min(end, pruning.end_offset):
            spans.append((partition, max(start, pruning.start_offset), min(end, pruning.end_offset)))
    return divide(spans, options, pruning)


def divide(
    spans: list[tuple[Partition, int, int]], options: ReadOptions, pruning: Pruning
) -> list[tuple[SegmentRange, ...]]:
    """As `plan`, for partitions with the first offset to read and the offset to stop before."""
    target = options.max_partition_bytes
    if options.min_partitions is not None:
        total = sum(piece.size_in_bytes for span in spans for piece in _ranges(*span, options, pruning, None))
        target = min(target, max(1, math.ceil(total / options.min_partitions)))
    pieces: Iterable[SegmentRange] = (piece for span in spans for piece in _ranges(*span, options, pruning, target))
    if options.max_records is not None:
        pieces = (part for piece in pieces for part in _split_by_records(piece, options.max_records))
    return _group(pieces, target, options.max_records)


def span(partition: Partition, options: ReadOptions) -> tuple[int, int]:
    """The first offset to read in a partition and the offset to stop before."""
    start, end = _value(options.start, partition), _value(options.end, partition)
    if options.start.by_timestamp == options.end.by_timestamp and start > end >= 0:
        name = f"{partition.topic}-{partition.partition}"
        raise OptionError(f"{options.start.option}: {start} for {name} is after {options.end.option}, {end}")
    if options.end.by_timestamp:
        end = _or(partition.offset_of_timestamp(end), LATEST)
    if options.start.by_timestamp:
        found = partition.offset_of_timestamp(start)
        if found is None and not options.latest_when_no_later_record:
            raise OptionError(f"{options.start.option}: no record in {partition.path} at or after timestamp {start}")
        start = _or(found, LATEST)
    if start == LATEST:
        start = readable_end(partition, options)
    return 0 if start == EARLIEST else start, min(_NO_LIMIT if end == LATEST else end, _end_limit(partition, options))


def readable_end(partition: Partition, options: ReadOptions) -> int:
    """The offset where reading ends: with ``read_committed``, at most that of the first open transaction."""
    end = partition.last_stable_offset() if options.read_committed else partition.end_offset()
    return min(end, _end_limit(partition, options))


def _end_limit(partition: Partition, options: ReadOptions) -> int:
    """The high watermark, if reading ends there and it is known."""
    return _or(partition.high_watermark if options.to_high_watermark else None, _NO_LIMIT)


def _or(value: int | None, default: int) -> int:
    return default if value is None else value


def _value(bound: Bound, partition: Partition) -> int:
    if bound.default is not None:
        return bound.default
    if partition.topic is None or partition.partition is None:
        raise OptionError(f"{bound.option}: the path {partition.path} does not name a topic and partition")
    return bound.values[partition.topic, partition.partition]


def _ranges(
    partition: Partition, start: int, end: int, options: ReadOptions, pruning: Pruning, max_bytes: int | None
) -> list[SegmentRange]:
    """The ranges of a partition between two offsets, in pieces of about `max_bytes`."""
    return steadily(
        partition,
        lambda now: now.ranges(
            start_offset=max(start, now.log_start_offset) or None,
            end_offset=end if end < _NO_LIMIT else None,
            start_timestamp=pruning.start_timestamp,
            isolation_level="read_committed" if options.read_committed else "read_uncommitted",
            max_bytes=max_bytes,
        ),
    )


def _split_by_records(whole: SegmentRange, most: int) -> Iterator[SegmentRange]:
    """Split a range into parts of at most `most` offsets; a batch that has more is a part of its own."""
    try:
        headers = Segment(whole.path).scan(columns=("position", "last_offset"), verify_crc=False)
        changed = os.stat(whole.path).st_ino != (whole.identity and whole.identity.inode)
    except FileNotFoundError:
        changed = True
    if changed:  # its task finds the offsets
        yield whole
        return
    positions = headers["position"]
    inside = slice(*np.searchsorted(positions, [whole.start_position, whole.end_position]))
    starts, last_offsets = positions[inside], headers["last_offset"][inside]
    if len(starts) == 0:
        yield whole
        return
    befores = np.concatenate(([whole.first_offset - 1], last_offsets[:-1]))
    cuts = [0]
    for i in range(1, len(starts)):
        if last_offsets[i] - befores[cuts[-1]] > most:
            cuts.append(i)
    for first, stop in pairwise([*cuts, len(starts)]):
        start = int(starts[first])
        # Bytes after the last batch stay with it: reading them finds a torn tail, damage or missing offsets.
        last = stop == len(starts)
        yield replace(
            whole,
            start_position=start,
            end_position=whole.end_position if last else int(starts[stop]),
            following=whole.following if last else None,
            flushed=whole.flushed if last else None,
            first_offset=int(befores[first]) + 1,
            last_offset=int(last_offsets[stop - 1]),
        )


def _group(pieces: Iterable[SegmentRange], target: int, max_records: int | None) -> list[tuple[SegmentRange, ...]]:
    """Combine neighbouring ranges, up to `target` bytes and, if given, `max_records` offsets."""
    groups: list[tuple[SegmentRange, ...]] = []
    current: list[SegmentRange] = []
    size = records = 0
    for piece in pieces:
        count = _offsets_in(piece) if max_records is not None else 0
        if current and (size + piece.size_in_bytes > target or records + count > (max_records or _NO_LIMIT)):
            groups.append(tuple(current))
            current, size, records = [], 0, 0
        current.append(piece)
        size += piece.size_in_bytes
        records += count
    if current:
        groups.append(tuple(current))
    return groups


def _offsets_in(piece: SegmentRange) -> int:
    return 0 if piece.last_offset is None else piece.last_offset - piece.first_offset + 1
