"""A member of a consumer group, without I/O: what it asks next, and what it may read and commit."""

from __future__ import annotations

from typing import Any

from kafkacodec.dialects.line.errors import ErrorCode
from kafkacodec.dialects.line.parsing import Response

__all__ = ["Membership"]

Asked = tuple[str, dict[str, Any]]


class Membership:
    """What a member knows of its group.

    It joins, gets its partitions, begins each at the committed offset or at 0, and is a member as long as its
    heartbeats are answered. A new generation ends what it had: it joins again, and reads on from what is committed.

    Args:
        group, topic, consumer_id: as in JOIN.
        assignor: the group's, ``round_robin`` or ``range``; None: whatever it has.

    Attributes:
        generation (int | None): None while it is no member.
        positions (dict[int, int]): the next offset of each of its partitions that is known.
        committed (dict[int, int]): what was last committed of them.
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
        """The request that makes it a member."""
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
        """Reading of a partition begins at its committed offset."""
        committed = response.fields["offset"]
        if committed >= 0:
            self.committed[partition] = committed
        self.positions[partition] = max(committed, 0)

    def read(self, partition: int, following: int) -> None:
        """What is before an offset was handed out."""
        if partition in self.positions:
            self.positions[partition] = following

    def member(self, command: str) -> Asked:
        """A request of a member: SYNC, HEARTBEAT or LEAVE."""
        args = {"group": self.group, "topic": self.topic, "consumer_id": self.consumer_id}
        return command, {**args, "generation": self.generation}

    def commits(self) -> list[Asked]:
        """The requests that commit what was handed out and is not committed."""
        command, args = self.member("COMMIT")
        due = {p: offset for p, offset in self.positions.items() if offset > self.committed.get(p, 0)}
        return [(command, {**args, "partition": p, "offset": offset}) for p, offset in due.items()]

    def has_committed(self, partition: int, offset: int) -> None:
        """A commit succeeded."""
        self.committed[partition] = offset

    def refused(self, response: Response) -> bool:
        """Whether a response says that its generation has ended: it has to join again."""
        if response.ok or response.code != ErrorCode.GENERATION_MISMATCH:
            return False
        self.generation = None
        return True
