"""The right places of a partition's segments, since the name of a file may be wrong.

A wrong name contradicts the batches of its file, or of the file before it. At a contradiction, this ignores each name
in turn, and places the segment by its batches; it keeps the arrangement with the fewest contradictions.
"""

from __future__ import annotations

import os
from bisect import bisect_left

from kafkacodec.datatypes import NamedTuple
from kafkacodec.errors import KafkaCodecError
from kafkacodec.log.checking.checked import Around, Partition, Segment
from kafkacodec.log.opening import full_path, open_file
from kafkacodec.log.order.continuity import Surroundings
from kafkacodec.log.order.corrections import Corrections, bounds_of, corrections_of
from kafkacodec.log.order.gap_evidence import last_orphan_between

__all__ = ["Placed", "placed_segments"]

_LAST = (1 << 63) - 1

_ROUNDS = 3
"""The number of passes through the segments: a wrong name may show that another one is wrong."""


class Placed(NamedTuple):
    """A segment of a partition at the place of its batches.

    Attributes:
        segment: the file.
        base_offset: the start of its offsets: from its name, or from its batches if the name is wrong; None: unknown.
        surroundings: what follows it.
        corrections: its wrong offsets; None: the file is unreadable.
        fault: why.
    """

    segment: Segment
    base_offset: int | None
    surroundings: Surroundings
    corrections: Corrections | None
    fault: Exception | None = None

    @property
    def first_offset(self) -> int | None:
        """Its first right offset; None without a batch."""
        return None if self.corrections is None else self.corrections.first_offset

    @property
    def end_offset(self) -> int:
        """The offset after its last right one."""
        last = None if self.corrections is None else self.corrections.end()[1]
        return (self.base_offset or 0) if last is None else last + 1

    @property
    def num_right(self) -> int:
        """The number of its batches with right offsets."""
        return 0 if self.corrections is None else len(self.corrections.known[0])

    @property
    def num_restored(self) -> int:
        """The number of those that have wrong offsets in the file."""
        return 0 if self.corrections is None else int((~self.corrections.unknown).sum())

    @property
    def is_misnamed(self) -> bool:
        """Whether the file's name is known to be wrong."""
        return self.segment.base_offset is not None and self.base_offset != self.segment.base_offset

    @property
    def cost(self) -> tuple[int, int]:
        """The number of contradictions to batches and names here, and the part of it to names."""
        if self.corrections is None:
            return 0, 0
        bounds = bounds_of(self.segment.path, self.base_offset, self.surroundings)
        names = sum(a != b for a, b in zip(bounds[:2], self.corrections.bounds[:2], strict=True))
        return len(self.corrections.position) + names, names


def placed_segments(partition: Partition, around: Around) -> list[Placed]:
    """Return the segments of a partition in the order of their offsets; segments with unknown offsets are last.

    Args:
        partition: the partition.
        around: what must follow each of its segments, according to their names.
    """
    placed = [place(s, s.base_offset, around(s)) for s in partition.segments]
    if not any(sum(one.cost) for one in placed):
        return placed
    exchanged = _exchanged(placed, partition.recovery_point or None) if partition.has_all else None
    if exchanged is not None:
        return exchanged
    order = _Order(placed, partition.recovery_point or None)
    for _ in range(_ROUNDS if partition.has_all else 0):
        if not order.settle():
            break
    found = [_by_batches(one) for one in order.placed]
    return sorted(found, key=lambda one: one.base_offset or 0) + order.unplaced


def _exchanged(placed: list[Placed], flushed: int | None) -> list[Placed] | None:
    """The segments in the order of their batches, if only the names of some were exchanged; None: it is something else.

    Each has batches in order, all between one of the names and the next one.
    """
    filled = [one for one in placed if one.segment.base_offset is not None and one.first_offset is not None]
    if len(filled) < len(placed):
        return None
    filled.sort(key=lambda one: one.first_offset or 0)
    names = sorted(one.segment.base_offset or 0 for one in filled)
    if names == [one.segment.base_offset for one in filled]:
        return None
    found = []
    for one, name, following in zip(filled, names, [*names[1:], None], strict=True):
        around = one.surroundings._replace(following=following, flushed=flushed if following is None else None)
        found.append(place(one.segment, name, around))
    return None if any(sum(one.cost) for one in found) else found


def place(segment: Segment, base_offset: int | None, around: Surroundings) -> Placed:
    """A segment between two offsets, with the verdict on its batches there."""
    try:
        with open_file(segment.path) as file:
            corrections = corrections_of(file, bounds_of(segment.path, base_offset, around), keep_copies=True)
    except (OSError, KafkaCodecError) as error:
        return Placed(segment, base_offset, around, None, error)
    return Placed(segment, base_offset, around, corrections)


