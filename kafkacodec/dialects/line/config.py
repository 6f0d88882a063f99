"""What a broker of the line protocol is set to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kafkacodec.dialects.line.reading import MAX_LINE_BYTES

__all__ = ["MAX_ID_LENGTH", "MAX_NAME_LENGTH", "RESPONSE_ROOM", "BrokerConfig"]

MAX_ID_LENGTH = 256
"""Characters of a correlation id that is answered with; requests with longer ones are refused."""

MAX_NAME_LENGTH = 255
"""Characters of the name of a topic, a group or a consumer."""

# Bytes of a response line besides a payload's list of messages or partitions, its correlation id included.
RESPONSE_ROOM = 4 * MAX_ID_LENGTH + 1024


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """What a broker is set to. Times are in milliseconds of the clock that is passed in.

    Attributes:
        topics: number of partitions by topic.
        default_partitions: of any other topic; 0 refuses other topics.
        replication_factor: replicas per partition, this broker's (id 0) included.
        min_in_sync: replicas that must be in sync for records to be committed.
        replication_timeout_ms: how long acks=all may wait.
        replica_lag_ms: how long a follower may lack a record and count as in sync.
        session_timeout_ms: how long a member may be silent.
        group_retention_ms: how long a group without members is kept, with its committed offsets.
        max_line_bytes: the longest response line; CONSUME answers with as many messages as it holds.
        max_messages: the most that one CONSUME answers with.
        max_topics, max_groups, max_members, max_offsets, max_waiting: bounds on what requests can make the broker
            keep: topics that are named here or have records or a follower's role, groups that have members, members
            of a group, committed offsets, and PRODUCE requests with acks=all that wait.

    Raises:
        ValueError: a number that makes no sense, or more partitions or replicas than a response line can list.
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
            raise ValueError(f"min_in_sync is {self.min_in_sync}; there are {self.replication_factor} replicas")
        for name in _NOT_NEGATIVE:
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is {getattr(self, name)}; it must not be negative")
        if self.max_line_bytes < 2 * RESPONSE_ROOM:
            raise ValueError(f"max_line_bytes is {self.max_line_bytes}; it must be at least {2 * RESPONSE_ROOM}")
        listed = {f"partitions of {topic!r}": count for topic, count in self.topics.items()}
        listed |= {"default_partitions": self.default_partitions, "replicas": self.replication_factor}
        for what, count in listed.items():
            if count < 0 or count * len(f"{count},") + RESPONSE_ROOM > self.max_line_bytes:
                raise ValueError(f"{count} {what} are no number that a line of {self.max_line_bytes} bytes can list")


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
