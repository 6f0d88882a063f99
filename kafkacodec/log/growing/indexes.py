"""The offset index and the time index of a growing segment: in memory, and later in files."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from kafkacodec.errors import KafkaCodecError
from kafkacodec.log.formats import layout
from kafkacodec.log.formats.indexes import encode_offset_index, encode_time_index
from kafkacodec.log.growing.disk import Disk
from kafkacodec.log.opening.indexes import read_offset_index, read_time_index
from kafkacodec.log.writing.index_entries import NO_TIMESTAMP, IndexEntries

__all__ = ["GrowingIndexes"]

_OFFSET_BYTES, _TIME_BYTES = layout.OFFSET_INDEX_ENTRY.itemsize, layout.TIME_INDEX_ENTRY.itemsize
_AT_ONCE = 64
"""The number of entries to write together: an index is a hint, and recovery makes missing entries again."""


class GrowingIndexes:
    """The entries of both indexes of one segment.

    Args:
        path: the ``.log`` file.
        base_offset: the offset in its name.
        interval: `index.interval.bytes`.
        disk: writes the files.
    """

    def __init__(self, path: str, base_offset: int, interval: int, disk: Disk) -> None:
        self._path, self._base_offset, self._disk = path, base_offset, disk
        self._entries = IndexEntries(base_offset, interval)
        self.offsets, self.positions = array("q"), array("q")
        self.timestamps, self.time_offsets = array("q"), array("q")
        self._written = [0, 0]

    @property
    def max_timestamp(self) -> int:
        """The largest timestamp of the segment in ms, -1 for none."""
        return self._entries.max_timestamp

    @property
    def offset_of_max(self) -> int:
        """The last offset of the first batch with it."""
        return self._entries.offset_of_max

    def load(self) -> bool:
        """Read the files of a complete segment; False if one is missing or damaged, so that they must be made again."""
        try:
            offsets = read_offset_index(layout.sibling(self._path, layout.OFFSET_INDEX_SUFFIX))
            times = read_time_index(layout.sibling(self._path, layout.TIME_INDEX_SUFFIX))
        except (KafkaCodecError, OSError):
            return False
        self.offsets, self.positions = (array("q", offsets[name].tobytes()) for name in ("offset", "position"))
        self.timestamps, self.time_offsets = (array("q", times[name].tobytes()) for name in ("timestamp", "offset"))
        self._written = [len(self.offsets), len(self.timestamps)]
        self._entries.resume(0, len(self.offsets), *self._newest())
        return True

    def add(self, sizes: Iterable[int], last_offsets: Iterable[int], max_timestamps: Iterable[int]) -> None:
        """Batches were appended; arguments as in `IndexEntries.add`. Writes no file."""
        self._entries.add(sizes, last_offsets, max_timestamps)
        self._take()

    def add_one(self, size: int, last_offset: int, max_timestamp: int) -> bool:
        """As `add`, one batch; whether there are new entries."""
        due = self._entries.add_one(size, last_offset, max_timestamp)
        if due:
            self._take()
        return due

    def finish(self) -> None:
        """No batch follows for now: the largest timestamp gets an entry."""
        self._entries.finish()
        self._take()

    def is_due(self) -> bool:
        """Whether enough entries wait to be written."""
        return len(self.offsets) - self._written[0] >= _AT_ONCE

    def is_full(self, max_bytes: int) -> bool:
        """Whether an index file of this size has no room for a further entry."""
        return len(self.offsets) >= max_bytes // _OFFSET_BYTES or len(self.timestamps) >= max_bytes // _TIME_BYTES - 1

    def write(self) -> None:
        """Write entries that the files lack; both files exist then.

        Raises:
            OSError: a file cannot be written. A later call writes the same entries.
        """
        made = (
            (layout.OFFSET_INDEX_SUFFIX, _OFFSET_BYTES, self.offsets, self.positions),
            (layout.TIME_INDEX_SUFFIX, _TIME_BYTES, self.timestamps, self.time_offsets),
        )
        for i, (suffix, size, first, second) in enumerate(made):
            file = self._disk.open(layout.sibling(self._path, suffix))
            start, end = self._written[i], len(first)
            if start < end:
                encode = encode_time_index if i else encode_offset_index
                self._disk.write(file, encode(first[start:], second[start:], self._base_offset), start * size)
            self._disk.truncate(file, end * size)  # a broker preallocates its indexes
            self._written[i] = end

    def encoded(self) -> tuple[bytes, bytes]:
        """The bytes of both files."""
        return (
            encode_offset_index(self.offsets, self.positions, self._base_offset),
            encode_time_index(self.timestamps, self.time_offsets, self._base_offset),
        )

    def position_before(self, offset: int) -> int:
        """Return the position of a batch before which all offsets are smaller than `offset`."""
        at = bisect_right(self.offsets, offset)
        return self.positions[at - 1] if at else 0

    def begin_before(self, position: int) -> int:
        """Return the start of a batch at or before a position: the last entry there, or the start of the segment."""
        at = bisect_right(self.positions, position)
        return self.positions[at - 1] if at else 0

    def offset_at(self, position: int) -> int | None:
        """The offset of the first entry at or after a position."""
        at = bisect_left(self.positions, position)
        return self.offsets[at] if at < len(self.positions) else None

    def offset_before(self, timestamp: int) -> int:
        """An offset before whose batch all timestamps are smaller than `timestamp`."""
        at = bisect_right(self.timestamps, timestamp)
        return self.time_offsets[at - 1] if at else self._base_offset

    def resume(self, position: int) -> int:
        """Forget the entries after a position, and the batches since the last entry before it.

        Returns:
            The position from which to add batches again.
        """
        count = bisect_left(self.positions, position)
        start = self.positions[count - 1] if count else 0
        del self.offsets[count:], self.positions[count:]
        last = self.offsets[-1] if count else -1
        times = bisect_right(self.time_offsets, last)
        del self.timestamps[times:], self.time_offsets[times:]
        self._written = [min(self._written[0], count), min(self._written[1], times)]
        self._entries.resume(start, count, *self._newest())
        return start

    def _newest(self) -> tuple[int, int]:
        """The last entry of the time index."""
        return (self.timestamps[-1], self.time_offsets[-1]) if self.timestamps else (NO_TIMESTAMP, self._base_offset)

    def _take(self) -> None:
        offsets, times = self._entries.pending()
        for offset, position in offsets:
            self.offsets.append(offset)
            self.positions.append(position)
        for timestamp, offset in times:
            self.timestamps.append(timestamp)
            self.time_offsets.append(offset)
