"""The methods of partitions that other modules use besides the public ones. They use no others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kafkacodec.errors import DecodeError
from kafkacodec.log.checking.arrangement import Placed, placed_segments
from kafkacodec.log.checking.report import Report
from kafkacodec.log.checking.verify_partition import check_files
from kafkacodec.log.opening import fault_of
from kafkacodec.log.partitions.spans import names_hold

if TYPE_CHECKING:
    from kafkacodec.log.opening.identity import BatchMark, LogIdentity
    from kafkacodec.log.order.continuity import Surroundings
    from kafkacodec.log.partitions.partition import Partition
    from kafkacodec.log.partitions.segment import Segment

__all__ = [
    "arranged_segments",
    "batch_at",
    "breaks_around",
    "end_due",
    "end_of",
    "end_offset_now",
    "has_directory",
    "identity_of_log",
    "is_hidden",
    "is_read_by_name",
    "listed",
    "origin_of",
    "readable_end_offset",
    "relisted",
    "segments_between",
    "surroundings",
    "unless_unreadable",
    "verify_files",
    "without_directory",
]


def origin_of(partition: Partition) -> str:
    """The directory, or the file if only one segment was named."""
    return partition._origin


def listed(partition: Partition) -> list[Segment]:
    """The segments of a directory that may be of anything, as it is now."""
    return partition._list()


def relisted(partition: Partition) -> Partition:
    """The same partition as its directory is now: segments and checkpoints are read again."""
    return partition._relisted()


def identity_of_log(partition: Partition) -> LogIdentity:
    """The identity of this log, by topic id and leader epochs; read again by each call."""
    return partition._identity()


def end_offset_now(partition: Partition) -> int:
    """As `Partition.end_offset`, including segments added since they were listed."""
    return partition._end_offset_now()


def end_of(segment: Segment) -> tuple[int, int | None]:
    """The end position of the complete batches in bytes, and their last offset; None without a batch."""
    return segment._end()


def batch_at(partition: Partition, offset: int) -> BatchMark | None:
    """The batch that has an offset; None if none has it, or it is of a format before v2."""
    return partition._batch_at(offset)


def segments_between(partition: Partition, start_offset: int | None, end_offset: int | None) -> list[Segment]:
    """The segments that may have records between two offsets."""
    return partition._segments_between(start_offset, end_offset)


def is_read_by_name(partition: Partition, start_offset: int | None, end_offset: int | None) -> bool:
    """Whether no name of a segment is seen to be wrong that matters for a span."""
    return all(
        names_hold(log._segments_between(first, end), log.segments, first, end)
        for log, first, end, _ in partition._portions(start_offset, end_offset)
    )


@contextmanager
def unless_unreadable(partition: Partition) -> Iterator[None]:
    """Ignore that a segment of a partition cannot be read, which its own inspection tells."""
    try:
        yield
    except (DecodeError, OSError) as error:
        path = getattr(error, "filename", None) or partition.segments[-1].path
        if fault_of(path, error) is None:
            raise


def has_directory(partition: Partition) -> bool:
    """Whether a partition is not known to have no directory."""
    return partition._is_there


def without_directory(partition: Partition) -> Partition:
    """The same partition, known not to have a directory, which is not looked for."""
    partition._is_there = False
    return partition


def surroundings(partition: Partition, segment: Segment) -> Surroundings:
    """The required end of a segment's batches: the next segment of the directory, or the recovery point."""
    return partition._surroundings(segment)


def readable_end_offset(partition: Partition) -> int:
    """As `Partition.end_offset`; a segment that cannot be read ends where it begins."""
    try:
        return partition.end_offset()
    except (DecodeError, OSError) as error:
        last = partition.segments[-1]
        if last.base_offset is None or fault_of(last.path, error) is None:
            raise
        return last.base_offset


def end_due(partition: Partition, end_offset: int) -> int:
    """Where the log should end: after its last record, `end_offset`, where other files show that there were more.

    It is after the start of a last segment that cannot be read.
    """
    last = partition.segments[-1:]
    flushed = partition._surroundings(last[0]).flushed if last else None
    unreadable = readable_end_offset(partition) + 1 if last and is_hidden(last[0]) else 0
    return max(end_offset, flushed or 0, unreadable)


def is_hidden(segment: Segment) -> bool:
    """Whether a segment cannot be read."""
    try:
        segment._end()
    except (DecodeError, OSError) as error:
        return fault_of(segment.path, error) is not None
    return False


def breaks_around(
    partition: Partition, segment: Segment, start_offset: int | None = None, end_offset: int | None = None
) -> list[DecodeError]:
    """As `Partition.breaks`, at the start and the end of one segment."""
    return partition._breaks_around(segment, start_offset, end_offset)


def arranged_segments(partition: Partition) -> list[Placed]:
    """As `placed_segments`."""
    return placed_segments(partition, partition._surroundings)


def verify_files(partition: Partition, arranged: list[Placed], *, whole: bool = True) -> Report:
    """As `check_files`."""
    return check_files(partition, arranged, partition._end_offset_now, whole=whole)
