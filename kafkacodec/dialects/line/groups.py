"""Consumer groups of the line protocol: members, generations, assignments, committed offsets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from kafkacodec.dialects.assignment import STRATEGIES
from kafkacodec.dialects.line.errors import ErrorCode
from kafkacodec.dialects.line.storage import Storage

__all__ = ["Group", "Groups", "Refused"]

NO_OFFSET = -1


class Refused(Exception):
    """A request that is well formed and still cannot be done; never leaves the broker."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True)
class Group:
    """A group's members and what each owns, in one generation; a change makes another `Group`.

    Attributes:
        generation (int): grows with every change of members or assignor.
        assignor (str): ``round_robin`` or ``range``.
        members (dict[str, int]): when each member was last heard of.
        assignments (dict[str, list[int]]): the partitions of each member.
    """

    generation: int = 0
    assignor: str = "round_robin"
    members: dict[str, int] = field(default_factory=dict)
    assignments: dict[str, list[int]] = field(default_factory=dict)

    def rebalanced(self, members: dict[str, int], partitions: int) -> Group:
        """The next generation, its members taken in string order."""
        assignments = STRATEGIES[self.assignor](range(partitions), sorted(members))
        return Group(self.generation + 1, self.assignor, members, assignments)

    def is_complete(self, partitions: int) -> bool:
        """Whether each partition has exactly one owner, where there is a member at all."""
        owned = sorted(p for assigned in self.assignments.values() for p in assigned)
        return self.assignments.keys() == self.members.keys() and (not self.members or owned == [*range(partitions)])


GroupKey = tuple[str, str]
OffsetKey = tuple[str, str, int]


class Groups:
    """All groups of a broker. A group name stands for one group per topic.

    A change is saved before it counts: where the storage raises, nothing has changed.

    Args:
        storage: where groups and offsets are kept.
        partitions_of: the number of partitions of a topic.
        session_timeout_ms: how long a member may be silent.
        max_groups, max_members: bounds on what requests can make this keep.
        now: when the members found in the storage were last heard of.
    """

    def __init__(
        self,
        storage: Storage,
        partitions_of: Callable[[str], int],
        *,
        session_timeout_ms: int,
        max_groups: int,
        max_members: int,
        now: int,
    ) -> None:
        self._storage = storage
        self._partitions_of = partitions_of
        self._session_timeout_ms = session_timeout_ms
        self._max_groups = max_groups
        self._max_members = max_members
        self._groups: dict[GroupKey, Group] = {}
        for row in storage.load_groups():
            members = dict.fromkeys(row["members"], now)
            group = Group(row["generation"], row["assignor"], members, row["assignments"])
            self._groups[row["group"], row["topic"]] = group
        self._offsets: dict[OffsetKey, int] = {
            (row["group"], row["topic"], row["partition"]): row["offset"] for row in storage.load_offsets()
        }
        for key, group in list(self._groups.items()):
            if not group.is_complete(partitions_of(key[1])):
                self._rebalance(key, group, group.members)

    def join(self, key: GroupKey, consumer_id: str, assignor: str | None, now: int) -> Group:
        """Add a member, or change the assignor; a member that is there and changes nothing only reports itself."""
        group = self._without_silent(key, now)
        if group is None:
            if len(self._groups) >= self._max_groups:
                raise Refused(ErrorCode.BAD_REQUEST, "too many groups")
            group = Group()
        assignor = assignor or group.assignor
        if consumer_id in group.members and assignor == group.assignor:
            group.members[consumer_id] = now
            return group
        if len(group.members) >= self._max_members and consumer_id not in group.members:
            raise Refused(ErrorCode.BAD_REQUEST, "too many members")
        return self._rebalance(key, replace(group, assignor=assignor), {**group.members, consumer_id: now})

    def check(self, key: GroupKey, consumer_id: str, generation: int, now: int) -> Group:
        """The group, where `consumer_id` is a member of this very generation; counts as a sign of life."""
        group = self._without_silent(key, now)
        if group is None or consumer_id not in group.members:
            raise Refused(ErrorCode.GENERATION_MISMATCH, "unknown member")
        if generation != group.generation:
            raise Refused(ErrorCode.GENERATION_MISMATCH, f"the group is at generation {group.generation}")
        group.members[consumer_id] = now
        return group

    def leave(self, key: GroupKey, consumer_id: str) -> None:
        """Take a member out and share its partitions among the others."""
        group = self._groups[key]
        self._rebalance(key, group, {m: seen for m, seen in group.members.items() if m != consumer_id})

    def expire(self, now: int) -> None:
        """Take out, in every group, the members not heard of for longer than the session timeout."""
        for key in list(self._groups):
            self._without_silent(key, now)

    def next_deadline(self) -> int | None:
        """When the next member would be taken for silent; None where there is no member."""
        seen = (when for group in self._groups.values() for when in group.members.values())
        return min((when + self._session_timeout_ms + 1 for when in seen), default=None)

    def commit(self, key: GroupKey, partition: int, offset: int) -> None:
        """Keep a committed offset, which must not be smaller than the one before."""
        before = self.committed(*key, partition)
        if offset < before:
            raise Refused(ErrorCode.BAD_REQUEST, f"offset {offset} is before the committed {before}")
        offsets = {**self._offsets, (*key, partition): offset}
        self._storage.save_offsets(
            [{"group": g, "topic": t, "partition": p, "offset": o} for (g, t, p), o in offsets.items()]
        )
        self._offsets = offsets

    def committed(self, group: str, topic: str, partition: int) -> int:
        """The committed offset, or -1."""
        return self._offsets.get((group, topic, partition), NO_OFFSET)

    def _without_silent(self, key: GroupKey, now: int) -> Group | None:
        group = self._groups.get(key)
        if group is None:
            return None
        members = {m: seen for m, seen in group.members.items() if now - seen <= self._session_timeout_ms}
        return group if len(members) == len(group.members) else self._rebalance(key, group, members)

    def _rebalance(self, key: GroupKey, group: Group, members: dict[str, int]) -> Group:
        group = group.rebalanced(members, self._partitions_of(key[1]))
        groups = {**self._groups, key: group}
        self._storage.save_groups([_row(k, g) for k, g in groups.items()])
        self._groups = groups
        return group


def _row(key: GroupKey, group: Group) -> dict[str, Any]:
    return {
        "group": key[0],
        "topic": key[1],
        "generation": group.generation,
        "assignor": group.assignor,
        "members": sorted(group.members),
        "assignments": group.assignments,
    }
