"""The task of a read: it fetches ranges of offsets and passes them to Spark as Arrow batches.

The cluster may have changed since a range was planned: records may be deleted, and topics may be created again, with
other records under the same offsets.
"""

from __future__ import annotations

import logging
import math
import uuid
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from typing import Final

import pyarrow as pa

from kafkacodec.client.blocking.consumer import Consumer
from kafkacodec.client.consuming.record import ConsumedColumns
from kafkacodec.errors import (
    LEADER_NOT_AVAILABLE,
    OFFSET_OUT_OF_RANGE,
    UNKNOWN_TOPIC_OR_PARTITION,
    DeadlineExceeded,
    KafkaCodecError,
    MissingOffsets,
    error,
)
from kafkacodec.spark.errors import without_traceback
from kafkacodec.spark.live.connections import borrowed
from kafkacodec.spark.live.planning import OffsetRange, Task
from kafkacodec.spark.live.read_options import BrokerReadOptions
from kafkacodec.spark.reading.tasks import ROWS, Shaper
from kafkacodec.spark.times import FarTimes

__all__ = ["read_task"]

logger = logging.getLogger("kafkacodec.spark")

_OutOfRange = error(OFFSET_OUT_OF_RANGE)
_UnknownTopic = error(UNKNOWN_TOPIC_OR_PARTITION)
_WithoutLeader = error(LEADER_NOT_AVAILABLE)
_WITHOUT_TIMES: Final = "the option columns reads records without their timestamps"

_LOOK_SECONDS: Final = 3.0
"""How long brokers may say that they do not have the topic, before it counts as deleted; and how long a task waits for
records before it asks for that."""

_REFUSALS: Final = 5
"""How often brokers may refuse an offset that they have, before the task fails: they hear of new topics at different
times."""


def read_task(
    task: Task, names: tuple[str, ...], options: BrokerReadOptions, *, streaming: bool = False
) -> Iterator[pa.RecordBatch]:
    """The records of ranges in batches of at most `ROWS` rows, with the columns `names`.

    If a topic was created again, a batch reads the offsets of the range in the new one (without `failOnDataLoss`). A
    stream skips them, since its next micro-batch reads the new topic from its beginning.

    Raises:
        MissingOffsets: offsets were deleted meanwhile, with `failOnDataLoss`; else that is logged.
        DeadlineExceeded: no record came within `kafkaConsumer.pollTimeoutMs`.
        BrokerError, DecodeError: the partition cannot be read; or a timestamp is one that Spark cannot hold.
    """
    return _batches(task, names, options, streaming) if task else iter(())


def _batches(task: Task, names: Sequence[str], options: BrokerReadOptions, streaming: bool) -> Iterator[pa.RecordBatch]:
    shaper = Shaper(names)
    with without_traceback(), borrowed(Consumer, options.client) as consumer:
        left = task if len(task) == 1 else (yield from _together(consumer, task, shaper, options))
        for wanted in left:
            reading = _Reading(consumer, wanted, options, streaming=streaming)
            far = FarTimes(reading.name, _WITHOUT_TIMES)
            for table in reading.tables(shaper.core_columns):
                yield shaper.shape(table, far)
        consumer.assign([])


def _together(
    consumer: Consumer, task: Task, shaper: Shaper, options: BrokerReadOptions
) -> Generator[pa.RecordBatch, None, list[OffsetRange]]:
    """The records of several ranges as they come. Returns what is left: alone, each range tells what is wrong."""
    reached = {wanted[:2]: wanted.start for wanted in task}
    far = FarTimes("one of several partitions", _WITHOUT_TIMES)
    timeout = min(options.poll_timeout_ms / 1000, _LOOK_SECONDS)
    with suppress(KafkaCodecError):
        ids = {topic: consumer.topic_id(topic, timeout=timeout) for topic in {wanted.topic for wanted in task}}
        # Another topic of the name, or one that may be, is for `_Reading`.
        planned = [wanted for wanted in task if wanted.topic_id is not None and wanted.topic_id == ids[wanted.topic]]
        consumer.assign_ranges({wanted[:2]: (wanted.start, wanted.end) for wanted in planned})
        for table in consumer.columns(max_rows=ROWS, timeout=timeout, columns=shaper.core_columns):
            batch = shaper.shape(table, far)
            reached |= table.next_offsets
            yield batch
        for wanted in planned:  # offsets without records may have come
            reached[wanted[:2]] = max(reached[wanted[:2]], consumer.position(*wanted[:2]))
    rest = [wanted._replace(start=reached[wanted[:2]]) for wanted in task]
    return [wanted for wanted in rest if wanted.start < wanted.end]


