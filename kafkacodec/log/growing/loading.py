"""Opening a growing log: its segments, and their intact parts."""

from __future__ import annotations

import os
from collections.abc import Sequence

from kafkacodec.datatypes import NamedTuple
from kafkacodec.log.formats import layout
from kafkacodec.log.growing._batches import find_batch
from kafkacodec.log.growing.disk import Disk
from kafkacodec.log.growing.epochs import LogEpochs
from kafkacodec.log.growing.producers import LogProducers, snapshot_offsets, snapshot_path
from kafkacodec.log.growing.segment import GrowingSegment
from kafkacodec.log.growing.swapping import finish_swaps
from kafkacodec.log.opening import open_file
from kafkacodec.log.segments.walk import walk

__all__ = ["Loss", "find_segments", "load_producers", "recover", "remove_leftovers", "remove_snapshots"]

_LEFTOVERS = (layout.DELETED_SUFFIX, ".tmp")
_INDEX_SUFFIXES = (layout.OFFSET_INDEX_SUFFIX, layout.TIME_INDEX_SUFFIX, layout.TRANSACTION_INDEX_SUFFIX)


class Loss(NamedTuple):
    """The part that recovery removed after an unclean stop, after the last complete batch.

    Attributes:
        end_offset (int): the new end of the log.
        bytes (int): the number of removed bytes.
        segments (int): the number of whole segments after them.
        reason (str): the fault of the first of them.
    """

    end_offset: int
    bytes: int
    segments: int
    reason: str


def remove_leftovers(directory: str, disk: Disk) -> None:
    """Remove deleted and unfinished files, and indexes of no segment; finish the cleaner's swaps."""
    for name in os.listdir(directory):
        if name.endswith(_LEFTOVERS):
            disk.remove(os.path.join(directory, name))
    finish_swaps(directory, disk)
    names = set(os.listdir(directory))
    for name in names:
        stem, suffix = os.path.splitext(name)
        if suffix in _INDEX_SUFFIXES and layout.parse_file_name(name) and stem + layout.LOG_SUFFIX not in names:
            disk.remove(os.path.join(directory, name))


def find_segments(
    directory: str, interval: int, disk: Disk, created: int, *, only: int | None = None
) -> list[GrowingSegment]:
    """Return the segments in a directory, by offset; or only the one with this base offset."""
    segments = []
    for name in os.listdir(directory):
        parts = layout.parse_file_name(name)
        if parts is not None and parts.suffix == layout.LOG_SUFFIX and parts.segment_id is None:
            if only is not None and parts.base_offset != only:
                continue
            segment = GrowingSegment(directory, parts.base_offset, interval, disk, created)
            segment.size = os.stat(segment.path).st_size
            segments.append(segment)
    return sorted(segments, key=lambda segment: segment.base_offset)


def recover(segments: list[GrowingSegment], from_offset: int, epochs: LogEpochs) -> tuple[int, Loss | None]:
    """Find the last complete batch after an unclean stop, and remove everything after it.

    Args:
        segments: all, at least one; it removes lost ones.
        from_offset: earlier records are known to be on the disk.
        epochs: the leader epochs, which get those of the batches.

    Returns:
        The offset from which it read batches; and the loss.
    """
    first, position = _beginning(segments, from_offset)
    head = find_batch(segments[first].mapped(), position, segments[first].size, 0) if position else None
    began = following = segments[first].base_offset if head is None else head.base_offset
    for i in range(first, len(segments)):
        segment = segments[i]
        if i > first and segment.base_offset < following:
            return began, _remove(segments, i, following, 0, "segments overlap")
        following = following if position else segment.base_offset
        end, following, reason = _check(segment, position, following, epochs)
        removed = segment.size - end
        segment.aborted.truncate(began)
        segment.cut(end)
        segment.index_again(position)
        if i + 1 < len(segments):
            segment.seal()
        if removed:
            return began, _remove(segments, i + 1, following, removed, reason)
        position = 0
    return began, None


def load_producers(
    producers: LogProducers, segments: Sequence[GrowingSegment], offset: int, changed_from: int | None
) -> None:
    """Follow the producers to the end of a log.

    Args:
        producers: whose newest snapshot at or before `offset` is the beginning.
        segments: all.
        offset: as said.
        changed_from: transactions that were aborted at this offset or later are added to the transaction indexes.
    """
    begin = producers.resume(offset)
    for i, segment in enumerate(segments):
        if i + 1 < len(segments) and segments[i + 1].base_offset <= begin:
            continue
        found = segment.find(begin)
        for head in segment.heads(segment.size if found is None else found.position):
            if head.producer_id >= 0:
                batch = segment.range(head.position, head.size)
                aborted = producers.take(head, batch.read)
                if aborted is not None and changed_from is not None and aborted.last_offset >= changed_from:
                    segment.aborted.add(aborted)


def remove_snapshots(directory: str, segments: Sequence[GrowingSegment], end_offset: int, disk: Disk) -> None:
    """Remove the snapshots after the end of a log, and those before it that are neither at a segment nor the newest."""
    offsets = sorted(snapshot_offsets(directory))
    kept = {segment.base_offset for segment in segments} | set([o for o in offsets if o <= end_offset][-1:])
    for offset in offsets:
        if offset > end_offset or offset not in kept:
            disk.remove(snapshot_path(directory, offset))


def _beginning(segments: Sequence[GrowingSegment], from_offset: int) -> tuple[int, int]:
    """Return the first segment to check, and the position: at or before it, an index entry is right."""
    first = max((i for i, s in enumerate(segments) if s.base_offset <= from_offset), default=0)
    for i, segment in enumerate(segments[: first + 1]):
        if not segment.load_indexes():
            return i, 0
    segment = segments[first]
    position = segment.indexes.position_before(from_offset)
    head = find_batch(segment.mapped(), position, segment.size, 0) if 0 < position < segment.size else None
    return first, position if head is not None and head.base_offset <= from_offset else 0


def _check(segment: GrowingSegment, position: int, following: int, epochs: LogEpochs) -> tuple[int, int, str]:
    """Return, from a position and its offset on, the end of the complete batches, their end offset, and the fault."""
    columns = ("position", "size_in_bytes", "magic", "base_offset", "last_offset", "partition_leader_epoch", "crc_ok")
    end, headers = position, None
    if position == segment.size:
        return end, following, ""
    with open_file(segment.path) as file:
        for headers in walk(file, position, verify_crc=True, columns=columns):
            rows = zip(*(headers[name].tolist() for name in columns), strict=True)
            for at, size, magic, base, last, epoch, sound in rows:
                if not sound:
                    return end, following, "the checksum of a batch is wrong"
                if (base if magic >= 2 else last) < following or last < following:
                    return end, following, "the offsets of a batch are not after those before it"
                if magic >= 2 and epoch > epochs.latest:
                    epochs.assign(epoch, base)
                end, following = at + size, last + 1
    problems = [] if headers is None else headers.problems
    return end, following, str(problems[0].exception) if problems else "a batch is incomplete"


def _remove(segments: list[GrowingSegment], first: int, end_offset: int, removed: int, reason: str) -> Loss:
    lost = segments[first:]
    del segments[first:]
    for segment in reversed(lost):
        segment.remove()
    return Loss(end_offset, removed + sum(segment.size for segment in lost), len(lost), reason)
