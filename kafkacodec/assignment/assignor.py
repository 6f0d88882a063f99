"""The interface of assignors, by which the leader of a classic group divides partitions among its members.

All members of a group must offer the same assignor; a member may offer several, to migrate from one to another. A
custom assignor is an object with the attributes and methods of `Assignor`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, Protocol, TypeAlias

from kafkacodec.assignment.partitions import TopicPartition
from kafkacodec.datatypes import dataclass

__all__ = ["Assignment", "Assignor", "MemberSubscription", "RebalanceProtocol", "in_member_order", "subscribers"]

RebalanceProtocol = Literal["eager", "cooperative"]
"""Whether members give up all partitions before a rebalance, or only the moving ones after it (KIP-429)."""

Assignment: TypeAlias = dict[str, list[TopicPartition]]
"""The partitions of each member, by member id."""


@dataclass(frozen=True, slots=True)
class MemberSubscription:
    """The subscription that a member sent when it joined.

    Attributes:
        topics: the subscribed topics.
        owned: the partitions that it owns; empty in eager groups.
        generation: the generation in which it was assigned those; -1 if unknown.
        user_data: untrusted bytes from its assignor.
        group_instance_id: the id of a static member.
        rack_id: the rack where it runs.
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
        name: the name by which members agree on it.
        supported_protocols: the rebalance protocols that it works with.
    """

    name: str
    supported_protocols: frozenset[RebalanceProtocol]

    def user_data(self, topics: Iterable[str], owned: Iterable[TopicPartition], generation: int) -> bytes | None:
        """Bytes for the leader's assignor; `owned` is the member's last assignment, made in `generation`."""

    def assign(self, partitions: Mapping[str, int], subscriptions: Mapping[str, MemberSubscription]) -> Assignment:
        """Divide the partitions; called by the leader.

        Args:
            partitions: the number of partitions of each topic; topics that do not exist are missing.
            subscriptions: the subscriptions by member id.

        Returns:
            The partitions of each member. In a cooperative rebalance it may move partitions freely: those that
            another member still owns are withheld from the new owner until the next rebalance.
        """


def in_member_order(subscriptions: Mapping[str, MemberSubscription]) -> list[str]:
    """Member ids in the order in which Kafka's assignors serve them: static members first, by their instance id."""

    def key(member: str) -> tuple[bool, bytes]:
        instance = subscriptions[member].group_instance_id
        # Java compares strings by UTF-16 code units.
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
