"""New files that appear complete or not at all: written under a temporary name in the same directory, then renamed.

The temporary name has sixteen random digits; the file is created with O_EXCL, without following links, and only its
creator removes it. An existing file is replaced only on request.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, BinaryIO, Self

from kafkacodec.log.files.access import is_directory, naming, sync_path
from kafkacodec.temporary import removed_on_error

TOKEN = r"[0-9a-f]{16}"
"""A regular expression for the part of a temporary name that identifies its writer."""

_LONGEST_NAME = 200  # bytes of a name that are kept before token and suffix: file systems allow 255
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_AT_FDCWD, _RENAME_NOREPLACE = -100, 1
# Errors of renameat2 if the kernel or the file system does not support it.
_NOT_KNOWN = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)


class Committing(ABC):
    """A context manager that commits at its end, or discards after an exception."""

    @abstractmethod
    def commit(self) -> object:
        """Publish the written file."""

    @abstractmethod
    def discard(self) -> object:
        """Remove the written file."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.commit()
        else:
            self.discard()


def new_token() -> str:
    """A token for the names of temporary files."""
    return os.urandom(8).hex()


def temporary_name(path: str, token: str) -> str:
    """The temporary name of a file, in the same directory."""
    directory, name = os.path.split(path)
    return os.path.join(directory, f"{os.fsdecode(os.fsencode(name)[:_LONGEST_NAME])}.{token}.tmp")


def create(path: str, *, buffering: int = -1) -> BinaryIO:
    """Open a new file for writing.

    Raises:
        FileExistsError: the path exists; it may be a broken link.
        OSError: it cannot be created; `filename` names it.
    """
    return open(os.open(path, _NEW, 0o666), "wb", buffering=buffering)


def write_file(path: str, data: bytes, *, sync: bool) -> None:
    """Write a new file, with `sync` down to the disk; if that fails, it is removed."""
    with naming(path):
        file = create(path)
        try:
            with file:
                file.write(data)
                file.flush()
                if sync:
                    os.fsync(file.fileno())
        except BaseException:
            remove(path)
            raise


def publish(temporary: str, path: str, *, replace: bool = False) -> None:
    """Rename a file to its final name.

    Args:
        temporary: its name so far.
        path: its final name, on the same file system.
        replace: replace an existing file.

    Raises:
        FileExistsError: the file exists, and `replace` is not set.
        OSError: the file cannot be renamed; `filename` names `path`.
    """
    try:
        if replace:
            os.replace(temporary, path)
        elif not _rename_new(temporary, path):
            os.link(temporary, path, follow_symlinks=False)  # unlike renaming, fails if the name is taken
            os.unlink(temporary)
    except OSError as error:
        raise OSError(error.errno, os.strerror(error.errno or 0), path) from None


def replace_file(path: str, data: bytes, *, sync: bool = True) -> None:
    """Write a small file atomically: readers see the complete old or new content."""
    with new_file(path, replace=True, sync=sync) as file:
        file.write(data)


@contextmanager
def new_file(path: str, *, replace: bool = False, sync: bool = True) -> Iterator[BinaryIO]:
    """A file to write to, which gets its name at the end; on an exception it is removed.

    Args:
        path: the file.
        replace: replace an existing file.
        sync: wait for the disk before and after it gets its name.

    Raises:
        FileExistsError: the file exists, and `replace` is not set.
        OSError: it cannot be written; `filename` names it.
    """
    temporary = temporary_name(path, new_token())
    with naming(path, temporary), removed_on_error(temporary):
        with create(temporary) as file:
            yield file
            file.flush()
            if sync:
                os.fsync(file.fileno())
        publish(temporary, path, replace=replace)
    if sync:
        sync_names(os.path.dirname(path) or os.curdir, os.path.basename(path))


@contextmanager
def new_directory(path: str, last: str = "") -> Iterator[str]:
    """Yield a directory to fill, which gets its name at the end; remove it on an exception.

    Args:
        path: the directory; it must not exist, or be empty.
        last: the entry that is renamed last if `path` cannot be replaced, because it is a mount point or its parent is
            not writable. Such a directory is filled entry by entry.

    Yields:
        The temporary name of the directory.

    Raises:
        FileExistsError: the directory is not empty.
        OSError: it cannot be created or renamed; `filename` names it or the file in it.
    """
    path = os.path.realpath(path)
    parent, token, there = os.path.dirname(path), new_token(), is_directory(path)
    stays = there and (os.path.ismount(path) or not os.access(parent, os.W_OK))
    building = os.path.join(path, f".{token}.tmp") if stays else temporary_name(path, token)
    os.makedirs(parent, exist_ok=True)
    try:
        with removed_on_error(building):
            with naming(path, building):
                os.mkdir(building)
            if there and not stays:
                os.chmod(building, os.stat(path).st_mode & 0o7777)
            yield building
            sync_path(building)
            if stays:
                _move_entries(building, path, last)
            else:
                os.rename(building, path)  # replaces an empty directory and no other
    except OSError as error:
        if isinstance(error.filename, str):
            error.filename = error.filename.replace(building, path, 1)
            error.filename2 = None
        raise
    sync_names(path if stays else parent, os.path.basename(path))


def _move_entries(source: str, target: str, last: str) -> None:
    done: list[str] = []
    try:
        for name in sorted(os.listdir(source), key=lambda name: (name == last, name)):
            publish(os.path.join(source, name), os.path.join(target, name))
            done.append(os.path.join(target, name))
        os.rmdir(source)
    except BaseException:
        for path in done:
            remove(path)
            shutil.rmtree(path, ignore_errors=True)
        raise


def remove(path: str) -> None:
    """Remove a file of this writer if it exists; errors are ignored, so that they do not hide an earlier one."""
    with suppress(OSError):
        os.unlink(path)


def sync_names(directory: str, what: str) -> None:
    """Wait until the names in a directory are on disk.

    Raises:
        OSError: that failed; the message says that `what` is in place nevertheless. `filename` is `directory`.
    """
    try:
        sync_path(directory)
    except OSError as error:
        reason = f"{os.strerror(error.errno or 0)}; {what} is in place, but may be lost in a power failure"
        raise OSError(error.errno, reason, directory) from None


def _rename_new(temporary: str, path: str) -> bool:
    """Rename unless `path` exists, which raises; False if the system cannot do that."""
    rename = _renameat2()
    if rename is None:
        return False
    if rename(_AT_FDCWD, os.fsencode(temporary), _AT_FDCWD, os.fsencode(path), _RENAME_NOREPLACE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _NOT_KNOWN:
        return False
    raise OSError(number, os.strerror(number), path)


@cache
def _renameat2() -> Any:
    """Linux's system call, from the C library; None elsewhere."""
    function = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if function is not None:
        function.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    return function
