"""A partition's directory: its segments in order, read as a consumer reads them."""

from __future__ import annotations

import errno
import os
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from functools import cached_property, partial
from itertools import tee
from operator import index
from typing import TYPE_CHECKING, Unpack

from kafkacodec.arguments import ISOLATION_LEVELS, IsolationLevel, offset_span, one_of, path_text
from kafkacodec.errors import DecodeError
from kafkacodec.log.checking.report import Report
from kafkacodec.log.checking.verify_partition import verify_partition
from kafkacodec.log.files.pool import in_threads
from kafkacodec.log.formats import layout
from kafkacodec.log.formats.checkpoints import LeaderEpoch
from kafkacodec.log.opening import full_path, optional
from kafkacodec.log.opening.checkpoints import known_offsets, read_leader_epochs
from kafkacodec.log.opening.identity import BatchMark, LogIdentity, identify
from kafkacodec.log.opening.listing import SettledDirectory, directory_name, files_of_partition, partitions_below
from kafkacodec.log.opening.lost import LostLog, lost_log
from kafkacodec.log.order.continuity import Gaps, Surroundings, check_gaps
from kafkacodec.log.partitions.breaks import breaks_around
from kafkacodec.log.partitions.planning import Portion, least, log_end, offset_in_portion, plan_ranges, ranges_in_turn
from kafkacodec.log.partitions.segment import Segment, checked_limits
from kafkacodec.log.partitions.segment07 import listed_segment, segment_at
from kafkacodec.log.reading.options import ReadOptions
from kafkacodec.log.reading.ranges import SegmentRange, layout_of
from kafkacodec.log.reading.readable import Readable
from kafkacodec.log.reading.transactions import Transactions, scan_transactions
from kafkacodec.log.segments.kinds import BATCHES, SegmentKind, kind_of
from kafkacodec.moments import Moment, milliseconds, time_span
from kafkacodec.records.columns import RecordColumns
from kafkacodec.records.plan import DEFAULT_MAX_ROWS, DecodeOptions, plan_of
from kafkacodec.shown import counted, html_table, repr_of
from kafkacodec.signatures import shows_options, suggests_options

if TYPE_CHECKING:
    from kafkacodec.log.checking.checked import Advance

_NO_OFFSET = 1 << 63

_NEAR_OFFSETS = 16
"""Offsets for each wanted record, in which `Partition.head` looks first."""


