"""Consumer groups of the line protocol: members, generations, assignments, committed offsets."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kafkacodec.assignment.dividing import STRATEGIES
from kafkacodec.datatypes import dataclass, field, replace
from kafkacodec.dialects.line.errors import ErrorCode
from kafkacodec.dialects.line.storage import Rows, Storage
from kafkacodec.errors import CorruptRecord, KafkaCodecError

__all__ = ["Group", "GroupLimits", "Groups", "Refused"]

NO_OFFSET = -1

# Delay before an expiry is retried after a failure of the storage.
RETRY_MS = 1_000


class Refused(Exception):
    """A well-formed request that the broker refuses; internal to the broker."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True)
class Group:
    """One generation of a group: its members and their partitions. A change makes another `Group`.

    Attributes:
        generation (int): increases with every change of members or assignor.
        assignor (str): ``round_robin`` or ``range``.
        members (dict[str, int]): the time of each member's last request.
        assignments (dict[str, list[int]]): the partitions of each member.
        changed_at (int): the time at which this generation started.
    """

    generation: int = 0
    assignor: str = "round_robin"
    members: dict[str, int] = field(default_factory=dict)
    assignments: dict[str, list[int]] = field(default_factory=dict)
    changed_at: int = 0

    def rebalanced(self, members: dict[str, int], partitions: int, now: int) -> Group:
        """The next generation, with the members in string order."""
        assignments = STRATEGIES[self.assignor](range(partitions), sorted(members))
        return Group(self.generation + 1, self.assignor, members, assignments, now)

    def is_complete(self, partitions: int) -> bool:
        """Whether each partition has exactly one owner, or there are no members."""
        owned = sorted(p for assigned in self.assignments.values() for p in assigned)
        return self.assignments.keys() == self.members.keys() and (not self.members or owned == [*range(partitions)])


GroupKey = tuple[str, str]
OffsetKey = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class GroupLimits:
    """Timeouts in milliseconds, and limits on memory.

    Attributes:
        session_timeout_ms: how long a member may be silent.
        retention_ms: how long a group without members and its offsets are kept.
        max_groups: the most groups with members, and the most groups with neither members nor offsets.
        max_members: the most members of a group.
        max_offsets: the most committed offsets.
    """

    session_timeout_ms: int
    retention_ms: int
    max_groups: int
    max_members: int
    max_offsets: int


