"""The lag of consumer groups behind the logs that they read, from the files of brokers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

import numpy as np

from kafkacodec.arguments import ISOLATION_LEVELS, IsolationLevel, one_of, path_texts
from kafkacodec.datatypes import NamedTuple
from kafkacodec.errors import DecodeError, MissingOffsets
from kafkacodec.log.files.access import note
from kafkacodec.log.files.pool import in_threads
from kafkacodec.log.opening import fault_of, open_file
from kafkacodec.log.partitions.directory import discover
from kafkacodec.log.partitions.each_once import THREADS
from kafkacodec.log.partitions.inside import (
    breaks_around,
    end_offset_now,
    is_hidden,
    segments_between,
    surroundings,
    unless_unreadable,
)
from kafkacodec.log.partitions.partition import Partition
from kafkacodec.log.partitions.planning import end_of, least
from kafkacodec.log.partitions.segment import Segment
from kafkacodec.log.reading.lookup import Lookup
from kafkacodec.log.segments.kinds import kind_of
from kafkacodec.log.segments.walk import walk
from kafkacodec.log.state.groups import (
    CommittedOffset,
    Group,
    GroupMember,
    read_committed_offsets,
    read_consumer_groups,
)
from kafkacodec.named_rows import NamedRows
from kafkacodec.signatures import suggests_options

__all__ = ["PartitionLag", "lag"]

Place = tuple[str, int]
"""A topic and a partition's number."""

Span = tuple[int, int]
"""The first offset and the one after the last."""


class PartitionLag(NamedTuple):
    """The lag of a group in one partition. Times are in ms since the epoch.

    Attributes:
        group (str), topic (str), partition (int): which.
        offset (int | None): the committed offset, that of the next record to read; None: a member owns the partition,
            but nothing was committed.
        commit_timestamp (int | None): when it was committed.
        start_offset (int | None): where the log starts; this and the next ones are None if the log is not there, and
            the next ones if its last segment cannot be read and no other file shows them.
        end_offset (int | None): where the group can read to: the high watermark, or with ``read_committed`` the last
            stable offset.
        log_end_offset (int | None): where the log ends.
        lag (int | None): `end_offset` - `offset`, at least 0.
        timestamp (int | None): timestamp of the first record that is not read yet. None: there is none, it has none, or
            it is lost.
        end_timestamp (int | None): timestamp of the last batch before `end_offset`, the largest in it; likewise.
        lag_ms (int | None): `end_timestamp` - `timestamp`, at least 0; 0 if everything is read; None if unknown.
        member_id, client_id, client_host (str | None): the member that owns the partition; None if no one does.
        missing_offsets (int | None): how many offsets of `lag` the log has lost: a segment is missing or cut, or the
            log ends before its high watermark. None if unknown, as for a live broker.
    """

    group: str
    topic: str
    partition: int
    offset: int | None
    commit_timestamp: int | None
    start_offset: int | None
    end_offset: int | None
    log_end_offset: int | None
    lag: int | None
    timestamp: int | None
    end_timestamp: int | None
    lag_ms: int | None
    member_id: str | None
    client_id: str | None
    client_host: str | None
    missing_offsets: int | None = None
    problem: str | None = None

    @property
    def is_there(self) -> bool:
        """Whether there is a log of the partition."""
        return (self.start_offset, self.log_end_offset) != (None, None)

    @property
    def notes(self) -> list[str]:
        """Remarks about the partition, as text."""
        if not self.is_there and self.problem is None:
            return ["the partition is not in the directory"]
        found = [] if self.problem is None else ["its log cannot be read wholly"]
        if self.offset is not None and self.log_end_offset is not None and self.offset > self.log_end_offset:
            found.append("committed after the end of the log")
        if self.offset is not None and self.start_offset is not None and self.offset < self.start_offset:
            count = self.start_offset - self.offset
            found.append(f"{count} offset{'' if count == 1 else 's'} deleted before they were read")
        if self.missing_offsets:
            found.append(f"{self.missing_offsets} offset{'' if self.missing_offsets == 1 else 's'} lost by the log")
        return found


class PartitionLags(NamedRows[PartitionLag]):
    """A list of `PartitionLag` that notebooks show as a table, with `to_arrow`, `to_pandas` and `to_polars`."""

    row_type = PartitionLag


