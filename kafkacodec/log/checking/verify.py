"""Inspection of segments: every batch's checksum and structure, the order of offsets, and the index files.

A segment is read once: the decoder checks each batch as a reader would, and the headers of the intact ones, still in
cache, are compared with each other and with the index files. Up to the first fault it is read piece by piece; from
there on it is mapped, since damage may extend to any position.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import closing, suppress

import numpy as np
import numpy.typing as npt

from kafkacodec.arguments import num_threads
from kafkacodec.arrow._columns import append
from kafkacodec.errors import DecodeError, KafkaCodecError
from kafkacodec.log.checking.checked import Advance
from kafkacodec.log.checking.index_files import Indexes
from kafkacodec.log.checking.report import Finding, Report
from kafkacodec.log.checking.verify_batches import SegmentChecker
from kafkacodec.log.formats import layout
from kafkacodec.log.formats.checkpoints import LeaderEpoch
from kafkacodec.log.opening import StoredFile, fault_of, identity_of, open_file
from kafkacodec.log.opening.listing import may_overlap
from kafkacodec.log.order.continuity import ALONE, Surroundings
from kafkacodec.log.order.corrections import Corrections, bounds_of, corrections_of
from kafkacodec.log.order.placement import Ints
from kafkacodec.log.order.sets import sets_in_order
from kafkacodec.log.reading.ranges import KEPT_BEFORE
from kafkacodec.log.segments.pieces import ROWS_AT_ONCE, checked, intact_pieces
from kafkacodec.log.segments.walk import walk
from kafkacodec.records.columns import BatchHeaders, Problem
from kafkacodec.records.compression import DEFAULT_MAX_DECOMPRESSED_BYTES
from kafkacodec.records.headers import scan_stretches

Keep = Callable[[StoredFile, BatchHeaders, Ints, Ints], None]

UNREADABLE = "unreadable"
"""The kind of the finding of `inspect_segment`."""

ROWS_OF_REST = 8192
"""Rows of a chunk from the first fault on, of which each shows as progress."""

STRETCHES_AT_ONCE = 1024

LONG_STRETCH = 256 << 10
"""The size in bytes from which a stretch is checked by itself; shorter ones are collected up to about this size."""


def verify_segment(
    path: str,
    base_offset: int | None,
    *,
    surroundings: Surroundings = ALONE,
    leader_epochs: list[LeaderEpoch] | None = None,
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
    corrections: Corrections | None = None,
    keep: Keep | None = None,
    threads: int | None = 1,
    advance: Advance | None = None,
) -> Report:
    """Inspect one segment and its offset and time index.

    Args:
        path: the segment.
        base_offset: the offset in its name; None if it has none: then there are no index files.
        surroundings: what must follow the segment, by which missing offsets at its end are found.
        leader_epochs: the partition's leader epochs, to compare with those of the batches.
        max_decompressed_bytes: larger batches count as damaged.
        corrections: the wrong offsets of the segment; by default they are looked for if the order shows some.
        keep: called with the headers of every piece of intact batches, and with their first and last offsets; then
            restored offsets are warnings.
        threads: the number of threads that read the batches.
        advance: called with the numbers of bytes read.

    Raises:
        OSError: the file cannot be read.
        Truncated: it was shortened while it was read.
    """
    limits = max_decompressed_bytes, num_threads(threads)
    report, doubtful = _inspect(path, base_offset, surroundings, leader_epochs, limits, corrections, keep, advance)
    if doubtful and corrections is None:
        bounds = bounds_of(path, base_offset, surroundings)
        with open_file(path) as file:
            corrections = corrections_of(file, bounds)
        if corrections or corrections.bounds != bounds:
            report, _ = _inspect(path, base_offset, surroundings, leader_epochs, limits, corrections, None, None)
    return report


def _inspect(
    path: str,
    base_offset: int | None,
    surroundings: Surroundings,
    leader_epochs: list[LeaderEpoch] | None,
    limits: tuple[int, int],
    corrections: Corrections | None,
    keep: Keep | None,
    advance: Advance | None,
) -> tuple[Report, bool]:
    """The report, and whether several of its findings may follow from one wrong offset."""
    report = Report(path, num_segments=int(not layout.is_stand_in(path)))
    if corrections is not None:
        base_offset, surroundings = _agreeing(path, base_offset, surroundings, corrections, report, keep)
    indexes = Indexes(
        path, None if layout.is_stand_in(path) else base_offset, report
    )  # read first: a segment that is being written runs ahead of them
    with open_file(path) as file:
        report.size_in_bytes = file.size
        until = surroundings.following if may_overlap(path) else None
        checker = SegmentChecker(file, base_offset, leader_epochs, until, indexes, report, corrections, keep is None)
        read = _Progress(advance)
        position = _read_intact(checker, *limits, read) if keep is None and not corrections else 0
        waiting = _Stretches(checker, keep)
        rest = checked(file.view(), position, "skip", *limits, ROWS_OF_REST) if position < file.size else ()
        for chunk in rest:
            for problem in chunk.problems:
                if corrections and corrections.between(problem.position, problem.position + 1):
                    continue  # a set that only its wrong offset keeps from being read
                waiting.add(position, problem.position, problem)
                position = problem.position + problem.size_in_bytes
            waiting.add(position, chunk.consumed, None)
            report.num_records += len(chunk)
            position = max(position, chunk.consumed)
            read.up_to(position)
            if waiting.enough(position):
                waiting.check()
                file.drop_before(position - KEPT_BEFORE)
        waiting.check()
        checker.tail(position, surroundings)
        checker.finish(position, surroundings)
        read.up_to(file.size)
        if corrections is None and base_offset is not None and _has_sets(report):
            checker.doubtful |= not sets_in_order(file, 0, position, base_offset - 1)
    if corrections:
        report.num_records += corrections.unread_records(restored=keep is not None)
    return report, checker.doubtful


def _has_sets(report: Report) -> bool:
    """Whether there are compressed sets of magic 1, whose headers do not have their first offsets."""
    return any(name.startswith("v1/") and name != "v1/none" for name in report.formats)


def _agreeing(
    path: str,
    base_offset: int | None,
    surroundings: Surroundings,
    corrections: Corrections,
    report: Report,
    keep: Keep | None,
) -> tuple[int | None, Surroundings]:
    """The base offset and the surroundings without what the batches contradict, which is reported."""
    name, bounds = layout.parse_file_name(os.path.basename(path)), corrections.bounds
    if name is not None and (base_offset != name.base_offset or bounds.first is None):
        others = "another segment has these" if corrections.first_offset is None else "its batches have others"
        text = f"the file's name says that its offsets begin at {name.base_offset}, but {others}"
        report.add(Finding(*(("error", "offset-order") if keep is None else ("warning", "segment-name")), path, text))
    if bounds.first is None:
        base_offset = None
    following = surroundings.following
    if following is not None and bounds.end is None and not may_overlap(path):
        surroundings = surroundings._replace(following=None, flushed=None)
    return base_offset, surroundings


def inspect_segment(
    path: str,
    base_offset: int | None,
    surroundings: Surroundings,
    leader_epochs: list[LeaderEpoch] | None,
    threads: int | None,
    advance: Advance | None,
    corrections: Corrections | None = None,
) -> Report:
    """As `verify_segment`. That a segment cannot be read, or the rest of it, is a finding."""
    try:
        return verify_segment(
            path,
            base_offset,
            surroundings=surroundings,
            leader_epochs=leader_epochs,
            corrections=corrections,
            threads=threads,
            advance=advance,
        )
    except (DecodeError, OSError) as error:
        fault = fault_of(path, error)
        if fault is None:
            raise
    return unreadable_segment(path, fault)


def unreadable_segment(path: str, fault: DecodeError) -> Report:
    """The report on a segment that cannot be read, nor what it hides."""
    report = Report(path, num_segments=1)
    with suppress(OSError, KafkaCodecError):  # an upload's manifest may be the damage
        report.size_in_bytes = report.damaged_bytes = identity_of(path).size
    report.add(Finding("error", UNREADABLE, fault.path or path, fault.reason, fault.position))
    return report


class _Progress:
    """Turns positions into numbers of bytes since the last one."""

    def __init__(self, advance: Advance | None) -> None:
        self._advance, self._position = advance, 0

    def up_to(self, position: int) -> None:
        """The bytes before the position are read."""
        if self._advance is not None and position > self._position:
            self._advance(position - self._position)
            self._position = position


def _read_intact(checker: SegmentChecker, max_decompressed_bytes: int, threads: int, progress: _Progress) -> int:
    """Check the pieces of the file that `intact_pieces` reads; returns the position after them, in bytes."""
    position = 0
    read = _Pieces()
    with closing(intact_pieces(checker.file, max_decompressed_bytes, threads)) as pieces:
        for piece in pieces:
            position = piece.start + piece.headers.consumed
            progress.up_to(position)
            checker.report.num_records += piece.num_records
            read.add(piece.headers, piece.start)
            if len(read) >= ROWS_AT_ONCE:
                read.check_with(checker)
                read = _Pieces()
    read.check_with(checker)
    return position


class _Pieces:
    """Headers of pieces of a file that were read one by one into a buffer, to be checked together as one stretch."""

    def __init__(self) -> None:
        self._headers: BatchHeaders | None = None
        self._starts: list[int] = []
        self._counts: list[int] = []

    def __len__(self) -> int:
        """Number of batches."""
        return 0 if self._headers is None else len(self._headers)

    def add(self, headers: BatchHeaders, start: int) -> None:
        """Add the headers of the piece at position `start` of the file."""
        self._starts.append(start)
        self._counts.append(len(headers))
        if self._headers is None:
            self._headers = headers
        else:
            append(self._headers, headers)

    def check_with(self, checker: SegmentChecker) -> None:
        """Check what was added."""
        if self._headers is not None:
            positions = self._headers["position"] + np.repeat(self._starts, self._counts)
            checker.check(self._headers, np.array(self._starts[:1]), [None], positions)


class _Stretches:
    """Intact stretches of a segment and the damage after each, until there are enough to check them together.

    A table of headers and its checks cost far more than a row: with damage at every other batch, a table for each
    stretch would be most of the work.
    """

    def __init__(self, checker: SegmentChecker, keep: Keep | None) -> None:
        self.checker = checker
        self.keep = keep
        self.bounds: list[tuple[int, int]] = []
        self.problems: list[Problem | None] = []

    def add(self, start: int, end: int, problem: Problem | None) -> None:
        """Add file[start, end), which was read without a fault, and the problem after it.

        A batch with a wrong offset is a problem too, unless it is restored.
        """
        for misplaced in self.checker.misplaced_between(start, end):
            self._add(start, misplaced.position, misplaced)
            start = misplaced.position + misplaced.size_in_bytes
        self._add(start, end, problem)

    def _add(self, start: int, end: int, problem: Problem | None) -> None:
        if end - start > LONG_STRETCH:
            self.check()
            self._check_long(start, end)
            start = end
        if start < end or problem is not None:
            self.bounds.append((start, max(start, end)))
            self.problems.append(problem)

    def enough(self, position: int) -> bool:
        """Whether the collected stretches, which end at `position`, should be checked."""
        count = len(self.bounds)
        return not count or count >= STRETCHES_AT_ONCE or position - self.bounds[0][0] > LONG_STRETCH

    def check(self) -> None:
        """Check the collected stretches."""
        file = self.checker.file
        file.check_size()
        bounds, problems = self.bounds, self.problems
        self.bounds, self.problems = [], []
        if bounds:
            pairs = np.array(bounds, np.int64)
            headers = scan_stretches(file.view(), pairs.data)
            file.check_size()
            self._give(headers, pairs[:, 0], problems)

    def _check_long(self, start: int, end: int) -> None:
        for headers in walk(self.checker.file, start, end):
            self._give(headers, np.array([start]), [None])

    def _give(self, headers: BatchHeaders, starts: npt.NDArray[np.int64], problems: Sequence[Problem | None]) -> None:
        base, last = self.checker.check(headers, starts, problems)
        if self.keep is not None and len(headers):
            self.keep(self.checker.file, headers, base, last)
