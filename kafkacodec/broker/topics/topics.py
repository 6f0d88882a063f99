"""The topics of a broker by name and id, and the store that effects append to."""

from __future__ import annotations

import errno
import logging
import os
import shutil
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from kafkacodec.broker.topics.batches import Produced
from kafkacodec.broker.topics.compaction import Compaction
from kafkacodec.broker.topics.configs import TOPIC_CONFIGS, TopicConfig
from kafkacodec.broker.topics.flushes import RolledFlushes, TimedFlushes
from kafkacodec.broker.topics.metadata_snapshots import MetadataSnapshots
from kafkacodec.broker.topics.partition import Appended, Cut, EndMarker, Flush, Partition, Synced
from kafkacodec.datatypes import dataclass, field
from kafkacodec.errors import KAFKA_STORAGE_ERROR, NONE, UNKNOWN_TOPIC_OR_PARTITION, DecodeError
from kafkacodec.internal_records import CLUSTER_METADATA
from kafkacodec.log.growing.directory import OtherTopic
from kafkacodec.net.service import NOTHING, Effect
from kafkacodec.records.encode import encode
from kafkacodec.records.record import Record

if TYPE_CHECKING:
    from kafkacodec.broker.topics.compaction import Background
    from kafkacodec.broker.topics.waiting import Waiting
    from kafkacodec.log.growing.directory import GrowingDirectory
    from kafkacodec.log.growing.log import PartitionLog

__all__ = ["Topics"]

_log = logging.getLogger("kafkacodec.broker")
_MOST_NAMES: Final = 5
_METADATA: Final = (CLUSTER_METADATA, 0)


@dataclass
class _Topic:
    """A topic's partitions by number."""

    name: str
    id: uuid.UUID
    values: dict[str, str] = field(default_factory=dict)
    partitions: dict[int, Partition] = field(default_factory=dict)


class Running(Protocol):
    """The broker's configuration as far as it concerns all logs; it may change (`kafkacodec.broker.options`)."""

    @property
    def topic_defaults(self) -> Mapping[str, str]:
        """Configurations of topics that this broker has other defaults for, as text."""

    @property
    def clean_ms(self) -> int:
        """How often is looked for a log to clean."""

    @property
    def producer_expiration_ms(self) -> int:
        """Producers are forgotten when they have not written for this long."""


