"""Checks that the segments of a partition follow one another. These functions decide; they read no files.

A broker begins a segment at the offset after the last one of the previous segment. Only the log cleaner leaves gaps, so
a gap is a loss unless there is evidence that records were removed on purpose.
"""

from __future__ import annotations

import os
from typing import Literal, TypeVar, get_args

from kafkacodec.arguments import one_of
from kafkacodec.datatypes import NamedTuple, replace
from kafkacodec.errors import MissingOffsets
from kafkacodec.internal_records import INTERNAL_TOPICS
from kafkacodec.log.formats import layout
from kafkacodec.log.segments.extent import Extent

R = TypeVar("R", bound=Extent)

Gaps = Literal["error", "accept"]
"""The ways to treat missing offsets that compaction does not explain."""

Cause = Literal["loss", "compaction", "unknown"]

ALWAYS_COMPACTED = tuple(name for name, topic in INTERNAL_TOPICS.items() if topic.compacted)
NEVER_COMPACTED = tuple(name for name, topic in INTERNAL_TOPICS.items() if topic.compacted is False)


def check_gaps(gaps: str) -> None:
    """Raise ValueError if `gaps` is not one of `Gaps`."""
    one_of("gaps", gaps, get_args(Gaps))


class Surroundings(NamedTuple):
    """A partition's knowledge about one of its segments.

    Attributes:
        following (int | None): the base offset of the next segment; None for the last one.
        flushed (int | None): for the last segment, the recovery point; None if unknown.
        topic (str | None), partition (int | None): None if unknown.
    """

    following: int | None = None
    flushed: int | None = None
    topic: str | None = None
    partition: int | None = None

    def place(self, piece: R) -> R:
        """The range at the segment's end, with what must follow it."""
        return replace(piece, following=self.following, flushed=self.flushed)


ALONE = Surroundings()
"""The surroundings of a single segment whose partition is unknown."""


class Gap(NamedTuple):
    """Offsets that are missing after a segment's batches.

    Attributes:
        first_offset, end_offset (int): the first missing offset and the one after the last.
        at_end (bool): the gap is at the end of the log; it is known from the recovery point.
    """

    first_offset: int
    end_offset: int
    at_end: bool = False


class Evidence(NamedTuple):
    """The evidence in the files around a gap.

    Attributes:
        bytes_left (int): bytes after the last complete batch of the segment, not counting zeros of a preallocated file.
        indexed_to (int | None): the last offset in the segment's index files.
        orphans (tuple[str, ...]): index files in the gap without a segment.
        cleaned_to (int | None): the offset in the cleaner's checkpoint. None: no entry.
        removed (bool): the segments next to the gap have offsets without records, as compaction leaves them.
        topic (str | None): the topic's name; None if unknown.
        old (bool): a log of Kafka 0.6 or 0.7, which has no cleaner; its offsets are byte positions.
        replaced (bool): the segment took the place of another since reading was planned, or a short time ago.
        without_segments (str): there is no segment; this is what names offsets all the same, as a clause.
    """

    bytes_left: int = 0
    indexed_to: int | None = None
    orphans: tuple[str, ...] = ()
    cleaned_to: int | None = None
    removed: bool = False
    topic: str | None = None
    old: bool = False
    replaced: bool = False
    without_segments: str = ""


def gap_after(
    end: int,
    following: int | None,
    flushed: int | None,
    *,
    start_offset: int | None = None,
    end_offset: int | None = None,
) -> Gap | None:
    """The offsets that are missing after a segment's batches, if any.

    Args:
        end: the offset after the last complete batch; the base offset of a segment without batches.
        following: the base offset of the next segment; None for the last one.
        flushed: the recovery point; None if unknown.
        start_offset, end_offset: only missing offsets between these count.
    """
    due = flushed if following is None else following
    if due is None:
        return None
    first = end if start_offset is None else max(end, start_offset)
    last = due if end_offset is None else min(due, end_offset)
    return Gap(first, last, following is None) if first < last else None


def cause_of(gap: Gap, evidence: Evidence) -> tuple[Cause, str]:
    """Why the offsets are missing, and the evidence for it as text."""
    for cause, reason, holds in (
        ("loss", f"there is no segment, but {evidence.without_segments}", bool(evidence.without_segments)),
        ("loss", "the recovery point shows that they were on disk", gap.at_end),
        (
            "loss",
            f"the segment ends with {evidence.bytes_left} bytes of a partial batch",
            evidence.bytes_left > 0,
        ),
        (
            "loss",
            f"the segment's index reaches offset {evidence.indexed_to}",
            _reaches(evidence.indexed_to, gap),
        ),
        ("loss", f"a segment is missing, its index {_first(evidence.orphans)} exists", bool(evidence.orphans)),
        ("loss", "logs of Kafka 0.6 and 0.7 are never compacted", evidence.old),
        ("loss", "this topic is never compacted", evidence.topic in NEVER_COMPACTED),
        ("compaction", "the log is cleaned up to that offset", (evidence.cleaned_to or 0) >= gap.end_offset),
        ("compaction", "records were removed from the batches next to the gap", evidence.removed),
        ("compaction", "the cleaner has just replaced the segment", evidence.replaced),
        ("compaction", "this topic is compacted", evidence.cleaned_to is None and evidence.topic in ALWAYS_COMPACTED),
    ):
        if holds:
            return cause, reason  # type: ignore[return-value]
    return "unknown", "it is unknown whether this is compaction or loss; gaps='accept' ignores gaps"


def _reaches(offset: int | None, gap: Gap) -> bool:
    return offset is not None and offset >= gap.first_offset


def _first(names: tuple[str, ...]) -> str:
    return names[0] if names else ""


def missing(gap: Gap, evidence: Evidence, *, path: str, position: int) -> MissingOffsets | None:
    """The error for a gap; None if compaction explains it.

    Args:
        gap: the missing offsets.
        evidence: what the files around it show.
        path: the segment before the gap, or what stands for it.
        position: the end of its batches, in bytes.
    """
    cause, why = cause_of(gap, evidence)
    if cause == "compaction":
        return None
    count = gap.end_offset - gap.first_offset
    unit = "byte" if evidence.old else "offset"
    what = f"1 {unit}" if count == 1 else f"{count} {unit}s"
    reason = f"gap of {what} from {gap.first_offset} on: {why}"
    stands_for_log = layout.stands_for_log(path)
    return MissingOffsets(
        reason,
        position=None if stands_for_log else position,
        path=os.path.dirname(path) if stands_for_log else path,
        first_offset=gap.first_offset,
        end_offset=gap.end_offset,
        certain=cause == "loss",
    )
