"""The queues of a producer: for each partition, an open batch that grows, and closed batches that wait.

The sending threads and the thread of the loop share them, under one lock.
"""

from __future__ import annotations

import math
import threading
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from kafkacodec.chance import RANDOM
from kafkacodec.client.core.cluster import Cluster
from kafkacodec.client.core.metadata import Topic
from kafkacodec.client.producing._appending import Appending, OpenBatch, OpenQueue, OpenTopic
from kafkacodec.client.producing._batch import BatchBuilder
from kafkacodec.client.producing._delivery import Delivery
from kafkacodec.client.producing.outcome import Outcome, Part
from kafkacodec.client.producing.settings import Partitioner, ProducerSettings
from kafkacodec.errors import EncodeError, LocalProtocolError
from kafkacodec.records.compression import DEFAULT_MAX_DECOMPRESSED_BYTES

if TYPE_CHECKING:
    from kafkacodec.client.producing._shortcut import Shortcut

__all__ = ["Batch", "PartitionQueue", "Queues", "TopicQueues"]

BATCH_BYTES: Final = 61  # the size of a batch header
TABLE_BATCH_BYTES: Final = 960 << 10  # few requests; brokers before 2.4 take batches up to 1,000,012 bytes
_COMPARED: Final = 8  # partitions
READABLE_BYTES: Final = DEFAULT_MAX_DECOMPRESSED_BYTES  # the records of a compressed batch: consumers refuse more
READABLE_BY: Final = "the default of consumers' max_decompressed_bytes"
REQUEST_BYTES: Final = 100  # of a request beyond its batches, topic names and client id


class Batch(OpenBatch):
    """Records of one partition that are sent together.

    Attributes:
        queue: the queue of its partition.
        builder: takes records while the batch is open; None afterwards.
        data: the finished batch; None before.
        count, size: the number of records, and the uncompressed size in bytes including the header.
        order: its position in the sending order of the partition.
        outcome, first: the shared outcome of its deliveries, and the index of its first record there.
        deadline, due_at: when it fails if not delivered, and when it is sent even if not full.
        producer, sequence: the producer id and epoch, and the sequence under which it is sent, once decided.
        attempts, retry_at, error: how often it was sent, when it may be retried, and why.
        broken: how many of the last answers in a row broke the protocol.
    """

    __slots__ = (
        "broken", "deadline", "due_at", "error", "order", "retry_at",
    )  # fmt: skip
    queue: PartitionQueue
    data: bytearray | memoryview | None
    producer: tuple[int, int] | None

    def __init__(self, queue: PartitionQueue, order: tuple[int, int], outcome: Outcome, first: int) -> None:
        self.queue = queue
        self.order = order
        self.outcome, self.first = outcome, first
        self.deadline = self.due_at = math.inf
        self.sequence = -1
        self.broken = 0
        self.retry_at = 0.0
        self.error: Exception | None = None

    def finish(self, codec: int, compress: Callable[[Any], Any] | None) -> bytearray | memoryview:
        """The bytes of the closed batch, compressed on the first call."""
        if self.data is None:
            assert self.builder is not None
            self.data = self.builder.close(codec, compress)
            self.builder = None
        return self.data

    def resolve(self, offset: int, time: int, error: Exception | None) -> None:
        """Resolve the deliveries of the records."""
        end = self.first + self.count
        part = (end, self.first, self.queue.topic, self.queue.number, offset, time, error)
        self.outcome.resolve(tuple.__new__(Part, part))  # what the class does, without its call


class PartitionQueue(OpenQueue):
    """The batches of a partition.

    Attributes:
        open: the batch that takes records; it follows those in `waiting`.
        waiting: closed batches in order; retried ones come first.
        flying: batches that wait for an answer, in order.
        producer, next_sequence: for the next new batch; None before the first.
        proven: whether the broker has accepted a batch of this producer, so that it checks sequences.
        broken: whether sequences cannot continue: an earlier batch is missing, or the broker lost the producer's state.
        missing_since: since when the topic has partitions, but not this one; None if it has it.
    """

    __slots__ = ("missing_since",)
    open: Batch | None
    waiting: deque[Batch]
    flying: list[Batch]
    producer: tuple[int, int] | None

    def __init__(self, topic: str, number: int) -> None:
        self.topic, self.number = topic, number
        self.waiting = deque()
        self.flying = []
        self.missing_since: float | None = None

    @property
    def first(self) -> Batch | None:
        """The next batch to send."""
        return self.waiting[0] if self.waiting else self.open

    @property
    def load(self) -> int:
        """The number of unacknowledged batches."""
        return len(self.waiting) + len(self.flying) + (self.open is not None)

    def put_back(self, batch: Batch) -> None:
        """Queue a batch again, in its original order."""
        at = 0
        while at < len(self.waiting) and self.waiting[at].order < batch.order:
            at += 1
        self.waiting.insert(at, batch)

    def is_next(self, batch: Batch) -> bool:
        """Whether no earlier batch waits for a retry or an answer."""
        earlier = self.waiting and self.waiting[0].order < batch.order
        return not earlier and all(other.order >= batch.order for other in self.flying)