@suggests_options
def lag(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    isolation_level: IsolationLevel = "read_uncommitted",
    problems: list[DecodeError] | None = None,
) -> PartitionLags:
    """The lag of all groups, as ``kafka-consumer-groups --describe`` shows it, by group, topic and partition.

    The high watermark is that in ``replication-offset-checkpoint``, which brokers write every 5 seconds and when they
    stop. Where a group has committed a later offset, or there is no checkpoint, it is taken as that offset or as the
    end of the log.

    Args:
        paths: the data directories of a broker, or of several: the logs may be in other ones than the offsets. Of a
            partition in several directories the longest log counts, and offsets that it has lost come from the others;
            replicas of ``__consumer_offsets`` are read as one log.
        isolation_level: that of the consumers; with ``"read_committed"`` open transactions hold them back.
        problems: a list that the errors of unreadable batches and records are appended to; these are skipped. Without
            it the first such error is raised.

    Raises:
        FileNotFoundError: there is no partition of ``__consumer_offsets``.
        ValueError: an unknown isolation level.
        DecodeError: a batch or a record cannot be read; as `read_committed_offsets`.
        OSError: a file cannot be read.
    """
    one_of("isolation_level", isolation_level, ISOLATION_LEVELS)
    given = path_texts(paths)
    if not given:
        raise ValueError("paths: there are none; pass a broker's data directory")
    return lag_behind(given, isolation_level, of_commits=problems, of_logs=problems)


def lag_behind(
    given: Sequence[str],
    isolation_level: IsolationLevel,
    *,
    of_commits: list[DecodeError] | None,
    of_logs: list[DecodeError] | None,
) -> PartitionLags:
    """As `lag`, with a list for the errors of records of groups, and one for those of the logs that they read."""
    commits = {commit[:3]: commit for commit in read_committed_offsets(given, problems=of_commits)}
    owners = _owners(read_consumer_groups(given, problems=None if of_commits is None else []))  # the same problems
    logs = _Logs(given, isolation_level, of_logs)
    places = sorted(commits.keys() | owners.keys())
    return PartitionLags(logs.lag_of(*place, commits.get(place), owners.get(place)) for place in places)


GroupPlace = tuple[str, str, int]


def _owners(groups: Iterable[Group]) -> dict[GroupPlace, GroupMember]:
    return {
        (group.group, owned.topic, number): member
        for group in groups
        for member in group.members
        for owned in member.owned
        for number in owned.partitions
    }


class _Ends(NamedTuple):
    """The start and end of a partition's log; `stable` is its last stable offset if that counts.

    Attributes:
        end: where what can be read ends.
        is_whole: whether the log ends there; else its last segment cannot be read.
    """

    partition: Partition
    start: int
    end: int
    is_whole: bool
    high_watermark: int | None
    stable: int | None


