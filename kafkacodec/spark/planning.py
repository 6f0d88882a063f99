"""From options to tasks: which byte ranges of which segment files each Spark task reads.

Only file sizes and names are looked at while they suffice; batch headers are read (never bodies) where a segment has
to be split, cut to a range of offsets or counted.
"""

from __future__ import annotations

import logging
import math
import mmap
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

import numpy as np
import numpy.typing as npt

import kafkacodec as kc
from kafkacodec.errors import DecodeError
from kafkacodec.spark.files import SegmentFile, find_segments
from kafkacodec.spark.options import EARLIEST, LATEST, Bound, OptionError, ReadOptions, TopicPartition

__all__ = ["Slice", "plan"]

logger = logging.getLogger("kafkacodec.spark")

# Offsets from the first to the last that there can be.
ALL_OFFSETS = (0, (1 << 63) - 1)


@dataclass(frozen=True)
class Slice:
    """A range of whole batches in one segment file, and the offsets in it that are wanted."""

    path: str
    topic: str | None
    partition: int | None
    start: int
    end: int
    start_offset: int | None = None
    end_offset: int | None = None
    records: int | None = None

    @property
    def size(self) -> int:
        """Bytes to read."""
        return self.end - self.start


@dataclass(frozen=True)
class BatchTable:
    """What the headers of a segment's batches tell, as arrays with a row per batch."""

    positions: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    last_offsets: npt.NDArray[np.int64]
    max_timestamps: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.positions)


@dataclass(frozen=True)
class Pruning:
    """What filters that Spark hands down leave: ranges are half open, in offsets and in milliseconds."""

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    start_offset: int = ALL_OFFSETS[0]
    end_offset: int = ALL_OFFSETS[1]
    start_timestamp: int | None = None

    def leaves(self, topic: str | None, partition: int | None) -> bool:
        """Whether a partition's records can pass."""
        return (self.topics is None or topic in self.topics) and (
            self.partitions is None or partition in self.partitions
        )


def plan(options: ReadOptions, pruning: Pruning | None = None) -> list[tuple[Slice, ...]]:
    """The slices that each task reads, in the order of directories and offsets.

    Raises:
        OptionError: where `path` leads nowhere, or where offsets are asked for that the files contradict.
        DecodeError: from a damaged batch header, in the mode FAILFAST.
        OSError: for a file that cannot be read.
    """
    pruning = pruning or Pruning()
    slices: list[Slice] = []
    for log in by_log(select(options)):
        if pruning.leaves(log[0].topic, log[0].partition):
            start, end = _range(log, options)
            slices += _slices(log, max(start, pruning.start_offset), min(end, pruning.end_offset), options, pruning)
    return _group(slices, options)


def select(options: ReadOptions) -> list[SegmentFile]:
    """The segment files of the partitions that are selected."""
    selection = options.selection
    segments = [s for s in find_segments(options.paths) if selection.wants(s.topic, s.partition)]
    if selection.topics is not None:
        missing = sorted(selection.topics - {s.topic for s in segments if s.topic is not None})
    elif selection.partitions is not None:
        missing = [f"{t}-{p}" for t, p in sorted(selection.partitions - _partitions(segments))]
    else:
        missing = []
    if missing:
        raise OptionError(f"{selection.option}: not under {', '.join(options.paths)}: {', '.join(missing)}")
    for bound in (options.start, options.end):
        if bound.values:
            _check_coverage(bound, segments)
    return segments


def _check_coverage(bound: Bound, segments: Sequence[SegmentFile]) -> None:
    """As in Spark's Kafka source, a map of partitions has to name each selected one and no other."""
    selected = _partitions(segments)
    missing, surplus = selected - set(bound.values), set(bound.values) - selected
    if missing:
        names = ", ".join(f"{topic}-{partition}" for topic, partition in sorted(missing))
        raise OptionError(f"{bound.option}: does not name every selected partition; missing: {names}")
    if surplus:
        names = ", ".join(f"{topic}-{partition}" for topic, partition in sorted(surplus))
        raise OptionError(f"{bound.option}: names partitions that are not selected: {names}")


