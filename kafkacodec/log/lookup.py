"""Finding offsets and timestamps in a segment with the help of its index files, which are never simply believed.

An index entry only proposes where to start. The batch at the proposed position must be whole, its checksum right, and
its own offsets (or timestamp) such that nothing sought can lie before it; otherwise the entry before is tried, and
in the end the start of the segment. What is wrong with an index is noted in `Lookup.problems`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kafkacodec.errors import CorruptIndex, DecodeError, KafkaCodecError
from kafkacodec.log import layout
from kafkacodec.log.files import MappedFile, note, reason_of
from kafkacodec.log.indexes import IndexFile, read_offset_index, read_time_index
from kafkacodec.log.walk import FEW_BATCHES, MAX_BATCHES, first_batches, walk
from kafkacodec.records.columns import BatchHeaders
from kafkacodec.records.decode import decode

MAX_ENTRIES_TRIED = 16
"""Index entries that may turn out useless in one look-up before the segment is read from its start."""


class Lookup:
    """Looks things up in one mapped segment.

    Args:
        file: the segment.
        base_offset: the offset in its name, None where the name has none.

    Attributes:
        problems (list[DecodeError]): what was found wrong with the index files so far.
    """

    def __init__(self, file: MappedFile, base_offset: int | None) -> None:
        self.file = file
        self.base_offset = base_offset
        self.problems: list[DecodeError] = []
        self._indexes: dict[str, IndexFile | None] = {}
        self._noted: set[str] | None = None

    def position_of_offset(self, offset: int) -> int:
        """Where the first batch lies that has `offset` or a later one; behind the last whole batch where none has."""
        start = self.start_for_offset(offset)
        end = start
        for headers in self._batches(start):
            at = np.flatnonzero(headers["last_offset"] >= offset)
            if len(at):
                return int(headers["position"][at[0]])
            end = headers.consumed
        return end

    def offset_of_timestamp(self, timestamp: int, start_offset: int = 0) -> int | None:
        """The first offset from `start_offset` on whose record has the timestamp (milliseconds) or a later one.

        None where none has.

        A damaged batch whose header promises such a record counts as having it: reading there will tell.
        """
        least = np.datetime64(timestamp, "ms")
        first = self._start_for_timestamp(timestamp)
        if start_offset > 0:
            first = max(first, self.start_for_offset(start_offset))
        for headers in self._batches(first):
            for i in np.flatnonzero(headers["max_timestamp"] >= least):
                start = int(headers["position"][i])
                batch = memoryview(self.file.data)[start : start + int(headers["size_in_bytes"][i])]
                try:
                    records = decode(batch, columns=("offset", "timestamp"), include_control=True)
                except KafkaCodecError:
                    return max(start_offset, int(headers["base_offset"][i]))
                late = np.flatnonzero((records["timestamp"] >= least) & (records["offset"] >= start_offset))
                if len(late):
                    return int(records["offset"][late].min())
        return None

    def end(self) -> tuple[int, int | None]:
        """Where the whole batches end, and the last offset in them; None where there is no batch."""
        index = self._index(layout.OFFSET_INDEX_SUFFIX)
        start = self.start_for_offset(int(index["offset"][-1])) if index is not None and len(index) else 0
        position, last = start, None
        for headers in walk(self.file, start):
            position = headers.consumed
            if len(headers):
                last = int(headers["last_offset"].max())
        return position, last

    def end_of_readable(self, start: int) -> int:
        """Where the batches from `start` on end; the end of the file where damage follows them."""
        *_, last = walk(self.file, start)
        return self.file.size if last.problems else last.consumed

    def boundary(self, position: int, start: int) -> tuple[int, int] | None:
        """The first place between two batches at or behind `position`, walking from `start`, a place before it.

        Returns:
            tuple: the place and the last offset before it; None where damage or the end of the batches comes first.
        """
        for headers in walk(self.file, max(start, self._start_for_position(position, start)), max_batches=FEW_BATCHES):
            ends = headers["position"] + headers["size_in_bytes"]
            at = np.flatnonzero(ends >= position)
            if len(at):
                return int(ends[at[0]]), int(headers["last_offset"][at[0]])
        return None

    def start_for_offset(self, offset: int) -> int:
        """A position of a batch before which there are only smaller offsets."""
        index = self._index(layout.OFFSET_INDEX_SUFFIX)
        if index is None:
            return 0
        newest = int(np.searchsorted(index["offset"], offset, "right")) - 1
        for i in range(newest, max(newest - MAX_ENTRIES_TRIED, -1), -1):
            position = int(index["position"][i])
            batch = self._entry_batch(index, i)
            if batch is not None and (_first_offset(batch) <= offset or int(batch["last_offset"][0]) <= offset):
                return position
        return 0

    def _start_for_timestamp(self, timestamp: int) -> int:
        """A position before which all records are older."""
        index = self._index(layout.TIME_INDEX_SUFFIX)
        if index is None:
            return 0
        newest = int(np.searchsorted(index["timestamp"], timestamp, "left")) - 1
        for i in range(newest, max(newest - MAX_ENTRIES_TRIED, -1), -1):
            claimed, offset = (int(index[name][i]) for name in ("timestamp", "offset"))
            position = self.position_of_offset(offset)
            batch = first_batches(self.file, position, verify_crc=True)
            if _is_whole(batch) and _timestamp(batch) == claimed:
                return position
            if _is_whole(batch) and np.isnat(batch["max_timestamp"][0]):
                continue  # of a log without timestamps: brokers of 0.10 wrote down when they closed the file
            self._note(index, i, layout.TIME_INDEX_ENTRY.itemsize, "the batch there has a different timestamp")
        return 0

    def _start_for_position(self, position: int, least: int) -> int:
        """A batch's position at or behind `least` and before `position`, as near to it as the index knows."""
        index = self._index(layout.OFFSET_INDEX_SUFFIX)
        if index is None:
            return least
        newest = int(np.searchsorted(index["position"], position, "left")) - 1
        for i in range(newest, max(newest - MAX_ENTRIES_TRIED, -1), -1):
            if int(index["position"][i]) <= least:
                break
            if self._entry_batch(index, i) is not None:
                return int(index["position"][i])
        return least

    def _entry_batch(self, index: IndexFile, i: int) -> BatchHeaders | None:
        """The batch that entry `i` of the offset index points to, where it agrees with the entry."""
        position, offset = int(index["position"][i]), int(index["offset"][i])
        reason = "the file ends before the position"
        if position < self.file.size:
            batch = first_batches(self.file, position, verify_crc=True)
            if _is_whole(batch) and offset >= _first_offset(batch):
                # Brokers before 1.0 put a set of uncompressed messages under its last offset, at its first message.
                if offset <= int(batch["last_offset"][0]) or int(batch["magic"][0]) < 2:
                    return batch
                reason = f"the batch ends at offset {int(batch['last_offset'][0])}"
            elif _is_whole(batch):
                reason = f"the batch starts at offset {_first_offset(batch)}"
            else:
                reason = "there is no intact batch at the position"
        self._note(index, i, layout.OFFSET_INDEX_ENTRY.itemsize, reason)
        return None

    def _batches(self, start: int) -> Iterator[BatchHeaders]:
        """Headers from a position on: a few at first, since what is sought is mostly near."""
        headers = first_batches(self.file, start, FEW_BATCHES)
        yield headers
        if len(headers) == FEW_BATCHES:
            yield from walk(self.file, headers.consumed, max_batches=MAX_BATCHES)

    def _index(self, suffix: str) -> IndexFile | None:
        """An index file of the segment, up to its first fault; None where it is missing or cannot be used."""
        if suffix not in self._indexes:
            read = read_offset_index if suffix == layout.OFFSET_INDEX_SUFFIX else read_time_index
            path, index = layout.sibling(self.file.path, suffix), None
            try:
                if self.base_offset is not None:
                    index = read(path, on_error="stop")
                    self.problems += index.problems
            except FileNotFoundError:
                pass
            except (OSError, KafkaCodecError) as error:
                self.problems.append(CorruptIndex(f"the index cannot be read: {reason_of(error)}", path=path))
            self._indexes[suffix] = index
        return self._indexes[suffix]

    def _note(self, index: IndexFile, i: int, entry_size: int, what: str) -> None:
        reason = f"index entry {i} (offset {int(index['offset'][i])}) does not match the segment: {what}"
        if self._noted is None:  # of look-ups before this one, too
            self._noted = {problem.reason for problem in self.problems}
        if reason not in self._noted:
            self._noted.add(reason)
            note(self.problems, CorruptIndex(reason, position=i * entry_size, path=index.path))


def _is_whole(batch: BatchHeaders) -> bool:
    return len(batch) > 0 and bool(batch["crc_ok"][0])


def _first_offset(batch: BatchHeaders) -> int:
    """The smallest offset that the batch may have; a compressed set of old messages does not tell."""
    if int(batch["magic"][0]) < 2:
        return 0
    return int(batch["base_offset"][0])


def _timestamp(batch: BatchHeaders) -> int:
    return int(batch["max_timestamp"][0].astype(np.int64))
