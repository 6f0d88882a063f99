"""Opening files that others may be writing, moving or deleting: mapped, read-only, with errors that name the file."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from types import TracebackType

from kafkacodec.datatypes import NamedTuple
from kafkacodec.errors import CorruptRecord, DecodeError, LimitExceeded, Truncated, UnsupportedVersion
from kafkacodec.log.files._mapping import Mapping
from kafkacodec.records.columns import MAX_PROBLEMS

SETTLED_SECONDS = 2.0
"""A file changed this recently may change again without a new time, since file systems round times."""


TRIES = 5
"""The number of tries to read a small file that others shorten."""


class FileIdentity(NamedTuple):
    """The identity of a file: equal values mean the same file with the same bytes.

    The log cleaner gives a new file the modification time of the old one, and the system gives it the number of a
    deleted one, but nobody can set the time of the last change. The device is left out: its number differs between
    machines that mount the same file system.

    Attributes:
        inode (int), size (int), mtime_ns (int), ctime_ns (int): as `os.stat` returns them.
    """

    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int

    @classmethod
    def of(cls, state: os.stat_result) -> FileIdentity:
        """The identity in the result of a `stat` call."""
        return cls(state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)

    def is_settled(self, now: int) -> bool:
        """Whether any change after its time `now` (ns since 1970) gives another identity."""
        return now - max(self.mtime_ns, self.ctime_ns) >= SETTLED_SECONDS * 1e9


class MappedFile:
    """A regular file mapped for reading: a buffer in `data`, `size` bytes long. Use it as a context manager.

    `identity` is that of the open file; `settled` says whether any later change shows in it, since the last change was
    long ago; `shortened` says whether `check_size` found that the file was shortened.

    The file is never written to. Deleting or replacing it while it is mapped does no harm. If a writer shortens it, or
    the system fails to read it, missing pages read as zeros: call `check_size`, which raises then, before using
    anything that came from the bytes. Leaving the context calls it too.

    Raises:
        OSError: missing, unreadable, or not a regular file; `filename` names it.
        Truncated: shortened while it was read.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.shortened = False
        self._fd = open_regular(path)
        try:
            with naming(path):
                now = time.time_ns()
                self.identity = FileIdentity.of(os.fstat(self._fd))
                self.settled = self.identity.is_settled(now)
                self.size = self.identity.size
                # An empty file cannot be mapped.
                self.data: Mapping | bytes = Mapping(self._fd, self.size) if self.size else b""
        except BaseException:
            close_read(self._fd)
            raise

    def __enter__(self) -> MappedFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None or (issubclass(kind, Exception) and not issubclass(kind, OSError)):
                self.check_size()
        finally:
            self.close()

    def close(self) -> None:
        """Close the file without checking its size, as leaving the context does."""
        close_read(self._fd)
        # The mapping is freed with its last user: a traceback may keep a decoder alive.
        self.data = b""

    def check_size(self) -> None:
        """Raise if the file has lost bytes since it was opened.

        Raises:
            Truncated: it is shorter, with the new size as position, or was shorter for a while.
            OSError: the system cannot read it, for example from a lost network file system; `filename` names it.
        """
        torn = self.data.torn if isinstance(self.data, Mapping) else None
        with naming(self.path):
            size = os.fstat(self._fd).st_size
            if torn is not None:
                os.pread(self._fd, 1, torn)  # raises the error that caused the page fault
        self.shortened = size < self.size or torn is not None
        if size < self.size:
            reason = f"the file was shortened from {self.size} to {size} bytes while it was read"
            raise Truncated(reason, position=size, path=self.path)
        if torn is not None:
            reason = "the file was shortened while it was read, and has grown again"
            raise Truncated(reason, position=torn, path=self.path)

    @property
    def window(self) -> int | None:
        """None: the system reads only used pages, and reads ahead."""
        return None

    def view(self, _start: int = 0, _end: int | None = None) -> Mapping | bytes:
        """The whole file as a buffer."""
        return self.data

    def read(self, position: int, size: int) -> bytes:
        """A copy of `size` bytes, fewer at the end of the file."""
        return self.data[position : position + size]

    def ahead(self, start: int, end: int) -> None:
        """Nothing to do: the system reads ahead."""

    def has_grown(self) -> bool:
        """Whether the file has more bytes than when it was opened."""
        with naming(self.path):
            return os.fstat(self._fd).st_size > self.size

    def read_into(self, buffer: memoryview, position: int) -> int:
        """Fill a buffer with the bytes from `position` on, up to the end of the file; returns their number.

        Raises:
            OSError: the system cannot read the file; `filename` names it.
        """
        done, wanted = 0, min(len(buffer), self.size - position)
        with naming(self.path):
            while done < wanted:
                part = os.preadv(self._fd, [buffer[done:wanted]], position + done)
                if not part:
                    break
                done += part
        return done

    def drop_before(self, position: int) -> None:
        """Release the memory of the pages before `position`; they can be read again."""
        if isinstance(self.data, Mapping) and position > 0:
            self.data.drop_before(position)


