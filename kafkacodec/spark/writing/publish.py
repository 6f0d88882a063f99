"""Publication from staging directories into the log: the driver assigns offsets and publishes all of a job or nothing.

A task cannot know how many records other tasks write to the same partition, so each writes segments that start at
offset 0. When all tasks have succeeded, the driver shifts the base offsets and renames the files into place, oldest
first. Base offsets are not covered by checksums, and all other offsets in a segment and its indexes are relative to
them. What happens if the driver is killed meanwhile is in `journal`.

Locks are taken in one order, which prevents deadlock: the partitions' by name, then the directory's.
"""

from __future__ import annotations

import errno
import logging
import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress

from kafkacodec.datatypes import NamedTuple, dataclass, replace
from kafkacodec.errors import DecodeError
from kafkacodec.log import LogDirectory, LogWriter, Partition
from kafkacodec.log.files.access import is_directory, sync_path
from kafkacodec.log.formats import layout
from kafkacodec.log.writing.renumber import renumber_segment
from kafkacodec.log.writing.segment_writer import COMMIT_ORDER, publish_files
from kafkacodec.log.writing.writer import DEFAULT_SEGMENT_BYTES
from kafkacodec.spark.reading.options import TopicPartition
from kafkacodec.spark.writing import recovery
from kafkacodec.spark.writing.joining import JOIN_AT_MOST, StagedSegment, is_small, join_small
from kafkacodec.spark.writing.journal import Identity, Journal, State, Transaction, WrittenPartition, WrittenSegment

__all__ = ["StagedTask", "publish"]

MANY_SEGMENTS = 64
"""Segments of one write in a partition, from which on a warning says how to write fewer."""

# Files that are synced at the same time: the file system combines what waits for its journal.
_SYNCED_AT_ONCE = 8

logger = logging.getLogger("kafkacodec.spark")


class StagedTask(NamedTuple):
    """The directory that a task has written, and the number of records in it."""

    directory: str
    records: int


def publish(
    log_dir: str,
    tasks: Sequence[StagedTask],
    *,
    segment_bytes: int = DEFAULT_SEGMENT_BYTES,
    transaction: Transaction | None = None,
) -> bool:
    """Append what tasks have written to the log directory's partitions.

    All bytes are synced to disk before the first segment becomes visible. Other jobs that publish to the same
    partitions wait. If a file cannot be renamed, those renamed before it are removed, so that nothing of the job is
    visible; if this process is killed, the next job removes them.

    Args:
        log_dir: the log directory.
        tasks: the tasks' output, in the order of the tasks.
        segment_bytes: the maximum size of a segment to which small ones are joined.
        transaction: recorded together with the write. If it is recorded already, nothing is written.

    Returns:
        Whether something was written.

    Raises:
        BlockingIOError: another writer had a partition for `recovery.WAIT` seconds, or a broker has the log directory.
        UnfinishedWrite: an earlier job was killed while it published, and its segments cannot be removed.
        CorruptRecord: the journal of writes is damaged.
        OSError: a file cannot be written or renamed, or a task's files are missing or have not all of its records. If
            the message says that the write is in place, it is complete, but may be lost in a power failure; if it says
            that segments may be left, they are visible until the next job removes them.
    """
    os.makedirs(log_dir, exist_ok=True)
    if recovery.read_state(log_dir).has(transaction):
        return False
    staged = _staged(tasks)
    if not staged and transaction is None:
        return True
    with ExitStack() as stack:
        logs = _locked(log_dir, sorted(staged), stack)
        # Small files first: they would wait while the disk is busy with segments.
        with ThreadPoolExecutor(_SYNCED_AT_ONCE) as pool:
            list(pool.map(LogWriter.prepare, logs.values()))
        written = _prepared(logs, staged, tasks, segment_bytes)
        done = _commit(log_dir, written, transaction)
        if done:
            for log in logs.values():
                log.commit()
        return done


Staged = dict[TopicPartition, list[tuple[StagedTask, Partition]]]


def _staged(tasks: Iterable[StagedTask]) -> Staged:
    """What tasks have written, by partition."""
    found: Staged = {}
    for task in tasks:
        if not is_directory(task.directory):
            if task.records:
                reason = "what the task has written was removed before the job was complete: run the job again"
                raise FileNotFoundError(errno.ENOENT, reason, task.directory)
            continue
        for partition in LogDirectory(task.directory).all_partitions:
            if partition.topic is not None and partition.partition is not None:
                found.setdefault((partition.topic, partition.partition), []).append((task, partition))
    return found


def _locked(log_dir: str, keys: Iterable[TopicPartition], stack: ExitStack) -> dict[TopicPartition, LogWriter]:
    """Writers, with the locks of their partitions, none of which has segments of a killed job."""
    names = {key: f"{key[0]}-{key[1]}" for key in keys}
    while True:
        recovery.roll_back(log_dir)
        with ExitStack() as held:
            logs = {}
            for key in names:
                log = logs[key] = LogWriter(log_dir, *key, append=True, wait=recovery.WAIT)
                held.callback(log.discard)  # releases the lock and removes a directory without segments
            journal = recovery.read_state(log_dir).journal
            # The job of a pending write has its partitions' locks, unless it has ended.
            if journal is None or not {p.name for p in journal.partitions}.intersection(names.values()):
                stack.push(held.pop_all())
                return logs


