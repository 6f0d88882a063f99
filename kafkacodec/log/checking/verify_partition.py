"""Inspection of a partition: its segments one after another, and the files beside them."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from kafkacodec.arguments import num_threads
from kafkacodec.errors import KafkaCodecError
from kafkacodec.log.checking.arrangement import Placed, placed_segments
from kafkacodec.log.checking.checked import Around, End, Partition
from kafkacodec.log.checking.report import Finding, Report
from kafkacodec.log.checking.verify import UNREADABLE, inspect_segment
from kafkacodec.log.checking.verify_files import check_partition_files, reporting
from kafkacodec.log.formats import layout
from kafkacodec.log.formats.checkpoints import LeaderEpoch
from kafkacodec.log.opening import entries, is_uploaded, open_file
from kafkacodec.log.order.corrections import bounds_beside, corrections_of

if TYPE_CHECKING:
    from kafkacodec.log.checking.checked import Advance

__all__ = ["check_files", "verify_partition"]


def verify_partition(
    partition: Partition, around: Around, end_now: End, threads: int | None, advance: Advance | None = None
) -> Report:
    """See `Partition.verify`."""
    threads = num_threads(threads)
    epochs: list[LeaderEpoch] = []
    with suppress(OSError, KafkaCodecError):  # `check_files` reports it
        epochs = partition.leader_epochs
    report, whole = _verify_segments(partition, around, epochs, threads, advance)
    arranged: list[Placed] = []
    if report.counts["error", "offset-order"]:
        arranged = placed_segments(partition, around)
        if any(one.is_misnamed for one in arranged):  # most of what was found follows from that
            read = report
            report, whole = _verify_arranged(partition, arranged, epochs, threads)
            # What a reader gives, file by file, is counted.
            report.num_records, report.num_batches = read.num_records, read.num_batches
            report.control_records = read.control_records
    report.include(check_files(partition, arranged, end_now, whole=whole))
    return report


def _verify_segments(
    partition: Partition, around: Around, epochs: list[LeaderEpoch], threads: int, advance: Advance | None
) -> tuple[Report, bool]:
    """The report on the segments in the order of their names, and whether all could be read."""
    report, last, whole = Report(partition.path), -1, True
    before = None
    for segment in partition.segments:
        found = segment._verify_among(around(segment), epochs, threads, advance)
        if found.counts["error", UNREADABLE]:
            report.include(found)
            whole = False
            continue
        again = is_uploaded(segment.path)  # each is read up to where the next one begins
        overlaps = segment.base_offset is not None and segment.base_offset <= last and not again
        if overlaps and before is not None and _right_end(before.path, last) >= (segment.base_offset or 0):
            text = f"the segment begins at offset {segment.base_offset}, but the one before it ends at {last}"
            report.add(Finding("error", "offset-order", segment.path, text))
        report.include(found)
        epochs = _unless_told(epochs, found)
        end = segment.last_offset()
        last, before = (last, before) if end is None else (end, segment)
    return report, whole


def _right_end(path: str, last: int) -> int:
    """The last right offset of a segment that ends with `last` as written, -1 if it has none.

    A wrong one was reported for its batch.
    """
    with open_file(path) as file:
        corrections = corrections_of(file, bounds_beside(path, None))
    right = corrections.end()[1] if corrections else last
    return -1 if right is None else right


def _verify_arranged(
    partition: Partition, arranged: list[Placed], epochs: list[LeaderEpoch], threads: int
) -> tuple[Report, bool]:
    """As `_verify_segments`, in the order of their offsets: names are wrong."""
    report, whole = Report(partition.path), True
    for one in arranged:
        corrections, path = one.corrections, one.segment.path
        found = inspect_segment(path, one.base_offset, one.surroundings, epochs, threads, None, corrections)
        whole = whole and not found.counts["error", UNREADABLE]
        report.include(found)
        epochs = _unless_told(epochs, found)
    return report, whole


def _unless_told(epochs: list[LeaderEpoch], found: Report) -> list[LeaderEpoch]:
    """The checkpoint for the next segments: none after a difference from it, which they would tell again."""
    return [] if found.counts["warning", "leader-epoch"] else epochs


def check_files(partition: Partition, arranged: list[Placed], end_now: End, *, whole: bool) -> Report:
    """Inspect the other files of a partition: transaction indexes, leader epochs, producer snapshots, the topic id.

    Args:
        partition: the partition.
        arranged: its segments where they belong, as far as they were looked for; they tell where the log ends if names
            are wrong.
        end_now: where it ends otherwise.
        whole: all segments could be read; otherwise what is compared with all of them is left out.

    Raises:
        OSError: the directory or a segment cannot be read.
    """
    report = Report(partition.path)
    try:
        entries(partition.path)
    except OSError:  # there is no directory, or it cannot be listed: the segments cannot be read, which was told
        return report
    epochs: list[LeaderEpoch] = []
    with reporting(report, "leader-epoch", os.path.join(partition.path, layout.LEADER_EPOCH_CHECKPOINT)):
        epochs = partition.leader_epochs
    misnamed = any(one.is_misnamed for one in arranged)
    if not misnamed:
        _check_start(partition, epochs, report)
    for problem in partition.transactions().problems if whole and not misnamed else ():
        if problem.path is not None and problem.path.endswith(layout.TRANSACTION_INDEX_SUFFIX):
            report.add(Finding("warning", "transaction-index", problem.path, problem.reason, problem.position))
    end = end_now if whole and partition.has_all else None
    if end is not None and misnamed:
        last = max(one.end_offset for one in arranged)
        end = lambda: last  # noqa: E731
    check_partition_files(partition.path, epochs, end, report)
    return report


def _check_start(partition: Partition, epochs: list[LeaderEpoch], report: Report) -> None:
    """Report a log that once began before its first segment: the start was deleted, moved or lost."""
    first = partition.segments[0].base_offset if partition.segments else None
    if first is None or not (partition.has_all and epochs):
        return
    known = max(partition.log_start_offset, epochs[0].start_offset)
    if known < first:
        text = "the start of the log is missing: deleted, moved to tiered storage, or lost"
        report.add(Finding("warning", "log-start", partition.path, text, None, None, known, first))
