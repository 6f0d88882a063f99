"""A share group: its members, epochs and targets, which partitions have a state, and its records (KIP-932).

A member does not give up a partition before another gets it, since a partition may belong to several members. The share
coordinator initializes the state of a partition before any member gets it.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kafkacodec import messages
from kafkacodec.broker.state.consumers.member import Places, new_targets, places_of, rows_of
from kafkacodec.broker.state.epoch_group import targets_stay, tombstones
from kafkacodec.broker.state.machine import Room, Topics
from kafkacodec.broker.state.sharing.targets import share_targets
from kafkacodec.broker.state.targets import topics_hash
from kafkacodec.datatypes import dataclass, field, replace
from kafkacodec.errors import GROUP_ID_NOT_FOUND, NONE
from kafkacodec.messages.stored import StoredRecord

__all__ = ["SHARE_RECORDS", "ShareGroup", "ShareMember", "Stated"]

Stated = dict[uuid.UUID, tuple[str, frozenset[int]]]
"""Partitions with a state: the topic's name and their numbers, by its id."""

_NOTHING: Places = frozenset()
_NEW_EPOCH = 1  # of a group that has had no member yet


@dataclass(frozen=True, slots=True)
class ShareMember:
    """The state of a member, from its records."""

    id: str
    rack: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: tuple[str, ...] = ()
    epoch: int = 0
    previous_epoch: int = 0
    assigned: Places = _NOTHING

    def metadata_record(self, group: str) -> StoredRecord:
        """Its subscription."""
        key = messages.ShareGroupMemberMetadataKey(group_id=group, member_id=self.id)
        value = messages.ShareGroupMemberMetadataValue(
            rack_id=self.rack, client_id=self.client_id, client_host=self.client_host,
            subscribed_topic_names=list(self.topics),
        )  # fmt: skip
        return StoredRecord(key, value, 0)

    def assignment_record(self, group: str) -> StoredRecord:
        """Return the record of its partitions."""
        key = messages.ShareGroupCurrentMemberAssignmentKey(group_id=group, member_id=self.id)
        made = messages.ShareGroupCurrentMemberAssignmentValue
        value = made(
            member_epoch=self.epoch, previous_member_epoch=self.previous_epoch,
            assigned_partitions=rows_of(made.TopicPartitions, self.assigned),
        )  # fmt: skip
        return StoredRecord(key, value, 0)

    def tombstones(self, group: str) -> list[StoredRecord]:
        """Return the records that remove it."""
        keys = (
            messages.ShareGroupCurrentMemberAssignmentKey,
            messages.ShareGroupTargetAssignmentMemberKey,
            messages.ShareGroupMemberMetadataKey,
        )
        return tombstones(keys, group_id=group, member_id=self.id)

    @property
    def revocation_ms(self) -> None:
        """It never has to give up partitions before others get them."""