def _partitions(segments: Iterable[SegmentFile]) -> set[TopicPartition]:
    return {(s.topic, s.partition) for s in segments if s.topic is not None and s.partition is not None}


def by_log(segments: Iterable[SegmentFile]) -> Iterator[list[SegmentFile]]:
    """The segments of each partition directory, in the order of their offsets."""
    for _, log in groupby(segments, key=lambda segment: segment.directory):
        yield list(log)


def _range(log: Sequence[SegmentFile], options: ReadOptions) -> tuple[int, int]:
    """The first offset to read and the one to stop before, for the partition that these segments make up."""
    topic, partition = log[0].topic, log[0].partition
    start, end = _value(options.start, topic, partition), _value(options.end, topic, partition)
    first, stop = start, end
    if options.start.by_timestamp:
        found = first_offset_at(log, start, options)
        if found is None and not options.latest_when_no_later_record:
            raise OptionError(f"{options.start.option}: {topic}-{partition} has no record at or after {start}")
        first = ALL_OFFSETS[1] if found is None else found
    elif start == EARLIEST:
        first = ALL_OFFSETS[0]
    elif start == LATEST:
        first = end_offset(log, options)
    if options.end.by_timestamp:
        found = first_offset_at(log, end, options)
        stop = ALL_OFFSETS[1] if found is None else found
    elif end == LATEST:
        stop = ALL_OFFSETS[1]
    if start > end >= 0 and options.start.by_timestamp == options.end.by_timestamp:
        raise OptionError(
            f"{options.start.option}: {start} for {topic}-{partition} is after {options.end.option}, {end}"
        )
    return first, stop


def _value(bound: Bound, topic: str | None, partition: int | None) -> int:
    if bound.default is not None:
        return bound.default
    if topic is None or partition is None:
        raise OptionError(f"{bound.option}: a segment outside a topic's directory has no partition to look up")
    return bound.values[topic, partition]


def first_offset_at(log: Sequence[SegmentFile], timestamp: int, options: ReadOptions) -> int | None:
    """The offset of the first record with this timestamp (milliseconds) or a later one, None if there is none."""
    for segment in log:
        table = batch_table(segment.path, options)
        if table is None:
            continue
        for index in np.flatnonzero(table.max_timestamps >= timestamp):
            batch = map_file(segment.path)[int(table.positions[index]) : int(table.ends[index])]
            records = kc.decode(batch, columns=["offset", "timestamp"])
            later = np.flatnonzero(records["timestamp"].view(np.int64) >= timestamp)
            if len(later):
                return int(records["offset"][later[0]])
    return None


def end_offset(log: Sequence[SegmentFile], options: ReadOptions) -> int:
    """The offset that the next record of this log will get."""
    for segment in reversed(log):
        table = batch_table(segment.path, options)
        if table is not None and len(table):
            return int(table.last_offsets.max()) + 1
    return log[-1].base_offset or 0


def _slices(
    log: Sequence[SegmentFile], start: int, end: int, options: ReadOptions, pruning: Pruning
) -> Iterator[Slice]:
    """The parts of a log's segments that hold these offsets."""
    for segment, following in zip(log, [*log[1:], None], strict=True):
        base = segment.base_offset or 0
        after = ALL_OFFSETS[1]
        if following is not None and following.base_offset is not None:
            after = following.base_offset
        if segment.size == 0 or base >= end or after <= start:
            continue
        whole = Slice(
            segment.path,
            segment.topic,
            segment.partition,
            0,
            segment.size,
            start if start > base else None,
            end if end < after else None,
        )
        if whole.start_offset is None and whole.end_offset is None and pruning.start_timestamp is None:
            yield whole
        else:
            yield from _cut(whole, options, pruning.start_timestamp)


