"""The arithmetic of dividing partitions among members: ranges, and dealing in turn.

A strategy takes the partitions and the members, both in order, and returns a list of partitions for each member. Every
partition is assigned to exactly one member; a member without partitions gets an empty list.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

__all__ = ["STRATEGIES", "Strategy", "assign_range", "assign_round_robin", "deal", "even_ranges"]

P = TypeVar("P")
M = TypeVar("M")

Strategy = Callable[[Sequence[P], Sequence[M]], dict[M, list[P]]]


def assign_range(partitions: Sequence[P], members: Sequence[M]) -> dict[M, list[P]]:
    """Assigns ranges of consecutive partitions of equal size; the first ranges may be one larger.

    >>> assign_range([0, 1, 2, 3, 4], ["a", "b"])
    {'a': [0, 1, 2], 'b': [3, 4]}
    """
    shares = even_ranges(len(partitions), len(members))
    return {member: list(partitions[share.start : share.stop]) for member, share in zip(members, shares, strict=True)}


def even_ranges(total: int, shares: int) -> Iterator[range]:
    """Consecutive ranges of numbers from 0 to `total`, as many as `shares`; the first ones may be one larger."""
    size, larger = divmod(total, shares or 1)
    start = 0
    for n in range(shares):
        end = start + size + (n < larger)
        yield range(start, end)
        start = end


def assign_round_robin(partitions: Sequence[P], members: Sequence[M]) -> dict[M, list[P]]:
    """Assigns one partition to each member in turn.

    >>> assign_round_robin([0, 1, 2, 3, 4], ["a", "b"])
    {'a': [0, 2, 4], 'b': [1, 3]}
    """
    return deal([(partitions, members)], members)


def deal(topics: Iterable[tuple[Sequence[P], Sequence[M]]], members: Sequence[M]) -> dict[M, list[P]]:
    """Deals the partitions of several topics to members in turn, passing over those that do not want a topic.

    Args:
        topics: the partitions of each topic, and the members that want it in the order of `members`.
        members: all members.

    >>> deal([("ab", ["x", "y"]), ("c", ["x", "z"]), ("d", ["x", "y"])], ["x", "y", "z"])
    {'x': ['a', 'd'], 'y': ['b'], 'z': ['c']}
    """
    places = {member: place for place, member in enumerate(members)}
    dealt: dict[M, list[P]] = {member: [] for member in members}
    turn = 0
    for partitions, wanting in topics:
        if not partitions or not wanting:
            continue
        count = len(wanting)
        turns = [places[member] for member in wanting]
        first = bisect_left(turns, turn)
        for n, partition in enumerate(partitions, first):
            dealt[wanting[n % count]].append(partition)
        turn = (turns[(first + len(partitions) - 1) % count] + 1) % len(members)
    return dealt


STRATEGIES: dict[str, Strategy[int, str]] = {"round_robin": assign_round_robin, "range": assign_range}
