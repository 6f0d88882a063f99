"""Whether the segments of a partition follow one another: decisions alone, without files.

A broker begins a segment at the offset after the last one of the segment before. Only the log cleaner leaves gaps, so a
gap is a loss unless something shows that records were removed on purpose.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from kafkacodec.errors import MissingOffsets
from kafkacodec.records.arguments import one_of

if TYPE_CHECKING:
    from kafkacodec.log.ranges import SegmentRange

Gaps = Literal["error", "accept"]
"""What a reader does with offsets that no batch has and no compaction explains."""

Cause = Literal["loss", "compaction", "unknown"]

ALWAYS_COMPACTED = ("__consumer_offsets", "__transaction_state", "__share_group_state")
NEVER_COMPACTED = ("__cluster_metadata",)


def check_gaps(gaps: str) -> None:
    """Raise ValueError for what is no way to take gaps."""
    one_of("gaps", gaps, get_args(Gaps))


class Surroundings(NamedTuple):
    """What a partition says of one of its segments.

    Attributes:
        following (int | None): the base offset of the next segment; None for the last one.
        flushed (int | None): up to where the log was on the disk, for the last one; None where nothing tells.
        topic (str | None), partition (int | None): whose segment it is; None where nothing tells.
    """

    following: int | None = None
    flushed: int | None = None
    topic: str | None = None
    partition: int | None = None

    def place(self, piece: SegmentRange) -> SegmentRange:
        """The range that runs to the segment's end, told what has to follow."""
        return replace(piece, following=self.following, flushed=self.flushed)


ALONE = Surroundings()
"""Those of a segment that is looked at by itself."""


class Gap(NamedTuple):
    """Offsets that should follow a segment's batches, and do not.

    Attributes:
        first_offset, end_offset (int): from the first one that is missing to the one after the last.
        at_end (bool): nothing follows in the log: the recovery point tells of them.
    """

    first_offset: int
    end_offset: int
    at_end: bool = False


class Evidence(NamedTuple):
    """What files say of a gap.

    Attributes:
        bytes_left (int): bytes after the last whole batch of the segment; zeros of a preallocated file are none.
        indexed_to (int | None): the last offset that the segment's index files know.
        orphans (tuple[str, ...]): index files in the gap whose segments are not there.
        cleaned_to (int | None): where the cleaner began its next round, by its checkpoint. None: no entry.
        removed (bool): batches beside the gap show that records were removed from among them.
        topic (str | None): the topic's name; None where nothing tells.
        old (bool): a log of Kafka 0.6 or 0.7: no cleaner, and offsets that count bytes.
    """

    bytes_left: int = 0
    indexed_to: int | None = None
    orphans: tuple[str, ...] = ()
    cleaned_to: int | None = None
    removed: bool = False
    topic: str | None = None
    old: bool = False


def gap_after(
    end: int,
    following: int | None,
    flushed: int | None,
    *,
    start_offset: int | None = None,
    end_offset: int | None = None,
) -> Gap | None:
    """What is missing after a segment's batches.

    Args:
        end: one after the last offset of the whole batches; the base offset of a segment that has none.
        following: the base offset of the next segment; None for the last one.
        flushed: up to where the log was on the disk, by the recovery point; None where nothing tells.
        start_offset, end_offset: only offsets that are wanted count.
    """
    due = flushed if following is None else following
    if due is None:
        return None
    first = end if start_offset is None else max(end, start_offset)
    last = due if end_offset is None else min(due, end_offset)
    return Gap(first, last, following is None) if first < last else None


def cause_of(gap: Gap, evidence: Evidence) -> tuple[Cause, str]:
    """Why the offsets are missing, as far as files tell: what it is, and what shows it."""
    for cause, reason, holds in (
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
        ("compaction", "this topic is compacted", evidence.cleaned_to is None and evidence.topic in ALWAYS_COMPACTED),
    ):
        if holds:
            return cause, reason  # type: ignore[return-value]
    return "unknown", "compaction or loss, which one is unknown; gaps='accept' ignores gaps"


def _reaches(offset: int | None, gap: Gap) -> bool:
    return offset is not None and offset >= gap.first_offset


def _first(names: tuple[str, ...]) -> str:
    return names[0] if names else ""


def missing(gap: Gap, evidence: Evidence, *, path: str, position: int) -> MissingOffsets | None:
    """The error that a gap is; None where compaction explains it.

    Args:
        gap: the offsets.
        evidence: what is known of them.
        path: the segment after whose batches they are missing.
        position: where those batches end, in bytes.
    """
    cause, why = cause_of(gap, evidence)
    if cause == "compaction":
        return None
    count = gap.end_offset - gap.first_offset
    unit = "byte" if evidence.old else "offset"
    what = f"1 {unit}" if count == 1 else f"{count} {unit}s"
    reason = f"gap of {what} from {gap.first_offset} on: {why}"
    return MissingOffsets(
        reason,
        position=position,
        path=path,
        first_offset=gap.first_offset,
        end_offset=gap.end_offset,
        certain=cause == "loss",
    )