def _cut(whole: Slice, options: ReadOptions, start_timestamp: int | None) -> Iterator[Slice]:
    """A slice without the batches at its ends that hold nothing that is wanted."""
    table = batch_table(whole.path, options)
    if table is None:
        yield whole
        return
    wanted = np.ones(len(table), dtype=bool)
    if whole.start_offset is not None:
        wanted &= table.last_offsets >= whole.start_offset
    if whole.end_offset is not None:
        # A batch's first offset is after the last of the one before; in old formats its header does not tell it.
        wanted[1:] &= table.last_offsets[:-1] + 1 < whole.end_offset
    if start_timestamp is not None:
        wanted &= table.max_timestamps >= start_timestamp
    indices = np.flatnonzero(wanted)
    if len(indices):
        first, last = indices[0], indices[-1]
        yield replace(whole, start=int(table.positions[first]), end=int(table.ends[last]))


def _group(slices: Sequence[Slice], options: ReadOptions) -> list[tuple[Slice, ...]]:
    """Slices of about equal size: large ones split at batch boundaries, neighbours put together."""
    total = sum(piece.size for piece in slices)
    target = options.max_partition_bytes
    if options.min_partitions is not None:
        target = min(target, max(1, math.ceil(total / options.min_partitions)))
    groups: list[tuple[Slice, ...]] = []
    current: list[Slice] = []
    size = records = 0
    for piece in (part for whole in slices for part in _split(whole, target, options)):
        full = size + piece.size > target or records + (piece.records or 0) > (options.max_records or ALL_OFFSETS[1])
        if current and full:
            groups.append(tuple(current))
            current, size, records = [], 0, 0
        current.append(piece)
        size += piece.size
        records += piece.records or 0
    if current:
        groups.append(tuple(current))
    return groups


def _split(whole: Slice, target: int, options: ReadOptions) -> Iterator[Slice]:
    """A slice in parts of at most about `target` bytes and, where that is asked for, of so many records."""
    if whole.size <= target and options.max_records is None:
        yield whole
        return
    table = batch_table(whole.path, options)
    if table is None or len(table) == 0:
        yield whole
        return
    first = int(np.searchsorted(table.positions, whole.start))
    last = int(np.searchsorted(table.positions, whole.end))
    share = math.ceil(whole.size / math.ceil(whole.size / target))
    totals = np.concatenate(([0], np.cumsum(table.counts)))
    cuts = [first]
    while cuts[-1] < last:
        index = cuts[-1]
        stop = int(np.searchsorted(table.positions, table.positions[index] + share))
        if options.max_records is not None:
            most = int(np.searchsorted(totals, totals[index] + options.max_records, side="right")) - 1
            stop = min(stop, most)
        cuts.append(min(last, max(stop, index + 1)))
    for index, stop in pairwise(cuts):
        # What follows the last whole batch goes with it: the decoder knows a torn tail from damage.
        end = whole.end if stop == last else int(table.positions[stop])
        records = int(totals[stop] - totals[index])
        yield replace(whole, start=int(table.positions[index]), end=end, records=records)


def map_file(path: str) -> memoryview:
    """A file's bytes without reading them: pages come in as they are touched, and go with the last view of them."""
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return memoryview(b"")
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def batch_table(path: str, options: ReadOptions) -> BatchTable | None:
    """The batch headers of a segment; None in the mode PERMISSIVE when one is damaged: the file is then read whole."""
    try:
        headers = kc.scan(map_file(path), verify_crc=False)
    except (DecodeError, OSError) as error:
        if not options.permissive:
            raise
        logger.warning("%s: batch headers cannot be read: %s", path, error)
        return None
    positions = headers["position"].astype(np.int64)
    return BatchTable(
        positions,
        positions + headers["size_in_bytes"],
        headers["last_offset"].astype(np.int64),
        headers["max_timestamp"].view(np.int64),
        headers["count"].astype(np.int64),
    )