class _Logs:
    """The logs of partitions, each looked at once."""

    def __init__(
        self,
        paths: Sequence[str | os.PathLike[str]],
        isolation_level: IsolationLevel,
        problems: list[DecodeError] | None,
    ) -> None:
        self.isolation_level = isolation_level
        self.problems = problems
        self._replicas: dict[Place, list[Partition]] = {}
        for partition in discover(paths):
            if partition.topic is not None and partition.partition is not None:
                self._replicas.setdefault((partition.topic, partition.partition), []).append(partition)
        self._ends: dict[Place, list[_Ends]] = {}
        self._gaps: dict[str, list[Span]] = {}
        self._times: dict[tuple[str, int], int | None] = {}
        self._faults: dict[Place, list[str]] = {}

    def lag_of(
        self, group: str, topic: str, partition: int, commit: CommittedOffset | None, member: GroupMember | None
    ) -> PartitionLag:
        """The lag of a group in a partition."""
        offset = None if commit is None else commit.offset
        copies = self._copies_of((topic, partition))
        longest = copies[0] if copies else None
        end = None if longest is None else _readable(longest, offset)
        behind = None if end is None or offset is None else max(end - offset, 0)
        time, end_time, lag_ms, missing = None, None, None, None
        if longest is not None and end is not None:
            first = end if offset is None else max(offset, longest.start)
            lost = {copy.partition.path: self._lost(copy, min(first, max(end - 1, 0)), end) for copy in copies}
            missing = None if offset is None else _length(_in_all(lost.values()), first)
            end_time = self._last_time(copies, lost, end)
            time = self._first_time(copies, lost, first, end) if behind else None
            lag_ms = 0 if behind == 0 else None if time is None or end_time is None else max(end_time - time, 0)
        return PartitionLag(
            group,
            topic,
            partition,
            offset,
            None if commit is None or commit.commit_timestamp == -1 else commit.commit_timestamp,
            None if longest is None else longest.start,
            end,
            longest.end if longest is not None and longest.is_whole else None,
            behind,
            time,
            end_time,
            lag_ms,
            None if member is None else member.member_id,
            None if member is None else member.client_id,
            None if member is None else member.client_host,
            missing,
            next(iter(self._faults.get((topic, partition), ())), None),
        )

    def _copies_of(self, place: Place) -> list[_Ends]:
        """A partition's logs, the longest first."""
        if place not in self._ends:
            copies = [self._read_ends(partition) for partition in self._replicas.get(place, ())]
            self._ends[place] = sorted(copies, key=lambda ends: (ends.end, ends.high_watermark or 0), reverse=True)
        return self._ends[place]

    def _read_ends(self, partition: Partition) -> _Ends:
        high_watermark = partition.high_watermark  # first: it is not after the end of a log that grows meanwhile
        end, is_whole = self._end_of(partition)
        if is_whole and high_watermark is not None and high_watermark > end:
            # In a segment that is new since they were listed?
            with unless_unreadable(partition), suppress(DecodeError):
                end = max(end, end_offset_now(partition))
        stable = None
        if self.isolation_level == "read_committed":
            stable = partition.transactions(start_offset=end).last_stable_offset
        return _Ends(partition, partition.start_offset(), end, is_whole, high_watermark, stable)

    def _lost(self, copy: _Ends, first: int, end: int) -> list[Span]:
        """The offsets of a span that a log does not have, though compaction does not explain it; in order."""
        found = [(max(copy.end, first), end)] if copy.end < end else []
        if not copy.partition.is_kafka07:
            segments = segments_between(copy.partition, first, end)
            for gaps in in_threads(lambda segment: self._gaps_at(copy.partition, segment), segments, THREADS, chunk=4):
                found += [(max(start, first), min(stop, end)) for start, stop in gaps if start < end and stop > first]
        return _joined(found)

    def _gaps_at(self, partition: Partition, segment: Segment) -> list[Span]:
        if segment.path not in self._gaps:
            self._gaps[segment.path] = self._read_gaps(partition, segment)
        return self._gaps[segment.path]

    def _read_gaps(self, partition: Partition, segment: Segment) -> list[Span]:
        """The offsets missing around a segment; all of its own if it cannot be read, which is a problem."""
        try:
            errors = breaks_around(partition, segment)
        except OSError as error:
            fault = fault_of(segment.path, error)
            if fault is None or self.problems is None:
                raise
            self._report(partition, fault)
            around, base = surroundings(partition, segment), segment.base_offset or 0
            return [(base, max(around.following or around.flushed or 0, base + 1))]
        return [(e.first_offset, e.end_offset) for e in errors if isinstance(e, MissingOffsets)]

    def _end_of(self, partition: Partition) -> tuple[int, bool]:
        """The log end offset, after damage too, which is a problem; and whether the log surely ends there."""
        is_whole = True
        for segment in reversed(partition.segments):
            try:
                last = self._last_offset(partition, segment)
            except (DecodeError, OSError) as error:
                fault = fault_of(segment.path, error)
                if fault is None or self.problems is None:
                    raise
                self._report(partition, fault)
                last, is_whole = None, False
            if last is not None:
                return last + 1, is_whole
            if segment.base_offset is not None:
                return segment.base_offset, is_whole
        return 0, is_whole

    def _last_offset(self, partition: Partition, segment: Segment) -> int | None:
        if not kind_of(segment.path).has_batches:
            return segment.last_offset()
        damage: list[DecodeError] = []
        with open_file(segment.path) as file:
            _, last = Lookup(file, segment.base_offset).end_after_damage(damage)
        for error in damage:
            self._report(partition, error)
        return last

    def _report(self, partition: Partition, error: DecodeError) -> None:
        """Note an error of a partition's log, once; raise it if nobody takes them."""
        if self.problems is None:
            raise error
        assert partition.topic is not None
        assert partition.partition is not None
        faults = self._faults.setdefault((partition.topic, partition.partition), [])
        if str(error) not in faults:
            faults.append(str(error))
            note(self.problems, error)

    def _first_time(self, copies: Sequence[_Ends], lost: Mapping[str, list[Span]], offset: int, end: int) -> int | None:
        """The timestamp of the first record from an offset on, in a copy that has it."""
        for copy in copies:
            found = self._first_record(copy.partition, offset, end)
            gaps = lost[copy.partition.path]
            if found is not None and not any(start <= found[0] for start, _ in gaps):
                return found[1]
        return None

    def _first_record(self, partition: Partition, offset: int, end: int) -> tuple[int, int | None] | None:
        """The offset and timestamp of the first record from an offset on."""
        for segment in segments_between(partition, offset, end):
            if not kind_of(segment.path).has_batches or is_hidden(segment):
                return None
            chunks = segment.read(
                start_position=segment.position_of_offset(offset),
                start_offset=offset,
                end_offset=least(end, end_of(partition, segment)),
                columns=("offset", "timestamp"),
                on_error="stop",
                max_rows=1,
            )
            for chunk in chunks:
                if len(chunk):
                    return int(chunk["offset"][0]), _milliseconds(chunk["timestamp"][0])
                for problem in chunk.problems:
                    assert isinstance(problem.exception, DecodeError)
                    self._report(partition, problem.exception.within(segment.path))
        return None

    def _last_time(self, copies: Sequence[_Ends], lost: Mapping[str, list[Span]], end: int) -> int | None:
        """The largest timestamp in the last batch before an offset, in a copy that has it."""
        for copy in copies:
            if not any(stop == end for _, stop in lost[copy.partition.path]):
                place = copy.partition.path, end
                if place not in self._times:
                    self._times[place] = _time_before(copy.partition, end)
                return self._times[place]
        return None