class TopicQueues(OpenTopic):
    """The queues of a topic's partitions, according to one generation of the cluster's metadata.

    Attributes:
        queues: all queues, including those of partitions that no longer exist, which resume with their sequences if
            the partition comes back.
        numbers, present, in_order: the existing partitions, and their queues.
        available: the partitions that have a leader.
        topic_id: the id of the topic with these partitions; None if brokers do not report it.
        batch_limit: the maximum size in bytes of batches of single records.
        table_limit: the maximum size in bytes of batches of table rows.
        used_at: when the last batch was started, or the topic was first used.
    """

    __slots__ = (
        "_lock", "available", "generation", "name", "numbers", "table_limit", "topic_id", "used_at",
    )  # fmt: skip
    queues: dict[int, PartitionQueue]
    sticky: PartitionQueue | None

    def __init__(self, name: str, batch_limit: int, table_limit: int, now: float, lock: threading.RLock) -> None:
        self.name = name
        self._lock = lock
        self.used_at = now
        self.queues = {}
        self.topic_id: uuid.UUID | None = None
        self.numbers: list[int] = []
        self.in_order = []
        self.present = frozenset()
        self.available: list[int] = []
        self.generation = -1
        self.batch_limit, self.table_limit = batch_limit, table_limit

    def limit_batches(self, size: int) -> None:
        """Limit batches to this size in bytes, since the broker refuses larger ones."""
        self.batch_limit = max(min(self.batch_limit, size), 1)
        self.table_limit = max(min(self.table_limit, size), 1)

    def update(self, topic: Topic, generation: int) -> None:
        """Record which partitions exist and which have a leader, unless newer metadata is known.

        Takes the lock itself. Others may read without it meanwhile: they find a queue for each number.
        """
        with self._lock:
            if generation <= self.generation:
                return
            partitions = dict(topic.partitions)
            for number in partitions:
                if number not in self.queues:
                    self.queues[number] = PartitionQueue(self.name, number)
            if topic.topic_id != self.topic_id:  # brokers have accepted nothing in a topic that was recreated
                self.topic_id = topic.topic_id
                for queue in self.queues.values():
                    queue.proven = False
            self.numbers, self.present = sorted(partitions), frozenset(partitions)
            self.in_order = [self.queues[number] for number in self.numbers]
            if self.sticky is not None and self.sticky.number not in partitions:
                self.sticky = None
            self.available = [n for n in self.numbers if partitions[n].leader is not None]
            self.generation = generation

    def choose_sticky(self) -> PartitionQueue:
        """The partition for records without a key until its batch is full: of a few, the one with the fewest batches
        (KIP-480, KIP-794)."""
        numbers = self.available or self.numbers
        if len(numbers) == 1:
            self.sticky = self.queues[numbers[0]]
            return self.sticky
        some = RANDOM.sample(numbers, min(len(numbers), _COMPARED))
        self.sticky = min((self.queues[n] for n in some), key=lambda queue: queue.load)
        return self.sticky


