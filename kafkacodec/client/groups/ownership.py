"""The partitions of a member, and the events about them."""

from __future__ import annotations

from collections.abc import Iterable

from kafkacodec.assignment.partitions import TopicPartition, in_order
from kafkacodec.client.groups.membership import Assigned, Event, Lost, Revoke

__all__ = ["Ownership"]


class Ownership:
    """The partitions of a member.

    Attributes:
        owned: all of them, including those being revoked.
        revoking: the partitions of a Revoke that the consumer has not confirmed yet.
        target: the partitions to own after that, if known.
        events: the events that the consumer has not taken yet.
    """

    def __init__(self) -> None:
        self.owned: set[TopicPartition] = set()
        self.revoking: frozenset[TopicPartition] = frozenset()
        self.target: set[TopicPartition] | None = None
        self.events: list[Event] = []

    def take_events(self) -> list[Event]:
        """The events since the last call."""
        events, self.events = self.events, []
        return events

    def revoke(self, partitions: Iterable[TopicPartition]) -> None:
        """Ask the consumer to give up partitions, if any."""
        self.revoking = frozenset(partitions)
        if self.revoking:
            self.events.append(Revoke(in_order(self.revoking)))

    def reach(self, target: set[TopicPartition]) -> None:
        """Own exactly these: at once, or after the others are revoked."""
        self.revoke(self.owned - target)
        if self.revoking:
            self.target = target
        else:
            self.own(target)

    def revoked(self) -> bool:
        """Confirm the revocation; returns whether the target is reached."""
        self.owned -= self.revoking
        self.revoking = frozenset()
        target, self.target = self.target, None
        if target is None:
            return False
        self.own(target)
        return True

    def lose(self) -> None:
        """Lose all partitions."""
        if self.owned:
            self.events.append(Lost(in_order(self.owned)))
        self.owned = set()
        self.revoking = frozenset()
        self.target = None

    def lose_some(self, partitions: Iterable[TopicPartition]) -> None:
        """Lose these partitions, while nothing is being revoked."""
        gone = frozenset(partitions)
        if gone:
            self.events.append(Lost(in_order(gone)))
            self.owned -= gone

    def own(self, target: set[TopicPartition]) -> None:
        """Own exactly these from now on."""
        added, self.owned = in_order(target - self.owned), set(target)
        self.events.append(Assigned(added, in_order(target)))
