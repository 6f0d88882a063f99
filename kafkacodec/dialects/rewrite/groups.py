"""The state of a consumer group on its controller: members, the pending change, assignments, offsets."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from typing import TypeAlias

from kafkacodec.datatypes import NamedTuple, dataclass, field
from kafkacodec.dialects.rewrite.rpcs import ErrorCode

__all__ = ["NO_OFFSET", "Group", "Member", "Partition", "Rewind", "Strategy", "Waiting"]

NO_OFFSET = -1
"""The offset of a partition without a committed offset: the consumer starts as configured."""


class Partition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int


Strategy: TypeAlias = Callable[[Sequence[Partition], Sequence[str]], dict[str, list[Partition]]]
"""Assigns partitions, in order, to members, in string order; see `kafkacodec.assignment.dividing`."""


class Waiting(NamedTuple):
    """A request that is answered later."""

    connection: Hashable
    correlation_id: int
    version: int
    client_id: str


@dataclass(slots=True)
class Member:
    """A consumer of a group.

    Attributes:
        client_id: identifies its heartbeats.
        alive_at: the time of its last call.
        owned: its partitions, until it registers again.
        registered: its registration, while that waits for the other members.
        must_register_by: the time at which it is removed, if a change waits for it.
    """

    client_id: str
    alive_at: int
    owned: list[Partition] = field(default_factory=list)
    registered: Waiting | None = None
    must_register_by: int | None = None


@dataclass(slots=True)
class Rewind:
    """A rewind that waits until the owners of its partitions have stopped."""

    waiting: Waiting
    offsets: list[tuple[Partition, int, ErrorCode]]


@dataclass(slots=True)
class Group:
    """A group.

    Attributes:
        session_timeout: how long a member may be silent, in milliseconds.
        topics: the topics it consumes.
        ephemeral: whether it is removed with its last member.
        generation: increases with every assignment.
        known: the partition counts when the group was created: later partitions start at offset 0.
        members: by consumer id.
        changing: whether a new assignment is pending.
        rewinds: the pending rewinds.
        rewind_size: the number of their partitions; an empty rewind counts as one.
        offsets: the committed offsets.
    """

    session_timeout: int
    topics: list[str]
    ephemeral: bool
    known: Mapping[str, int]
    generation: int = 0
    members: dict[str, Member] = field(default_factory=dict)
    changing: bool = False
    rewinds: list[Rewind] = field(default_factory=list)
    rewind_size: int = 0
    offsets: dict[Partition, int] = field(default_factory=dict)

    def partitions(self, counts: Mapping[str, int]) -> list[Partition]:
        """All partitions of the group's topics, in order."""
        return [Partition(topic, i) for topic in sorted(set(self.topics)) for i in range(counts.get(topic, 0))]

    def start_offset(self, partition: Partition) -> int:
        """The offset at which an owner of the partition starts."""
        default = NO_OFFSET if partition.partition < self.known.get(partition.topic, 0) else 0
        return self.offsets.get(partition, default)

    def call(self, consumer_ids: Sequence[str], now: int) -> None:
        """Ask members to register again: their heartbeats are answered with an error until they do."""
        for consumer_id in consumer_ids:
            member = self.members[consumer_id]
            if member.registered is None and member.must_register_by is None:
                member.must_register_by = now + self.session_timeout

    def change(self, now: int) -> None:
        """Start a change of the assignment: call every member that has not registered for it."""
        self.changing = True
        self.call(list(self.members), now)

    def owned_by(self, client_id: str) -> set[Partition]:
        """The partitions of a client."""
        return {p for member in self.members.values() if member.client_id == client_id for p in member.owned}

    def fault(self, partition: Partition, offset: int, owned: Set[Partition]) -> ErrorCode:
        """Return the error of an offset in a commit of the owner of some partitions: not smaller, and only of these
        partitions.

        Nobody owns partitions of topics that are not the group's; consumers with a static assignment may commit any.
        """
        if offset < 0:
            return ErrorCode.INVALID_REQUEST
        if partition.topic not in self.topics:
            return ErrorCode.NONE
        if partition not in owned:
            return ErrorCode.NOT_OWNER
        return ErrorCode.OFFSET_TOO_SMALL if offset < self.offsets.get(partition, 0) else ErrorCode.NONE

    @property
    def all_registered(self) -> bool:
        """Whether all called members have registered."""
        return all(member.must_register_by is None for member in self.members.values())

    def assign(self, strategy: Strategy, counts: Mapping[str, int]) -> None:
        """Assign the partitions in the next generation."""
        shares = strategy(self.partitions(counts), sorted(self.members))
        for consumer_id, member in self.members.items():
            member.owned = list(shares[consumer_id])
        self.generation += 1
        self.changing = False