class Queues(Appending):
    """The queues of a producer. Methods need `lock` unless they say otherwise.

    Args:
        cluster: read only.
        settings: the producer's.
        clock: the driver's time in ms; may be called from any thread.

    Attributes:
        lock: protects everything here, except that records get into open batches without it.
        ready: the topics whose records may be added without asking for metadata, by the newest.
        active: the partitions that have batches, least recently served first.
        pending: all batches whose outcome is unknown, in order of creation.
        bytes: the uncompressed size of these batches.
        full: whether `send` must wait: from when `buffer_memory` is used up until half of it is free, since waiting
            costs more than sending. May be read without the lock.
        drained: how often `full` became false. Waiting threads resume the next time it does, even if it is true again
            by then.
        shortcut: sends batches past the loop where it may; None: nothing is.
        asleep_until: when the driver polls without being woken.
        flush_to: batches with an order up to this are sent without waiting for more records.
    """

    topics: dict[str, TopicQueues]

    def __init__(self, cluster: Cluster, settings: ProducerSettings, clock: Callable[[], float]) -> None:
        self.shortcut: Shortcut | None = None
        self.asleep_until = math.inf
        self.flush_to = -1
        self._cluster = cluster
        self._settings = settings
        self._clock = clock
        self._made = 0
        self._partitioner: Partitioner | None = settings.partitioner
        most = max(settings.max_request_size - REQUEST_BYTES, 1)
        self._allowed_by = "max_request_size"
        self._batch_limit = settings.batch_size
        self._table_limit = min(max(settings.batch_size, TABLE_BATCH_BYTES), most)
        largest = max(most - BATCH_BYTES, 1)
        if settings.codec and largest > READABLE_BYTES:
            self._allowed_by, largest = READABLE_BY, READABLE_BYTES
        if settings.codec:
            self._batch_limit = min(self._batch_limit, READABLE_BYTES)
            self._table_limit = min(self._table_limit, READABLE_BYTES)
        self.lock = threading.RLock()  # so that a signal handler is refused instead of deadlocking
        super().__init__(self.lock._is_owned, settings.buffer_memory, largest)  # type: ignore[attr-defined]
        self.hashes = settings.partitioner is None

    def refuse_handler(self) -> None:
        """Refuse a call from a signal handler that interrupted `send`: its record is half queued, and the client waits
        for it. Needs no lock."""
        if self.lock._is_owned():  # type: ignore[attr-defined]
            raise LocalProtocolError(
                "a signal handler interrupted send(): set a flag in the handler, and act after send()"
            )

    def topic(self, name: str) -> TopicQueues | None:
        """The queues of a topic by the newest metadata; None if it is unknown or unusable. Takes the lock itself, but
        only for new metadata."""
        found = self.topics.get(name)
        if found is not None and found.generation == self._cluster.generation:
            return found
        generation = self._cluster.generation
        known = self._cluster.topics.get(name)
        if known is None or not known.partitions:
            return None
        if found is None:
            with self.lock:
                found = self.topics.get(name)
                if found is None:
                    now = self._clock()
                    found = TopicQueues(name, self._batch_limit, self._table_limit, now, self.lock)
                    self.topics[name] = found
        found.update(known, generation)
        return found

    def append(
        self, topic: TopicQueues, partition: int | None, key: Any, value: Any, headers: Any, timestamp: int
    ) -> tuple[Delivery, bool]:
        """Queue a record, or send it; returns its delivery, and whether the driver must be woken.

        Raises:
            EncodeError: a type or the size is wrong, or the partition does not exist.
        """
        woken = False
        if not isinstance(headers, (list, tuple, Mapping)) and isinstance(headers, Iterable):
            headers = list(headers)  # asked for again if the open batch is full
        while True:
            queue = self._queue(topic, partition, key)
            batch = queue.open
            new = batch is None
            if batch is None:
                batch = self.new_batch(queue)
                batch.builder, batch.size = BatchBuilder(self._allowed_by), BATCH_BYTES
            made = self.put(topic, batch, key, value, headers, timestamp)
            if made is not None:
                break
            self.close(queue)  # it is full
            woken = True
        if new:
            self.pend(queue, batch)  # from now on others add to it
        due = woken or (new and batch.due_at < self.asleep_until)
        return made, due and (self.shortcut is None or not self.shortcut.write(batch))

    def add(self, batch: Batch) -> None:
        """Queue a closed batch, after the open one."""
        self.close(batch.queue)
        self.pend(batch.queue, batch)
        batch.queue.waiting.append(batch)

    def new_batch(self, queue: PartitionQueue, outcome: Outcome | None = None, first: int = 0) -> Batch:
        """Create an empty batch, not yet queued."""
        self._made += 1
        batch = Batch(queue, (self._made, 0), Outcome(self.loop) if outcome is None else outcome, first)
        now = self.topics[queue.topic].used_at = self._clock()
        batch.due_at = now + self._settings.linger_ms
        batch.deadline = now + self._settings.delivery_timeout_ms
        return batch

    def is_due(self, batch: Batch, now: float) -> bool:
        """Whether an open batch is sent although it is not full."""
        return batch.due_at <= now or batch.order[0] <= self.flush_to or self.full

    def idle(self, before: float) -> list[str]:
        """The topics that have no batches and have got none since `before`."""
        topics = self.topics.values()
        return [t.name for t in topics if t.used_at < before and not any(queue.load for queue in t.queues.values())]

    def flush(self) -> int:
        """Have all present batches sent soon; returns the order of the newest."""
        self.flush_to = self._made
        return self._made

    def done_to(self, order: int) -> bool:
        """Whether the outcome of every batch up to this order is known."""
        first = next(iter(self.pending), None)
        return first is None or first.order[0] > order

    def replace(self, batch: Batch, parts: Iterable[Batch]) -> None:
        """Queue the parts of a batch in its place."""
        parts = list(parts)
        self.resolved(batch)
        for part in parts:
            self.pend(part.queue, part)
            batch.queue.put_back(part)
        # Parts are as old as the batch, so the oldest batches stay first.
        self.pending = dict.fromkeys(sorted(self.pending, key=lambda b: b.order))

    def make_ready(self, topic: TopicQueues) -> None:
        """From now on records of the topic need not ask for its metadata, until these change."""
        self.ready[topic.name] = topic
        if topic.generation != self._cluster.generation:  # as `metadata_changed` may have been called before
            self.ready.pop(topic.name, None)

    def metadata_changed(self) -> None:
        """Records of each topic are to look at the metadata again. Needs no lock."""
        self.ready.clear()

    def _queue(self, topic: TopicQueues, partition: int | None, key: Any) -> PartitionQueue:
        if partition is None:
            if not self.hashes:
                partition = self._partitioner(key, topic.numbers, topic.available)  # type: ignore[misc]
            elif key is None and topic.sticky is None:
                topic.choose_sticky()
        found: PartitionQueue | None = self.choose(topic, partition, key)
        if found is None:
            raise EncodeError(f"topic {topic.name!r} has no partition {partition!r}", path="partition")
        return found
