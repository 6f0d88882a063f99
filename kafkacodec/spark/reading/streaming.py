"""The format `kafkalog` as a stream: growing segments, read from where the last micro-batch ended."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from types import MappingProxyType

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from kafkacodec.log import Partition
from kafkacodec.log.formats import layout
from kafkacodec.log.opening import full_path, identity_of
from kafkacodec.log.opening.identity import LogIdentity, epoch_at
from kafkacodec.log.partitions.each_once import steadily
from kafkacodec.log.partitions.inside import identity_of_log
from kafkacodec.log.partitions.listings import Listings
from kafkacodec.spark.environment.workers import settle
from kafkacodec.spark.errors import OptionError, without_traceback
from kafkacodec.spark.reading.bounds import NOT_SELECTED
from kafkacodec.spark.reading.checkpoint import (
    Loss,
    Observed,
    Offsets,
    Position,
    advance,
    check,
    deleted_before,
    dump,
    parse,
    resume,
    share,
    starts,
    stays,
    vanished,
)
from kafkacodec.spark.reading.discovery import partitions_of, refuse_absent, selected
from kafkacodec.spark.reading.observing import MAX_TRIES, batch_before, covered, key_of, observe, topic_id
from kafkacodec.spark.reading.options import ReadOptions, TopicPartition
from kafkacodec.spark.reading.planning import Pruning, divide, refuse_without_batches, span
from kafkacodec.spark.reading.sights import Found, Sights
from kafkacodec.spark.reading.tasks import read_ranges

__all__ = ["SegmentStreamReader"]

logger = logging.getLogger("kafkacodec.spark")

MISSING_TRIES = 20
"""How often a partition is looked for before it counts as deleted; brokers move a directory by two renames."""

PAUSE_SECONDS = 0.05

OLD_SECONDS = 60
"""The age at which a checkpoint of high watermarks seems to be left over; a broker writes it every 5 seconds."""

READ_STATES = ("current", "remote")


class SegmentStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans micro-batches on the driver, by offsets. Tasks read as in a batch job."""

    def __init__(self, options: ReadOptions, names: tuple[str, ...]) -> None:
        self.options = options
        self.names = names
        self._stop_at: dict[TopicPartition, int] | None = None
        self._log_ends: dict[TopicPartition, int] = {}
        self._held_back: set[str] = set()
        self._listings = Listings()
        self._sights = Sights(self._listings)
        self._is_checked = False

    @without_traceback()
    def initialOffset(self) -> Offsets:
        """The offsets at which a new query starts.

        Raises:
            OptionError: `startingOffsets` is after the end of a log, or, with `failOnDataLoss`, before its start.
        """
        positions = {}
        for key, (partition, log) in self._observe(partitions_of(self.options, self._listings)).items():
            first = max(steadily(partition, lambda p: span(p, self.options)[0]), log.start_offset)
            if first > log.end_offset:
                name = f"{key[0]}-{key[1]}"
                raise OptionError(
                    f"{self.options.start.option}: {first} for {name} is after the end of the log, {log.end_offset}"
                )
            self._report(key, deleted_before(self.options.start.offset(key), log.start_offset))
            batch = batch_before(partition, first)
            positions[key] = Position(
                first, log.topic_id, epoch_at(log.epochs, first - 1), None if batch is None else batch.crc, first
            )
        return dump(positions)

    def getDefaultReadLimit(self) -> ReadLimit:
        """The limit set by `maxOffsetsPerTrigger`."""
        most = self.options.max_offsets_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    @without_traceback()
    def prepareForTriggerAvailableNow(self) -> None:
        """Stop at the current end of each partition."""
        self._stop_at = {
            key: log.readable_to for key, (_, log) in self._observe(selected(self.options, self._listings)).items()
        }

    @without_traceback()
    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:
        """The offsets at which the next micro-batch ends: the partitions' ends, or earlier ones if there is a limit.

        Raises:
            LostOffsets: with `failOnDataLoss`, if a topic was deleted or created again, a log was truncated, or records
                were deleted before they were read.
            OptionError: after a restart, if an option names a topic that is neither there nor in the checkpoint.
        """
        settle()
        positions = parse(start)
        found = self._observe_all(positions, positions)
        if not self._is_checked:
            refuse_absent(self.options, found.keys() | positions.keys())
            self._is_checked = True
        self._log_ends = {key: log.readable_to for key, (_, log) in found.items()}
        firsts: dict[TopicPartition, int] = {}
        available: dict[TopicPartition, int] = {}
        for key, (partition, log) in found.items():
            position = positions.get(key)
            batch = None if position is None else self._sights.batch_before(partition, position.offset)
            firsts[key], loss = resume(position, log, batch)
            self._report(key, loss)
            end = log.readable_to if self._stop_at is None else min(log.readable_to, self._stop_at.get(key, 0))
            available[key] = max(0, end - firsts[key])
        if isinstance(limit, ReadMaxRows):
            available = share(available, limit.max_rows)
        ends = {}
        for key, first in firsts.items():
            (partition, log), end = found[key], first + available[key]
            batch = None if stays(positions.get(key), first, end) else batch_before(partition, end)
            ends[key] = advance(positions.get(key), first, end, log, batch)
        return dump({**positions, **ends})

    def reportLatestOffset(self) -> Offsets:
        """The end of each partition when the micro-batch was planned, for the progress of the query."""
        return dump({key: Position(end) for key, end in self._log_ends.items()})

    @without_traceback()
    def partitions(self, start: Offsets, end: Offsets) -> list[InputPartition]:
        """The tasks of a micro-batch.

        Raises:
            LostOffsets: with `failOnDataLoss`, if offsets to be read were deleted or truncated. The tasks detect
                offsets missing between segments.
        """
        before, after = parse(start), parse(end)
        wanted = starts(before, after)
        for _ in range(MAX_TRIES):
            found = self._observe_all(wanted, before)
            spans = self._spans(wanted, after, found)
            try:
                tasks = divide(spans, self.options, Pruning())
            except FileNotFoundError:  # a partition was deleted
                tasks = []
            losses = vanished({key_of(p): (first, stop) for p, first, stop in spans}, covered(tasks))
            if not losses and all(_is(log, identity_of_log(partition)) for partition, log in found.values()):
                break  # the tasks are of the logs that were compared with the positions
        for key, loss in losses.items():
            self._report(key, loss)
        refuse_without_batches(tasks, self.names)
        return [InputPartition(ranges) for ranges in tasks or [()]]

    def _spans(
        self,
        wanted: dict[TopicPartition, int],
        after: dict[TopicPartition, Position],
        found: dict[TopicPartition, Found],
    ) -> list[tuple[Partition, int, int]]:
        """The offsets of a micro-batch that still exist."""
        spans = []
        for key, first in wanted.items():
            partition, log = found.get(key, (None, None))
            batch = None if partition is None else batch_before(partition, after[key].offset)
            first, stop, loss = check(first, after[key], log, batch)
            self._report(key, loss)
            if partition is not None and first < stop:
                spans.append((partition, first, stop))
        return spans

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of one task's ranges as Arrow batches."""
        settle()
        options = self.options
        return read_ranges(
            partition.value,
            self.names,
            permissive=options.permissive,
            gaps=options.gaps,
            fail_on_data_loss=options.fail_on_data_loss,
            access=options.access,
        )

    def _observe_all(
        self, expected: Collection[TopicPartition], positions: Mapping[TopicPartition, Position]
    ) -> dict[TopicPartition, Found]:
        """The selected partitions as they are now, which are read from `positions` on; those expected are looked for
        again.
        """
        found = self._observe(selected(self.options, self._listings), positions)
        tries = 0
        while self.options.fail_on_data_loss and not found.keys() >= set(expected) and tries < MISSING_TRIES:
            tries += 1
            time.sleep(PAUSE_SECONDS)
            found = self._observe(selected(self.options, self._listings), positions)
        for key in set(expected) - found.keys():
            option = self.options.selection.lacks(key)
            what = "was deleted" if option is None else NOT_SELECTED.format(option=option)
            self._report(key, Loss(f"{{name}} {what}", "without it"))
        return found

    def _observe(
        self, partitions: list[Partition], positions: Mapping[TopicPartition, Position] = MappingProxyType({})
    ) -> dict[TopicPartition, Found]:
        found = {}
        self._sights.begin(partitions)
        for partition in partitions:
            if partition.state not in READ_STATES:
                continue
            if partition.topic is None or partition.partition is None:
                raise OptionError(
                    f"path: {partition.path} does not name a topic and partition, by which a stream keeps its place"
                )
            key = partition.topic, partition.partition
            offset = positions[key].offset if key in positions else None
            with suppress(FileNotFoundError):  # its topic is being deleted
                found[key] = now, log = self._sights.observe(partition, offset, self._observed)
                self._warn_if_held_back(now, log.end_offset)
        return found

    def _observed(self, partition: Partition) -> Found:
        return steadily(partition, lambda now: observe(now, self.options))

    def _warn_if_held_back(self, partition: Partition, end: int) -> None:
        """Say once if records are not read because a high watermark is old: no broker may be there to write it."""
        high_watermark = partition.high_watermark if self.options.to_high_watermark else None
        if high_watermark is None or high_watermark >= end or partition.path in self._held_back:
            return
        path = os.path.join(os.path.dirname(full_path(partition.path)), layout.HIGH_WATERMARK_CHECKPOINT)
        try:
            age = time.time() - identity_of(path).mtime_ns / 1e9
        except FileNotFoundError:  # of merged replicas: another has it
            return
        if age > OLD_SECONDS:
            self._held_back.add(partition.path)
            logger.warning(
                "%s: %d offsets after the high watermark, %d, are not read; %s was written %d seconds ago. "
                "endAt=logEnd reads them",
                partition.path, end - high_watermark, high_watermark, path, age,
            )  # fmt: skip

    def _report(self, key: TopicPartition, loss: Loss | None) -> None:
        """Raise or log a loss."""
        if loss is None:
            return
        if self.options.fail_on_data_loss:
            raise loss.error(key)
        logger.warning("%s", loss.warning(key))


def _is(log: Observed, identity: LogIdentity) -> bool:
    return (log.topic_id, log.epochs) == (topic_id(identity), identity.epochs)
