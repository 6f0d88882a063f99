"""The records that a member of a share group has acquired, and their acknowledgements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from kafkacodec.assignment.partitions import TopicPartition
from kafkacodec.client.core.calls import Received
from kafkacodec.client.groups.share_session import AcknowledgeType, Acquired, Run
from kafkacodec.datatypes import dataclass, field

__all__ = ["Acknowledged", "HeldRecords", "ShareFetched", "counts_and_gaps"]


@dataclass(frozen=True, slots=True, eq=False)
class ShareFetched:
    """The records of a partition in a response.

    Attributes:
        partition: which.
        records: the record sets; they may have more records than were acquired.
        acquired: the offsets that this member may deliver.
        node: the broker that gave them.
        frame: the memory that holds `records`, shared by several partitions.
    """

    partition: TopicPartition
    records: Any
    acquired: tuple[Acquired, ...]
    node: int
    frame: Received | None


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """The result of acknowledgements: `error` is None if the broker has them; otherwise others get the records."""

    partition: TopicPartition
    runs: tuple[Run, ...]
    error: Exception | None


@dataclass(slots=True)
class _Held:
    node: int
    offsets: set[int]
    renewing: set[int] = field(default_factory=set)


class HeldRecords:
    """Delivered records that wait for an acknowledgement, with the brokers that gave them."""

    def __init__(self) -> None:
        self._held: dict[TopicPartition, _Held] = {}

    def __iter__(self) -> Iterator[tuple[TopicPartition, set[int]]]:
        """The offsets of each partition."""
        return iter([(place, set(held.offsets)) for place, held in self._held.items()])

    def has(self, place: TopicPartition, offset: int) -> bool:
        """Whether a record waits for an acknowledgement."""
        held = self._held.get(place)
        return held is not None and offset in held.offsets

    def add(self, place: TopicPartition, node: int, offsets: Iterable[int]) -> None:
        """Add records that were delivered."""
        held = self._held.setdefault(place, _Held(node, set()))
        held.node = node
        held.offsets.update(offsets)

    def take(self, place: TopicPartition, offsets: set[int]) -> int:
        """Remove acknowledged records; returns the broker to tell."""
        held = self._held[place]
        held.offsets -= offsets
        held.renewing -= offsets
        if not held.offsets:
            del self._held[place]
        return held.node

    def lose(self, lost: Callable[[TopicPartition, int], bool]) -> list[tuple[TopicPartition, set[int]]]:
        """Forget those for whose partition and broker `lost` is true, and return them."""
        gone = [place for place, held in self._held.items() if lost(place, held.node)]
        return [(place, self._held.pop(place).offsets) for place in gone]

    # Renewals of records

    def renew(self, place: TopicPartition, offset: int) -> None:
        """Renew with the next acknowledgements, unless the record is acknowledged before."""
        self._held[place].renewing.add(offset)

    def renews(self, node: int) -> bool:
        """Whether there are renewals for a broker."""
        return any(held.renewing for held in self._held.values() if held.node == node)

    def take_renewals(self, node: int) -> list[tuple[TopicPartition, set[int]]]:
        """Take the renewals to send to a broker."""
        found = []
        for place, held in self._held.items():
            if held.node == node and held.renewing:
                found.append((place, held.renewing))
                held.renewing = set()
        return found


def counts_and_gaps(
    acquired: Iterable[Acquired], offsets: Iterable[int], damaged_from: int | None
) -> tuple[dict[int, int], list[Run]]:
    """Return the delivery count of each acquired record, and acknowledgements of acquired offsets without one.

    Args:
        acquired: from the broker.
        offsets: of the decoded records.
        damaged_from: the first undecodable offset; None if there is none.
    """
    counts: dict[int, int] = {}
    gaps: list[Run] = []
    present = sorted(offsets)
    at = 0
    for first, last, count in sorted(acquired):
        while at < len(present) and present[at] < first:
            at += 1
        expected = first
        while at < len(present) and present[at] <= last:
            if present[at] > expected:
                gaps += _missing(expected, present[at] - 1, damaged_from)
            counts[present[at]] = count
            expected = present[at] + 1
            at += 1
        if expected <= last:
            gaps += _missing(expected, last, damaged_from)
    return counts, gaps


def _missing(first: int, last: int, damaged_from: int | None) -> list[Run]:
    """Return acknowledgements of acquired offsets without a decoded record."""
    if damaged_from is None or last < damaged_from:
        return [Run(first, last, AcknowledgeType.GAP)]
    if first >= damaged_from:
        return [Run(first, last, AcknowledgeType.RELEASE)]
    return [
        Run(first, damaged_from - 1, AcknowledgeType.GAP),
        Run(damaged_from, last, AcknowledgeType.RELEASE),
    ]
