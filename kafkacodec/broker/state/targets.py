"""The broker's assignors for groups of the consumer protocol (KIP-848)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Set
from typing import Final

from kafkacodec.assignment.assignor import MemberSubscription, in_member_order, subscribers
from kafkacodec.assignment.assignors import RangeAssignor
from kafkacodec.assignment.levelling import level
from kafkacodec.assignment.partitions import TopicPartition, in_order
from kafkacodec.assignment.sticky import fill_equally
from kafkacodec.broker.state.machine import Topics

__all__ = ["TARGETS", "UNIFORM", "Divide", "topics_hash"]

UNIFORM: Final = "uniform"

Divide = Callable[
    [Mapping[str, int], Mapping[str, MemberSubscription], Mapping[str, Set[tuple[str, int]]]],
    dict[str, list[TopicPartition]],
]
"""Takes the number of partitions of each topic, the members' subscriptions, and what each had; returns what each is to
have."""


def _uniform(
    partitions: Mapping[str, int],
    subscriptions: Mapping[str, MemberSubscription],
    before: Mapping[str, Set[tuple[str, int]]],
) -> dict[str, list[TopicPartition]]:
    """Assign equally many partitions to each member; members keep their partitions as far as that allows."""
    members = in_member_order(subscriptions)
    wanting = subscribers(partitions, subscriptions, members)
    kept = {
        member: [
            place
            for place in in_order(before.get(member, ()))
            if member in wanting.get(place.topic, ()) and place.partition < partitions[place.topic]
        ]
        for member in members
    }
    if all(len(each) == len(members) for each in wanting.values()):
        return fill_equally({topic: partitions[topic] for topic in wanting}, kept)
    return level(partitions, wanting, kept)


def _range(
    partitions: Mapping[str, int],
    subscriptions: Mapping[str, MemberSubscription],
    before: Mapping[str, Set[tuple[str, int]]],
) -> dict[str, list[TopicPartition]]:
    """Ranges of each topic by member id; what members had does not matter."""
    return RangeAssignor().assign(partitions, subscriptions)


TARGETS: Final[Mapping[str, Divide]] = {UNIFORM: _uniform, "range": _range}
"""The assignors by name; the first is for groups whose members name none."""


def topics_hash(topics: Topics, counts: Mapping[str, int]) -> int:
    """Return a number that changes with the topics of a group and their partitions; 0 for none."""
    text = "".join(f"{name}\0{topics.id_of(name)}\0{count}\0" for name, count in counts.items())
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True) if counts else 0
