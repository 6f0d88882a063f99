"""Reading small files of an untrusted directory: regular files in it, up to a limit."""

from __future__ import annotations

import errno
import os
import stat

from kafkacodec.errors import LimitExceeded

MAX_BYTES = 16 << 20
"""The largest file that is copied, in bytes; a broker's files next to its segments are far smaller."""

_DIRECTORY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
# Without waiting for a named pipe or following a link.
_FILE = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


def read_inside(directory: str, name: str, limit: int = MAX_BYTES) -> bytes:
    """The bytes of a regular file in a directory; `name` is an entry's name without a path.

    Raises:
        LimitExceeded: the file has more than `limit` bytes.
        OSError: missing, unreadable, a symbolic link (ELOOP) or not a regular file; `filename` names it.
    """
    path = os.path.join(directory, name)
    folder = os.open(directory or os.curdir, _DIRECTORY)
    try:
        descriptor = os.open(name, _FILE, dir_fd=folder)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "symbolic links are not followed", path) from None
        error.filename = path
        raise
    finally:
        os.close(folder)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", path)
        data = file.read(limit + 1)
    if len(data) > limit:
        raise LimitExceeded(f"the file has more than {limit} bytes", position=limit, path=path)
    return data


def leads_out(path: str, root: str) -> bool:
    """Whether a path is, or leads through, a symbolic link to a path outside `root`."""
    real, top = os.path.realpath(path), os.path.realpath(root)
    return os.path.commonpath([real, top]) != top


def links_out(directory: str, root: str) -> list[str]:
    """The entries of a directory that are symbolic links to paths outside `root`, sorted."""
    with os.scandir(directory or os.curdir) as entries:
        links = sorted(entry.path for entry in entries if entry.is_symlink())
    return [path for path in links if leads_out(path, root)]
