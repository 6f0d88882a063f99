"""Planning of an export: each partition is read from the end of the last run to the current end of the log."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from kafkacodec.datatypes import NamedTuple, replace
from kafkacodec.log import Partition, SegmentRange
from kafkacodec.log.files.pool import in_threads
from kafkacodec.log.partitions.each_once import THREADS, steadily
from kafkacodec.log.partitions.inside import end_due
from kafkacodec.spark.errors import OptionError
from kafkacodec.spark.exporting.report import ExportProblem
from kafkacodec.spark.reading.bounds import EARLIEST, Bound
from kafkacodec.spark.reading.checkpoint import Loss, Position, advance, deleted_before, resume, vanished
from kafkacodec.spark.reading.discovery import partitions_of
from kafkacodec.spark.reading.observing import batch_before, covered, key_of, observe
from kafkacodec.spark.reading.options import ReadOptions, TopicPartition
from kafkacodec.spark.reading.planning import Pruning, divide, span

__all__ = ["Plan", "plan"]

logger = logging.getLogger("kafkacodec.spark")


class Plan(NamedTuple):
    """What one run reads.

    Attributes:
        tasks: the ranges that each task reads, in the order of partitions and offsets.
        spans: the first offset of each partition to read and the one to stop before, if they differ.
        positions: where the next run starts.
        losses: offsets that can no longer be read, if `failOnDataLoss` allows that.
    """

    tasks: list[tuple[SegmentRange, ...]]
    spans: dict[TopicPartition, tuple[int, int]]
    positions: dict[TopicPartition, Position]
    losses: list[ExportProblem]


class _Part(NamedTuple):
    partition: Partition
    first: int
    end: int
    due: int  # where the log should end, if it is to be read to its end: what is missing there is a gap
    position: Position
    loss: Loss | None


def plan(options: ReadOptions, stored: Mapping[TopicPartition, Position]) -> Plan:
    """Plan a run that starts at the stored positions; for new partitions the options give the start.

    Raises:
        OptionError: an option does not match the files; or with `failOnDataLoss`, a topic was deleted or created again,
            a log was truncated, or records were deleted before they were exported.
        OSError: a directory or file cannot be read.
    """
    partitions = partitions_of(options)
    for partition in partitions:
        if partition.topic is None or partition.partition is None:
            raise OptionError(
                f"path: {partition.path} does not name a topic and partition, by which an export keeps its place"
            )

    def part(partition: Partition) -> _Part:
        position = stored.get(key_of(partition))
        return steadily(partition, lambda now: _part(now, options, position))

    parts = {key_of(found.partition): found for found in in_threads(part, partitions, THREADS, chunk=1)}
    losses = {key: found.loss for key, found in parts.items() if found.loss is not None}
    for key in stored.keys() - parts.keys():
        if options.selection.wants(*key):
            losses[key] = Loss("{name} was deleted", "without it")
    spans = {key: (found.first, found.end) for key, found in parts.items() if found.first < found.end}
    tasks = divide(
        [(part.partition, part.first, part.due) for part in parts.values() if part.first < part.due], options, Pruning()
    )
    losses.update({key: loss for key, loss in vanished(spans, covered(tasks)).items() if key not in losses})
    problems = [_reported(key, loss, fail=options.fail_on_data_loss) for key, loss in sorted(losses.items())]
    return Plan(tasks, spans, {**stored, **{key: found.position for key, found in parts.items()}}, problems)


def _part(partition: Partition, options: ReadOptions, position: Position | None) -> _Part:
    """The range of a partition to read, and the start of the next run."""
    if position is not None:  # the start is for partitions without a run
        options = replace(options, start=Bound("startingOffsets", EARLIEST))
    start, end = span(partition, options)
    partition, log = observe(partition, options)
    if position is None:
        first = max(start, log.start_offset)
        loss = deleted_before(options.start.offset(key_of(partition)), log.start_offset)
    else:
        batch = batch_before(partition, position.offset)
        first, loss = resume(position, log, batch)
    end = max(first, min(end, log.readable_to))
    due = end_due(partition, end) if end == log.end_offset else end
    new = advance(position, first, end, log, batch_before(partition, end) if end else None)
    return _Part(partition, first, end, due, replace(new, start=None), loss)


def _reported(key: TopicPartition, loss: Loss, *, fail: bool) -> ExportProblem:
    if fail:
        raise loss.error(key)
    logger.warning("%s", loss.warning(key))
    return ExportProblem(key[0], key[1], "", None, None, loss.warning(key))
