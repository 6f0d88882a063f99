"""Consumer groups and their committed offsets, read from the ``__consumer_offsets`` partitions of a data directory."""

from __future__ import annotations

import errno
import os
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from kafkacodec.errors import DecodeError, KafkaCodecError
from kafkacodec.internal_records import CONSUMER_OFFSETS, ControlType
from kafkacodec.log.formats import layout
from kafkacodec.log.opening.checkpoints import read_topic_id
from kafkacodec.log.partitions.directory import LogDirectory
from kafkacodec.log.partitions.merged import MergedPartition
from kafkacodec.log.partitions.partition import Partition
from kafkacodec.log.reading.transactions import marker_type
from kafkacodec.log.state.named_rows import NamedRows
from kafkacodec.log.state.stored import note_record, sound_chunks
from kafkacodec.messages import ConsumerProtocolSubscription
from kafkacodec.messages.consumer_protocol import decode_assignment
from kafkacodec.messages.stored import decode_coordinator_record
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


class CommittedOffset(NamedTuple):
    """A group's last commit for a partition. Times are milliseconds; leader epoch and times are -1 if unset."""

    group: str
    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int
    expire_timestamp: int


class OwnedPartitions(NamedTuple):
    """Partitions of a topic that a member owns. `topic` is its id where the name is not known."""

    topic: str
    partitions: list[int]


class GroupMember(NamedTuple):
    """A member of a group; `topics` are its subscribed topics, `owned` its partitions, empty if unknown."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    topics: list[str]
    owned: list[OwnedPartitions]

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, for JSON and Arrow."""
        return self._asdict() | {"owned": [owned._asdict() for owned in self.owned]}


