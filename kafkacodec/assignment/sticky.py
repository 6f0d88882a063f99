"""The sticky assignors: balanced, and members keep their partitions as far as balance allows (KIP-54, KIP-429)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from kafkacodec.assignment.assignor import (
    Assignment,
    MemberSubscription,
    RebalanceProtocol,
    in_member_order,
    subscribers,
)
from kafkacodec.assignment.levelling import level
from kafkacodec.assignment.partitions import TopicPartition, in_order
from kafkacodec.errors import DecodeError
from kafkacodec.messages.consumer_protocol import StickyUserData, decode_sticky_user_data, encode_sticky_user_data

__all__ = ["CooperativeStickyAssignor", "StickyAssignor", "fill_equally", "withhold_moving"]

_Claim: TypeAlias = tuple[int, list[TopicPartition]]  # the generation, and the member's partitions in it


class _Sticky:
    def assign(self, partitions: Mapping[str, int], subscriptions: Mapping[str, MemberSubscription]) -> Assignment:
        """Divide the partitions."""
        members = in_member_order(subscriptions)
        wanting = subscribers(partitions, subscriptions, members)
        claims = {member: self._claim(subscriptions[member]) for member in members}
        kept = _kept(partitions, subscriptions, claims)
        if all(len(each) == len(members) for each in wanting.values()):
            return fill_equally({topic: partitions[topic] for topic in wanting}, kept)
        return level(partitions, wanting, kept)

    def _claim(self, subscription: MemberSubscription) -> _Claim:
        raise NotImplementedError


class StickyAssignor(_Sticky):
    """Balanced and sticky, for eager rebalances: members remember their last assignment in ``user_data``."""

    name = "sticky"
    supported_protocols: frozenset[RebalanceProtocol] = frozenset({"eager"})

    def user_data(self, topics: Iterable[str], owned: Iterable[TopicPartition], generation: int) -> bytes | None:
        """The last assignment and its generation; None before the first."""
        if generation < 0:
            return None
        previous: dict[str, list[int]] = {}
        for topic, number in in_order(owned):
            previous.setdefault(topic, []).append(number)
        return encode_sticky_user_data(StickyUserData(generation, previous))

    def _claim(self, subscription: MemberSubscription) -> _Claim:
        found = _remembered(subscription, cooperative=False)
        topics = found.previous_assignment.items()
        return found.generation, [TopicPartition(topic, number) for topic, numbers in topics for number in numbers]


class CooperativeStickyAssignor(_Sticky):
    """Balanced and sticky, for rebalances in which members keep reading the partitions that they keep."""

    name = "cooperative-sticky"
    supported_protocols: frozenset[RebalanceProtocol] = frozenset({"cooperative", "eager"})

    def user_data(self, topics: Iterable[str], owned: Iterable[TopicPartition], generation: int) -> bytes | None:
        """The generation."""
        return encode_sticky_user_data(StickyUserData(generation, {}), cooperative=True)

    def _claim(self, subscription: MemberSubscription) -> _Claim:
        generation = subscription.generation
        if generation < 0:
            generation = _remembered(subscription, cooperative=True).generation
        return generation, list(subscription.owned)


def _remembered(subscription: MemberSubscription, *, cooperative: bool) -> StickyUserData:
    """The data sent by the member's assignor; empty if it cannot be decoded, as in Kafka."""
    try:
        return decode_sticky_user_data(subscription.user_data or b"", cooperative=cooperative)
    except DecodeError:
        return StickyUserData(-1, {})


def _kept(
    partitions: Mapping[str, int], subscriptions: Mapping[str, MemberSubscription], claims: Mapping[str, _Claim]
) -> Assignment:
    """The partitions that members had and may keep. The latest generation wins; equal claims cancel each other."""
    owner: dict[TopicPartition, tuple[int, str | None]] = {}
    for member, (generation, claimed) in claims.items():
        topics = set(subscriptions[member].topics)
        for place in dict.fromkeys(claimed):
            if place.topic not in topics or not 0 <= place.partition < partitions.get(place.topic, 0):
                continue
            latest = owner.get(place, (-2, None))[0]
            if generation > latest:
                owner[place] = generation, member
            elif generation == latest:
                owner[place] = generation, None
    kept: Assignment = {member: [] for member in claims}
    for place, (_, holder) in owner.items():
        if holder is not None:
            kept[holder].append(place)
    return kept


def fill_equally(partitions: Mapping[str, int], kept: Assignment) -> Assignment:
    """Assign to members with equal subscriptions: each keeps up to its share, and the rest is dealt in turn."""
    everything = [TopicPartition(topic, number) for topic, count in partitions.items() for number in range(count)]
    share, larger = divmod(len(everything), len(kept))
    assigned: Assignment = {}
    for member, places in kept.items():
        more = larger > 0 and len(places) > share
        larger -= more
        assigned[member] = places[: share + more]
    taken = {place for places in assigned.values() for place in places}
    below = deque(member for member, places in assigned.items() if len(places) < share)
    even = [member for member, places in assigned.items() if len(places) == share]
    for place in everything:
        if place in taken:
            continue
        if not below:
            below.extend(even)  # each gets at most one: at most `larger` are left
            even = []
        member = below.popleft()
        assigned[member].append(place)
        if len(assigned[member]) < share:
            below.append(member)
        elif len(assigned[member]) == share:
            even.append(member)
    return assigned


def withhold_moving(assigned: Assignment, subscriptions: Mapping[str, MemberSubscription]) -> Assignment:
    """An assignment without the partitions that another member still owns (KIP-429).

    The present owners see that they are missing, give them up and rejoin; then they are assigned.
    """
    owner: dict[TopicPartition, tuple[int, str]] = {}
    for member, subscription in subscriptions.items():
        for place in subscription.owned:
            if place not in owner or owner[place][0] < subscription.generation:
                owner[place] = subscription.generation, member
    return {
        member: [place for place in places if owner.get(place, (-1, member))[1] == member]
        for member, places in assigned.items()
    }
