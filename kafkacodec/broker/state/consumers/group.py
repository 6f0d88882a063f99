"""A group of the consumer protocol: its members, epochs, targets, and its records (KIP-848).

The group's epoch rises with every change of members, subscriptions or topics. The coordinator then computes a new
target, and each member moves to its part of it with its heartbeats. All state is records: a decision makes records, and
the state changes only when they are in the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from kafkacodec import messages
from kafkacodec.assignment.assignor import MemberSubscription
from kafkacodec.broker.state.consumers.member import ConsumerMember, Places, new_targets, places_of, rows_of
from kafkacodec.broker.state.epoch_group import EpochGroup, tombstones
from kafkacodec.broker.state.machine import Room, Topics
from kafkacodec.broker.state.targets import TARGETS, UNIFORM, topics_hash
from kafkacodec.datatypes import dataclass, field
from kafkacodec.errors import ILLEGAL_GENERATION, NONE, STALE_MEMBER_EPOCH, UNKNOWN_MEMBER_ID, UNSUPPORTED_VERSION
from kafkacodec.messages.stored import StoredRecord
from kafkacodec.patterns import whole_matcher

__all__ = ["NEW_EPOCH", "RECORDS", "ConsumerGroup"]

NEW_EPOCH: Final = 1

_OFFSETS_WITH_EPOCHS = 9  # OffsetCommit: members of this protocol use it


@dataclass(slots=True)
class ConsumerGroup(EpochGroup[ConsumerMember]):
    """The state of a group, from its records."""

    room: Room
    topics: Topics
    epoch: int = NEW_EPOCH
    hash: int = 0  # of the topics that members subscribe to
    assignment_epoch: int = NEW_EPOCH
    assigned_at: int = 0  # when the targets were computed; 0 if a member should not wait for the next ones
    members: dict[str, ConsumerMember] = field(default_factory=dict)
    target: dict[str, Places] = field(default_factory=dict)
    patterns: dict[str, tuple[str, ...]] = field(default_factory=dict)  # the topics of each regular expression
    resolved_at: int = -1  # the version of the cluster's topics that those were found in
    checked_at: int = -1  # and that in which the hash was right

    kind = "consumer"
    protocol_type = "consumer"

    @property
    def name(self) -> str:
        """The id of the group."""
        return self.room.key

    @property
    def state(self) -> str:
        """Empty, Assigning, Reconciling or Stable."""
        if not self.members:
            return "Empty"
        if self.epoch > self.assignment_epoch:
            return "Assigning"
        settled = all(member.settled(self.assignment_epoch) for member in self.members.values())
        return "Stable" if settled else "Reconciling"

    def start(self) -> None:
        """Do nothing: the calls set its timers."""

    def heard_from(self, member_id: str) -> None:
        """Commits do not count as heartbeats."""

    # Decisions

    def unresolved(self) -> bool:
        """Whether a member has a regular expression whose topics are not known yet."""
        return any(member.pattern and member.pattern not in self.patterns for member in self.members.values())

    def resolved(self, pattern: str) -> tuple[str, ...]:
        """The topics of a regular expression."""
        matches = whole_matcher(pattern)
        return tuple(sorted(name for name in self.topics.names() if matches(name)))

    def subscriptions(
        self, members: Mapping[str, ConsumerMember], patterns: Mapping[str, tuple[str, ...]]
    ) -> dict[str, MemberSubscription]:
        """Return the topics of each member."""
        return {
            member.id: MemberSubscription(
                tuple(dict.fromkeys([*member.topics, *patterns.get(member.pattern, ())])),
                group_instance_id=member.instance,
            )
            for member in members.values()
        }

    def counts(self, subscriptions: Mapping[str, MemberSubscription]) -> dict[str, int]:
        """Return the number of partitions of each existing topic with a subscriber."""
        names = {name for each in subscriptions.values() for name in each.topics}
        return {name: count for name in sorted(names) if (count := self.topics.partitions(name))}

    def hash_of(self, counts: Mapping[str, int]) -> int:
        """Return a number that changes with the topics; 0 for none."""
        return topics_hash(self.topics, counts)

    def assignor(self, members: Iterable[ConsumerMember]) -> str:
        """Return the assignor that most members name."""
        votes: dict[str, int] = {}
        for member in members:
            if member.assignor is not None:
                votes[member.assignor] = votes.get(member.assignor, 0) + 1
        return max(votes, key=votes.__getitem__) if votes else UNIFORM

    def targets(
        self,
        members: Mapping[str, ConsumerMember],
        before: Mapping[str, Places],
        counts: Mapping[str, int],
        subscriptions: Mapping[str, MemberSubscription],
    ) -> dict[str, Places]:
        """Return each member's target."""
        ids = {name: self.topics.id_of(name) for name in counts}
        names = {topic_id: name for name, topic_id in ids.items()}
        had = {m: {(names[t], n) for t, n in places if t in names} for m, places in before.items()}
        divided = TARGETS[self.assignor(members.values())](counts, subscriptions, had)
        return {
            member: frozenset((topic_id, n) for name, n in places if (topic_id := ids[name]) is not None)
            for member, places in divided.items()
        }

    # Committed offsets

    def commit_refusal(self, request: Any, version: int, *, transactional: bool) -> int:
        """Why the group does not take a commit; 0 if it does."""
        member_id, epoch = request.member_id, request.generation_id_or_member_epoch
        if epoch < 0 and not self.members:
            return NONE
        if transactional and epoch < 0 and not member_id and request.group_instance_id is None:
            return NONE
        member = self.members.get(member_id)
        if member is None:
            return UNKNOWN_MEMBER_ID
        if member.classic is not None:
            return NONE if epoch == member.epoch else ILLEGAL_GENERATION
        if not transactional and version < _OFFSETS_WITH_EPOCHS:
            return UNSUPPORTED_VERSION
        return NONE if epoch == member.epoch else STALE_MEMBER_EPOCH

    def subscribes(self) -> Callable[[str], bool]:
        """Whether a member subscribes to a topic."""
        subscriptions = self.subscriptions(self.members, self.patterns).values()
        return {topic for each in subscriptions for topic in each.topics}.__contains__

    # Records

    def epoch_record(self, epoch: int, hash_: int) -> StoredRecord:
        """The epoch of the group."""
        key = messages.ConsumerGroupMetadataKey(group_id=self.name)
        return StoredRecord(key, messages.ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=hash_), 0)

    def pattern_record(self, pattern: str, names: tuple[str, ...] | None) -> StoredRecord:
        """Return the record of a regular expression's topics; None if no member uses it."""
        key = messages.ConsumerGroupRegularExpressionKey(group_id=self.name, regular_expression=pattern)
        if names is None:
            return StoredRecord(key, None, None)
        value = messages.ConsumerGroupRegularExpressionValue(topics=list(names), timestamp=self.room.now)
        return StoredRecord(key, value, 0)

    def target_records(self, targets: Mapping[str, Places], epoch: int, at: int) -> list[StoredRecord]:
        """Return the records of changed targets, and of their epoch and time."""
        key, value = messages.ConsumerGroupTargetAssignmentMemberKey, messages.ConsumerGroupTargetAssignmentMemberValue
        records = new_targets(key, value, self.name, targets, self.target)
        done = messages.ConsumerGroupTargetAssignmentMetadataKey(group_id=self.name)
        since = messages.ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=at)
        return [*records, StoredRecord(done, since, 0)]

    def tombstones(self) -> list[StoredRecord]:
        """Return the records that remove the group."""
        members = [record for member in self.members.values() for record in member.tombstones(self.name)]
        patterns = [self.pattern_record(pattern, None) for pattern in self.patterns]
        keys = (messages.ConsumerGroupTargetAssignmentMetadataKey, messages.ConsumerGroupMetadataKey)
        return [*members, *patterns, *tombstones(keys, group_id=self.name)]

    def apply(self, key: Any, value: Any) -> None:
        """Change the state as a record says."""
        _CHANGES[type(key).__name__](self, key, value)

    def _on_epoch(self, key: Any, value: Any) -> None:
        self.epoch, self.hash = value.epoch, value.metadata_hash

    def _on_target_epoch(self, key: Any, value: Any) -> None:
        self.assignment_epoch = -1 if value is None else value.assignment_epoch
        self.assigned_at = 0 if value is None else value.assignment_timestamp

    def _on_target(self, key: Any, value: Any) -> None:
        self.target.pop(key.member_id, None)
        if value is not None:
            self.target[key.member_id] = places_of(value.topic_partitions)

    def _on_member(self, key: Any, value: Any) -> None:
        if value is None:
            self.members.pop(key.member_id, None)
        else:
            member = self.members.get(key.member_id) or ConsumerMember(key.member_id)
            self.members[key.member_id] = member.with_metadata(value)

    def _on_assignment(self, key: Any, value: Any) -> None:
        member = self.members.get(key.member_id)
        if member is not None or value is not None:
            member = member or ConsumerMember(key.member_id)
            self.members[key.member_id] = member.with_assignment(value)

    def _on_pattern(self, key: Any, value: Any) -> None:
        self.patterns.pop(key.regular_expression, None)
        if value is not None:
            self.patterns[key.regular_expression] = tuple(value.topics)

    # Descriptions

    def described(self) -> Any:
        """The entry of ConsumerGroupDescribe."""
        group = messages.ConsumerGroupDescribeResponse.DescribedGroup
        members = [self._described(member) for _, member in sorted(self.members.items())]
        return group(
            group_id=self.name,
            group_state=self.state,
            group_epoch=self.epoch,
            assignment_epoch=self.assignment_epoch,
            assignor_name=self.assignor(self.members.values()),
            members=members,
        )

    def _described(self, member: ConsumerMember) -> Any:
        response = messages.ConsumerGroupDescribeResponse

        def assignment(places: Places) -> Any:
            rows = rows_of(response.TopicPartitions, places)
            for row in rows:
                row.topic_name = self.topics.name_of(row.topic_id) or ""
            return response.Assignment(topic_partitions=[row for row in rows if row.topic_name])

        return response.Member(
            member_id=member.id,
            instance_id=member.instance,
            rack_id=member.rack,
            member_epoch=member.epoch,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=list(member.topics),
            subscribed_topic_regex=member.pattern,
            assignment=assignment(member.assigned | member.revoking),
            target_assignment=assignment(self.target.get(member.id, frozenset())),
            member_type=0 if member.classic is not None else 1,
        )


_CHANGES: dict[str, Callable[[ConsumerGroup, Any, Any], None]] = {
    "ConsumerGroupMetadataKey": ConsumerGroup._on_epoch,
    "ConsumerGroupMemberMetadataKey": ConsumerGroup._on_member,
    "ConsumerGroupTargetAssignmentMetadataKey": ConsumerGroup._on_target_epoch,
    "ConsumerGroupTargetAssignmentMemberKey": ConsumerGroup._on_target,
    "ConsumerGroupCurrentMemberAssignmentKey": ConsumerGroup._on_assignment,
    "ConsumerGroupRegularExpressionKey": ConsumerGroup._on_pattern,
}
"""Functions that apply each record, by the name of its key."""

RECORDS = frozenset(_CHANGES)
"""The names of the keys of its records."""
