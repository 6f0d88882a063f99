"""Ranges of segments that can be read independently, for example by a task or a thread."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, TypedDict, Unpack, get_args

from kafkacodec.arguments import num_threads, one_of
from kafkacodec.datatypes import dataclass, replace
from kafkacodec.errors import CorruptRecord, DecodeError, MissingOffsets, Truncated, _OutOfOrder
from kafkacodec.log.formats import layout
from kafkacodec.log.opening import StoredFile, fault_of
from kafkacodec.log.opening.listing import may_overlap
from kafkacodec.log.order.continuity import Gaps, check_gaps
from kafkacodec.log.order.corrections import bounds_beside, corrections_of, first_offsets
from kafkacodec.log.order.placement import OFFSETS_OF_SEGMENT
from kafkacodec.log.order.sets import are_sets, sets_in_order
from kafkacodec.log.reading.ends import RangeEnds
from kafkacodec.log.reading.lookup import Lookup
from kafkacodec.log.reading.relocate import MAX_TRIES, find, locate
from kafkacodec.log.segments.extent import Extent
from kafkacodec.log.segments.kinds import SegmentKind, kind_of
from kafkacodec.log.segments.walk import LARGEST_WINDOW, first_batches, walk
from kafkacodec.records.columns import Problem, Problems, RecordColumns
from kafkacodec.records.plan import DEFAULT_MAX_ROWS, DecodeOptions, Layout, Order, check_layout, plan_of
from kafkacodec.signatures import shows_options

KEPT_BEFORE = 8 << 20
"""Bytes of the mapped file before the current position that stay in memory."""

Lost = Literal["damage", "error", "report"]
"""The ways to treat offsets that were deleted or truncated after planning."""


class _How(TypedDict):
    """The options of `SegmentRange.read_from` that are not the decoder's."""

    gaps: Gaps
    max_rows: int
    max_bytes: int | None
    mapped: bool
    threads: int | None


_Decoding = tuple[int, int | None, bool, int, DecodeOptions]
"""What `SegmentKind.read` takes after the range: rows and bytes of a chunk, ownership, threads, and options."""


