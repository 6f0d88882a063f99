"""The range and round-robin assignors, and all assignors by name. Sources: RangeAssignor, RoundRobinAssignor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import repeat
from typing import Final

from kafkacodec.assignment.assignor import (
    Assignment,
    Assignor,
    MemberSubscription,
    RebalanceProtocol,
    in_member_order,
    subscribers,
)
from kafkacodec.assignment.dividing import deal, even_ranges
from kafkacodec.assignment.partitions import TopicPartition
from kafkacodec.assignment.sticky import CooperativeStickyAssignor, StickyAssignor

__all__ = ["ASSIGNORS", "RangeAssignor", "RoundRobinAssignor"]


class _WithoutMemory:
    """An assignor that does not depend on earlier assignments."""

    supported_protocols: frozenset[RebalanceProtocol] = frozenset({"eager"})

    def user_data(self, topics: Iterable[str], owned: Iterable[TopicPartition], generation: int) -> bytes | None:
        """None."""
        return None


class RangeAssignor(_WithoutMemory):
    """Divides each topic into ranges, one per member; the first members get one more if the numbers are uneven.

    Members with equal subscriptions get the same partition numbers of every topic, as joins need. Racks are ignored.
    """

    name = "range"

    def assign(self, partitions: Mapping[str, int], subscriptions: Mapping[str, MemberSubscription]) -> Assignment:
        """Divide the partitions."""
        members = in_member_order(subscriptions)
        assigned: Assignment = {member: [] for member in members}
        for topic, wanting in subscribers(partitions, subscriptions, members).items():
            for member, numbers in zip(wanting, even_ranges(partitions[topic], len(wanting)), strict=True):
                assigned[member].extend(map(TopicPartition, repeat(topic), numbers))
        return assigned


class RoundRobinAssignor(_WithoutMemory):
    """Deals the partitions of all topics to the members in turn, passing over members that do not want the topic."""

    name = "roundrobin"

    def assign(self, partitions: Mapping[str, int], subscriptions: Mapping[str, MemberSubscription]) -> Assignment:
        """Divide the partitions."""
        members = in_member_order(subscriptions)
        topics = subscribers(partitions, subscriptions, members).items()
        return deal(
            (([TopicPartition(topic, n) for n in range(partitions[topic])], wanting) for topic, wanting in topics),
            members,
        )


ASSIGNORS: Final[Mapping[str, type[Assignor]]] = {
    made.name: made for made in (RangeAssignor, RoundRobinAssignor, StickyAssignor, CooperativeStickyAssignor)
}
"""The classes of the assignors by name, for ``partition_assignment_strategy``."""
