"""The assignors of Kafka's clients, by name; range and round-robin. Sources: RangeAssignor, RoundRobinAssignor."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import Final

from kafkacodec.client.groups.assignor import (
    Assignment,
    Assignor,
    MemberSubscription,
    RebalanceProtocol,
    in_member_order,
    subscribers,
)
from kafkacodec.client.groups.membership import TopicPartition
from kafkacodec.client.groups.sticky import CooperativeStickyAssignor, StickyAssignor

__all__ = ["ASSIGNORS", "RangeAssignor", "RoundRobinAssignor"]


class _WithoutMemory:
    """An assignor that needs to know nothing of former assignments."""

    supported_protocols: frozenset[RebalanceProtocol] = frozenset({"eager"})

    def user_data(self, topics: Iterable[str], owned: Iterable[TopicPartition], generation: int) -> bytes | None:
        """None."""
        return None


class RangeAssignor(_WithoutMemory):
    """Divides each topic into ranges, one per member; the first members get one more where it does not come out even.

    Members with the same subscription get the same numbers of every topic, which joins need. Racks are ignored.
    """

    name = "range"

    def assign(self, partitions: Mapping[str, int], subscriptions: Mapping[str, MemberSubscription]) -> Assignment:
        """Divide the partitions."""
        members = in_member_order(subscriptions)
        assigned: Assignment = {member: [] for member in members}
        for topic, wanting in subscribers(partitions, subscriptions, members).items():
            size, larger = divmod(partitions[topic], len(wanting))
            start = 0
            for n, member in enumerate(wanting):
                end = start + size + (n < larger)
                assigned[member] += [TopicPartition(topic, number) for number in range(start, end)]
                start = end
        return assigned


class RoundRobinAssignor(_WithoutMemory):
    """Deals the partitions of all topics to the members in turn, passing over members that do not want the topic."""

    name = "roundrobin"

    def assign(self, partitions: Mapping[str, int], subscriptions: Mapping[str, MemberSubscription]) -> Assignment:
        """Divide the partitions."""
        members = in_member_order(subscriptions)
        places = {member: place for place, member in enumerate(members)}
        assigned: Assignment = {member: [] for member in members}
        turn = 0
        for topic, wanting in subscribers(partitions, subscriptions, members).items():
            turns = [places[member] for member in wanting]
            for number in range(partitions[topic]):
                turn = turns[bisect_left(turns, turn) % len(turns)]
                assigned[members[turn]].append(TopicPartition(topic, number))
                turn = (turn + 1) % len(members)
        return assigned


ASSIGNORS: Final[Mapping[str, type[Assignor]]] = {
    made.name: made for made in (RangeAssignor, RoundRobinAssignor, StickyAssignor, CooperativeStickyAssignor)
}
"""The classes of the assignors by name, for ``partition_assignment_strategy``."""
