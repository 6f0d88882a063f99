"""The single interface for reading logs: files of this machine, or objects of an object store.

A path is a string; one with a scheme (``s3://bucket/prefix``) names an object. `open_file` returns a `StoredFile`:
its `size`, and its bytes by `view` (a buffer in which positions are those of the file) or `read` (a copy). Code that
has bytes from elsewhere offers the same methods, and everything that takes a `StoredFile` works with it.

`places` has the plain files. Here, segments that were uploaded in chunks (`kafkacodec.log.tiered`) look like those of a
broker: a segment has the name of its object, and its index files are entries of the directory.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from kafkacodec.errors import DecodeError, KafkaCodecError, _Unreadable
from kafkacodec.log.files.access import FileIdentity, reason_of
from kafkacodec.log.files.preallocated import without_zeros
from kafkacodec.log.formats import layout
from kafkacodec.log.storage import places
from kafkacodec.log.storage.interfaces import Entry, StoredFile
from kafkacodec.log.storage.paths import check_local, full_path, is_unreadable, is_url, optional
from kafkacodec.log.storage.places import changed_ns, is_directory

if TYPE_CHECKING:
    from kafkacodec.log.tiered.manifest import Manifest

__all__ = [
    "Entry",
    "StoredFile",
    "changed_ns",
    "check_local",
    "entries",
    "fault_of",
    "full_path",
    "identity_of",
    "is_directory",
    "is_uploaded",
    "is_url",
    "open_file",
    "optional",
    "read_file",
    "read_used",
]

MANIFEST_SUFFIX = ".rsm-manifest"


def open_file(path: str) -> StoredFile:
    """Open a file for reading.

    Raises:
        OSError: missing, unreadable, or not a regular file; `filename` names it.
        ValueError: the scheme of the URL is unknown.
        DecodeError: the manifest of an uploaded segment is damaged, or does not fit its object.
    """
    if layout.is_stand_in(path):
        from kafkacodec.log.tiered.segment_file import StandIn

        return StandIn(path)
    manifest = _manifest_of(path, layout.LOG_SUFFIX)
    if manifest is None:
        return places.open_file(path)
    from kafkacodec.log.tiered.segment_file import open_segment

    return open_segment(manifest, path)


def read_file(path: str, limit: int) -> bytes:
    """The bytes of a small file. Raises as `open_file`, and LimitExceeded: there are more than `limit`."""
    part = _read_part(path, limit)
    return places.read_file(path, limit) if part is None else part


def read_used(path: str, limit: int, *, to_end: bool) -> tuple[bytes, int]:
    """The bytes of a small file without the zeros at its end, and its size.

    Arguments and errors as in `preallocated.read_used`, errors of `read_file` too.
    """
    part = _read_part(path, limit)
    return places.read_used(path, limit, to_end=to_end) if part is None else (without_zeros(part), len(part))


def _read_part(path: str, limit: int) -> bytes | None:
    """The bytes of an index of an uploaded segment; None for other files."""
    if not _is_part(path):
        return None
    from kafkacodec.log.tiered.directories import part_of
    from kafkacodec.log.tiered.segment_file import read_part

    found = part_of(path)
    return found if found is None or isinstance(found, bytes) else read_part(*found, path, limit)


def identity_of(path: str) -> FileIdentity:
    """Return the identity of a file without opening it. Raises OSError.

    The size of an upload with a damaged manifest is that of its object; opening it raises the error.
    """
    if layout.is_stand_in(path):
        return FileIdentity(0, 0, 0, 0)
    identity = places.identity_of(path)
    with suppress(KafkaCodecError):
        manifest = _manifest_of(path, layout.LOG_SUFFIX)
        identity = identity if manifest is None else identity._replace(size=manifest.chunks.size)
    return identity


def entries(directory: str) -> Sequence[Entry]:
    """The entries of a directory.

    Raises:
        OSError: it is missing or cannot be listed. An object store has no empty directories.
    """
    found = places.entries(directory)
    if not any(entry.name.endswith(MANIFEST_SUFFIX) for entry in found):
        return found
    from kafkacodec.log.tiered.directories import list_directory

    return list_directory(directory, found).entries


def fault_of(path: str, error: Exception) -> DecodeError | None:
    """The fault of a segment whose opening or reading raised an error, if that hides it, or the rest of it, for good.

    That is a damaged manifest or chunk of an upload, or a file that the system does not read. None for other errors,
    which are not the segment's, or may pass.
    """
    if isinstance(error, DecodeError):
        return error if layout.is_upload(path) else None
    if isinstance(error, OSError) and is_unreadable(path, error):
        return _Unreadable(f"the file cannot be read: {reason_of(error)}", path=path)
    return None


def is_uploaded(path: str) -> bool:
    """Whether a segment has a manifest, or stands for one, so that another may have some of its offsets too."""
    try:
        return layout.is_stand_in(path) or _manifest_of(path, layout.LOG_SUFFIX) is not None
    except KafkaCodecError:  # a damaged one; opening the segment raises the error
        return True


def _manifest_of(path: str, suffix: str) -> Manifest | None:
    """The manifest of an uploaded segment; None for other files."""
    name = layout.parse_file_name(os.path.basename(path))
    if name is None or name.segment_id is None or name.suffix != suffix:
        return None
    from kafkacodec.log.tiered.directories import manifest_of

    return manifest_of(path)


def _is_part(path: str) -> bool:
    """Whether a path may be that of an index of an uploaded segment."""
    directory, base = os.path.split(path)
    name = layout.parse_file_name(base)
    if name is not None and name.segment_id is not None:
        return True
    named = base in (layout.LEADER_EPOCH_CHECKPOINT, layout.PARTITION_METADATA)
    snapshot = name is not None and name.suffix == layout.PRODUCER_SNAPSHOT_SUFFIX
    return (named or snapshot) and layout.parse_remote_directory(full_path(directory)) is not None
