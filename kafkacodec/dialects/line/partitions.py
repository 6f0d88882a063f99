"""The partitions of a broker and their replication states."""

from __future__ import annotations

import zlib

from kafkacodec.dialects.line.config import BrokerConfig
from kafkacodec.dialects.line.errors import ErrorCode
from kafkacodec.dialects.line.groups import Refused
from kafkacodec.dialects.line.replication import Partition
from kafkacodec.dialects.line.storage import Storage

__all__ = ["Partitions", "by_crc"]

Key = tuple[str, int]


def by_crc(key: str, partitions: int) -> int:
    """The partition of a record: CRC-32 of its key."""
    return zlib.crc32(key.encode("utf-8", "surrogatepass")) % partitions


class Partitions:
    """The replication state of a broker's partitions.

    A topic counts towards `max_topics` if it is configured, has records, or has a partition in follower role. Requests
    for other topics keep no state, except what followers report: that is kept for the last `max_topics` partitions.

    Args:
        storage: the broker's.
        config: the broker's.
    """

    def __init__(self, storage: Storage, config: BrokerConfig) -> None:
        self._storage = storage
        self._config = config
        self._topics = {*config.topics, *storage.topics()}
        self._states: dict[Key, Partition] = {}
        self._following: set[Key] = set()
        # Partitions of other topics that followers have reported, the latest last.
        self._reported: dict[Key, None] = {}

    def count(self, topic: str) -> int:
        """The number of partitions of a topic, which may not exist yet."""
        return self._config.topics.get(topic, self._config.default_partitions)

    def check(self, topic: str, partition: int) -> None:
        """Refuse an unknown partition."""
        if not 0 <= partition < self.count(topic):
            raise Refused(ErrorCode.BAD_REQUEST, f"unknown partition: the topic has {self.count(topic)}")

    def look(self, topic: str, partition: int, now: int) -> Partition:
        """The state of a partition; a new one, which is not kept, if there is none."""
        self.check(topic, partition)
        state = self._states.get((topic, partition))
        end = self._storage.end(topic, partition)
        if state is None:
            state = self._new(topic, partition, end)
        elif state.leader and end > state.end:  # others write to the same storage
            state.appended(end, now)
        state.expire(now)
        return state

    def _new(self, topic: str, partition: int, end: int) -> Partition:
        return Partition(self._config.replica_lag_ms, end, self._config.min_in_sync)

    def require_room(self, topic: str) -> None:
        """Refuse a new topic that would exceed the limit."""
        if topic in self._topics:
            return
        living = self._topics | {t for t, _ in self._following}
        if topic not in living and len(living) >= self._config.max_topics:
            raise Refused(ErrorCode.BAD_REQUEST, "too many topics")

    def appended(self, topic: str, partition: int, state: Partition) -> None:
        """The topic has records now."""
        self._topics.add(topic)
        self._reported.pop((topic, partition), None)
        self._states[topic, partition] = state

    def lost(self, topic: str, partition: int) -> None:
        """The storage has lost the newest records."""
        state = self._states.get((topic, partition))
        if state is not None:
            state.cut(self._storage.end(topic, partition))

    def reported(self, topic: str, partition: int, state: Partition) -> None:
        """A follower has reported: keep the state."""
        key = topic, partition
        self._states[key] = state
        if topic not in self._topics:
            self._reported.pop(key, None)
            self._reported[key] = None
            if len(self._reported) > max(self._config.max_topics, 1):
                oldest = next(iter(self._reported))
                del self._reported[oldest], self._states[oldest]

    def set_role(self, topic: str, partition: int, state: Partition, *, leader: bool) -> None:
        """Set the role of a partition."""
        key = topic, partition
        if leader:
            self._following.discard(key)
        else:
            self.require_room(topic)
            self._reported.pop(key, None)
            self._following.add(key)
        end = self._storage.end(topic, partition)
        state.set_role(leader=leader, end=end)
        if end or not leader or topic in self._topics:
            self._states[key] = state
            if end:
                self._topics.add(topic)
        else:
            self._reported.pop(key, None)
            self._states.pop(key, None)

    def expire(self, now: int) -> None:
        """Advance the clock of all partitions."""
        for state in self._states.values():
            state.expire(now)

    def next_deadline(self) -> int | None:
        """The time at which the next follower falls out of sync; None if none will."""
        return min((d for s in self._states.values() if (d := s.next_deadline()) is not None), default=None)
