"""Reading the small state files of a broker: checkpoints, partition metadata and producer snapshots."""

from __future__ import annotations

import os
import uuid
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache

from kafkacodec.errors import CheckpointWarning, CorruptRecord, KafkaCodecError
from kafkacodec.log.files.access import FileIdentity, reason_of
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
from kafkacodec.log.opening import identity_of, read_file
from kafkacodec.log.storage.paths import full_path, is_passing
from kafkacodec.tracebacks import level_outside

__all__ = [
    "WITHOUT",
    "known_offsets",
    "read_checkpoint",
    "read_leader_epochs",
    "read_producer_snapshot",
    "read_properties",
    "read_topic_id",
    "reporting_checkpoints",
    "unreadable_checkpoints",
]

MAX_BYTES = 64 << 20
"""The largest readable checkpoint or snapshot, in bytes; a million partitions or producers need less."""

WITHOUT = {
    layout.RECOVERY_POINT_CHECKPOINT: "whether logs have lost their end cannot be checked",
    layout.LOG_START_CHECKPOINT: "logs begin where their files begin",
    layout.HIGH_WATERMARK_CHECKPOINT: "logs end where their files end",
    layout.CLEANER_CHECKPOINT: "which gaps compaction explains is not known from it",
}
"""What readers do without an offset checkpoint, as a clause."""

_reported: Counter[str] = Counter()
"""Log directories about whose checkpoints a report is being made."""


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

    A `CheckpointWarning` tells once of an unreadable one.

    Raises:
        OSError: an object store does not answer, and the file could change what is read.
    """
    directory = full_path(log_dir)
    found, fault = _offsets_or_fault(os.path.join(directory, name))
    if fault is not None and not _reported[directory]:
        _tell_once(f"{fault}; {WITHOUT[name]}")
    return found


@contextmanager
def reporting_checkpoints(log_dir: str) -> Iterator[None]:
    """No warnings about the checkpoints of a log directory meanwhile: a report names them."""
    directory = full_path(log_dir)
    _reported[directory] += 1
    try:
        yield
    finally:
        _reported[directory] -= 1


def unreadable_checkpoints(log_dir: str) -> dict[str, KafkaCodecError]:
    """The offset checkpoints of a log directory that are there and cannot be read, by name, with the reason.

    Raises:
        OSError: an object store does not answer.
    """
    faults = {name: _offsets_or_fault(os.path.join(log_dir, name))[1] for name in layout.OFFSET_CHECKPOINTS}
    return {name: fault for name, fault in faults.items() if fault is not None}


def _offsets_or_fault(path: str) -> tuple[Mapping[tuple[str, int], int], KafkaCodecError | None]:
    """The entries of a checkpoint, none if it is missing; or what is wrong with it."""
    try:
        return _known_offsets(path, identity_of(path)), None
    except (FileNotFoundError, NotADirectoryError):
        return {}, None
    except KafkaCodecError as error:
        return {}, error
    except OSError as error:
        if is_passing(path, error):
            raise
        return {}, CorruptRecord(f"the file cannot be read: {reason_of(error)}", path=path)


@lru_cache(maxsize=64)
def _tell_once(text: str) -> None:
    warnings.warn(text, CheckpointWarning, stacklevel=level_outside())


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
