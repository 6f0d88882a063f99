"""Consumer groups and their committed offsets, read from the ``__consumer_offsets`` partitions of a data directory."""

from __future__ import annotations

import errno
import os
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from kafkacodec.arguments import path_texts, require_list
from kafkacodec.errors import CorruptRecord, DecodeError, KafkaCodecError
from kafkacodec.internal_records import CONSUMER_OFFSETS, ControlType
from kafkacodec.log.files.access import note
from kafkacodec.log.formats import layout
from kafkacodec.log.opening.checkpoints import read_topic_id
from kafkacodec.log.partitions.directory import LogDirectory
from kafkacodec.log.partitions.merged import MergedPartition
from kafkacodec.log.partitions.partition import Partition
from kafkacodec.log.reading.markers import marker_type
from kafkacodec.log.state.group_state import CommittedOffset, Group, GroupMember, GroupState, OwnedPartitions
from kafkacodec.log.state.stored import note_record, sound_chunks
from kafkacodec.messages.stored import decode_coordinator_record
from kafkacodec.named_rows import NamedRows
from kafkacodec.records.record import Record
from kafkacodec.signatures import suggests_options

__all__ = [
    "CommittedOffset",
    "Group",
    "GroupMember",
    "OwnedPartitions",
    "read_committed_offsets",
    "read_consumer_groups",
]

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
"""One path, or several."""


class CommittedOffsets(NamedRows[CommittedOffset]):
    """A list of `CommittedOffset` that notebooks show as a table, with `to_arrow`, `to_pandas` and `to_polars`."""

    row_type = CommittedOffset

    @staticmethod
    def cells(row: CommittedOffset) -> dict[str, Any]:
        """The fields; None where leader epoch and times are unset."""
        fields = row._asdict()
        for name in ("leader_epoch", "commit_timestamp", "expire_timestamp"):
            fields[name] = None if fields[name] == -1 else fields[name]
        return fields


class Groups(NamedRows[Group]):
    """A list of `Group`, likewise."""

    row_type = Group

    @staticmethod
    def cells(row: Group) -> dict[str, Any]:
        """The fields as plain values."""
        return row.to_dict()


@suggests_options
def read_committed_offsets(path: Paths, *, problems: list[DecodeError] | None = None) -> CommittedOffsets:
    """The committed offsets of all groups, by group, topic and partition.

    Commits of aborted or open transactions do not count.

    Args:
        path: a broker's data directory, or that of one partition of ``__consumer_offsets``; or several, of any brokers:
            replicas of a partition are read as one log (`kafkacodec.log.partitions.merged`).
        problems: a list that the errors of unreadable batches and records are appended to; these are skipped. Without
            it the first such error is raised.

    Raises:
        FileNotFoundError: there is no partition of ``__consumer_offsets``.
        DecodeError: a batch or a record cannot be read; the error's path names the file, or the partition and offset.
    """
    return CommittedOffsets(_applied(_each(path), problems).committed_offsets())


@suggests_options
def read_consumer_groups(path: Paths, *, problems: list[DecodeError] | None = None) -> Groups:
    """All groups by name, with their members; arguments and errors as in `read_committed_offsets`.

    A group with committed offsets and no other record is, as for a broker, a classic group of generation 0 without a
    protocol type. The newer kinds of groups store topic ids, whose names come from the partitions in the directory.
    """
    paths = _each(path)
    names, places = _topics(paths)
    return Groups(_applied(paths, problems).groups(names, places))


def _applied(paths: Sequence[str], problems: list[DecodeError] | None) -> GroupState:
    require_list("problems", problems)
    state = GroupState()
    for offset, key, value in _group_records(paths, problems):
        state.apply(offset, key, value)
    return state


def _each(path: Paths) -> list[str]:
    found = path_texts(path, "path")
    if not found:
        raise ValueError("path: there is none; pass a broker's data directory")
    return found


def _topics(paths: Iterable[str]) -> tuple[dict[uuid.UUID, str], set[tuple[str, int]]]:
    """The names of the topics in data directories, by id, and their partitions; those without a readable id have no
    name.
    """
    names: dict[uuid.UUID, str] = {}
    places: set[tuple[str, int]] = set()
    for path in paths:
        if Partition(path).topic == CONSUMER_OFFSETS:
            continue
        for partition in LogDirectory(path).all_partitions:
            if partition.topic is not None and partition.partition is not None:
                places.add((partition.topic, partition.partition))
            with suppress(OSError, KafkaCodecError):
                topic_id = read_topic_id(os.path.join(partition.path, layout.PARTITION_METADATA))
                names[topic_id] = partition.topic or str(topic_id)
    return names, places


def _group_records(paths: Sequence[str], problems: list[DecodeError] | None) -> Iterator[tuple[int, Any, Any]]:
    """Offset, key and value of the records of all partitions; a group is in one partition."""
    for partition in _partitions(paths):
        for record in _committed_records(partition, problems):
            if record.key is None:
                continue
            try:
                found = decode_coordinator_record("group", record.key, record.value)
            except DecodeError as error:
                note_record(error, partition.path, record.offset, problems)
                continue
            if found is not None:
                yield record.offset, *found


def _partitions(paths: Sequence[str]) -> list[Partition]:
    """The partitions of the topic, each once."""
    replicas: dict[int | None, list[Partition]] = {}
    for path in paths:
        itself = Partition(path)
        alone = itself.topic == CONSUMER_OFFSETS
        for partition in [itself] if alone else LogDirectory(path).partitions(CONSUMER_OFFSETS):
            replicas.setdefault(partition.partition, []).append(partition)
    if not replicas:
        raise FileNotFoundError(errno.ENOENT, f"no partition of {CONSUMER_OFFSETS}", os.pathsep.join(paths))
    return [same[0] if len(same) == 1 else MergedPartition(same) for same in replicas.values()]


def _committed_records(partition: Partition, problems: list[DecodeError] | None) -> Iterator[Record]:
    """Records outside transactions in the order of the log, and those of a transaction at its commit marker.

    As a group coordinator reads them: an open transaction does not hold back records of other producers. The records
    of open transactions are kept in memory.
    """
    pending: dict[int, list[Record]] = {}
    for chunk in sound_chunks(partition, problems, batch_columns=True, include_control=True):
        if "producer_id" not in chunk.column_names:
            error = CorruptRecord("segments of Kafka 0.6 or 0.7, which had no such topic", path=partition.path)
            if problems is None:
                raise error
            note(problems, error)
            return
        rows = zip(
            chunk.records(),
            chunk["producer_id"].tolist(),
            chunk["is_transactional"].tolist(),
            chunk["is_control"].tolist(),
            strict=True,
        )
        for record, producer_id, is_transactional, is_control in rows:
            if is_control:
                held = pending.pop(producer_id, [])
                if marker_type(record.key) == ControlType.COMMIT:
                    yield from held
            elif is_transactional:
                pending.setdefault(producer_id, []).append(record)
            else:
                yield record