def _by_batches(one: Placed) -> Placed:
    """The segment, by its first batch if that contradicts its name."""
    if one.corrections is None or one.first_offset is None or one.corrections.bounds.first is not None:
        return one
    return one._replace(base_offset=one.first_offset)


class _Move(NamedTuple):
    """A move of a segment whose name is ignored.

    Attributes:
        cost: as it is then: contradictions, those to names, and whether nothing shows that it belongs there: neither
            does it adjoin the segment before it, nor is there an index for it.
        at: the segment's place.
        to: its place among the others; None: it has no batches, so any place.
        moved: the segment.
        others: the segments that something else follows now, with their places among the others.
    """

    cost: tuple[int, int, bool]
    at: int
    to: int | None
    moved: Placed
    others: dict[int, Placed]


class _Order:
    """The segments of a partition in the order of their offsets, as far as it is known."""

    def __init__(self, placed: list[Placed], flushed: int | None) -> None:
        self.placed = [one for one in placed if one.base_offset is not None]
        self.unplaced = [one for one in placed if one.base_offset is None]
        self.flushed = flushed

    def settle(self) -> bool:
        """Ignore names if that leaves fewer contradictions; return whether there were some."""
        found = False
        for at in range(len(self.placed)):
            if at < len(self.placed) and self.placed[at].cost[0]:
                moves = [move for move in (self._move(at), self._move(at + 1)) if move is not None]
                if moves:
                    self._make(min(moves, key=lambda move: move.cost))
                    found = True
        return found

    def _move(self, at: int) -> _Move | None:
        """The segment at a place by its batches alone, if that is better than by its name."""
        if at >= len(self.placed) or self.placed[at].is_misnamed or self.placed[at].corrections is None:
            return None
        segment, rest = self.placed[at].segment, self.placed[:at] + self.placed[at + 1 :]
        moved = place(segment, None, self._followed_by(self.placed[at], None)._replace(flushed=None))
        to, start, orphan = self._place(moved, rest)
        touched = {row for row in (at - 1, -1 if to is None else to - 1) if row >= 0}
        others = {}
        for row in touched:
            following = start if row + 1 == to else rest[row + 1].base_offset if row + 1 < len(rest) else None
            others[row] = place(rest[row].segment, rest[row].base_offset, self._followed_by(rest[row], following))
        before = others.get(to - 1) if to else None
        if to is not None:
            following = rest[to].base_offset if to < len(rest) else None
            moved = place(segment, start, self._followed_by(moved, following))
        adjoins = before is not None and before.end_offset == moved.first_offset
        if not (adjoins or orphan) and moved.num_right == 1:
            return None  # one batch alone is no witness against a name: its offset is as likely to be wrong
        now = *_sum([self.placed[at], *(rest[row] for row in touched)]), True
        then = *_sum([moved, *others.values()], names=1), not (adjoins or orphan)
        return _Move(then, at, to, moved, others) if then < now else None

    def _place(self, moved: Placed, rest: list[Placed]) -> tuple[int | None, int | None, bool]:
        """The place of a segment with a wrong name among the others, and where it begins.

        That is at its first batch, or before it, where there is an index that lacks its segment; returns whether so.
        """
        directory, first = os.path.dirname(full_path(moved.segment.path)), moved.first_offset
        if first is None:
            first = last_orphan_between(directory, 0, _LAST)
        if first is None:
            return None, None, False
        to = bisect_left(rest, first, key=lambda one: one.base_offset or 0)
        least = max(rest[to - 1].end_offset, (rest[to - 1].base_offset or 0) + 1) if to else 0
        start = last_orphan_between(directory, least, first)
        return to, first if start is None else start, start is not None

    def _followed_by(self, one: Placed, following: int | None) -> Surroundings:
        return one.surroundings._replace(following=following, flushed=self.flushed if following is None else None)

    def _make(self, move: _Move) -> None:
        del self.placed[move.at]
        for row, one in move.others.items():
            self.placed[row] = one
        if move.to is None:
            self.unplaced.append(move.moved)
        else:
            self.placed.insert(move.to, move.moved)


def _sum(placed: list[Placed], names: int = 0) -> tuple[int, int]:
    """Return the cost of several segments, of which a number have wrong names."""
    costs = [one.cost for one in placed]
    return sum(cost[0] for cost in costs) + names, sum(cost[1] for cost in costs)
