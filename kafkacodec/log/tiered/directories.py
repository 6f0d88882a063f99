"""Directories of uploaded segments: their manifests, and the entries that a broker's directory would have."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import zip_longest

from kafkacodec.datatypes import NamedTuple, dataclass, field
from kafkacodec.errors import CorruptRecord, KafkaCodecError
from kafkacodec.log.files.access import FileIdentity
from kafkacodec.log.files.pool import in_threads
from kafkacodec.log.formats import layout
from kafkacodec.log.formats.checkpoints import LeaderEpoch, parse_leader_epochs
from kafkacodec.log.storage import places
from kafkacodec.log.storage.interfaces import Entry
from kafkacodec.log.storage.objects import ObjectEntry
from kafkacodec.log.storage.paths import is_passing, is_url
from kafkacodec.log.tiered.keys import KEYS_VARIABLE
from kafkacodec.log.tiered.lineage import Reading, in_the_log
from kafkacodec.log.tiered.manifest import (
    LEADER_EPOCHS,
    MANIFEST_SUFFIX,
    MAX_MANIFEST_BYTES,
    Manifest,
    Part,
    parse_manifest,
)
from kafkacodec.log.tiered.segment_file import read_part

__all__ = ["Directory", "UploadedSegment", "list_directory", "manifest_of", "part_of", "uploads"]

_SUFFIXES = (layout.LOG_SUFFIX, ".indexes", MANIFEST_SUFFIX)
_LISTED = (layout.OFFSET_INDEX_SUFFIX, layout.TIME_INDEX_SUFFIX, layout.TRANSACTION_INDEX_SUFFIX)
_THREADS = 4

MAX_EPOCHS_BYTES = 64 << 20
"""The largest leader epochs of an upload that are read, in bytes; a million terms need less."""


class UploadedSegment(NamedTuple):
    """A segment in tiered storage, as its manifest describes it.

    Attributes:
        path (str): the segment's object, to be read by `kafkacodec.log.Segment`. topic (str), partition (int),
        segment_id (str): the segment's topic, partition and id.
        start_offset, end_offset (int): the offsets of its first and its last record.
        leader_epochs (tuple[LeaderEpoch, ...]): those that it was written in.
        size_in_bytes (int): the segment's bytes.
        stored_bytes (int): the object's bytes.
        compressed, encrypted (bool): how its chunks are stored.
        superseded (bool): reading the partition leaves it out: other uploads have its offsets.
    """

    path: str
    topic: str
    partition: int
    segment_id: str
    start_offset: int
    end_offset: int
    leader_epochs: tuple[LeaderEpoch, ...]
    size_in_bytes: int
    stored_bytes: int
    compressed: bool
    encrypted: bool
    superseded: bool


@dataclass(frozen=True)
class Directory:
    """The contents of a directory of uploaded segments.

    Attributes:
        entries (list[Entry]): as in a broker's directory, of the segments that are the partition's log. Where one was
            cut and no other begins, a segment without bytes stands for what is missing: see `layout.is_stand_in`.
        read (list[Manifest]): those segments.
        superseded (list[Manifest]): the others.
        parts (dict[str, tuple[Manifest, Part]]): the files that are parts of an object, by name.
    """

    entries: list[Entry]
    read: list[Manifest]
    superseded: list[Manifest]
    parts: dict[str, tuple[Manifest, Part]] = field(default_factory=dict)


def uploads(directory: str | os.PathLike[str]) -> list[UploadedSegment]:
    """All complete uploads of a partition, by offset; an empty list if the directory has no manifests.

    Raises:
        OSError: the directory or a manifest cannot be read.
        DecodeError, UnsupportedVersion: a manifest is damaged.
    """
    path = os.fspath(directory)
    paths = [entry.path for entry in places.entries(path) if entry.name.endswith(MANIFEST_SUFFIX)]
    manifests = [manifest for manifest in map(manifest_of, paths) if manifest is not None]
    read = in_the_log(manifests, _history)
    chosen = {part.upload.path for part in read}
    manifests.sort(key=lambda m: (m.start_offset, m.path in chosen, m.segment_id))
    return [_described(manifest, manifest.path not in chosen) for manifest in manifests]


def _described(manifest: Manifest, superseded: bool) -> UploadedSegment:
    return UploadedSegment(
        path=_stem(manifest) + layout.LOG_SUFFIX,
        topic=manifest.topic,
        partition=manifest.partition,
        segment_id=manifest.segment_id,
        start_offset=manifest.start_offset,
        end_offset=manifest.end_offset,
        leader_epochs=manifest.leader_epochs,
        size_in_bytes=manifest.chunks.size,
        stored_bytes=manifest.chunks.stored_size,
        compressed=manifest.compressed,
        encrypted=manifest.encryption is not None,
        superseded=superseded,
    )


def _stem(manifest: Manifest) -> str:
    return manifest.path.removesuffix(MANIFEST_SUFFIX)


def list_directory(directory: str, listed: Iterable[Entry]) -> Directory:
    """The contents of a directory, from its entries.

    Objects without a manifest are uploads that did not end, and left out. A segment with a damaged manifest is listed;
    reading it raises the error.

    Raises:
        OSError: a manifest cannot be read; without it, other uploads might seem to be the log.
    """
    others: list[Entry] = []
    paths = []
    for entry in listed:
        stem, suffix = os.path.splitext(entry.name)
        if suffix not in _SUFFIXES or not layout.is_upload(stem + layout.LOG_SUFFIX):
            others.append(entry)
        elif suffix == MANIFEST_SUFFIX:
            paths.append(entry.path)
    found = list(zip(paths, in_threads(_manifest_or_error, paths, _THREADS), strict=True))
    damaged = [path for path, manifest in found if isinstance(manifest, KafkaCodecError)]
    manifests = [manifest for _, manifest in found if isinstance(manifest, Manifest)]
    read = in_the_log(manifests, _history)
    known = {part.upload.path for part in read}
    superseded = [manifest for manifest in manifests if manifest.path not in known]
    result = Directory(others, [part.upload for part in read], superseded)
    for part, after in zip_longest(read, read[1:]):
        _add(result, directory, part, None if after is None else after.upload)
    for path in damaged:
        result.entries.append(_entry(directory, os.path.basename(path).removesuffix(MANIFEST_SUFFIX) + ".log"))
    _add_stand_ins(result, directory, read)
    if read:
        result.entries.append(_entry(directory, layout.PARTITION_METADATA))
        result.entries.append(_entry(directory, layout.LEADER_EPOCH_CHECKPOINT))
        newest = read[-1].upload
        result.parts[layout.LEADER_EPOCH_CHECKPOINT] = (newest, newest.indexes[LEADER_EPOCHS])
    return result


def _history(manifest: Manifest) -> Sequence[LeaderEpoch]:
    """The leader epochs of the log at the end of an upload; those of its segment if they are missing or unreadable.

    Without the key they are unreadable. That a store does not answer is an error: it would change what is read.
    """
    try:
        return _cached_history(manifest.path, os.environ.get(KEYS_VARIABLE)) or manifest.leader_epochs
    except (OSError, KafkaCodecError, ImportError) as error:
        if is_passing(manifest.path, error):
            raise
        return manifest.leader_epochs


@lru_cache(maxsize=1024)
def _cached_history(path: str, _keys: str | None) -> Sequence[LeaderEpoch]:
    manifest, name = _read_manifest(path), path.removesuffix(MANIFEST_SUFFIX) + LEADER_EPOCHS
    return parse_leader_epochs(read_part(manifest, manifest.indexes[LEADER_EPOCHS], name, MAX_EPOCHS_BYTES), name)


def _add(result: Directory, directory: str, part: Reading, after: Manifest | None) -> None:
    """Add the files of a segment; `after` is the next one."""
    manifest = part.upload
    stem = os.path.basename(_stem(manifest))
    result.entries.append(_entry(directory, stem + layout.LOG_SUFFIX))
    names = {suffix: stem + suffix for suffix in _LISTED}
    # A broker uploads the state of the producers after the segment.
    overlaps = after is not None and after.start_offset <= manifest.end_offset
    if not part.is_cut and not overlaps:  # else it may be that of a log that was truncated
        end = manifest.end_offset + 1
        names[layout.PRODUCER_SNAPSHOT_SUFFIX] = layout.file_name(end, layout.PRODUCER_SNAPSHOT_SUFFIX)
    for suffix, name in names.items():
        index = manifest.indexes.get(suffix)
        if index is not None:
            result.entries.append(_entry(directory, name))
            result.parts[name] = (manifest, index)


def _add_stand_ins(result: Directory, directory: str, read: Sequence[Reading]) -> None:
    """Add a segment where one was cut before the next one begins: what was written there is missing."""
    names = (layout.parse_file_name(entry.name) for entry in result.entries)
    begins = {name.base_offset for name in names if name is not None and name.suffix == layout.LOG_SUFFIX}
    for part, after in zip_longest(read, read[1:]):
        reached = after is not None and after.upload.start_offset <= part.end
        if part.is_cut and not reached and part.end not in begins:
            name = layout.file_name(part.end, f"-{layout.NOT_UPLOADED}{layout.LOG_SUFFIX}")
            result.entries.append(_entry(directory, name))


def _entry(directory: str, name: str) -> ObjectEntry:
    return ObjectEntry(name, os.path.join(directory, name), directory=False)


def part_of(path: str) -> tuple[Manifest, Part] | bytes | None:
    """The place of an index file's bytes, or the bytes themselves; None if the file does not belong to an upload.

    Raises:
        FileNotFoundError: the segment has no such index.
        OSError, KafkaCodecError: its manifest cannot be read.
    """
    directory, base = os.path.split(path)
    name = layout.parse_file_name(base)
    if name is not None and name.segment_id is not None:
        manifest = manifest_of(path)
        if manifest is None:
            return None
        part = manifest.indexes.get(name.suffix)
        if part is None:
            raise FileNotFoundError(2, "the segment was uploaded without this index", path)
        return manifest, part
    try:
        listed = places.entries(directory)
    except FileNotFoundError:
        return None
    if any(entry.name == base for entry in listed):
        return None
    found = list_directory(directory, listed)
    if base == layout.PARTITION_METADATA and found.read:
        topic_id = base64.urlsafe_b64encode(found.read[-1].topic_id.bytes).decode().rstrip("=")
        return f"version: 0\ntopic_id: {topic_id}\n".encode()
    return found.parts.get(base)


def manifest_of(path: str) -> Manifest | None:
    """The manifest of the segment that a file belongs to; None if there is none.

    Raises:
        OSError: it cannot be read.
        DecodeError, UnsupportedVersion: it is damaged, or is of another segment.
    """
    try:
        return _read_manifest(os.path.splitext(path)[0] + MANIFEST_SUFFIX)
    except FileNotFoundError:
        return None


def _manifest_or_error(path: str) -> Manifest | KafkaCodecError | None:
    """A manifest, or its error; None if it was deleted since it was listed."""
    try:
        return manifest_of(path)
    except KafkaCodecError as error:
        return error


def _read_manifest(path: str) -> Manifest:
    # An object is never written again: its name has a random id.
    return _cached_manifest(path, None if is_url(path) else places.identity_of(path))


@lru_cache(maxsize=4096)
def _cached_manifest(path: str, _identity: FileIdentity | None) -> Manifest:
    manifest = parse_manifest(places.read_file(path, MAX_MANIFEST_BYTES), path)
    own = f"{manifest.start_offset:020d}-{manifest.segment_id}{MANIFEST_SUFFIX}"
    if os.path.basename(path) != own:
        raise CorruptRecord(f"the manifest is that of another segment, {own}", path=path)
    return manifest
