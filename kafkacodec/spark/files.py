"""From the option `path` to segment files, and what a file's place tells about it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from glob import glob, has_magic
from pathlib import Path
from urllib.parse import unquote, urlsplit

from kafkacodec.spark.options import OptionError

__all__ = ["SegmentFile", "find_segments"]

_SEGMENT = re.compile(r"\d{20}\.log")
_PARTITION_DIRECTORY = re.compile(r"(?P<topic>[A-Za-z0-9._-]{1,249})-(?P<partition>\d{1,10})")
# A broker is about to delete these, is still filling them, or has lost track of them.
_PASSED_OVER = re.compile(r".*\.[0-9a-f]{32}-(delete|future|stray)")


@dataclass(frozen=True)
class SegmentFile:
    """A segment file; topic and partition come from the directory's name, the base offset from the file's."""

    path: str
    size: int
    topic: str | None
    partition: int | None
    base_offset: int | None

    @property
    def directory(self) -> str:
        """The directory of the partition that the segment belongs to."""
        return os.path.dirname(self.path)


def find_segments(paths: Iterable[str]) -> list[SegmentFile]:
    """All segment files under these directories, globs and files, sorted by directory, then by base offset.

    Directories are walked to any depth for files named as a broker names segments (20 digits and ``.log``); a file
    that is named itself is taken whatever its name.

    Raises:
        OptionError: naming `path`, where one leads to nothing.
    """
    found: dict[str, None] = {}
    for path in paths:
        found.update(dict.fromkeys(_expand(path)))
    segments = [_segment(path) for path in found]
    return sorted(segments, key=lambda segment: (segment.directory, segment.base_offset or 0, segment.path))


def _expand(path: str) -> list[str]:
    local = _local(path)
    if os.path.exists(local):
        matches = [local]
    elif has_magic(local):
        matches = sorted(glob(local, recursive=True))
        if not matches:
            raise OptionError(f"path: nothing matches {path}")
    else:
        raise OptionError(f"path: {path} does not exist")
    segments = [file for match in matches for file in (_walk(match) if os.path.isdir(match) else [match])]
    if not segments:
        raise OptionError(f"path: there are no segment files (20 digits and .log) under {path}")
    return [os.path.abspath(segment) for segment in segments]


def _local(path: str) -> str:
    """A plain or ``file:`` path; files are opened where the tasks run, so other schemes cannot be."""
    scheme = urlsplit(path).scheme
    if scheme == "file":
        return unquote(urlsplit(path).path)
    if scheme and "://" in path:
        raise OptionError(f"path: {path} is not a local path; mount the file system that {scheme}: stands for")
    return path


def _walk(directory: str) -> Iterator[str]:
    for root, directories, names in os.walk(directory):
        directories[:] = sorted(name for name in directories if not _PASSED_OVER.fullmatch(name))
        for name in sorted(names):
            if _SEGMENT.fullmatch(name):
                yield os.path.join(root, name)


def _segment(path: str) -> SegmentFile:
    place, name = Path(path).parent.name, Path(path).name
    match = _PARTITION_DIRECTORY.fullmatch(place)
    return SegmentFile(
        path=path,
        size=os.path.getsize(path),
        topic=match["topic"] if match else None,
        partition=int(match["partition"]) if match else None,
        base_offset=int(name[:20]) if _SEGMENT.fullmatch(name) else None,
    )