@dataclass
class _Written:
    """What is to be published to a partition."""

    log: LogWriter
    end: int
    segments: list[StagedSegment]

    def moves(self) -> Iterator[tuple[str, str]]:
        """The names of its files in the staging directory and in the log, in the order of the commit."""
        for segment in self.segments:
            for suffix in COMMIT_ORDER:
                name = layout.file_name(segment.base_offset, suffix)
                yield layout.sibling(segment.path, suffix), os.path.join(self.log.path, name)

    def entry(self) -> WrittenPartition:
        """The partition's entry in the journal."""
        segments = (
            WrittenSegment(s.base_offset, tuple(_identity(layout.sibling(s.path, suffix)) for suffix in COMMIT_ORDER))
            for s in self.segments
        )
        return WrittenPartition(os.path.basename(self.log.path), self.log.next_offset, self.end, tuple(segments))


def _identity(path: str) -> Identity:
    status = os.stat(path)
    return Identity(status.st_ino, status.st_size)


def _prepared(
    logs: dict[TopicPartition, LogWriter], staged: Staged, tasks: Sequence[StagedTask], segment_bytes: int
) -> list[_Written]:
    """The segments with their final offsets, small ones joined, and everything synced to disk."""
    written = []
    counts = dict.fromkeys(tasks, 0)
    sizes = [segment.size_in_bytes for parts in staged.values() for _, part in parts for segment in part.segments]
    small = sum(size for size in sizes if is_small(size, segment_bytes))
    with ThreadPoolExecutor(_SYNCED_AT_ONCE) as pool:
        syncs = []
        for key, log in logs.items():
            segments, end = _numbered(log, staged[key], counts)
            if small <= JOIN_AT_MOST:
                place = os.path.join(os.path.dirname(tasks[0].directory), f"joined.{secrets.token_hex(8)}")
                segments = join_small(log, segments, place, segment_bytes)
            if segments:
                written.append(_Written(log, end, segments))
                syncs += [pool.submit(sync_path, source) for source, _ in written[-1].moves()]
        for sync in syncs:
            sync.result()
    for task, count in counts.items():
        if count != task.records:
            reason = f"the task has written {task.records} records, but its files have {count}: run the job again"
            raise OSError(errno.EIO, reason, task.directory)
    _advise(written, segment_bytes)
    return written


def _numbered(
    log: LogWriter, staged: list[tuple[StagedTask, Partition]], counts: dict[StagedTask, int]
) -> tuple[list[StagedSegment], int]:
    """Give staged segments the partition's next offsets; adds the number of records to those of their tasks."""
    start, segments = log.next_offset, []
    for task, partition in staged:
        end = start
        for segment in partition.segments:
            base = start + (segment.base_offset or 0)
            end = renumber_segment(segment.path, by=start, leader_epoch=log.leader_epoch)
            segments.append(StagedSegment(segment.path, base, segment.size_in_bytes))
        counts[task] += end - start
        start = end
    return segments, start


def _advise(written: Iterable[_Written], segment_bytes: int) -> None:
    """One warning if a partition gets many segments that could be fewer."""
    for partition in written:
        count, size = len(partition.segments), sum(segment.size for segment in partition.segments)
        if count > MANY_SEGMENTS and size < count * segment_bytes // 2:
            name = os.path.basename(partition.log.path)
            hint = 'df.repartition("topic", "partition") before writing gives fewer'
            logger.warning("%s gets %d segments of %d bytes on average: %s", name, count, size // count, hint)
            return


def _commit(log_dir: str, written: list[_Written], transaction: Transaction | None) -> bool:
    """Rename the files, and record that; False if the transaction is complete already."""
    with recovery.directory_lock(log_dir, wait=recovery.WAIT) as lock:
        state = recovery.roll_back_locked(log_dir, lock)
        if state.has(transaction):
            return False
        entries = tuple(partition.entry() for partition in written)
        if entries:
            _begin(log_dir, replace(state, journal=Journal(transaction, entries)))
        try:
            publish_files(move for partition in written for move in partition.moves())
            with ThreadPoolExecutor(_SYNCED_AT_ONCE) as pool:
                list(pool.map(sync_path, [partition.log.path for partition in written]))
            recovery.store_state(log_dir, state.completed(transaction))  # the commit point
        except BaseException as error:
            left = _undo(log_dir, state, entries)
            if left is not None and isinstance(error, OSError):
                raise OSError(error.errno, f"{os.strerror(error.errno or 0)}; {left}", log_dir) from None
            raise
    return True


def _begin(log_dir: str, state: State) -> None:
    """Record what is going to be published."""
    try:
        recovery.store_state(log_dir, state)
    except OSError as error:
        with suppress(OSError, DecodeError):
            if recovery.read_state(log_dir).journal is not None:
                recovery.store_state(log_dir, state.undone())
        reason = f"nothing is written, since the write cannot be recorded: {os.strerror(error.errno or 0)}"
        raise OSError(error.errno, reason, os.path.join(log_dir, layout.WRITE_STATE)) from None


def _undo(log_dir: str, state: State, entries: tuple[WrittenPartition, ...]) -> str | None:
    """Remove what was published; returns what the error must say of the directory if that failed.

    The write may be recorded as complete, and only the record could not be synced.
    """
    try:
        if entries and recovery.read_state(log_dir).journal is None:
            return "the write is in place, but may be lost in a power failure"
        recovery.remove_files(log_dir, entries)
        recovery.store_state(log_dir, state)
    except (OSError, DecodeError):
        return "segments of this write may be left, which the next write to the directory removes"
    return None
