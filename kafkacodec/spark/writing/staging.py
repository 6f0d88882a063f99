"""Staging directories: where the tasks of a job write before the driver publishes, and their removal.

A staging directory is in the log directory, so that files can be renamed into place. It has a file that says which
driver it belongs to, and a directory per task attempt. The owner is named before anything else is there and goes last,
so whoever is killed leaves a directory of a known driver, or one in which nothing has begun: the next job removes both.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from kafkacodec.datatypes import NamedTuple
from kafkacodec.errors import LimitExceeded
from kafkacodec.log.files import publishing
from kafkacodec.log.files.access import close_read, read_file
from kafkacodec.log.formats import layout
from kafkacodec.signatures import suggests_options
from kafkacodec.spark.writing import owner

__all__ = ["Owner", "in_use", "is_there", "new_directory", "new_task", "remove", "remove_abandoned", "sweep"]

ABANDONED_AFTER = 24 * 3600.0
"""Seconds without a change after which another job's staging directory counts as abandoned."""

_STOPPING = 5.0
_OWNER_FILE = "owner"
_UNFINISHED_OWNER = re.compile(rf"{_OWNER_FILE}\.{publishing.TOKEN}\.tmp")
_ATTEMPTS = 10
_MOST_OWNER_BYTES = 4096


class Owner(NamedTuple):
    """The owner of a staging directory: a driver (as `owner.driver`), and the streaming query, if it is one."""

    driver: str = ""
    query: str = ""


def new_directory(log_dir: str) -> str:
    """A name for a job's staging directory, which the first task creates."""
    return os.path.join(log_dir, layout.staging_name(secrets.token_hex(16)))


def new_task(staging: str, belongs_to: Owner, task: int) -> str:
    """Create a directory for an attempt of a task, and the staging directory if it is the first."""
    path, directory = os.path.join(staging, _OWNER_FILE), os.path.join(staging, f"{task}.{secrets.token_hex(8)}")
    for _ in range(_ATTEMPTS):
        with suppress(FileNotFoundError):  # another job has removed it, as it had no owner yet
            os.makedirs(staging, exist_ok=True)
            if not os.path.exists(path):
                publishing.replace_file(path, json.dumps(belongs_to).encode(), sync=False)
            os.mkdir(directory)
            return directory
    raise FileNotFoundError(errno.ENOENT, "the directory disappears whenever a task makes it", staging)


def is_there(directory: str) -> bool:
    """Whether a directory of `new_task` is still there, with its staging directory's owner."""
    return os.path.isdir(directory) and os.path.exists(os.path.join(os.path.dirname(directory), _OWNER_FILE))


@contextmanager
def in_use(staging: str) -> Iterator[None]:
    """Keep other jobs from removing a staging directory while its driver publishes, even if Spark has ended."""
    try:
        descriptor = os.open(os.path.join(staging, _OWNER_FILE), os.O_RDONLY)
    except FileNotFoundError:  # no task had any records
        yield
        return
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        close_read(descriptor)


def remove(directory: str, *, may_be_written: bool = False) -> None:
    """Remove a staging directory.

    With `may_be_written`, tasks that Spark is stopping may still write to it: remove it until it stays removed, for at
    most `_STOPPING` seconds.
    """
    deadline = time.monotonic() + _STOPPING
    _remove_tree(directory)
    while may_be_written and time.monotonic() < deadline:
        time.sleep(0.25)
        if not os.path.exists(directory):
            return
        _remove_tree(directory)


def _remove_tree(directory: str) -> None:
    """It gets another name first: no task that Spark has not stopped yet adds to it while its owner goes."""
    with suppress(OSError):
        going = new_directory(os.path.dirname(directory))
        os.rename(directory, going)
        for name in os.listdir(going):
            if name != _OWNER_FILE:
                shutil.rmtree(os.path.join(going, name), ignore_errors=True)
        shutil.rmtree(going, ignore_errors=True)


@suggests_options
def remove_abandoned(
    log_dir: str | os.PathLike[str], *, older_than: float = ABANDONED_AFTER, query: str | None = None
) -> list[str]:
    """Remove the staging directories that jobs have left.

    Every write does this when it starts and when it has succeeded. A directory in which a process of this machine has a
    file open for writing stays. Another one is removed if its driver ran on this machine and has ended; if no task has
    begun in it; or if nothing in it has changed for `older_than` seconds.

    Args:
        log_dir: the log directory that was written to.
        older_than: seconds since the last change; a day by default. Use 0 only if no job is writing.
        query: the id of a streaming query, none of whose micro-batches is being written: its directories are removed
            too.

    Returns:
        The paths of the removed directories.

    Raises:
        OSError: `log_dir` cannot be listed.
    """
    removed: list[str] = []
    for entry in sorted(os.scandir(log_dir), key=lambda e: e.name):
        if not layout.is_staging(entry.name) or not entry.is_dir(follow_symlinks=False):
            continue
        if _remove_unbegun(entry.path):
            removed.append(entry.path)
        elif _is_abandoned(entry.path, time.time() - older_than, query):
            remove(entry.path)
            removed.append(entry.path)
    return removed


def sweep(log_dir: str, query: str | None = None) -> None:
    """Do as `remove_abandoned` for a job, whose tasks may have had no records to make the directory for."""
    if os.path.isdir(log_dir):
        remove_abandoned(log_dir, query=query)


def _remove_unbegun(directory: str) -> bool:
    """Remove it if it has no owner; a task that was about to name one makes the directory again."""
    with suppress(OSError):
        names = os.listdir(directory)
        if all(map(_UNFINISHED_OWNER.fullmatch, names)):
            for name in names:
                os.unlink(os.path.join(directory, name))
            os.rmdir(directory)
            return True
    return False


def _is_abandoned(directory: str, since: float, query: str | None) -> bool:
    belongs_to = _owner_of(directory)
    ended = owner.has_ended(belongs_to.driver) or (query is not None and belongs_to.query == query)
    return not _is_used(directory, None if ended else since)


def _owner_of(directory: str) -> Owner:
    with suppress(OSError, ValueError, TypeError, LimitExceeded):
        found = Owner(*json.loads(read_file(os.path.join(directory, _OWNER_FILE), _MOST_OWNER_BYTES)))
        if all(isinstance(part, str) for part in found):
            return found
    return Owner()


def _is_used(directory: str, since: float | None) -> bool:
    """Whether anything in a directory has changed since a time, or is locked by a writer."""
    for place, _, names in os.walk(directory):
        for path in (place, *(os.path.join(place, name) for name in names)):
            try:
                if since is not None and os.stat(path).st_mtime > since:
                    return True
                if path != place and _is_locked(path):
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
