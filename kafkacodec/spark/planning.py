"""From options to tasks: which byte ranges of which segment files each Spark task reads.

`kafkacodec.log` finds partitions, looks up offsets and cuts segments at batch boundaries, by index files and batch
headers alone. This module translates Spark's options into its terms.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from glob import glob, has_magic
from itertools import pairwise
from typing import TypeVar

import numpy as np

from kafkacodec.errors import Truncated
from kafkacodec.log import Partition, Segment, SegmentRange, discover
from kafkacodec.log.relocate import MAX_TRIES, PAUSE_SECONDS
from kafkacodec.spark.errors import OptionError
from kafkacodec.spark.options import EARLIEST, LATEST, Bound, ReadOptions, TopicPartition, local_path

__all__ = ["Pruning", "divide", "partitions_of", "plan", "readable_end", "selected", "span", "steadily"]

_NO_LIMIT = (1 << 63) - 1

# How often to plan a partition again if a file was shortened: damage has the same error, and stays.
_SHORTENED_TRIES = 5

T = TypeVar("T")


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


def partitions_of(options: ReadOptions) -> list[Partition]:
    """The selected partitions.

    Raises:
        OptionError: `path` does not exist, or an option names a topic or partition without segments.
    """
    selection = options.selection
    found = selected(options)
    named = {(p.topic, p.partition) for p in found if p.topic is not None and p.partition is not None}
    if selection.topics is not None:
        _refuse("subscribe: no segments of", selection.topics - {topic for topic, _ in named})
    if selection.partitions is not None:
        _refuse("assign: no segments of", _names(selection.partitions - named))
    for bound in (options.start, options.end):
        if bound.values:
            # As in Spark's Kafka source, exactly the selected partitions must be named.
            _refuse(f"{bound.option}: no value for the selected partitions", _names(named - set(bound.values)))
            _refuse(f"{bound.option}: names partitions that are not selected:", _names(set(bound.values) - named))
    return found


def selected(options: ReadOptions) -> list[Partition]:
    """As `partitions_of`, whether or not the options name others too."""
    return [p for p in _discover(options.paths) if options.selection.wants(p.topic, p.partition)]


def _discover(paths: Iterable[str]) -> list[Partition]:
    """The partitions under directories, globs and segment files."""
    local: dict[str, None] = {}
    for path in paths:
        plain = local_path(path)
        matches = sorted(glob(plain, recursive=True)) if has_magic(plain) and not os.path.exists(plain) else [plain]
        if not matches:
            raise OptionError(f"path: no file or directory matches {path}")
        local.update(dict.fromkeys(map(os.path.abspath, matches)))
    try:
        return discover(local)
    except FileNotFoundError as error:
        raise OptionError(f"path: {error.filename}: {error.strerror}") from None


def _refuse(what: str, names: Iterable[str]) -> None:
    listed = ", ".join(sorted(names))
    if listed:
        raise OptionError(f"{what} {listed}")


def _names(partitions: Iterable[TopicPartition]) -> list[str]:
    return [f"{topic}-{partition}" for topic, partition in partitions]


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


def steadily(partition: Partition, action: Callable[[Partition], T]) -> T:
    """The result of an action on a partition whose files a broker may replace or delete meanwhile.

    Raises:
        FileNotFoundError: the partition's directory is gone, or files of it are whenever it is listed.
    """
    tries = 0
    while True:
        try:
            return action(partition)
        except (FileNotFoundError, Truncated) as error:
            tries += 1
            most = MAX_TRIES if isinstance(error, FileNotFoundError) else _SHORTENED_TRIES
            if tries > most or not os.path.isdir(partition.path):
                raise
            time.sleep(PAUSE_SECONDS)
            partition = partition.relisted()


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
