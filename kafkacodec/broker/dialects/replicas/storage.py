"""The storage of a broker of the line protocol with replicas."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from kafkacodec.broker.dialects.line_storage import TopicStorage
from kafkacodec.dialects.line.replicas.roles import NO_EPOCH
from kafkacodec.log.growing._batches import batch_heads
from kafkacodec.records.headers import scan

if TYPE_CHECKING:
    from kafkacodec.broker.dialects.inside import Inside
    from kafkacodec.broker.topics.partition import Partition
    from kafkacodec.dialects.line.storage import Rows

__all__ = ["LogView", "ReplicaTopicStorage"]

_NO_LOG = (NO_EPOCH, 0)


class ReplicaTopicStorage(TopicStorage):
    """A `kafkacodec.dialects.line.replicas.storage.ReplicaStorage` in the topics of a broker.

    Attributes:
        group_changes (int): the number of changes of groups and offsets.
    """

    def __init__(self, inside: Inside) -> None:
        super().__init__(inside)
        self.group_changes = 0

    @property
    def has_kept_groups(self) -> bool:
        """Whether the disk has the current groups and offsets."""
        return self.files.has_saved("groups.json") and self.files.has_saved("offsets.json")

    def save_groups(self, groups: Rows) -> None:
        """Set the groups, and schedule the write of ``groups.json``."""
        super().save_groups(groups)
        self.group_changes += 1

    def save_offsets(self, offsets: Rows) -> None:
        """Set the offsets, and schedule the write of ``offsets.json`` after all records are on disk."""
        super().save_offsets(offsets)
        self.group_changes += 1

    def stored_end(self, topic: str, partition: int) -> int:
        """Return the offset after the last record in the log."""
        found = self._inside.topics.partition(topic, partition)
        return 0 if found is None else found.high_watermark

    def flushed_end(self, topic: str, partition: int) -> int:
        """Return the offset after the last record on the disk."""
        found = self._inside.topics.partition(topic, partition)
        return 0 if found is None else found.log.recovery_point

    def start(self, topic: str, partition: int) -> int:
        """Return the first offset of the log."""
        found = self._inside.topics.partition(topic, partition)
        return 0 if found is None else found.start_offset

    def epoch_end(self, topic: str, partition: int, epoch: int) -> tuple[int, int]:
        """Return the newest leader epoch not above `epoch`, and its end; the log's if all are older."""
        found = self._inside.topics.partition(topic, partition)
        if found is None:
            return _NO_LOG
        latest = found.log.leader_epoch
        return (latest, found.log.end_offset) if epoch >= latest else found.log.epoch_end(epoch)

    def batches(self, topic: str, partition: int, offset: int, most: int) -> tuple[bytes, int]:
        """Return batches of one leader epoch, from the one with an offset on, and the epoch; at least one batch.

        Raises:
            OSError: there is none, or it cannot be read.
        """
        data = bytes(self._open(topic, partition).read(offset, most, at_least_one=True, committed=False).records)
        heads = batch_heads(data, 0, len(data), len(data))
        if not heads:
            raise OSError(errno.EIO, f"no batch of {topic}-{partition} has offset {offset}")
        epoch = heads[0].leader_epoch
        same = [head for head in heads if head.leader_epoch == epoch]
        return data[: same[-1].position + same[-1].size], epoch

    def make(self, topic: str, count: int) -> None:
        """Create a topic of another broker, if it is missing. Raises BrokerError."""
        if self._inside.catalog.topic(topic) is None:
            self._inside.create(topic, count)

    def lead(self, topic: str, partition: int, epoch: int) -> None:
        """Set the leader epoch of the next records."""
        self._inside.topics.lead(topic, partition, epoch)

    def copy(self, topic: str, partition: int, records: bytes, epoch: int, start: int) -> None:
        """Append batches of another replica unchanged, and let the log start at the other's start.

        Raises:
            DecodeError, EncodeError: they are damaged, or do not follow the log.
            OSError: from the file system.
        """
        scan(records, columns=("last_offset",))
        self._open(topic, partition).copy(records, epoch, start)

    def truncate(self, topic: str, partition: int, offset: int) -> None:
        """Remove records that another replica lacks. Raises OSError."""
        self._open(topic, partition).truncate(offset)

    def _open(self, topic: str, partition: int) -> Partition:
        found = self._inside.topics.partition(topic, partition)
        if found is None:
            raise OSError(errno.EIO, f"partition {topic}-{partition} cannot be opened", self._inside.path)
        return found


class LogView:
    """A `kafkacodec.dialects.line.replicas.following.ReplicaLog` of a partition."""

    def __init__(self, storage: ReplicaTopicStorage, topic: str, partition: int) -> None:
        self._storage, self._name = storage, (topic, partition)

    @property
    def end(self) -> int:
        """Return the offset of the next record."""
        return self._storage.stored_end(*self._name)

    @property
    def leader_epoch(self) -> int:
        """Return the newest leader epoch, -1 for none."""
        return self.epoch_end((1 << 63) - 1)[0]

    def epoch_end(self, epoch: int) -> tuple[int, int]:
        """Return the newest epoch not above `epoch`, and its end."""
        return self._storage.epoch_end(*self._name, epoch)
