"""From a job's staging directory into the log: where tasks write, and how the driver assigns offsets and publishes.

A task cannot know how many records other tasks write to the same partition, so each writes segments that start at
offset 0. When all tasks have succeeded, the driver shifts the base offsets and renames the files into place, oldest
first. Base offsets are not covered by checksums, and all other offsets in a segment and its indexes are relative to
them.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import NamedTuple

from kafkacodec.log import LogDirectory, LogWriter, Partition, layout
from kafkacodec.log.files import is_directory
from kafkacodec.log.publishing import sync_names, sync_path
from kafkacodec.log.renumber import renumber_segment
from kafkacodec.log.segment_writer import COMMIT_ORDER, publish_files
from kafkacodec.spark.options import TopicPartition

__all__ = ["new_directory", "publish", "remove", "remove_abandoned"]

ABANDONED_AFTER = 24 * 3600.0
"""Seconds without a change after which another job's staging directory counts as abandoned."""

WAIT = 60.0
"""Seconds that a job waits while another one publishes to the same partition."""

_STOPPING = 5.0
# Files that are synced at the same time.
_SYNCED_AT_ONCE = 4


def new_directory(log_dir: str) -> str:
    """A name for a job's staging directory, which the first task creates."""
    return os.path.join(log_dir, layout.staging_name(secrets.token_hex(16)))


def publish(log_dir: str, directories: Sequence[str]) -> None:
    """Append the segments that tasks have written to the log directory's partitions.

    All bytes are synced to disk before the first segment becomes visible. Other jobs that publish to the same
    partitions wait. If a file cannot be renamed, those renamed before it are removed, so that nothing of the job is
    visible.

    Args:
        log_dir: the log directory.
        directories: the tasks' directories, in the order of the tasks. A missing one has no records.

    Raises:
        BlockingIOError: another writer had a partition for `WAIT` seconds, or a broker has the log directory.
        OSError: a file cannot be written or renamed.
    """
    found: dict[TopicPartition, list[Partition]] = {}
    for directory in filter(is_directory, directories):
        for partition in LogDirectory(directory).all_partitions:
            if partition.topic is not None and partition.partition is not None:
                found.setdefault((partition.topic, partition.partition), []).append(partition)
    with ExitStack() as stack:
        targets = []
        for key, staged in sorted(found.items()):  # in the same order in every job, which prevents deadlock
            log = LogWriter(log_dir, *key, append=True, wait=WAIT)
            stack.callback(log.discard)  # releases the lock and removes a directory without segments
            targets.append((log, staged))
        # Small files first: they would wait while the disk is busy with segments.
        for log, _ in targets:
            log.prepare()
        with ThreadPoolExecutor(_SYNCED_AT_ONCE) as pool:
            moves = [move for log, staged in targets for move in _number(log, staged, pool)]
            for move in moves:
                move.synced.result()
        publish_files((move.source, move.target) for move in moves)
        for log, _ in targets:
            log.commit()
        for log, _ in targets:
            sync_names(log.path, "what the job has written")


class _Move(NamedTuple):
    """A file that gets its final name once it is synced."""

    source: str
    target: str
    synced: Future[None]


def _number(log: LogWriter, staged: list[Partition], pool: ThreadPoolExecutor) -> Iterator[_Move]:
    """Give staged segments the partition's next offsets, and start syncing them."""
    start = log.next_offset
    for partition in staged:
        end = start
        for segment in partition.segments:
            base = start + (segment.base_offset or 0)
            end = renumber_segment(segment.path, by=start, leader_epoch=log.leader_epoch)
            for suffix in COMMIT_ORDER:
                source = layout.sibling(segment.path, suffix)
                target = os.path.join(log.path, layout.file_name(base, suffix))
                yield _Move(source, target, pool.submit(sync_path, source))
        start = end


def remove(directory: str, *, may_be_written: bool = False) -> None:
    """Remove a staging directory.

    With `may_be_written`, tasks that Spark is stopping may still write to it: remove it until it stays removed, for at
    most `_STOPPING` seconds.
    """
    deadline = time.monotonic() + _STOPPING
    shutil.rmtree(directory, ignore_errors=True)
    while may_be_written and time.monotonic() < deadline:
        time.sleep(0.25)
        if not os.path.exists(directory):
            return
        shutil.rmtree(directory, ignore_errors=True)


def remove_abandoned(log_dir: str | os.PathLike[str], *, older_than: float = ABANDONED_AFTER) -> list[str]:
    """Remove the staging directories of jobs whose driver was killed.

    Every successful write does this. A directory counts as abandoned if nothing in it has changed for `older_than`
    seconds and no task on this machine has a file in it open for writing.

    Args:
        log_dir: the log directory that was written to.
        older_than: seconds since the last change; a day by default. Use 0 only if no job is writing.

    Returns:
        The paths of the removed directories.

    Raises:
        OSError: `log_dir` cannot be listed.
    """
    removed: list[str] = []
    if not os.path.isdir(log_dir):  # no task had any records
        return removed
    for entry in sorted(os.scandir(log_dir), key=lambda e: e.name):
        if layout.is_staging(entry.name) and not _in_use(entry.path, time.time() - older_than):
            remove(entry.path)
            removed.append(entry.path)
    return removed


def _in_use(directory: str, since: float) -> bool:
    """Whether anything in a directory has changed since a time, or is locked by a writer."""
    for place, _, names in os.walk(directory):
        for path in (place, *(os.path.join(place, name) for name in names)):
            try:
                if os.stat(path).st_mtime > since or (path != place and _is_locked(path)):
                    return True
            except OSError:  # another process removes files here, or access is denied
                return True
    return False


def _is_locked(path: str) -> bool:
    with open(path, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
