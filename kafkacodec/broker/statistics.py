"""What a broker has and has done, in numbers."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Statistics"]


class Statistics(NamedTuple):
    """Numbers of a running broker.

    Attributes:
        connections (int): open now.
        requests (int): begun since the start.
        received_bytes, sent_bytes (int): of all connections since the start.
        topics, partitions (int): now, internal ones included.
    """

    connections: int
    requests: int
    received_bytes: int
    sent_bytes: int
    topics: int
    partitions: int
