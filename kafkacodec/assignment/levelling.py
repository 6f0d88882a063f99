"""Assignment to members with different topics: the member with most gives to the one with least, topic by topic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heappush
from typing import TypeAlias

from kafkacodec.assignment.partitions import TopicPartition

__all__ = ["level"]

_Heap: TypeAlias = list[tuple[int, int]]


def level(
    partitions: Mapping[str, int], wanting: Mapping[str, list[str]], kept: Mapping[str, list[TopicPartition]]
) -> dict[str, list[TopicPartition]]:
    """Compute an assignment that no single move can make more even.

    Args:
        partitions: the number of partitions of each topic.
        wanting: the members that want each topic.
        kept: the partitions that each member had and may keep; the order of members breaks ties.
    """
    levels = _Levels(kept)
    # Topics that few members want come first, as their partitions have the fewest possible owners.
    topics = sorted(wanting, key=lambda topic: (len(wanting[topic]), topic))
    for topic in topics:
        levels.fill(topic, partitions[topic], wanting[topic])
    # A pass moves partitions within each topic; more passes are needed if moves in one topic make room in another.
    for _ in range(2 + len(kept)):
        if not sum(levels.move(topic, wanting[topic]) for topic in topics):
            break
    return levels.assigned()


class _Levels:
    """The partitions of each member by topic, and their counts. Members are numbers."""

    def __init__(self, kept: Mapping[str, list[TopicPartition]]) -> None:
        self._members = list(kept)
        self._number = {member: n for n, member in enumerate(self._members)}
        self._load = [len(places) for places in kept.values()]
        self._held: dict[str, dict[int, list[int]]] = {}
        for member, places in kept.items():
            for topic, number in places:
                self._held.setdefault(topic, {}).setdefault(self._number[member], []).append(number)

    def fill(self, topic: str, count: int, wanting: Iterable[str]) -> None:
        """Give unassigned partitions to the members with the fewest."""
        held = self._held.setdefault(topic, {})
        taken = {number for numbers in held.values() for number in numbers}
        heap = self._heap(wanting, 1)
        for number in range(count):
            if number not in taken:
                load, member = heappop(heap)
                held.setdefault(member, []).append(number)
                self._load[member] += 1
                heappush(heap, (load + 1, member))

    def move(self, topic: str, wanting: Iterable[str]) -> int:
        """Move partitions of a topic from the members with most to those with fewest; returns how many."""
        held = self._held[topic]
        takers = self._heap(wanting, 1)
        givers = self._heap((self._members[n] for n, numbers in held.items() if numbers), -1)
        moved = 0
        while True:
            giver, taker = self._top(givers, -1, held), self._top(takers, 1)
            if giver is None or taker is None or self._load[giver] - self._load[taker] < 2:
                return moved
            # The last one given moves first: it is the least likely to be with its previous owner.
            held.setdefault(taker, []).append(held[giver].pop())
            moved += 1
            for member, change in ((giver, -1), (taker, 1)):
                self._load[member] += change
                heappush(takers, (self._load[member], member))
                heappush(givers, (-self._load[member], member))

    def assigned(self) -> dict[str, list[TopicPartition]]:
        """The result by member."""
        found: dict[str, list[TopicPartition]] = {member: [] for member in self._members}
        for topic, held in self._held.items():
            for member, numbers in held.items():
                found[self._members[member]] += [TopicPartition(topic, number) for number in numbers]
        return found

    def _heap(self, members: Iterable[str], sign: int) -> _Heap:
        heap = [(sign * self._load[self._number[member]], self._number[member]) for member in members]
        heapify(heap)
        return heap

    def _top(self, heap: _Heap, sign: int, held: Mapping[int, list[int]] | None = None) -> int | None:
        """The first member of a heap whose entry is up to date, and that has something to give."""
        while heap:
            load, member = heap[0]
            if load == sign * self._load[member] and (held is None or held.get(member)):
                return member
            heappop(heap)
        return None