class Topics:
    """The logs of all topics.

    Args:
        directory: the data directory.
        running: the broker's defaults for topics, and how often is looked for a log to clean.
        waiting: told of every append.
        check_ms: how often retention is looked at.
        background: cleans compacted topics.
        snapshot_bytes: how many bytes of metadata there may be in the log without a snapshot.

    Attributes:
        frozen: whether the directory is read-only: it removes, cleans and flushes nothing.
        flushes: flushes logs with ``flush.ms``, once its `flush` is set.
        is_kept: whether the directory is used again, so that it flushes rolled segments.
    """

    def __init__(
        self, directory: GrowingDirectory, running: Running, waiting: Waiting, check_ms: float,
        background: Background, snapshot_bytes: int,
    ) -> None:  # fmt: skip
        self._directory, self._running, self._waiting = directory, running, waiting
        self._topics: dict[str, _Topic] = {}
        self._partitions: dict[tuple[str, int], Partition] = {}
        self._unopened: dict[tuple[str, int], int] = {}  # the disk refuses them: their leader epochs
        self._check_ms = check_ms
        self._next_check: float | None = None
        self.frozen = False
        self._background, self._snapshot_bytes = background, snapshot_bytes
        self._snapshots: MetadataSnapshots | None = None
        self._compaction = Compaction(directory, self._partitions, background, running.clean_ms)
        self._rolled = RolledFlushes(directory, self._partitions, background)
        self.flushes = TimedFlushes(waiting.alarm)
        self.is_kept = True

    # Questions

    @property
    def path(self) -> str:
        """The data directory."""
        return os.path.abspath(self._directory.path)

    def room(self) -> tuple[int, int]:
        """Return the size of the file system, and its free space, in bytes."""
        usage = shutil.disk_usage(self.path)
        return usage.total, usage.free

    def partition(self, name: str, number: int) -> Partition | None:
        """A partition, if it is there. One that could not be opened is tried again."""
        found = self._partitions.get((name, number))
        if found is None and (name, number) in self._unopened and not self.frozen:
            with suppress(OSError):
                topic = self._topics[name]
                found = self._open(topic, number, self._unopened[name, number], self._config_of(topic))
        return found

    def set_offline(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Take partitions of a read-only directory, which cannot be read, as refused by the disk."""
        self._unopened.update(dict.fromkeys(partitions, 0))

    def missing(self, name: str, number: int) -> int:
        """Return the error for a missing partition: unknown, or refused by the disk."""
        known = (name, number) in self._unopened
        return int(KAFKA_STORAGE_ERROR if known else UNKNOWN_TOPIC_OR_PARTITION)

    @staticmethod
    def unreadable(name: str, number: int, reason: Exception) -> int:
        """Log why a partition cannot be read, and return the error for it."""
        _log.error("%s-%d cannot be read: %s", name, number, reason)
        return int(KAFKA_STORAGE_ERROR)

    def metadata_end(self) -> int:
        """The end of the metadata log."""
        return self._partitions[_METADATA].high_watermark

    # Changes

    def open(
        self, name: str, topic_id: uuid.UUID, numbers: Iterable[tuple[int, int]], values: Mapping[str, str]
    ) -> None:
        """Open the logs of a topic, or make them.

        Args:
            name, topic_id: of the topic.
            numbers: numbers and leader epochs of partitions.
            values: the topic's configuration, as it was set.

        Raises:
            OSError: a log cannot be opened. `partition` tries again.
        """
        topic = self._topics.setdefault(name, _Topic(name, topic_id, dict(values)))
        config = self._config_of(topic)
        failed: OSError | None = None
        for number, epoch in numbers:
            if number not in topic.partitions:
                try:
                    self._open(topic, number, epoch, config)
                except OSError as error:
                    failed = error
        if failed is not None:
            raise failed

    def _open(self, topic: _Topic, number: int, epoch: int, config: TopicConfig) -> Partition:
        self._unopened[topic.name, number] = epoch
        log = self._log_of(topic, number, epoch, config)
        del self._unopened[topic.name, number]
        partition = Partition(topic.name, topic.id, number, log, epoch, config)
        self._partitions[topic.name, number] = topic.partitions[number] = partition
        self.flushes.watch(partition)
        return partition

    def _log_of(self, topic: _Topic, number: int, epoch: int, config: TopicConfig) -> PartitionLog:
        """The log of a partition, opened or made; the first segment heeds the configuration that it has then."""
        try:
            log = self._directory.open(topic.name, number, config.of_log(), topic_id=topic.id)
        except DecodeError as error:
            way_out = "serve it read-only, or a copy without what is damaged, which kafkacodec recover makes"
            raise OSError(errno.EIO, f"{error}; {way_out}") from error
        except OtherTopic as error:  # of a topic of that name that was deleted when the disk did not rename it
            aside = self._directory.set_aside(topic.name, number)
            _log.warning("%s: set aside as %s, whose records are not served", error, aside)
            log = self._directory.open(topic.name, number, config.of_log(), topic_id=topic.id)
        log.begin_epoch(epoch)
        return log

    def _change(self, metadata: Partition, changes: Any) -> Appended:
        """Append records to the metadata log, once the logs of the partitions that they make are there.

        On a full disk, metadata of a few bytes often finds room where a directory does not: the topic would be there,
        and refuse all records.

        Raises:
            OSError: something has no room. Nothing was appended, and no new directory is left.
        """
        made: list[tuple[str, int]] = []
        configs: dict[uuid.UUID, TopicConfig] = {}
        try:
            for new in changes.makes:
                topic = self._topics.get(new.topic)
                if topic is None or topic.id != new.topic_id:
                    topic = _Topic(new.topic, new.topic_id, dict(new.configs))
                if not self._directory.has(topic.name, new.number):
                    made.append((topic.name, new.number))
                config = configs[topic.id] = configs.get(topic.id) or self._config_of(topic)
                self._log_of(topic, new.number, new.leader_epoch, config)
            return metadata.append(bytearray(_batch(changes)))
        except OSError:
            for key in made:
                self._directory.discard(*key)
            raise

    def is_of_kafka07(self, name: str) -> bool:
        """Whether the directory had a topic of Kafka 0.6 or 0.7 of this name at the start."""
        return name in self._directory.topics07

    def tell_unserved(self, is_elsewhere: Callable[[str], bool]) -> None:
        """Warn of partitions in the directory that belong to no topic; `is_elsewhere` tells those of dialects."""
        old = sorted(name for name in self._directory.topics07 if not is_elsewhere(name))
        if old:
            _log.warning("%s: not served, since topics of Kafka 0.7 need a kafka07:// listener", _listed(old))
        names = sorted({name for name, _ in self._directory.unopened if not is_elsewhere(name)})
        if names:
            _log.warning(
                "%s: not served, since the cluster's metadata in %s has no such topic; a read-only broker serves them, "
                "and new topics of these names set the directories aside",
                _listed(names),
                self._directory.path,
            )

    def open_metadata(self, topic_id: uuid.UUID) -> Partition:
        """Open the metadata log."""
        flush = self._running.topic_defaults.get("flush.messages", TOPIC_CONFIGS["flush.messages"].default)
        config = TopicConfig({"cleanup.policy": "", "retention.ms": "-1", "flush.messages": flush}, {})
        name, number = _METADATA
        log = self._directory.open(name, number, config.of_log(), topic_id=topic_id)
        epoch = max(log.leader_epoch, 1)
        log.begin_epoch(epoch)
        partition = self._partitions[_METADATA] = Partition(name, topic_id, number, log, epoch, config)
        self._snapshots = MetadataSnapshots(partition, self._background, self._snapshot_bytes)
        return partition

    def lead(self, name: str, number: int, epoch: int) -> bool:
        """Start a newer leader epoch, and wake requests that wait for the partition; whether it is newer."""
        partition = self._partitions.get((name, number))
        if (name, number) in self._unopened:
            self._unopened[name, number] = epoch
        if partition is None or epoch <= partition.leader_epoch:
            return False
        partition.leader_epoch = epoch
        try:
            partition.log.begin_epoch(epoch)
        except OSError:
            _log.exception("the leader epoch of %s-%d cannot be stored", name, number)
        self._waiting.touch((name, number))
        return True

    def configure(self, name: str, key: str, value: str | None) -> None:
        """Take a configuration of a topic, which applies at once; None takes it away."""
        topic = self._topics.get(name)
        if topic is None:
            return
        if value is None:
            topic.values.pop(key, None)
        else:
            topic.values[key] = value
        self._configured(topic)

    def configure_all(self, running: Running) -> None:
        """Take the broker's configuration, which applies to all topics at once."""
        self._running = running
        self._compaction.set_interval(running.clean_ms)
        self._waiting.alarm.ring()
        for topic in self._topics.values():
            self._configured(topic)

    def _config_of(self, topic: _Topic) -> TopicConfig:
        return TopicConfig(topic.values, self._running.topic_defaults, self._running.producer_expiration_ms)

    def _configured(self, topic: _Topic) -> None:
        config = self._config_of(topic)
        for partition in topic.partitions.values():
            partition.config = config
            partition.log.config = config.of_log()
            self.flushes.watch(partition)

    def delete(self, topic_id: uuid.UUID) -> str | None:
        """Delete a topic: its directories are renamed at once, and removed later. Returns its name."""
        name = next((name for name, topic in self._topics.items() if topic.id == topic_id), None)
        if name is None:
            return None
        topic = self._topics.pop(name)
        self._unopened = {key: epoch for key, epoch in self._unopened.items() if key[0] != name}
        for number in topic.partitions:
            self.flushes.forget(self._partitions.pop((name, number)))
            self._waiting.touch((name, number))
        delay_ms = TopicConfig({}, self._running.topic_defaults).file_delete_delay_ms  # the topic's own is for segments
        try:
            self._directory.delete(name, topic.partitions, delay_ms)
        except OSError as error:
            _log.error("the files of topic %s cannot be deleted: %s", name, error)
        return name

    # Of the host

    def append(self, log: tuple[str, int], data: Any) -> Appended:
        """Append to a partition: a client's batch, keys and values, or unchanged batches; or cut it off.

        Raises:
            KeyError: there is no such partition.
            OSError: the write failed; nothing was appended.
        """
        partition = self._partitions[log]
        if type(data) is Produced:
            found = partition.produce(data)
        elif isinstance(data, Cut):
            partition.delete_before(data.before)
            return Appended(NONE)
        elif isinstance(data, Synced):
            return Appended(NONE)
        elif isinstance(data, EndMarker):
            found = partition.end(data)
        elif isinstance(data, (bytes, bytearray, memoryview)):
            found = partition.append(data if isinstance(data, bytearray) else bytearray(data))
        elif log == _METADATA:
            found = self._change(partition, data)
        else:
            found = partition.append(bytearray(_batch(data)))
        if log == _METADATA and partition.must_flush:  # at once: records about a new topic follow
            flush = partition.flushing()
            flush.sync()
            partition.flushed(flush)
        if self.is_kept and partition.log.has_sealed_unflushed:
            self._rolled.appended(partition)
        self._waiting.touch(log)
        return found

    def must_flush(self, log: tuple[str, int]) -> bool:
        """Whether appends to a partition count only when they are on the disk."""
        partition = self._partitions.get(log)
        return partition is not None and partition.must_flush

    def flushing(self, log: tuple[str, int]) -> Flush:
        """Return the work that makes a partition durable. Raises KeyError, OSError."""
        return self._partitions[log].flushing()

    def flushed(self, log: tuple[str, int], flushing: Flush) -> None:
        """Note that it is durable."""
        flushing.partition.flushed(flushing)

    def due(self, now: float) -> Effect:
        """Do due retention, compaction and flushes."""
        if self.frozen:
            return NOTHING
        if self._next_check is None:
            self._next_check = now + self._check_ms
        if now >= self._next_check:
            self._next_check = now + self._check_ms
            self._retain(self._directory.now())
        self._compaction.due(now)
        self.flushes.due(now)
        return NOTHING

    def stop(self) -> None:
        """End the running compaction soon."""
        self._compaction.stop()

    def _retain(self, now: int) -> None:
        """Set expired segments aside, and remove those set aside long enough ago.

        Each step is tried, whatever the others meet: on a full disk only some of them need room, others make it.
        """
        steps: list[Callable[[], None]] = [] if self._snapshots is None else [self._snapshots.due]
        steps += [partial(self._retain_one, partition, now) for partition in self._partitions.values()]
        steps += [partial(self._directory.purge, now), self._directory.write_checkpoints]
        for step in steps:
            try:
                step()
            except OSError as error:
                _log.error("old segments cannot be removed: %s", error)

    def _retain_one(self, partition: Partition, now: int) -> None:
        if self._compaction.is_cleaning(partition):
            return
        before = partition.start_offset
        try:
            partition.log.retention(now)
        finally:
            partition.expire(now)
            if partition.start_offset != before:
                self._waiting.touch(partition.key)

    def next_deadline(self) -> float | None:
        """Return when `due` has something to do."""
        if self.frozen:
            return None
        if self._next_check is None:
            return 0.0  # a first time
        found = (self._next_check, self._compaction.next_deadline(), self.flushes.next_deadline())
        return min(deadline for deadline in found if deadline is not None)


def _listed(names: Sequence[str]) -> str:
    """The first names, and how many others there are."""
    return ", ".join(names[:_MOST_NAMES]) + (f" and {len(names) - _MOST_NAMES} more" * (len(names) > _MOST_NAMES))


def _batch(data: Any) -> bytes:
    """Return one batch of keys and values with one timestamp; a producer's batch belongs to its transaction."""
    rows = [Record(i, data.timestamp, 0, key, value, ()) for i, (key, value) in enumerate(data.rows)]
    size = sum(len(part) for row in data.rows for part in row if part is not None)
    producer = getattr(data, "producer_id", -1)
    return encode(
        rows, batch_bytes=16_384 + 2 * size + 64 * len(rows), producer_id=producer,
        producer_epoch=getattr(data, "producer_epoch", -1), is_transactional=producer >= 0,
    )  # fmt: skip
