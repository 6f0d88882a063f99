"""Inspection of a partition: its segments one after another, and the files beside them."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from kafkacodec.arguments import num_threads
from kafkacodec.errors import KafkaCodecError
from kafkacodec.log.checking.report import Finding, Report
from kafkacodec.log.checking.verify import UNREADABLE
from kafkacodec.log.checking.verify_files import check_partition_files, reporting
from kafkacodec.log.formats import layout
from kafkacodec.log.formats.checkpoints import LeaderEpoch
from kafkacodec.log.storage import is_uploaded

if TYPE_CHECKING:
    from kafkacodec.log.checking.verify import Advance
    from kafkacodec.log.partitions.partition import Partition

__all__ = ["verify_files", "verify_partition"]


def verify_partition(partition: Partition, threads: int | None, advance: Advance | None = None) -> Report:
    """See `Partition.verify`."""
    threads = num_threads(threads)
    report = Report(partition.path)
    epochs: list[LeaderEpoch] = []
    with suppress(OSError, KafkaCodecError):  # `verify_files` reports it
        epochs = partition.leader_epochs
    last, whole = -1, True
    for segment in partition.segments:
        found = segment.verify_among(partition.surroundings(segment), epochs, threads, advance)
        if found.counts["error", UNREADABLE]:
            report.include(found)
            whole = False
            continue
        again = is_uploaded(segment.path)  # each is read up to where the next one begins
        if segment.base_offset is not None and segment.base_offset <= last and not again:
            text = f"the segment begins at offset {segment.base_offset}, but the one before it ends at {last}"
            report.add(Finding("error", "offset-order", segment.path, text))
        report.include(found)
        end = segment.last_offset()
        last = last if end is None else end
    report.include(verify_files(partition, whole=whole))
    return report


def verify_files(partition: Partition, *, whole: bool = True) -> Report:
    """See `Partition.verify_files`. What is compared with all segments is left out if they are not `whole`."""
    report = Report(partition.path)
    epochs: list[LeaderEpoch] = []
    with reporting(report, "leader-epoch", os.path.join(partition.path, layout.LEADER_EPOCH_CHECKPOINT)):
        epochs = partition.leader_epochs
    _check_start(partition, epochs, report)
    for problem in partition.transactions().problems if whole else ():
        if problem.path is not None and problem.path.endswith(layout.TRANSACTION_INDEX_SUFFIX):
            report.add(Finding("warning", "transaction-index", problem.path, problem.reason, problem.position))
    end = partition.end_offset_now if whole and partition.has_all else None
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
