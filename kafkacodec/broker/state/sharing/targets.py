"""Assignment of partitions in a share group (KIP-932): several members may share one, and all get equally many."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence, Set

from kafkacodec.broker.state.consumers.member import Places

__all__ = ["share_targets"]

Place = tuple[uuid.UUID, int]


def share_targets(
    places: Sequence[Place], wanting: Mapping[str, Set[uuid.UUID]], before: Mapping[str, Places]
) -> dict[str, Places]:
    """Return each member's target.

    Each partition belongs to as many members as are needed to give every member one. Members keep their partitions as
    far as everyone gets equally many.

    Args:
        places: the partitions.
        wanting: the topics that each member subscribes to.
        before: the previous targets.
    """
    found: dict[str, set[Place]] = {member: set() for member in sorted(wanting)}
    groups: dict[frozenset[str], list[Place]] = {}  # partitions that the same members want
    readers: dict[uuid.UUID, frozenset[str]] = {}
    for place in places:
        if place[0] not in readers:
            readers[place[0]] = frozenset(member for member, topics in wanting.items() if place[0] in topics)
        groups.setdefault(readers[place[0]], []).append(place)
    for members, here in groups.items():
        if members:
            _divide(sorted(here), sorted(members), before, found)
    return {member: frozenset(had) for member, had in found.items()}


def _divide(
    places: list[Place], members: list[str], before: Mapping[str, Places], found: dict[str, set[Place]]
) -> None:
    """Assign partitions to members that all subscribe to all of them."""
    readers = -(-len(members) // len(places))  # of each partition
    least, more = divmod(len(places) * readers, len(members))  # for each member; so many get one more
    left = dict.fromkeys(places, readers)
    given = dict.fromkeys(members, 0)
    for member in members:
        for place in sorted(before.get(member, ())):
            if left.get(place, 0) and given[member] < least + (more > 0):
                more -= given[member] == least
                found[member].add(place)
                left[place] -= 1
                given[member] += 1
    waiting = [place for place in places for _ in range(left[place])]
    for place in waiting:
        member = min((place in found[each], given[each], each) for each in members)[2]
        found[member].add(place)
        given[member] += 1
