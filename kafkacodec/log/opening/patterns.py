"""Patterns of paths, as a shell expands them: of files of this machine, and of objects."""

from __future__ import annotations

import os
from collections.abc import Iterator
from fnmatch import fnmatchcase
from glob import glob, has_magic

from kafkacodec.log.opening import entries, is_url

__all__ = ["matches_of"]


def matches_of(path: str) -> list[str]:
    """The paths that a pattern with ``*``, ``?`` or ``[]`` matches, sorted; any other path as it is.

    In a URL, each of them matches within one part between slashes; ``**`` is not special.

    Raises:
        OSError: a directory of objects cannot be listed.
    """
    if not has_magic(path):
        return [path]
    if not is_url(path):
        return [path] if os.path.exists(path) else sorted(glob(path, recursive=True))
    scheme, _, rest = path.partition("://")
    bucket, *parts = rest.split("/")
    return sorted(_below(f"{scheme}://{bucket}", [part for part in parts if part]))


def _below(directory: str, parts: list[str], *, listed: bool = False) -> Iterator[str]:
    """The paths below a directory. What follows the first pattern must exist: some of its matches may not have it."""
    if not parts:
        yield directory
        return
    first, *others = parts
    if not listed and not has_magic(first):
        yield from _below(f"{directory}/{first}", others)
        return
    try:
        found = entries(directory)
    except FileNotFoundError:
        return
    for entry in found:
        if fnmatchcase(entry.name, first) and (entry.is_dir() or not others):
            yield from _below(entry.path, others, listed=True)
