"""A check that the batches of a range begin and end where its neighbours require: the reader's side of `continuity`."""

from __future__ import annotations

import os

from kafkacodec.errors import CorruptRecord, DecodeError
from kafkacodec.log.formats import layout
from kafkacodec.log.opening import StoredFile, open_file
from kafkacodec.log.order.continuity import gap_after, missing
from kafkacodec.log.order.gap_evidence import gather
from kafkacodec.log.order.placement import OFFSETS_OF_SEGMENT
from kafkacodec.log.reading.lookup import Lookup
from kafkacodec.log.segments import kafka07
from kafkacodec.log.segments.extent import Extent
from kafkacodec.log.segments.kinds import kind_of
from kafkacodec.log.segments.walk import first_batches, walk
from kafkacodec.records.columns import RecordColumns


class RangeEnds:
    """Follows the chunks of a range, so that its last batches are known when they have been read.

    Args:
        file: the segment.
        piece: the range.
        start_offset, end_offset: the requested offsets.
    """

    def __init__(self, file: StoredFile, piece: Extent, start_offset: int | None, end_offset: int | None) -> None:
        self.file = file
        self.piece = piece
        self.wanted = start_offset, end_offset
        self.name = layout.parse_file_name(os.path.basename(piece.path))
        self._before = self._consumed = piece.start_position
        self._damaged_to = -1
        self._has_batches = kind_of(piece.path).has_batches

    def follow(self, chunk: RecordColumns) -> None:
        """Record the end of a chunk."""
        if chunk.consumed > self._consumed:
            self._before, self._consumed = self._consumed, chunk.consumed
        for problem in chunk.problems:
            self._damaged_to = problem.position + problem.size_in_bytes

    def misplaced_start(self) -> DecodeError | None:
        """The error for offsets that the segment's base offset excludes: the file is another one's."""
        if not self._has_batches or self.name is None:
            return None
        batch = first_batches(self.file, 0)
        if not len(batch):
            return None
        first = int(batch["base_offset" if int(batch["magic"][0]) >= 2 else "last_offset"][0])
        base = self.name.base_offset
        if base <= first < base + OFFSETS_OF_SEGMENT:
            return None
        where = "before" if first < base else "2^31 or more after"
        reason = f"the batches begin at offset {first}, {where} the segment's base offset {base}"
        return CorruptRecord(reason, position=0, path=self.piece.path)

    def misplaced_end(self) -> DecodeError | None:
        """The error for missing offsets, or for batches that continue past the start of the next segment."""
        piece = self.piece
        if piece.following is None and piece.flushed is None:
            return None
        found = self._end()
        if found is None:
            return None  # damage up to the end, which has been reported
        position, end = found
        if self._has_batches and len(first_batches(self.file, position)):
            return None  # the range ends inside the segment, before offsets that were not requested
        if piece.following is not None and end > piece.following:
            if self.name is not None and self.name.segment_id is not None:
                return None  # in tiered storage two leaders may have written the same offsets
            reason = f"the batches continue to offset {end - 1}, but the next segment begins at {piece.following}"
            return CorruptRecord(reason, position=position, path=piece.path)
        start_offset, end_offset = self.wanted
        gap = gap_after(end, piece.following, piece.flushed, start_offset=start_offset, end_offset=end_offset)
        if gap is None:
            return None
        evidence = gather(
            self.file,
            gap,
            position,
            piece.topic,
            piece.partition,
            has_batches=self._has_batches,
            replaced=piece.replaced,
        )
        return missing(gap, evidence, path=piece.path, position=position)

    def _end(self) -> tuple[int, int] | None:
        """The end position of the complete batches, and one after their last offset; None if damage hides it."""
        base = 0 if self.name is None else self.name.base_offset
        if not self._has_batches:
            end = self._consumed if self._consumed > self.piece.start_position else kafka07.end_of(self.file, base)[0]
            return end, base + end
        last = -1
        for headers in walk(self.file, max(self._before, self._damaged_to), self._consumed):
            last = max(last, int(headers["last_offset"].max(initial=-1)))
        if last >= 0:
            return self._consumed, last + 1
        if self._damaged_to >= self._consumed:
            return None
        return self._end_by_index(base)

    def _end_by_index(self, base_offset: int) -> tuple[int, int]:
        position, last = Lookup(self.file, base_offset).end_after_damage()
        return position, base_offset if last is None else last + 1


def misplaced_ends(piece: Extent) -> list[DecodeError]:
    """The errors of the first and the last batch of a range at the end of its segment.

    Raises:
        OSError: the segment cannot be read.
    """
    with open_file(piece.path) as file:
        ends = RangeEnds(file, piece, piece.start_offset, piece.end_offset)
        return [error for error in (ends.misplaced_start(), ends.misplaced_end()) if error is not None]