class Groups:
    """All groups of a broker. There is one group for each pair of group name and topic.

    A change is saved before it takes effect: if the storage raises, nothing has changed. Silent members are not removed
    while the storage fails.

    Args:
        storage: keeps groups and offsets.
        partitions_of: returns the number of partitions of a topic.
        limits: see `GroupLimits`.
        now: the time from which the timeouts of the stored members and groups count.
        failed: called with exceptions of the storage outside requests, and with lost records.
        manages: whether the groups of a topic are this broker's; it only keeps others. None: all are.
    """

    def __init__(
        self,
        storage: Storage,
        partitions_of: Callable[[str], int],
        limits: GroupLimits,
        *,
        now: int,
        failed: Callable[[Exception], None],
        manages: Callable[[str], bool] | None = None,
    ) -> None:
        self._storage, self._manages = storage, manages
        self._partitions_of = partitions_of
        self._limits = limits
        self._failed = failed
        self._retry_at: int | None = None
        self._groups: dict[GroupKey, Group] = {}
        for row in storage.load_groups():
            self._groups[row["group"], row["topic"]] = _group(row, now)
        self._offsets: dict[OffsetKey, int] = {
            (row["group"], row["topic"], row["partition"]): row["offset"] for row in storage.load_offsets()
        }
        for group_name, topic, _ in self._offsets:
            self._groups.setdefault((group_name, topic), Group(changed_at=now))
        if manages is None:
            self._repair(now)

    def _repair(self, now: int) -> None:
        """Adjust the groups to the current partitions."""
        # An offset past the end of its partition would skip the next records.
        kept = {key: min(offset, self._storage.end(*key[1:])) for key, offset in self._offsets.items()}
        lowered = [key for key, offset in kept.items() if offset != self._offsets[key]]
        for name, topic, partition in lowered:
            reason = f"committed offset of group {name!r} past the end of {topic!r}-{partition} was lowered to it"
            self._failed(CorruptRecord(reason, path="offsets"))
        if lowered:
            self._save_offsets(kept)
        partial = {k: g for k, g in self._groups.items() if not g.is_complete(self._partitions_of(k[1]))}
        if partial:
            self._save({k: g.rebalanced(g.members, self._partitions_of(k[1]), now) for k, g in partial.items()})

    def join(self, key: GroupKey, consumer_id: str, assignor: str | None, now: int) -> Group:
        """Add a member, or return the group of an existing one.

        A member that names another assignor than the group's is refused, unless it is the only member.
        """
        group = self._without_silent(key, now) or Group(changed_at=now)
        if not group.members and sum(1 for g in self._groups.values() if g.members) >= self._limits.max_groups:
            raise Refused(ErrorCode.BAD_REQUEST, "too many groups")
        assignor = assignor or group.assignor
        if assignor != group.assignor and group.members.keys() - {consumer_id}:
            raise Refused(ErrorCode.BAD_REQUEST, f"the group's assignor is {group.assignor}")
        if consumer_id in group.members and assignor == group.assignor:
            group.members[consumer_id] = now
            return group
        if len(group.members) >= self._limits.max_members and consumer_id not in group.members:
            raise Refused(ErrorCode.BAD_REQUEST, "too many members")
        return self._rebalance(key, replace(group, assignor=assignor), {**group.members, consumer_id: now}, now)

    def check(self, key: GroupKey, consumer_id: str, generation: int, now: int) -> Group:
        """The group, if `consumer_id` is a member and `generation` the current one. Renews the member's session."""
        group = self._without_silent(key, now)
        if group is None or consumer_id not in group.members:
            raise Refused(ErrorCode.GENERATION_MISMATCH, "unknown member")
        if generation != group.generation:
            raise Refused(ErrorCode.GENERATION_MISMATCH, f"the group is at generation {group.generation}")
        group.members[consumer_id] = now
        return group

    def leave(self, key: GroupKey, consumer_id: str, now: int) -> None:
        """Remove a member and assign its partitions to the others."""
        group = self._groups[key]
        self._rebalance(key, group, {m: seen for m, seen in group.members.items() if m != consumer_id}, now)

    def expire(self, now: int) -> None:
        """Remove members whose session has timed out, and groups whose retention time is over."""
        if self._retry_at is None or now >= self._retry_at:
            self._expire(self._managed(), now)

    def next_deadline(self) -> int | None:
        """The time at which `expire` is needed next; None if there are no groups."""
        deadline = min((self._deadline(self._groups[key]) for key in self._managed()), default=None)
        return deadline if deadline is None or self._retry_at is None else max(deadline, self._retry_at)

    def commit(self, key: GroupKey, partition: int, offset: int) -> None:
        """Commit an offset, which must not be less than the committed one."""
        before = self.committed(*key, partition)
        if offset < before:
            raise Refused(ErrorCode.BAD_REQUEST, f"offset {offset} is less than the committed offset {before}")
        if before == NO_OFFSET and len(self._offsets) >= self._limits.max_offsets:
            raise Refused(ErrorCode.BAD_REQUEST, "too many committed offsets")
        self._save_offsets({**self._offsets, (*key, partition): offset})

    def committed(self, group: str, topic: str, partition: int) -> int:
        """The committed offset, or -1."""
        return self._offsets.get((group, topic, partition), NO_OFFSET)

    def take_over(self, topic: str, groups: Rows, offsets: Rows, now: int) -> None:
        """Have these groups and offsets of a topic, as another broker had them. Raises OSError: nothing has changed."""
        theirs = {(row["group"], topic): _group(row, now) for row in groups}
        gone = dict.fromkeys(key for key in self._groups if key[1] == topic)
        kept = {key: offset for key, offset in self._offsets.items() if key[1] != topic}
        self._save_offsets({**kept, **{(row["group"], topic, row["partition"]): row["offset"] for row in offsets}})
        self._save({**gone, **theirs})

    def renew(self, topic: str, now: int) -> None:
        """Restart the sessions of a topic's members, since this broker has not heard from them."""
        for key, group in self._groups.items():
            if key[1] == topic:
                group.members.update(dict.fromkeys(group.members, now))

    def _managed(self) -> Iterable[GroupKey]:
        manages = self._manages
        return self._groups if manages is None else [key for key in self._groups if manages(key[1])]

    def _deadline(self, group: Group) -> int:
        if not group.members:
            return group.changed_at + self._limits.retention_ms + 1
        return min(group.members.values()) + self._limits.session_timeout_ms + 1

    def _without_silent(self, key: GroupKey, now: int) -> Group | None:
        """The group without its silent members, unless the storage fails."""
        group = self._groups.get(key)
        if group is not None and group.members and self._deadline(group) <= now:
            if self._retry_at is None or now >= self._retry_at:
                self._expire([key], now)
            group = self._groups.get(key)
        return group

    def _expire(self, keys: Iterable[GroupKey], now: int) -> None:
        """Expire due members and groups in one write; retry later if the storage fails."""
        due = {k: self._groups[k] for k in keys if self._deadline(self._groups[k]) <= now}
        if not due:
            return
        changes: dict[GroupKey, Group | None] = dict.fromkeys(due)
        for key, group in due.items():
            if group.members:
                oldest = now - self._limits.session_timeout_ms
                members = {m: seen for m, seen in group.members.items() if seen >= oldest}
                changes[key] = group.rebalanced(members, self._partitions_of(key[1]), now)
        try:
            gone = {key for key, group in changes.items() if group is None}
            kept = {k: offset for k, offset in self._offsets.items() if k[:2] not in gone}
            if len(kept) < len(self._offsets):
                self._save_offsets(kept)
            self._save(changes)
            self._retry_at = None
        except (OSError, KafkaCodecError) as e:
            self._retry_at = now + RETRY_MS
            self._failed(e)

    def _rebalance(self, key: GroupKey, group: Group, members: dict[str, int], now: int) -> Group:
        group = group.rebalanced(members, self._partitions_of(key[1]), now)
        self._save({key: group})
        return group

    def _save(self, changes: dict[GroupKey, Group] | dict[GroupKey, Group | None]) -> None:
        groups = {k: g for k, g in {**self._groups, **changes}.items() if g is not None}
        with_offsets = {key[:2] for key in self._offsets}
        empty = [k for k, g in groups.items() if not g.members and k not in with_offsets]
        empty.sort(key=lambda k: groups[k].changed_at)
        for key in empty[: max(len(empty) - self._limits.max_groups, 0)]:
            del groups[key]
        self._storage.save_groups([_row(k, g) for k, g in groups.items()])
        self._groups = groups

    def _save_offsets(self, offsets: dict[OffsetKey, int]) -> None:
        self._storage.save_offsets(
            [{"group": g, "topic": t, "partition": p, "offset": o} for (g, t, p), o in offsets.items()]
        )
        self._offsets = offsets


def _group(row: dict[str, Any], now: int) -> Group:
    members = dict.fromkeys(row["members"], now)
    return Group(row["generation"], row["assignor"], members, row["assignments"], now)


def _row(key: GroupKey, group: Group) -> dict[str, Any]:
    return {
        "group": key[0],
        "topic": key[1],
        "generation": group.generation,
        "assignor": group.assignor,
        "members": sorted(group.members),
        "assignments": group.assignments,
    }
