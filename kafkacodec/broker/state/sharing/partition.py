"""One partition of a share group: acquired records with their members and time limits, and the states of records.

A partition's leader keeps this in memory. It returns every change that must survive as ranges for the share
coordinator; the change counts when they are written. A range has the records of one first delivery, as long as all its
records have the same state; afterwards each record has its own delivery.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from kafkacodec.broker.state.sharing.batches import Batch, combined
from kafkacodec.broker.state.sharing.deliveries import (
    ACCEPT,
    GAP,
    REJECT,
    RELEASE,
    RENEW,
    Acknowledged,
    Acquired,
    Dead,
    Wanted,
)
from kafkacodec.datatypes import NamedTuple, dataclass
from kafkacodec.errors import INVALID_RECORD_STATE, INVALID_REQUEST, NONE

__all__ = ["Change", "SharePartition"]

AVAILABLE: Final = 0
ACQUIRED: Final = 1
ACKNOWLEDGED: Final = 2
ARCHIVED: Final = 4

_AFTER: Final = {GAP: ARCHIVED, ACCEPT: ACKNOWLEDGED, RELEASE: AVAILABLE, REJECT: ARCHIVED}
_DONE: Final = (ACKNOWLEDGED, ARCHIVED)
_FEW: Final = 2  # deliveries, of which no one is alone


@dataclass(slots=True)
class _Delivery:
    """The state of a range, or of one record; `before` is its state until a change is written."""

    state: int
    count: int
    member: str = ""
    until: float = 0
    before: tuple[int, int, str, float] | None = None

    def copy(self) -> _Delivery:
        return _Delivery(self.state, self.count, self.member, self.until, self.before)

    @property
    def is_free(self) -> bool:
        return self.state == AVAILABLE and self.before is None


@dataclass(slots=True)
class _Range:
    """Records of one delivery; `each` has a delivery for every record once their states differ."""

    first: int
    last: int
    all: _Delivery
    each: list[_Delivery] | None = None

    def parts(self) -> Iterator[tuple[int, int, _Delivery]]:
        """First and last offset of records in the same state."""
        if self.each is None:
            yield self.first, self.last, self.all
            return
        for offset, delivery in enumerate(self.each, self.first):
            yield offset, offset, delivery

    def split(self) -> list[_Delivery]:
        """A delivery for every record."""
        if self.each is None:
            self.each = [self.all.copy() for _ in range(self.last - self.first + 1)]
        return self.each


class Change(NamedTuple):
    """A change to write, and then to keep, or to undo if the write failed; and the records that it gives up."""

    batches: tuple[Batch, ...]
    deliveries: list[_Delivery]
    dead: list[Dead]


class _Changing:
    """A change in the making."""

    def __init__(self) -> None:
        self._batches: list[Batch] = []
        self._deliveries: list[_Delivery] = []
        self._dead: list[Dead] = []

    def add(self, first: int, last: int, delivery: _Delivery, state: int, kind: int) -> None:
        """Note the new state of records, and the type of acknowledgement that led to it."""
        self._batches.append(Batch(first, last, state, delivery.count))
        self._deliveries.append(delivery)
        if state == ARCHIVED and kind != GAP:
            self._dead.append(Dead(first, last, delivery.count, kind == REJECT))

    def done(self, start: int) -> Change:
        """Return the change; states of records before the start are left out."""
        return Change(combined((), self._batches, start), self._deliveries, self._dead)


class SharePartition:
    """A partition of a group.

    Args:
        start: the first offset to deliver; -1 if unknown.
        batches: states of records from there on.
        max_deliveries: the maximum number of deliveries of a record.
        max_locks: the maximum number of acquired or waiting records.

    Attributes:
        start: the first offset that is not done.
        looked_at: the offset at which a waiting fetch has read the log last; -1 for none.
    """

    def __init__(self, start: int, batches: Iterable[Batch], max_deliveries: int = 5, max_locks: int = 2000) -> None:
        self.start = start
        self.looked_at = -1
        self.limit(max_deliveries, max_locks)
        self._ranges = [
            _Range(b.first_offset, b.last_offset, _Delivery(b.delivery_state, b.delivery_count)) for b in batches
        ]
        self._advance()

    def limit(self, max_deliveries: int, max_locks: int) -> None:
        """Change the limits; what has been given up, or is out, stays so."""
        self._most, self._max_locks = max_deliveries, max_locks
        self._slow = max(2, -(-max_deliveries // 2))  # from this count on, deliveries get smaller

    @property
    def end(self) -> int:
        """The offset after the last delivered one."""
        return max(self.start, self._ranges[-1].last + 1) if self._ranges else self.start

    @property
    def next_offset(self) -> int:
        """The first offset to deliver."""
        expected = self.start
        for range_ in self._ranges:
            if range_.first > expected:
                return expected
            expected = max(expected, range_.last + 1)
            for first, last, delivery in range_.parts():
                if delivery.is_free and last >= self.start:
                    return max(first, self.start)
        return self.end

    @property
    def is_full(self) -> bool:
        """Whether it cannot deliver new records before others are done."""
        return self.next_offset == self.end and self.end - self.start >= self._max_locks

    @property
    def complete(self) -> int:
        """The number of completed records from the start on."""
        return sum(
            last - max(first, self.start) + 1
            for range_ in self._ranges
            for first, last, delivery in range_.parts()
            if delivery.state in _DONE and last >= self.start
        )

    @property
    def first_end(self) -> float | None:
        """The end of the first lock; None if there is none."""
        parts = (delivery for range_ in self._ranges for _, _, delivery in range_.parts())
        return min((one.until for one in parts if one.state == ACQUIRED and one.before is None), default=None)

    # Giving out

    def acquire(self, log: Sequence[tuple[int, int]], wanted: Wanted) -> list[Acquired]:
        """Deliver records that were read.

        Args:
            log: first and last offset of each batch that was read, from the one with `next_offset` on.
            wanted: the limits.
        """
        if not log:
            return []
        most, end = self._room(wanted.records, log[-1][1])
        if most <= 0:
            return []
        wanted = wanted._replace(records=most)
        self._fill(log[0][0])
        first = log[0][0] if self._at(log[0][0]) >= 0 else max(log[0][0], self.start)
        found: list[Acquired] = []
        taken = 0
        for range_ in list(self._ranges[max(0, self._at(first)) :]):
            if range_.first > end or taken >= wanted.records:
                break
            if range_.last < first:
                continue
            if range_.first > first:  # a gap
                fresh = self._fresh(log, first, range_.first - 1, wanted, wanted.records - taken)
                taken += sum(a.last - a.first + 1 for a in fresh)
                found += fresh
            if taken < wanted.records:
                slow = self._is_slow(range_, first, end)
                if slow and taken:
                    return found
                given = self._again(range_, first, end, wanted.records - taken if wanted.strict else end + 1, wanted)
                taken += sum(a.last - a.first + 1 for a in given)
                found += given
                if slow and given:
                    return found
            first = max(first, range_.last + 1)
        if taken < wanted.records and first <= end:
            found += self._fresh(log, first, end, wanted, wanted.records - taken)
        return found

    def _fill(self, first: int) -> None:
        """Note that the log has no record between the next offset and this one."""
        hole = self.next_offset
        at = bisect_right(self._ranges, hole, key=lambda r: r.first)
        is_new = at == 0 or self._ranges[at - 1].last < hole
        if is_new and hole < first:
            last = min(first, self._ranges[at].first if at < len(self._ranges) else first) - 1
            self._ranges.insert(at, _Range(hole, last, _Delivery(ARCHIVED, 0)))
            self._advance()

    def _room(self, records: int, end: int) -> tuple[int, int]:
        """How many records may be delivered now, and up to which offset: no new ones, if too many are out."""
        left = self._max_locks - (self.end - self.start)
        if left > 0:
            return min(records, left), end
        return min(records, self.end - self.next_offset), min(end, self.end - 1)

    def _is_slow(self, range_: _Range, first: int, end: int) -> bool:
        """Whether available records of a range have failed so often that fewer are delivered together."""
        parts = (part for low, high, part in range_.parts() if high >= first and low <= end)
        return any(part.is_free and part.count >= self._slow for part in parts)

    def _again(self, range_: _Range, first: int, end: int, limit: int, wanted: Wanted) -> list[Acquired]:
        """Deliver available records of a range again; those that may be delivered only once more, alone."""
        size = range_.last - range_.first + 1
        if range_.each is None:
            if not range_.all.is_free:
                return []
            is_whole = first <= range_.first and range_.last <= end and size <= limit
            if is_whole and range_.all.count < self._slow:
                self._give(range_.all, wanted)
                return [Acquired(range_.first, range_.last, range_.all.count)]
        found: list[Acquired] = []
        taken, fewer = 0, 0
        for offset, delivery in enumerate(range_.split(), range_.first):
            if not (first <= offset <= end and delivery.is_free):
                continue
            is_last = delivery.count == self._most - 1 and self._most > _FEW
            if is_last and taken:
                break
            if delivery.count >= self._slow and not fewer:
                fewer = max(1, size >> (delivery.count - self._slow + 1))
            self._give(delivery, wanted)
            taken += 1
            last = found[-1] if found else None
            if last is not None and last.last == offset - 1 and last.delivery == delivery.count:
                found[-1] = last._replace(last=offset)
            else:
                found.append(Acquired(offset, offset, delivery.count))
            if is_last or taken in (limit, fewer):
                break
        return found

    def _give(self, delivery: _Delivery, wanted: Wanted) -> None:
        delivery.state, delivery.member, delivery.until = ACQUIRED, wanted.member, wanted.until
        delivery.count += 1

    def _fresh(self, log: Sequence[tuple[int, int]], first: int, end: int, wanted: Wanted, most: int) -> list[Acquired]:
        """Deliver records for the first time."""
        ends = [last for _, last in log]
        strict = wanted.strict and end - first + 1 > most
        if end - first + 1 > most:
            end = min(end, ends[bisect_left(ends, first + most - 1)])
        cuts = [end]
        if not wanted.strict and end - first + 1 > wanted.batch:
            cuts = self._cuts(ends, first, end, wanted.batch)
        found = []
        for last in cuts:
            made = _Range(first, last, _Delivery(ACQUIRED, 1, wanted.member, wanted.until))
            if strict and last - first + 1 > most:
                for delivery in made.split()[most:]:
                    delivery.state, delivery.count, delivery.member = AVAILABLE, 0, ""
                found.append(Acquired(first, first + most - 1, 1))
            else:
                found.append(Acquired(first, last, 1))
            self._ranges.insert(bisect_left(self._ranges, first, key=lambda r: r.first), made)
            first = last + 1
        return found

    @staticmethod
    def _cuts(ends: Sequence[int], first: int, end: int, size: int) -> list[int]:
        """Return the ends of ranges of about a size, at ends of batches of the log."""
        cuts = []
        for last in ends:
            if first <= last < end and last - first + 1 >= size:
                cuts.append(last)
                first = last + 1
        return [*cuts, end]

    def archive(self, first: int, last: int) -> None:
        """Archive records that were just delivered, such as records of aborted transactions."""
        for range_, low, high in self._within(first, last):
            for delivery in range_.split()[low - range_.first : high - range_.first + 1]:
                delivery.state, delivery.member = ARCHIVED, ""
        self._advance()

    # What members say

    def acknowledge(self, member: str, said: Iterable[Acknowledged], until: float) -> Change | int:
        """Apply a member's acknowledgements until they are written; or return an error code and apply nothing.

        Args:
            member: the member.
            said: its acknowledgements.
            until: the end of renewed locks.
        """
        change = _Changing()
        every = list(said)
        for number, one in enumerate(every, 1):
            code = self._misses(one, is_last=number == len(every)) or self._say(member, one, until, change)
            if code:
                self.undo(change.done(0))
                return code
        return change.done(0)

    def has_lost(self, one: Acknowledged) -> bool:
        """Whether an acknowledgement begins before the start and reaches over it, where nothing is delivered."""
        return one.first < self.start <= one.last and self._at(one.first) < 0 and self._at(self.start) < 0

    def _at(self, offset: int) -> int:
        """The number of the last range that begins at or before an offset; -1 for none."""
        return bisect_right(self._ranges, offset, key=lambda r: r.first) - 1

    def _misses(self, one: Acknowledged, *, is_last: bool) -> int:
        """The error of an acknowledgement of offsets that were not delivered; it follows
        `kafka.server.share.SharePartition`.
        """
        if one.last < self.start:
            return NONE  # done, or deleted
        if self._at(one.first) < 0 and (one.first >= self.start or self._at(self.start) < 0):
            return INVALID_RECORD_STATE
        end = self._ranges[self._at(one.last)].last
        return INVALID_REQUEST if end < one.first or (is_last and end < one.last) else NONE

    def _say(self, member: str, one: Acknowledged, until: float, change: _Changing) -> int:
        if one.last < self.start:
            return NONE
        expected = max(one.first, self.start)
        for range_, low, high in self._within(expected, one.last):
            if low > expected:
                return INVALID_RECORD_STATE
            expected = high + 1
            whole = range_.each is None and len(one.types) == 1 and (low, high) == (range_.first, range_.last)
            if range_.each is None and (range_.all.state, range_.all.member) != (ACQUIRED, member):
                return INVALID_RECORD_STATE
            if not whole:
                range_.split()
            for first, last, delivery in range_.parts():
                if last < low or first > high:
                    continue
                kind = one.types[0] if len(one.types) == 1 else one.types[first - one.first]
                if delivery.state != ACQUIRED or delivery.member != member or delivery.before is not None:
                    return INVALID_RECORD_STATE
                if kind == RENEW:
                    delivery.until = until
                else:
                    change.add(first, last, delivery, self._change(delivery, _AFTER[kind]), kind)
        return NONE if expected > one.last else INVALID_RECORD_STATE

    def _change(self, delivery: _Delivery, state: int) -> int:
        delivery.before = delivery.state, delivery.count, delivery.member, delivery.until
        if state == AVAILABLE and delivery.count >= self._most:
            state = ARCHIVED
        delivery.state, delivery.member = state, ""
        return state

    def release(self, member: str) -> Change:
        """Release all records of a member, until that is written."""
        return self._free(lambda delivery: delivery.member == member)

    def expire(self, now: float) -> Change:
        """Free all whose time is up, until that is written."""
        return self._free(lambda delivery: delivery.until <= now)

    def _free(self, chosen: Callable[[_Delivery], bool]) -> Change:
        change = _Changing()
        for range_ in self._ranges:
            if range_.each is None and range_.first < self.start <= range_.last and range_.all.state == ACQUIRED:
                range_.split()
            for first, last, delivery in range_.parts():
                if delivery.state == ACQUIRED and delivery.before is None and chosen(delivery):
                    state, kind = (ARCHIVED, GAP) if last < self.start else (AVAILABLE, RELEASE)
                    change.add(first, last, delivery, self._change(delivery, state), kind)
        return change.done(0)

    def done(self, change: Change) -> None:
        """It is written."""
        for delivery in change.deliveries:
            delivery.before = None
        self._advance()

    def undo(self, change: Change) -> None:
        """It could not be written."""
        for delivery in change.deliveries:
            if delivery.before is not None:
                delivery.state, delivery.count, delivery.member, delivery.until = delivery.before
                delivery.before = None

    # The start

    def begin(self, offset: int) -> None:
        """Set the start."""
        self.start = offset

    def delete_before(self, offset: int) -> None:
        """Note the log's new start: earlier records are no longer delivered. Those that are out stay so for now."""
        if offset <= self.start:
            return
        for range_, low, high in self._within(self.start, offset - 1):
            if range_.each is None and range_.all.state != AVAILABLE:
                continue
            is_whole = range_.each is None and (low, high) == (range_.first, range_.last)
            gone = [range_.all] if is_whole else range_.split()[low - range_.first : high - range_.first + 1]
            for delivery in gone:
                if delivery.state == AVAILABLE:
                    delivery.state, delivery.before = ARCHIVED, None
        self.start = offset

    def _advance(self) -> None:
        """Move the start to the first record that is not done."""
        gone = 0
        at = self._at(self.start)
        if at >= 0 and self._ranges[at].last < self.start and self._ranges[at].each is not None:
            return  # the log's start has passed everything; Apache Kafka keeps such records, too
        for range_ in self._ranges:
            if range_.first > self.start:
                break  # records in between were delivered, and no state of them was written
            undone = self._undone(range_)
            self.start = max(self.start, undone)
            if undone <= range_.last:
                break
            gone += 1
        del self._ranges[:gone]

    def _undone(self, range_: _Range) -> int:
        for first, _, delivery in range_.parts():
            if delivery.state not in _DONE or delivery.before is not None:
                return first
        return range_.last + 1

    def _within(self, first: int, last: int) -> Iterator[tuple[_Range, int, int]]:
        """Return the ranges with some of these offsets, and the first and last of them in each."""
        for range_ in self._ranges[max(0, self._at(first)) :]:
            if range_.first > last:
                return
            if range_.last >= first:
                yield range_, max(first, range_.first), min(last, range_.last)
