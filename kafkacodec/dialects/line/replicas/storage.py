"""The interface of the storage of a broker whose partitions have replicas."""

from __future__ import annotations

from typing import Protocol

from kafkacodec.dialects.line.storage import Storage

__all__ = ["ReplicaStorage"]


class ReplicaStorage(Storage, Protocol):
    """A storage whose records are batches of Kafka with leader epochs.

    Attributes:
        group_changes (int): how often groups and offsets have changed.
    """

    group_changes: int

    @property
    def has_kept_groups(self) -> bool:
        """Whether groups and offsets are on the disk as they are."""

    def stored_end(self, topic: str, partition: int) -> int:
        """The offset after the last record that is in the log."""

    def flushed_end(self, topic: str, partition: int) -> int:
        """The offset after the last record that is on the disk."""

    def start(self, topic: str, partition: int) -> int:
        """The first offset that is kept."""

    def epoch_end(self, topic: str, partition: int, epoch: int) -> tuple[int, int]:
        """The newest leader epoch not above `epoch`, and where it ends."""

    def batches(self, topic: str, partition: int, offset: int, most: int) -> tuple[bytes, int]:
        """Batches of one leader epoch, from the one that has an offset on, and the epoch; at least one batch."""