def _joined(spans: Iterable[Span]) -> list[Span]:
    """The spans in order, those that touch as one."""
    found: list[Span] = []
    for first, end in sorted(spans):
        if found and first <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((first, end))
    return found


def _in_all(lost: Iterable[list[Span]]) -> list[Span]:
    """The offsets that each of several lists of spans has."""
    common, *others = lost
    for other in others:
        both = [(max(a, c), min(b, d)) for a, b in common for c, d in other]
        common = [(first, end) for first, end in both if first < end]
    return common


def _length(spans: Iterable[Span], first: int) -> int:
    """The number of offsets in spans, from one on."""
    return sum(max(0, end - max(start, first)) for start, end in spans)


def _time_before(partition: Partition, end: int) -> int | None:
    for segment in reversed(segments_between(partition, None, end)):
        if not kind_of(segment.path).has_batches:
            return None
        time = None
        with open_file(segment.path) as file:
            for headers in walk(file, Lookup(file, segment.base_offset).start_for_offset(end - 1)):
                first = np.where(headers["magic"] >= 2, headers["base_offset"], headers["last_offset"])
                before = np.flatnonzero(first < end)
                if len(before):
                    time = headers["max_timestamp"][before[-1]]
                if len(before) < len(headers):
                    break
        if time is not None:
            return _milliseconds(time)
        end = end if segment.base_offset is None else min(end, segment.base_offset)  # what others have after it is lost
    return None


def _milliseconds(time: np.datetime64) -> int | None:
    return None if np.isnat(time) else int(time.astype(np.int64))


def _readable(ends: _Ends, offset: int | None) -> int | None:
    """The end of what a group can read; a commit after the high watermark shows a later end. None if unknown.

    A log that ends before its high watermark has lost its end.
    """
    if not ends.is_whole and ends.high_watermark is None:
        return None
    end = ends.end
    if ends.high_watermark is not None:
        end = max(ends.high_watermark, min(end, offset or 0))
    return end if ends.stable is None else min(end, ends.stable)
