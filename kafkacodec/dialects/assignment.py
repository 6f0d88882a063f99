"""Assignment of a group's partitions to its members.

A strategy takes the partitions and the members, both in order, and returns a list of partitions for each member. Every
partition is assigned to exactly one member; a member without partitions gets an empty list.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

__all__ = ["STRATEGIES", "Strategy", "assign_range", "assign_round_robin"]

P = TypeVar("P")
M = TypeVar("M")

Strategy = Callable[[Sequence[P], Sequence[M]], dict[M, list[P]]]


def assign_range(partitions: Sequence[P], members: Sequence[M]) -> dict[M, list[P]]:
    """Assigns ranges of consecutive partitions of equal size; the first ranges may be one larger.

    >>> assign_range([0, 1, 2, 3, 4], ["a", "b"])
    {'a': [0, 1, 2], 'b': [3, 4]}
    """
    if not members:
        return {}
    size, larger = divmod(len(partitions), len(members))
    starts = [i * size + min(i, larger) for i in range(len(members) + 1)]
    return {m: list(partitions[starts[i] : starts[i + 1]]) for i, m in enumerate(members)}


def assign_round_robin(partitions: Sequence[P], members: Sequence[M]) -> dict[M, list[P]]:
    """Assigns one partition to each member in turn.

    >>> assign_round_robin([0, 1, 2, 3, 4], ["a", "b"])
    {'a': [0, 2, 4], 'b': [1, 3]}
    """
    return {m: list(partitions[i :: len(members)]) for i, m in enumerate(members)}


STRATEGIES: dict[str, Strategy[int, str]] = {"round_robin": assign_round_robin, "range": assign_range}
