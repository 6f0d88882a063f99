"""The format `kafkabroker` as a stream: micro-batches of offsets, in checkpoints as Spark's own source writes them.

The first micro-batch also has where the query started: if it is repeated, Spark asks for that again, and the answer may
be another one by then. So has the first one of a topic that was made again, with the offset that was reached before:
however often it is started, the query fails until someone accepts that (`failOnDataLoss`). Then it reads all of the
topic.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from kafkacodec.spark.environment.workers import settle
from kafkacodec.spark.errors import OptionError, without_traceback
from kafkacodec.spark.live.offsets import Ids, Offsets, TopicOffsets
from kafkacodec.spark.live.planning import Json, Reached, as_json, from_json, gone, lost, tasks_of
from kafkacodec.spark.live.read_options import BrokerReadOptions
from kafkacodec.spark.live.reading import read_task
from kafkacodec.spark.reading.bounds import TopicPartition
from kafkacodec.spark.reading.checkpoint import share

__all__ = ["BrokerStreamReader"]

_ALL = "with what is there now, from its beginning"


class BrokerStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans micro-batches on the driver. Tasks read as in a batch job."""

    def __init__(self, options: BrokerReadOptions, names: tuple[str, ...]) -> None:
        self.options = options
        self.names = names
        self._offsets = TopicOffsets(options)
        self._stop_at: Offsets | None = None
        self._latest: Offsets | None = None
        self._planned_at = float("-inf")
        self._ids: dict[str, Ids] = {}  # the topics that offsets were planned in, by these offsets

    @without_traceback()
    def initialOffset(self) -> Json:
        """The offsets at which a new query starts.

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
        found = as_json(starts, starts)
        self._ids[_text(found)] = keys
        return found

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
        """The offsets at which the next micro-batch ends: the partitions' ends, or earlier ones if there is a limit.

        Raises:
            LostOffsets: with `failOnDataLoss`, if a partition was deleted or ends before an offset that was read.
            BrokerUnavailable: the brokers do not answer.
        """
        settle()
        before, now = from_json(start), self._offsets.partitions()
        self._latest = latest = self._offsets.latest(now)
        ends = self._limited(latest)
        for key in sorted(before.offsets.keys() - ends.keys()):
            gone(self.options, key)
        again = self._made_again(start, before, now, latest)
        there = before.offsets.keys() & now.keys() - again
        # Where a partition ends before, it was truncated.
        firsts = {key: min(before.offsets[key], latest[key]) for key in there}
        firsts |= self._offsets.earliest(now.keys() - there)
        available = {key: max(0, end - firsts[key]) for key, end in ends.items()}
        if self._waits(sum(available.values())):
            return start
        if isinstance(limit, ReadMaxRows) and sum(available.values()) > limit.max_rows:
            shares = share(available, limit.max_rows)
            # A new partition that gets no share stays new.
            ends = {key: firsts[key] + part for key, part in shares.items() if part or key in before.offsets}
        else:
            ends = {key: max(end, firsts[key]) for key, end in ends.items()}
        found = self._as_json(before, ends, {key: firsts[key] for key in again & ends.keys()})
        self._ids = {text: ids for text, ids in self._ids.items() if text == _text(start)} | {_text(found): now}
        return found

    def _made_again(self, start: Json, before: Reached, now: Ids, latest: Offsets) -> set[TopicPartition]:
        """The partitions of other topics than those in which `before` was reached.

        Raises:
            LostOffsets: with `failOnDataLoss`, if a partition ends before that, and it is not known that its topic is
                another.
        """
        known = self._ids.get(_text(start), {})
        again = set()
        for key in sorted(before.offsets.keys() & now.keys()):
            was, reached = known.get(key), before.offsets[key]
            if was is not None and now[key] is not None and was != now[key]:
                again.add(key)
            elif latest[key] < reached:
                if was is None:  # nobody knows whether what is there has been read
                    again.add(key)
                if was is not None or self.options.fail_on_data_loss:
                    go_on = "at its end" if was is not None else _ALL
                    lost(self.options, key, _went_back(reached, latest[key]), go_on)
        return again

    def _as_json(self, before: Reached, ends: Offsets, again: Offsets) -> Json:
        """The end of a micro-batch; `again` are the starts of partitions of other topics than before.

        What is known of starts stays where nothing is new: other offsets would make another micro-batch.
        """
        kept = {key for key in before.starts.keys() & ends.keys() - again if before.offsets[key] == ends[key]}
        first = {key for key, start in before.starts.items() if before.at(key) == (start, start, None)} & ends.keys()
        starts = {key: before.starts[key] for key in kept | first - again.keys()}
        earlier = {key: before.earlier[key] for key in kept & before.earlier.keys()}
        return as_json(ends, starts | again, earlier | {key: before.offsets[key] for key in again})

    def reportLatestOffset(self) -> Json:
        """The end of each partition, for the progress of the query: as `latestOffset`, which Spark has just asked,
        found it.
        """
        latest = self._offsets.latest(self._offsets.partitions()) if self._latest is None else self._latest
        return as_json(latest)

    def _limited(self, latest: Offsets) -> Offsets:
        """The offsets up to which to read now; with ``availableNow``, at most the ends at the start of the query."""
        if self._stop_at is None:
            return latest
        return {key: min(end, self._stop_at[key]) for key, end in latest.items() if key in self._stop_at}

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
            LostOffsets: with `failOnDataLoss`, if offsets to be read were deleted.
            BrokerUnavailable: the brokers do not answer.
        """
        before, after, now = from_json(start), from_json(end), self._offsets.partitions()
        for key in sorted((before.offsets.keys() | after.offsets.keys()) - now.keys()):
            gone(self.options, key)
        keys = [key for key in after.offsets if key in now]
        firsts, ends = self._offsets.earliest(keys), self._offsets.latest(keys)
        spans = {key: self._span(key, before, after, firsts[key], ends[key]) for key in keys}
        # Topics may have been made again since the end was planned; then the tasks find others than these.
        ids = self._ids.setdefault(_text(end), {key: now[key] for key in keys if after.offsets[key] <= ends[key]})
        return [InputPartition(task) for task in tasks_of(spans, self.options, ids) or [()]]

    def _span(
        self, key: TopicPartition, before: Reached, after: Reached, earliest: int, latest: int
    ) -> tuple[int, int]:
        """The offsets of a partition in a micro-batch, of those that are there."""
        first, end = before.offsets.get(key, 0), after.offsets[key]
        if before.at(key) != after.at(key) and key in after.starts:
            first = after.starts[key]
            if key in after.earlier:
                again = f"it was read up to offset {after.earlier[key]} before the topic was made again, or truncated"
                lost(self.options, key, again, _ALL)
        if end < first:
            lost(self.options, key, _went_back(first, end))
        elif first < min(earliest, end):
            lost(self.options, key, f"offsets {first} to {min(earliest, end) - 1} were deleted before they were read")
        if max(first, latest) < end:
            gone = f"offsets {max(first, latest)} to {end - 1} were planned to be read, and it ends at {latest}"
            lost(self.options, key, f"{gone}: it was truncated, or the topic was made again")
        return max(first, earliest), min(end, latest)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of one task as Arrow batches."""
        settle()
        return read_task(partition.value, self.names, self.options, streaming=True)


def _went_back(before: int, now: int) -> str:
    return f"it was read up to offset {before}, and ends at {now}: it was truncated, or the topic was made again"


def _text(offsets: Json) -> str:
    return json.dumps(offsets, sort_keys=True)
