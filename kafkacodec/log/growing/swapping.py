"""New files of a segment in place of old ones, so that a crash at any moment leaves one or the other.

They are written as ``.cleaned``, renamed to ``.swap`` when all are on the disk, and then replace the old ones. Opening
the log finishes this if necessary
(`org.apache.kafka.storage.internals.log.LogLoader.removeTempFilesAndCollectSwapFiles`).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress

from kafkacodec.log.files.access import MappedFile
from kafkacodec.log.formats import layout
from kafkacodec.log.formats.indexes import encode_transaction_index
from kafkacodec.log.growing._batches import batch_heads
from kafkacodec.log.growing.aborted import Aborted
from kafkacodec.log.growing.disk import Disk
from kafkacodec.log.growing.indexes import GrowingIndexes
from kafkacodec.log.growing.segment import SUFFIXES

__all__ = ["Replacement", "finish_swaps"]

_CLEANED, _SWAP = ".cleaned", ".swap"
_AT_ONCE = 1 << 20
_HEADS_AT_ONCE = 4096


class Replacement:
    """The files of a new segment, under temporary names.

    Args:
        directory: the partition's.
        base_offset: the offset in its name.
        interval: `index.interval.bytes`.
        disk: writes the files.
    """

    def __init__(self, directory: str, base_offset: int, interval: int, disk: Disk) -> None:
        self.path = os.path.join(directory, layout.file_name(base_offset, layout.LOG_SUFFIX))
        self._disk = disk
        self._indexes = GrowingIndexes(self.path, base_offset, interval, disk)
        self._file = disk.open(self.path + _CLEANED)
        disk.truncate(self._file, 0)
        self._size, self._waiting, self._names = 0, bytearray(), [self.path]

    def add(self, batch: bytes | bytearray) -> None:
        """Append a batch. Raises OSError."""
        for head in batch_heads(batch, 0, len(batch), 1):
            self._indexes.add((head.size,), (head.last_offset,), (head.max_timestamp,))
        self._waiting += batch
        if len(self._waiting) >= _AT_ONCE:
            self._write()

    def finish(self, aborted: Sequence[Aborted]) -> None:
        """Write the indexes and wait for the disk. Raises OSError."""
        self._write()
        self._indexes.finish()
        offsets, times = self._indexes.encoded()
        files = [(layout.OFFSET_INDEX_SUFFIX, offsets), (layout.TIME_INDEX_SUFFIX, times)]
        if aborted:
            rows = encode_transaction_index((0, *entry) for entry in aborted)
            files.append((layout.TRANSACTION_INDEX_SUFFIX, rows))
        for suffix, data in files:
            path = layout.sibling(self.path, suffix)
            file = self._disk.open(path + _CLEANED)
            self._disk.truncate(file, 0)
            self._disk.write(file, data, 0)
            self._disk.sync(file)
            self._names.append(path)
        self._disk.sync(self._file)

    def commit(self) -> None:
        """Make the new files the segment. Raises OSError; if not all were renamed, the old files stay the segment."""
        for path in self._names:
            self._disk.rename(path + _CLEANED, path + _SWAP)
        self._disk.sync_names(os.path.dirname(self.path))

    def publish(self) -> None:
        """Give the files their names and remove the old ones. Raises OSError."""
        for path in self._names:  # the segment first: until it has its name, all others there are old
            self._disk.rename(path + _SWAP, path)

    def discard(self) -> None:
        """Remove the written files; opening the log does it if this fails."""
        with suppress(OSError):
            for suffix in SUFFIXES:
                self._disk.remove(layout.sibling(self.path, suffix) + _CLEANED)

    def _write(self) -> None:
        if self._waiting:
            self._disk.write(self._file, self._waiting, self._size)
            self._size += len(self._waiting)
            self._waiting = bytearray()


def finish_swaps(directory: str, disk: Disk) -> None:
    """Finish swaps after a crash: remove incomplete new files, and replace old files with complete ones."""
    for name in sorted(n for n in os.listdir(directory) if n.endswith(_CLEANED)):
        stem = os.path.splitext(os.path.join(directory, name.removesuffix(_CLEANED)))[0]
        for suffix in SUFFIXES:
            for ending in (_CLEANED, _SWAP):
                disk.remove(stem + suffix + ending)
    for name in sorted(n for n in os.listdir(directory) if n.endswith(layout.LOG_SUFFIX + _SWAP)):
        _swap_in(directory, os.path.join(directory, name.removesuffix(_SWAP)), disk)
    for name in sorted(n for n in os.listdir(directory) if n.endswith(_SWAP)):
        disk.rename(os.path.join(directory, name), os.path.join(directory, name.removesuffix(_SWAP)))


def _swap_in(directory: str, path: str, disk: Disk) -> None:
    """Replace segments with a complete new one of their offsets."""
    base = layout.parse_file_name(os.path.basename(path))
    end = _end_offset(path + _SWAP)
    for name in sorted(os.listdir(directory), reverse=True):
        parts = layout.parse_file_name(name)
        inside = base is not None and parts is not None and base.base_offset <= parts.base_offset < end
        if inside and parts is not None and parts.suffix in SUFFIXES:
            disk.remove(os.path.join(directory, name))
    for suffix in SUFFIXES:
        new = layout.sibling(path, suffix) + _SWAP
        if os.path.exists(new):
            disk.rename(new, layout.sibling(path, suffix))


def _end_offset(path: str) -> int:
    """The offset after the last batch of a file; 0 without one."""
    end = position = 0
    with MappedFile(path) as file:
        while heads := batch_heads(file.data, position, file.size, _HEADS_AT_ONCE):
            end, position = heads[-1].last_offset + 1, heads[-1].position + heads[-1].size
    return end
