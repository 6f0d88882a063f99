"""The records that `kafkacodec consume` prints or writes, and the commits of a group for what was printed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeVar

from kafkacodec.arrow._rows import cells
from kafkacodec.cli.console import note
from kafkacodec.cli.rows._record_text import place_runs
from kafkacodec.cli.rows.consume_range import Key, Range
from kafkacodec.cli.rows.record_rows import NOTHING, Origin, Page
from kafkacodec.datatypes import dataclass, field, replace
from kafkacodec.errors import DeadlineExceeded

if TYPE_CHECKING:
    from kafkacodec import RecordColumns, Search
    from kafkacodec.cli.rows.typed_rows import TypedRecords
    from kafkacodec.client import Consumer
    from kafkacodec.client.consuming.record import ConsumedColumns

__all__ = ["Consumed"]

T = TypeVar("T")

_MAX_ROWS = 8192
_LOOK_SECONDS = 0.25  # how soon the end of a quiet partition is noticed
_SHOWN_SECONDS = 0.2  # how late a record may appear
_UNREACHABLE_SECONDS = 30.0
_COMMIT_SECONDS = 5.0
_ELECTION_SECONDS = 5.0
_NOWHERE = Origin(None, None, "")


@dataclass
class Consumed:
    """The records of a consumer that is assigned to partitions or subscribed to topics.

    Args:
        consumer: gives the records; it does not commit by itself.
        ranges: the offsets to read by partition; empty in a group.
        to_end: in a group: stop when all assigned partitions are read to where they ended when they were assigned.
        search: only these records.
        limit: stop after so many.
        commits: whether to commit what was given out, while reading and at the end.
        advance: called with the number of offsets that were read; in a group or with a limit, of records printed.
        typed: decodes keys and values of what is given out as pages.

    Attributes:
        unread: in a group with `to_end`, the partitions whose end is not known, and why.
    """

    consumer: Consumer
    ranges: Mapping[Key, Range]
    to_end: bool = False
    search: Search | None = None
    limit: int | None = None
    commits: bool = False
    advance: Callable[[int], object] = lambda _: None
    typed: TypedRecords | None = None
    printed: dict[Key, int] = field(default_factory=dict)
    unread: dict[Key, str] = field(default_factory=dict)
    _ends: dict[Key, int] = field(default_factory=dict)
    _count: int = 0
    _commit_at: float = 0.0

    def pages(self) -> Iterator[Page | None]:
        """The records; None where there are no more for now. Commits what was printed, also when it is closed."""
        return self._all(self._pages)

    def tables(self) -> Iterator[RecordColumns]:
        """The records in tables of at least one row."""
        return (table for table in self._all(lambda table: iter([table])) if table)

    def _all(self, given: Callable[[RecordColumns], Iterator[T]]) -> Iterator[T | None]:
        """What is given out of each table; None where there is no more for now."""
        self._ends = {key: part.end for key, part in self.ranges.items() if part.end is not None}
        self.printed = {key: part.start for key, part in self.ranges.items()}
        try:
            if self.limit != 0 and not self._finished():
                yield from self._read(given)
        except (GeneratorExit, KeyboardInterrupt):  # someone waits: the consumer's `close` limits the time
            if self.commits:
                self.commit(wait=False)
            raise
        except BaseException:
            if self.commits:
                self.commit()
            raise
        if self.commits:
            self.commit()

    def _read(self, given: Callable[[RecordColumns], Iterator[T]]) -> Iterator[T | None]:
        shown_at = time.monotonic()
        reachable_by = time.monotonic() + _UNREACHABLE_SECONDS
        while True:
            try:
                for table in self.consumer.columns(max_rows=_MAX_ROWS, timeout=_LOOK_SECONDS):
                    yield from self._rows(table, given)
                    if time.monotonic() >= shown_at + _SHOWN_SECONDS:
                        yield None
                        shown_at = time.monotonic()
                    if self._count == self.limit or self._finished():
                        return
            except DeadlineExceeded:
                if time.monotonic() >= reachable_by:
                    raise
            yield None
            self._positions()
            if self._finished():
                return

    def _rows(self, table: ConsumedColumns, given: Callable[[RecordColumns], Iterator[T]]) -> Iterator[T]:
        """What is given out of the wanted records of a table; after it, where its partitions are read to."""
        if not table.next_offsets.keys() <= self.printed.keys():
            for key, found in _offsets(table):
                self.printed.setdefault(key, found[0])
        count, offsets = self._count, sum(self.printed.values())
        wanted = self._wanted(table)
        yield from given(wanted)
        self._count += len(wanted)
        if self._count == self.limit:
            self.printed |= {key: offsets[-1] + 1 for key, offsets in _offsets(wanted)}
            self.advance(self._count - count)
            return
        for key, offset in table.next_offsets.items():
            end = self._ends.get(key)
            self.printed[key] = offset if end is None else min(offset, end)
        by_offsets = self.ranges and self.limit is None
        self.advance(sum(self.printed.values()) - offsets if by_offsets else self._count - count)
        if self.commits and time.monotonic() >= self._commit_at:
            self.commit()

    def _wanted(self, table: ConsumedColumns) -> RecordColumns:
        """The records that the search finds before the ends, up to the limit."""
        found: RecordColumns = table if self.search is None else self.search.select(table)
        if found and any(offset > self._ends.get(key, offset) for key, offset in table.next_offsets.items()):
            before_end = [
                key not in self._ends or offset < self._ends[key]
                for key, offsets in _offsets(found)
                for offset in offsets
            ]
            found = found.filter(before_end)
        return found if self.limit is None else found.head(self.limit - self._count)

    def _pages(self, table: RecordColumns) -> Iterator[Page | None]:
        """By partition. Where they are committed, one by one: a record counts once it is written."""
        for part, (given, typed) in [(table, NOTHING)] if self.typed is None else self.typed.of(table):
            yield from self._pages_of(Page(_NOWHERE, part, 0, len(part), given, typed))

    def _pages_of(self, whole: Page) -> Iterator[Page | None]:
        assert whole.table is not None
        for key, first, end in _runs(whole.table):
            page = replace(whole.part(first, end), place=Origin(*key, f"{key[0]}-{key[1]}"))
            if not self.commits:
                yield page
                continue
            for row, offset in enumerate(page.cells("offset"), first):
                yield page.part(row, row + 1)
                yield None
                self.printed[key] = offset + 1

    def _positions(self) -> None:
        """What nothing is printed of: positions of partitions that only have records of transactions, or none."""
        for key in self.consumer.assignment():
            if self.to_end and key not in self._ends and key not in self.unread:
                self._look_up_end(key)
            if key in self._ends and self.printed.get(key, -1) < self._ends[key]:
                self.printed[key] = min(self.consumer.position(*key), self._ends[key])

    def _look_up_end(self, key: Key) -> None:
        try:
            self._ends |= self.consumer.end_offsets([key], timeout=_ELECTION_SECONDS)
        except DeadlineExceeded as late:
            self.unread[key] = f"{key[0]}-{key[1]} is not read: {late.__cause__}"
            note(self.unread[key])

    def _finished(self) -> bool:
        keys = list(self.ranges) if self.ranges else self.consumer.assignment() if self.to_end else []
        left = [key for key in keys if key not in self.unread]
        return bool(keys) and all(key in self._ends and self.printed.get(key, -1) >= self._ends[key] for key in left)

    def commit(self, *, wait: bool = True) -> None:
        """Commit what was given out of the partitions that the consumer has; without `wait`, failures are logged.

        With `wait`, it commits the starts of partitions with nothing given out too, so that the group's lag has them.
        """
        self._commit_at = time.monotonic() + _COMMIT_SECONDS
        own = set(self.consumer.assignment())
        offsets = {key: offset for key, offset in self.printed.items() if key in own}
        if wait:  # what was read before an interrupt may not have come here
            known = self.consumer.lag().keys()  # have a position, which need not be waited for
            offsets |= {key: self.consumer.position(*key) for key in known & own - offsets.keys()}
        if offsets:
            self.consumer.commit(offsets, wait=wait)


def _runs(table: RecordColumns) -> Iterator[tuple[Key, int, int]]:
    """Partitions with their first row and the one after their last."""
    for topic, number, first, end in place_runs(table):
        assert topic is not None
        yield (topic, number), first, end


def _offsets(table: RecordColumns) -> Iterator[tuple[Key, list[int]]]:
    """Partitions with the offsets of their rows, in the order of the rows."""
    offsets = cells(table, "offset")
    return ((key, offsets[first:end]) for key, first, end in _runs(table))
