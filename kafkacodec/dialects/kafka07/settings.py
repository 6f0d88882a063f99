"""The configuration of a broker of Kafka 0.7, by the names of its properties."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kafkacodec.datatypes import dataclass, field
from kafkacodec.dialects.properties import Properties, read_properties

__all__ = ["NAMES", "BrokerSettings", "TopicSettings"]

_HOUR_MS: Final = 3_600_000
_LARGEST_INT: Final = (1 << 31) - 1


@dataclass(frozen=True, kw_only=True, slots=True)
class TopicSettings:
    """Settings of a log.

    Attributes:
        file_size (int): a segment larger than this, in bytes, ends before the next append.
        roll_ms (int): a segment also ends this long after its first append.
        flush_messages (int): the number of invisible messages that triggers a flush, which makes them visible.
        flush_ms (int): a check flushes this long after the last flush.
        retention_ms (int): remove segments last written longer ago; -1: none.
        retention_bytes (int): remove the oldest segments while at least this many bytes stay; -1: none.
    """

    file_size: int = 1 << 30
    roll_ms: int = 168 * _HOUR_MS
    flush_messages: int = 1
    flush_ms: int = 3000
    retention_ms: int = 168 * _HOUR_MS
    retention_bytes: int = -1


@dataclass(frozen=True, kw_only=True)
class BrokerSettings:
    """The properties of a broker, as values; properties that end in ``_by_topic`` replace others for some topics.

    The defaults are 0.7.2's, except for `flush_messages`, which is 500 there: here messages are visible at once.
    """

    flush_messages: int = 1
    flush_look_ms: int = 3000
    flush_ms: int | None = None
    flush_ms_by_topic: Mapping[str, int] = field(default_factory=dict)
    file_size: int = 1 << 30
    file_size_by_topic: Mapping[str, int] = field(default_factory=dict)
    roll_hours: int = 168
    roll_hours_by_topic: Mapping[str, int] = field(default_factory=dict)
    cleanup_minutes: int = 10
    retention_hours_by_topic: Mapping[str, int] = field(default_factory=dict)
    retention_size: int = -1
    retention_size_by_topic: Mapping[str, int] = field(default_factory=dict)
    partitions_by_topic: Mapping[str, int] = field(default_factory=dict)
    max_message_size: int = 1_000_000
    max_request_bytes: int = 100 << 20
    host: str = ""
    zookeeper: str = ""
    session_timeout_ms: int = 6000
    connection_timeout_ms: int = 6000

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> BrokerSettings:
        """Settings from properties by name. Raises ValueError."""
        return cls(**read_properties(NAMES, given))

    def of_topic(self, topic: str, retention_ms: int) -> TopicSettings:
        """Return the settings of a topic's logs; with `retention_ms`, unless the topic has its own hours."""
        hours = self.retention_hours_by_topic.get(topic)
        flush_ms = self.flush_look_ms if self.flush_ms is None else self.flush_ms
        return TopicSettings(
            file_size=self.file_size_by_topic.get(topic, self.file_size),
            roll_ms=self.roll_hours_by_topic.get(topic, self.roll_hours) * _HOUR_MS,
            flush_messages=self.flush_messages,
            flush_ms=self.flush_ms_by_topic.get(topic, flush_ms),
            retention_ms=retention_ms if hours is None else hours * _HOUR_MS,
            retention_bytes=self.retention_size_by_topic.get(topic, self.retention_size),
        )


def _number(low: int, high: int = _LARGEST_INT) -> Callable[[str], int]:
    def read(text: str) -> int:
        try:
            found = int(text)
        except ValueError:
            raise ValueError("it is not a number") from None
        if not low <= found <= high:
            raise ValueError(f"it must be from {low} to {high}")
        return found

    return read


def _by_topic(text: str) -> Mapping[str, int]:
    """``topic:number,...``; as in 0.7, an entry without a number is skipped."""
    found = {}
    for entry in text.split(","):
        topic, _, number = entry.partition(":")
        try:
            count = int(number)
        except ValueError:
            continue
        if count <= 0:
            raise ValueError(f"the number of {topic!r} must be greater than 0")
        found[topic] = count
    return found


NAMES: Final[Properties] = {
    "hostname": ("host", str),
    "log.cleanup.interval.mins": ("cleanup_minutes", _number(1)),
    "log.default.flush.interval.ms": ("flush_ms", _number(0)),
    "log.default.flush.scheduler.interval.ms": ("flush_look_ms", _number(1)),
    "log.file.size": ("file_size", _number(5)),
    "log.flush.interval": ("flush_messages", _number(1)),
    "log.roll.hours": ("roll_hours", _number(1)),
    "log.retention.size": ("retention_size", _number(-1, (1 << 63) - 1)),
    "max.message.size": ("max_message_size", _number(0)),
    "max.socket.request.bytes": ("max_request_bytes", _number(1)),
    "topic.flush.intervals.ms": ("flush_ms_by_topic", _by_topic),
    "topic.log.file.size": ("file_size_by_topic", _by_topic),
    "topic.log.retention.hours": ("retention_hours_by_topic", _by_topic),
    "topic.log.retention.size": ("retention_size_by_topic", _by_topic),
    "topic.log.roll.hours": ("roll_hours_by_topic", _by_topic),
    "topic.partition.count.map": ("partitions_by_topic", _by_topic),
    "zk.connect": ("zookeeper", str),
    "zk.connectiontimeout.ms": ("connection_timeout_ms", _number(1)),
    "zk.sessiontimeout.ms": ("session_timeout_ms", _number(1)),
}
"""Property of 0.7 -> attribute of `BrokerSettings`, and what reads its text."""
