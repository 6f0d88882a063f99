"""From options to tasks: which byte ranges of which segment files each Spark task reads.

`kafkacodec.log` finds partitions, looks up offsets and cuts segments at batch boundaries, by index files and batch
headers alone. This module translates Spark's options into its terms.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Sequence
from itertools import chain

from kafkacodec.datatypes import dataclass
from kafkacodec.log import Partition, SegmentRange
from kafkacodec.log.files.pool import in_threads
from kafkacodec.log.partitions.each_once import THREADS, steadily
from kafkacodec.log.partitions.inside import readable_end_offset
from kafkacodec.log.reading.cuts import Limits
from kafkacodec.spark.errors import OptionError
from kafkacodec.spark.reading.bounds import NONE_LATER
from kafkacodec.spark.reading.checkpoint import deleted_before
from kafkacodec.spark.reading.discovery import partitions_of
from kafkacodec.spark.reading.options import EARLIEST, LATEST, Bound, ReadOptions
from kafkacodec.spark.schema import METADATA

__all__ = ["Pruning", "divide", "plan", "readable_end", "refuse_without_batches", "span"]

logger = logging.getLogger("kafkacodec.spark")

_NO_LIMIT = (1 << 63) - 1

MAX_RECORDS = 2_000_000
"""Records of a task unless `maxRecordsPerPartition` is given: compressed bytes do not show how many there are."""

Span = tuple[Partition, int, int]
"""A partition, the first offset to read and the offset to stop before."""


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
        OptionError: `path` does not exist, or an option about topics, partitions or offsets does not match the files;
            with `failOnDataLoss`, if the offset to start at was deleted.
        OSError: a directory or file cannot be read.
    """
    pruning = pruning or Pruning()
    spans = []
    partitions = partitions_of(options)
    bounds = in_threads(lambda p: steadily(p, lambda now: span(now, options)), partitions, THREADS, chunk=1)
    for partition, (start, end) in zip(partitions, bounds, strict=True):
        if not pruning.leaves(partition):
            continue
        _report_deleted(partition, options)
        if max(start, pruning.start_offset) < min(end, pruning.end_offset):
            spans.append((partition, max(start, pruning.start_offset), min(end, pruning.end_offset)))
    return divide(spans, options, pruning)


def _report_deleted(partition: Partition, options: ReadOptions) -> None:
    """Raise or log that the log begins after the start offset of the options."""
    if partition.topic is None or partition.partition is None:
        return
    key = partition.topic, partition.partition
    first = options.start.offset(key)
    loss = None if first is None else deleted_before(first, steadily(partition, lambda now: now.start_offset()))
    if loss is None:
        return
    if options.fail_on_data_loss:
        raise loss.error(key)
    logger.warning("%s", loss.warning(key))


def refuse_without_batches(tasks: Iterable[Iterable[SegmentRange]], names: Iterable[str]) -> None:
    """Raises OptionError: a column is about batches, and a range is of Kafka 0.6 or 0.7, whose records have none."""
    for piece in chain.from_iterable(tasks) if METADATA in names else ():
        if not piece.kind.has_batches:
            raise OptionError(f"columns: {METADATA}: {piece.path} is of Kafka 0.6 or 0.7, which has no batches")


def divide(spans: Sequence[Span], options: ReadOptions, pruning: Pruning) -> list[tuple[SegmentRange, ...]]:
    """As `plan`, for partitions with the first offset to read and the offset to stop before."""
    limits = Limits(
        options.max_partition_bytes,
        options.max_records,
        MAX_RECORDS if options.max_records is None else None,
    )
    if options.min_partitions is not None:
        total = sum(piece.size_in_bytes for piece in _ranges(spans, options, pruning, Limits()))
        limits = limits._replace(bytes=min(limits.bytes or total, max(1, math.ceil(total / options.min_partitions))))
    return group(_ranges(spans, options, pruning, limits), limits)


def span(partition: Partition, options: ReadOptions) -> tuple[int, int]:
    """The first offset to read in a partition and the offset to stop before."""
    start, end = _value(options.start, partition), _value(options.end, partition)
    if options.start.by_timestamp == options.end.by_timestamp and start > end >= 0:
        name = f"{partition.topic}-{partition.partition}"
        first, last = options.start.shown(start), options.end.shown(end)
        raise OptionError(f"{options.start.option}: {first} for {name} is after {options.end.option}, {last}")
    if options.end.by_timestamp:
        end = _or(partition.offset_of_timestamp(end, threads=THREADS), LATEST)
    if options.start.by_timestamp:
        found = partition.offset_of_timestamp(start, threads=THREADS)
        if found is None and not options.latest_when_no_later_record:
            raise OptionError(
                f"{options.start.option}: no record in {partition.path} is at or after {options.start.shown(start)}; "
                f"{NONE_LATER}"
            )
        start = _or(found, LATEST)
    if start == LATEST:
        start = readable_end(partition, options)
    return 0 if start == EARLIEST else start, min(_NO_LIMIT if end == LATEST else end, _end_limit(partition, options))


def readable_end(partition: Partition, options: ReadOptions) -> int:
    """The offset where reading ends: with ``read_committed``, at most that of the first open transaction."""
    if options.permissive:
        end = readable_end_offset(partition)
        stable = partition.transactions(start_offset=end).last_stable_offset if options.read_committed else None
        return min(end, end if stable is None else stable, _end_limit(partition, options))
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


def _ranges(spans: Sequence[Span], options: ReadOptions, pruning: Pruning, limits: Limits) -> Iterable[SegmentRange]:
    """The ranges of partitions between two offsets, cut to the limits."""
    each = max(1, THREADS // max(1, len(spans)))

    def ranges(span: Span) -> list[SegmentRange]:
        partition, start, end = span
        return steadily(
            partition,
            lambda now: now.ranges(
                start_offset=max(start, now.log_start_offset) or None,
                end_offset=end if end < _NO_LIMIT else None,
                start_timestamp=pruning.start_timestamp,
                isolation_level="read_committed" if options.read_committed else "read_uncommitted",
                max_bytes=limits.bytes,
                max_offsets=limits.offsets,
                max_records=limits.records,
                threads=each,
            ),
        )

    return chain.from_iterable(in_threads(ranges, spans, THREADS, chunk=1))


def group(pieces: Iterable[SegmentRange], limits: Limits) -> list[tuple[SegmentRange, ...]]:
    """Combine neighbouring ranges up to the limits."""
    most = [_NO_LIMIT if limit is None else limit for limit in limits]
    groups: list[tuple[SegmentRange, ...]] = []
    current: list[SegmentRange] = []
    total = [0, 0, 0]
    for piece in pieces:
        size = _size(piece)
        total = [a + b for a, b in zip(total, size, strict=True)]
        if current and any(a > b for a, b in zip(total, most, strict=True)):
            groups.append(tuple(current))
            current, total = [], list(size)
        current.append(piece)
    if current:
        groups.append(tuple(current))
    return groups


def _size(piece: SegmentRange) -> tuple[int, int, int]:
    """The bytes, offsets and records of a range."""
    first, end = piece.offsets
    offsets = max(0, end - first) if piece.size_in_bytes and piece.kind.has_batches and end < _NO_LIMIT else 0
    return piece.size_in_bytes, offsets, math.ceil(offsets * piece.density)
