"""Log directories of a broker: their topics and partitions."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import cached_property
from typing import NoReturn, Unpack

from kafkacodec.arguments import num_threads, path_text, path_texts, require_text, suggestion
from kafkacodec.log.checking.report import Finding, Report
from kafkacodec.log.checking.verify_files import check_offset_checkpoints
from kafkacodec.log.formats import layout
from kafkacodec.log.opening import Entry, entries, full_path, identity_of, is_directory, is_url
from kafkacodec.log.opening.checkpoints import known_offsets, reporting_checkpoints
from kafkacodec.log.opening.listing import directory_name, segment_files
from kafkacodec.log.opening.missing import suggesting
from kafkacodec.log.opening.packed import packed_as
from kafkacodec.log.partitions.inside import end_offset_now, unless_unreadable, without_directory
from kafkacodec.log.partitions.listings import Listings
from kafkacodec.log.partitions.moved import without_moved
from kafkacodec.log.partitions.partition import Partition
from kafkacodec.log.partitions.selection import Selection, verify_each
from kafkacodec.log.partitions.topic import Topic
from kafkacodec.log.reading.options import ReadOptions
from kafkacodec.records.columns import RecordColumns
from kafkacodec.shown import counted, html_table, repr_of
from kafkacodec.signatures import shows_options, suggests_options

LOST_AND_FOUND = "lost+found"
"""A directory at the root of a file system, which only root can list."""


class LogDirectory:
    """A broker's data directory (one of its ``log.dirs``), or a copy of one: a directory per partition.

    Args:
        path: the directory. It is listed once, when its partitions are first asked for; make a new object to see
            changes.

    Attributes:
        path (str): the directory.

    Raises:
        FileNotFoundError, NotADirectoryError: there is no such directory.
        OSError: it cannot be listed; raised on first use.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path_text(path)
        if not is_directory(self.path):
            with suggesting(self.path):
                identity_of(self.path)
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), self.path)

    def __repr__(self) -> str:
        return repr_of(self, self.path)

    def __fspath__(self) -> str:
        return self.path

    def _repr_html_(self) -> str:
        found = [self.topic(name) for name in self._names]
        rows = ([t.name, str(len(t.partitions)), f"{t.size_in_bytes:,}"] for t in found)
        names = ["topic", "partitions", "bytes"]
        return html_table(f"{self!r}: {counted(len(found), 'topic')}", names, rows, numbers=names[1:])

    @cached_property
    def all_partitions(self) -> list[Partition]:
        """Every partition's directory, including those set aside, by topic and number."""
        found = list(_partition_directories(self.path, self.log_start_offsets, self._recovery_points))
        return sorted(found, key=lambda p: (p.topic or "", -1 if p.partition is None else p.partition, p.state))

    @property
    def set_aside(self) -> list[Partition]:
        """Replicas that are no longer or not yet in use: `Partition.state` is delete, future or stray."""
        return [p for p in self.all_partitions if p.state not in ("current", "remote")]

    @property
    def topics(self) -> list[str]:
        """The topics' names, sorted; an empty list for the directory of a new broker.

        Raises:
            FileNotFoundError: this is no log directory: it has partitions in directories below it, or is itself that of
                a partition, or has files, but none of a broker. The message says which.
        """
        if self._misplaced:
            raise FileNotFoundError(errno.ENOENT, f"this directory has no partitions{self._misplaced}", self.path)
        return self._names

    @cached_property
    def _misplaced(self) -> str:
        """The kind of a directory that is not a broker's, as the end of a sentence; empty if it may be one."""
        names = [entry.name for entry in entries(self.path) if entry.name != LOST_AND_FOUND]
        if not names or any(layout.is_of_broker(name) for name in names):
            return ""
        if any(partition.segments for partition in self.all_partitions):
            return ""
        if segment_files(self.path):
            return ", but is that of one; pass it to kafkacodec.log.Partition, or its parent to LogDirectory"
        return _instead(self.path) or ("" if self.all_partitions else ", and no file of a broker")

    @property
    def _names(self) -> list[str]:
        return sorted({p.topic for p in self._current if p.topic is not None})

    def topic(self, name: str) -> Topic:
        """One topic, with all its partitions in this directory.

        Raises:
            FileNotFoundError: the directory does not have this topic; the message names a similar one.
        """
        require_text("topic", name)
        partitions = self.partitions(name)
        if not partitions:
            self._refuse_topic(name)
        return Topic(name, partitions, self.path)

    def select(self, *patterns: str) -> Selection:
        """The partitions of several topics, read as one: their records, tables, streams and counts.

        Args:
            patterns: names of topics, or patterns of names with ``*`` and ``?``. Default: all topics but Kafka's own,
                whose names begin with ``__``.

        Raises:
            FileNotFoundError: the directory has no such topic; the message names a similar one.
        """
        for pattern in patterns:
            require_text("a pattern", pattern)
            if not any(fnmatchcase(name, pattern) for name in self._names):
                self._refuse_topic(pattern)
        chosen = [
            name
            for name in self.topics
            if (any(fnmatchcase(name, p) for p in patterns) if patterns else not name.startswith("__"))
        ]
        if not chosen:
            raise FileNotFoundError(errno.ENOENT, "this directory has no topics but Kafka's own", self.path)
        return Selection([p for name in chosen for p in self.partitions(name)], self.path)

    def _refuse_topic(self, name: str) -> NoReturn:
        if self._misplaced or not self._names:
            text = f"no topic {name!r}: this directory has no partitions{self._misplaced}"
        else:
            text = f"no topic {name!r} in this directory; {suggestion(name, self._names, 'topics', most=20)}"
        raise FileNotFoundError(errno.ENOENT, text, self.path)

    def partitions(self, topic: str) -> list[Partition]:
        """The partitions of a topic, by number; an empty list for an unknown topic."""
        return [p for p in self._current if p.topic == topic]

    def partition(self, topic: str, partition: int) -> Partition:
        """One partition.

        Raises:
            FileNotFoundError: the directory does not have this partition or topic.
        """
        return self.topic(topic).partition(partition)

    @shows_options(ReadOptions, Partition.read)
    def read(self, topic: str, partition: int, **options: Unpack[ReadOptions]) -> Iterator[RecordColumns]:
        """The records of one partition, oldest first, in chunks.

        Without a `start_offset`, reading starts at the log start offset, below which records count as deleted.

        Args:
            topic: the topic's name.
            partition: the partition's number.
            start_timestamp, end_timestamp, isolation_level, gaps, max_rows, max_bytes, mapped, threads: as in
                `Partition.read`.
            The other options: as in `kafkacodec.decode`, and ``columns`` as in `Segment.read`.

        Raises:
            FileNotFoundError: the directory does not have this partition.
            As `Partition.read`.
        """
        return self.partition(topic, partition).read(**options)

    @suggests_options
    def verify(self, *, threads: int | None = 1) -> Report:
        """Inspect every partition as `Partition.verify` does, and the offset checkpoints.

        Args:
            threads: as in `Segment.verify`.

        Raises:
            OSError: a directory or a segment cannot be read.
        """
        count = num_threads(threads)
        with reporting_checkpoints(self.path):
            report = verify_each(self._current, self.path, count)
            report.include(self.verify_checkpoints())
        return report

    def verify_checkpoints(self, partitions: Iterable[Partition] | None = None) -> Report:
        """Inspect the offset checkpoints only: they must be readable, and within the logs of `partitions`.

        Args:
            partitions: the partitions of this directory to compare them with; by default all.

        Raises:
            OSError: a directory or a segment cannot be read.
        """
        report = Report(self.path)
        chosen = self._current if partitions is None else partitions

        def ends() -> dict[tuple[str, int], int]:
            found = {}
            for p in chosen:
                if p.topic is not None and p.partition is not None and p.state == "current" and _has_segments(p):
                    with unless_unreadable(p):
                        found[p.topic, p.partition] = end_offset_now(p)
            return found

        check_offset_checkpoints(self.path, ends, report)
        if partitions is None or {p.path for p in chosen} >= {p.path for p in self._current}:
            self._note_absent(report)
        return report

    def _note_absent(self, report: Report) -> None:
        """Note topics that had records here according to the recovery points, but have no directory.

        That is no fault for sure: copies of some topics have the checkpoints of all.
        """
        known, starts = {p.topic for p in self.all_partitions}, self.log_start_offsets
        named = [key for key, end in sorted(self._recovery_points.items()) if end > starts.get(key, 0)]
        absent = [f"{topic}-{partition}" for topic, partition in named if topic not in known]
        if absent:
            more = f" and {len(absent) - 1:,} more" if len(absent) > 1 else ""
            text = f"it says that {absent[0]}{more} had records, but nothing of the topic is here:"
            path = os.path.join(self.path, layout.RECOVERY_POINT_CHECKPOINT)
            report.add(Finding("note", "absent", path, f"{text} deleted, left out of a copy, or lost"))

    @cached_property
    def log_start_offsets(self) -> Mapping[tuple[str, int], int]:
        """The log start offsets, for partitions that have one in ``log-start-offset-checkpoint``."""
        return known_offsets(self.path, layout.LOG_START_CHECKPOINT)

    @cached_property
    def high_watermarks(self) -> Mapping[tuple[str, int], int]:
        """The high watermarks, as the broker last wrote them to ``replication-offset-checkpoint``."""
        return known_offsets(self.path, layout.HIGH_WATERMARK_CHECKPOINT)

    @cached_property
    def _recovery_points(self) -> Mapping[tuple[str, int], int]:
        return known_offsets(self.path, layout.RECOVERY_POINT_CHECKPOINT)

    @property
    def _current(self) -> list[Partition]:
        return [p for p in self.all_partitions if p.state in ("current", "remote")]


