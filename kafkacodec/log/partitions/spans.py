"""The segments to read for a span of offsets: those whose names include it, or all where names are seen to be wrong."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from kafkacodec.errors import DecodeError
from kafkacodec.log.opening import is_url, open_file
from kafkacodec.log.opening.listing import may_overlap
from kafkacodec.log.order.corrections import first_offsets
from kafkacodec.log.partitions.segment import Segment
from kafkacodec.log.segments.kinds import kind_of
from kafkacodec.log.segments.walk import first_batches

__all__ = ["segments_to_read"]


def segments_to_read(
    named: Sequence[Segment], segments: Sequence[Segment], start_offset: int | None, end_offset: int | None
) -> Sequence[Segment]:
    """The segments that have the records of a span.

    Where it begins and ends, the first batch and the last offset of the segment there, and of those beside it, are
    compared with their names. Objects of stores are not: each look at one is a request.

    Args:
        named: the segments whose names include the span.
        segments: all of the log.
        start_offset, end_offset: the span; None: no bound.
    """
    if len(named) == len(segments):
        return named
    edges = {segment.path for segment in (named[:1] or segments[:1]) if start_offset is not None or not named}
    edges |= {segment.path for segment in (named[-1:] if end_offset is not None else ())}
    for at, segment in enumerate(segments):
        if segment.path in edges and _is_misnamed(segments, at):
            return segments
    return named


def _is_misnamed(segments: Sequence[Segment], at: int) -> bool:
    """Whether the names of a segment, of the one before or the one after it contradict its batches."""
    if is_url(segments[at].path):
        return False
    before, segment, after = ([*segments[max(i, 0) : i + 1], None][0] for i in (at - 1, at, at + 1))
    with suppress(DecodeError, OSError):  # who reads it finds that again
        return any(map(_begins_before_name, (segment, after))) or _overlap(segment, after) or _overlap(before, segment)
    return False


def _begins_before_name(segment: Segment | None) -> bool:
    if segment is None or segment.base_offset is None or not kind_of(segment.path).has_batches:
        return False
    with open_file(segment.path) as file:
        batch = first_batches(file, 0)
        return len(batch) > 0 and int(first_offsets(batch)[0]) < segment.base_offset


def _overlap(segment: Segment | None, after: Segment | None) -> bool:
    if segment is None or after is None or after.base_offset is None or may_overlap(segment.path):
        return False
    return kind_of(segment.path).has_batches and (segment.last_offset() or -1) >= after.base_offset
