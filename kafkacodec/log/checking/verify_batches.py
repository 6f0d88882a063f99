"""The comparison of a segment's batches with each other, with its index files and with the log's leader epochs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from kafkacodec.datatypes import dataclass
from kafkacodec.log.checking.index_files import Indexes
from kafkacodec.log.checking.report import MAX_FINDINGS, Finding, Level, Report
from kafkacodec.log.files.access import reason_of
from kafkacodec.log.formats.checkpoints import LeaderEpoch
from kafkacodec.log.formats.indexes import OUT_OF_ORDER, IndexFile
from kafkacodec.log.opening import StoredFile
from kafkacodec.log.order.continuity import ALONE, Surroundings, gap_after, missing
from kafkacodec.log.order.corrections import Corrections
from kafkacodec.log.order.epochs import EpochRun, EpochRuns, contradiction, judge_epochs
from kafkacodec.log.order.gap_evidence import first_offset_in, gather, knows_base, unused
from kafkacodec.log.order.placement import NONE
from kafkacodec.log.segments.walk import NO_SEGMENT, begins_like_a_batch
from kafkacodec.records.columns import BatchHeaders, Problem
from kafkacodec.records.compression import CODECS

__all__ = ["Ints", "SegmentChecker"]

Ints = npt.NDArray[np.signedinteger[Any]]

SMALLEST_UNUSED = 12  # bytes of zeros that cannot be the start of a batch

_MAGIC_AT = 16  # where a batch or a message has its magic

NO_TIMESTAMP = np.iinfo(np.int64).min  # numpy's "not a time" as an integer


class SegmentChecker:
    """Follows the intact batches of a segment in order.

    From the offset `until` on they may be of a log that was truncated, with other leader epochs than `epochs`.
    """

    def __init__(
        self,
        file: StoredFile,
        base_offset: int | None,
        epochs: list[LeaderEpoch] | None,
        until: int | None,
        indexes: Indexes,
        report: Report,
        corrections: Corrections | None = None,
        as_written: bool = True,
    ) -> None:
        self.corrections = corrections
        self.gap_before_last = False  # there is, or may be, one between the last two batches
        self.doubtful = False  # what was found may follow from one wrong offset
        self.file = file
        self.until = (1 << 63) - 1 if until is None else until
        self.report = report
        self.base_offset = base_offset
        self.last_offset = -1 if base_offset is None else base_offset - 1
        self.largest_timestamp = NO_TIMESTAMP
        self.as_written = as_written
        self.runs = EpochRuns()
        self.epochs = epochs or []
        self.found: list[tuple[int, Finding]] = []  # with the stretch, since the last report
        self.open_damage: Problem | None = None
        self.lost_from = 0
        self.missing_indexes = indexes.missing
        self.offset_index, self.time_index = indexes.offset, indexes.time
        self.last_entry_wrong: set[str] = set()  # kinds of indexes; what follows the entry may seem out of order
        self.offset_entries = self.time_entries = 0  # the number of entries that were compared with batches

    def check(
        self,
        headers: BatchHeaders,
        starts: npt.NDArray[np.int64],
        problems: Sequence[Problem | None],
        positions: Ints | None = None,
    ) -> tuple[Ints, Ints]:
        """Check the headers of stretches that were read without a fault, and record the problem after each.

        Args:
            headers: of the batches in all stretches.
            starts: where each stretch starts in the file.
            problems: the problem after each, if any.
            positions: where each batch starts in the file; by default from the headers.

        Returns:
            tuple: the first and last offset of each batch, of those that have wrong ones the right ones.
        """
        positions = headers["position"] if positions is None else positions
        at = np.searchsorted(positions, np.append(starts, self.file.size))
        place = np.flatnonzero(at[1:] > at[:-1])
        first, base, last = at[place], headers["base_offset"], headers["last_offset"]
        if self.corrections:
            base, last, _ = self.corrections.right(positions, base, last)
        known = knows_base(headers)
        starts_at = [
            int(base[row]) if known[row] else (int(positions[row]), int(headers["size_in_bytes"][row]))
            for row in first.tolist()
        ]
        before, damaged = self._follow(place, starts_at, np.maximum.reduceat(last, first), problems)
        if len(headers):
            self._count(headers)
            rows = Rows(
                magic=headers["magic"],
                base=base,
                last=last,
                position=positions,
                size=headers["size_in_bytes"],
                time=headers["max_timestamp"].astype(np.int64),
                epoch=headers["partition_leader_epoch"].astype(np.int64),
                base_known=known,
                first=first,
                place=place,
                before=before,
                damaged=damaged,
            )
            for part in [rows] if len(first) == 1 or rows.grow() else rows.each():
                self._check_offsets(part)
                self._check_offset_index(part)
                self._check_times(part)
                self._check_epochs(part)
            self._note_restored(positions, first, place)
        self._report_found()
        return base, last

    def misplaced_between(self, start: int, end: int) -> list[Problem]:
        """The batches in a stretch of the file that have wrong offsets, as damage: what a reader leaves out.

        If the segment is copied, only those without a right offset.
        """
        found = self.corrections
        if not found:
            return []
        rows = found.between(start, end)
        return [found.problem(row, self.file.path) for row in rows if self.as_written or found.base[row] == NONE]

    def _note_restored(self, positions: Ints, first: Ints, place: Ints) -> None:
        """Report the batches that are copied with other offsets, since what surrounds them shows the right ones."""
        found = self.corrections
        if not found or self.as_written:
            return
        for row in found.between(int(positions[0]), int(positions[-1]) + 1):
            if found.base[row] == NONE:
                continue
            at = int(np.searchsorted(positions, found.position[row]))
            stretch = int(place[np.searchsorted(first, at, "right") - 1])
            base = int(found.base[row])
            size, end = int(found.size[row]), base + int(found.span[row])
            position, text = int(found.position[row]), found.reason(row)
            finding = Finding("warning", "offset-order", self.file.path, text, position, size, base, end)
            self.found.append((stretch, finding))

    def _follow(
        self, place: Ints, bases: list[int | tuple[int, int]], lasts: Ints, problems: Sequence[Problem | None]
    ) -> tuple[Ints, npt.NDArray[np.bool_]]:
        """The last offset before each stretch, and whether there is damage before it.

        `bases` has the first offset of each stretch, or position and size of its first batch, in which it is.
        """
        before: list[int] = []
        damaged: list[bool] = []
        stretches = zip(place.tolist(), bases, lasts.tolist(), strict=True)
        following = next(stretches, None)
        for i, problem in enumerate(problems):
            if following is not None and following[0] == i:
                if self.open_damage is not None:
                    self._end_damage(self._first_offset(following[1]), i)
                before.append(self.last_offset)
                damaged.append(self.report.damaged_bytes > 0)
                self.last_offset = max(self.last_offset, following[2])
                following = next(stretches, None)
            if problem is not None:
                self._damaged(problem, i)
        return np.array(before, np.int64), np.array(damaged, np.bool_)

    def _first_offset(self, base: int | tuple[int, int]) -> int | None:
        return base if isinstance(base, int) else first_offset_in(self.file, *base)

    def _report_found(self) -> None:
        """Report the findings in the order of the log."""
        self.found.sort(key=itemgetter(0))
        for _, finding in self.found:
            self.report.add(finding)
        self.found.clear()

    def _damaged(self, problem: Problem, place: int) -> None:
        """Record damage; its offsets are known when the next batch is."""
        base_offset = problem.base_offset
        if base_offset is not None and not 0 < base_offset - self.last_offset < 2**31:
            base_offset = None  # implausible
        if self._may_be_last(problem.position) and not (self.base_offset is None and self.last_offset < 0):
            base_offset = None
        self._end_damage(base_offset, place)
        self.open_damage = problem
        self.lost_from = self.last_offset + 1 if base_offset is None else base_offset
        self.report.damaged_bytes += problem.size_in_bytes

    def _may_be_last(self, position: int) -> bool:
        """Whether the batch at a position may have its last offset in its header: a compressed set of magic 0 or 1."""
        return self.file.read(position + _MAGIC_AT, 1) < b"\x02"

    def tail(self, position: int, surroundings: Surroundings) -> None:
        """Report the bytes after the last batch."""
        left = self.file.size - position
        if left <= 0:
            return
        if position == 0 and not begins_like_a_batch(self.file):
            self.report.damaged_bytes += left
            self._note("error", "not-a-segment", NO_SEGMENT, position, left)
            return
        # A few zeros may be the start of an offset.
        if left >= SMALLEST_UNUSED and unused(self.file, position):
            self._note("note", "preallocated", "unused preallocated space", position, left)
            return
        if self.file.has_grown():  # the batch is being written
            return
        text = "trailing partial batch"
        if surroundings is ALONE:
            text += "; one segment does not show whether more followed"
        self._note("warning", "torn-tail", text, position, left)

    def finish(self, position: int, surroundings: Surroundings) -> None:
        """Report offsets missing after the last batch, and index entries past it."""
        following = surroundings.following
        self.doubtful |= self.gap_before_last if following is None else self.last_offset >= following
        due = surroundings.flushed if surroundings.following is None else surroundings.following
        if self.open_damage is None:
            self._check_end(position, surroundings)
        self._end_damage(due, 0)
        self._report_found()
        self._judge_epochs()
        for kind, path in self.missing_indexes:
            # Before 0.10 messages had no timestamps, and brokers wrote no time index.
            if self.report.num_batches and (kind == "offset-index" or self.largest_timestamp != NO_TIMESTAMP):
                self.report.add(Finding("note", kind, path, "the index is missing"))
        for index, compared, kind in (
            (self.offset_index, self.offset_entries, "offset-index"),
            (self.time_index, self.time_entries, "time-index"),
        ):
            if index is None:
                continue
            if compared < len(index) and not self.report.damaged_bytes:
                count = len(index) - compared
                text = "points past the last batch" if count == 1 else f"{count} entries point past the last batch"
                self.report.add(_entry_fault(index, kind, compared, text))
                self.last_entry_wrong.add(kind)
            for problem in index.problems:
                if problem.reason != OUT_OF_ORDER or kind not in self.last_entry_wrong:
                    self.report.add(Finding("warning", kind, index.path, problem.reason, problem.position))

    def _check_end(self, position: int, surroundings: Surroundings) -> None:
        """Report offsets that are missing between the last batch and what follows the segment."""
        if self.base_offset is None:
            return
        gap = gap_after(self.last_offset + 1, surroundings.following, surroundings.flushed)
        if gap is None:
            return
        evidence = gather(self.file, gap, position, surroundings.topic, surroundings.partition, has_batches=True)
        error = missing(gap, evidence, path=self.file.path, position=position)
        if error is None:
            self.report.compacted_offsets += gap.end_offset - gap.first_offset
        else:
            self.report.add_missing(error, self.file.size - position)

    def _end_damage(self, next_offset: int | None, place: int) -> None:
        problem, self.open_damage = self.open_damage, None
        if problem is None:
            return
        if next_offset is not None and next_offset <= self.lost_from:  # the header of the damaged batch was wrong
            self.lost_from = min(self.lost_from, self.last_offset + 1)
        end = next_offset if next_offset is not None and next_offset >= self.lost_from else None
        self.last_offset = max(self.last_offset, -1 if end is None else end - 1)  # not a gap next to the damage
        self.report.missing_offsets += 0 if end is None else end - self.lost_from
        if len(self.report.findings) + len(self.found) >= MAX_FINDINGS:
            self.report.counts["error", "damaged"] += 1
            return
        at = problem.position
        misplaced = self.corrections is not None and len(self.corrections.between(at, at + 1)) > 0
        finding = Finding(
            "error",
            "offset-order" if misplaced else "damaged",
            self.file.path,
            reason_of(problem.exception),
            problem.position,
            problem.size_in_bytes,
            self.lost_from,
            end,
        )
        self.found.append((place, finding))

    def _count(self, headers: BatchHeaders) -> None:
        self.report.num_batches += len(headers)
        self.report.control_records += int(headers["count"].sum(where=headers["is_control"]))
        names = headers.buffers("codec")
        initials = names["data"][names["offsets"][:-1]].astype(np.int16)
        kinds, counts = np.unique(headers["magic"].astype(np.int16) << 8 | initials, return_counts=True)
        for kind, count in zip(kinds.tolist(), counts.tolist(), strict=True):
            codec = next(codec for codec in CODECS if codec[0] == chr(kind & 255))
            self.report.formats[f"v{kind >> 8}/{codec}"] += count

    def _check_offsets(self, rows: Rows) -> None:
        """Offsets increase from batch to batch. A compressed message set has only its last offset."""
        base, last = rows.base, rows.last
        earlier = rows.before if len(rows.before) == 1 else rows.before[rows.stretch]
        before = np.maximum(rows.preceding(np.maximum.accumulate(last)), earlier)
        wrong = np.where(rows.magic >= 2, base, last) <= before
        self.doubtful |= bool(wrong.any())
        for i in np.flatnonzero(wrong).tolist():
            come = f"offset {base[i]} comes" if base[i] == last[i] else f"offsets {base[i]} to {last[i]} come"
            text = f"{come} after offset {before[i]}"
            self._fault(rows, i, "error", "offset-order", text, int(rows.position[i]), int(rows.size[i]))
        ahead = np.maximum(base - before - 1, 0)
        ahead[~rows.base_known] = 0
        if self.base_offset is None and int(rows.before[0]) < 0:
            ahead[(rows.before < 0)[rows.stretch]] = 0
        self.report.compacted_offsets += int(ahead.sum())
        self.gap_before_last = bool(ahead[-1:].any() or not rows.base_known[-1:].all())
        if self.base_offset is not None:
            far = np.maximum.reduceat(last, rows.first) - self.base_offset >= 2**31
            for i in rows.first[far].tolist():
                text = "an offset is 2^31 or more above the segment's base offset"
                self._fault(rows, i, "error", "offset-order", text)

    def _check_offset_index(self, rows: Rows) -> None:
        """An entry points to a batch before which all offsets are smaller than the entry's offset."""
        index = self.offset_index
        if index is None:
            return
        final = rows.final
        stops = np.searchsorted(index["position"], rows.position[final] + rows.size[final], "left")
        entries = slice(self.offset_entries, int(stops[-1]))
        positions, offsets = index["position"][entries], index["offset"][entries]
        at = np.searchsorted(rows.position, positions)
        found = at < len(rows.position)
        at[~found] = 0
        good = found & (rows.position[at] == positions) & (rows.preceding(rows.last)[at] < offsets)
        # An entry's offset may be after its batch if many old messages were appended at once.
        good &= (offsets <= rows.last[at]) | (rows.magic[at] < 2)
        for i in np.flatnonzero(~good).tolist():
            entry = self.offset_entries + i
            row = int(rows.first[np.searchsorted(stops, entry, "right")])
            if positions[i] >= rows.position[row]:  # else it is in damage before the stretch
                self._index_fault(rows, row, index, "offset-index", entry, "there is no matching batch at the position")
        self.offset_entries = entries.stop

    def _check_times(self, rows: Rows) -> None:
        """A time index entry has the largest timestamp so far, and the offset of a batch with this timestamp."""
        largest = np.maximum.accumulate(np.maximum(rows.time, self.largest_timestamp))
        index = self.time_index
        if index is not None:
            stops = np.searchsorted(index["offset"], np.maximum.reduceat(rows.last, rows.first), "right")
            start, stop = min(self.time_entries, int(stops[0])), int(stops[-1])
            at = np.searchsorted(rows.last, index["offset"][start:stop])
            at = np.minimum(at, len(rows.last) - 1)
            stretch = np.searchsorted(stops, np.arange(start, stop), "right")
            claimed, there = index["timestamp"][start:stop], rows.time[at]
            # After damage, the batch with the largest timestamp may be lost.
            good = np.where(rows.damaged[stretch], claimed >= there, (claimed == largest[at]) & (claimed == there))
            # For messages without timestamps, brokers of 0.10 wrote the time at which they closed the file.
            good |= largest[at] == NO_TIMESTAMP
            for i in np.flatnonzero(~good).tolist():
                row = int(rows.first[stretch[i]])
                self._index_fault(rows, row, index, "time-index", start + i, "the log has a different timestamp there")
            self.time_entries = stop
        self.largest_timestamp = int(largest[-1])

    def _check_epochs(self, rows: Rows) -> None:
        """Collect the leader epochs, which `finish` judges; of a partition that is copied, the copier judges all."""
        own = np.flatnonzero((rows.magic >= 2) & (rows.base < self.until)) if self.as_written else ()
        if len(own):
            self.runs.add(
                self.file.path, *(column[own] for column in (rows.epoch, rows.base, rows.last, rows.position))
            )

    def _judge_epochs(self) -> None:
        """Leader epochs never decrease, and batches are in their epoch's range of offsets."""
        right, wrong = judge_epochs(self.runs.runs, self.epochs)
        for found in wrong:
            self._epoch_fault(found.run, found.reason)
        other = contradiction(right, self.epochs)
        if other is not None:
            self._epoch_fault(other.run, other.reason, other.offset)

    def _epoch_fault(self, run: EpochRun, text: str, first_offset: int | None = None) -> None:
        position = run.position if first_offset in (None, run.first_offset) else None
        first = run.first_offset if first_offset is None else first_offset
        self.report.add(Finding("warning", "leader-epoch", self.file.path, text, position, None, first))

    def _index_fault(self, rows: Rows, row: int, index: IndexFile, kind: str, i: int, text: str) -> None:
        self.doubtful = True
        if i == len(index) - 1:
            self.last_entry_wrong.add(kind)
        self.found.append((self._place(rows, row), _entry_fault(index, kind, i, text)))

    def _place(self, rows: Rows, row: int) -> int:
        return int(rows.place[np.searchsorted(rows.first, row, "right") - 1])

    def _fault(
        self,
        rows: Rows,
        row: int,
        level: Level,
        kind: str,
        text: str,
        position: int | None = None,
        size_in_bytes: int | None = None,
        first_offset: int | None = None,
    ) -> None:
        """Add a finding for a row."""
        finding = Finding(level, kind, self.file.path, text, position, size_in_bytes, first_offset)
        self.found.append((self._place(rows, row), finding))

    def _note(self, level: Level, kind: str, text: str, position: int, size_in_bytes: int) -> None:
        self.report.add(Finding(level, kind, self.file.path, text, position, size_in_bytes))


