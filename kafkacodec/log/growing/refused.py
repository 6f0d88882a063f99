"""Why a data directory cannot be used."""

from __future__ import annotations

import errno
import os

from kafkacodec.log.formats import layout

__all__ = ["DirectoryRefused", "partition_names", "refuse_partition"]


class DirectoryRefused(OSError):
    """A data directory of another process, cluster, node or version, or one that is none.

    `strerror` says what is wrong and what to do, `filename` is the path.
    """


def refuse_partition(directory: str) -> None:
    """Refuse a file, and the directory of a partition, as a data directory; nothing may be there yet.

    Raises:
        DirectoryRefused: the directory has segments.
        NotADirectoryError: it is a file.
        OSError: it cannot be listed.
    """
    if not os.path.isdir(directory):
        if os.path.lexists(directory):
            raise NotADirectoryError(errno.ENOTDIR, "is a file, not a directory", directory)
        return
    for name in os.listdir(directory):
        parts = layout.parse_file_name(name)
        if name == layout.PARTITION_METADATA or (parts is not None and parts.suffix in layout.SEGMENT_SUFFIXES):
            parent = os.path.dirname(os.path.abspath(directory))
            reason = f"is the directory of a partition: give its parent, {parent}"
            raise DirectoryRefused(errno.EINVAL, reason, directory)


def partition_names(directory: str) -> list[tuple[str, layout.DirectoryName]]:
    """The partitions' directories in a data directory, by name.

    Raises:
        DirectoryRefused: there is a directory that is not a partition's; a broker does not start with it either.
        OSError: it cannot be listed.
    """
    found = []
    for name in sorted(os.listdir(directory)):
        path = os.path.join(directory, name)
        if not os.path.isdir(path) or name == "lost+found":
            continue
        parts = layout.parse_directory_name(name, tiered=False)
        if parts is None:
            reason = "not the directory of a partition: choose another data directory, or move this one elsewhere"
            raise DirectoryRefused(errno.EINVAL, reason, path)
        found.append((name, parts))
    return found
