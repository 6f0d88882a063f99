"""Choice of the positions to cut a segment at, so that its ranges have about the same size in bytes and records."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

from kafkacodec.datatypes import NamedTuple
from kafkacodec.log.reading.lookup import Lookup
from kafkacodec.log.segments.walk import FEW_BATCHES, first_batches, walk

__all__ = ["Limits", "Piece", "cut", "density", "placed"]

_DENSITY = ("magic", "base_offset", "last_offset", "count")


class Limits(NamedTuple):
    """The limits of a range, which exceeds each by less than one batch. None: no limit.

    Attributes:
        bytes (int | None): in the file.
        offsets (int | None): from the first to the last, whether or not records have them.
        records (int | None): as far as the batch headers at the start of the range tell.
    """

    bytes: int | None = None
    offsets: int | None = None
    records: int | None = None

    @property
    def fewest_offsets(self) -> int | None:
        """The number of offsets below which no limit of offsets or records is reached."""
        return min((most for most in (self.offsets, self.records) if most is not None), default=None)


class Piece(NamedTuple):
    """Consecutive batches of a segment.

    Attributes:
        start, end (int): the position of the first batch, and where the piece ends, in bytes.
        first_offset (int): no offset of the piece is smaller.
        last_offset (int | None): the last one; None in the last piece.
        density (float): the share of the offsets that have records, if there is a limit of records.
    """

    start: int
    end: int
    first_offset: int
    last_offset: int | None
    density: float


def cut(lookup: Lookup, start: int, end: int, first_offset: int, limits: Limits) -> Iterator[Piece]:
    """Cut the part of a segment between two positions; the first one is a batch boundary."""
    while start < end:
        share = 1.0 if _has_few(lookup, start, end, first_offset, limits) else density(lookup, start)
        target = _target(lookup, start, end, first_offset, share, limits)
        found = None if target is None else lookup.boundary(target, start)
        if found is None or found[0] >= end or not len(first_batches(lookup.file, found[0])):
            # What follows the last complete batch, a torn tail or damage, stays with it; not the zeros of a file's end.
            if limits.bytes is not None and end - start > limits.bytes:
                end = min(end, lookup.end_of_readable(start))
            if start < end:
                yield Piece(start, end, first_offset, None, share)
            return
        yield Piece(start, found[0], first_offset, found[1], share)
        start, first_offset = found[0], found[1] + 1


def placed(lookup: Lookup, pieces: list[Piece]) -> list[Piece]:
    """The pieces of a segment; if their ends show that its batches are not in order, by the right offsets.

    Then `lookup.is_out_of_order` is set.
    """
    if lookup.base_offset is None:  # any order
        return pieces
    lasts = [piece.last_offset for piece in pieces if piece.last_offset is not None]
    end = lookup.end()[1] if 0 < len(lasts) < len(pieces) else None  # the last piece has the end of the batches
    if end is not None:
        lasts.append(end)
    if not lookup.is_out_of_order and all(a < b for a, b in pairwise(lasts)):
        return pieces
    lookup.is_out_of_order = True
    least = lookup.least_offset_at
    return [
        piece._replace(
            first_offset=piece.first_offset if piece is pieces[0] else least(piece.start),
            last_offset=None if piece.last_offset is None else least(piece.end) - 1,
        )
        for piece in pieces
    ]


def _has_few(lookup: Lookup, start: int, end: int, first_offset: int, limits: Limits) -> bool:
    """Whether the number of offsets is below the limit of records, and not larger than the number of bytes.

    With more offsets than bytes, it was compacted, or compresses well: its headers show which.
    """
    return limits.records is None or (lookup.end()[1] or 0) - first_offset < min(limits.records, end - start)


def _target(lookup: Lookup, start: int, end: int, first_offset: int, share: float, limits: Limits) -> int | None:
    """The position from which on to cut, None if a piece that begins at `start` keeps to the limits up to `end`."""
    targets = []
    if limits.bytes is not None and end - start > limits.bytes:
        targets.append(start + limits.bytes)
    scaled = None if limits.records is None else math.ceil(limits.records / share)
    for most in (limits.offsets, scaled):
        if most is not None and first_offset + most <= (lookup.end()[1] or 0):
            position = lookup.position_of_offset(first_offset + most, start)
            if position < end:
                targets.append(max(position, start + 1))
    return min(targets, default=None)


def density(lookup: Lookup, start: int) -> float:
    """The share of the offsets that records have, in the batches next to a position; compaction removes records."""
    headers = next(walk(lookup.file, start, max_batches=FEW_BATCHES, columns=_DENSITY))
    if not len(headers) or int(headers["magic"].min()) < 2:
        return 1.0
    offsets = int(headers["last_offset"][-1]) - int(headers["base_offset"][0]) + 1
    return min(1.0, max(int(headers["count"].sum()), 1) / max(offsets, 1))