class _Reading:
    """A range that is read: `start` is what comes next, and the topic has the id `topic_id`."""

    def __init__(self, consumer: Consumer, wanted: OffsetRange, options: BrokerReadOptions, *, streaming: bool) -> None:
        self.consumer, self.options, self.streaming = consumer, options, streaming
        self.key, self.start, self.end = (wanted.topic, wanted.partition), wanted.start, wanted.end
        self.name, self.topic_id = f"{wanted.topic}-{wanted.partition}", wanted.topic_id
        self._refusals = 0
        self._limit = min(_LOOK_SECONDS, options.client.get("default_api_timeout_ms", math.inf) / 1000)

    def tables(self, columns: Sequence[str]) -> Iterator[ConsumedColumns]:
        """The records."""
        timeout = left = self.options.poll_timeout_ms / 1000
        assigned = None
        while self.start < self.end:
            if assigned is None:
                assigned = self.start, self.end
                self.consumer.assign_ranges({self.key: assigned})
            if not self._is_planned_topic():
                assigned = None
                continue
            part, start = min(left, _LOOK_SECONDS), self.start
            try:
                for table in self.consumer.columns(max_rows=ROWS, timeout=part, columns=columns):
                    self.start = table.next_offsets.get(self.key, self.start)
                    yield table
            except _OutOfRange:
                if self._is_planned_topic():
                    self._out_of_range(self.consumer.position(*self.key))
                assigned = None
                continue
            except (_UnknownTopic, _WithoutLeader):
                if left <= part:
                    raise
            self.start = max(self.start, self.consumer.position(*self.key))  # offsets without records may have come
            left = timeout if self.start > start else left - part
            if left <= 0 and self.start < self.end:
                raise DeadlineExceeded(
                    f"{self.name}: no record from offset {self.start} to {self.end - 1} came within {timeout:g} s "
                    "(kafkaConsumer.pollTimeoutMs)"
                )

    def _is_planned_topic(self) -> bool:
        """Whether the topic is the one for which the range was planned; else the range becomes what is there."""
        name, number = self.key
        after = f"after offsets {self.start} to {self.end - 1} were planned to be read"
        try:
            now = self._topic_id(name)
        except _UnknownTopic:
            self._report(f"the topic was deleted {after}")
            self.start = self.end
            return False
        if now is not None and now == self.topic_id:
            return True
        there = number in self.consumer.partitions_for(name)
        if there and (now is None or self.topic_id is None):  # before Kafka 2.8, or it was not certain when planning
            return True
        self._report(f"the topic was deleted and made again {after}")
        self.topic_id = now
        if self.streaming or not there:
            self.start = self.end
        else:
            first, end = self._there()
            self.start, self.end = max(self.start, first), min(self.end, end)
        return False

    def _topic_id(self, name: str) -> uuid.UUID | None:
        """The topic's id now. Raises UnknownTopicOrPartitionError if brokers say for seconds that it is not there."""
        for limit in (self._limit, None):
            try:
                return self.consumer.topic_id(name, timeout=limit)
            except DeadlineExceeded as late:
                if isinstance(late.__cause__, _UnknownTopic):
                    raise late.__cause__ from None
                if limit is None:
                    raise
        raise AssertionError("not reached")

    def _out_of_range(self, at: int) -> None:
        """The broker refuses an offset: go on after what is not there."""
        first, end = self._there()
        self.start = at
        if first <= at < end:  # what was asked did not know yet
            self._refusals += 1
            if self._refusals > _REFUSALS:
                raise MissingOffsets(
                    f"{self.name}: offset {at} cannot be read, although the partition has offsets {first} to {end - 1}",
                    first_offset=at,
                    end_offset=self.end,
                )
            return
        self.start = min(first, self.end) if at < first else self.end
        self._report(
            f"offsets {at} to {self.start - 1} can no longer be read: "
            + (
                "they were deleted"
                if at < first
                else f"it ends at {end}: it was truncated, or the topic was made again"
            ),
            at,
        )

    def _there(self) -> tuple[int, int]:
        """The first offset and the end of the partition now."""
        return self.consumer.beginning_offsets([self.key])[self.key], self.consumer.end_offsets([self.key])[self.key]

    def _report(self, what: str, first: int | None = None) -> None:
        text = f"{self.name}: {what}"
        if self.options.fail_on_data_loss:
            raise MissingOffsets(
                f"{text}; failOnDataLoss=false reads on without them",
                first_offset=self.start if first is None else first,
                end_offset=self.end if first is None else self.start,
            )
        logger.warning("%s", text)
