"""A member of a consumer group, without I/O: its requests, its partitions and its commits."""

from __future__ import annotations

from typing import Any

from kafkacodec.dialects.line.errors import ErrorCode
from kafkacodec.dialects.line.parsing import Response

__all__ = ["Membership"]

Asked = tuple[str, dict[str, Any]]


class Membership:
    """A member's state in its group.

    It joins, gets its partitions, starts each at the committed offset or at 0, and stays a member as long as its
    heartbeats are answered. When a new generation starts, it joins again, and continues from the committed offsets.

    Args:
        group, topic, consumer_id: as in JOIN.
        assignor: the group's, ``round_robin`` or ``range``; None: any.

    Attributes:
        generation (int | None): None while it is not a member.
        positions (dict[int, int]): the known next offsets of its partitions.
        committed (dict[int, int]): their committed offsets.
    """

    def __init__(self, group: str, topic: str, consumer_id: str, assignor: str | None = None) -> None:
        self.group, self.topic, self.consumer_id, self.assignor = group, topic, consumer_id, assignor
        self.generation: int | None = None
        self.positions: dict[int, int] = {}
        self.committed: dict[int, int] = {}
        self._assigned: list[int] = []

    @property
    def assigned(self) -> list[int]:
        """The partitions that it reads."""
        return list(self._assigned)

    def join(self) -> Asked:
        """Return the request that makes it a member."""
        args: dict[str, Any] = {"group": self.group, "topic": self.topic, "consumer_id": self.consumer_id}
        return "JOIN", {**args, "assignor": self.assignor}

    def joined(self, response: Response) -> None:
        """It is a member of this generation."""
        self.generation = response.fields["generation"]
        self._assigned = list(response.fields["assigned"])
        self.positions, self.committed = {}, {}

    def unknown(self) -> list[Asked]:
        """The requests for the committed offsets of partitions whose position is not known."""
        args = {"group": self.group, "topic": self.topic}
        return [("OFFSET", {**args, "partition": p}) for p in self._assigned if p not in self.positions]

    def begins(self, partition: int, response: Response) -> None:
        """Start a partition at its committed offset."""
        committed = response.fields["offset"]
        if committed >= 0:
            self.committed[partition] = committed
        self.positions[partition] = max(committed, 0)

    def read(self, partition: int, following: int) -> None:
        """Note that records before an offset were returned."""
        if partition in self.positions:
            self.positions[partition] = following

    def member(self, command: str) -> Asked:
        """A request of a member: SYNC, HEARTBEAT or LEAVE."""
        args = {"group": self.group, "topic": self.topic, "consumer_id": self.consumer_id}
        return command, {**args, "generation": self.generation}

    def commits(self) -> list[Asked]:
        """Return the requests that commit returned records."""
        command, args = self.member("COMMIT")
        due = {p: offset for p, offset in self.positions.items() if offset > self.committed.get(p, 0)}
        return [(command, {**args, "partition": p, "offset": offset}) for p, offset in due.items()]

    def has_committed(self, partition: int, offset: int) -> None:
        """A commit succeeded."""
        self.committed[partition] = offset

    def refused(self, response: Response) -> bool:
        """Whether a response says that its generation has ended, so that it must join again."""
        if response.ok or response.code != ErrorCode.GENERATION_MISMATCH:
            return False
        self.generation = None
        return True
