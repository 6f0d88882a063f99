"""The batches of a segment file with wrong offsets: the I/O around the decisions of `placement`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from kafkacodec.datatypes import NamedTuple, replace
from kafkacodec.errors import CorruptRecord
from kafkacodec.log.files.access import FileIdentity
from kafkacodec.log.formats import layout
from kafkacodec.log.opening import StoredFile, full_path, identity_of, open_file, optional
from kafkacodec.log.opening.checkpoints import known_offsets
from kafkacodec.log.opening.indexes import read_offset_index, read_time_index
from kafkacodec.log.opening.listing import may_overlap, segment_files
from kafkacodec.log.order.continuity import Surroundings
from kafkacodec.log.order.copies import copies_among
from kafkacodec.log.order.gap_evidence import knows_base, unused
from kafkacodec.log.order.placement import NONE, Batches, Bounds, Flags, Ints, judge, judge_without
from kafkacodec.log.order.sets import is_misplaced_set, records_in, sets_of
from kafkacodec.log.segments.pieces import checked
from kafkacodec.records.columns import BatchHeaders, Problem
from kafkacodec.records.compression import DEFAULT_MAX_DECOMPRESSED_BYTES
from kafkacodec.records.headers import scan_stretches

__all__ = ["Corrections", "bounds_beside", "bounds_of", "corrections_of"]

_ROWS = 8192
ORDER_COLUMNS = ("base_offset", "last_offset", "magic")
"""The columns of headers by which batches are in order."""

_MODERN = ("producer_id", "producer_epoch", "base_sequence")
"""Fields that only magic 2 has."""


class Corrections(NamedTuple):
    """The wrong offsets of a segment. Arrays have an entry for each batch that has one, in the order of the file.

    Attributes:
        position, size: of the batch, in bytes.
        written: its base offset by the file; negative for a compressed message set that ends too early for its span.
        stated: the offset in its header: the last one of a compressed message set, else the first one.
        base: the right one; `NONE` if that is unknown.
        span: the number of its offsets.
        records: the number of its records.
        copied: another segment has its offsets, by whose name it should be there.
        bounds: those that agree with the batches: a name that does not is left out.
        first_offset: the first right offset; None without a batch.
        known: where the batches with right offsets end, in bytes, and their last offsets.
    """

    position: Ints
    size: Ints
    written: Ints
    stated: Ints
    base: Ints
    span: Ints
    records: Ints
    copied: Flags
    bounds: Bounds
    first_offset: int | None
    known: tuple[Ints, Ints]

    def __bool__(self) -> bool:
        return len(self.position) > 0

    def right(self, position: Ints, base: Ints, last: Ints) -> tuple[Ints, Ints, Flags]:
        """The right first and last offsets of batches, and which of them have unknown ones."""
        at = np.minimum(np.searchsorted(self.position, position), max(0, len(self.position) - 1))
        wrong = self.position[at] == position if len(self.position) else np.zeros(len(position), np.bool_)
        unknown = wrong & (self.base[at] == NONE) if len(self.position) else wrong
        restored = wrong & ~unknown
        if not restored.any():
            return base, last, unknown
        shift = np.where(restored, self.base[at] - self.written[at], 0)
        return base + shift, last + shift, unknown

    def between(self, start: int, end: int) -> range:
        """The batches that begin in a stretch of the file."""
        first, stop = np.searchsorted(self.position, (start, end)).tolist()
        return range(first, stop)

    def stretches(self, start: int, end: int, path: str) -> Iterator[tuple[int, int, Problem | None]]:
        """The parts of file[start, end) without wrong offsets, and the problem of the batch after each; None: none."""
        for row in self.between(start, end):
            problem = self.problem(row, path)
            yield start, max(start, problem.position), problem
            start = max(start, problem.position + problem.size_in_bytes)
        yield start, max(start, end), None

    def position_of_offset(self, offset: int) -> int:
        """The position after the last batch whose offsets are all smaller."""
        ends, lasts = self.known
        before = int(np.searchsorted(lasts, offset))
        return int(ends[before - 1]) if before else 0

    def least_offset_at(self, position: int) -> int:
        """The offset after the last one before a position; 0 if no batch with a right offset is before it."""
        ends, lasts = self.known
        before = int(np.searchsorted(ends, position, "right"))
        return int(lasts[before - 1]) + 1 if before else 0

    def end_of_offsets(self, end_offset: int, size: int) -> int:
        """A position before which all batches are whose offsets are, or may be, below `end_offset`."""
        ends, lasts = self.known
        at = int(np.searchsorted(lasts, end_offset))
        return int(ends[at]) if at < len(ends) else size

    def end(self) -> tuple[int, int | None]:
        """The end position of the batches, and their last right offset."""
        ends, lasts = self.known
        last = [int(ends[-1])] if len(ends) else []
        wrong = [int(self.position[-1] + self.size[-1])] if len(self.size) else []
        return max([*last, *wrong], default=0), int(lasts[-1]) if len(lasts) else None

    def unread_records(self, *, restored: bool) -> int:
        """How many more records there are than a decoder finds, if batches with wrong offsets do not count.

        With `restored`, those count whose right offsets are known.
        """
        count = self.records
        found = (self.written >= 0) | (self.written == self.stated)  # not the sets that only these offsets hide
        kept = ~self.unknown if restored else np.zeros(len(self.base), np.bool_)
        return int(count[kept & ~found].sum() - count[~kept & found].sum())

    @property
    def unknown(self) -> Flags:
        """Which of the batches have unknown offsets."""
        found: Flags = self.base == NONE
        return found

    def reason(self, row: int) -> str:
        """The fault of a batch."""
        stated, base, span = int(self.stated[row]), int(self.base[row]), int(self.span[row])
        if self.copied[row]:
            return f"the batch at offset {stated} is out of place: the segment where it belongs has its offsets"
        kind = "base" if stated == self.written[row] else "last"
        what = f"a {kind} offset of {stated} is wrong, since the batches around it"
        if base == NONE:
            return f"{what} have others; the right one is unknown"
        return f"{what} show that it is {base}" + (f" (offsets {base} to {base + span - 1})" if span > 1 else "")

    def problem(self, row: int, path: str) -> Problem:
        """The problem that a reader reports for a batch."""
        position, base = int(self.position[row]), int(self.base[row])
        error = CorruptRecord(self.reason(row), position=position, path=path)
        return Problem(position, None if base == NONE else base, int(self.size[row]), error)


def first_offsets(headers: BatchHeaders) -> Ints:
    """The first offset of each batch by its header; that of a compressed message set has only the last one."""
    return np.where(headers["magic"] >= 2, headers["base_offset"], headers["last_offset"])


def bounds_of(path: str, base_offset: int | None, around: Surroundings) -> Bounds:
    """The bounds with which a segment's offsets must agree."""
    return Bounds(base_offset, None if may_overlap(path) else around.following, around.flushed)


