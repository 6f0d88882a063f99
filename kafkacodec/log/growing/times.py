"""Finding records of a growing log by their times."""

from __future__ import annotations

from collections.abc import Sequence

from kafkacodec.datatypes import NamedTuple
from kafkacodec.lazy import np
from kafkacodec.log.growing._batches import BatchHead
from kafkacodec.log.growing.segment import GrowingSegment
from kafkacodec.records.decode import decode

__all__ = ["Found", "first_at", "first_of_greatest"]


class Found(NamedTuple):
    """A record found by its time: timestamp in ms, offset, and the leader epoch of its batch."""

    timestamp: int
    offset: int
    leader_epoch: int


def first_at(segments: Sequence[GrowingSegment], timestamp: int, start_offset: int) -> Found | None:
    """Return the first record from an offset on that is at or after a time in ms."""
    for i, segment in enumerate(segments):
        before = i + 1 < len(segments) and segments[i + 1].base_offset <= start_offset
        if before or segment.max_timestamp < timestamp:
            continue
        first = segment.find(max(start_offset, segment.indexes.offset_before(timestamp)))
        for head in segment.heads(segment.size if first is None else first.position):
            if head.max_timestamp >= timestamp and head.last_offset >= start_offset:
                found = _record(segment, head, timestamp, start_offset)
                if found is not None:
                    return found
    return None


def first_of_greatest(segments: Sequence[GrowingSegment]) -> Found | None:
    """The first record with the greatest timestamp."""
    segment = max(segments, key=lambda segment: segment.max_timestamp)
    greatest = segment.max_timestamp
    if greatest < 0:
        return None
    for head in segment.heads(segment.indexes.position_before(segment.indexes.offset_of_max)):
        if head.max_timestamp == greatest:
            return _record(segment, head, greatest, head.base_offset)
    return None


def _record(segment: GrowingSegment, head: BatchHead, timestamp: int, start_offset: int) -> Found | None:
    """The first record of a batch at or after a time and an offset."""
    batch = segment.range(head.position, head.size).read()
    records = decode(batch, columns=("offset", "timestamp"), include_control=True)
    late = records["timestamp"] >= np.datetime64(timestamp, "ms")
    rows = np.flatnonzero(late & (records["offset"] >= start_offset))
    if not len(rows):
        return None
    row = int(rows[0])
    return Found(int(records["timestamp"][row].astype(np.int64)), int(records["offset"][row]), head.leader_epoch)