def close_read(descriptor: int) -> None:
    """Close a file that was only read or locked, ignoring errors."""
    with suppress(OSError):
        os.close(descriptor)


@contextmanager
def naming(path: str, temporary: str | None = None) -> Iterator[None]:
    """Set the file name of an OSError that has none, or only the temporary one."""
    try:
        yield
    except OSError as error:
        if error.filename is None or error.filename == temporary:
            error.filename = path
        raise


def sync_path(path: str) -> None:
    """Wait until the bytes of a file, or the names in a directory, are on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with naming(path):
            os.fsync(descriptor)
    finally:
        close_read(descriptor)


def read_file(path: str, limit: int) -> bytes:
    """The bytes of a small regular file.

    Raises:
        LimitExceeded: there are more than `limit`.
        OSError: missing, unreadable, or not a regular file; `filename` names it.
    """
    with naming(path), open(open_regular(path), "rb", buffering=0) as file:
        for _ in range(TRIES):
            size = os.fstat(file.fileno()).st_size
            check_limit(size, limit, path)
            data = _read_up_to(file, size)
            if len(data) == size:
                break
            file.seek(0)  # it was shortened: a broker cuts a preallocated index when a segment is complete
        return data


def check_limit(size: int, limit: int, path: str) -> None:
    """Raise LimitExceeded if a file has more bytes than the limit."""
    if size > limit:
        raise LimitExceeded(f"the file has {size} bytes, the limit is {limit}", position=limit, path=path)


def _read_up_to(file: FileIO, size: int) -> bytes:
    """The first bytes; not what is appended in the meantime."""
    parts = []
    while size and (part := file.read(size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def is_directory(path: str) -> bool:
    """Whether the path is a directory; unlike `os.path.isdir`, raises if that cannot be determined.

    Raises:
        OSError: for example, no permission.
    """
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


def exists(path: str) -> bool:
    """Whether the path exists; a broken link does. Raises as `is_directory`."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def state_of(path: str) -> os.stat_result:
    """The result of `stat` for a file. Raises OSError, for a symbolic link to nothing not FileNotFoundError."""
    with _telling_links(path):
        return os.stat(path)


@contextmanager
def _telling_links(path: str) -> Iterator[None]:
    """A missing file may have been deleted, but a link that leads nowhere stays: on a disk that is not there."""
    try:
        yield
    except FileNotFoundError:
        if os.path.islink(path):
            raise OSError(errno.ELOOP, "the symbolic link leads to no file", path) from None
        raise


def open_regular(path: str) -> int:
    """A descriptor of a regular file. Without O_NONBLOCK, opening a named pipe would wait for a writer."""
    with _telling_links(path):
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    try:
        with naming(path):
            mode = os.fstat(descriptor).st_mode
    except OSError:
        close_read(descriptor)
        raise
    if stat.S_ISREG(mode):
        return descriptor
    close_read(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    raise OSError(errno.EINVAL, "not a regular file", path)


def note(problems: list[DecodeError], error: DecodeError) -> None:
    """Append an error to a list. After `MAX_PROBLEMS` one more says that there are others; those are dropped."""
    if len(problems) < MAX_PROBLEMS:
        problems.append(error)
    elif len(problems) == MAX_PROBLEMS:
        problems.append(CorruptRecord("further problems are not listed", position=error.position, path=error.path))


def reason_of(error: Exception) -> str:
    """The text of an error without the file's name."""
    if isinstance(error, (DecodeError, UnsupportedVersion)):
        return error.reason
    return str(error.strerror) if isinstance(error, OSError) and error.strerror else str(error)