class Partition(Readable):
    """The directory of one partition.

    Args:
        path: the directory.
        topic: its topic; by default from the directory's name.
        partition: its number; likewise.
        segments: read only these files instead of all segments in the directory.
        log_start_offset: records below are treated as deleted; by default from the checkpoint of the log directory.
        recovery_point: the offset up to which the log was on disk; likewise.

    Attributes:
        path (str): the directory.
        topic (str | None): the topic; None if the directory's name has none.
        partition (int | None): the number; likewise.
        state (str): ``current``; ``delete``, ``future``, ``stray`` for replicas set aside; ``remote`` for tiered files.
        has_all (bool): these are all segments in the directory, not only some that were named.
    """

    @suggests_options
    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        topic: str | None = None,
        partition: int | None = None,
        state: str | None = None,
        segments: Iterable[str | os.PathLike[str]] | None = None,
        log_start_offset: int | None = None,
        recovery_point: int | None = None,
    ) -> None:
        self.path = path_text(path)
        is_named = topic is not None and partition is not None and state is not None
        name = None if is_named else directory_name(self.path)
        self.topic = topic if topic is not None or name is None else name.topic
        self.partition = partition if partition is not None or name is None else name.partition
        self.state = state or ("current" if name is None else name.state)
        self.has_all = segments is None
        if segments is not None:  # named segments are read from their start
            log_start_offset = log_start_offset or 0
        if log_start_offset is not None:
            self.log_start_offset = log_start_offset
        if recovery_point is not None:
            self.recovery_point = recovery_point
        self._is_there = True  # `directory` knows partitions whose directory is gone
        self._listed: SettledDirectory | None = None  # what was listed; see `planning.ranges_in_turn`
        if segments is not None:
            named = [segment_at(path_text(path), topic=self.topic, partition=self.partition) for path in segments]
            self.segments = sorted(named, key=lambda s: (_base_offset(s), s.path))

    def __repr__(self) -> str:
        return repr_of(self, self.path)

    def __fspath__(self) -> str:
        return self.path

    def _repr_html_(self) -> str:
        there = [segment for segment in self.segments if not layout.is_stand_in(segment.path)]
        rows = ([os.path.basename(s.path), str(s.base_offset), f"{s.size_in_bytes:,}"] for s in there)
        names = ["segment", "base offset", "bytes"]
        return html_table(f"{self!r}: {counted(len(there), 'segment')}", names, rows, numbers=names[1:])

    @cached_property
    def segments(self) -> list[Segment]:
        """The segments, by offset; listed once, as `listing.segment_files` finds them.

        Raises:
            FileNotFoundError: there are none, and the directory has not the name of a partition's; the message says
                what it is, if that shows.
            OSError: the directory cannot be listed, and is not named like that of a partition.
        """
        found = self._list()
        if not found and self.topic is None:
            text = "this directory has no segments, and is not named like that of a partition"
            raise FileNotFoundError(errno.ENOENT, f"{text}{partitions_below(self.path)}", self.path)
        return found

    def _list(self) -> list[Segment]:
        """The segments of any directory."""
        self.recovery_point  # noqa: B018  # read first, so that a log that is being written does not seem to lag it
        self._listed = SettledDirectory.of(self.path) if self._is_there else None
        files = files_of_partition(self.path, named=self.topic is not None) if self._is_there else ()
        if not files and self._lost is not None:
            files = [self._lost.stand_in(self.path)]
        return [listed_segment(file, self.topic, self.partition) for file in files]

    @cached_property
    def _lost(self) -> LostLog | None:
        """What other files say of this log if it has no segments."""
        if self.state != "current" or self.topic is None or self.partition is None:
            return None
        return lost_log(self.path, self.topic, self.partition)

    @property
    def _origin(self) -> str:
        """The directory, or the file if only one segment was named."""
        return self.path if self.has_all or len(self.segments) != 1 else self.segments[0].path

    @property
    def is_kafka07(self) -> bool:
        """Whether this is a log of Kafka 0.6 or 0.7, whose segments end in ``.kafka``."""
        return any(not kind_of(segment.path).has_batches for segment in self.segments)

    @property
    def size_in_bytes(self) -> int:
        """The current size of all segments, in bytes; links to nothing have none."""
        return sum(segment._identity().size for segment in self.segments)

    @cached_property
    def leader_epochs(self) -> list[LeaderEpoch]:
        """The leader epochs; an empty list if the checkpoint is missing. Raises as `read_leader_epochs` does."""
        try:
            return read_leader_epochs(os.path.join(self.path, layout.LEADER_EPOCH_CHECKPOINT))
        except FileNotFoundError:
            return []

    @cached_property
    def log_start_offset(self) -> int:
        """The offset before which records are deleted, from a broker's ``log-start-offset-checkpoint``; 0 if none are.

        Deleted records may still be in the first segment; a consumer does not get them.
        """
        return self._checkpoint(layout.LOG_START_CHECKPOINT) or 0

    @cached_property
    def recovery_point(self) -> int:
        """The offset up to which the log was on disk, from ``recovery-point-offset-checkpoint``; 0 if unknown.

        A log that ends before it has lost records.
        """
        return self._checkpoint(layout.RECOVERY_POINT_CHECKPOINT) or 0

    @property
    def cleaned_to(self) -> int:
        """Where the log cleaner continues, from ``cleaner-offset-checkpoint``; 0 if it never cleaned this log."""
        return self._checkpoint(layout.CLEANER_CHECKPOINT) or 0

    @property
    def high_watermark(self) -> int | None:
        """The offset before which all replicas have the records, from ``replication-offset-checkpoint``.

        A broker writes it every 5 seconds and when it stops. It may be after the end of the log, for example if the
        topic was created again since. None: the file has no entry, or the directory is not in a log directory.
        """
        return self._checkpoint(layout.HIGH_WATERMARK_CHECKPOINT)

    def _checkpoint(self, name: str) -> int | None:
        if self.state != "current" or self.topic is None or self.partition is None:
            return None
        log_dir = os.path.dirname(full_path(self.path))
        return known_offsets(log_dir, name).get((self.topic, self.partition))

    @property
    def index_problems(self) -> list[DecodeError]:
        """Faults that look-ups found in index files so far; the look-ups worked around them."""
        return [problem for segment in self.segments for problem in segment.index_problems]

    def start_offset(self) -> int:
        """The first offset of the log: the first segment's base offset or the log start offset; 0 for an empty log."""
        for segment in self.segments:
            offset = segment.base_offset if segment.base_offset is not None else segment.first_offset()
            if offset is not None:
                return max(offset, self.log_start_offset)
        return self.log_start_offset

    def end_offset(self) -> int:
        """The log end offset: the offset after the last complete batch.

        If the last segment has only offsets before its name, or ends before the recovery point, others may have later
        ones.
        """
        return log_end(self.segments, self.recovery_point)

    def last_stable_offset(self) -> int:
        """The first offset of the oldest open transaction, where read_committed consumers wait; else `end_offset`."""
        end = self.end_offset()
        # Read from the newest producer snapshot on.
        stable = self._transactions(end, None, committed=False).last_stable_offset
        return end if stable is None else stable

    @suggests_options
    def offset_of_timestamp(self, timestamp: Moment, *, threads: int | None = 1) -> int | None:
        """The first offset whose record is at or after `timestamp`, or None.

        Deleted records do not count.

        Args:
            timestamp: milliseconds since 1970, a datetime (UTC without a time zone), a date, or text such as
                ``"2026-05-01T12:00"``, ``"yesterday"`` and ``"-1h"``.
            threads: as in `ranges`.
        """
        time = milliseconds(timestamp, "timestamp")
        found = (offset_in_portion(portion, time, threads) for portion in self._portions(self.log_start_offset, None))
        return next((offset for offset in found if offset is not None), None)

    @suggests_options
    def ranges(
        self,
        *,
        start_offset: int | None = None,
        end_offset: int | None = None,
        start_timestamp: Moment | None = None,
        end_timestamp: Moment | None = None,
        isolation_level: IsolationLevel = "read_uncommitted",
        max_bytes: int | None = None,
        max_offsets: int | None = None,
        max_records: int | None = None,
        threads: int | None = 1,
    ) -> list[SegmentRange]:
        """Plan reading a span of the log as ranges that can be read independently.

        Args:
            start_offset, end_offset: only records with start_offset <= offset < end_offset. The default start is
                `log_start_offset`; a smaller one includes records that count as deleted.
            start_timestamp: start at the first record at or after this time, as a consumer that seeks by time; what may
                be given is as in `offset_of_timestamp`.
                With `start_offset` too, the later of both counts.
            end_timestamp: end before the first record at or after this time.
            isolation_level: ``"read_committed"`` excludes the records of aborted transactions, and all records from
                the first one of an open transaction (the last stable offset).
            max_bytes, max_offsets, max_records: cut segments into ranges of about this size, as `Segment.ranges`.
            threads: how many files to open at a time, where there are many; None: the number of processors.

        Returns:
            list[SegmentRange]: in order. An empty one represents a segment with nothing to read, whose end may show
                that offsets are missing.

        Raises:
            ValueError: an unknown isolation level, or the end time is before the start time.
            DecodeError, OSError: as the methods of `Segment`.
        """
        one_of("isolation_level", isolation_level, ISOLATION_LEVELS)
        limits = checked_limits(max_bytes, max_offsets, max_records)
        span = self._offsets(start_offset, end_offset, start_timestamp, end_timestamp, threads)
        if span is None:
            return []
        return plan_ranges(self, *span, limits, committed=isolation_level == "read_committed", threads=threads)

    def _portions(self, start_offset: int | None, end_offset: int | None) -> Iterable[Portion]:
        """The directories that the offsets of a span are read from, in order: this one."""
        return [Portion(self, start_offset, end_offset)]

    def _identity(self) -> LogIdentity:
        """The identity of this log, by topic id and leader epochs; read again by each call."""
        return identify(self.path, self.topic, self.partition)

    def _batch_at(self, offset: int) -> BatchMark | None:
        """The batch that has an offset; None if none has it, or it is of a format before v2."""
        for segment in self._segments_between(offset, offset + 1):
            if not kind_of(segment.path).has_batches:
                continue
            mark = segment._mark_of(offset)
            if mark is not None:
                return mark
        return None

    def _relisted(self) -> Partition:
        """The same partition as its directory is now: segments and checkpoints are read again."""
        named = None if self.has_all else [segment.path for segment in self.segments]
        now = Partition(self.path, topic=self.topic, partition=self.partition, state=self.state, segments=named)
        now._is_there = self._is_there
        return now

    def _surroundings(self, segment: Segment) -> Surroundings:
        """The required end of a segment's batches: the next segment of the directory, or the recovery point."""
        if segment.base_offset is None:
            return Surroundings(None, None, self.topic, self.partition)
        i = bisect_right(self._base_offsets, segment.base_offset)
        following = self._base_offsets[i] if i < len(self._base_offsets) else None
        lost = self._lost if layout.stands_for_log(segment.path) else None
        flushed = self.recovery_point if lost is None else lost.end_offset
        return Surroundings(following, flushed or None if following is None else None, self.topic, self.partition)

    @suggests_options
    def breaks(
        self, start_offset: int | None = None, end_offset: int | None = None, *, threads: int | None = 1
    ) -> list[DecodeError]:
        """Find gaps and overlaps between segments, from their first and last batches and the index files.

        Args:
            start_offset, end_offset: report only missing offsets between these.
            threads: as in `ranges`.

        Returns:
            list[DecodeError]: `MissingOffsets` for a gap, or an end before the recovery point, that compaction does not
                explain; `CorruptRecord` for a segment that overlaps another.

        Raises:
            OSError: a segment cannot be read.
        """
        self._base_offsets  # noqa: B018  # listed once, before there are threads
        check = partial(self._breaks_around, start_offset=start_offset, end_offset=end_offset)
        return [error for errors in in_threads(check, self.segments, threads) for error in errors]

    def _breaks_around(
        self, segment: Segment, start_offset: int | None = None, end_offset: int | None = None
    ) -> list[DecodeError]:
        """As `breaks`, at the start and the end of one segment."""
        return breaks_around(segment, self._surroundings(segment), (start_offset, end_offset))

    @cached_property
    def _base_offsets(self) -> list[int]:
        """Those of all segments in the directory, even if only some were named."""
        known = [segment.base_offset for segment in self.segments if segment.base_offset is not None]
        if self.has_all:
            return known
        found = set(known)
        self.recovery_point  # noqa: B018  # see `segments`
        with optional(self.path):
            found |= {s.base_offset or 0 for s in Partition(self.path, recovery_point=0)._list()}
        return sorted(found)

    @shows_options(DecodeOptions, plan_of)
    def read(
        self,
        *,
        start_timestamp: Moment | None = None,
        end_timestamp: Moment | None = None,
        isolation_level: IsolationLevel = "read_uncommitted",
        gaps: Gaps = "error",
        max_rows: int = DEFAULT_MAX_ROWS,
        max_bytes: int | None = None,
        mapped: bool = False,
        threads: int | None = 1,
        **options: Unpack[DecodeOptions],
    ) -> Iterator[RecordColumns]:
        """The records, oldest first, in chunks of bounded size; no chunk if the span is empty.

        Args:
            start_timestamp, end_timestamp, isolation_level: as in `ranges`.
            gaps: what to do if offsets are missing between two segments, or before the recovery point, without a sign
                that the log cleaner removed them: ``"error"`` treats that as damage, for which `on_error` applies;
                ``"accept"`` ignores it.
            max_rows, max_bytes, mapped, threads: as in `Segment.read`; `consumed` and positions count from the start
                of a segment.
            The other options: as in `kafkacodec.decode`, and ``columns`` as in `Segment.read`; `start_offset` and
                `end_offset` also find the place to start and to end.

        Raises:
            MissingOffsets: offsets are missing; raised after the records before them. A subclass of `Truncated`.
            As `ranges` and `Segment.read`. Wrong index files are worked around: see `index_problems`.
        """
        check_gaps(gaps)
        one_of("isolation_level", isolation_level, ISOLATION_LEVELS)
        bounds = options.pop("start_offset", None), options.pop("end_offset", None)
        span = self._offsets(*bounds, start_timestamp, end_timestamp, threads=1)
        if span is None:
            return
        selected = ranges_in_turn(self, *span, committed=isolation_level == "read_committed")
        if "layout" in options:
            ahead, selected = tee(selected)
            options["layout"] = layout_of(ahead, options["layout"])
            del ahead  # or it would keep what is read
        for piece in selected:
            for chunk in piece.read(
                gaps=gaps, max_rows=max_rows, max_bytes=max_bytes, mapped=mapped, threads=threads, **options
            ):
                yield chunk
                if chunk.problems and options.get("on_error") == "stop":
                    return

    def _pieces(self, options: ReadOptions) -> list[SegmentRange]:
        return self.ranges(
            start_offset=options.get("start_offset"),
            end_offset=options.get("end_offset"),
            start_timestamp=options.get("start_timestamp"),
            end_timestamp=options.get("end_timestamp"),
        )

    def _near(self, options: ReadOptions, wanted: int) -> ReadOptions | None:
        """Offsets of which some may be those of markers and aborted records, or have none."""
        limits = ("end_offset", "start_timestamp", "end_timestamp")
        if not self._kind.has_batches or any(options.get(name) is not None for name in limits):
            return None
        start = options.get("start_offset")
        first = self.start_offset() if start is None else max(index(start), 0)
        return {**options, "end_offset": first + _NEAR_OFFSETS * wanted}

    @property
    def _kind(self) -> SegmentKind:
        return kind_of(self.segments[0].path) if self.segments else BATCHES

    def transactions(self, start_offset: int | None = None, end_offset: int | None = None) -> Transactions:
        """The aborted and open transactions that matter for a span of the log."""
        return self._transactions(start_offset, end_offset, committed=True)

    def _transactions(self, start_offset: int | None, end_offset: int | None, *, committed: bool) -> Transactions:
        return scan_transactions(self.path, self.segments, start_offset, end_offset, committed=committed)

    @suggests_options
    def verify(self, *, threads: int | None = 1, advance: Advance | None = None) -> Report:
        """Inspect every segment as `Segment.verify` does, and the partition.

        That is: whether segments follow one another up to the recovery point, leader epochs, the transaction indexes,
        the producer snapshots and the topic id.

        Args:
            threads: as in `Segment.verify`.
            advance: called with the number of bytes read since the last call.

        Raises:
            OSError: the directory or a segment cannot be read.
        """
        return verify_partition(self, self._surroundings, self._end_offset_now, threads, advance)

    def _end_offset_now(self) -> int:
        """As `end_offset`, including segments added since they were listed."""
        now = Partition(self.path, topic=self.topic, partition=self.partition, log_start_offset=0, recovery_point=0)
        now._is_there = self._is_there
        now.segments = now._list()
        return now.end_offset()

    def _offsets(
        self,
        start_offset: int | None,
        end_offset: int | None,
        start_timestamp: Moment | None,
        end_timestamp: Moment | None,
        threads: int | None,
    ) -> tuple[int | None, int | None] | None:
        """The bounds as offsets; None if no record is late enough."""
        start_offset, end_offset = offset_span(start_offset, end_offset)
        if start_offset is None and self.log_start_offset:
            start_offset = self.log_start_offset
        start_time, end_time = time_span(start_timestamp, end_timestamp)
        if start_time is not None:
            found = self.offset_of_timestamp(start_time, threads=threads)
            if found is None:
                return None
            start_offset = found if start_offset is None else max(start_offset, found)
        if end_time is not None:
            end_offset = least(end_offset, self.offset_of_timestamp(end_time, threads=threads))
        return start_offset, end_offset

    def _segments_between(self, start_offset: int | None, end_offset: int | None) -> list[Segment]:
        """The segments that may have records between two offsets."""
        segments = self.segments
        named = bisect_left(segments, _NO_OFFSET, key=_base_offset)
        first = 0 if start_offset is None else max(bisect_right(segments, start_offset, key=_base_offset) - 1, 0)
        stop = named if end_offset is None else bisect_left(segments, end_offset, key=_base_offset)
        return segments[min(first, named) : stop] + segments[named:]


def _base_offset(segment: Segment) -> int:
    """By which segments are ordered; those without one are last."""
    return _NO_OFFSET if segment.base_offset is None else segment.base_offset
