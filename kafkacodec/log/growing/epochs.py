"""The leader epochs of a growing log, and the file that it keeps them in."""

from __future__ import annotations

import os
from contextlib import suppress

from kafkacodec.errors import KafkaCodecError
from kafkacodec.log.formats import layout
from kafkacodec.log.formats.checkpoints import LeaderEpoch, encode_leader_epochs
from kafkacodec.log.growing.disk import Disk, OpenFile
from kafkacodec.log.opening.checkpoints import read_leader_epochs

__all__ = ["LogEpochs"]

NONE = -1


class LogEpochs:
    """The leader epochs of one log (`org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache`).

    It writes every change at once.

    Args:
        directory: the partition's.
        disk: writes the file.

    Attributes:
        entries (list[LeaderEpoch]): in order.
        changes (int): the number of changes.
    """

    def __init__(self, directory: str, disk: Disk) -> None:
        self._path, self._disk = os.path.join(directory, layout.LEADER_EPOCH_CHECKPOINT), disk
        self.changes = 0
        self.entries: list[LeaderEpoch] = []
        with suppress(OSError, KafkaCodecError):  # made again from the batches
            self.entries = read_leader_epochs(self._path)

    @property
    def latest(self) -> int:
        """The newest epoch, -1 for none."""
        return self.entries[-1].epoch if self.entries else NONE

    def assign(self, epoch: int, start_offset: int) -> None:
        """Batches from an offset on have an epoch, if it is a new one. Raises OSError; nothing changes then."""
        if epoch <= self.latest:
            return
        kept = [entry for entry in self.entries if entry.start_offset < start_offset]
        self._write([*kept, LeaderEpoch(epoch, start_offset)])

    def end(self, epoch: int, end_offset: int) -> tuple[int, int]:
        """Return the newest epoch not above `epoch`, and its end; -1 and -1 if unknown.

        Args:
            epoch: an epoch of a replica or a consumer.
            end_offset: that of the log.
        """
        if epoch == NONE or epoch > self.latest:
            return NONE, NONE
        if epoch == self.latest:
            return epoch, end_offset
        above = next(entry for entry in self.entries if entry.epoch > epoch)
        below = [entry.epoch for entry in self.entries if entry.epoch <= epoch]
        return (below[-1] if below else epoch), above.start_offset

    def at(self, offset: int) -> int:
        """The epoch of an offset, -1 if unknown."""
        return next((entry.epoch for entry in reversed(self.entries) if entry.start_offset <= offset), NONE)

    def truncate(self, end_offset: int) -> None:
        """Cut the epochs at the log's new end."""
        kept = [entry for entry in self.entries if entry.start_offset < end_offset]
        if len(kept) < len(self.entries):
            self._write(kept)

    def begin(self, start_offset: int) -> None:
        """Cut the epochs at the log's new start."""
        before = [entry for entry in self.entries if entry.start_offset <= start_offset]
        if before and (len(before) > 1 or before[0].start_offset < start_offset):
            first = LeaderEpoch(before[-1].epoch, start_offset)
            self._write([first, *self.entries[len(before) :]])

    def files(self) -> list[OpenFile]:
        """The open file, if there is one."""
        return [self._disk.open(self._path)] if self.entries else []

    def _write(self, entries: list[LeaderEpoch]) -> None:
        self._disk.replace(self._path, encode_leader_epochs(entries), sync=False)
        self.entries = entries
        self.changes += 1
