"""Differences between two copies of a log: offsets that only one has, and changed records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from kafkacodec.datatypes import NamedTuple, dataclass, field
from kafkacodec.errors import CorruptRecord, DecodeError
from kafkacodec.log.files.access import note
from kafkacodec.log.order.continuity import ALWAYS_COMPACTED
from kafkacodec.log.partitions.inside import origin_of, readable_end_offset
from kafkacodec.log.partitions.partition import Partition
from kafkacodec.named_rows import Tabular, fields_of
from kafkacodec.records.columns import RecordColumns
from kafkacodec.records.comparing import COMPARED, differing

__all__ = ["ChangedRecord", "Difference", "OffsetRange", "compare"]

DEFAULT_LIMIT = 1000
"""The number of ranges and records that a difference lists; its counts include the others."""

_COLUMNS = ("offset", *COMPARED)
_ROWS = 65536
_BYTES = 4 << 20

Cause = Literal["start", "end", "compacted", "missing"]


class OffsetRange(NamedTuple):
    """Records that only one copy has, one after another in that copy.

    Attributes:
        first_offset, last_offset (int): of these records.
        num_records (int): their number.
        cause (str): why the other copy lacks them, as far as its files show:
            ``start``: its log starts after them, since older records were deleted; ``end``: its log ends before them;
            ``compacted``: the log cleaner has been there; ``missing``: none of these.
    """

    first_offset: int
    last_offset: int
    num_records: int
    cause: Cause


class ChangedRecord(NamedTuple):
    """A record of both copies with different content: `columns` of ``timestamp, key, value, headers``."""

    offset: int
    columns: tuple[str, ...]


@dataclass
class Difference(Tabular):
    """The comparison of two copies of a partition, regardless of batches and compression.

    Its table, in notebooks and of `to_arrow` and its siblings, has the ranges of each side and the changed records.

    Attributes:
        topic (str | None), partition (int | None): which; None if unknown.
        a, b (str | None): the directories, or files if one was named; None if a side does not have the partition.
        a_records, b_records (int): the numbers of records.
        equal_records (int): the number of equal records.
        a_only, b_only (int): records that only one side has.
        changed (int): records with the same offset and different content.
        changed_columns (Counter[str]): the number of these by differing column.
        a_ranges, b_ranges (list[OffsetRange]): the first ranges that only one side has.
        records (list[ChangedRecord]): the first changed records.
        problems (list[DecodeError]): unreadable places on either side.
    """

    topic: str | None
    partition: int | None
    a: str | None
    b: str | None
    a_records: int = 0
    b_records: int = 0
    equal_records: int = 0
    a_only: int = 0
    b_only: int = 0
    changed: int = 0
    changed_columns: Counter[str] = field(default_factory=Counter)
    a_ranges: list[OffsetRange] = field(default_factory=list)
    b_ranges: list[OffsetRange] = field(default_factory=list)
    records: list[ChangedRecord] = field(default_factory=list)
    problems: list[DecodeError] = field(default_factory=list)

    @property
    def equal(self) -> bool:
        """Whether both sides have the partition with the same records, and all of it is readable."""
        there = self.a is not None and self.b is not None
        return there and not (self.a_only or self.b_only or self.changed or self.problems)

    def _caption(self) -> str:
        return f"Difference of {self.topic}-{self.partition}: {self.equal_records:,} equal records"

    def _columns(self) -> Mapping[str, Any]:
        return {"side": str, **fields_of(OffsetRange), "columns": list[str]}

    def _rows(self) -> Iterator[dict[str, Any]]:
        for side, ranges in (("a", self.a_ranges), ("b", self.b_ranges)):
            for part in ranges:
                yield {"side": side, **part._asdict(), "columns": []}
        for offset, columns in self.records:
            where = {"first_offset": offset, "last_offset": offset, "num_records": 1}
            yield {"side": "both", **where, "cause": "changed", "columns": list(columns)}

    def to_dict(self) -> dict[str, Any]:
        """Everything for JSON; problems as text."""
        return vars(self) | {
            "changed_columns": dict(sorted(self.changed_columns.items())),
            "a_ranges": [part._asdict() for part in self.a_ranges],
            "b_ranges": [part._asdict() for part in self.b_ranges],
            "records": [record._asdict() for record in self.records],
            "problems": [str(problem) for problem in self.problems],
            "equal": self.equal,
        }


def compare(a: Partition, b: Partition, limit: int = DEFAULT_LIMIT) -> Difference:
    """Compare two copies of a partition chunk by chunk; see `kafkacodec.log.diff`."""
    found = Difference(a.topic, a.partition, origin_of(a), origin_of(b))
    left, right = _Side(a, found.problems), _Side(b, found.problems)
    only_left, only_right = _Ranges(b, found.a_ranges, limit), _Ranges(a, found.b_ranges, limit)
    while (bound := _least(left.last(), right.last())) is not None:
        mine, theirs = left.take(bound), right.take(bound)
        a_keys, b_keys = _keys(mine.offsets, theirs.offsets)
        at = np.searchsorted(b_keys, a_keys)
        at[at == len(b_keys)] = -1
        both = b_keys[at] == a_keys if len(b_keys) else np.zeros(len(a_keys), np.bool_)
        common = np.zeros(len(b_keys), np.bool_)
        common[at[both]] = True
        only_left.add(mine.offsets, ~both)
        only_right.add(theirs.offsets, ~common)
        if both.any():
            _compare_rows(found, mine, mine.rows[both], theirs, theirs.rows[common], limit)
    found.a_only, found.b_only = only_left.num_records, only_right.num_records
    found.a_records, found.b_records = left.num_records, right.num_records
    return found


def _least(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else min(a, b)


class _Window(NamedTuple):
    """Rows of a chunk, and their offsets, which do not decrease."""

    chunk: RecordColumns | None
    rows: npt.NDArray[np.intp]
    offsets: npt.NDArray[np.int64]


_NO_ROWS = _Window(None, np.empty(0, np.intp), np.empty(0, np.int64))


class _Side:
    """The records of one copy, of which one chunk is in memory."""

    def __init__(self, partition: Partition, problems: list[DecodeError]) -> None:
        self.path = partition.path
        self.problems = problems
        self.num_records = 0
        self._chunks: Iterator[RecordColumns] = partition.read(
            columns=_COLUMNS, include_control=True, on_error="skip", gaps="accept", max_rows=_ROWS, max_bytes=_BYTES
        )
        self._window = _NO_ROWS
        self._before = -1

    def last(self) -> int | None:
        """The last offset of the chunk in memory; None at the end of the log."""
        while not len(self._window.rows):
            chunk = next(self._chunks, None)
            if chunk is None:
                return None
            self._window = self._sorted(chunk)
        return int(self._window.offsets[-1])

    def take(self, bound: int) -> _Window:
        """The next rows of the chunk, those up to an offset."""
        chunk, rows, offsets = self._window
        stop = int(np.searchsorted(offsets, bound, "right"))
        self._window = _Window(chunk, rows[stop:], offsets[stop:])
        return _Window(chunk, rows[:stop], offsets[:stop])

    def _sorted(self, chunk: RecordColumns) -> _Window:
        """The rows of a chunk, without those whose offsets are before others that precede them: a problem."""
        for problem in chunk.problems:
            if isinstance(problem.exception, DecodeError):
                note(self.problems, problem.exception)
        self.num_records += len(chunk)
        offsets = chunk["offset"]
        if not len(chunk):
            return _NO_ROWS
        highest = np.maximum(np.maximum.accumulate(offsets), self._before + 1)
        rows = np.flatnonzero(offsets >= highest)
        if len(rows) < len(offsets):
            wrong = int(np.flatnonzero(offsets < highest)[0])
            text = (
                f"offset {offsets[wrong]} follows offset {max(int(highest[wrong]), self._before)}; it is not compared"
            )
            note(self.problems, CorruptRecord(text, path=self.path))
        self._before = int(highest[-1])
        return _Window(chunk, rows, offsets[rows])


def _keys(a: npt.NDArray[np.int64], b: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Offsets as keys without duplicates. Before Kafka 0.8, messages compressed together have the same offset."""
    a_rank, b_rank = _ranks(a), _ranks(b)
    most = max(int(a_rank.max(initial=0)), int(b_rank.max(initial=0)))
    if not most:
        return a, b
    first = min(int(part[0]) for part in (a, b) if len(part))
    return (a - first) * (most + 1) + a_rank, (b - first) * (most + 1) + b_rank


