"""Reading the small state files of a broker: checkpoints, partition metadata and producer snapshots."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from functools import lru_cache

from kafkacodec.errors import DecodeError
from kafkacodec.log.files.access import FileIdentity
from kafkacodec.log.formats import layout
from kafkacodec.log.formats.checkpoints import (
    LeaderEpoch,
    ProducerSnapshot,
    parse_checkpoint,
    parse_leader_epochs,
    parse_producer_snapshot,
    parse_properties,
    parse_topic_id,
    snapshot_offset,
)
from kafkacodec.log.opening import fault_of, identity_of, optional, read_file

__all__ = [
    "known_offsets",
    "read_checkpoint",
    "read_leader_epochs",
    "read_producer_snapshot",
    "read_properties",
    "read_topic_id",
    "unreadable_checkpoints",
]

MAX_BYTES = 64 << 20
"""The largest readable checkpoint or snapshot, in bytes; a million partitions or producers need less."""


def read_producer_snapshot(path: str | os.PathLike[str]) -> ProducerSnapshot:
    """Read a ``.snapshot`` file (KIP-98).

    Raises:
        Truncated: the file is shorter than its header and entries.
        CrcMismatch: the stored checksum does not match the bytes.
        CorruptRecord: bytes after the last entry, a negative count, or a file name that is not an offset.
        UnsupportedVersion: a version other than 1.
        OSError: the file cannot be read.
    """
    path = os.fspath(path)
    snapshot_offset(path)  # the name is checked first
    return parse_producer_snapshot(read_file(path, MAX_BYTES), path)


def read_leader_epochs(path: str | os.PathLike[str]) -> list[LeaderEpoch]:
    """Read a ``leader-epoch-checkpoint`` file (KIP-101): the leader epochs in order; none if the file is empty.

    Raises:
        CorruptRecord: invalid text, or epochs that do not increase.
        UnsupportedVersion: a version other than 0.
        OSError: the file cannot be read.
    """
    path = os.fspath(path)
    return parse_leader_epochs(read_file(path, MAX_BYTES), path)


def read_checkpoint(path: str | os.PathLike[str]) -> dict[tuple[str, int], int]:
    """Read an offset checkpoint of a log directory: the offset of each (topic, partition).

    The files are ``replication-offset-checkpoint`` (high watermarks), ``recovery-point-offset-checkpoint``,
    ``log-start-offset-checkpoint`` and ``cleaner-offset-checkpoint``. Raises as `read_leader_epochs` does.
    """
    path = os.fspath(path)
    return parse_checkpoint(read_file(path, MAX_BYTES), path)


def known_offsets(log_dir: str, name: str) -> Mapping[tuple[str, int], int]:
    """Return the entries of an offset checkpoint of a log directory; empty if it is missing or unreadable.

    Raises:
        OSError: an object store does not answer, and the file could change what is read.
    """
    path = os.path.join(log_dir, name)
    found: Mapping[tuple[str, int], int] = {}
    with optional(path):
        found = _known_offsets(path, identity_of(path))
    return found


def unreadable_checkpoints(log_dir: str) -> dict[str, DecodeError]:
    """The offset checkpoints of a log directory that are there and cannot be read, by name, with the reason.

    Raises:
        OSError: a file cannot be read for a reason that may pass.
    """
    found: dict[str, DecodeError] = {}
    for name in layout.OFFSET_CHECKPOINTS:
        path = os.path.join(log_dir, name)
        try:
            _known_offsets(path, identity_of(path))
        except (FileNotFoundError, NotADirectoryError):
            pass
        except (DecodeError, OSError) as error:
            fault = error if isinstance(error, DecodeError) else fault_of(path, error)
            if fault is None:
                raise
            found[name] = fault
    return found


@lru_cache(maxsize=16)
def _known_offsets(path: str, _identity: FileIdentity) -> Mapping[tuple[str, int], int]:
    """Cached until the file is replaced: every partition of the directory asks for its entry."""
    return read_checkpoint(path)


def read_topic_id(path: str | os.PathLike[str]) -> uuid.UUID:
    """Read the topic's id from a ``partition.metadata`` file (KIP-516). Raises as `read_leader_epochs` does."""
    path = os.fspath(path)
    return parse_topic_id(read_file(path, MAX_BYTES), path)


def read_properties(path: str | os.PathLike[str]) -> dict[str, str]:
    """Read a file of ``key=value`` or ``key: value`` lines, such as ``meta.properties``; ``#`` begins a comment."""
    path = os.fspath(path)
    return parse_properties(read_file(path, MAX_BYTES), path)
