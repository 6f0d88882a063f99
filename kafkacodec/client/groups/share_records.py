"""The records that a member of a share group acquired, and what it says about them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from kafkacodec.client.core.calls import Received
from kafkacodec.client.groups.membership import TopicPartition
from kafkacodec.client.groups.share_session import AcknowledgeType, Acquired, Run

__all__ = ["Acknowledged", "Held", "ShareFetched", "counts_and_gaps"]


@dataclass(frozen=True, slots=True, eq=False)
class ShareFetched:
    """The records of a partition in a response.

    Attributes:
        partition: which.
        records: the record sets; they may have more records than were acquired.
        acquired: the offsets that this member may deliver.
        node: the broker that gave them.
        frame: the memory in which `records` are; of several partitions together.
    """

    partition: TopicPartition
    records: Any
    acquired: tuple[Acquired, ...]
    node: int
    frame: Received | None


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """What became of acknowledgements: `error` is None if the broker has them, else others get the records."""

    partition: TopicPartition
    runs: tuple[Run, ...]
    error: Exception | None


@dataclass(slots=True)
class Held:
    """Delivered records of a partition without an acknowledgement so far.

    `renewing`: those whose time is to begin anew.
    """

    node: int
    offsets: set[int]
    renewing: set[int] = field(default_factory=set)


def counts_and_gaps(
    acquired: Iterable[Acquired], offsets: Iterable[int], damaged_from: int | None
) -> tuple[dict[int, int], list[Run]]:
    """The delivery count of each acquired record, and what to say about acquired offsets without one.

    Args:
        acquired: what the broker gave.
        offsets: of the records that were decoded.
        damaged_from: the first offset of what could not be decoded; None if all could.
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
    """What to say about acquired offsets without a decoded record."""
    if damaged_from is None or last < damaged_from:
        return [Run(first, last, AcknowledgeType.GAP)]
    if first >= damaged_from:
        return [Run(first, last, AcknowledgeType.RELEASE)]
    return [
        Run(first, damaged_from - 1, AcknowledgeType.GAP),
        Run(damaged_from, last, AcknowledgeType.RELEASE),
    ]