@suggests_options
def discover(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    levels: int = 0,
    listings: Listings | None = None,
) -> list[Partition]:
    """Find the partitions in one or more paths.

    Args:
        paths: log directories, partition directories and segment files, in any mixture. Segments of the same directory
            become one partition with only these segments. Unpublished output of jobs is ignored.
        levels: in a directory without partitions, look for log directories this many levels below it.
        listings: those of an earlier call, to list only changed directories. They are updated.

    Raises:
        FileNotFoundError: a path does not exist, or is a directory without a partition or a segment.
        OSError: a path cannot be read.
    """
    given = path_texts(paths)
    found: list[Partition] = []
    files: dict[str, list[str]] = {}
    listings = Listings() if listings is None else listings
    # A pattern such as logs/* also matches unpublished output of jobs.
    given = [path for path in given if not layout.is_staging(os.path.basename(full_path(path)))] or given
    for path in given:
        if not is_directory(path):
            with suggesting(path):
                identity_of(path)
            files.setdefault(os.path.dirname(path) or os.curdir, []).append(path)
            continue
        alone = listings.restore(Partition(path))
        here = [alone] if alone.segments else _partitions_below(path, levels, listings)
        here = [p for p in here if p.state in ("current", "remote")] or here
        if not here:
            raise FileNotFoundError(
                errno.ENOENT, f"no Kafka log segments in this directory{_instead(path, levels)}", path
            )
        found += here
    return without_moved(found) + [Partition(directory, segments=names) for directory, names in files.items()]


