"""The assignors that a member of a classic group offers when it joins, each with its subscription."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kafkacodec.assignment.assignor import Assignor, MemberSubscription, RebalanceProtocol
from kafkacodec.assignment.partitions import TopicPartition
from kafkacodec.client.groups.leading import subscription_bytes

__all__ = ["OfferedAssignors"]


class OfferedAssignors:
    """The assignors of a member by name, the preferred one first, and its last assignment.

    Raises:
        ValueError: there are none, or two of the same name.

    Attributes:
        protocol: cooperative if all of them support that: then the member keeps its partitions while it joins again.
    """

    def __init__(self, assignors: Sequence[Assignor]) -> None:
        self._by_name = {assignor.name: assignor for assignor in assignors}
        if not assignors or len(self._by_name) < len(assignors):
            raise ValueError("assignors must have at least one entry, and different names")
        cooperative = all("cooperative" in assignor.supported_protocols for assignor in assignors)
        self.protocol: RebalanceProtocol = "cooperative" if cooperative else "eager"
        self._generation = -1
        self._last: tuple[TopicPartition, ...] = ()

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def __getitem__(self, name: str) -> Assignor:
        return self._by_name[name]

    def assigned(self, generation: int, partitions: tuple[TopicPartition, ...]) -> None:
        """Remember the assignment of a rebalance for the next one."""
        self._generation, self._last = generation, partitions

    def subscriptions(
        self, topics: Iterable[str], owned: tuple[TopicPartition, ...], rack_id: str | None
    ) -> dict[str, bytes]:
        """The subscription for each assignor, as JoinGroup carries it."""
        names = tuple(sorted(topics))
        remembered = owned if self.protocol == "cooperative" else self._last
        return {
            name: subscription_bytes(
                MemberSubscription(
                    names,
                    owned,
                    self._generation if owned else -1,
                    assignor.user_data(names, remembered, self._generation),
                    rack_id=rack_id,
                )
            )
            for name, assignor in self._by_name.items()
        }
