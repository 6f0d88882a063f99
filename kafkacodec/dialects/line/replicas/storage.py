"""The interface of the storage of a broker whose partitions have replicas."""

from __future__ import annotations

from typing import Protocol

from kafkacodec.dialects.line.storage import Storage

__all__ = ["ReplicaStorage"]


class ReplicaStorage(Storage, Protocol):
    """A storage whose records are batches of Kafka with leader epochs.

    Attributes:
        group_changes (int): the number of changes of groups and offsets.
    """

    group_changes: int

    @property
    def has_kept_groups(self) -> bool:
        """Whether the disk has the current groups and offsets."""

    def stored_end(self, topic: str, partition: int) -> int:
        """Return the offset after the last record in the log."""

    def flushed_end(self, topic: str, partition: int) -> int:
        """Return the offset after the last record on the disk."""

    def start(self, topic: str, partition: int) -> int:
        """Return the first offset of the log."""

    def epoch_end(self, topic: str, partition: int, epoch: int) -> tuple[int, int]:
        """Return the newest leader epoch not above `epoch`, and its end."""

    def batches(self, topic: str, partition: int, offset: int, most: int) -> tuple[bytes, int]:
        """Batches of one leader epoch, from the one that has an offset on, and the epoch; at least one batch."""
