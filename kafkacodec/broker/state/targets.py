"""The broker's assignors for groups of the consumer protocol (KIP-848)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Set
from itertools import islice
from typing import Final

from kafkacodec.assignment.assignor import MemberSubscription, in_member_order, subscribers
from kafkacodec.assignment.assignors import RangeAssignor
from kafkacodec.assignment.levelling import level
from kafkacodec.assignment.partitions import TopicPartition, in_order
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
        return _deal({topic: partitions[topic] for topic in wanting}, kept)
    return level(partitions, wanting, kept)


def _deal(partitions: Mapping[str, int], kept: Mapping[str, list[TopicPartition]]) -> dict[str, list[TopicPartition]]:
    """Assign to members with equal subscriptions: each in turn what it lacks of its share, first what nobody had."""
    had = {place for places in kept.values() for place in places}
    places = [TopicPartition(topic, number) for topic, count in partitions.items() for number in range(count)]
    share, larger = divmod(len(places), len(kept))
    quotas = {member: share + (at < larger) for at, member in enumerate(kept)}
    free = [place for place in places if place not in had]
    free += [place for member, places in kept.items() for place in places[quotas[member] :]]
    rest = iter(free)
    return {
        member: [*places[: quotas[member]], *islice(rest, max(0, quotas[member] - len(places)))]
        for member, places in kept.items()
    }


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
