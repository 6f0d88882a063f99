"""The state in the records of ``__consumer_offsets``: groups, their members and their committed offsets.

A group coordinator applies each record that it has written, and when it starts all that are in its partitions.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Set
from typing import Any

from kafkacodec.datatypes import NamedTuple
from kafkacodec.errors import DecodeError
from kafkacodec.messages import ConsumerProtocolSubscription
from kafkacodec.messages.consumer_protocol import decode_assignment

__all__ = ["CommittedOffset", "Group", "GroupMember", "GroupState", "OwnedPartitions"]


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


class GroupState:
    """All groups after the records so far.

    Records of transactions are applied when these are committed: see `kafkacodec.log.state.groups`.
    """

    def __init__(self) -> None:
        self._commits: dict[tuple[str, str, int], tuple[int, CommittedOffset]] = {}
        self._groups: dict[str, tuple[str, Any]] = {}  # the kind, and the value of the last record
        self._members: dict[str, dict[str, Any]] = {}
        self._assigned: dict[tuple[str, str], list[Any]] = {}
        self._topologies: dict[str, dict[str, list[str]]] = {}  # what each subtopology of a streams group reads

    def apply(self, offset: int, key: Any, value: Any) -> None:
        """Apply one record; those of types that do not change this state are ignored.

        Args:
            offset: where the record is in its partition.
            key, value: as `kafkacodec.messages.stored.decode_coordinator_record` returns them; None is a tombstone.
        """
        change = _CHANGES.get(type(key).__name__)
        if change is not None:
            change(self, offset, key, value)

    def committed_offsets(self) -> list[CommittedOffset]:
        """The committed offsets, by group, topic and partition."""
        return [self._commits[place][1] for place in sorted(self._commits)]

    def groups(self, names: Mapping[uuid.UUID, str], places: Collection[tuple[str, int]] = ()) -> list[Group]:
        """All groups by name, with their members.

        A group with committed offsets and no other record is, as for a broker, a classic group of generation 0 without
        a protocol type.

        Args:
            names: the names of topics; newer kinds of groups have ids.
            places: known partitions. A member of a streams group has tasks, each of which is a partition of every topic
                of a subtopology that has so many; of several topics, only known partitions count.
        """
        known = {*places, *((topic, number) for _, topic, number in self._commits)}
        found = {name: _group(name, kind, value) for name, (kind, value) in self._groups.items()}
        for name, _, _ in self._commits:
            if name not in found:
                found[name] = Group(name, "classic", 0, "", None, None, [])
        for name, members in self._members.items():
            if name in found and found[name].kind != "classic":
                current = [self._member(name, member, members[member], names, known) for member in sorted(members)]
                found[name] = found[name]._replace(members=current)
        return [found[name] for name in sorted(found)]

    def _member(
        self, group: str, member: str, value: Any, names: Mapping[uuid.UUID, str], known: Set[tuple[str, int]]
    ) -> GroupMember:
        parts = self._assigned.get((group, member), [])
        topics = list(getattr(value, "subscribed_topic_names", None) or [])
        instance = getattr(value, "instance_id", None)
        if self._groups[group][0] == "streams":
            topology = self._topologies.get(group, {})
            topics = sorted({topic for read in topology.values() for topic in read})
            owned = _of_tasks(parts, topology, known)
        else:
            owned = [_owned(names.get(part.topic_id, part.topic_id), part) for part in parts]
        return GroupMember(member, instance, value.client_id, value.client_host, topics, owned)

    def _on_commit(self, offset: int, key: Any, value: Any) -> None:
        place = key.group, key.topic, key.partition
        if value is None:
            self._commits.pop(place, None)
        elif place not in self._commits or self._commits[place][0] < offset:  # a transaction may end after a later one
            commit = CommittedOffset(
                *place,
                value.offset,
                value.leader_epoch,
                value.metadata,
                value.commit_timestamp,
                value.expire_timestamp,
            )
            self._commits[place] = offset, commit

    def _on_classic(self, _offset: int, key: Any, value: Any) -> None:
        self._set(key.group, "classic", value)

    def _on_consumer(self, _offset: int, key: Any, value: Any) -> None:
        self._set(key.group_id, "consumer", value)

    def _on_share(self, _offset: int, key: Any, value: Any) -> None:
        self._set(key.group_id, "share", value)

    def _on_streams(self, _offset: int, key: Any, value: Any) -> None:
        self._set(key.group_id, "streams", value)

    def _set(self, group: str, kind: str, value: Any) -> None:
        self._groups.pop(group, None)
        if value is not None:
            self._groups[group] = kind, value

    def _on_member(self, _offset: int, key: Any, value: Any) -> None:
        members = self._members.setdefault(key.group_id, {})
        members.pop(key.member_id, None)
        if value is not None:
            members[key.member_id] = value

    def _on_assignment(self, _offset: int, key: Any, value: Any) -> None:
        self._assigned[key.group_id, key.member_id] = [] if value is None else value.assigned_partitions

    def _on_tasks(self, _offset: int, key: Any, value: Any) -> None:
        self._assigned[key.group_id, key.member_id] = [] if value is None else value.active_tasks

    def _on_topology(self, _offset: int, key: Any, value: Any) -> None:
        self._topologies[key.group_id] = {
            part.subtopology_id: [*part.source_topics, *(topic.name for topic in part.repartition_source_topics)]
            for part in (() if value is None else value.subtopologies)
        }


# By the names of the keys' classes.
_CHANGES: dict[str, Callable[[GroupState, int, Any, Any], None]] = {
    "OffsetCommitKey": GroupState._on_commit,
    "LegacyOffsetCommitKey": GroupState._on_commit,
    "GroupMetadataKey": GroupState._on_classic,
    "ConsumerGroupMetadataKey": GroupState._on_consumer,
    "ShareGroupMetadataKey": GroupState._on_share,
    "StreamsGroupMetadataKey": GroupState._on_streams,
    "ConsumerGroupMemberMetadataKey": GroupState._on_member,
    "ShareGroupMemberMetadataKey": GroupState._on_member,
    "StreamsGroupMemberMetadataKey": GroupState._on_member,
    "ConsumerGroupCurrentMemberAssignmentKey": GroupState._on_assignment,
    "ShareGroupCurrentMemberAssignmentKey": GroupState._on_assignment,
    "StreamsGroupCurrentMemberAssignmentKey": GroupState._on_tasks,
    "StreamsGroupTopologyKey": GroupState._on_topology,
}


def _group(name: str, kind: str, value: Any) -> Group:
    """A group by the value of its last record, for the newer kinds without members."""
    if kind == "classic":
        return _classic_group(name, value)
    return Group(name, kind, value.epoch, kind, None, None, [])


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


def _of_tasks(
    parts: Iterable[Any], topology: Mapping[str, list[str]], known: Set[tuple[str, int]]
) -> list[OwnedPartitions]:
    """The partitions of the active tasks of a member of a streams group."""
    found: dict[str, list[int]] = {}
    for part in parts:
        topics = topology.get(part.subtopology_id, [])
        for topic in topics:
            numbers = [number for number in part.partitions if len(topics) == 1 or (topic, number) in known]
            found.setdefault(topic, []).extend(numbers)
    return [OwnedPartitions(topic, sorted(numbers)) for topic, numbers in sorted(found.items()) if numbers]


def _owned(topic: object, part: Any) -> OwnedPartitions:
    return OwnedPartitions(str(topic), sorted(part.partitions))
