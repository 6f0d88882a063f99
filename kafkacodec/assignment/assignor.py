"""What an assignor is: how the leader of a classic group divides the partitions among the members.

All members of a group must offer the same assignor; a membership may offer several, to change from one to another. An
own one is an object with the attributes and methods of `Assignor`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from kafkacodec.assignment.partitions import TopicPartition

__all__ = ["Assignment", "Assignor", "MemberSubscription", "RebalanceProtocol", "in_member_order", "subscribers"]

RebalanceProtocol = Literal["eager", "cooperative"]
"""Whether members give up everything before a rebalance, or only what moves after it (KIP-429)."""

Assignment: TypeAlias = dict[str, list[TopicPartition]]
"""The partitions of each member, by member id."""


@dataclass(frozen=True, slots=True)
class MemberSubscription:
    """What a member sent when it joined.

    Attributes:
        topics: what it subscribes to.
        owned: what it has; empty in eager groups.
        generation: of the rebalance in which it got that; -1 if unknown.
        user_data: from its assignor; untrusted bytes.
        group_instance_id: of a static member.
        rack_id: where it runs.
    """

    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...] = ()
    generation: int = -1
    user_data: bytes | None = None
    group_instance_id: str | None = None
    rack_id: str | None = None


class Assignor(Protocol):
    """An assignor.

    Attributes:
        name: under which members agree on it.
        supported_protocols: the rebalance protocols with which it works.
    """

    name: str
    supported_protocols: frozenset[RebalanceProtocol]

    def user_data(self, topics: Iterable[str], owned: Iterable[TopicPartition], generation: int) -> bytes | None:
        """Bytes for the leader's assignor: `owned` is the member's last assignment, of this generation."""

    def assign(self, partitions: Mapping[str, int], subscriptions: Mapping[str, MemberSubscription]) -> Assignment:
        """Divide the partitions; called in the leader.

        Args:
            partitions: the number of partitions of each topic; topics that do not exist are missing.
            subscriptions: by member id.

        Returns:
            The partitions of each member. In a cooperative rebalance it may move partitions freely: those that
            another member still has are withheld from the new owner until the next rebalance.
        """


def in_member_order(subscriptions: Mapping[str, MemberSubscription]) -> list[str]:
    """Member ids in the order in which Kafka's assignors serve them: static members first, by their instance id."""

    def key(member: str) -> tuple[bool, bytes]:
        instance = subscriptions[member].group_instance_id
        # Java compares texts by UTF-16 code units.
        return instance is None, (member if instance is None else instance).encode("utf-16-be", "surrogatepass")

    return sorted(subscriptions, key=key)


def subscribers(
    partitions: Mapping[str, int], subscriptions: Mapping[str, MemberSubscription], members: Iterable[str]
) -> dict[str, list[str]]:
    """The members that want each topic, in the order of `members`; topics in order."""
    found: dict[str, list[str]] = {}
    for member in members:
        for topic in set(subscriptions[member].topics):
            if topic in partitions:
                found.setdefault(topic, []).append(member)
    return dict(sorted(found.items()))
