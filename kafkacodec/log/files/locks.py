"""One writer at a time for a partition, or for a whole data directory, and none while a broker runs.

A running broker locks all of the file ``.lock`` in its log directory. A writer locks one byte of the same file, chosen
by the partition's name. So a writer excludes a broker and other writers of its partition, but not those of other
partitions. The system releases a lock at the end of the process. The file stays. A writer of a whole directory locks it
as a broker does (`DirectoryLock`).
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import struct
import sys
import threading
import time
from abc import ABC, abstractmethod
from contextlib import suppress

from kafkacodec.datatypes import dataclass, field
from kafkacodec.log.files.access import close_read, naming

LOCK_FILE = ".lock"

_AGAIN = 0.05  # seconds between two attempts
# struct flock with C's padding; the positions of type, whence, start, length and process in it: Linux, and the BSDs.
_FLOCK, _FIELDS = (
    (struct.Struct("@hhqqi0q"), (0, 1, 2, 3, 4))
    if sys.platform == "linux"
    else (struct.Struct("@qqihh0q"), (3, 4, 0, 1, 2))
)
# Locks of the open file rather than of the process, if the system has them: a process that opens and closes the file
# elsewhere loses the other kind. Writers within a process exclude each other by `_LockFile.names`.
_SET = getattr(fcntl, "F_OFD_SETLK", fcntl.F_SETLK)
_GET = getattr(fcntl, "F_OFD_GETLK", fcntl.F_GETLK)
_TAKEN = (errno.EAGAIN, errno.EACCES)
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)


@dataclass
class _LockFile:
    """The open lock file of a directory, and this process's locks in it: partitions, or `_WHOLE`."""

    descriptor: int
    names: set[str] = field(default_factory=set)


_WHOLE = ""
"""The name of the lock of a whole directory, which no partition has."""

_open_files: dict[str, _LockFile] = {}
_guard = threading.Lock()
# Locks whose last reference was dropped while the guard was held.
_left_over: list[tuple[str, str]] = []


class _Lock(ABC):
    """The common part of both kinds of locks: see `PartitionLock`."""

    _writer: str
    """The holder of a colliding lock in this process."""
    _key: str | None = None  # for __del__ after a constructor that raised

    def __init__(self, log_dir: str, name: str) -> None:
        self.path = os.path.join(log_dir, LOCK_FILE)
        self.name = name
        self.exclusive = False

    @property
    def held(self) -> bool:
        """Whether this object has the lock."""
        return self._key is not None

    def acquire(self, wait: float = 0.0) -> None:
        """Take the lock; wait for it for up to `wait` seconds.

        Raises:
            BlockingIOError: another writer or a broker has it; the message names the process if the system does.
                `filename` is the partition's directory, or the log directory if that is locked.
            OSError: the lock file cannot be opened.
        """
        deadline = time.monotonic() + wait
        while not self._try(last=time.monotonic() >= deadline):
            time.sleep(_AGAIN)

    def release(self) -> None:
        """Release the lock if it is held."""
        key, self._key, self.exclusive = self._key, None, False
        if key is not None:
            with _guard:
                _let_go(key, self.name)

    def __del__(self) -> None:
        key, self._key = self._key, None
        if key is None:
            return
        if not _guard.acquire(blocking=False):  # the collector may run while this thread has it
            _left_over.append((key, self.name))
            return
        try:
            _let_go(key, self.name)
        finally:
            _guard.release()

    def _try(self, *, last: bool) -> bool:
        if self._key is not None:
            return True
        key = os.path.realpath(self.path)
        with _guard:
            while _left_over:
                _let_go(*_left_over.pop())
            file = _open_files.get(key)
            if file is None:
                flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
                file = _LockFile(os.open(self.path, flags, 0o644))
            try:
                taken = self._take(file)
                if taken is None:
                    _open_files[key] = file
                    file.names.add(self.name)
                    self._key = key
                    return True
            finally:
                if not file.names:
                    close_read(file.descriptor)
        if last:
            raise taken
        return False

    def _take(self, file: _LockFile) -> BlockingIOError | None:
        """Take the lock; return the error, or None."""
        here = f"this process ({os.getpid()})"
        if _WHOLE in file.names:
            return self._locked(here)
        if self._collides(file.names):
            return self._written_by(f"{self._writer} in {here}")
        try:
            with naming(self.path):
                fcntl.fcntl(file.descriptor, _SET, _flock(fcntl.F_WRLCK, self.name))
        except OSError as error:
            if error.errno in _NO_LOCKS:
                return None
            if error.errno not in _TAKEN:
                raise
            return self._taken_elsewhere(file.descriptor)
        self.exclusive = True
        return None

    def _taken_elsewhere(self, descriptor: int) -> BlockingIOError:
        """Return the error for the lock of another process."""
        found = _FLOCK.unpack(fcntl.fcntl(descriptor, _GET, _flock(fcntl.F_WRLCK, self.name)))
        kind, _, start, length, process = (found[i] for i in _FIELDS)
        who = "another process"
        if kind == fcntl.F_UNLCK:  # it has just been released
            start, _ = _region(self.name)
        else:
            who = _process(process if process > 0 else _holder(descriptor, start, length), who)
        return self._locked(who) if start == 0 else self._written_by(who)

    @abstractmethod
    def _collides(self, names: set[str]) -> bool:
        """Whether one of these partition locks excludes this one."""

    @abstractmethod
    def _written_by(self, who: str) -> BlockingIOError:
        """The error for the lock of a partition."""

    def _locked(self, who: str) -> BlockingIOError:
        reason = f"{who} has locked the log directory, as a running broker does: stop it before writing"
        return BlockingIOError(errno.EAGAIN, reason, os.path.dirname(self.path) or os.curdir)


