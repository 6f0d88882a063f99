"""Opening files that others may be writing, moving or deleting: mapped, read-only, with errors that name the file."""

from __future__ import annotations

import errno
import mmap
import os
import stat
from types import TracebackType

from kafkacodec.errors import DecodeError, LimitExceeded, Truncated
from kafkacodec.log import layout


class MappedFile:
    """A regular file mapped for reading: a buffer in `data`, `size` bytes long. Use it as a context manager.

    The file is never written to. Deleting it while it is mapped does no harm; a writer that shortens it is noticed by
    `check_size`, which readers call before each piece, since touching pages past the new end would end the process.

    Raises:
        OSError: missing, unreadable, or not a regular file; `filename` names it.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._fd = _open_regular(path)
        try:
            self.size = os.fstat(self._fd).st_size
            self.data: mmap.mmap | bytes = b""
            if self.size:  # an empty file cannot be mapped
                self.data = mmap.mmap(self._fd, self.size, access=mmap.ACCESS_READ)
        except BaseException:
            os.close(self._fd)
            raise
        self._dropped = 0

    def __enter__(self) -> MappedFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._fd)
        # The mapping goes with the last that uses it: a traceback may keep a decoder alive.
        self.data = b""

    def check_size(self) -> None:
        """Raise `Truncated` where the file has become shorter than it was when opened."""
        size = os.fstat(self._fd).st_size
        if size < self.size:
            reason = f"the file was shortened from {self.size} to {size} bytes while it was read"
            raise Truncated(reason, position=size, path=self.path)

    def drop_before(self, position: int) -> None:
        """Give back the memory of the pages that lie wholly before `position`; they can still be read again."""
        position -= position % mmap.ALLOCATIONGRANULARITY
        if isinstance(self.data, mmap.mmap) and position > self._dropped and hasattr(mmap, "MADV_DONTNEED"):
            self.data.madvise(mmap.MADV_DONTNEED, self._dropped, position - self._dropped)
            self._dropped = position


def read_file(path: str, limit: int) -> bytes:
    """The bytes of a small regular file.

    Raises:
        LimitExceeded: there are more than `limit`.
        OSError: missing, unreadable, or not a regular file; `filename` names it.
    """
    with open(_open_regular(path), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > limit:
            raise LimitExceeded(f"the file has {size} bytes, at most {limit} are read", position=limit, path=path)
        return file.read()


def directory_name(path: str) -> layout.DirectoryName | None:
    """The parts of the name of a partition's directory; what it holds is looked at where the name has two readings."""
    name = os.path.basename(os.path.abspath(path))
    tiered = None
    if layout.may_be_either(name):
        try:
            files = [parsed for parsed in map(layout.parse_file_name, os.listdir(path)) if parsed is not None]
            tiered = any(file.segment_id is not None for file in files)
        except OSError:  # whoever reads it will tell
            tiered = None
    return layout.parse_directory_name(name, tiered=tiered)


def _open_regular(path: str) -> int:
    """A descriptor of a regular file. Without O_NONBLOCK, opening a named pipe would wait for a writer."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    raise OSError(errno.EINVAL, "not a regular file", path)


def named(error: DecodeError, path: str) -> DecodeError:
    """The error with the file's name in front of the place inside it."""
    if error.path is None:
        error.path = path
    elif not error.path.startswith(path):
        error.path = f"{path}: {error.path}"
    return error


def reason_of(error: Exception) -> str:
    """What is wrong, without the file's name."""
    if isinstance(error, DecodeError):
        return error.reason
    return str(error.strerror) if isinstance(error, OSError) and error.strerror else str(error)