def _instead(path: str, levels: int = 0) -> str:
    """The contents of a directory without segments, also `levels` below it, as the end of a sentence."""
    if any(packed_as(entry.name) for entry in entries(path)):
        return ", but packed files: unpack them first"
    with suppress(OSError):
        below = _partitions_below(path, 1, Listings())
        if below and os.path.dirname(below[0].path) != path:
            return f", but in directories below it; pass one of them, such as {os.path.dirname(below[0].path)}"
    named = [partition for partition in LogDirectory(path).all_partitions if _is_name_only(partition)]
    if named:
        return f": {named[0].path} has the name of a partition, but none of its files"
    return f", nor in log directories up to {levels} levels below it" if levels else ""


def _partitions_below(path: str, levels: int, listings: Listings) -> list[Partition]:
    """The partitions of a log directory, or of those up to `levels` below it."""
    there = LogDirectory(path).all_partitions
    found = [partition for partition in there if listings.has_segments(partition.path) or not _is_name_only(partition)]
    if not levels or any(p.segments for p in found):
        return found
    # Directories of log directories may have names as partitions do, such as kafka-1.
    names = [e.name for e in entries(path) if e.is_dir() and not layout.is_staging(e.name) and e.name != LOST_AND_FOUND]
    below = [os.path.join(path, name) for name in sorted(names)]
    return [p for directory in below for p in _partitions_below(directory, levels - 1, listings)] or found


