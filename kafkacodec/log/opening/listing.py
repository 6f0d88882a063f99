"""The segment files of a partition's directory, while a broker rolls, cleans and deletes them.

The log cleaner replaces segments by one with the suffix ``.log.swap``: it renames the old files to ``.log.deleted``
and then removes ``.swap`` from the name of the new one. In between, and after a crash there, the ``.swap`` file is the
segment: a broker that starts finishes the renames. Files with the suffixes ``.cleaned`` and ``.deleted`` never are.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from functools import lru_cache

from kafkacodec.datatypes import NamedTuple
from kafkacodec.log.files.access import SETTLED_SECONDS
from kafkacodec.log.formats import layout
from kafkacodec.log.opening import (
    MANIFEST_SUFFIX,
    Entry,
    changed_ns,
    entries,
    fault_of,
    full_path,
    identity_of,
    is_uploaded,
    is_url,
    optional,
)
from kafkacodec.log.opening.missing import suggesting

_SUFFIXES = layout.SEGMENT_SUFFIXES + layout.SWAP_SUFFIXES
# Names with which one of two files of a base offset is the segment, or another directory lists them.
_NOT_PLAIN = (*layout.SWAP_SUFFIXES, layout.KAFKA07_SUFFIX, MANIFEST_SUFFIX)


class SegmentFile(NamedTuple):
    """A segment's base offset and its path."""

    base_offset: int
    path: str


def segment_files(directory: str) -> Sequence[SegmentFile]:
    """The segments in a directory, by base offset; one for each.

    The system may leave out a file that is renamed or created during the listing. A directory that changed at that time
    is listed again, and the result has the files of both listings: some may be gone, but none is left out.

    Raises:
        OSError: the directory cannot be listed.
    """
    if is_url(directory):  # a listing of objects is consistent
        return _segment_files(directory, None, 1)
    changed = changed_ns(directory)
    if time.time_ns() - changed < SETTLED_SECONDS * 1e9:
        return _segment_files(directory, changed, 2)
    return _settled_files(directory, changed)


def files_of_partition(directory: str, *, named: bool) -> Sequence[SegmentFile]:
    """As `segment_files`; a directory `named` like a partition's has a segment if the system does not list it.

    That segment cannot be read either.
    """
    try:
        return segment_files(directory)
    except OSError as error:
        if not named or fault_of(directory, error) is None:
            raise
        return [SegmentFile(0, os.path.join(directory, layout.file_name(0, layout.LOG_SUFFIX)))]


def ending_files(directory: str, names: Sequence[str]) -> Sequence[SegmentFile]:
    """The last segment with records and the empty ones after it, or all of them if there are only empty ones.

    For a caller that has locked the partition: the time does not depend on the number of segments, beyond that of
    names.

    Args:
        directory: the directory of this machine.
        names: all names in it.

    Raises:
        OSError: a file in it cannot be looked at.
    """
    if not layout.any_ends_with(names, _NOT_PLAIN):
        found: list[SegmentFile] = []
        for name in sorted(names, reverse=True):
            if not name.endswith(layout.LOG_SUFFIX):
                continue
            parsed, path = layout.parse_file_name(name), os.path.join(directory, name)
            if parsed is None or parsed.segment_id is not None or not os.path.isfile(path):
                break  # that decides the listing
            found.insert(0, SegmentFile(parsed.base_offset, path))
            if identity_of(path).size:
                return found
    files = segment_files(directory)
    last = next((i for i in reversed(range(len(files))) if identity_of(files[i].path).size), 0)
    return files[last:]


@lru_cache(maxsize=8)
def _settled_files(directory: str, changed: int) -> Sequence[SegmentFile]:
    """Cached until the directory changes: every range whose file was replaced asks for it."""
    return _segment_files(directory, changed, 1)


def _segment_files(directory: str, changed: int | None, times: int) -> Sequence[SegmentFile]:
    found: dict[int, str] = {}
    for _ in range(times):
        _list(directory, found)
    if changed is not None and changed_ns(directory) != changed:
        _list(directory, found)
    return [SegmentFile(base, found[base]) for base in sorted(found)]


def _list(directory: str, found: dict[int, str]) -> None:
    for entry in entries(directory):
        if not entry.name.endswith(_SUFFIXES):
            continue
        name = layout.parse_file_name(entry.name)
        if name is None or name.suffix not in _SUFFIXES:
            continue
        other = found.get(name.base_offset)
        # Reading a directory, or a link to nothing, that has the name of a segment raises the error.
        if other is None or (other != entry.path and entry.is_file() and _replaces(entry, name, other)):
            found[name.base_offset] = entry.path


def _replaces(entry: Entry, name: layout.FileName, other: str) -> bool:
    """Whether to read this file instead of another with its base offset."""
    if name.suffix in layout.SWAP_SUFFIXES or other.endswith(layout.SWAP_SUFFIXES):
        return name.suffix not in layout.SWAP_SUFFIXES  # the files that it replaces are not renamed yet
    # Tiered storage may have a segment twice, written under different leaders: the longer one is complete.
    return identity_of(other).size < identity_of(entry.path).size


class SettledDirectory(NamedTuple):
    """A directory of this machine that had not changed for some time when it was listed.

    Attributes:
        path (str): the directory.
        inode (int), changed (int): its number, and when its names last changed, in ns since 1970.
        known_at (int): files that changed before this were there when it was listed, as they are; likewise.
    """

    path: str
    inode: int
    changed: int
    known_at: int

    @classmethod
    def of(cls, path: str) -> SettledDirectory | None:
        """The state now; None if a later change might go unnoticed: it has just changed, or its names have no time."""
        if is_url(path):
            return None
        with suggesting(path):
            now = os.stat(path or os.curdir)
        settled = time.time_ns() - int(SETTLED_SECONDS * 1e9)
        return cls(path, now.st_ino, now.st_mtime_ns, settled) if now.st_mtime_ns <= settled else None

    def still_has(self, path: str) -> bool:
        """Whether a file is certainly the one that had its name then. Raises as `identity_of`."""
        now = os.stat(self.path or os.curdir)
        if (now.st_ino, now.st_mtime_ns) == (self.inode, self.changed):
            return True
        return identity_of(path).ctime_ns < self.known_at  # renaming a file sets this time


def may_overlap(path: str) -> bool:
    """Whether a segment may share offsets with the next one, and is read only up to them. A segment that the cleaner
    swaps in does until the old ones are renamed; an uploaded one does if the next leader wrote these offsets again, and
    its own records there may never have been in the log.
    """
    return path.endswith(layout.SWAP_SUFFIXES) or is_uploaded(path)


def directory_name(path: str) -> layout.DirectoryName | None:
    """The parts of the name of a partition's directory; if the name is ambiguous, its files decide."""
    whole = full_path(path)
    remote = layout.parse_remote_directory(whole)
    if remote is not None:
        return remote
    name = os.path.basename(whole)
    tiered = None
    if layout.may_be_either(name):
        with optional(path):  # raised again when it is read
            files = [layout.parse_file_name(entry.name) for entry in entries(path)]
            tiered = any(file is not None and file.segment_id is not None for file in files)
    return layout.parse_directory_name(name, tiered=tiered)


def partitions_below(path: str) -> str:
    """What to write for a directory with partitions below it, as the end of a sentence."""
    below = [e.name for e in entries(path) if e.is_dir() and layout.parse_directory_name(e.name, tiered=False)]
    if not below:
        return ""
    return f"; pass it to kafkacodec.log.LogDirectory, or a directory below it, such as {min(below)}, to Partition"
