"""The configuration of a line protocol broker."""

from __future__ import annotations

from collections.abc import Mapping

from kafkacodec.datatypes import dataclass, field
from kafkacodec.dialects.line.reading import MAX_LINE_BYTES

__all__ = ["MAX_ID_LENGTH", "MAX_NAME_LENGTH", "RESPONSE_ROOM", "BrokerConfig"]

MAX_ID_LENGTH = 256
"""Longest correlation id, in characters."""

MAX_NAME_LENGTH = 255
"""Longest name of a topic, group or consumer, in characters."""

# Bytes of a response line without its list of messages or partitions, including the correlation id.
RESPONSE_ROOM = 4 * MAX_ID_LENGTH + 1024


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """The configuration of a broker. Times are in milliseconds.

    Attributes:
        topics: number of partitions by topic.
        default_partitions: number of partitions of other topics; 0 refuses other topics.
        replication_factor: replicas per partition, including this broker (id 0).
        min_in_sync: replicas that must be in sync to commit records.
        replication_timeout_ms: how long a PRODUCE with acks=all may wait.
        replica_lag_ms: how long a follower may lack a record and stay in sync.
        session_timeout_ms: how long a member may be silent.
        group_retention_ms: how long a group without members and its committed offsets are kept.
        max_line_bytes: the longest response line, in bytes; it limits the messages of a CONSUME.
        max_messages: the most messages in a response to CONSUME.
        max_topics: the most topics that are configured, have records, or have a partition in follower role.
        max_groups: the most groups with members.
        max_members: the most members of a group.
        max_offsets: the most committed offsets.
        max_waiting: the most PRODUCE requests with acks=all that wait.

    Raises:
        ValueError: a value out of range, or more partitions or replicas than a response line can list.
    """

    topics: Mapping[str, int] = field(default_factory=dict)
    default_partitions: int = 1
    replication_factor: int = 1
    min_in_sync: int = 1
    replication_timeout_ms: int = 5_000
    replica_lag_ms: int = 10_000
    session_timeout_ms: int = 10_000
    group_retention_ms: int = 604_800_000
    max_line_bytes: int = MAX_LINE_BYTES
    max_messages: int = 500
    max_topics: int = 10_000
    max_groups: int = 10_000
    max_members: int = 1_000
    max_offsets: int = 100_000
    max_waiting: int = 10_000

    def __post_init__(self) -> None:
        if not 1 <= self.min_in_sync <= self.replication_factor:
            raise ValueError(
                f"min_in_sync must be 1 to replication_factor ({self.replication_factor}), not {self.min_in_sync}"
            )
        for name in _NOT_NEGATIVE:
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative, but is {getattr(self, name)}")
        if self.max_line_bytes < 2 * RESPONSE_ROOM:
            raise ValueError(f"max_line_bytes must be at least {2 * RESPONSE_ROOM}, not {self.max_line_bytes}")
        listed = {f"partitions of {topic!r}": count for topic, count in self.topics.items()}
        listed |= {"default_partitions": self.default_partitions, "replicas": self.replication_factor}
        for what, count in listed.items():
            if count < 0 or count * len(f"{count},") + RESPONSE_ROOM > self.max_line_bytes:
                raise ValueError(f"{what}: a line of {self.max_line_bytes} bytes cannot list {count}")


_NOT_NEGATIVE = (
    "replication_timeout_ms",
    "replica_lag_ms",
    "session_timeout_ms",
    "group_retention_ms",
    "max_messages",
    "max_topics",
    "max_groups",
    "max_members",
    "max_offsets",
    "max_waiting",
)