def _ranks(offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """For each row, how many rows before it have the same offset."""
    if not len(offsets) or (offsets[1:] != offsets[:-1]).all():
        return np.zeros(len(offsets), np.int64)
    return np.arange(len(offsets)) - np.searchsorted(offsets, offsets, "left")


def _compare_rows(
    found: Difference,
    mine: _Window,
    a_rows: npt.NDArray[np.intp],
    theirs: _Window,
    b_rows: npt.NDArray[np.intp],
    limit: int,
) -> None:
    assert mine.chunk is not None
    assert theirs.chunk is not None
    flags = differing(mine.chunk, a_rows, theirs.chunk, b_rows)
    changed = np.flatnonzero(np.logical_or.reduce(list(flags.values())))
    found.equal_records += len(a_rows) - len(changed)
    found.changed += len(changed)
    for name, wrong in flags.items():
        count = int(np.count_nonzero(wrong))
        if count:
            found.changed_columns[name] += count
    offsets = mine.chunk["offset"]
    for i in changed[: max(limit - len(found.records), 0)].tolist():
        columns = tuple(name for name in COMPARED if flags[name][i])
        found.records.append(ChangedRecord(int(offsets[a_rows[i]]), columns))


_CAUSES: tuple[Cause, ...] = ("start", "end", "compacted", "missing")


class _Ranges:
    """Collects the records that one copy has and the other has not, as ranges of offsets.

    Args:
        other: the copy that does not have them.
        ranges: the list to fill.
        limit: its largest length.
    """

    def __init__(self, other: Partition, ranges: list[OffsetRange], limit: int) -> None:
        self.num_records = 0
        self.ranges = ranges
        self.limit = limit
        self._start, self._end = other.start_offset(), readable_end_offset(other)
        self._cleaned_to = np.iinfo(np.int64).max if other.topic in ALWAYS_COMPACTED else other.cleaned_to
        self._open: int | None = None  # the cause of a range that the next record may continue
        self._dropped = False  # ranges that did not fit

    def add(self, offsets: npt.NDArray[np.int64], alone: npt.NDArray[np.bool_]) -> None:
        """Add the next records, of which only those marked in `alone` are missing in the other copy."""
        if not len(offsets):
            return
        rows = np.flatnonzero(alone)
        self.num_records += len(rows)
        causes = self._causes(offsets[rows])
        if len(rows):
            new = np.ones(len(rows), np.bool_)
            new[1:] = (np.diff(rows) > 1) | (causes[1:] != causes[:-1])
            new[0] = rows[0] > 0 or self._open != causes[0]
            self._extend(offsets[rows], causes, new)
        self._open = int(causes[-1]) if alone[-1] else None

    def _causes(self, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        conditions = [offsets < self._start, offsets >= self._end, offsets < self._cleaned_to]
        return np.select(conditions, [0, 1, 2], 3)

    def _extend(
        self, offsets: npt.NDArray[np.int64], causes: npt.NDArray[np.int64], new: npt.NDArray[np.bool_]
    ) -> None:
        starts = np.flatnonzero(new)
        before = int(starts[0]) if len(starts) else len(offsets)
        if before and not self._dropped:
            last = self.ranges[-1]
            self.ranges[-1] = last._replace(last_offset=int(offsets[before - 1]), num_records=last.num_records + before)
        ends = np.append(starts[1:], len(offsets))[: len(starts)]
        room = max(self.limit - len(self.ranges), 0)
        for start, end in zip(starts[:room].tolist(), ends[:room].tolist(), strict=True):
            cause = _CAUSES[int(causes[start])]
            self.ranges.append(OffsetRange(int(offsets[start]), int(offsets[end - 1]), end - start, cause))
        self._dropped = self._dropped or len(starts) > room
