"""Roll-back of a job that was killed between its renames: the I/O around the decisions of `journal`.

A job that publishes holds the lock of its partitions and, while its write is pending, that of the log directory. A
process that holds the latter and finds a pending write therefore knows that its job has ended.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

from kafkacodec.log.files import publishing
from kafkacodec.log.files.access import exists, is_directory, read_file, sync_path
from kafkacodec.log.files.locks import LOCK_FILE, PartitionLock
from kafkacodec.log.formats import layout
from kafkacodec.log.opening.checkpoints import known_offsets
from kafkacodec.signatures import suggests_options
from kafkacodec.spark.errors import UnfinishedWrite
from kafkacodec.spark.writing.journal import (
    Identity,
    Journal,
    State,
    WrittenPartition,
    encode_state,
    in_place,
    parse_state,
    why_not,
)

__all__ = [
    "MAX_STATE_BYTES",
    "directory_lock",
    "read_state",
    "recover_write",
    "refuse_broker",
    "remove_files",
    "roll_back",
    "roll_back_locked",
    "store_state",
]

MAX_STATE_BYTES = 64 << 20
"""The largest state that is read or written, in bytes: more than half a million segments in one write."""

WAIT = 60.0
"""Seconds that a job waits while another one publishes."""

_TEMPORARY = re.compile(rf"{re.escape(layout.WRITE_STATE)}\.{publishing.TOKEN}\.tmp")

logger = logging.getLogger("kafkacodec.spark")


def read_state(log_dir: str) -> State:
    """What jobs have recorded in a log directory; nothing if there is no such file.

    Raises:
        CorruptRecord, LimitExceeded: the file is not one of this module's.
        OSError: it cannot be read, or is not a regular file.
    """
    path = os.path.join(log_dir, layout.WRITE_STATE)
    if not exists(path):
        return State()
    if stat.S_ISLNK(os.lstat(path).st_mode):
        raise OSError(errno.ELOOP, "a symbolic link, not a file that a job has written", path)
    return parse_state(read_file(path, MAX_STATE_BYTES), path)


def store_state(log_dir: str, state: State) -> None:
    """Replace the recorded state, on disk.

    Raises:
        OSError: it cannot be written, or would be larger than what is read.
    """
    path, data = os.path.join(log_dir, layout.WRITE_STATE), encode_state(state)
    if len(data) > MAX_STATE_BYTES:
        raise OSError(errno.EFBIG, "too many segments in one write: use fewer tasks, partitions or more bytes", path)
    publishing.replace_file(path, data)


@contextmanager
def directory_lock(log_dir: str, *, wait: float) -> Iterator[PartitionLock]:
    """Hold the lock of a log directory, which one job at a time has while its write is pending.

    Raises:
        BlockingIOError: another job or a broker had it for `wait` seconds.
    """
    lock = PartitionLock(log_dir, layout.WRITE_STATE, of="log directory")
    lock.acquire(wait)
    try:
        yield lock
    finally:
        lock.release()


def roll_back(log_dir: str, *, wait: float | None = None) -> None:
    """Remove the segments that a killed job published of an incomplete write. Returns at once if there is none.

    Raises:
        UnfinishedWrite: it cannot be removed.
        BlockingIOError: another job publishes, a writer has one of the partitions, or a broker has the log directory,
            for `wait` seconds, by default `WAIT`.
        CorruptRecord: the recorded state is damaged.
        OSError: a file cannot be removed.
    """
    if read_state(log_dir).journal is None:
        return
    wait = WAIT if wait is None else wait
    with directory_lock(log_dir, wait=wait) as lock:
        _resolve(log_dir, lock, wait=wait)


def roll_back_locked(log_dir: str, lock: PartitionLock) -> State:
    """As `roll_back`, for a caller that has the directory's lock; returns the recorded state."""
    _resolve(log_dir, lock, wait=WAIT)
    for name in filter(_TEMPORARY.fullmatch, os.listdir(log_dir)):  # of a job killed while it recorded something
        publishing.remove(os.path.join(log_dir, name))
    return read_state(log_dir)


