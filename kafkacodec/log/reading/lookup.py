"""Finding offsets and timestamps in a segment with the help of its index files, which are not trusted.

An index entry only suggests where to start. The batch at that position must be complete, its checksum right, and its
own offsets (or timestamp) must show that no match is before it; otherwise the previous entry is tried, and in the end
the start of the segment. Wrong entries are recorded in `Lookup.problems`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from kafkacodec.datatypes import NamedTuple
from kafkacodec.errors import CorruptIndex, DecodeError, KafkaCodecError
from kafkacodec.log.files.access import note, reason_of
from kafkacodec.log.formats import layout
from kafkacodec.log.formats.indexes import IndexFile
from kafkacodec.log.opening import StoredFile
from kafkacodec.log.opening.identity import BatchMark
from kafkacodec.log.opening.indexes import index_of
from kafkacodec.log.order.corrections import ORDER_COLUMNS, Corrections, bounds_beside, corrections_of, first_offsets
from kafkacodec.log.order.gap_evidence import first_offset_in, knows_base, unused
from kafkacodec.log.order.placement import OFFSETS_OF_SEGMENT, Bounds, in_order
from kafkacodec.log.order.sets import are_sets, sets_in_order, sets_of
from kafkacodec.log.segments.walk import (
    FEW_BATCHES,
    MAX_BATCHES,
    Damage,
    first_batches,
    goes_on_after,
    walk,
    walk_over_damage,
)
from kafkacodec.records.columns import BatchHeaders
from kafkacodec.records.decode import decode

MAX_ENTRIES_TRIED = 16
"""The number of useless index entries after which a look-up reads the segment from its start."""


_PLACE_COLUMNS = ("position", "size_in_bytes")


class _Final(NamedTuple):
    """The last batch of some: where it is, its magic, its first offset as written, and the last one before it; None:
    unknown.
    """

    position: int
    end: int
    magic: int
    first: int
    before: int | None


class _Near(NamedTuple):
    """A batch and the one before it: their start and end in bytes, and whether one is of a format before magic 2."""

    start: int
    end: int
    old: bool


def _near(headers: BatchHeaders, row: int | None, before: _Near | None) -> _Near | None:
    """Those at a row, or at the end if it is None; `before` are the last ones of the headers before these."""
    if not len(headers):
        return before
    at = len(headers) - 1 if row is None else row
    first = max(0, at - 1)
    start = int(headers["position"][first])
    end = int(headers["position"][at] + headers["size_in_bytes"][at])
    old = bool((headers["magic"][first : at + 1] < 2).any())
    return _Near(before.start, end, old or before.old) if at == 0 and before is not None else _Near(start, end, old)


class Lookup:
    """Finds offsets and timestamps in one mapped segment.

    Args:
        file: the segment.
        base_offset: the offset in its name, None if the name has none.

    Attributes:
        problems (list[DecodeError]): faults found in the index files so far.
        known_end (tuple[int, int | None] | None): the result of `end`, once it is known.
        known_last (tuple[int, int] | None): where the last batch begins, and its first offset, below which all offsets
            before it are; once that is known.
        is_out_of_order (bool): batches with wrong offsets were found so far.
    """

    def __init__(self, file: StoredFile, base_offset: int | None) -> None:
        self.file = file
        self.base_offset = base_offset
        self.problems: list[DecodeError] = []
        self.known_end: tuple[int, int | None] | None = None
        self.known_last: tuple[int, int] | None = None
        self._wrong_last: int | None = None
        self.is_out_of_order = False
        self._indexes: dict[str, IndexFile | None] = {}
        self._reasons: set[str] | None = None

    def position_of_offset(self, offset: int, least: int = 0) -> int:
        """The position of the first batch with `offset` or a later one, or the end of the complete batches.

        `least` is a boundary between batches, before which all offsets are smaller.
        """
        start = max(least, self.start_for_offset(offset))
        found = self._walk_to(offset, start)
        if found is not None:
            return found
        self.is_out_of_order = True
        return max(least, self._corrections().position_of_offset(offset))

    def least_offset_at(self, position: int) -> int:
        """The smallest offset that batches from a position on may have; 0 if a compressed message set is there."""
        if self.is_out_of_order:
            return self._corrections().least_offset_at(position)
        batch = first_batches(self.file, position)
        return int(batch["base_offset"][0]) if len(batch) and int(batch["magic"][0]) >= 2 else 0

    def _walk_to(self, offset: int, start: int) -> int | None:
        """As `position_of_offset`, from the headers that follow a position; None if one has a wrong offset."""
        end, before, found, final = start, -1, None, None
        near: _Near | None = None
        for headers in self._batches(start, (*_PLACE_COLUMNS, *ORDER_COLUMNS)):
            if not self._in_order(headers, before):
                return None
            final = self._final(headers, None if before < 0 else before) or final
            if found is not None:
                break
            at = np.flatnonzero(headers["last_offset"] >= offset)
            near = _near(headers, int(at[0]) if len(at) else None, near)
            if len(at):
                found = int(headers["position"][at[0]])
                if at[0] + 1 < len(headers):  # the batch after it shows whether it is in order
                    break
            end = headers.consumed
            before = int(headers["last_offset"][-1]) if len(headers) else before
        is_last = final is not None and not len(first_batches(self.file, final.end))
        if final is not None and is_last and not self._follows(final) and self._is_wrong(final):
            return None
        if near is not None and near.old and not self._are_sets_in_order(near):
            return None
        return end if found is None else found

    def _are_sets_in_order(self, near: _Near) -> bool:
        """Whether compressed sets around a position begin after the batches before them; their headers show it not."""
        if self.base_offset is None:
            return True
        batch = first_batches(self.file, near.end)
        end = near.end + int(batch["size_in_bytes"][0]) if len(batch) else near.end
        return sets_in_order(self.file, near.start, end, self.last_before(near.start))

    def last_before(self, position: int) -> int:
        """The last offset before a batch, as written; where that is not known, before the segment."""
        found = self.boundary(position, 0) if position else None
        return (self.base_offset or 0) - 1 if found is None or found[0] != position else found[1]

    def end_of_offsets(self, end_offset: int) -> int:
        """The position after the last batch that may have offsets below `end_offset`.

        It is the end of the file if batches before `end_offset` may follow the complete ones, torn or damaged.
        """
        found = self._walk_to(end_offset, self.start_for_offset(end_offset))
        if found is None:
            self.is_out_of_order = True
            return self._corrections().end_of_offsets(end_offset, self.file.size)
        position = found
        batch = first_batches(self.file, position)
        if not len(batch):
            return self.file.size
        if int(batch["magic"][0]) >= 2 and int(batch["base_offset"][0]) >= end_offset:
            return position
        return position + int(batch["size_in_bytes"][0])

    def mark_of(self, offset: int) -> BatchMark | None:
        """The batch that has an offset; None if none has it, or it is of a format before v2."""
        batch = first_batches(self.file, self.position_of_offset(offset))
        if not len(batch) or int(batch["magic"][0]) < 2 or int(batch["base_offset"][0]) > offset:
            return None
        base, last, crc, count = (int(batch[name][0]) for name in ("base_offset", "last_offset", "crc", "count"))
        whole = count == last - base + 1 and int(batch["delete_horizon_ms"][0]) == 0
        return BatchMark(base, last, crc, whole)

    def offset_of_timestamp(self, timestamp: int, start_offset: int = 0, following: int | None = None) -> int | None:
        """The first offset from `start_offset` on whose record is at or after the timestamp (ms), or None.

        With `following`, where the next segment begins, batches with offsets from there on are out of place.
        A damaged batch counts if its header's largest timestamp is late enough: reading from there raises the error.
        Batches whose headers are damaged are passed over.
        """
        least = np.datetime64(timestamp, "ms")
        first = self._start_for_timestamp(timestamp)
        if start_offset > 0:
            first = max(first, self.start_for_offset(start_offset))
        end, before = first, -1
        for headers in self._batches(first):
            if not self._in_order(headers, before, following):
                self.is_out_of_order = True
                return self._first_late_of_right(least, start_offset)
            found = self._first_late(headers, least, start_offset)
            if found is not None:
                return found
            end, before = headers.consumed, int(headers["last_offset"][-1]) if len(headers) else before
        for part in self._after(end):
            found = None if isinstance(part, Damage) else self._first_late(part, least, start_offset)
            if found is not None:
                return found
        return None

    def _first_late_of_right(self, least: np.datetime64, start_offset: int) -> int | None:
        """As `offset_of_timestamp`, in the batches that have right offsets."""
        misplaced = self._corrections().position
        for part in walk_over_damage(self.file):
            if not isinstance(part, Damage):
                found = self._first_late(part.filter(~np.isin(part["position"], misplaced)), least, start_offset)
                if found is not None:
                    return found
        return None

    def _first_late(self, headers: BatchHeaders, least: np.datetime64, start_offset: int) -> int | None:
        """As `offset_of_timestamp`, in some batches."""
        for i in np.flatnonzero(headers["max_timestamp"] >= least):
            start = int(headers["position"][i])
            batch = self.file.read(start, int(headers["size_in_bytes"][i]))
            try:
                records = decode(batch, columns=("offset", "timestamp"), include_control=True)
            except KafkaCodecError:
                return max(start_offset, int(headers["base_offset"][i]))
            late = np.flatnonzero((records["timestamp"] >= least) & (records["offset"] >= start_offset))
            if len(late):
                return int(records["offset"][late].min())
        return None

    def _after(self, position: int) -> Iterator[BatchHeaders | Damage]:
        """The damage at the end of the complete batches, if intact ones follow it, and these; nothing else."""
        if goes_on_after(self.file, position, self.file.size):
            yield from walk_over_damage(self.file, position)

    def end(self) -> tuple[int, int | None]:
        """The end position of the complete batches, and their last offset; None without a batch."""
        if self.known_end is None:
            start = self._start_for_end()
            position, last, final = start, None, None
            for headers in walk(self.file, start, columns=(*_PLACE_COLUMNS, *ORDER_COLUMNS)):
                if not self._in_order(headers, -1 if last is None else last):
                    self.is_out_of_order = True
                    position, last = self._corrections().end()
                    final = None
                    break
                position = headers.consumed
                if len(headers):
                    final = self._final(headers, last)
                    last = int(headers["last_offset"].max())
            follows = final is not None and self._follows(final)
            if final is not None and not follows and self._is_wrong(final):
                self.is_out_of_order = True
                position, last = self._corrections().end()
                self._wrong_last = final.first
            elif final is not None and follows and final.magic >= 2 and self.base_offset is not None:
                self.known_last = final.position, final.first  # whatever files are beside
            self.known_end = position, last
        return self.known_end

    def _start_for_end(self) -> int:
        """The position of a batch as near to the last one as is known."""
        if self.known_last is not None:
            return self.known_last[0]
        index = self._index(layout.OFFSET_INDEX_SUFFIX)
        return self.start_for_offset(int(index["offset"][-1])) if index is not None and len(index) else 0

    def end_after_damage(self, damage: list[DecodeError] | None = None) -> tuple[int, int | None]:
        """As `end`, also of the intact batches that follow damage there, which is appended to `damage`."""
        position, last = self.end()
        for part in walk_over_damage(self.file, position):
            if not isinstance(part, Damage):
                if len(part):
                    position, last = part.consumed, max(last or 0, int(part["last_offset"].max()))
            elif damage is not None:
                damage.append(part.error)
        return position, last

    def wrong_last(self) -> int | None:
        """The first offset of the last batch in the file, if it is wrong although it is after all others; or None."""
        self.end()
        return self._wrong_last

    def _final(self, headers: BatchHeaders, before: int | None) -> _Final | None:
        """The last batch; None if there is none, or its first offset is unknown. `before` is the offset before them."""
        if not len(headers):
            return None
        position, size, first = (int(headers[name][-1]) for name in (*_PLACE_COLUMNS, "base_offset"))
        magic = int(headers["magic"][-1])
        if magic < 2:
            batch = first_batches(self.file, position)
            if not knows_base(batch)[0]:
                found = sets_of(self.file, batch).base.tolist() if are_sets(batch)[0] else []
                if not found:
                    return None
                first = found[0]
        if len(headers) > 1:
            before = int(headers["last_offset"][-2])
        return _Final(position, position + size, magic, first, before)

    def _is_wrong(self, final: _Final) -> bool:
        """Whether the last batch of the log, which follows a gap, has a wrong offset. It may be in order."""
        if bounds_beside(self.file.path, None).end is not None:
            return False
        wrong = self._corrections().position
        return len(wrong) > 0 and int(wrong[-1]) == final.position

    def _follows(self, final: _Final) -> bool:
        """Whether the last batch begins right after those before it, or where the file begins; True if unknown."""
        if self.base_offset is None or self.known_last == (final.position, final.first):
            return True
        before = final.before
        if before is None:
            before = self.base_offset - 1
            start = self.start_for_offset(max(before, final.first - 1))
            for headers in walk(self.file, start, final.position, columns=ORDER_COLUMNS):
                before = int(headers["last_offset"][-1]) if len(headers) else before
        return final.first <= before + 1

    def _in_order(self, headers: BatchHeaders, before: int, following: int | None = None) -> bool:
        """Whether batches agree with each other and with the file's name; files with other names may have any."""
        if self.base_offset is None:
            return True
        most = self.base_offset + OFFSETS_OF_SEGMENT
        bounds = Bounds(self.base_offset, most if following is None else min(most, following))
        return in_order(first_offsets(headers), headers["last_offset"], bounds, before)

    def _corrections(self) -> Corrections:
        return corrections_of(self.file, bounds_beside(self.file.path, None))

    def end_of_readable(self, start: int) -> int:
        """The end position of the batches from `start` on; the end of the file if more than zeros follow them."""
        *_, last = walk(self.file, start)
        return last.consumed if unused(self.file, last.consumed) else self.file.size

    def boundary(self, position: int, start: int) -> tuple[int, int] | None:
        """The first batch boundary at or after `position`, walking from `start`, a boundary before it.

        Returns:
            tuple: the boundary and the last offset before it; None if damage or the end of the batches is first.
        """
        for headers in walk(self.file, max(start, self._start_for_position(position, start)), max_batches=FEW_BATCHES):
            ends = headers["position"] + headers["size_in_bytes"]
            at = np.flatnonzero(ends >= position)
            if len(at):
                return int(ends[at[0]]), int(headers["last_offset"][at[0]])
        return None

    def start_for_offset(self, offset: int) -> int:
        """The position of a batch before which all offsets are smaller than `offset`."""
        if self.known_last is not None and offset >= self.known_last[1]:
            return self.known_last[0]
        index = self._index(layout.OFFSET_INDEX_SUFFIX)
        if index is None:
            return 0
        newest = int(np.searchsorted(index["offset"], offset, "right")) - 1
        for i in range(newest, max(newest - MAX_ENTRIES_TRIED, -1), -1):
            position = int(index["position"][i])
            batch = self._entry_batch(index, i)
            if batch is not None and (self._first_offset(batch, position) or 0) <= offset:
                return position
        return 0

    def _start_for_timestamp(self, timestamp: int) -> int:
        """A position before which all records are earlier than `timestamp`."""
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
                continue  # a log without timestamps: brokers of 0.10 wrote the time at which they closed the file
            self._note(index, i, layout.TIME_INDEX_ENTRY.itemsize, "the batch there has a different timestamp")
        return 0

    def _start_for_position(self, position: int, least: int) -> int:
        """A batch's position at or after `least` and before `position`, as near to it as the index has one."""
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
        """The batch that entry `i` of the offset index points to; None if it does not match the entry."""
        position, offset = int(index["position"][i]), int(index["offset"][i])
        reason = "the file ends before the position"
        if position < self.file.size:
            batch = first_batches(self.file, position, verify_crc=True)
            first = self._first_offset(batch, position) if _is_whole(batch) else None
            if first is not None and offset >= first:
                # Brokers before 1.0 put a set of uncompressed messages under its last offset, at its first message.
                if offset <= int(batch["last_offset"][0]) or int(batch["magic"][0]) < 2:
                    return batch
                reason = f"the batch ends at offset {int(batch['last_offset'][0])}"
            elif first is not None:
                reason = f"the batch starts at offset {first}"
            else:
                reason = "there is no intact batch at the position"
        self._note(index, i, layout.OFFSET_INDEX_ENTRY.itemsize, reason)
        return None

    def _first_offset(self, batch: BatchHeaders, position: int) -> int | None:
        """The first offset of the batch at a position, for a compressed set that of its messages; None: unreadable."""
        if knows_base(batch)[0]:
            return int(batch["base_offset"][0])
        return first_offset_in(self.file, position, int(batch["size_in_bytes"][0]))

    def _batches(self, start: int, columns: Sequence[str] | None = None) -> Iterator[BatchHeaders]:
        """Headers from a position on: a few at first, since a match is mostly near, then more and more."""
        count = FEW_BATCHES if self.file.window is None else MAX_BATCHES  # windows grow likewise
        while count < MAX_BATCHES:
            headers = next(walk(self.file, start, max_batches=count, columns=columns))
            yield headers
            if len(headers) < count:
                return
            start, count = headers.consumed, count * 2
        yield from walk(self.file, start, columns=columns)

    def _index(self, suffix: str) -> IndexFile | None:
        """An index file of the segment, up to its first fault; None if it is missing or unreadable."""
        if suffix not in self._indexes:
            path, index = layout.sibling(self.file.path, suffix), None
            try:
                if self.base_offset is not None:
                    index = index_of(self.file.path, suffix)
                    known = {(problem.path, problem.reason) for problem in self.problems} if index.problems else ()
                    self.problems += [p for p in index.problems if (p.path, p.reason) not in known]
            except FileNotFoundError:
                pass
            except (OSError, KafkaCodecError) as error:
                self.problems.append(CorruptIndex(f"the index cannot be read: {reason_of(error)}", path=path))
            self._indexes[suffix] = index
        return self._indexes[suffix]

    def _note(self, index: IndexFile, i: int, entry_size: int, what: str) -> None:
        reason = f"index entry {i} (offset {int(index['offset'][i])}) does not match the segment: {what}"
        if self._reasons is None:  # include previous look-ups
            self._reasons = {problem.reason for problem in self.problems}
        if reason not in self._reasons:
            self._reasons.add(reason)
            note(self.problems, CorruptIndex(reason, position=i * entry_size, path=index.path))


def _is_whole(batch: BatchHeaders) -> bool:
    return len(batch) > 0 and bool(batch["crc_ok"][0])


def _timestamp(batch: BatchHeaders) -> int:
    return int(batch["max_timestamp"][0].astype(np.int64))