class PartitionLock(_Lock):
    """The lock of a partition, released by `release` or with the last reference.

    Args:
        log_dir: the log directory, which must exist.
        name: the name of the partition's directory, or another name that writers agree on.
        of: the kind of the named thing, for error messages.

    Attributes:
        exclusive (bool): no other writer has the partition. False if the file system has no locks: then the only
            protection is that publishing never replaces a segment.
    """

    _writer = "another writer"

    def __init__(self, log_dir: str, name: str, *, of: str = "partition") -> None:
        super().__init__(log_dir, name)
        self._of = of

    def _collides(self, names: set[str]) -> bool:
        return self.name in names

    def _written_by(self, who: str) -> BlockingIOError:
        reason = f"{who} is writing to this {self._of}: try again when it has finished"
        return BlockingIOError(errno.EAGAIN, reason, os.path.join(os.path.dirname(self.path), self.name))


class DirectoryLock(_Lock):
    """The lock of a whole log directory, as a broker takes it: it excludes brokers and all writers of partitions.

    Released by `release` or with the last reference.

    Args:
        log_dir: the log directory, which must exist.

    Attributes:
        exclusive (bool): no one else has locked the directory or a part of it. False if the file system has no locks.
    """

    _writer = "a writer"

    def __init__(self, log_dir: str) -> None:
        super().__init__(log_dir, _WHOLE)

    def _collides(self, names: set[str]) -> bool:
        return bool(names)

    def _written_by(self, who: str) -> BlockingIOError:
        reason = f"{who} is writing to a partition of this log directory: try again when it has finished"
        return BlockingIOError(errno.EAGAIN, reason, os.path.dirname(self.path) or os.curdir)


def _let_go(key: str, name: str) -> None:
    file = _open_files.get(key)
    if file is None or name not in file.names:  # the lock is the parent process's
        return
    file.names.remove(name)
    if file.names:
        with suppress(OSError):
            fcntl.fcntl(file.descriptor, _SET, _flock(fcntl.F_UNLCK, name))
    else:
        del _open_files[key]
        close_read(file.descriptor)


def _flock(kind: int, name: str) -> bytes:
    values = dict(zip(_FIELDS, (kind, os.SEEK_SET, *_region(name), 0), strict=True))
    return _FLOCK.pack(*(values[i] for i in sorted(values)))


def _region(name: str) -> tuple[int, int]:
    """The first byte and the number of bytes that a lock covers: 0 and 0 for the whole file, as a broker locks it.

    A partition has one byte, by a hash of its name; never byte 0, which only locks of the whole file cover.
    """
    if name == _WHOLE:
        return 0, 0
    return 1 + (int.from_bytes(hashlib.blake2b(os.fsencode(name), digest_size=8).digest(), "big") >> 2), 1


def _process(number: int, unknown: str) -> str:
    if number <= 0:
        return unknown
    with suppress(OSError), open(f"/proc/{number}/comm") as name:
        return f"process {number} ({name.read().strip()})"
    return f"process {number}"


def _holder(descriptor: int, start: int, length: int) -> int:
    """The process that has locked a part of an open file, from Linux's ``/proc``; 0 if unknown."""
    end = f":{os.fstat(descriptor).st_ino} {start} {start + length - 1 if length else 'EOF'}"
    with suppress(OSError):
        for process in filter(str.isdecimal, os.listdir("/proc")):
            with suppress(OSError):
                for number in os.listdir(f"/proc/{process}/fdinfo"):
                    with open(f"/proc/{process}/fdinfo/{number}") as info:
                        if any(line.startswith("lock:") and line.rstrip().endswith(end) for line in info):
                            return int(process)
    return 0


def _forget() -> None:
    """In a forked child: close the lock files, since the locks are the parent's."""
    for file in _open_files.values():
        close_read(file.descriptor)
    _open_files.clear()
    _left_over.clear()
    _guard.release()


# The guard is held across a fork, so that no incomplete entry is inherited.
os.register_at_fork(before=_guard.acquire, after_in_parent=_guard.release, after_in_child=_forget)