def bounds_beside(path: str, flushed: int | None) -> Bounds:
    """As `bounds_of`, by the names in the segment's directory, and by the log's recovery point if that is not given."""
    name = layout.parse_file_name(os.path.basename(path))
    if name is None:
        return Bounds(None, None, flushed)
    following = None
    with optional(path):
        bases = [found.base_offset for found in segment_files(os.path.dirname(full_path(path)))]
        following = min((base for base in bases if base > name.base_offset), default=None)
    if following is not None:
        flushed = None
    elif flushed is None:
        flushed = _recovery_point_beside(path)
    return bounds_of(path, name.base_offset, Surroundings(following, flushed))


def _recovery_point_beside(path: str) -> int | None:
    """The recovery point of the log that a segment is in; None if unknown."""
    directory = os.path.dirname(full_path(path))
    named = layout.parse_directory_name(os.path.basename(directory))
    if named is None or named.state != "current":
        return None
    points = known_offsets(os.path.dirname(directory), layout.RECOVERY_POINT_CHECKPOINT)
    return points.get((named.topic, named.partition)) or None


def corrections_of(file: StoredFile, bounds: Bounds, *, keep_copies: bool = False) -> Corrections:
    """The wrong offsets of a segment. Reads all of it, and its indexes; kept while the file stays the same.

    If batches contradict the bounds, those that are in other segments too, whose names include them, are wrong here.
    With `keep_copies`, these are not looked for.
    """
    found = _corrections(file.path, file.identity, bounds, ())
    if keep_copies or found.bounds[:2] == bounds[:2]:
        return found
    return _corrections(file.path, file.identity, bounds, _beside(file.path))


def _beside(path: str) -> tuple[tuple[str, FileIdentity], ...]:
    """The segments of a segment's directory; empty if it cannot be listed."""
    found: list[tuple[str, FileIdentity]] = []
    with optional(path):
        for file in segment_files(os.path.dirname(full_path(path))):
            with optional(file.path):
                found.append((file.path, identity_of(file.path)))
    return tuple(found)


@lru_cache(maxsize=8)
def _corrections(
    path: str, identity: FileIdentity, bounds: Bounds, beside: tuple[tuple[str, FileIdentity], ...]
) -> Corrections:
    with open_file(path) as file:
        batches, counts = _read(file)
        if bounds.first is None or bounds.first != _named(path):  # the entries of its indexes follow the name
            nothing = np.full_like(batches.indexed, NONE)
            batches = replace(batches, indexed=nothing, timed=nothing)
        end = int(batches.position[-1] + batches.size[-1]) if len(batches.base) else 0
        full = file.size if not unused(file, end) else end
        has_index = _has_index(path, batches)
        placement = judge(batches, bounds, full, has_index=has_index)
        copies = np.zeros(len(batches.base), np.bool_)
        if beside:
            copies = copies_among(path, batches, placement.base, bounds)
            if copies.any():
                placement = judge_without(copies, batches, bounds, full, has_index=has_index)
        rows = np.flatnonzero(placement.wrong)
        for row in rows[~batches.exact[rows]].tolist():
            counts[row] = records_in(file, int(batches.position[row]), int(batches.size[row]))
    known = np.flatnonzero(placement.base != NONE)
    span = batches.span
    return Corrections(
        batches.position[rows],
        batches.size[rows],
        batches.base[rows],
        batches.stated[rows],
        placement.base[rows],
        span[rows],
        counts[rows],
        copies[rows],
        placement.bounds,
        int(placement.base[known[0]]) if len(known) else None,
        (batches.position[known] + batches.size[known], placement.base[known] + span[known] - 1),
    )


