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

__all__ = ["names_hold", "segments_to_read"]


def segments_to_read(
    named: Sequence[Segment], segments: Sequence[Segment], start_offset: int | None, end_offset: int | None
) -> Sequence[Segment]:
    """The segments that have the records of a span.

    Args:
        named: the segments whose names include the span.
        segments: all of the log.
        start_offset, end_offset: the span; None: no bound.
    """
    is_whole = len(named) == len(segments)
    return named if is_whole or names_hold(named, segments, start_offset, end_offset) else segments


def names_hold(
    named: Sequence[Segment], segments: Sequence[Segment], start_offset: int | None, end_offset: int | None
) -> bool:
    """Whether no name of a segment is seen to be wrong that matters for a span.

    Where it begins and ends, the first batch and the last offset of the segment there, and of those beside it, are
    compared with their names; those of all segments, if offsets are missing there: another one may have them.
    Objects of stores are not: each look at one is a request.

    Args:
        As `segments_to_read`.
    """
    if not segments or is_url(segments[0].path):
        return True
    first = 0 if not named else segments.index(named[0])
    last = max(first, first + len(named) - 1)
    edges = {at for at, bound in ((first, start_offset), (last, end_offset)) if bound is not None or not named}
    near = {at for edge in edges for at in (edge - 1, edge, edge + 1) if 0 <= at < len(segments)}
    if any(_is_misnamed(segments, at) for at in sorted(near)):
        return False
    if not any(_lacks_offsets(segments, at, start_offset, end_offset) for at in sorted(edges)):
        return True
    return not any(_is_misnamed(segments, at) for at in range(len(segments)) if at not in near)


def _is_misnamed(segments: Sequence[Segment], at: int) -> bool:
    """Whether the names of a segment or of the one after it contradict its batches."""
    segment, base = segments[at], segments[at].base_offset
    if base is None or not kind_of(segment.path).has_batches:
        return False
    following = segments[at + 1].base_offset if at + 1 < len(segments) and not may_overlap(segment.path) else None
    with suppress(DecodeError, OSError):  # who reads it finds that again
        with open_file(segment.path) as file:
            batch = first_batches(file, 0)
            if not len(batch):
                return False
            if int(first_offsets(batch)[0]) < base:
                return True
        last = segment.last_offset()
        return last is not None and (last < base or (following is not None and last >= following))
    return False


def _lacks_offsets(segments: Sequence[Segment], at: int, start_offset: int | None, end_offset: int | None) -> bool:
    """Whether offsets of the span are before or after the batches of a segment, as in compacted logs, too."""
    segment, base = segments[at], segments[at].base_offset or 0
    if at == 0 and start_offset is not None and start_offset < base:
        return True
    following = segments[at + 1].base_offset if at + 1 < len(segments) else None
    due = min((offset for offset in (following, end_offset) if offset is not None), default=0)
    with suppress(DecodeError, OSError):
        last = segment.last_offset()
        if following is None and last is not None:  # the log ends there
            return False
        return max(base if last is None else last + 1, start_offset or 0) < due
    return False
