"""One segment of a growing log: batches are appended in place and read at the same time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from kafkacodec.datatypes import dataclass
from kafkacodec.errors import CorruptRecord
from kafkacodec.log.files._mapping import Mapping
from kafkacodec.log.formats import layout
from kafkacodec.log.growing._batches import BatchHead, batch_heads, find_batch
from kafkacodec.log.growing.aborted import AbortedTransactions
from kafkacodec.log.growing.appended_file import AppendedFile
from kafkacodec.log.growing.disk import Disk, OpenFile
from kafkacodec.log.growing.indexes import GrowingIndexes
from kafkacodec.log.writing.index_entries import NO_TIMESTAMP

__all__ = ["GrowingSegment", "Range"]

_HEADS_AT_ONCE = 4096
SUFFIXES = (
    layout.LOG_SUFFIX,
    layout.OFFSET_INDEX_SUFFIX,
    layout.TIME_INDEX_SUFFIX,
    layout.TRANSACTION_INDEX_SUFFIX,
)


@dataclass(frozen=True, slots=True)
class Range:
    """Batches in a file, which stays open while there is a reference.

    Attributes:
        file (OpenFile | None): the open segment; `file.fileno()` is for `os.sendfile`. None: there are no bytes.
        position, count (int): of the bytes. The last batch may be partial, as in a broker's answers.
        base_offset (int): the offset in the segment's name, -1 for none.
    """

    file: OpenFile | None
    position: int
    count: int
    base_offset: int
    mapped: Callable[[], Mapping] | None

    def view(self) -> memoryview:
        """Return the bytes without a copy: a view of the mapped file. A later truncation turns bytes into zeros."""
        if not self.count or self.mapped is None:
            return memoryview(b"")
        return memoryview(self.mapped())[self.position : self.position + self.count]

    def read(self) -> bytes:
        """A copy of the bytes."""
        if self.file is None:
            return b""
        return os.pread(self.file.fileno(), self.count, self.position)


class GrowingSegment(AppendedFile):
    """A segment of a partition's directory.

    Args:
        directory: the partition's.
        base_offset: the offset in its name.
        interval: `index.interval.bytes`.
        disk: changes the files.
        created: the time of its start, ms since 1970.

    Attributes:
        path (str): the ``.log`` file.
        base_offset (int): the offset in its name.
        size (int): the bytes of its batches.
        created (int): as given.
    """

    def __init__(self, directory: str, base_offset: int, interval: int, disk: Disk, created: int) -> None:
        super().__init__(os.path.join(directory, layout.file_name(base_offset, layout.LOG_SUFFIX)), disk)
        self.base_offset, self.created = base_offset, created
        self._first_timestamp: int | None = None
        self._loaded = False
        self._indexes = GrowingIndexes(self.path, base_offset, interval, disk)
        self.aborted = AbortedTransactions(self.path, disk)

    @classmethod
    def create(cls, directory: str, base_offset: int, interval: int, disk: Disk, created: int) -> GrowingSegment:
        """Create the files of a new segment.

        The ``.log`` file comes last: an empty one, left behind, would hide the records of its offsets in the segment
        before, where they are written if the next batch needs no new segment.

        Raises:
            OSError: there is no such segment.
        """
        segment = cls(directory, base_offset, interval, disk, created)
        segment._loaded = True
        try:
            segment._indexes.write()
            segment.size = os.fstat(segment.file.fileno()).st_size
            if segment.size:
                segment.cut(0)
        except BaseException:
            segment._remove_indexes()
            raise
        return segment

    @property
    def indexes(self) -> GrowingIndexes:
        """Its indexes; read, or made again, at first use."""
        if not self._loaded and not self.load_indexes():
            self.index_again(0)
            self._indexes.finish()
        return self._indexes

    def load_indexes(self) -> bool:
        """Read the indexes; False if one is missing or damaged."""
        self._loaded = self._loaded or self._indexes.load()
        return self._loaded

    @property
    def max_timestamp(self) -> int:
        """The largest timestamp in ms, -1 for none."""
        return self.indexes.max_timestamp

    @property
    def first_timestamp(self) -> int:
        """The largest timestamp of the first batch in ms, -1 for none."""
        if self._first_timestamp is None:
            head = find_batch(self.mapped(), 0, self.size, 0) if self.size else None
            if head is None:
                return NO_TIMESTAMP
            self._first_timestamp = head.max_timestamp
        return self._first_timestamp

    def append(self, data: bytes | bytearray | memoryview, heads: Sequence[BatchHead]) -> int:
        """Write batches at the end, and index entries if many are due.

        Returns:
            Their position.

        Raises:
            OSError: they cannot be written; the segment is as before.
        """
        indexes = self.indexes  # made from the current files before the batches
        position = self.write(data)
        if len(heads) == 1:
            head = heads[0]
            has_new = indexes.add_one(head.size, head.last_offset, head.max_timestamp)
        else:
            self._index(heads)
            has_new = True
        if has_new and indexes.is_due():
            with suppress(OSError):  # a later call writes them
                indexes.write()
        return position

    def find(self, offset: int) -> BatchHead | None:
        """Return the head of the batch with an offset, or of the next one, with its position; None: there is none."""
        return find_batch(self.mapped(), self.indexes.position_before(offset), self.size, offset)

    def heads(self, position: int = 0) -> Iterator[BatchHead]:
        """The heads of the batches from a position on."""
        while position < self.size:
            found = batch_heads(self.mapped(), position, self.size, _HEADS_AT_ONCE)
            if not found:
                raise CorruptRecord("no batch begins here", position=position, path=self.path)
            yield from found
            position = found[-1].position + found[-1].size

    def range(self, position: int, count: int) -> Range:
        """A part of the segment."""
        return Range(self.file, position, count, self.base_offset, self.mapped)

    def truncate(self, position: int) -> None:
        """Remove the batches from a position on, the start of a batch, and their index entries.

        Raises:
            OSError: a file cannot be cut. If it is the segment, nothing has changed.
        """
        indexes = self.indexes
        self.cut(position)
        self.index_again(position)
        indexes.write()

    def cut(self, position: int) -> None:
        """Remove the bytes from a position on; the indexes stay. Raises OSError: nothing has changed."""
        super().cut(position)
        if not position:
            self._first_timestamp = None

    def index_again(self, position: int) -> None:
        """Make index entries from the batches from a position on, up to which the indexes are right."""
        self._loaded = True
        run: list[BatchHead] = []
        for head in self.heads(self._indexes.resume(position)):
            run.append(head)
            if len(run) == _HEADS_AT_ONCE:
                self._index(run)
                run = []
        self._index(run)

    def resume(self) -> None:
        """Prepare the loaded segment for appends: its indexes continue from their last entries."""
        self.index_again(self.size)

    def end_offset(self) -> int:
        """The offset after the last batch; the base offset without one."""
        end = self.base_offset
        for head in self.heads(self.indexes.positions[-1] if self.indexes.positions else 0):
            end = head.last_offset + 1
        return end

    def seal(self) -> None:
        """No batch follows for now: write the indexes whole. Raises OSError."""
        self.indexes.finish()
        self.indexes.write()

    def files(self) -> list[OpenFile]:
        """Return the files of a sealed segment, open as long as the caller uses them."""
        paths = (layout.sibling(self.path, suffix) for suffix in SUFFIXES[:3])
        return [self._disk.open(path) for path in paths] + self.aborted.files()

    def remove(self) -> None:
        """Remove the files, the segment last."""
        for suffix in reversed(SUFFIXES):
            self._disk.remove(layout.sibling(self.path, suffix))
        self.release()

    def set_aside(self, *beside: str) -> list[str]:
        """Rename the files, and others, so that they are not part of the log; return their new paths.

        A reader with the open segment can still read it.
        """
        renamed = []
        for path in (*(layout.sibling(self.path, suffix) for suffix in SUFFIXES), *beside):
            if os.path.exists(path):
                self._disk.rename(path, path + layout.DELETED_SUFFIX)
                renamed.append(path + layout.DELETED_SUFFIX)
        return renamed

    def _remove_indexes(self) -> None:
        """As far as the disk does it: without the segment, they are removed when the log is opened again."""
        for suffix in SUFFIXES[1:]:
            with suppress(OSError):
                self._disk.remove(layout.sibling(self.path, suffix))

    def _index(self, heads: Sequence[BatchHead]) -> None:
        self._indexes.add([h.size for h in heads], [h.last_offset for h in heads], [h.max_timestamp for h in heads])
