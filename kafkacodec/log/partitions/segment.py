"""A segment file: its batches, its records in chunks, look-up of offsets and timestamps, ranges."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal, Self, Unpack

from kafkacodec.arguments import limit, path_text
from kafkacodec.datatypes import replace
from kafkacodec.errors import CorruptRecord, DecodeError
from kafkacodec.log.checking.report import Report
from kafkacodec.log.files.access import FileIdentity
from kafkacodec.log.formats import layout
from kafkacodec.log.formats.checkpoints import LeaderEpoch
from kafkacodec.log.opening import StoredFile, fault_of, full_path, identity_of, open_file
from kafkacodec.log.opening.identity import BatchMark
from kafkacodec.log.order.continuity import ALONE, Surroundings
from kafkacodec.log.reading.cuts import Limits, cut, placed
from kafkacodec.log.reading.lookup import Lookup
from kafkacodec.log.reading.options import ReadOptions
from kafkacodec.log.reading.ranges import SegmentRange
from kafkacodec.log.reading.readable import Readable
from kafkacodec.log.segments.kinds import SegmentKind, kind_of
from kafkacodec.log.segments.walk import NO_SEGMENT, begins_like_a_batch, first_batches, refuse_other
from kafkacodec.moments import Moment, milliseconds
from kafkacodec.records.columns import BatchHeaders, RecordColumns
from kafkacodec.records.headers import scan
from kafkacodec.records.plan import DEFAULT_MAX_ROWS, DEFAULT_MAX_TOTAL_BYTES, DecodeOptions, checked_range, plan_of
from kafkacodec.shown import repr_of
from kafkacodec.signatures import shows_options, suggests_options

if TYPE_CHECKING:
    from kafkacodec.log.checking.checked import Advance


class Segment(Readable):
    """A ``.log`` file (or any file of record batches, such as a KRaft ``.checkpoint``).

    Each method opens, maps and closes the file; none writes to it. Reading holds the last chunk, one decompressed batch
    and at most 16 MiB of the mapped file in memory.

    Args:
        path: the file. It need not exist before a method needs it.
        topic: the topic it belongs to, for the ranges; by default from the directory's name.
        partition: the partition, likewise.

    Attributes:
        path (str): the file.
        base_offset (int | None): the offset in the file's name; None for other names.
        index_problems (list[DecodeError]): faults that look-ups found in its index files so far.

    Raises (all methods that open the file):
        FileNotFoundError, PermissionError, IsADirectoryError, OSError: with the file's name in `filename`.
        DecodeError: invalid batches, with the file's name in `path` and the position in the file.
        Truncated: another process shortened the file while it was read.
    An empty file is a segment without batches, as the log cleaner leaves them.
    """

    @suggests_options
    def __init__(self, path: str | os.PathLike[str], *, topic: str | None = None, partition: int | None = None) -> None:
        path = path_text(path)
        name = layout.parse_file_name(os.path.basename(path))
        if topic is None or partition is None:
            tiered = None if name is None else name.segment_id is not None
            parent = os.path.dirname(full_path(path))
            directory = layout.parse_remote_directory(parent)
            directory = directory or layout.parse_directory_name(os.path.basename(parent), tiered=tiered)
            if directory is not None:
                topic = directory.topic if topic is None else topic
                partition = directory.partition if partition is None else partition
        self._begin(path, None if name is None else name.base_offset, topic, partition)

    @classmethod
    def _listed(cls, path: str, base_offset: int, topic: str | None, partition: int | None) -> Self:
        """As the constructor, in a fraction of the time: for the thousands of files of a listing."""
        segment = cls.__new__(cls)
        segment._begin(path, base_offset, topic, partition)
        return segment

    def _begin(self, path: str, base_offset: int | None, topic: str | None, partition: int | None) -> None:
        self.path, self.base_offset, self.topic, self.partition = path, base_offset, topic, partition
        self.index_problems: list[DecodeError] = []
        self._known_last: tuple[FileIdentity, tuple[int, int] | None] | None = None
        self._known_ends: dict[bool, tuple[FileIdentity, tuple[int, int | None]]] = {}  # before damage, and after it
        self._in_place: tuple[FileIdentity | None, Surroundings] | None = None  # where it fits: see `breaks`

    def __repr__(self) -> str:
        return repr_of(self, self.path)

    def __fspath__(self) -> str:
        return self.path

    @property
    def size_in_bytes(self) -> int:
        """The file's current size."""
        return identity_of(self.path).size

    @suggests_options
    def scan(
        self,
        *,
        columns: Iterable[str] | None = None,
        verify_crc: bool = True,
        on_error: Literal["raise", "stop"] = "raise",
        start_position: int = 0,
        max_batches: int | None = None,
        max_total_bytes: int = DEFAULT_MAX_TOTAL_BYTES,
        threads: int | None = 1,
    ) -> BatchHeaders:
        """Batch headers; arguments and errors as in `kafkacodec.scan`."""
        with self._opened() as file:
            try:
                headers = scan(
                    file.view(start_position),
                    columns=columns,
                    verify_crc=verify_crc,
                    on_error=on_error,
                    start_position=start_position,
                    max_batches=max_batches,
                    max_total_bytes=max_total_bytes,
                    threads=threads,
                )
            except DecodeError as error:
                raise error.within(self.path) from None
            if max_batches != 0:
                check_is_segment(file, headers.consumed)
            return headers

    @shows_options(DecodeOptions, plan_of)
    def read(
        self,
        *,
        start_position: int = 0,
        end_position: int | None = None,
        max_rows: int = DEFAULT_MAX_ROWS,
        max_bytes: int | None = None,
        mapped: bool = False,
        threads: int | None = 1,
        **options: Unpack[DecodeOptions],
    ) -> Iterator[RecordColumns]:
        """The records, in chunks of bounded size.

        Args:
            start_position: where to start, in bytes; a batch must begin there.
            end_position: where to end, in bytes.
            max_rows: rows of a chunk at most.
            max_bytes: bytes of keys, values and headers after which a chunk ends early. Default: 512 KiB, or 4 MiB for
                `mapped` views.
            mapped: with ``layout="view"``, views point into the mapped file instead of a copy that each chunk makes of
                its part of the file. This is faster; but if another process shortens the file later, values of
                earlier chunks become zeros without an error.
            threads: as in `kafkacodec.iter_columns`; files of Kafka 0.6 and 0.7 are read by one.
            The other options: as in `kafkacodec.decode`, where ``columns`` may include ``topic`` and ``partition``,
                null if the directory's name has none.

        Yields:
            RecordColumns: at least one, which may be empty. `consumed`, the positions in `problems` and the column
                ``batch_position`` count from the start of the file.
        """
        start, last = checked_range(start_position, end_position)
        with self._opened() as file:
            end = file.size if last is None else min(last, file.size)
            whole = SegmentRange(self.path, self.topic, self.partition, start, end)
            consumed = 0
            for chunk in whole.read_from(
                file, max_rows=max_rows, max_bytes=max_bytes, mapped=mapped, threads=threads, **options
            ):
                consumed = chunk.consumed
                yield chunk
            if start == 0:
                check_is_segment(file, consumed)

    def _pieces(self, options: ReadOptions) -> list[SegmentRange]:
        """The whole file, in which `read` finds the offsets."""
        start, end = options.get("start_offset"), options.get("end_offset")
        size = self.size_in_bytes
        return [SegmentRange(self.path, self.topic, self.partition, 0, size, start_offset=start, end_offset=end)]

    @property
    def _kind(self) -> SegmentKind:
        return kind_of(self.path)

    @suggests_options
    def ranges(
        self,
        *,
        max_bytes: int | None = None,
        max_offsets: int | None = None,
        max_records: int | None = None,
        start_offset: int | None = None,
        end_offset: int | None = None,
    ) -> list[SegmentRange]:
        """Cut the segment at batch boundaries, reading little more than the headers next to the cuts.

        If the offset index is missing or wrong, all headers from the last valid entry on are read instead.

        Args:
            max_bytes: the size of a range in bytes, which it exceeds by less than one batch. Default: no cuts.
            max_offsets: likewise, the number of offsets from the first to the last one.
            max_records: likewise, the number of records, estimated by the batch headers at the start of a range.
            start_offset: exclude batches before this offset.
            end_offset: exclude batches from this offset on.

        Returns:
            list[SegmentRange]: in order, without gaps; empty if no batch is between the offsets. The last range extends
                to the end of the file unless `end_offset` comes first. Damage is found when a range is read, not here.
        """
        limits = checked_limits(max_bytes, max_offsets, max_records)
        with self._opened() as file:
            lookup = self._lookup(file)
            start = 0 if start_offset is None else lookup.position_of_offset(start_offset)
            end = file.size if end_offset is None else lookup.end_of_offsets(end_offset)
            first = max(lookup.least_offset_at(start), self.base_offset or 0)
            pieces = placed(lookup, list(cut(lookup, start, end, first, limits)))
            found = [
                SegmentRange(
                    self.path,
                    self.topic,
                    self.partition,
                    piece.start,
                    piece.end,
                    piece.first_offset,
                    piece.last_offset,
                    start_offset,
                    end_offset,
                    identity=file.identity,
                    density=piece.density,
                    misplaced=lookup.is_out_of_order,
                )
                for piece in pieces
            ]
            if not found and lookup.is_out_of_order:  # reading tells why
                found = [replace(self._nothing_to_read(start_offset, end_offset), misplaced=True)]
            self._keep_end(lookup)
            return found

    def _whole(
        self,
        start_offset: int | None,
        end_offset: int | None,
        identity: FileIdentity | None = None,
        following: int | None = None,
    ) -> SegmentRange:
        """The range of all batches, planned from the names of this segment and of the next one. Does not open it."""
        return self._to_end(0, identity or self._identity(), start_offset, end_offset, following)

    def _replaced(self, start_offset: int | None, end_offset: int | None, known_at: int) -> SegmentRange:
        """The range of all offsets of a segment whose file was replaced or deleted: who reads it looks for them.

        A file that has changed since `known_at` (ns since 1970) may have replaced it.
        """
        return self._to_end(0, FileIdentity(0, 1, 0, known_at), start_offset, end_offset)

    def _nothing_to_read(self, start_offset: int | None = None, end_offset: int | None = None) -> SegmentRange:
        """An empty range at the end of the file, with the offset bounds of the reading that it is part of."""
        identity = self._identity()
        return self._to_end(identity.size, identity, start_offset, end_offset)

    def _identity(self) -> FileIdentity:
        """The identity of the file; without bytes if it is something else, or a link to nothing."""
        try:
            return identity_of(self.path)
        except OSError as error:
            if fault_of(self.path, error) is None:
                raise
            return FileIdentity(0, 0, 0, 0)

    def _to_end(
        self,
        position: int,
        identity: FileIdentity,
        start_offset: int | None,
        end_offset: int | None,
        following: int | None = None,
    ) -> SegmentRange:
        return SegmentRange(
            self.path,
            self.topic,
            self.partition,
            position,
            identity.size,
            self.base_offset or 0,
            start_offset=start_offset,
            end_offset=end_offset,
            following=following,
            identity=identity,
        )

    def first_offset(self) -> int | None:
        """The offset of the first batch's first record (old formats: its last); None without a batch."""
        with self._opened() as file:
            batch = first_batches(file, 0)
            return int(batch["base_offset"][0]) if len(batch) else None

    def last_offset(self) -> int | None:
        """The last offset of the complete batches, also after damage; None without a batch.

        Reads from the last valid index entry on.
        """
        return self._end(after_damage=True)[1]

    def position_of_offset(self, offset: int) -> int:
        """The position of the first batch with `offset` or a later one, or the end of the batches, in bytes."""
        with self._opened() as file:
            return self._lookup(file).position_of_offset(offset)

    @suggests_options
    def offset_of_timestamp(self, timestamp: Moment, *, start_offset: int = 0) -> int | None:
        """The first offset whose record is at or after `timestamp`; None if there is none.

        As for the ListOffsets request. Records without a timestamp, and those before `start_offset`, never match.
        """
        return self._offset_of_timestamp(milliseconds(timestamp), start_offset, None)

    def _offset_of_timestamp(self, time: int, start_offset: int, following: int | None) -> int | None:
        """Likewise, of a time in ms since 1970; batches with offsets from `following` on do not count."""
        with self._opened() as file:
            return self._lookup(file).offset_of_timestamp(time, start_offset, following)

    def end_position(self) -> int:
        """The end of the complete batches, in bytes: before a torn or a preallocated tail, or before damage."""
        return self._end()[0]

    @suggests_options
    def verify(
        self,
        *,
        leader_epochs: list[LeaderEpoch] | None = None,
        following: int | None = None,
        threads: int | None = 1,
    ) -> Report:
        """Inspect the segment: every batch's checksum and structure, the order of offsets, and its index files.

        Args:
            leader_epochs: the partition's, to compare with those of the batches.
            following: the base offset of the next segment, by which missing offsets at the end are found. Without it, a
                truncated segment cannot be distinguished from the last one of a log, whose end may be torn.
            threads: as in `kafkacodec.iter_columns`; the report is the same for any number.

        Returns:
            Report: damage is a finding, not an exception.

        Raises:
            OSError, Truncated: the file cannot be read to its end.
        """
        surroundings = ALONE if following is None else Surroundings(following, None, self.topic, self.partition)
        return self._verify_among(surroundings, leader_epochs, threads)

    def _verify_among(
        self,
        surroundings: Surroundings,
        leader_epochs: list[LeaderEpoch] | None = None,
        threads: int | None = 1,
        advance: Advance | None = None,
    ) -> Report:
        """As `verify`, with the partition's knowledge about the segment, and calls of `advance` with the number of
        bytes read.
        """
        from kafkacodec.log.checking.verify import inspect_segment

        return inspect_segment(self.path, self.base_offset, surroundings, leader_epochs, threads, advance)

    def _end(self, *, after_damage: bool = False) -> tuple[int, int | None]:
        """The end position of the complete batches, and their last offset; read once while the file stays the same.

        With `after_damage`, the intact batches that follow damage count too.
        """
        known = self._known_ends.get(after_damage)
        if known is not None and known[0] == identity_of(self.path):
            return known[1]
        with self._opened() as file:
            lookup = self._lookup(file)
            end = lookup.end_after_damage() if after_damage else lookup.end()
            if file.settled:
                self._known_ends[after_damage] = file.identity, end
            self._keep_end(lookup)
        return end

    def _mark_of(self, offset: int) -> BatchMark | None:
        """The batch that has an offset; None if none has it, or it is of a format before v2."""
        with open_file(self.path) as file:
            return self._lookup(file).mark_of(offset)

    def _keep_end(self, lookup: Lookup) -> None:
        if lookup.known_end is not None and lookup.file.settled:
            self._known_ends[False] = lookup.file.identity, lookup.known_end
            self._known_last = lookup.file.identity, lookup.known_last

    @contextmanager
    def _opened(self) -> Iterator[StoredFile]:
        """The open file. Raises CorruptRecord too: it is clearly not a segment."""
        with open_file(self.path) as file:
            if self.base_offset is None or not self.path.endswith(layout.LOG_SUFFIX):
                refuse_other(file)
            yield file

    def _lookup(self, file: StoredFile) -> Lookup:
        lookup = Lookup(file, self.base_offset)
        lookup.problems = self.index_problems
        known = self._known_last
        if known is not None and known[0] == file.identity:
            lookup.known_last = known[1]
        return lookup


def checked_limits(max_bytes: int | None, max_offsets: int | None, max_records: int | None) -> Limits:
    """The limits of ranges.

    Raises:
        ValueError: one is not positive.
    """
    given = {"max_bytes": max_bytes, "max_offsets": max_offsets, "max_records": max_records}
    return Limits(*(None if value is None else limit(name, value, 1) for name, value in given.items()))


def check_is_segment(file: StoredFile, consumed: int) -> None:
    """Raise if a file without a batch does not begin like one; a torn first batch is not an error."""
    if consumed == 0 and not begins_like_a_batch(file):
        raise CorruptRecord(NO_SEGMENT, position=0, path=file.path)
