"""Statistics of one segment, from its batch headers, and on request from its records."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from kafkacodec.datatypes import dataclass, field
from kafkacodec.errors import DecodeError, KafkaCodecError, _Unreadable
from kafkacodec.log.analysis.batch_rows import BatchRows, batches_of, messages_of
from kafkacodec.log.analysis.batch_totals import BatchTotals
from kafkacodec.log.analysis.record_totals import count_messages, count_records
from kafkacodec.log.files.access import note
from kafkacodec.log.formats.layout import is_upload
from kafkacodec.log.opening import StoredFile, fault_of, open_file
from kafkacodec.log.order.continuity import ALONE, Surroundings
from kafkacodec.log.order.gap_evidence import first_offset_in
from kafkacodec.log.partitions.planning import least
from kafkacodec.log.partitions.segment import Segment, check_is_segment
from kafkacodec.log.reading.misplaced import misplaced_in
from kafkacodec.log.segments.kinds import kind_of
from kafkacodec.log.segments.walk import Damage
from kafkacodec.signatures import suggests_options

__all__ = ["SegmentStatistics", "segment_statistics", "statistics_among"]


@dataclass
class SegmentStatistics(BatchTotals):
    """Statistics of a segment from its batch headers. All attributes of `BatchTotals`, and:

    Attributes:
        path (str): the file.
        topic (str | None), partition (int | None): None if the directory's name does not say.
        size_in_bytes (int): the file's size.
        damaged_bytes (int): bytes that are not batches.
        trailing_bytes (int): bytes after the last batch or damage: a torn batch, or the unused part of a file.
        problems (list[DecodeError]): the faults, without wrong checksums.
    """

    path: str = ""
    topic: str | None = None
    partition: int | None = None
    size_in_bytes: int = 0
    damaged_bytes: int = 0
    trailing_bytes: int = 0
    problems: list[DecodeError] = field(default_factory=list)

    @property
    def unreadable(self) -> bool:
        """Whether the file cannot be read."""
        nothing = not self.num_batches and self.damaged_bytes == self.size_in_bytes
        return nothing and any(is_upload(self.path) or isinstance(found, _Unreadable) for found in self.problems)

    def to_dict(self) -> dict[str, Any]:
        """Everything for JSON; problems as text."""
        return super().to_dict() | {"problems": [str(problem) for problem in self.problems]}


@suggests_options
def segment_statistics(
    segment: Segment,
    *,
    start_offset: int | None = None,
    end_offset: int | None = None,
    records: bool = False,
    verify_crc: bool = False,
    threads: int | None = 1,
) -> SegmentStatistics:
    """The statistics of one segment; errors as in `statistics`.

    Args:
        segment: the segment.
        start_offset, end_offset: count only batches with offsets in this range; damage counts in any case.
        records: count the records too, of the whole segment.
        verify_crc, threads: as in `statistics`.
    """
    return statistics_among(
        segment,
        ALONE,
        start_offset=start_offset,
        end_offset=end_offset,
        records=records,
        verify_crc=verify_crc,
        threads=threads,
    )


def statistics_among(
    segment: Segment,
    surroundings: Surroundings,
    *,
    start_offset: int | None = None,
    end_offset: int | None = None,
    until: int | None = None,
    records: bool = False,
    verify_crc: bool = False,
    threads: int | None = 1,
) -> SegmentStatistics:
    """As `segment_statistics`; with `records`, `missing_offsets` has those after the segment too, if it is damaged.

    Batches and records from the offset `until` on do not count: the next segment has them. A segment
    that cannot be read, or the rest of it, counts as damage as a whole.
    """
    total = _nothing(segment, verify_crc=verify_crc)
    try:
        _count(total, segment, surroundings, start_offset, end_offset, until, records, verify_crc, threads)
    except (DecodeError, OSError) as error:
        fault = fault_of(segment.path, error)
        if fault is None:
            raise
        total = _nothing(segment, verify_crc=verify_crc)
        note(total.problems, fault)
        if surroundings.following is not None and segment.base_offset is not None:
            total.missing_offsets = surroundings.following - segment.base_offset
        with suppress(OSError, KafkaCodecError):  # its manifest is the damage
            total.size_in_bytes = total.damaged_bytes = segment.size_in_bytes
    return total


def _nothing(segment: Segment, *, verify_crc: bool) -> SegmentStatistics:
    return SegmentStatistics(
        path=segment.path,
        topic=segment.topic,
        partition=segment.partition,
        crc_failures=0 if verify_crc else None,
    )


def _count(
    total: SegmentStatistics,
    segment: Segment,
    surroundings: Surroundings,
    start_offset: int | None,
    end_offset: int | None,
    until: int | None,
    records: bool,
    verify_crc: bool,
    threads: int | None,
) -> None:
    old = not kind_of(segment.path).has_batches
    after, after_damage = 0, False
    with open_file(segment.path) as file:
        total.size_in_bytes = file.size
        misplaced = None if old else misplaced_in(file, segment.base_offset, surroundings, sets=records)
        parts = (
            messages_of(file, segment.base_offset or 0, verify_crc=verify_crc)
            if old
            else batches_of(file, segment.base_offset, verify_crc=verify_crc, threads=threads, misplaced=misplaced)
        )
        for part in parts:
            if isinstance(part, Damage):
                note(total.problems, part.error)
                total.damaged_bytes += part.end - part.start
                after, after_damage = part.end, True
                continue
            if after_damage:
                total.missing_offsets += _lost_before(file, part)
            total.add(part.between(start_offset, least(end_offset, until)))
            after, after_damage = int(part.position[-1] + part.size[-1]), False
        total.trailing_bytes = file.size - after
        if records:
            total.problems.clear()  # those inside batches are found too
            total.damaged_bytes = total.missing_offsets = 0
            if old:
                read = count_messages(file, total, segment.base_offset or 0)
            else:
                read = count_records(file, total, until, misplaced)
            for damage in read:
                note(total.problems, damage.error)
                total.damaged_bytes += damage.end - damage.start
            if total.problems and not old:
                total.missing_offsets = segment._verify_among(surroundings, threads=threads).missing_offsets
        if not old and not after and not total.problems:
            try:
                check_is_segment(file, 0)
            except DecodeError as error:
                note(total.problems, error)


def _lost_before(file: StoredFile, rows: BatchRows) -> int:
    """The number of offsets between the batch before some damage and the first one after it."""
    first: int | None = int(rows.first[0])
    if not rows.has_first[0]:
        first = first_offset_in(file, int(rows.position[0]), int(rows.size[0]))
    return 0 if first is None else max(first - int(rows.before[0]), 0)