@suggests_options
def recover_write(log_dir: str | os.PathLike[str], *, keep: bool = False) -> list[str]:
    """Resolve a write whose driver was killed while it published.

    The next write to the directory does this by itself, with ``keep=False``, unless the system has no locks.

    Args:
        log_dir: the log directory that was written to.
        keep: keep the segments that are visible instead of removing them. They are not all of the job's records, and
            running the job again adds them once more.

    Returns:
        The ``.log`` files that were removed, or kept; an empty list if there is nothing to resolve.

    Raises:
        UnfinishedWrite: the segments cannot be removed, since others were added or a broker has served them.
        BlockingIOError: a job is publishing to the directory, or a broker runs on it.
        CorruptRecord: the recorded state is damaged.
        OSError: the directory is not there, or a file cannot be removed.
    """
    place = os.path.abspath(log_dir)
    if not os.path.isdir(place):
        raise FileNotFoundError(errno.ENOENT, "there is no such directory, so no write to resolve", place)
    if read_state(place).journal is None:
        return []
    with directory_lock(place, wait=WAIT) as lock:
        return _resolve(place, lock, wait=WAIT, keep=keep, asked=True)


def refuse_broker(log_dir: str) -> None:
    """Raise BlockingIOError if a broker has locked the log directory; for a check before a job starts."""
    if not exists(os.path.join(log_dir, LOCK_FILE)):
        return
    try:
        with directory_lock(log_dir, wait=0):
            pass
    except BlockingIOError as error:
        if error.filename == log_dir:
            raise


def remove_files(log_dir: str, partitions: Iterable[WrittenPartition]) -> list[str]:
    """Remove a job's files as far as they are in place, and wait for the disk; returns the segments.

    All are removed before the first wait, which fails on a full disk.
    """
    removed, changed = [], []
    for partition in partitions:
        directory = os.path.join(log_dir, partition.name)
        names = in_place(partition, _listing(directory))
        for name in names:
            os.unlink(os.path.join(directory, name))
        if names:
            changed.append(directory)
        removed += [os.path.join(directory, name) for name in names if name.endswith(layout.LOG_SUFFIX)]
    for directory in changed:
        sync_path(directory)
    return removed


def _resolve(log_dir: str, lock: PartitionLock, *, wait: float, keep: bool = False, asked: bool = False) -> list[str]:
    state = read_state(log_dir)
    journal = state.journal
    if journal is None:
        return []
    if not lock.exclusive and not asked:
        reason = (
            "the file system has no locks, so a job may still be publishing: when none is, call "
            "kafkacodec.spark.recover_write"
        )
        raise UnfinishedWrite(f"{log_dir}: {reason}")
    with ExitStack() as stack:
        for partition in journal.partitions:
            other = PartitionLock(log_dir, partition.name)
            other.acquire(wait)
            stack.callback(other.release)
        if keep:
            segments = [
                os.path.join(log_dir, p.name, name)
                for p in journal.partitions
                for name in in_place(p, _listing(os.path.join(log_dir, p.name)))
                if name.endswith(layout.LOG_SUFFIX)
            ]
        else:
            _check(log_dir, journal)
            segments = remove_files(log_dir, journal.partitions)
        store_state(log_dir, state.undone())
    logger.warning(
        "%s: %s %d segments of a job that ended while it published",
        log_dir, "kept" if keep else "removed", len(segments),
    )  # fmt: skip
    return segments


def _check(log_dir: str, journal: Journal) -> None:
    """Raise unless all of the job's segments can be removed."""
    watermarks = known_offsets(log_dir, layout.HIGH_WATERMARK_CHECKPOINT)
    obstacles = []
    for partition in journal.partitions:
        name = layout.parse_directory_name(partition.name)
        key = (name.topic, name.partition) if name is not None else ("", -1)
        listing = _listing(os.path.join(log_dir, partition.name))
        reason = why_not(partition, listing, watermarks.get(key, -1))
        if reason is not None:
            obstacles.append(f"{partition}: {reason}")
    if obstacles:
        raise UnfinishedWrite(
            f"{log_dir}: a job was killed while it published, and its records cannot be removed ("
            + "; ".join(obstacles)
            + "); call kafkacodec.spark.recover_write(path, keep=True) to keep what there is, or remove it yourself"
        )


def _listing(directory: str) -> dict[str, Identity]:
    """The regular files of a partition's directory; none if it does not exist.

    Raises:
        NotADirectoryError: it is something else, such as a symbolic link: what it refers to is not touched.
    """
    if not exists(directory):
        return {}
    if stat.S_ISLNK(os.lstat(directory).st_mode) or not is_directory(directory):
        raise NotADirectoryError(errno.ENOTDIR, "not a directory that a job has written to", directory)
    found = {}
    with os.scandir(directory) as entries:
        for entry in entries:
            status = entry.stat(follow_symlinks=False)
            if stat.S_ISREG(status.st_mode):
                found[entry.name] = Identity(status.st_ino, status.st_size)
    return found
