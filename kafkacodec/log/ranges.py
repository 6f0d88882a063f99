"""Pieces of segments that can be read on their own: what a plan hands to a task, a thread or a progress bar."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypedDict, Unpack

import numpy as np

from kafkacodec.errors import CorruptRecord, DecodeError, MissingOffsets
from kafkacodec.log import kafka07, layout
from kafkacodec.log.continuity import Gaps, check_gaps
from kafkacodec.log.ends import RangeEnds
from kafkacodec.log.files import MappedFile
from kafkacodec.records.columns import Problem, Problems, RecordColumns
from kafkacodec.records.decode import DEFAULT_MAX_BYTES, DEFAULT_MAX_ROWS, DecodeOptions, columns_between, decode


class _Span(TypedDict):
    max_rows: int
    max_bytes: int
    start_position: int
    end_position: int


DROP_BEHIND = 8 << 20
"""Bytes of the mapped file that stay in memory behind the place where reading is."""


@dataclass(frozen=True)
class SegmentRange:
    """Batches of one segment, one after the other. Cheap to pickle: the file is opened where it is read.

    Attributes:
        path (str): the segment.
        topic (str | None): the topic, None where the directory's name does not tell.
        partition (int | None): the partition's number, likewise.
        start_position (int): where the first batch begins, in bytes.
        end_position (int): where the range ends, in bytes; a partial batch may stand before it.
        first_offset (int): no record of the range has a smaller offset.
        last_offset (int | None): the last offset of the range's batches; None for what runs to the end of the file.
        start_offset (int | None): records below are left out; the first batch may have some. None: no such bound.
        end_offset (int | None): records from here on are left out. None: no such bound.
        aborted (tuple[tuple[int, int, int], ...]): transactions whose records are left out: producer id, first offset
            and offset of the marker, sorted.
        following (int | None): the base offset of the next segment, where the range runs to the end of one: what lies
            between is missing unless it was compacted away. None: not known, or the last segment.
        flushed (int | None): up to which offset the log was on the disk, where the range runs to its end. None: not
            known.
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
        """Bytes to be read."""
        return self.end_position - self.start_position

    @property
    def is_kafka07(self) -> bool:
        """Whether the segment is one of Kafka 0.6 or 0.7."""
        return kafka07.is_kafka07(self.path)

    def nothing(self, columns: Iterable[str] | None = None, *, batch_columns: bool = False) -> RecordColumns:
        """No rows, with the columns that `read` gives: old formats have fewer. The file is not opened."""
        if self.is_kafka07:
            return kafka07.nothing(columns, batch_columns=batch_columns)
        return decode(b"", columns=columns, batch_columns=batch_columns)

    def read(
        self,
        *,
        gaps: Gaps = "error",
        max_rows: int = DEFAULT_MAX_ROWS,
        max_bytes: int = DEFAULT_MAX_BYTES,
        **options: Unpack[DecodeOptions],
    ) -> Iterator[RecordColumns]:
        """The records of the range, in chunks. Options and errors as in `Partition.read`."""
        with MappedFile(self.path) as file:
            yield from self.read_from(file, gaps=gaps, max_rows=max_rows, max_bytes=max_bytes, **options)

    def read_from(
        self,
        file: MappedFile,
        *,
        gaps: Gaps = "error",
        max_rows: int = DEFAULT_MAX_ROWS,
        max_bytes: int = DEFAULT_MAX_BYTES,
        **options: Unpack[DecodeOptions],
    ) -> Iterator[RecordColumns]:
        """As `read`, from a file that is already open."""
        check_gaps(gaps)
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
            for chunk in self._chunks(file, max_rows, max_bytes, options):
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
        if consumed < self.end_position < file.size and not self.is_kafka07:
            cut = CorruptRecord("the batch reaches over the end of its range", position=consumed, path=self.path)
            yield self._told(Problem(consumed, None, self.end_position - consumed, cut), options)
        elif gaps == "error":
            misplaced = ends.misplaced_end()
            file.check_size()
            if misplaced is not None:
                first = misplaced.first_offset if isinstance(misplaced, MissingOffsets) else None
                position = misplaced.position or 0
                yield self._told(Problem(position, first, file.size - position, misplaced), options)

    def _told(self, problem: Problem, options: DecodeOptions) -> RecordColumns:
        """What to say of a fault between batches: the error is raised, or listed with no rows."""
        if options.get("on_error", "raise") == "raise":
            raise problem.exception
        empty = self.nothing(options.get("columns"), batch_columns=options.get("batch_columns", False))
        empty.consumed = problem.position + problem.num_bytes
        empty.problems = Problems([problem])
        return empty

    def _chunks(
        self, file: MappedFile, max_rows: int, max_bytes: int, options: DecodeOptions
    ) -> Iterator[RecordColumns]:
        start, end = self.start_position, self.end_position
        if self.is_kafka07:
            name = layout.parse_file_name(os.path.basename(self.path))
            base_offset = 0 if name is None else name.base_offset
            span: _Span = {
                "max_rows": max_rows,
                "max_bytes": max_bytes,
                "start_position": start,
                "end_position": end,
            }
            return kafka07.read(file, base_offset, **span, **options)
        aborted = np.array(self.aborted, np.int64).tobytes()
        return columns_between(file.data, start, end, aborted, max_rows=max_rows, max_bytes=max_bytes, **options)


def _larger(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None or b < a else b


def _smaller(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None or a < b else b
