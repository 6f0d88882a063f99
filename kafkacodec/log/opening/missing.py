"""Paths that are not there: errors name the one that was probably meant."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from kafkacodec.arguments import nearest
from kafkacodec.log.storage.paths import is_url

__all__ = ["similar_path", "suggesting"]


@contextmanager
def suggesting(path: str) -> Iterator[None]:
    """Puts a similar path at the end of the system's error that there is no file or directory at `path`."""
    try:
        yield
    except FileNotFoundError as error:
        hint = similar_path(path)
        if not hint or error.filename != path:
            raise
        raise FileNotFoundError(errno.ENOENT, f"{error.strerror}; {hint}", path) from None


def similar_path(path: str) -> str:
    """A question for the path that is most similar to one of this machine that is not there; empty if none is.

    Only one part of it may have another name.
    """
    if is_url(path) or os.path.lexists(path):
        return ""
    above, below = os.path.split(path.rstrip("/"))
    rest: list[str] = []
    while above and not os.path.isdir(above):
        rest.insert(0, below)
        above, below = os.path.split(above)
    try:
        close = nearest(below, os.listdir(above or os.curdir))
    except OSError:
        return ""
    found = None if close is None else os.path.join(above, close, *rest)
    return f"did you mean {found!r}?" if found is not None and os.path.exists(found) else ""
