"""Detection and restoration of wrong offsets in a segment. These functions decide; they read no files.

A batch's checksum does not cover its base offset. But batches of a segment have increasing offsets, between the
segment's name and the next one's, and each needs room for all of its offsets. Offsets that agree with most of their
surroundings are kept. The others are restored if the right ones are certain: the batch fills the gap in which it lies,
an index names it, or the sequence numbers of its producer fix it.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from kafkacodec.datatypes import NamedTuple, dataclass, replace
from kafkacodec.log.order.chains import knots, longest_chain

Ints = npt.NDArray[np.signedinteger[Any]]
Flags = npt.NDArray[np.bool_]

NONE = -1
"""No offset is claimed; also the base offset of a batch whose offsets stay unknown."""

OFFSETS_OF_SEGMENT = 1 << 31
"""How many offsets a segment may have: its indexes have 31 bits for an offset after its base offset."""

_LAST = (1 << 63) - 1
_FIRST, _END = -1, -2  # the rows that stand for bounds


@dataclass(frozen=True)
class Batches:
    """The headers of a segment's intact batches, in the order of the file; an array each.

    Attributes:
        base, last: the first and last offset as written; of a compressed message set of magic 0 both are the last one.
        stated: the offset in the header: the last one of a compressed message set, else the first one.
        exact: the number of offsets from `base` to `last` is known: not for these sets.
        position, size: in the file, in bytes.
        producer, producer_epoch, sequence: of idempotent producers; -1: none.
        indexed, timed: the last offset of the batch by the offset index and by the time index; `NONE`: no entry.
    """

    base: Ints
    last: Ints
    stated: Ints
    exact: Flags
    position: Ints
    size: Ints
    producer: Ints
    producer_epoch: Ints
    sequence: Ints
    indexed: Ints
    timed: Ints

    def only(self, rows: Flags) -> Batches:
        """Some of them."""
        return Batches(*(getattr(self, name)[rows] for name in Batches.__annotations__))

    @cached_property
    def span(self) -> Ints:
        """How many offsets each batch has."""
        span: Ints = np.maximum(self.last - self.base + 1, 1)
        return span

    def differing_bits(self, row: int, base: int) -> int:
        """The number of bits in which the offset in a batch's header differs from the one for another base offset."""
        stated = int(self.stated[row])
        return (stated ^ (stated + base - int(self.base[row]))).bit_count()


class Bounds(NamedTuple):
    """Bounds with which the offsets of a segment must agree; None: unknown.

    Attributes:
        first: where they begin, by the segment's name.
        end: where those of the next segment begin, by its name.
        flushed: up to which offset a broker had the log on disk. If it fits exactly, the log ends there.
    """

    first: int | None = None
    end: int | None = None
    flushed: int | None = None


class Placement(NamedTuple):
    """The verdict on a segment.

    Attributes:
        wrong: which batches have a wrong offset.
        base: the right base offset of each batch; `NONE` if it stays unknown.
        bounds: those that agree with the batches.
    """

    wrong: Flags
    base: Ints
    bounds: Bounds


def in_order(base: Ints, last: Ints, bounds: Bounds, before: int = -1) -> bool:
    """Whether batches agree with each other and with the bounds; `before`: the last offset before them."""
    if not len(base):
        return True
    ends = bounds.end is None or int(last[-1]) < bounds.end
    begins = int(base[0]) > before and int(base[0]) >= (bounds.first or 0)
    return begins and ends and bool((base[1:] > last[:-1]).all() and (last >= base).all())


