"""The leader's part in the rebalance of a classic group: assigning the partitions of all members' topics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kafkacodec import messages
from kafkacodec.assignment.assignor import Assignment, Assignor, MemberSubscription
from kafkacodec.assignment.partitions import TopicPartition, in_order
from kafkacodec.assignment.sticky import withhold_moving
from kafkacodec.client.groups.topics import SubscribedTopics
from kafkacodec.errors import DecodeError, LocalProtocolError
from kafkacodec.messages.consumer_protocol import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)

__all__ = ["Leadership", "assignments", "grouped", "partitions_of", "read_members", "subscription_bytes"]


class Leadership:
    """The leader's state of the group, from one JoinGroup to the next.

    Args:
        entries: the members of the JoinGroup response.
        topics: has the metadata of all members' topics.

    Raises:
        DecodeError: a member's subscription cannot be read.
    """

    def __init__(self, entries: Iterable[Any], topics: SubscribedTopics) -> None:
        self._members = read_members(entries)
        self._wanted = {topic for member in self._members.values() for topic in member.topics}
        self._topics = topics
        topics.want_others(self._wanted)
        # As assigned; after the leader's restart the previous assignment stays (KIP-814).
        self._counts = topics.counts(self._wanted) if self.known else None

    @property
    def known(self) -> bool:
        """Whether the metadata has all topics of all members."""
        return self._topics.known(self._wanted)

    def assign(self, assignor: Assignor) -> dict[str, bytes]:
        """Return the bytes of SyncGroup for each member, from the current metadata; errors as in `assignments`."""
        self._counts = self._topics.counts(self._wanted)
        return assignments(assignor, self._counts, self._members)

    def outdated(self) -> bool:
        """Whether topics have more or fewer partitions than the assignment."""
        if self._counts is None:
            self._counts = self._topics.counts(self._wanted) if self.known else None
            return False
        return self._topics.counts(self._wanted) != self._counts


def read_members(entries: Iterable[Any]) -> dict[str, MemberSubscription]:
    """The members of a JoinGroup response by id.

    Raises:
        DecodeError: a subscription cannot be read; its path names the member.
    """
    found = {}
    for entry in entries:
        try:
            subscription = decode_subscription(entry.metadata)
        except DecodeError as error:
            raise error.within(f"subscription of member {entry.member_id!r}") from None
        found[entry.member_id] = MemberSubscription(
            tuple(subscription.topics),
            _places(subscription.owned_partitions),
            subscription.generation_id,
            None if subscription.user_data is None else bytes(subscription.user_data),
            entry.group_instance_id,
            subscription.rack_id,
        )
    return found


def subscription_bytes(subscription: MemberSubscription) -> bytes:
    """A member's subscription for JoinGroup, in the order in which Kafka's consumer writes it."""
    kind = messages.ConsumerProtocolSubscription
    return encode_subscription(
        kind(
            topics=sorted(subscription.topics),
            user_data=subscription.user_data,
            owned_partitions=[
                kind.TopicPartition(topic=topic, partitions=numbers)
                for topic, numbers in grouped(subscription.owned).items()
            ],
            generation_id=subscription.generation,
            rack_id=subscription.rack_id,
        )
    )


def assignments(
    assignor: Assignor, counts: Mapping[str, int], members: Mapping[str, MemberSubscription]
) -> dict[str, bytes]:
    """Return the bytes of SyncGroup for each member.

    Raises:
        LocalProtocolError: the assignor names a member or a partition that does not exist, or a partition twice.
    """
    assigned = assignor.assign(counts, members)
    _check(assignor.name, assigned, counts, members)
    if "cooperative" in assignor.supported_protocols:
        assigned = withhold_moving(assigned, members)
    kind = messages.ConsumerProtocolAssignment
    return {
        member: encode_assignment(
            kind(
                assigned_partitions=[
                    kind.TopicPartition(topic=topic, partitions=numbers)
                    for topic, numbers in grouped(assigned.get(member, ())).items()
                ]
            )
        )
        for member in members
    }


def partitions_of(data: Any) -> set[TopicPartition]:
    """The partitions in the assignment of a SyncGroup response. Raises DecodeError."""
    return set(_places(decode_assignment(data).assigned_partitions))


def grouped(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """The numbers of the partitions of each topic, in order."""
    found: dict[str, list[int]] = {}
    for topic, number in in_order(partitions):
        found.setdefault(topic, []).append(number)
    return found


def _places(topics: Iterable[Any]) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(topic.topic, number) for topic in topics for number in topic.partitions)


def _check(
    name: str, assigned: Assignment, counts: Mapping[str, int], members: Mapping[str, MemberSubscription]
) -> None:
    seen: set[TopicPartition] = set()
    for member, places in assigned.items():
        if member not in members:
            raise LocalProtocolError(f"assignor {name!r}: there is no member {member!r}")
        for place in places:
            topic, number = place
            if not 0 <= number < counts.get(topic, 0):
                raise LocalProtocolError(f"assignor {name!r}: there is no partition {number} of topic {topic!r}")
            if place in seen:
                raise LocalProtocolError(f"assignor {name!r}: partition {number} of topic {topic!r} is assigned twice")
            seen.add(place)
