"""The journal of jobs in a log directory: complete writes, and the write that is being published.

The file (`kafkacodec.log.formats.layout.WRITE_STATE`) is JSON and is always replaced as a whole. Before a job renames
its first file, it stores the names and identities of all of them; after the last one it stores that the write is
complete, together with its transaction. This second replacement is the commit point: a write that is still listed as
pending, and whose job has ended, is rolled back. This module has the format and the decisions; `recovery` has the I/O.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from kafkacodec.datatypes import NamedTuple, dataclass, field, replace
from kafkacodec.errors import CorruptRecord
from kafkacodec.log.formats import layout
from kafkacodec.log.formats.layout import check_topic
from kafkacodec.log.writing.segment_writer import COMMIT_ORDER

__all__ = [
    "MAX_APPS",
    "MAX_ID",
    "Identity",
    "Journal",
    "State",
    "Transaction",
    "WrittenPartition",
    "WrittenSegment",
    "encode_state",
    "in_place",
    "parse_state",
    "why_not",
]

MAX_APPS = 10_000
"""Applications (`txnAppId`) whose last version is recorded; those that wrote least recently are dropped."""

MAX_ID = 512
"""Characters of a `txnAppId`."""

_VERSION = 1
_MOST = 2**63 - 1


class Transaction(NamedTuple):
    """A write that is done at most once: the application, and its number within it, which increases."""

    app_id: str
    version: int


class Identity(NamedTuple):
    """Distinguishes a file from earlier ones of the same name: inode number and size in bytes."""

    inode: int
    size: int


class WrittenSegment(NamedTuple):
    """A segment that a job publishes: its base offset, and its files' identities in the order of `COMMIT_ORDER`."""

    base_offset: int
    files: tuple[Identity, ...]

    def names(self) -> dict[str, Identity]:
        """The names of its files, in the order of the commit."""
        return {
            layout.file_name(self.base_offset, suffix): identity
            for suffix, identity in zip(COMMIT_ORDER, self.files, strict=True)
        }


@dataclass(frozen=True)
class WrittenPartition:
    """What a job publishes to one partition: the directory's name, the offsets [start, end), the segments by offset."""

    name: str
    start: int
    end: int
    segments: tuple[WrittenSegment, ...]

    def __str__(self) -> str:
        return f"{self.name} from offset {self.start} to {self.end}"


@dataclass(frozen=True)
class Journal:
    """A write that is being published."""

    transaction: Transaction | None
    partitions: tuple[WrittenPartition, ...]


@dataclass(frozen=True)
class State:
    """The content of the file.

    Attributes:
        versions: the last version of each application, the most recent writer last.
        journal: the write that is being published.
    """

    versions: Mapping[str, int] = field(default_factory=dict)
    journal: Journal | None = None

    def has(self, transaction: Transaction | None) -> bool:
        """Whether this write, or a later one of its application, is complete."""
        return transaction is not None and self.versions.get(transaction.app_id, -1) >= transaction.version

    def completed(self, transaction: Transaction | None) -> State:
        """The state after the pending write."""
        versions = dict(self.versions)
        if transaction is not None:
            versions.pop(transaction.app_id, None)
            versions[transaction.app_id] = transaction.version
        kept = list(versions.items())[-MAX_APPS:]
        return State(dict(kept))

    def undone(self) -> State:
        """The state without the pending write."""
        return replace(self, journal=None)


# --- decisions --------------------------------------------------------------------------------------------------------

Listing = Mapping[str, Identity]
"""The files of a partition's directory."""


def in_place(partition: WrittenPartition, listing: Listing) -> list[str]:
    """The names of the job's files that are there, in the order in which they are to be removed: the last segment first
    and each before its indexes, so that there is a valid log at any moment."""
    return [
        name
        for segment in reversed(partition.segments)
        for name, identity in reversed(segment.names().items())
        if listing.get(name) == identity
    ]


def why_not(partition: WrittenPartition, listing: Listing, high_watermark: int) -> str | None:
    """Why the job's segments in a partition cannot be removed, or None if they can.

    Args:
        partition: what the job was going to publish.
        listing: the files that are there.
        high_watermark: the one that a broker has stored for the partition, or -1.
    """
    own = set()
    for segment in partition.segments:
        name = layout.file_name(segment.base_offset, layout.LOG_SUFFIX)
        there, written = listing.get(name), segment.names()[name]
        if there == written:
            own.add(name)
        elif there is not None and (there.inode == written.inode or there.size == written.size):
            return f"{name} has been changed or copied since"
    if not own:
        return None
    first = min(own)
    later = [name for name, file in listing.items() if _is_segment(name) and name >= first and file.size]
    if not own.issuperset(later):
        return f"{min(set(later) - own)} has been appended since"
    if high_watermark > partition.start:
        return f"a broker has made its records readable up to offset {high_watermark}"
    return None


