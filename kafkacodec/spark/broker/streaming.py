"""The format `kafkabroker` as a stream: micro-batches of offsets, in checkpoints as Spark's own source writes them.

The first micro-batch also has where the query started: if it is repeated, Spark asks for that again, and the answer may
be another one by then.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from kafkacodec.spark.broker.offsets import Offsets, TopicOffsets
from kafkacodec.spark.broker.planning import Json, as_json, from_json, lost, split
from kafkacodec.spark.broker.read_options import BrokerReadOptions
from kafkacodec.spark.broker.reading import read_task
from kafkacodec.spark.checkpoint import share
from kafkacodec.spark.errors import OptionError, without_traceback

__all__ = ["BrokerStreamReader"]


class BrokerStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans micro-batches on the driver. Tasks read as in a batch job."""

    def __init__(self, options: BrokerReadOptions, names: tuple[str, ...]) -> None:
        self.options = options
        self.names = names
        self._offsets = TopicOffsets(options)
        self._stop_at: Offsets | None = None
        self._planned_at = float("-inf")

    @without_traceback()
    def initialOffset(self) -> Json:
        """Where a new query starts.

        Raises:
            OptionError: `startingOffsets` does not match the topics, or is after the end of a partition.
            BrokerUnavailable: the brokers do not answer.
        """
        keys = self._offsets.partitions()
        starts = self._offsets.resolved(self.options.start, keys)
        if self.options.start.values:
            for key, end in self._offsets.latest(keys).items():
                if starts[key] > end:
                    raise OptionError(
                        f"{self.options.start.option}: {starts[key]} for {key[0]}-{key[1]} is after the end of the "
                        f"partition, {end}"
                    )
        return as_json(starts, starts)

    def getDefaultReadLimit(self) -> ReadLimit:
        """The limit set by `maxOffsetsPerTrigger`."""
        most = self.options.max_offsets_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    @without_traceback()
    def prepareForTriggerAvailableNow(self) -> None:
        """Stop at the current end of each partition."""
        self._stop_at = self._offsets.latest(self._offsets.partitions())

    @without_traceback()
    def latestOffset(self, start: Json, limit: ReadLimit) -> Json:
        """Where the next micro-batch ends: at each partition's end, or before it if there is a limit.

        Raises:
            OptionError: with `failOnDataLoss`, if a partition was deleted or ends before what was read already.
            BrokerUnavailable: the brokers do not answer.
        """
        before, starts = from_json(start)
        ends = self._ends()
        for key in sorted(before.keys() - ends.keys()):
            lost(self.options, key, "the partition was deleted")
        for key in sorted(before.keys() & ends.keys()):
            if ends[key] < before[key] and self._stop_at is None:
                lost(self.options, key, _went_back(before[key], ends[key]))
        firsts = {key: before[key] for key in before.keys() & ends.keys()}
        firsts |= self._offsets.earliest(ends.keys() - before.keys())
        available = {key: max(0, end - firsts[key]) for key, end in ends.items()}
        if self._waits(sum(available.values())):
            return as_json(before, starts)
        if isinstance(limit, ReadMaxRows) and sum(available.values()) > limit.max_rows:
            shares = share(available, limit.max_rows)
            # A new partition that gets no share stays new.
            ends = {key: firsts[key] + part for key, part in shares.items() if part or key in before}
        elif self._stop_at is not None:
            ends = {key: max(end, firsts[key]) for key, end in ends.items()}
        # They stay where nothing is new: other offsets would make another micro-batch.
        starts = {key: first for key, first in starts.items() if before[key] in (first, ends.get(key))}
        return as_json(ends, starts)

    def reportLatestOffset(self) -> Json:
        """The end of each partition, for the progress of the query."""
        return as_json(self._offsets.latest(self._offsets.partitions()))

    def _ends(self) -> Offsets:
        """Where reading may go now; with ``availableNow``, no further than when it began."""
        ends = self._offsets.latest(self._offsets.partitions())
        if self._stop_at is None:
            return ends
        return {key: min(end, self._stop_at[key]) for key, end in ends.items() if key in self._stop_at}

    def _waits(self, available: int) -> bool:
        """Whether to wait for `minOffsetsPerTrigger`, no longer than `maxTriggerDelay` after the last micro-batch."""
        now, least = time.monotonic(), self.options.min_offsets_per_trigger
        waited_ms = (now - self._planned_at) * 1000
        too_few = least is not None and self._stop_at is None and available < least
        if too_few and waited_ms < self.options.max_trigger_delay_ms:
            return True
        if available:
            self._planned_at = now
        return False

    @without_traceback()
    def partitions(self, start: Json, end: Json) -> list[InputPartition]:
        """The tasks of a micro-batch.

        Raises:
            OptionError: with `failOnDataLoss`, if offsets to be read were deleted.
            BrokerUnavailable: the brokers do not answer.
        """
        (before, old), (after, new) = from_json(start), from_json(end)
        before |= {key: first for key, first in new.items() if (after[key], first) != (before.get(key), old.get(key))}
        there = set(self._offsets.partitions())
        for key in sorted((before.keys() | after.keys()) - there):
            lost(self.options, key, "the partition was deleted")
        keys = [key for key in after if key in there]
        firsts = self._offsets.earliest(keys)
        spans = {}
        for key in keys:
            first = before.get(key, 0)
            if after[key] < first:
                lost(self.options, key, _went_back(first, after[key]))
            elif first < min(firsts[key], after[key]):
                gone = min(firsts[key], after[key]) - 1
                lost(self.options, key, f"offsets {first} to {gone} were deleted before they were read")
            spans[key] = max(first, firsts[key]), after[key]
        return [InputPartition(part) for part in split(spans, self.options)] or [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of one task's range as Arrow batches."""
        return read_task(partition.value, self.names, self.options)


def _went_back(before: int, now: int) -> str:
    return f"it was read up to offset {before}, and ends at {now}: it was truncated, or the topic was made again"