def _is_name_only(partition: Partition) -> bool:
    """Whether a directory has the name of a partition, and files, but none of Kafka's.

    Not of an object store, where each directory would be a request.
    """
    found = False
    if not is_url(partition.path):
        with suppress(OSError), os.scandir(partition.path) as files:  # readers tell that it cannot be listed
            for file in files:
                if file.name in _OF_PARTITIONS or layout.parse_file_name(file.name) is not None:
                    return False
                found = True
    return found and not partition.segments


def _has_segments(partition: Partition) -> bool:
    """Whether it has some that exist."""
    return any(not layout.stands_for_log(segment.path) for segment in partition.segments)


Offsets = Mapping[tuple[str, int], int]

_OF_PARTITIONS = (layout.PARTITION_METADATA, layout.LEADER_EPOCH_CHECKPOINT)


def _partition_directories(path: str, log_starts: Offsets, recovery_points: Offsets) -> Iterator[Partition]:
    found = entries(path)
    directories = [entry for entry in found if entry.is_dir() and not layout.is_staging(entry.name)]
    known: list[layout.DirectoryName] = []
    for entry in directories:
        name = directory_name(entry.path)
        if name is None:
            yield from _uploaded_partitions(entry)
            continue
        known.append(name)
        log_start, recovery_point = (
            offsets.get((name.topic, name.partition), 0) if name.state == "current" else 0
            for offsets in (log_starts, recovery_points)
        )
        partition = Partition(
            entry.path,
            topic=name.topic,
            partition=name.partition,
            state=name.state,
            log_start_offset=log_start,
            recovery_point=recovery_point,
        )
        if name.state != "remote" or partition.segments:
            yield partition
    yield from _absent_partitions(path, known, {entry.name for entry in found}, log_starts, recovery_points)


def _absent_partitions(
    path: str, known: list[layout.DirectoryName], names: set[str], log_starts: Offsets, recovery_points: Offsets
) -> Iterator[Partition]:
    """Partitions with records according to the recovery points, whose directory is gone, or is something else.

    A topic without any directory is none of them: copies of some topics have the checkpoints of all.
    """
    there = {(name.topic, name.partition) for name in known}
    topics = {name.topic for name in known if name.state == "current"}
    for topic, number in sorted(recovery_points.keys() - there):
        name = f"{topic}-{number}"
        if topic in topics or name in names:
            partition = without_directory(
                Partition(
                    os.path.join(path, name),
                    topic=topic,
                    partition=number,
                    state="current",
                    log_start_offset=log_starts.get((topic, number), 0),
                    recovery_point=recovery_points[topic, number],
                )
            )
            if partition.segments:
                yield partition


def _uploaded_partitions(directory: Entry) -> Iterator[Partition]:
    """The partitions of a topic in tiered storage. Others than brokers name directories in this way: see what is in."""
    if layout.is_remote_topic(directory.name):
        for number in entries(directory.path):
            if number.is_dir() and layout.parse_remote_directory(number.path) is not None:
                partition = Partition(number.path)
                if partition.segments:
                    yield partition
