"""What members of a share group get of a partition, what they say about it, and what is given up."""

from __future__ import annotations

from collections.abc import Sequence

from kafkacodec.datatypes import NamedTuple

__all__ = ["ACCEPT", "GAP", "REJECT", "RELEASE", "RENEW", "Acknowledged", "Acquired", "Dead", "Wanted"]

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
"""Types of acknowledgements."""


class Acquired(NamedTuple):
    """Records that a member has acquired, and their number of deliveries."""

    first: int
    last: int
    delivery: int


class Acknowledged(NamedTuple):
    """A member's acknowledgement of records: one type for all, or one for each."""

    first: int
    last: int
    types: Sequence[int]


class Wanted(NamedTuple):
    """The limits of a fetch.

    Attributes:
        member: of the fetch.
        records: the maximum of records; whole batches of the log may exceed it, unless it is `strict`.
        batch: the number of records of a range.
        strict: whether `records` is exact (KIP-1206).
        until: the end of the locks.
    """

    member: str
    records: int
    batch: int
    strict: bool
    until: float


class Dead(NamedTuple):
    """Records that are given up after some deliveries: a member has rejected them, or they were delivered too often."""

    first: int
    last: int
    deliveries: int
    is_rejected: bool
