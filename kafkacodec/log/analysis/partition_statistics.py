"""Statistics of partitions: records, offsets, times, sizes, formats, producers, gaps; from batch headers alone."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

from kafkacodec.datatypes import dataclass, field
from kafkacodec.errors import DecodeError, MissingOffsets
from kafkacodec.log.analysis.batch_totals import OF_RECORDS, BatchTotals, added
from kafkacodec.log.analysis.segment_totals import SegmentStatistics, statistics_among
from kafkacodec.log.files.access import note
from kafkacodec.log.formats.layout import is_stand_in
from kafkacodec.log.order.continuity import Gaps
from kafkacodec.log.order.placement import OFFSETS_OF_SEGMENT
from kafkacodec.log.partitions.directory import discover
from kafkacodec.log.partitions.inside import breaks_around, origin_of, relisted, surroundings
from kafkacodec.log.partitions.partition import Partition
from kafkacodec.log.partitions.planning import end_of
from kafkacodec.log.partitions.segment import Segment
from kafkacodec.log.reading.transactions import scan_transactions
from kafkacodec.log.segments.kinds import kind_of
from kafkacodec.named_rows import NamedRows, fields_of
from kafkacodec.signatures import suggests_options

__all__ = [
    "PartitionStatistics",
    "Statistics",
    "breaks_of",
    "merge_statistics",
    "partition_statistics",
    "per_topic",
    "statistics",
]

ATTEMPTS = 3
"""How often a partition is listed again if a broker removed a segment meanwhile."""


@dataclass
class PartitionStatistics(BatchTotals):
    """Statistics of a partition, or of several together. All attributes of `BatchTotals`, and:

    Attributes:
        path (str): the directory, or the file if one was named; empty for several partitions.
        topic (str | None): the topic; None if it is unknown.
        partition (int | None): the number; None if it is unknown, or for several partitions.
        state (str): as in `Partition`; of several, ``current`` if one is.
        log_start_offset (int | None): records before it count as deleted; None for several partitions.
        num_partitions (int), num_segments (int), size_in_bytes (int): of the input; sizes of files in bytes.
        num_offsets (int | None): offsets from the first to the last; None if `first_offset` is not known, or if offsets
            are byte positions, as before Kafka 0.8.
        missing_offsets (int): also those missing between segments or before the recovery point that compaction does not
            explain, as in `MissingOffsets`. If the records were read, the number that `Partition.verify` counts.
        damaged_bytes (int), trailing_bytes (int): as in `SegmentStatistics`.
        aborted_transactions (int), open_transactions (int): transactions, by their markers in the log.
        problems (list[DecodeError]): the faults, without wrong checksums.

    For several partitions the first and last offset are None, and `first_timestamp` is the earliest known one.
    """

    path: str = ""
    topic: str | None = None
    partition: int | None = None
    state: str = "current"
    log_start_offset: int | None = None
    num_partitions: int = 1
    num_segments: int = 0
    size_in_bytes: int = 0
    num_offsets: int | None = 0
    damaged_bytes: int = 0
    trailing_bytes: int = 0
    aborted_transactions: int = 0
    open_transactions: int = 0
    problems: list[DecodeError] = field(default_factory=list)

    @property
    def absent_offsets(self) -> int | None:
        """Offsets between the first and the last one without a record: removed by compaction, or lost.

        None if the number of offsets or of records is not known, or if a header is invalid.
        """
        if self.num_offsets is None or self.num_records is None or self.invalid_headers:
            return None
        return self.num_offsets - self.num_records

    @property
    def damaged(self) -> bool:
        """Whether records are lost or headers cannot be trusted; wrong checksums count if they were verified."""
        return bool(self.problems or self.invalid_headers or self.crc_failures or self.missing_offsets)

    def to_dict(self) -> dict[str, Any]:
        """Everything for JSON; problems as text."""
        more = {"absent_offsets": self.absent_offsets, "problems": [str(problem) for problem in self.problems]}
        return super().to_dict() | more


class Statistics(NamedRows[PartitionStatistics]):
    """A list of `PartitionStatistics` that notebooks show as a table, with `to_arrow`, `to_pandas` and `to_polars`.

    The table has a column for each attribute and property, and the number of producers.
    """

    @staticmethod
    def cells(row: PartitionStatistics) -> dict[str, Any]:
        """The values of a row, by column."""
        return row.to_dict()

    def _columns(self) -> Mapping[str, Any]:
        found = dict(fields_of(PartitionStatistics))
        del found["producers"]
        found |= {"num_producers": int, "compression_ratio": float | None, "absent_offsets": int | None}
        return {name: found.pop(name) for name in _FIRST} | found

    def _hidden(self) -> Set[str]:
        return self._columns().keys() - {*_FIRST}


_FIRST = (
    "topic", "partition", "state", "num_segments", "size_in_bytes", "num_records", "first_offset", "last_offset",
    "first_timestamp", "last_timestamp", "formats", "compression_ratio", "damaged_bytes", "problems"
)  # fmt: skip
"""The first columns of the table, which notebooks show."""

_PARTITION_SUMS = (
    "num_partitions",
    "num_segments",
    "size_in_bytes",
    "damaged_bytes",
    "trailing_bytes",
    "aborted_transactions",
    "open_transactions",
)


@suggests_options
def statistics(
    partitions: str | os.PathLike[str] | Partition | Iterable[str | os.PathLike[str] | Partition],
    *,
    records: bool = False,
    verify_crc: bool = False,
    threads: int | None = 1,
) -> Statistics:
    """Statistics of partitions, from the headers of their batches; with `records`, from everything.

    Reads about 60 bytes a batch, and continues after damage, which is in `problems` and `damaged_bytes`. A partition
    that a broker is writing is read up to its end at that time.

    Args:
        partitions: log directories, partition directories, segment files or `Partition` objects.
        records: also decode all records, with their checksums: for the attributes that need it, for exact numbers in
            compressed sets of magic 0 and 1, and to find damage inside batches.
        verify_crc: also compute checksums, which reads everything but decompresses nothing.
        threads: threads that compute checksums, as in `kafkacodec.scan`.

    Returns:
        Statistics: a list of `PartitionStatistics` in the order given, in log directories by topic and partition.

    Raises:
        FileNotFoundError: a path does not exist, or is a directory without a partition or a segment.
        OSError: a segment cannot be read.
    """
    given = [partitions] if isinstance(partitions, (str, os.PathLike, Partition)) else partitions
    if not isinstance(given, Iterable):
        raise TypeError(f"partitions must be a path, a Partition or several, not {type(given).__name__}")
    found = [p for item in given for p in ([item] if isinstance(item, Partition) else discover(item))]
    return Statistics(partition_statistics(p, records=records, verify_crc=verify_crc, threads=threads) for p in found)


def merge_statistics(parts: Iterable[PartitionStatistics]) -> PartitionStatistics:
    """The statistics of several partitions together."""
    found = list(parts)
    merged = PartitionStatistics(
        path=_common([part.path for part in found]) or "",
        topic=_common([part.topic for part in found]),
        state="current" if any(part.state == "current" for part in found) else found[0].state if found else "current",
        crc_failures=None if any(part.crc_failures is None for part in found) else 0,
        num_partitions=0,
        **_known(True),
    )
    for part in found:
        merged.include(part)
        for name in _PARTITION_SUMS:
            setattr(merged, name, getattr(merged, name) + getattr(part, name))
        merged.num_offsets = added(merged.num_offsets, part.num_offsets)
        for problem in part.problems:
            note(merged.problems, problem)
    merged.first_timestamp = min((p.first_timestamp for p in found if p.first_timestamp is not None), default=None)
    merged.first_offset = merged.last_offset = None
    return merged


def per_topic(partitions: Iterable[PartitionStatistics]) -> Statistics:
    """Return the statistics of each topic, by name; partitions of an unknown topic stay separate."""
    groups: dict[tuple[bool, str], list[PartitionStatistics]] = {}
    for partition in partitions:
        known = partition.topic is not None
        groups.setdefault((not known, partition.topic if partition.topic is not None else partition.path), []).append(
            partition
        )
    return Statistics(merge_statistics(groups[key]) for key in sorted(groups))


def _common(values: Sequence[str | None]) -> str | None:
    """The value that all have; None if they differ."""
    return values[0] if values and all(value == values[0] for value in values) else None


def partition_statistics(
    partition: Partition,
    *,
    records: bool = False,
    verify_crc: bool = False,
    gaps: Gaps = "error",
    threads: int | None = 1,
) -> PartitionStatistics:
    """The statistics of one partition; arguments and errors as in `statistics`, `gaps` as in `Partition.read`."""
    for _ in range(ATTEMPTS):
        try:
            return _statistics_of(partition, records, verify_crc, gaps, threads)
        except FileNotFoundError:  # a broker deleted or replaced a segment since it was listed
            partition = relisted(partition)
    return _statistics_of(partition, records, verify_crc, gaps, threads)


def _statistics_of(
    partition: Partition, records: bool, verify_crc: bool, gaps: Gaps, threads: int | None
) -> PartitionStatistics:
    total = PartitionStatistics(
        path=origin_of(partition),
        topic=partition.topic,
        partition=partition.partition,
        state=partition.state,
        log_start_offset=partition.log_start_offset,
        crc_failures=0 if verify_crc else None,
        **_known(records),
    )
    readable = []
    for segment in partition.segments:
        around = surroundings(partition, segment)
        until = end_of(partition, segment)
        part = statistics_among(segment, around, until=until, records=records, verify_crc=verify_crc, threads=threads)
        counts_all = records and part.problems and not partition.is_kafka07  # see `statistics_among`
        total.gaps += _gap_between(total, part)
        total.include(part)
        total.num_segments += not is_stand_in(segment.path)
        total.size_in_bytes += part.size_in_bytes
        total.damaged_bytes += part.damaged_bytes
        total.trailing_bytes += part.trailing_bytes
        if not part.unreadable:
            readable.append(segment)
        breaks = breaks_of(partition, segment, part)
        if gaps == "accept":
            breaks = [problem for problem in breaks if not isinstance(problem, MissingOffsets)]
        for problem in (*part.problems, *breaks):
            note(total.problems, problem)
            if isinstance(problem, MissingOffsets) and not counts_all:
                total.missing_offsets += problem.missing_offsets
    total.num_offsets = _num_offsets(partition, total)
    if total.transactional_batches:
        transactions = scan_transactions(partition.path, readable, None, None, committed=False)
        total.aborted_transactions = len(transactions.aborted)
        total.open_transactions = len(transactions.open)
    return total


def _known(records: bool) -> dict[str, Any]:
    """The attributes that are known if the records are read, to begin a sum; else they stay None."""
    return dict.fromkeys(OF_RECORDS, 0) if records else {}


def _gap_between(before: BatchTotals, after: BatchTotals) -> int:
    """1 if offsets are missing between two segments' batches, else 0; also 0 if that is not known."""
    if before.last_offset is None or after.first_offset is None:
        return 0
    return int(after.first_offset > before.last_offset + 1 and 0 not in (before.num_batches, after.num_batches))


def _num_offsets(partition: Partition, total: BatchTotals) -> int | None:
    if partition.is_kafka07:
        return None
    if total.first_offset is None or total.last_offset is None:
        return None if total.num_batches else 0
    return total.last_offset - total.first_offset + 1


def breaks_of(partition: Partition, segment: Segment, found: SegmentStatistics) -> list[DecodeError]:
    """As `breaks_around`, but reads files only if offsets are not those that the neighbours require.

    An upload that cannot be read has none of its own.
    """
    if found.unreadable:
        return []
    around = surroundings(partition, segment)
    due = around.flushed if around.following is None else around.following
    base = segment.base_offset
    end = base if found.last_offset is None else found.last_offset + 1
    first = found.first_offset
    starts_there = base is None or first is None or base <= first < base + OFFSETS_OF_SEGMENT
    is_whole = kind_of(segment.path).has_batches and not found.problems and not found.invalid_headers
    ends_there = due is None or end == due or (around.following is None and end is not None and end > due)
    return [] if is_whole and starts_there and ends_there else breaks_around(partition, segment)
