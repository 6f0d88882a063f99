"""Files of this machine and objects of an object store, as they are stored."""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from kafkacodec.errors import KafkaCodecError
from kafkacodec.log.files import opening as files, preallocated
from kafkacodec.log.files.opening import FileIdentity, MappedFile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Buffer

    class SliceableBuffer(Buffer, Protocol):
        """A buffer whose slices are bytes."""

        def __getitem__(self, part: slice, /) -> bytes: ...


__all__ = [
    "Entry",
    "StoredFile",
    "changed_ns",
    "check_local",
    "entries",
    "full_path",
    "identity_of",
    "is_directory",
    "is_passing",
    "is_url",
    "open_file",
    "optional",
    "read_file",
    "read_used",
]

REPLACED = "the object was replaced while it was read; read it again"
"""The reason of `errno.ESTALE`."""

_PASSING = (errno.EIO, errno.ESTALE)

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


class StoredFile(Protocol):
    """An open file, read-only: `MappedFile` for one of this machine, `objects.ObjectFile` for an object.

    Attributes:
        path (str): its path or URL.
        size (int): the number of bytes when it was opened.
        identity (FileIdentity): that of the open file; an object's has a number made from its ETag.
        settled (bool): whether any later change shows in the identity.
        shortened (bool): whether `check_size` found that it was shortened.
        window (int | None): how many bytes to ask for at first if it is not known how many are needed; None: asking
            for all of them costs nothing.
    """

    path: str
    size: int
    identity: FileIdentity
    settled: bool
    shortened: bool

    @property
    def window(self) -> int | None:
        """See above."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def close(self) -> None:
        """Close it without checking its size."""

    def view(self, start: int = 0, end: int | None = None) -> SliceableBuffer:
        """A buffer of `size` bytes of which those in [start, end) are the file's; others may be zeros.

        Raises:
            OSError: they cannot be read; `filename` names the file.
        """

    def read(self, position: int, size: int) -> bytes:
        """A copy of `size` bytes, fewer at the end of the file. Raises as `view`."""

    def read_into(self, buffer: memoryview, position: int) -> int:
        """Fill a buffer with the bytes from `position` on; returns their number. Raises as `view`."""

    def ahead(self, start: int, end: int) -> None:
        """Start to fetch bytes that will be needed soon."""

    def drop_before(self, position: int) -> None:
        """Release the memory of the bytes before `position`; they can be read again."""

    def check_size(self) -> None:
        """Raise if bytes that the file had when it was opened are gone."""

    def has_grown(self) -> bool:
        """Whether the file has more bytes than when it was opened."""


class Entry(Protocol):
    """An entry of a directory, as `os.DirEntry`."""

    @property
    def name(self) -> str:
        """The name in the directory."""

    @property
    def path(self) -> str:
        """The path or URL."""

    def is_dir(self) -> bool:
        """Whether it is a directory: for objects, a common prefix."""

    def is_file(self) -> bool:
        """Whether it is a regular file or an object."""


def is_url(path: str) -> bool:
    """Whether a path has a scheme, and so is not one of this machine."""
    return _SCHEME.match(path) is not None


def check_local(path: str) -> None:
    """Refuse a URL where something is to be written.

    Raises:
        ValueError: the path has a scheme.
    """
    if is_url(path):
        raise ValueError(f"{path}: logs in object stores can only be read; write to a directory and copy it")


def is_passing(path: str, error: Exception) -> bool:
    """Whether a store did not say what it has, so that nothing may be concluded from the error of reading a file."""
    return is_url(path) and getattr(error, "errno", None) in _PASSING


@contextmanager
def optional(path: str) -> Iterator[None]:
    """Do without a file that cannot be read; but that a store does not answer is raised: it may change what is read."""
    try:
        yield
    except (OSError, KafkaCodecError) as error:
        if is_passing(path, error):
            raise


def open_file(path: str) -> StoredFile:
    """Open a file for reading.

    Raises:
        OSError: missing, unreadable, or not a regular file; `filename` names it.
        ValueError: the scheme of the URL is unknown.
    """
    if not is_url(path):
        return MappedFile(path)
    from kafkacodec.log.storage.objects import ObjectFile

    return ObjectFile(path)


def read_file(path: str, limit: int) -> bytes:
    """The bytes of a small file. Raises as `open_file`, and LimitExceeded: there are more than `limit`."""
    if not is_url(path):
        return files.read_file(path, limit)
    from kafkacodec.log.storage.objects import read_object

    return read_object(path, limit)


def read_used(path: str, limit: int, *, to_end: bool) -> tuple[bytes, int]:
    """The bytes of a file without the zeros at its end, and its size; objects are read whole.

    Arguments and errors as in `preallocated.read_used`.
    """
    if not is_url(path):
        return preallocated.read_used(path, limit, to_end=to_end)
    data = read_file(path, limit)
    return preallocated.without_zeros(data), len(data)


def identity_of(path: str) -> FileIdentity:
    """By what a file is recognized, without opening it. Raises as `open_file`."""
    if not is_url(path):
        return FileIdentity.of(os.stat(path))
    from kafkacodec.log.storage import objects

    return objects.identity_of(path)


def entries(directory: str) -> Sequence[Entry]:
    """The entries of a directory.

    Raises:
        OSError: it is missing or cannot be listed. An object store has no empty directories.
    """
    if not is_url(directory):
        with os.scandir(directory or os.curdir) as found:
            return list(found)
    from kafkacodec.log.storage.objects import list_objects

    return list_objects(directory)


def is_directory(path: str) -> bool:
    """Whether there is a directory, or any object below the URL.

    Raises:
        OSError: that cannot be determined.
    """
    if not is_url(path):
        return files.is_directory(path)
    try:
        entries(path)
    except FileNotFoundError:
        return False
    return True


def changed_ns(directory: str) -> int:
    """When the names in a directory last changed, in ns since 1970; now for a URL, which does not tell.

    Raises:
        OSError: there is no such directory.
    """
    return time.time_ns() if is_url(directory) else os.stat(directory or os.curdir).st_mtime_ns


def full_path(path: str) -> str:
    """The absolute path without a slash at the end."""
    if not is_url(path):
        return os.path.abspath(path)
    short = path.rstrip("/")
    return f"{short}///" if short.endswith(":") else short  # a root without a host, hdfs:///
