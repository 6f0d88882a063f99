"""The unflushed part of a growing log."""

from __future__ import annotations

from kafkacodec.datatypes import NamedTuple
from kafkacodec.log.growing.disk import Disk, OpenFile
from kafkacodec.log.growing.epochs import LogEpochs
from kafkacodec.log.growing.segment import GrowingSegment

__all__ = ["Flushing", "Unflushed"]


class Flushing(NamedTuple):
    """Files to sync, so that the offsets of a log before `end_offset` are on the disk.

    `sync` may run in another thread, while the log is appended to.
    """

    path: str
    end_offset: int
    files: list[OpenFile]
    disk: Disk
    sealed: list[GrowingSegment]
    epochs: int
    names: int

    def sync(self) -> None:
        """Sync them. Raises OSError: the log must then be opened again, as after a crash."""
        for file in self.files:
            self.disk.sync(file)
        if self.names:
            self.disk.sync_names(self.path)


class Unflushed:
    """The files of one log with changes since their last sync.

    Args:
        path: the partition's directory.
        disk: syncs them.
        epochs: the log's.
    """

    def __init__(self, path: str, disk: Disk, epochs: LogEpochs) -> None:
        self._path, self._disk, self._epochs = path, disk, epochs
        self._segments: list[GrowingSegment] = []
        self._synced_epochs = 0
        self._names = 1

    @property
    def has_sealed(self) -> bool:
        """Whether there is a complete segment."""
        return len(self._segments) > 1

    def add(self, segment: GrowingSegment) -> None:
        """Add a segment that will change, or may have; the last one is active."""
        if segment not in self._segments:
            self._segments.append(segment)
            self._names += 1

    def discard(self, segment: GrowingSegment) -> None:
        """It is no longer part of the log."""
        if segment in self._segments:
            self._segments.remove(segment)

    def begin(self, end_offset: int) -> Flushing:
        """Return the files to sync for the log up to here."""
        *sealed, active = self._segments
        files = [active.file]
        for segment in sealed:
            files += segment.files()
        files += active.aborted.files()
        changed = self._epochs.changes > self._synced_epochs
        if changed:
            files += self._epochs.files()
        names = self._names + (1 if changed else 0)
        return Flushing(self._path, end_offset, files, self._disk, sealed, self._epochs.changes, names)

    def end(self, flushing: Flushing) -> None:
        """It is on the disk."""
        self._segments = [segment for segment in self._segments if segment not in flushing.sealed]
        self._synced_epochs = flushing.epochs
        self._names = max(self._names - flushing.names, 0)
