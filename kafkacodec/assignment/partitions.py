"""Partitions of topics."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kafkacodec.datatypes import NamedTuple

__all__ = ["TopicPartition", "in_order"]


class TopicPartition(NamedTuple):
    """A partition of a topic; equal to the tuple ``(topic, partition)``."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def in_order(partitions: Iterable[Any]) -> tuple[TopicPartition, ...]:
    """Sort partitions by topic and number."""
    return tuple(sorted(TopicPartition(*partition) for partition in partitions))