def judge(batches: Batches, bounds: Bounds, end_position: int | None = None, *, has_index: bool = True) -> Placement:
    """The verdict on all batches of a segment.

    Args:
        batches: the intact ones, in the order of the file.
        bounds: what they must agree with.
        end_position: where the file ends, in bytes; None: batches may be lost after the last one.
        has_index: whether there is an index of the segment's name.
    """
    if not len(batches.base):
        return Placement(np.zeros(0, np.bool_), batches.base, bounds)
    found = _judge(batches, bounds, end_position)
    wrong = np.flatnonzero(found.wrong)
    if len(wrong) != 1 or found.base[wrong[0]] != NONE:
        return found
    # One batch contradicts one name: both may be wrong.
    one_bit = _may_be_one_bit_off(batches, found.bounds, ~found.wrong, int(wrong[0]))
    sure = has_index and _indexes_agree(batches, int(wrong[0]))
    for other, doubtful in (
        (bounds._replace(first=None), not (sure and one_bit)),
        (bounds._replace(end=None), not one_bit),
        (bounds._replace(first=None, end=None), not sure),
    ):
        if doubtful and other != found.bounds:
            without = _judge(batches, other, end_position)
            if not without.wrong.any():
                return without
    return found


def judge_without(
    left_out: Flags, batches: Batches, bounds: Bounds, end_position: int | None = None, *, has_index: bool = True
) -> Placement:
    """As `judge`, of the other batches; those left out have wrong offsets, and the right ones are unknown."""
    rows = ~left_out
    found = judge(batches.only(rows), bounds, end_position, has_index=has_index)
    base = np.full_like(batches.base, NONE)
    base[rows] = found.base
    return Placement(base != batches.base, base, found.bounds)


def _judge(batches: Batches, bounds: Bounds, end_position: int | None) -> Placement:
    following = np.append(batches.position[1:], -1 if end_position is None else end_position)
    adjoins = following == batches.position + batches.size
    whole = bool(adjoins[:-1].all()) and batches.position[0] == 0
    if not whole:  # entries of the time index may be those of batches that are lost
        batches = replace(batches, timed=np.full_like(batches.timed, NONE))
    right, bounds = _largest_agreement(batches, bounds)
    evidence = _Evidence(batches, right)
    base = batches.base.copy()
    if whole:
        _question(batches, bounds, right, base, evidence)
    for first, end in _runs(~right):
        start, stop = room = _room(batches, bounds, base, first, end)
        if stop is None and bounds.flushed == int(start) + int(batches.span[first:end].sum()):
            room = start, bounds.flushed
        free = _free(batches, bounds, right, first, end)
        _restore(batches, evidence, base, (first, end), room, adjoins, free)
    return Placement(base != batches.base, base, bounds)


def _largest_agreement(batches: Batches, bounds: Bounds) -> tuple[Flags, Bounds]:
    """The most batches whose offsets increase, and the bounds that agree with them.

    Among several choices, the one with the most batches that an index names, or that fit exactly: between the batches
    before and after those that are left out, there is the room that these need.
    """
    possible = _possible(batches, bounds)
    right = possible.copy()
    rows = np.flatnonzero(right)
    # The same for batches between which there is exactly the room for those in between.
    ends = np.cumsum(batches.span)
    fit = batches.base - ends + batches.span
    named = ((batches.indexed == batches.last) | (batches.timed == batches.last)).astype(np.int64)
    table = np.array([np.arange(len(fit)), batches.base, batches.last, fit, named])[:, rows]
    if bounds.first is not None:
        table = np.insert(table, 0, (_FIRST, bounds.first - 1, bounds.first - 1, bounds.first, 1), axis=1)
    if bounds.end is not None:
        table = np.insert(table, table.shape[1], (_END, bounds.end, bounds.end, bounds.end - int(ends[-1]), 1), axis=1)
    rows, base, last, fit, named = table
    for first, end in knots(base, last):
        part = rows[first:end]
        right[part[part >= 0]] = False
        # From the end, which prefers the first of equal choices.
        columns = (column[first:end][::-1] for column in (-last, -base, fit, named))
        chosen = part[::-1][longest_chain(*(column.tolist() for column in columns))]
        right[chosen[chosen >= 0]] = True
        if _FIRST in part and _FIRST not in chosen:
            bounds = bounds._replace(first=None)
        if _END in part and _END not in chosen:
            bounds = bounds._replace(end=None)
    _reconsider(batches, bounds, right, possible)
    return right, bounds