class Group(NamedTuple):
    """A group after its last record. `kind` is classic, consumer, share or streams; `generation` is its epoch."""

    group: str
    kind: str
    generation: int
    protocol_type: str
    protocol: str | None
    leader: str | None
    members: list[GroupMember]

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, for JSON and Arrow."""
        return self._asdict() | {"members": [member.to_dict() for member in self.members]}


class CommittedOffsets(NamedRows[CommittedOffset]):
    """A list of `CommittedOffset` that notebooks show as a table, with `to_arrow`, `to_pandas` and `to_polars`."""

    row_type = CommittedOffset
    schema = "OFFSETS"

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
    schema = "GROUPS"

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
    last: dict[tuple[str, str, int], tuple[int, CommittedOffset]] = {}
    for written_at, key, value in _group_records(_each(path), problems):
        if type(key).__name__ not in _COMMITS:
            continue
        place = key.group, key.topic, key.partition
        if value is None:
            last.pop(place, None)
        elif place not in last or last[place][0] < written_at:  # a transaction may end after a later commit
            commit = CommittedOffset(
                *place,
                value.offset,
                value.leader_epoch,
                value.metadata,
                value.commit_timestamp,
                value.expire_timestamp,
            )
            last[place] = written_at, commit
    return CommittedOffsets(last[place][1] for place in sorted(last))


@suggests_options
def read_consumer_groups(path: Paths, *, problems: list[DecodeError] | None = None) -> Groups:
    """All groups by name, with their members; arguments and errors as in `read_committed_offsets`.

    A group with committed offsets and no other record is, as for a broker, a classic group of generation 0 without a
    protocol type. The newer kinds of groups store topic ids, whose names come from the partitions in the directory.
    """
    paths = _each(path)
    names = _topic_names(paths)
    groups: dict[str, Group] = {}
    members: dict[str, dict[str, GroupMember]] = {}
    owned: dict[tuple[str, str], list[OwnedPartitions]] = {}
    commits: dict[str, set[tuple[str, int]]] = {}
    for _, key, value in _group_records(paths, problems):
        name = type(key).__name__
        if name == "GroupMetadataKey":
            groups.pop(key.group, None)
            if value is not None:
                groups[key.group] = _classic_group(key.group, value)
        elif name in _KINDS:
            groups.pop(key.group_id, None)
            if value is not None:
                kind = _KINDS[name]
                groups[key.group_id] = Group(key.group_id, kind, value.epoch, kind, None, None, [])
        elif name in _MEMBERS:
            of_group = members.setdefault(key.group_id, {})
            of_group.pop(key.member_id, None)
            if value is not None:
                of_group[key.member_id] = _member(key.member_id, value)
        elif name in _ASSIGNMENTS:
            found = [] if value is None else value.assigned_partitions
            owned[key.group_id, key.member_id] = [_owned(names.get(p.topic_id, p.topic_id), p) for p in found]
        elif name in _COMMITS:
            places = commits.setdefault(key.group, set())
            (places.discard if value is None else places.add)((key.topic, key.partition))
    for name, places in commits.items():
        if places and name not in groups:
            groups[name] = Group(name, "classic", 0, "", None, None, [])
    for name, of_group in members.items():
        if name in groups and groups[name].kind != "classic":
            current = [of_group[member]._replace(owned=owned.get((name, member), [])) for member in sorted(of_group)]
            groups[name] = groups[name]._replace(members=current)
    return Groups(groups[name] for name in sorted(groups))


_COMMITS = ("OffsetCommitKey", "LegacyOffsetCommitKey")

# The record types of the newer kinds of groups, by the names of their keys.
_KINDS = {
    "ConsumerGroupMetadataKey": "consumer",
    "ShareGroupMetadataKey": "share",
    "StreamsGroupMetadataKey": "streams",
}
_MEMBERS = ("ConsumerGroupMemberMetadataKey", "ShareGroupMemberMetadataKey", "StreamsGroupMemberMetadataKey")
_ASSIGNMENTS = ("ConsumerGroupCurrentMemberAssignmentKey", "ShareGroupCurrentMemberAssignmentKey")


def _classic_group(name: str, value: Any) -> Group:
    members = [
        GroupMember(
            m.member_id,
            m.group_instance_id,
            m.client_id,
            m.client_host,
            _subscribed(value, m.subscription),
            _assigned(value, m.assignment),
        )
        for m in value.members
    ]
    return Group(name, "classic", value.generation, value.protocol_type, value.protocol, value.leader, members)


def _subscribed(group: Any, subscription: bytes) -> list[str]:
    """The topics of a classic consumer's subscription; other protocol types have their own format."""
    if group.protocol_type != "consumer" or len(subscription) < 2:
        return []
    try:
        # As a broker reads it (GroupMetadata.computeSubscribedTopics): in every version the topics come first.
        found, _ = ConsumerProtocolSubscription.decode_prefix(subscription, 0, 2)
    except (DecodeError, ValueError):
        return []
    return list(found.topics)


def _assigned(group: Any, assignment: bytes) -> list[OwnedPartitions]:
    """The partitions in a classic consumer's assignment."""
    if group.protocol_type != "consumer":
        return []
    try:
        return [_owned(part.topic, part) for part in decode_assignment(assignment).assigned_partitions]
    except DecodeError:
        return []


def _member(member_id: str, value: Any) -> GroupMember:
    topics = list(getattr(value, "subscribed_topic_names", None) or [])
    return GroupMember(member_id, getattr(value, "instance_id", None), value.client_id, value.client_host, topics, [])


def _owned(topic: object, part: Any) -> OwnedPartitions:
    return OwnedPartitions(str(topic), sorted(part.partitions))


def _each(path: Paths) -> list[str]:
    return [os.fspath(each) for each in ([path] if isinstance(path, (str, os.PathLike)) else path)]


def _topic_names(paths: Iterable[str]) -> dict[uuid.UUID, str]:
    """The names of the topics in data directories, by id; those without a readable id are left out."""
    names: dict[uuid.UUID, str] = {}
    for path in paths:
        if Partition(path).topic == CONSUMER_OFFSETS:
            continue
        for partition in LogDirectory(path).all_partitions:
            with suppress(OSError, KafkaCodecError):
                topic_id = read_topic_id(os.path.join(partition.path, layout.PARTITION_METADATA))
                names[topic_id] = partition.topic or str(topic_id)
    return names


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