@dataclass(frozen=True)
class SegmentRange(Extent):
    """Consecutive batches of one segment. Cheap to pickle: the file is opened by `read`.

    Attributes:
        path (str): the segment.
        topic (str | None): the topic, None if the directory's name has none.
        partition (int | None): the partition's number, likewise.
        start_position (int): the start of the first batch, in bytes.
        end_position (int): the end of the range, in bytes; the range may end with a partial batch.
        first_offset (int): no record of the range has a smaller offset.
        last_offset (int | None): the last offset of the range's batches; None if the range extends to the end of the
            file.
        start_offset (int | None): records below are excluded; the first batch may have some. None: no bound.
        end_offset (int | None): records from this offset on are excluded. None: no bound.
        aborted (tuple[tuple[int, int, int], ...]): transactions whose records are excluded: producer id, first offset
            and offset of the marker, sorted.
        following (int | None): for a range at the end of a segment, the base offset of the next segment: offsets before
            it that no batch has are missing unless they were compacted away. None: unknown, or the last segment.
        flushed (int | None): for a range at the end of the log, its recovery point. None: unknown.
        identity (FileIdentity | None): by which `read` recognizes the file from which the range was planned. If the
            file has changed, it finds the range's offsets in the directory. None: the file is read as it is.
        log (LogIdentity | None): what the log was when the range was planned. None: unknown.
        replaced (bool): the file took the place of the one from which the range was planned.
        density (float): the share of the offsets that have records; below 1 only if planned with a limit of records and
            the batches next to the start show that some were removed.
        misplaced (bool): batches of the segment are known to be out of order; `read` finds out which ones are wrong.
    """

    @property
    def kind(self) -> SegmentKind:
        """How the segment is read: formats differ."""
        return kind_of(self.path)

    def nothing(self, options: DecodeOptions) -> RecordColumns:
        """No rows, with the columns of `read`: old formats have fewer. The file is not opened."""
        return self.kind.nothing(options)

    @shows_options(DecodeOptions, plan_of)
    def read(
        self,
        *,
        gaps: Gaps = "error",
        max_rows: int = DEFAULT_MAX_ROWS,
        max_bytes: int | None = None,
        mapped: bool = False,
        threads: int | None = 1,
        lost: Lost = "damage",
        **options: Unpack[DecodeOptions],
    ) -> Iterator[RecordColumns]:
        """The records of the range, in chunks. Options and errors as in `Partition.read`, and:

        Args:
            lost: what to do about offsets that were deleted or truncated after planning: ``"damage"`` treats them as
                `on_error` says; ``"error"`` raises `MissingOffsets` in any case; ``"report"`` adds it to the problems
                of a chunk without rows in any case. Offsets removed by the log cleaner are not lost.
        """
        one_of("lost", lost, get_args(Lost))
        how = _How(gaps=gaps, max_rows=max_rows, max_bytes=max_bytes, mapped=mapped, threads=threads)
        consumed = self.start_position
        try:
            for chunk in self._parts(how, lost, options):
                consumed = chunk.consumed
                yield chunk
        except MissingOffsets:
            raise
        except (DecodeError, OSError) as error:
            fault = fault_of(self.path, error)
            if fault is None or (isinstance(error, OSError) and options.get("on_error", "raise") == "raise"):
                raise
            # The rest is hidden, also where batches begin.
            left = max(self.end_position - consumed, 0)
            yield self._report(Problem(consumed, None, left, fault.within(self.path)), options)

    def _parts(self, how: _How, lost: Lost, options: DecodeOptions) -> Iterator[RecordColumns]:
        """The chunks of `read`, from the files that have the range's offsets now."""
        found, tries = locate(self), 0
        while (part := next(found, None)) is not None:
            if isinstance(part, MissingOffsets):
                problem = Problem(self.start_position, part.first_offset, self.size_in_bytes, part)
                yield self._report(problem, options, lost)
                if options.get("on_error") == "stop":
                    return
                continue
            piece, file = part
            first, rows = piece.offsets[0], 0
            try:
                with file:
                    for chunk in piece.read_from(file, **how, **options):
                        rows += len(chunk)
                        yield chunk
                        if chunk.problems and options.get("on_error") == "stop":
                            return
            except Truncated:
                tries += 1
                if not file.shortened or self.identity is None or self.log is None or tries > MAX_TRIES:
                    raise
                found = find(replace(self, start_offset=self._offset_after(first, rows, options)))

    def _offset_after(self, first: int, rows: int, options: DecodeOptions) -> int:
        """The offset after so many rows, counted from an offset on, as the log is now: at most where it was cut."""
        plain: DecodeOptions = {**options, "columns": ("offset",), "layout": "copy"}
        plain.pop("batch_columns", None)
        for part in find(replace(self, start_offset=first)) if rows else ():
            if isinstance(part, MissingOffsets):
                return part.first_offset
            with part[1]:
                for chunk in part[0].read_from(part[1], gaps="accept", **plain):
                    if len(chunk) >= rows:
                        return int(chunk["offset"][rows - 1]) + 1
                    rows -= len(chunk)
        return self.offsets[1] if rows else first

    @shows_options(DecodeOptions, plan_of)
    def read_from(
        self,
        file: StoredFile,
        *,
        gaps: Gaps = "error",
        max_rows: int = DEFAULT_MAX_ROWS,
        max_bytes: int | None = None,
        mapped: bool = False,
        threads: int | None = 1,
        **options: Unpack[DecodeOptions],
    ) -> Iterator[RecordColumns]:
        """As `read`, from a file that is already open."""
        check_gaps(gaps)
        options["layout"] = self.kind.layout(file, self, options.get("layout", "copy"))
        options["start_offset"] = _larger(self.start_offset, options.get("start_offset"))
        options["end_offset"] = _smaller(self.end_offset, options.get("end_offset"))
        ends = RangeEnds(file, self, options["start_offset"], options["end_offset"])
        consumed = self.start_position
        stop = options.get("on_error") == "stop"
        try:
            misplaced = None if self.start_position and self.size_in_bytes else ends.misplaced_start()
            file.check_size()
            if misplaced is not None and corrections_of(file, bounds_beside(self.path, self.flushed)).bounds.first:
                misplaced = None  # it is the first batch that is wrong, not the file's name
            if misplaced is not None:
                yield self._report(Problem(0, None, 0, misplaced), options)
                if stop:
                    return
            for chunk in self._decoded(file, max_rows, max_bytes, not mapped, num_threads(threads), options):
                file.check_size()
                consumed = chunk.consumed
                ends.follow(chunk)
                file.drop_before(consumed - KEPT_BEFORE)
                yield chunk
                if chunk.problems and stop:
                    return
        except DecodeError as error:
            file.check_size()
            raise error.within(self.path) from None
        if consumed < self.end_position < file.size and self.kind.has_batches:
            cut = CorruptRecord("the batch extends past the end of its range", position=consumed, path=self.path)
            yield self._report(Problem(consumed, None, self.end_position - consumed, cut), options)
        else:
            misplaced = ends.misplaced_end()
            file.check_size()
            if misplaced is not None and not (gaps == "accept" and isinstance(misplaced, MissingOffsets)):
                first = misplaced.first_offset if isinstance(misplaced, MissingOffsets) else None
                position = misplaced.position or 0
                yield self._report(Problem(position, first, file.size - position, misplaced), options)

    def _decoded(
        self,
        file: StoredFile,
        max_rows: int,
        max_bytes: int | None,
        owned: bool,
        threads: int,
        options: DecodeOptions,
    ) -> Iterator[RecordColumns]:
        """The chunks of the range's bytes. A batch with a wrong offset is damage."""
        how = max_rows, max_bytes, owned, threads, options
        if self.misplaced:
            yield from self._corrected(file, how, self.start_position)
            return
        order = self.order(file)
        position, stop = self.start_position, self.end_position
        while True:
            part = replace(self, start_position=position, end_position=stop)
            try:
                yield from self.kind.read(file, part, *how, order)
                if order is None or stop == self.end_position:
                    return
                position, stop = stop, self.end_position
                order = order._replace(sets_compared=False)
                continue
            except _OutOfOrder as error:
                position = error.position or 0
            file.check_size()
            compared = None if order is None or order.sets_compared else self._compared_to(file, position)
            if order is None or compared is None:
                break
            stop, order = compared, order._replace(sets_compared=True)
        yield from self._corrected(file, how, position)

    def _corrected(self, file: StoredFile, how: _Decoding, position: int) -> Iterator[RecordColumns]:
        """As `_decoded`, from a position on, of a segment in which batches have wrong offsets."""
        corrections = corrections_of(file, bounds_beside(self.path, self.flushed))
        *_, options = how
        for start, end, problem in corrections.stretches(self.start_position, self.end_position, self.path):
            if max(start, position) < end:
                part = replace(self, start_position=max(start, position), end_position=end)
                yield from self.kind.read(file, part, *how, None)
            if problem is not None:
                yield self._report(problem, options)
                if options.get("on_error") == "stop":
                    return

    def _compared_to(self, file: StoredFile, position: int) -> int | None:
        """The end of a stretch of batches from a compressed set of magic 1 on, if their offsets are in order; or None.

        Decompresses the sets: only their contents show where their offsets begin.
        """
        batch = first_batches(file, position)
        if not len(batch) or not are_sets(batch)[0]:
            return None
        columns = ("position", "last_offset")
        stop = next(walk(file, position, self.end_position, columns=columns, window=LARGEST_WINDOW)).consumed
        following = first_batches(file, stop)
        reach = stop + int(following["size_in_bytes"][0]) if len(following) else stop
        before = Lookup(file, self.base_offset).last_before(position)
        return stop if stop > position and sets_in_order(file, position, reach, before) else None

    def order(self, file: StoredFile) -> Order | None:
        """The bounds of the offsets of the range's batches; None: no bounds.

        The largest is below that of the batch after the range.
        """
        if self.base_offset is None:
            return None
        most = min(self.base_offset + OFFSETS_OF_SEGMENT, 1 << 63) - 1
        if self.following is not None and not may_overlap(self.path):
            most = self.following - 1
        if self.end_position < file.size:
            batch = first_batches(file, self.end_position)
            if len(batch):
                most = min(most, int(first_offsets(batch)[0]) - 1)
        elif self.following is None and not layout.is_upload(self.path):
            wrong = Lookup(file, self.base_offset).wrong_last()
            most = most if wrong is None else min(most, wrong - 1)
        return Order(max(self.base_offset, self.first_offset), most)

    def _report(self, problem: Problem, options: DecodeOptions, lost: Lost = "damage") -> RecordColumns:
        """Raise the error of a fault between batches, or return it as the problem of a chunk without rows."""
        if lost == "error" or (lost == "damage" and options.get("on_error", "raise") == "raise"):
            raise problem.exception
        empty = self.nothing(options)
        empty.consumed = problem.position + problem.size_in_bytes
        empty.problems = Problems([problem])
        return empty


def layout_of(pieces: Iterable[SegmentRange], wanted: Layout) -> Layout:
    """The layout of the records of all ranges: that of the first one with bytes that can be read."""
    check_layout(wanted)
    for piece in pieces:
        found = _layout_of(piece, wanted) if piece.size_in_bytes else None
        if found is not None:
            return found
    return wanted


def _layout_of(piece: SegmentRange, wanted: Layout) -> Layout | None:
    """The layout of a range's records; None if there are none, or their file cannot be read."""
    try:
        for part in locate(piece):
            if not isinstance(part, MissingOffsets):
                with part[1] as file:
                    return piece.kind.layout(file, part[0], wanted)
    except (DecodeError, OSError) as error:
        if fault_of(piece.path, error) is None:
            raise
    return None


def _larger(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None or b < a else b


def _smaller(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None or a < b else b