@dataclass(slots=True)
class ShareGroup:
    """The state of a group, from its records.

    Attributes:
        starting: partitions whose state is being initialized.
        started: partitions with a state.
        asked: partitions with a pending request to the share coordinator; not in records.
    """

    room: Room
    topics: Topics
    epoch: int = _NEW_EPOCH
    hash: int = 0
    assignment_epoch: int = _NEW_EPOCH
    assigned_at: int = 0  # when the targets were computed; 0 if a member should not wait for the next ones
    members: dict[str, ShareMember] = field(default_factory=dict)
    target: dict[str, Places] = field(default_factory=dict)
    starting: Stated = field(default_factory=dict)
    started: Stated = field(default_factory=dict)
    deleting: dict[uuid.UUID, str] = field(default_factory=dict)
    asked: set[tuple[uuid.UUID, int]] = field(default_factory=set)

    kind = "share"
    protocol_type = "share"

    @property
    def name(self) -> str:
        """The id of the group."""
        return self.room.key

    @property
    def state(self) -> str:
        """Empty or Stable."""
        return "Stable" if self.members else "Empty"

    @property
    def idle(self) -> bool:
        """Whether the group is empty."""
        return not self.members

    def start(self) -> None:
        """Do nothing: the calls set its timers."""

    def heard_from(self, member_id: str) -> None:
        """It takes no commits."""

    # Committed offsets, of which it has none

    def commit_refusal(self, request: Any, version: int, *, transactional: bool) -> int:
        """It takes none."""
        return GROUP_ID_NOT_FOUND

    def fetch_refusal(self, member_id: str | None, epoch: int) -> int:
        """Return the error for a fetch of offsets: a share group has none."""
        return NONE

    def delete_refusal(self) -> int:
        """There are none."""
        return GROUP_ID_NOT_FOUND

    def subscribes(self) -> Callable[[str], bool]:
        """Whether a member subscribes to a topic."""
        return {topic for member in self.members.values() for topic in member.topics}.__contains__

    def retention_start(self) -> Callable[[str], int | None]:
        """Return the start of retention: it has no offsets."""
        return lambda topic: None

    # Decisions

    def counts(self, members: Iterable[ShareMember]) -> dict[str, int]:
        """Return the number of partitions of each existing topic with a subscriber."""
        names = {name for member in members for name in member.topics}
        return {name: count for name in sorted(names) if (count := self.topics.partitions(name))}

    def without_state(self, counts: Mapping[str, int]) -> Stated:
        """Partitions of topics whose state is not initialized."""
        found: Stated = {}
        for name, count in counts.items():
            topic_id = self.topics.id_of(name)
            if topic_id is not None:
                missing = frozenset(range(count)) - self.started.get(topic_id, (name, frozenset()))[1]
                if missing:
                    found[topic_id] = name, missing
        return found

    def with_state(self, counts: Mapping[str, int]) -> dict[str, list[int]]:
        """Return the partitions of topics with a state, which members can get."""
        found = {}
        for name in counts:
            topic_id = self.topics.id_of(name)
            if topic_id in self.started:
                found[name] = sorted(self.started[topic_id][1])
        return found

    def targets(self, members: Mapping[str, ShareMember], counts: Mapping[str, int]) -> dict[str, Places]:
        """Return each member's target."""
        ids = {name: topic_id for name in counts if (topic_id := self.topics.id_of(name)) is not None}
        places = [(ids[name], number) for name, numbers in self.with_state(counts).items() for number in numbers]
        wanting = {member.id: {ids[name] for name in member.topics if name in ids} for member in members.values()}
        return share_targets(places, wanting, self.target)

    def pending(self, counts: Mapping[str, int]) -> bool:
        """Whether partitions with a state are in no member's target yet."""
        given = {place for places in self.target.values() for place in places}
        return any(
            (self.topics.id_of(name), number) not in given
            for name, numbers in self.with_state(counts).items()
            for number in numbers
        )

    def joined(self, member: ShareMember, interval_ms: int) -> tuple[ShareMember, list[StoredRecord]]:
        """Return the member with the fields of its heartbeat, and the records; targets stay for an interval."""
        before = self.members.get(member.id)
        members = {**self.members, member.id: member}
        counts = self.counts(members.values())
        hash_ = topics_hash(self.topics, counts)
        records = [] if member == before else [member.metadata_record(self.name)]
        epoch, target = self.epoch, self.target.get(member.id, _NOTHING)
        changed = before is None or member.topics != before.topics
        waits = bool(self.members) and targets_stay(self, interval_ms)
        if changed or hash_ != self.hash or (epoch == self.assignment_epoch and self.pending(counts)):
            epoch += 1
            records.append(self.epoch_record(epoch, hash_))
        target_epoch = self.assignment_epoch
        if epoch > target_epoch and not waits:
            targets = self.targets(members, counts)
            target, target_epoch = targets[member.id], epoch
            records += self.target_records(targets, epoch)
        if member.epoch != target_epoch or member.assigned != target:
            member = replace(member, epoch=target_epoch, previous_epoch=member.epoch, assigned=target)
            records.append(member.assignment_record(self.name))
        return member, records

    def left(self, member: ShareMember) -> list[StoredRecord]:
        """Return the records of a leaving member."""
        rest = [other for other in self.members.values() if other.id != member.id]
        epoch = self.epoch + 1
        records = member.tombstones(self.name)
        records.append(self.epoch_record(epoch, topics_hash(self.topics, self.counts(rest))))
        return records if rest else [*records, self.target_epoch_record(epoch, 0)]

    # Records

    def epoch_record(self, epoch: int, hash_: int) -> StoredRecord:
        """The epoch of the group."""
        key = messages.ShareGroupMetadataKey(group_id=self.name)
        return StoredRecord(key, messages.ShareGroupMetadataValue(epoch=epoch, metadata_hash=hash_), 0)

    def target_epoch_record(self, epoch: int, at: int) -> StoredRecord:
        """Return the record of the targets' epoch and time."""
        key = messages.ShareGroupTargetAssignmentMetadataKey(group_id=self.name)
        value = messages.ShareGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=at)
        return StoredRecord(key, value, 0)

    def target_records(self, targets: Mapping[str, Places], epoch: int) -> list[StoredRecord]:
        """Return the records of changed targets and of their epoch."""
        key, value = messages.ShareGroupTargetAssignmentMemberKey, messages.ShareGroupTargetAssignmentMemberValue
        records = new_targets(key, value, self.name, targets, self.target)
        return [*records, self.target_epoch_record(epoch, self.room.now)]

    def state_record(self, starting: Stated, started: Stated, deleting: Mapping[uuid.UUID, str]) -> StoredRecord:
        """Return the record of partitions that have a state, get one or lose it."""
        made = messages.ShareGroupStatePartitionMetadataValue

        def rows(stated: Stated) -> list[Any]:
            return [
                made.TopicPartitionsInfo(topic_id=topic_id, topic_name=name, partitions=sorted(numbers))
                for topic_id, (name, numbers) in sorted(stated.items())
                if numbers
            ]

        gone = [made.TopicInfo(topic_id=topic_id, topic_name=name) for topic_id, name in sorted(deleting.items())]
        value = made(initializing_topics=rows(starting), initialized_topics=rows(started), deleting_topics=gone)
        return StoredRecord(messages.ShareGroupStatePartitionMetadataKey(group_id=self.name), value, 0)

    def tombstones(self) -> list[StoredRecord]:
        """Return the records that remove the group."""
        members = [record for member in self.members.values() for record in member.tombstones(self.name)]
        keys = (
            messages.ShareGroupTargetAssignmentMetadataKey,
            messages.ShareGroupStatePartitionMetadataKey,
            messages.ShareGroupMetadataKey,
        )
        return [*members, *tombstones(keys, group_id=self.name)]

    def apply(self, key: Any, value: Any) -> None:
        """Change the state as a record says."""
        _CHANGES[type(key).__name__](self, key, value)

    def _on_epoch(self, key: Any, value: Any) -> None:
        self.epoch, self.hash = value.epoch, value.metadata_hash

    def _on_target_epoch(self, key: Any, value: Any) -> None:
        self.assignment_epoch = _NEW_EPOCH if value is None else value.assignment_epoch
        self.assigned_at = 0 if value is None else value.assignment_timestamp

    def _on_target(self, key: Any, value: Any) -> None:
        self.target.pop(key.member_id, None)
        if value is not None:
            self.target[key.member_id] = places_of(value.topic_partitions)

    def _on_member(self, key: Any, value: Any) -> None:
        if value is None:
            self.members.pop(key.member_id, None)
            return
        self.members[key.member_id] = replace(
            self.members.get(key.member_id) or ShareMember(key.member_id), rack=value.rack_id,
            client_id=value.client_id, client_host=value.client_host, topics=tuple(value.subscribed_topic_names),
        )  # fmt: skip

    def _on_assignment(self, key: Any, value: Any) -> None:
        member = self.members.get(key.member_id)
        if value is not None:
            self.members[key.member_id] = replace(
                member or ShareMember(key.member_id), epoch=value.member_epoch,
                previous_epoch=value.previous_member_epoch, assigned=places_of(value.assigned_partitions),
            )  # fmt: skip
        elif member is not None:
            self.members[key.member_id] = replace(member, epoch=0, previous_epoch=0, assigned=_NOTHING)

    def _on_states(self, key: Any, value: Any) -> None:
        def stated(rows: Iterable[Any]) -> Stated:
            return {row.topic_id: (row.topic_name, frozenset(row.partitions)) for row in rows}

        self.starting = {} if value is None else stated(value.initializing_topics)
        self.started = {} if value is None else stated(value.initialized_topics)
        self.deleting = {} if value is None else {row.topic_id: row.topic_name for row in value.deleting_topics}

    # Descriptions

    def described(self) -> Any:
        """The entry of ShareGroupDescribe."""
        response = messages.ShareGroupDescribeResponse

        def described(member: ShareMember) -> Any:
            rows = rows_of(response.TopicPartitions, member.assigned)
            for row in rows:
                row.topic_name = self.topics.name_of(row.topic_id) or ""
            return response.Member(
                member_id=member.id, rack_id=member.rack, member_epoch=member.epoch, client_id=member.client_id,
                client_host=member.client_host, subscribed_topic_names=list(member.topics),
                assignment=response.Assignment(topic_partitions=[row for row in rows if row.topic_name]),
            )  # fmt: skip

        return response.DescribedGroup(
            group_id=self.name, group_state=self.state, group_epoch=self.epoch,
            assignment_epoch=self.assignment_epoch, assignor_name="simple",
            members=[described(member) for _, member in sorted(self.members.items())],
        )  # fmt: skip


_CHANGES: dict[str, Callable[[ShareGroup, Any, Any], None]] = {
    "ShareGroupMetadataKey": ShareGroup._on_epoch,
    "ShareGroupMemberMetadataKey": ShareGroup._on_member,
    "ShareGroupTargetAssignmentMetadataKey": ShareGroup._on_target_epoch,
    "ShareGroupTargetAssignmentMemberKey": ShareGroup._on_target,
    "ShareGroupCurrentMemberAssignmentKey": ShareGroup._on_assignment,
    "ShareGroupStatePartitionMetadataKey": ShareGroup._on_states,
}
"""Functions that apply each record, by the name of its key."""

SHARE_RECORDS = frozenset(_CHANGES)
"""The names of the keys of its records."""
