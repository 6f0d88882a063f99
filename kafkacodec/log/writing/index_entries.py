"""The entries of ``.index`` and ``.timeindex`` for batches that are appended to a segment.

Source: `org.apache.kafka.storage.internals.log.LogSegment.append` and `onBecomeInactiveSegment`.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafkacodec.log.formats.indexes import encode_offset_index, encode_time_index

__all__ = ["NO_TIMESTAMP", "IndexEntries"]

NO_TIMESTAMP = -1


class IndexEntries:
    """The index entries of one segment, as its batches come.

    Args:
        base_offset: the offset that names the segment.
        interval_bytes: an entry is due before a batch if more bytes came since the last one.

    Attributes:
        size_in_bytes (int): the bytes of batches so far: the position of the next one.
        count (int): the entries of the offset index so far; the time index has at most one more.
        max_timestamp (int): the largest timestamp so far, in ms; -1 for none.
        offset_of_max (int): the last offset of the first batch that has it.
    """

    def __init__(self, base_offset: int, interval_bytes: int) -> None:
        self.size_in_bytes = self.count = 0
        self.max_timestamp = NO_TIMESTAMP
        self._base_offset, self._interval = base_offset, interval_bytes
        self._since_entry = 0
        self.offset_of_max = base_offset
        self._last_time = NO_TIMESTAMP
        self._offsets: list[tuple[int, int]] = []
        self._times: list[tuple[int, int]] = []

    def add(self, sizes: Iterable[int], last_offsets: Iterable[int], max_timestamps: Iterable[int]) -> None:
        """Add batches: of each its size in bytes, its last offset and its largest timestamp in ms (-1: none)."""
        for size, last, timestamp in zip(sizes, last_offsets, max_timestamps, strict=True):
            self.add_one(size, last, timestamp)

    def add_one(self, size: int, last_offset: int, max_timestamp: int) -> bool:
        """Add one batch; whether entries are due for it."""
        if max_timestamp > self.max_timestamp:
            self.max_timestamp, self.offset_of_max = max_timestamp, last_offset
        due = self._since_entry > self._interval
        if due:
            self._offsets.append((last_offset, self.size_in_bytes))
            self.count += 1
            self._add_time()
            self._since_entry = 0
        self._since_entry += size
        self.size_in_bytes += size
        return due

    def finish(self) -> None:
        """No batch follows: the largest timestamp of the segment gets an entry."""
        self._add_time()

    def resume(self, size: int, count: int, max_timestamp: int, offset_of_max: int) -> None:
        """Continue after an entry of the offset index, or before the first batch.

        Args:
            size: the position in the entry: the next batch to add is that of the entry, and gets no other.
            count: the entries of the offset index so far.
            max_timestamp, offset_of_max: the last entry of the time index; -1 and the base offset if it has none.
        """
        self.size_in_bytes, self.count, self._since_entry = size, count, 0
        self.max_timestamp = self._last_time = max_timestamp
        self.offset_of_max = offset_of_max
        self._offsets, self._times = [], []

    def pending(self) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """The entries since the last call: (offset, position) and (timestamp, offset)."""
        offsets, times = self._offsets, self._times
        self._offsets, self._times = [], []
        return offsets, times

    def take(self) -> tuple[bytes, bytes]:
        """As `pending`: the bytes that the offset index and the time index grow by.

        Raises:
            EncodeError: an offset is not within 2^31 of the base offset.
        """
        offsets, times = self.pending()
        return (
            encode_offset_index(*_columns(offsets), self._base_offset),
            encode_time_index(*_columns(times), self._base_offset),
        )

    def _add_time(self) -> None:
        """Add an entry of the time index if the largest timestamp has grown since the last one."""
        if self.max_timestamp > self._last_time:
            self._last_time = self.max_timestamp
            self._times.append((self.max_timestamp, self.offset_of_max))


def _columns(entries: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    return [first for first, _ in entries], [second for _, second in entries]