def _entry_fault(index: IndexFile, kind: str, i: int, text: str) -> Finding:
    return Finding("warning", kind, index.path, f"entry {i}: {text}", first_offset=int(index["offset"][i]))


@dataclass
class Rows:
    """Headers of the batches in some stretches; stretches without batches are excluded.

    Attributes:
        magic, base, last, position, size, time, epoch, base_known: a value for each batch; `base_known`: its first
            offset is known.
        first: the first row of each stretch.
        place: the index of each stretch among all that are checked together; findings are sorted by it.
        before: the last offset before each stretch.
        damaged: whether there is damage before each stretch.
    """

    magic: Ints
    base: Ints
    last: Ints
    position: Ints
    size: Ints
    time: Ints
    epoch: Ints
    base_known: npt.NDArray[np.bool_]
    first: Ints
    place: Ints
    before: Ints
    damaged: npt.NDArray[np.bool_]

    @property
    def final(self) -> Ints:
        """The last row of each stretch."""
        return np.append(self.first[1:], len(self.last)) - 1

    @property
    def stretch(self) -> Ints:
        """The stretch of each row."""
        return np.repeat(np.arange(len(self.first)), np.diff(self.first, append=len(self.last)))

    def grow(self) -> bool:
        """Whether the last offsets do not decrease, so that the stretches can be checked together."""
        return bool((self.last[1:] >= self.last[:-1]).all())

    def each(self) -> Iterator[Rows]:
        """Every stretch by itself."""
        ends = (self.final + 1).tolist()
        for i, (start, end) in enumerate(zip(self.first.tolist(), ends, strict=True)):
            rows = {name: getattr(self, name)[start:end] for name in _PER_BATCH}
            stretch = {name: getattr(self, name)[i : i + 1] for name in ("place", "before", "damaged")}
            yield Rows(**rows, first=np.zeros(1, np.int64), **stretch)

    def preceding(self, values: Ints) -> Ints:
        """The value before each row: the last offset before a stretch, then the value of the previous row."""
        before = np.empty(len(values), np.int64)
        before[1:] = values[:-1]
        before[self.first] = self.before
        return before


_PER_BATCH = ("magic", "base", "last", "position", "size", "time", "epoch", "base_known")
