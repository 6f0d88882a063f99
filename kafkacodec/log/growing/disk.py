"""The system calls of a growing log, in one place, so that tests can make each fail."""

from __future__ import annotations

import contextlib
import os
import weakref
from collections import deque
from typing import Final, Protocol

from kafkacodec.log.files.access import close_read, naming, sync_path

__all__ = ["Disk", "OpenFile"]

_MOST_KEPT: Final = 400  # a process may have 1,024 files and connections by default
_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)


class OpenFile:
    """An open file, closed with the last reference to it, since a deleted file may still be on its way to a client.

    Attributes:
        path (str): its name when it was opened.
    """

    __slots__ = ("_descriptor", "path")

    def __init__(self, path: str, descriptor: int) -> None:
        self.path, self._descriptor = path, descriptor

    def fileno(self) -> int:
        """The descriptor."""
        return self._descriptor

    def __del__(self) -> None:
        if hasattr(self, "_descriptor"):  # not after a constructor that raised
            close_read(self._descriptor)


class Closes(Protocol):
    """Owns an open file until `release`."""

    def release(self) -> None:
        """Release the file; the next use opens it again."""


class Disk:
    """Changes files. Errors are OSError, with the file's name.

    Args:
        most_kept: the number of files that stay open between uses, of all logs together.
    """

    def __init__(self, most_kept: int = _MOST_KEPT) -> None:
        self._most_kept = most_kept
        self._kept: deque[weakref.ref[Closes]] = deque()

    def keep(self, owner: Closes) -> None:
        """Note that a file stays open for its owner, and close the files opened longest ago."""
        self._kept.append(weakref.ref(owner))
        while len(self._kept) > self._most_kept:
            oldest = self._kept.popleft()()
            if oldest is not None:
                oldest.release()

    def open(self, path: str) -> OpenFile:
        """Open a file for reading and writing; create it if it is missing."""
        return OpenFile(path, os.open(path, _FLAGS, 0o644))

    def write(self, file: OpenFile, data: bytes | bytearray | memoryview, position: int) -> None:
        """Write all bytes at a position. After an error a part of them may be there."""
        descriptor = file.fileno()
        try:
            written = os.pwrite(descriptor, data, position)
            while written < len(data):  # seldom: the disk is nearly full
                written += os.pwrite(descriptor, memoryview(data)[written:], position + written)
        except OSError as error:
            error.filename = file.path
            raise

    def truncate(self, file: OpenFile, size: int) -> None:
        """Cut a file."""
        with naming(file.path):
            os.ftruncate(file.fileno(), size)

    def sync(self, file: OpenFile) -> None:
        """Wait until a file's bytes are on the disk."""
        with naming(file.path):
            os.fsync(file.fileno())

    def sync_names(self, directory: str) -> None:
        """Wait until the names in a directory are on the disk."""
        sync_path(directory)

    def replace(self, path: str, data: bytes, *, sync: bool) -> None:
        """Write a small file under a temporary name, as a broker names it, and rename it."""
        temporary = path + ".tmp"
        with naming(path, temporary):
            file = self.open(temporary)
            self.truncate(file, 0)
            self.write(file, data, 0)
            if sync:
                self.sync(file)
            self.rename(temporary, path)

    def rename(self, path: str, to: str) -> None:
        """Rename a file or a directory; an existing file of that name is replaced."""
        os.replace(path, to)

    def remove(self, path: str) -> None:
        """Remove a file; it may be missing."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
