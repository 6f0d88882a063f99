"""Ranges of segments that can be read independently, for example by a task or a thread."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Unpack

from kafkacodec.errors import CorruptRecord, DecodeError, MissingOffsets
from kafkacodec.log.continuity import Gaps, check_gaps
from kafkacodec.log.ends import RangeEnds
from kafkacodec.log.files import MappedFile
from kafkacodec.log.kinds import SegmentKind, kind_of
from kafkacodec.records.arguments import num_threads
from kafkacodec.records.columns import Problem, Problems, RecordColumns
from kafkacodec.records.decode import DEFAULT_MAX_ROWS, DecodeOptions

DROP_BEHIND = 8 << 20
"""Bytes of the mapped file before the current position that stay in memory."""


@dataclass(frozen=True)
class SegmentRange:
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
    """

    path: str
    topic: str | None
    partition: int | None
    start_position: int
    end_position: int
    first_offset: int = 0
    last_offset: int | None = None
    start_offset: int | None = None
    end_offset: int | None = None
    aborted: tuple[tuple[int, int, int], ...] = ()
    following: int | None = None
    flushed: int | None = None

    @property
    def size_in_bytes(self) -> int:
        """The number of bytes to read."""
        return self.end_position - self.start_position

    @property
    def kind(self) -> SegmentKind:
        """How the segment is read: formats differ."""
        return kind_of(self.path)

    def nothing(self, options: DecodeOptions) -> RecordColumns:
        """No rows, with the columns of `read`: old formats have fewer. The file is not opened."""
        return self.kind.nothing(options)

    def read(
        self,
        *,
        gaps: Gaps = "error",
        max_rows: int = DEFAULT_MAX_ROWS,
        max_bytes: int | None = None,
        mapped: bool = False,
        threads: int | None = 1,
        **options: Unpack[DecodeOptions],
    ) -> Iterator[RecordColumns]:
        """The records of the range, in chunks. Options and errors as in `Partition.read`."""
        with MappedFile(self.path) as file:
            yield from self.read_from(
                file, gaps=gaps, max_rows=max_rows, max_bytes=max_bytes, mapped=mapped, threads=threads, **options
            )

    def read_from(
        self,
        file: MappedFile,
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
            misplaced = None if self.start_position else ends.misplaced_start()
            file.check_size()
            if misplaced is not None:
                yield self._told(Problem(0, None, 0, misplaced), options)
                if stop:
                    return
            for chunk in self.kind.read(file, self, max_rows, max_bytes, not mapped, num_threads(threads), options):
                file.check_size()
                consumed = chunk.consumed
                ends.follow(chunk)
                file.drop_before(consumed - DROP_BEHIND)
                yield chunk
                if chunk.problems and stop:
                    return
        except DecodeError as error:
            file.check_size()
            raise error.within(self.path) from None
        if consumed < self.end_position < file.size and self.kind.has_batches:
            cut = CorruptRecord("the batch extends past the end of its range", position=consumed, path=self.path)
            yield self._told(Problem(consumed, None, self.end_position - consumed, cut), options)
        elif gaps == "error":
            misplaced = ends.misplaced_end()
            file.check_size()
            if misplaced is not None:
                first = misplaced.first_offset if isinstance(misplaced, MissingOffsets) else None
                position = misplaced.position or 0
                yield self._told(Problem(position, first, file.size - position, misplaced), options)

    def _told(self, problem: Problem, options: DecodeOptions) -> RecordColumns:
        """Raise the error of a fault between batches, or return it as the problem of a chunk without rows."""
        if options.get("on_error", "raise") == "raise":
            raise problem.exception
        empty = self.nothing(options)
        empty.consumed = problem.position + problem.size_in_bytes
        empty.problems = Problems([problem])
        return empty


def _larger(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None or b < a else b


def _smaller(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None or a < b else b
