"""Paths of files and URLs of objects, and the meaning of errors for each."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from kafkacodec.errors import KafkaCodecError

__all__ = ["REPLACED", "check_local", "full_path", "is_passing", "is_unreadable", "is_url", "optional"]

REPLACED = "the object was replaced while it was read; read it again"
"""The reason of `errno.ESTALE`."""

_PASSING = (errno.EIO, errno.ESTALE)

# No permission, a bad disk, something else than a file, and a link to nothing or to itself.
_UNREADABLE = (errno.EACCES, errno.EPERM, errno.EIO, errno.EISDIR, errno.EINVAL, errno.ENXIO, errno.ELOOP)

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


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
    """Whether the store gave no answer, so that the error of reading a file says nothing about the file."""
    return is_url(path) and getattr(error, "errno", None) in _PASSING


def is_unreadable(path: str, error: OSError) -> bool:
    """Whether an error is about the file: it exists, but cannot be read, now or later.

    An object never is: a store refuses everything if the credentials have expired.
    """
    return error.errno in _UNREADABLE and not is_url(path)


@contextmanager
def optional(path: str) -> Iterator[None]:
    """Ignore a file that cannot be read; but raise if a store does not answer, since the file may change the result."""
    try:
        yield
    except (OSError, KafkaCodecError) as error:
        if is_passing(path, error):
            raise


def full_path(path: str) -> str:
    """The absolute path without a slash at the end."""
    if not is_url(path):
        return os.path.abspath(path)
    short = path.rstrip("/")
    return f"{short}///" if short.endswith(":") else short  # a root without a host, hdfs:///
