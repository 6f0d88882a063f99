"""Files of this machine and objects of an object store, as they are stored."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from kafkacodec.log.files import access as files, preallocated
from kafkacodec.log.files.access import FileIdentity, MappedFile
from kafkacodec.log.storage.interfaces import Entry, StoredFile
from kafkacodec.log.storage.paths import is_url

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["changed_ns", "entries", "identity_of", "is_directory", "open_file", "read_file", "read_used"]


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
    """The identity of a file, without opening it. Raises as `open_file`."""
    if not is_url(path):
        return FileIdentity.of(files.state_of(path))
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
    """The time of the last change of a directory's names, in ns since 1970; for a URL, the current time.

    Raises:
        OSError: there is no such directory.
    """
    return time.time_ns() if is_url(directory) else os.stat(directory or os.curdir).st_mtime_ns
