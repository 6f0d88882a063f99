"""Numbers of a running broker."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Statistics"]


class Statistics(NamedTuple):
    """Numbers of a running broker.

    Attributes:
        connections (int): open now.
        requests (int): since the start.
        received_bytes, sent_bytes (int): of all connections since the start.
        topics, partitions (int): now, including internal ones.
    """

    connections: int
    requests: int
    received_bytes: int
    sent_bytes: int
    topics: int
    partitions: int
