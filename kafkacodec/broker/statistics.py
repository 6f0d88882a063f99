"""Numbers of a running broker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafkacodec.datatypes import NamedTuple
from kafkacodec.internal_records import INTERNAL_TOPICS

__all__ = ["Statistics", "statistics_of"]


class Statistics(NamedTuple):
    """Numbers of a running broker.

    Attributes:
        connections (int): open now.
        requests (int): since the start.
        received_bytes, sent_bytes (int): of all connections since the start.
        topics, partitions (int): now, including internal ones.
        internal_topics (int): topics that the broker keeps for itself, such as ``__consumer_offsets``.
    """

    connections: int
    requests: int
    received_bytes: int
    sent_bytes: int
    topics: int
    partitions: int
    internal_topics: int


def statistics_of(traffic: tuple[int, int, int, int], topics: Mapping[str, Mapping[str, Any]]) -> Statistics:
    """The numbers of a broker, from those of its connections and from its topics by name."""
    partitions = sum(len(topic["partitions"]) for topic in topics.values())
    return Statistics(*traffic, len(topics), partitions, len(INTERNAL_TOPICS.keys() & topics.keys()))