def _possible(batches: Batches, bounds: Bounds) -> Flags:
    """Which batches have offsets near those of most others, as the indexes of a segment need it."""
    known = [bound for bound in bounds[:2] if bound is not None]
    middle = int(np.sort(np.append(batches.base, np.array(known, np.int64)))[(len(batches.base) + len(known) - 1) // 2])
    near = np.abs(np.maximum(batches.base, 0) - middle) < OFFSETS_OF_SEGMENT
    possible: Flags = near & (batches.base >= 0) & (batches.last >= batches.base)
    return possible


def _reconsider(batches: Batches, bounds: Bounds, right: Flags, possible: Flags) -> None:
    """Exchange a batch that was left out for the one before or after it, if a single bit explains only that one.

    Order alone does not tell which of two is wrong, if there is room on both sides of them.
    """
    for row, end in _runs(~right):
        if end != row + 1 or not possible[row] or _one_bit_off(batches, bounds, right, row):
            continue
        for other in (row - 1, end):
            if not 0 <= other < len(right) or not right[other]:
                continue
            right[row], right[other] = True, False
            if _fits(batches, bounds, right, row) and _one_bit_off(batches, bounds, right, other):
                break
            right[row], right[other] = False, True


def _between(batches: Batches, bounds: Bounds, right: Flags, row: int) -> tuple[int, int]:
    """The smallest and the largest offset between the next right batches before and after a row, near it."""
    before, after = row - 1, row + 1
    while before >= max(0, row - 2) and not right[before]:
        before -= 1
    while after < min(len(right), row + 3) and not right[after]:
        after += 1
    least = int(batches.last[before]) + 1 if before >= 0 and right[before] else (bounds.first or 0)
    most = int(batches.base[after]) - 1 if after < len(right) and right[after] else _most(bounds)
    return least, most


def _most(bounds: Bounds) -> int:
    """The largest offset that a batch may have."""
    return (_LAST if bounds.end is None else bounds.end) - 1


def _fits(batches: Batches, bounds: Bounds, right: Flags, row: int) -> bool:
    """Whether a batch, as written, is between its neighbours."""
    least, most = _between(batches, bounds, right, row)
    return least <= int(batches.base[row]) <= int(batches.last[row]) <= most


def _indexes_agree(batches: Batches, row: int) -> bool:
    """Whether the entries of the indexes, which count from the segment's name, fit the batches; that of `row` is wrong.

    If they are about no other batch, they fit if what they say of this one is one bit off, or between its neighbours.
    """
    named = (batches.indexed != NONE) | (batches.timed != NONE)
    if not named.any() or (named & ((batches.indexed == batches.last) | (batches.timed == batches.last))).any():
        return True
    if not named[row] or np.count_nonzero(named) > 1:
        return False
    last = int(max(batches.indexed[row], batches.timed[row]))
    if batches.differing_bits(row, last - int(batches.span[row]) + 1) == 1:
        return True  # no other name makes it so near
    if row == 0:
        return False
    following = int(batches.base[row + 1]) if row + 1 < len(batches.base) else last + 1
    return int(batches.last[row - 1]) <= last - int(batches.span[row]) and last < following


def _may_be_one_bit_off(batches: Batches, bounds: Bounds, right: Flags, row: int) -> bool:
    """As `_one_bit_off`, of a last batch too, which may have any offset."""
    return (row == len(right) - 1 and bounds.end is None) or _one_bit_off(batches, bounds, right, row)


def _one_bit_off(batches: Batches, bounds: Bounds, right: Flags, row: int) -> bool:
    """Whether a batch would be between its neighbours with one other bit in its base offset."""
    if row == len(right) - 1 and bounds.end is None:
        return False  # it could have any offset
    least, most = _between(batches, bounds, right, row)
    stated, span = int(batches.stated[row]), int(batches.span[row])
    before = stated - int(batches.base[row])  # how far the offset in the header is from the first one
    return any(least <= (stated ^ (1 << bit)) - before <= most - span + 1 for bit in range(63))


class _Evidence:
    """What indexes and producers' sequences say about batches, seen from those that are right."""

    def __init__(self, batches: Batches, right: Flags) -> None:
        self.batches = batches
        self._claims = [(claim, *_agreement(claim, batches.last, right)) for claim in (batches.indexed, batches.timed)]
        self._before, self._after = _same_producer(batches, right)

    def base_of(self, row: int, room: tuple[int, int | None]) -> int | None:
        """The base offset of a batch, inside the room for it; None: unknown."""
        if not self.batches.exact[row]:
            return None
        span = int(self.batches.span[row])
        start, stop = room
        for last in (*self._indexed(row), self._sequenced(row, start)):
            if last is not None and last - span + 1 >= start and (stop is None or last < stop):
                return last - span + 1
        return None

    def disputes(self, rows: Ints) -> Flags:
        """Which batches have another offset by an index, or by the batches of its producer around it."""
        found = np.zeros(len(rows), np.bool_)
        for claim, *_ in self._claims:
            found |= (claim[rows] != NONE) & (claim[rows] != self.batches.last[rows])
        found |= self.misfits[rows]
        return found

    @cached_property
    def misfits(self) -> Flags:
        """Which batches have offsets that the sequences of their producer exclude, by its batches before and after.

        From one batch of a producer to the next, offsets increase by as much as sequences, or by more.
        """
        shift = self.batches.base - self.batches.sequence
        before, after = self._before, self._after
        between = (before >= 0) & (after >= 0) & (shift[before] <= shift[after])
        found: Flags = between & ((shift < shift[before]) | (shift > shift[after]))
        return found

    def excludes(self, row: int) -> bool:
        """Whether a batch certainly has a wrong offset by the sequences: those around it agree with theirs."""
        misfits = self.misfits
        return bool(misfits[row] and not misfits[self._before[row]] and not misfits[self._after[row]])

    def _indexed(self, row: int) -> list[int]:
        """The last offset of a batch by the indexes whose other entries are right.

        Brokers have indexed several batches that they appended at once by the last one's offset, or by the first one's.
        """
        found = [
            int(claim[row]) for claim, agree, differ in self._claims if claim[row] != NONE and agree and differ <= 1
        ]
        one, other = int(self.batches.indexed[row]), int(self.batches.timed[row])
        return [*found, one] if one == other != NONE else found

    def _sequenced(self, row: int, start: int) -> int | None:
        """The last offset of a batch whose producer wrote all records around it, or that follows its last batch."""
        before, after, batches = int(self._before[row]), int(self._after[row]), self.batches
        if before < 0:
            return None
        shift = int(batches.base[before] - batches.sequence[before])
        if after >= 0:
            sure = int(batches.base[after] - batches.sequence[after]) == shift
        else:
            sure = before == row - 1 and row == len(batches.base) - 1 and shift + int(batches.sequence[row]) == start
        return shift + int(batches.sequence[row]) + int(batches.span[row]) - 1 if sure else None


def _agreement(claim: Ints, last: Ints, right: Flags) -> tuple[int, int]:
    """How many entries of an index agree with batches that are right, and how many do not."""
    rows = right & (claim != NONE)
    agree = int(np.count_nonzero(claim[rows] == last[rows]))
    return agree, int(np.count_nonzero(rows)) - agree


def _same_producer(batches: Batches, right: Flags) -> tuple[Ints, Ints]:
    """For each batch, the nearest one before and after it that is right and has the same producer and epoch; or -1."""
    before, after = np.full(len(right), -1, np.int64), np.full(len(right), -1, np.int64)
    rows = np.flatnonzero((batches.producer >= 0) & (batches.sequence >= 0))
    order = rows[np.lexsort((rows, batches.producer_epoch[rows], batches.producer[rows]))]
    if len(order):
        producer, epoch = batches.producer[order], batches.producer_epoch[order]
        group = np.cumsum(np.append(True, (producer[1:] != producer[:-1]) | (epoch[1:] != epoch[:-1])))
        before[order] = _nearest(order, group, right)
        after[order] = _nearest(order[::-1], group[::-1], right)[::-1]
    return before, after


def _nearest(order: Ints, group: Ints, right: Flags) -> Ints:
    """For each row, the last one before it in this order that is right and of the same group; -1: none."""
    places = np.where(right[order], np.arange(len(order)), -1)
    latest = np.append(-1, np.maximum.accumulate(places)[:-1])
    same = (latest >= 0) & (group[latest] == group)
    return np.where(same, order[latest], -1)


def _question(batches: Batches, bounds: Bounds, right: Flags, base: Ints, evidence: _Evidence) -> None:
    """Move batches that agree with their neighbours, but lie in a gap where other evidence has them elsewhere."""
    rows = np.flatnonzero(right)
    disputed = evidence.disputes(rows)
    if right[-1] and bounds.end is None and bounds.flushed is not None:
        disputed[-1] |= bounds.flushed != batches.last[-1] + 1
    for row in rows[disputed].tolist():
        if not (row == 0 or right[row - 1]) or not (row + 1 == len(right) or right[row + 1]):
            continue
        start, stop = room = _room(batches, bounds, base, row, row + 1)
        # An index may be wrong as well: the batch is right where it adjoins another.
        adjoins = start == batches.base[row] or stop == batches.last[row] + 1
        found = None if adjoins else evidence.base_of(row, room)
        if found is None and not adjoins and stop is None and bounds.flushed == start + batches.span[row]:
            found = start
        if found is None and not adjoins and evidence.excludes(row):
            found = NONE
        if found is not None:
            base[row] = found


def _runs(flags: Flags) -> list[tuple[int, int]]:
    """The first row of each run of set flags, and the one after its last."""
    edges = np.flatnonzero(np.diff(flags.astype(np.int8), prepend=0, append=0))
    return [(int(first), int(end)) for first, end in edges.reshape(-1, 2)]


def _free(batches: Batches, bounds: Bounds, right: Flags, first: int, end: int) -> bool:
    """Whether there is room for batches with wrong offsets where these are, among the right ones and the bounds."""
    rows = np.flatnonzero(right)
    least = _LAST if bounds.first is None else bounds.first
    most = bounds.flushed if bounds.end is None else bounds.end
    ends = np.append(least, batches.last[rows] + 1)
    starts = np.append(batches.base[rows], -1 if most is None else most)
    place = np.searchsorted(batches.last[rows], batches.base[first:end])
    return bool(((ends[place] <= batches.base[first:end]) & (batches.last[first:end] < starts[place])).any())


def _room(batches: Batches, bounds: Bounds, base: Ints, first: int, end: int) -> tuple[int, int | None]:
    """The first offset that rows [first, end) may have, and the one after the last; None: without end."""
    start = (bounds.first or 0) if first == 0 else int(base[first - 1] + batches.span[first - 1])
    return start, bounds.end if end == len(base) else int(base[end])


def _restore(
    batches: Batches,
    evidence: _Evidence,
    base: Ints,
    rows: tuple[int, int],
    room: tuple[int, int | None],
    adjoins: Flags,
    free: bool,
) -> None:
    """Set the base offsets of batches that have wrong ones: to those that are certain, else to `NONE`.

    `adjoins` tells of each batch that no bytes are between it and the next one, where batches are lost; `free`, that
    the written offsets are those of no other batch: then the order of the batches may be wrong.
    """
    (first, end), (start, stop) = rows, room
    span = batches.span[first:end]
    base[first:end] = NONE
    begins = adjoins[first - 1] if first else batches.position[0] == 0
    whole = bool(begins and adjoins[first:end].all() and batches.exact[first:end].all())
    if whole and not free and stop is not None and stop - start == int(span.sum()):
        base[first:end] = start + np.cumsum(span) - span
        return
    for row in range(first, end):
        found = evidence.base_of(row, (start, stop))
        if found is not None:
            base[row] = found
            start = found + int(batches.span[row])