def _has_index(path: str, batches: Batches) -> bool:
    """Whether there is an index of the segment's name."""
    if (batches.indexed != NONE).any() or (batches.timed != NONE).any():
        return True
    for suffix in (layout.OFFSET_INDEX_SUFFIX, layout.TIME_INDEX_SUFFIX):
        with optional(path):
            identity_of(layout.sibling(path, suffix))
            return True
    return False


def _read(file: StoredFile) -> tuple[Batches, Ints]:
    """The intact batches of a file, with their index entries and numbers of records."""
    names = ("position", "size_in_bytes", "producer_id", "producer_epoch", "base_sequence", "max_timestamp", "count")
    columns: dict[str, list[npt.NDArray[np.int64]]] = {name: [] for name in (*names, "base", "last", "stated", "exact")}
    for headers in _intact(file):
        modern = headers["magic"] >= 2
        for name in names:
            values = headers[name].astype(np.int64)
            columns[name].append(np.where(modern, values, -1) if name in _MODERN else values)
        columns["stated"].append(first_offsets(headers).copy())
        columns["last"].append(headers["last_offset"].copy())
        columns["base"].append(columns["stated"][-1].copy())
        columns["exact"].append(knows_base(headers).astype(np.int64))
        rows, base, records = sets_of(file, headers)
        for name, values in (("base", base), ("exact", np.ones_like(rows)), ("count", records)):
            columns[name][-1][rows] = values
    empty = [np.zeros(0, np.int64)]
    found = {name: np.concatenate(parts or empty) for name, parts in columns.items()}
    batches = Batches(
        found["base"],
        found["last"],
        found["stated"],
        found["exact"].astype(np.bool_),
        found["position"],
        found["size_in_bytes"],
        found["producer_id"],
        found["producer_epoch"],
        found["base_sequence"],
        _indexed(file.path, found["position"], found["size_in_bytes"], found["last"]),
        _timed(file.path, found["max_timestamp"]),
    )
    return batches, found["count"]


def _named(path: str) -> int | None:
    """The base offset in the name of a segment."""
    name = layout.parse_file_name(os.path.basename(path))
    return None if name is None else name.base_offset


def _intact(file: StoredFile) -> Iterator[BatchHeaders]:
    """The headers of the batches that a reader finds intact."""
    bounds: list[tuple[int, int]] = []
    position = 0
    for chunk in checked(file.view(), 0, "skip", DEFAULT_MAX_DECOMPRESSED_BYTES, 1, _ROWS):
        for problem in chunk.problems:
            if is_misplaced_set(file, problem.position):
                continue
            bounds.append((position, problem.position))
            position = problem.position + problem.size_in_bytes
        bounds.append((position, max(position, chunk.consumed)))
        position = max(position, chunk.consumed)
        pairs = [pair for pair in bounds if pair[0] < pair[1]]
        bounds.clear()
        if pairs:
            yield scan_stretches(file.view(), np.array(pairs, np.int64).data)
        file.check_size()


def _indexed(path: str, position: Ints, size: Ints, last: Ints) -> Ints:
    """For each batch, the offset that the offset index has for its position.

    Where an entry points into a batch, or after the last one, the bytes have moved since the index was written. Entries
    are those of other batches from there on, and perhaps before: after the last entry that agrees with its batch.
    """
    claim = np.full(len(position), NONE, np.int64)
    with optional(path):
        index = read_offset_index(layout.sibling(path, layout.OFFSET_INDEX_SUFFIX), on_error="stop")
        if not len(position):
            return claim
        at = np.searchsorted(position, index["position"], "right") - 1
        there = (at >= 0) & (position[at] == index["position"])
        end = position[at] + size[at]
        moved = (at >= 0) & ~there & ((index["position"] < end) | (at == len(position) - 1))
        if moved.any():
            before = np.flatnonzero((there & (index["offset"] == last[at]))[: int(np.argmax(moved))])
            there[before[-1] + 1 if len(before) else 0 :] = False
        claim[at[there]] = index["offset"][there]
    return claim


def _timed(path: str, timestamp: Ints) -> Ints:
    """For each batch, the offset that the time index has for its largest timestamp, if no other batch has that."""
    claim = np.full(len(timestamp), NONE, np.int64)
    with optional(path):
        index = read_time_index(layout.sibling(path, layout.TIME_INDEX_SUFFIX), on_error="stop")
        times, rows, counts = np.unique(timestamp, return_index=True, return_counts=True)
        at = np.minimum(np.searchsorted(times, index["timestamp"]), max(0, len(times) - 1))
        if len(times):
            there = (times[at] == index["timestamp"]) & (counts[at] == 1)
            claim[rows[at[there]]] = index["offset"][there]
    return claim
