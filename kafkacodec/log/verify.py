"""Inspection of segments: every batch's checksum and structure, the order of offsets, and the index files.

A segment is read once: the decoder checks each batch as a reader would, and the headers of the intact ones, still in
cache, are held against each other and against the index files.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from kafkacodec.errors import KafkaCodecError
from kafkacodec.log import layout
from kafkacodec.log.checkpoints import LeaderEpoch
from kafkacodec.log.continuity import ALONE, Surroundings, gap_after, missing
from kafkacodec.log.evidence import gather, tells_base, unused
from kafkacodec.log.files import MappedFile, reason_of
from kafkacodec.log.indexes import IndexFile, read_offset_index, read_time_index
from kafkacodec.log.ranges import DROP_BEHIND
from kafkacodec.log.report import Finding, Level, Report
from kafkacodec.log.walk import walk
from kafkacodec.records.columns import BatchHeaders, Problem
from kafkacodec.records.compression import CODECS
from kafkacodec.records.decode import DEFAULT_MAX_DECOMPRESSED_BYTES, iter_columns

ROWS_AT_ONCE = 65536

SMALLEST_UNUSED = 12  # bytes of zeros that can be told from the start of a batch

NO_TIMESTAMP = np.iinfo(np.int64).min  # what numpy's "not a time" is as an integer


def verify_segment(
    path: str,
    base_offset: int | None,
    *,
    surroundings: Surroundings = ALONE,
    leader_epochs: list[LeaderEpoch] | None = None,
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
    keep: Callable[[MappedFile, BatchHeaders], None] | None = None,
) -> Report:
    """Inspect one segment and its offset and time index.

    Args:
        path: the segment.
        base_offset: the offset in its name; None where it has none: then no index belongs to it.
        surroundings: what the partition says of the segment's end: what is missing there is told by it.
        leader_epochs: the partition's leader epochs, to be held against those of the batches.
        max_decompressed_bytes: larger batches count as damaged.
        keep: is called with the headers of every piece of intact batches.

    Raises:
        OSError: the file cannot be read.
        Truncated: it was shortened while it was read.
    """
    report = Report(path, num_segments=1)
    indexes = _Indexes(path, base_offset, report)  # read first: a segment that is being written runs ahead of them
    with MappedFile(path) as file:
        report.size_in_bytes = file.size
        checker = _SegmentChecker(file, base_offset, leader_epochs, indexes, report)
        position = 0
        chunks = iter_columns(
            file.data,
            columns=("headers",),  # the one column whose bytes are checked only when it is built
            include_control=True,
            on_error="skip",
            max_rows=ROWS_AT_ONCE,
            max_decompressed_bytes=max_decompressed_bytes,
        )
        for chunk in chunks:
            file.check_size()
            for problem in chunk.problems:
                checker.intact(position, problem.position, keep)
                checker.damaged(problem)
                position = problem.position + problem.num_bytes
            checker.intact(position, chunk.consumed, keep)
            report.num_records += len(chunk)
            position = max(position, chunk.consumed)
            file.drop_before(position - DROP_BEHIND)
        checker.tail(position, surroundings)
        checker.finish(position, surroundings)
    return report


class _Indexes:
    """The offset and the time index of a segment, up to their first faults."""

    def __init__(self, path: str, base_offset: int | None, report: Report) -> None:
        self.path = path
        self.report = report
        self.missing: list[tuple[str, str]] = []
        self.offset = self.time = None
        if base_offset is not None:
            self.offset = self._read(read_offset_index, layout.OFFSET_INDEX_SUFFIX, "offset-index")
            self.time = self._read(read_time_index, layout.TIME_INDEX_SUFFIX, "time-index")

    def _read(self, read: Callable[..., IndexFile], suffix: str, kind: str) -> IndexFile | None:
        path = layout.sibling(self.path, suffix)
        try:
            index = read(path, on_error="stop")
        except FileNotFoundError:
            self.missing.append((kind, path))
            return None
        except (OSError, KafkaCodecError) as error:
            self.report.add(Finding("warning", kind, path, f"cannot be read: {reason_of(error)}"))
            return None
        for problem in index.problems:
            self.report.add(Finding("warning", kind, path, problem.reason, problem.position))
        return index


class _SegmentChecker:
    """Follows the intact batches of a segment in order."""

    def __init__(
        self,
        file: MappedFile,
        base_offset: int | None,
        epochs: list[LeaderEpoch] | None,
        indexes: _Indexes,
        report: Report,
    ) -> None:
        self.file = file
        self.report = report
        self.base_offset = base_offset
        self.last_offset = -1 if base_offset is None else base_offset - 1
        self.largest_timestamp = NO_TIMESTAMP
        self.last_epoch = -1
        self.epochs = epochs
        self.open_damage: Problem | None = None
        self.lost_from = 0
        self.missing_indexes = indexes.missing
        self.offset_index, self.time_index = indexes.offset, indexes.time
        self.offset_entries = self.time_entries = 0  # how many entries were held against batches

    def intact(self, start: int, end: int, keep: Callable[[MappedFile, BatchHeaders], None] | None) -> None:
        """Check the headers of file[start, end), whose batches were read without a fault."""
        if start >= end:
            return
        for headers in walk(self.file, start, end):
            if not len(headers):
                return
            self._settle_damage(int(headers["base_offset"][0]))
            self._count(headers)
            self._check_offsets(headers)
            self._check_offset_index(headers)
            self._check_times(headers)
            self._check_epochs(headers)
            self.last_offset = max(self.last_offset, int(headers["last_offset"].max()))
            if keep is not None:
                keep(self.file, headers)

    def damaged(self, problem: Problem) -> None:
        """Note a stretch that was passed over; its offsets are known when the next batch is."""
        base_offset = problem.base_offset
        if base_offset is not None and not 0 < base_offset - self.last_offset < 2**31:
            base_offset = None  # not to be believed
        self._settle_damage(base_offset)
        self.open_damage = problem
        self.lost_from = self.last_offset + 1 if base_offset is None else base_offset
        self.report.damaged_bytes += problem.num_bytes

    def tail(self, position: int, surroundings: Surroundings) -> None:
        """Say what stands behind the last batch."""
        left = self.file.size - position
        if left <= 0:
            return
        # A few zeros may be the start of an offset.
        if left >= SMALLEST_UNUSED and unused(self.file, position):
            self._note("note", "preallocated", "unused space, zero-filled in advance", position, left)
            return
        text = "a batch that is not whole ends the file"
        if surroundings is ALONE:
            text += "; whether more followed cannot be told from one segment"
        self._note("warning", "torn-tail", text, position, left)

    def finish(self, position: int, surroundings: Surroundings) -> None:
        """Say what is missing after the last batch, and what the index files have beyond the log."""
        due = surroundings.flushed if surroundings.following is None else surroundings.following
        if self.open_damage is None:
            self._check_end(position, surroundings)
        self._settle_damage(due)
        for kind, path in self.missing_indexes:
            # Brokers before 0.10 wrote no time index, nor had messages a time.
            if self.report.num_batches and (kind == "offset-index" or self.largest_timestamp != NO_TIMESTAMP):
                self.report.add(Finding("note", kind, path, "there is no such index"))
        for index, checked, kind in (
            (self.offset_index, self.offset_entries, "offset-index"),
            (self.time_index, self.time_entries, "time-index"),
        ):
            if index is not None and checked < len(index) and not self.report.damaged_bytes:
                text = f"{len(index) - checked} entries point behind the last batch"
                self._index_fault(index, kind, checked, text)

    def _check_end(self, position: int, surroundings: Surroundings) -> None:
        """Tell the offsets that are missing between the last batch and what follows the segment."""
        if self.base_offset is None:
            return
        gap = gap_after(self.last_offset + 1, surroundings.following, surroundings.flushed)
        if gap is None:
            return
        evidence = gather(self.file, gap, position, surroundings.topic, surroundings.partition)
        error = missing(gap, evidence, path=self.file.path, position=position)
        if error is None:
            self.report.compacted_offsets += gap.end_offset - gap.first_offset
        else:
            self.report.add_missing(error, self.file.size - position)

    def _settle_damage(self, next_offset: int | None) -> None:
        problem, self.open_damage = self.open_damage, None
        if problem is None:
            return
        end = next_offset if next_offset is not None and next_offset >= self.lost_from else None
        self.last_offset = max(self.last_offset, -1 if end is None else end - 1)  # no gap beside the damage
        self.report.missing_offsets += 0 if end is None else end - self.lost_from
        self.report.add(
            Finding(
                "error",
                "damaged",
                self.file.path,
                reason_of(problem.exception),
                problem.position,
                problem.num_bytes,
                self.lost_from,
                end,
            )
        )

    def _count(self, headers: BatchHeaders) -> None:
        self.report.num_batches += len(headers)
        names = headers.buffers("codec")
        initials = names["data"][names["offsets"][:-1]].astype(np.int16)
        kinds, counts = np.unique(headers["magic"].astype(np.int16) << 8 | initials, return_counts=True)
        for kind, count in zip(kinds.tolist(), counts.tolist(), strict=True):
            codec = next(codec for codec in CODECS if codec[0] == chr(kind & 255))
            self.report.formats[f"v{kind >> 8}/{codec}"] += count

    def _check_offsets(self, headers: BatchHeaders) -> None:
        """Offsets grow from batch to batch. A compressed set of old messages tells its last one only."""
        base, last = headers["base_offset"], headers["last_offset"]
        before = np.concatenate([[self.last_offset], np.maximum.accumulate(last)[:-1]])
        modern = headers["magic"] >= 2
        wrong = np.where(modern, base, last) <= before
        for i in np.flatnonzero(wrong).tolist():
            text = f"the offsets {base[i]} to {last[i]} follow {before[i]}"
            self._note("error", "offset-order", text, int(headers["position"][i]), int(headers["size_in_bytes"][i]))
        if self.last_offset >= 0 or self.base_offset is not None:
            ahead = np.maximum(base - before - 1, 0)
            self.report.compacted_offsets += int(ahead.sum() if modern.all() else ahead[tells_base(headers)].sum())
        if self.base_offset is not None and int(last.max()) - self.base_offset >= 2**31:
            self._note("error", "offset-order", "an offset is more than 2^31 above the segment's base offset")

    def _check_offset_index(self, headers: BatchHeaders) -> None:
        """An entry points to a batch before which all offsets are smaller than the entry's."""
        index = self.offset_index
        if index is None:
            return
        positions = headers["position"]
        end = int(positions[-1] + headers["size_in_bytes"][-1])
        stop = int(np.searchsorted(index["position"], end, "left"))
        entries = slice(self.offset_entries, stop)
        at = np.searchsorted(positions, index["position"][entries])
        found = at < len(positions)
        at[~found] = 0
        before = np.concatenate([[self.last_offset], headers["last_offset"][:-1]])
        good = found & (positions[at] == index["position"][entries]) & (before[at] < index["offset"][entries])
        # An entry may be ahead of its batch where old messages were appended many at a time.
        good &= (index["offset"][entries] <= headers["last_offset"][at]) | (headers["magic"][at] < 2)
        for i in np.flatnonzero(~good).tolist():
            if not self._in_damage(int(index["position"][entries][i]), headers):
                self._index_fault(index, "offset-index", self.offset_entries + i, "no such batch is at the position")
        self.offset_entries = stop

    def _check_times(self, headers: BatchHeaders) -> None:
        """A time index entry has the largest timestamp so far, and an offset of a batch that has it."""
        times = headers["max_timestamp"].astype(np.int64)
        largest = np.maximum.accumulate(np.maximum(times, self.largest_timestamp))
        index = self.time_index
        if index is not None:
            stop = int(np.searchsorted(index["offset"], int(headers["last_offset"].max()), "right"))
            entries = slice(self.time_entries, stop)
            at = np.searchsorted(headers["last_offset"], index["offset"][entries])
            at = np.minimum(at, len(headers) - 1)
            good = self._fits(index["timestamp"][entries], times, largest, at)
            for i in np.flatnonzero(~good).tolist():
                self._index_fault(index, "time-index", self.time_entries + i, "the log has another timestamp there")
            self.time_entries = stop
        self.largest_timestamp = int(largest[-1])

    def _fits(
        self,
        claimed: npt.NDArray[np.int64],
        times: npt.NDArray[np.int64],
        largest: npt.NDArray[np.int64],
        at: npt.NDArray[np.intp],
    ) -> npt.NDArray[np.bool_]:
        if self.report.damaged_bytes:  # the batch that had it may be lost
            good: npt.NDArray[np.bool_] = claimed >= times[at]
        else:
            good = (claimed == largest[at]) & (claimed == times[at])
        # Where messages have no time, brokers of 0.10 wrote down when they closed the file.
        good |= largest[at] == NO_TIMESTAMP
        return good

    def _check_epochs(self, headers: BatchHeaders) -> None:
        """Leader epochs never go back, and a batch lies in its epoch's span of offsets."""
        epochs, bases = headers["partition_leader_epoch"], headers["base_offset"]
        rows = np.flatnonzero((headers["magic"] >= 2) & (epochs >= 0))
        if not len(rows):
            return
        epochs, bases, positions = epochs[rows].astype(np.int64), bases[rows], headers["position"][rows]
        before = np.concatenate([[self.last_epoch], np.maximum.accumulate(epochs)[:-1]])
        for i in np.flatnonzero(epochs < before).tolist():
            text = f"leader epoch {epochs[i]} follows {before[i]}"
            self._note("warning", "leader-epoch", text, int(positions[i]), first_offset=int(bases[i]))
        self.last_epoch = max(self.last_epoch, int(epochs.max()))
        if self.epochs:
            starts = np.array([epoch.start_offset for epoch in self.epochs])
            numbers = np.array([epoch.epoch for epoch in self.epochs])
            term = np.searchsorted(starts, bases, "right") - 1
            wrong = (term >= 0) & (numbers[np.maximum(term, 0)] != epochs)
            for row in np.flatnonzero(wrong).tolist()[:1]:
                text = f"leader epoch {epochs[row]}, where the checkpoint has {numbers[term[row]]}"
                self._note("warning", "leader-epoch", text, int(positions[row]), first_offset=int(bases[row]))

    def _in_damage(self, position: int, headers: BatchHeaders) -> bool:
        return position < int(headers["position"][0])

    def _index_fault(self, index: IndexFile, kind: str, i: int, text: str) -> None:
        offset = int(index["offset"][i])
        self.report.add(Finding("warning", kind, index.path, f"entry {i}: {text}", first_offset=offset))

    def _note(
        self,
        level: Level,
        kind: str,
        text: str,
        position: int | None = None,
        num_bytes: int | None = None,
        first_offset: int | None = None,
    ) -> None:
        self.report.add(Finding(level, kind, self.file.path, text, position, num_bytes, first_offset))