def _is_segment(name: str) -> bool:
    parsed = layout.parse_file_name(name)
    return parsed is not None and parsed.suffix == layout.LOG_SUFFIX


# --- format -----------------------------------------------------------------------------------------------------------


def encode_state(state: State) -> bytes:
    """The file's content."""
    content: dict[str, Any] = {"version": _VERSION, "transactions": list(state.versions.items()), "journal": None}
    if state.journal is not None:
        content["journal"] = {
            "transaction": state.journal.transaction,
            "partitions": [[p.name, p.start, p.end, p.segments] for p in state.journal.partitions],
        }
    return json.dumps(content, separators=(",", ":")).encode()


def parse_state(data: bytes, path: str) -> State:
    """Parse the file's content.

    Raises:
        CorruptRecord: it is not what `encode_state` returns; a name in it that is not one of a partition, for example.
    """
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        raise CorruptRecord("the file is not JSON", path=path) from None
    try:
        return _state(content)
    except _Invalid as error:
        raise CorruptRecord(f"invalid state of writes: {error}", path=path) from None


class _Invalid(Exception):
    """What is wrong with the content."""


def _state(content: object) -> State:
    found = _fields(content, "the content", "version", "transactions", "journal")
    if found["version"] != _VERSION:
        raise _Invalid(f"version is {_shown(found['version'])}, not {_VERSION}")
    versions: dict[str, int] = {}
    for entry in _list(found["transactions"], "transactions", MAX_APPS):
        transaction = _transaction(entry)
        versions[transaction.app_id] = transaction.version
    return State(versions, None if found["journal"] is None else _journal(found["journal"]))


def _journal(content: object) -> Journal:
    found = _fields(content, "journal", "transaction", "partitions")
    transaction = None if found["transaction"] is None else _transaction(found["transaction"])
    partitions = tuple(_partition(entry) for entry in _list(found["partitions"], "partitions"))
    if len({p.name for p in partitions}) < len(partitions):
        raise _Invalid("a partition is listed twice")
    return Journal(transaction, partitions)


def _transaction(content: object) -> Transaction:
    app_id, version = _items(content, "a transaction", 2)
    if not isinstance(app_id, str) or not 0 < len(app_id) <= MAX_ID:
        raise _Invalid(f"{_shown(app_id)} is not an application")
    return Transaction(app_id, _number(version, "a version"))


def _partition(content: object) -> WrittenPartition:
    name, start, end, segments = _items(content, "a partition", 4)
    parsed = layout.parse_directory_name(name) if isinstance(name, str) else None
    if parsed is None or name != f"{parsed.topic}-{parsed.partition}":
        raise _Invalid(f"{_shown(name)} is not a partition's directory")
    try:
        check_topic(parsed.topic)
    except ValueError as error:
        raise _Invalid(str(error)) from None
    start, end = _number(start, "a start offset"), _number(end, "an end offset")
    written = tuple(_segment(entry) for entry in _list(segments, "segments"))
    bounds = [start, *(segment.base_offset for segment in written), end]
    if any(first > second for first, second in pairwise(bounds)) or bounds[1] != start:
        raise _Invalid(f"the offsets of {name} are not in order")
    if len({segment.base_offset for segment in written}) < len(written):
        raise _Invalid(f"{name} has two segments with the same offset")
    return WrittenPartition(name, start, end, written)


def _segment(content: object) -> WrittenSegment:
    base_offset, files = _items(content, "a segment", 2)
    identities = (_items(file, "a file", 2) for file in _items(files, "the files", len(COMMIT_ORDER)))
    return WrittenSegment(
        _number(base_offset, "a base offset"),
        tuple(Identity(_number(inode, "an inode", 2**64 - 1), _number(size, "a size")) for inode, size in identities),
    )


def _fields(content: object, what: str, *names: str) -> dict[str, object]:
    if not isinstance(content, dict) or set(content) != set(names):
        raise _Invalid(f"{what} has not the fields {', '.join(names)}")
    return content


def _list(content: object, what: str, limit: int | None = None) -> list[object]:
    if not isinstance(content, list) or (limit is not None and len(content) > limit):
        raise _Invalid(f"{what} is not a list" + (f" of at most {limit}" if limit else ""))
    return content


def _items(content: object, what: str, count: int) -> list[Any]:
    if not isinstance(content, list) or len(content) != count:
        raise _Invalid(f"{what} is {_shown(content)}, not a list of {count}")
    return content


def _number(content: object, what: str, largest: int = _MOST) -> int:
    if type(content) is not int or not 0 <= content <= largest:
        raise _Invalid(f"{what} is {_shown(content)}")
    return content


def _shown(content: object) -> str:
    return repr(content)[:80]
