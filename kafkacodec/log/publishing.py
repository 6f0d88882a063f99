"""New files that appear whole or not at all: written under a name of their own beside the destination, then renamed.

The name has sixteen random digits, is created where nothing is (O_EXCL, and no link is followed), and is removed only
by whoever created it. Nothing that is there is replaced unless that is asked for.
"""

from __future__ import annotations

import ctypes
import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, BinaryIO

from kafkacodec.log.files import close_read, is_directory, naming

TOKEN = r"[0-9a-f]{16}"
"""What tells temporary files of different writers apart, as a regular expression."""

_LONGEST_NAME = 200  # bytes of a name that are kept in front of token and suffix: file systems take 255
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_AT_FDCWD, _RENAME_NOREPLACE = -100, 1
# What renameat2 says where the kernel or the file system does not know it.
_NOT_KNOWN = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)


def new_token() -> str:
    """A token for the names of temporary files."""
    return secrets.token_hex(8)


def temporary_name(path: str, token: str) -> str:
    """The name of a file until it gets its own; in the same directory."""
    directory, name = os.path.split(path)
    return os.path.join(directory, f"{os.fsdecode(os.fsencode(name)[:_LONGEST_NAME])}.{token}.tmp")


def create(path: str, *, buffering: int = -1) -> BinaryIO:
    """Open a new file for writing.

    Raises:
        FileExistsError: something is there, be it a link that leads nowhere.
        OSError: it cannot be created; `filename` names it.
    """
    return open(os.open(path, _NEW, 0o666), "wb", buffering=buffering)


def write_file(path: str, data: bytes, *, sync: bool) -> None:
    """Write a new file, down to the disk with `sync`; where that fails, there is none."""
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
    """Give a file its name.

    Args:
        temporary: what it is called.
        path: what it shall be called, on the same file system.
        replace: put it in the place of a file that is there.

    Raises:
        FileExistsError: there is a file, and `replace` is not set.
        OSError: the file cannot be renamed; `filename` names `path`.
    """
    try:
        if replace:
            os.replace(temporary, path)
        elif not _rename_new(temporary, path):
            os.link(temporary, path, follow_symlinks=False)  # fails where the name is taken, as renaming does not
            os.unlink(temporary)
    except OSError as error:
        raise OSError(error.errno, os.strerror(error.errno or 0), path) from None


def replace_file(path: str, data: bytes, *, sync: bool = True) -> None:
    """Write a small file at once: at any moment the old or the new content is there, whole."""
    with new_file(path, replace=True, sync=sync) as file:
        file.write(data)


@contextmanager
def new_file(path: str, *, replace: bool = False, sync: bool = True) -> Iterator[BinaryIO]:
    """A file to write to, which gets its name at the end; where an exception comes, there is none.

    Args:
        path: the file.
        replace: put it in the place of a file that is there.
        sync: wait for the disk before and after it gets its name.

    Raises:
        FileExistsError: there is a file, and `replace` is not set.
        OSError: it cannot be written; `filename` names it.
    """
    temporary = temporary_name(path, new_token())
    with naming(path, temporary):
        file = create(temporary)
        try:
            with file:
                yield file
                file.flush()
                if sync:
                    os.fsync(file.fileno())
            publish(temporary, path, replace=replace)
        except BaseException:
            remove(temporary)
            raise
    if sync:
        sync_names(os.path.dirname(path) or os.curdir, os.path.basename(path))


@contextmanager
def new_directory(path: str, last: str = "") -> Iterator[str]:
    """A directory to fill, which gets its name at the end; where an exception comes, there is none.

    Args:
        path: the directory; it must not exist, or be empty.
        last: the entry that gets its name last where `path` has to stay the directory that it is, since it is a mount
            point or lies in one that cannot be written to. Such a directory is filled entry by entry.

    Yields:
        The name of the directory until then.

    Raises:
        FileExistsError: there is something in the directory.
        OSError: it cannot be made or renamed; `filename` names it or the file in it.
    """
    path = os.path.realpath(path)
    parent, token, there = os.path.dirname(path), new_token(), is_directory(path)
    stays = there and (os.path.ismount(path) or not os.access(parent, os.W_OK))
    building = os.path.join(path, f".{token}.tmp") if stays else temporary_name(path, token)
    os.makedirs(parent, exist_ok=True)
    try:
        with naming(path, building):
            os.mkdir(building)
        if there and not stays:
            os.chmod(building, os.stat(path).st_mode & 0o7777)
        yield building
        sync_path(building)
        if stays:
            _move_entries(building, path, last)
        else:
            os.rename(building, path)  # an empty directory makes way, and no other
    except BaseException as error:
        shutil.rmtree(building, ignore_errors=True)
        if isinstance(error, OSError) and isinstance(error.filename, str):
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
    """Remove a file of ours, if it is there; an error that is under way is not to be hidden by another."""
    with suppress(OSError):
        os.unlink(path)


def sync_path(path: str) -> None:
    """Wait until the bytes of a file, or the names in a directory, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with naming(path):
            os.fsync(descriptor)
    finally:
        close_read(descriptor)


def sync_names(directory: str, what: str) -> None:
    """Wait until the names in a directory are on the disk.

    Raises:
        OSError: they are not; the message says that what was published is there nonetheless, `filename` is `directory`.
    """
    try:
        sync_path(directory)
    except OSError as error:
        reason = f"{os.strerror(error.errno or 0)}; {what} is in place, but may be lost in a power failure"
        raise OSError(error.errno, reason, directory) from None


def _rename_new(temporary: str, path: str) -> bool:
    """Rename where nothing is; False where the system has no such call."""
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
    """Linux's system call, from its C library; None elsewhere."""
    function = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if function is not None:
        function.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    return function
