"""All partitions of a broker: which there are, and what is kept of which."""

from __future__ import annotations

from kafkacodec.dialects.line.config import BrokerConfig
from kafkacodec.dialects.line.errors import ErrorCode
from kafkacodec.dialects.line.groups import Refused
from kafkacodec.dialects.line.replication import Partition
from kafkacodec.dialects.line.storage import Storage

__all__ = ["Partitions"]

Key = tuple[str, int]


class Partitions:
    """The replication state of a broker's partitions.

    A topic counts against the limit when it is configured, has records, or has a partition in the follower's role. What
    is only asked for takes no room; what followers report of topics without records is kept for as many partitions as
    there may be topics, the latest first.

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
        # Of topics that do not count: followers have reported, the latest last.
        self._reported: dict[Key, None] = {}

    def count(self, topic: str) -> int:
        """The number of partitions that a topic has, or would have."""
        return self._config.topics.get(topic, self._config.default_partitions)

    def check(self, topic: str, partition: int) -> None:
        """Refuse a partition that is not there."""
        if not 0 <= partition < self.count(topic):
            raise Refused(ErrorCode.BAD_REQUEST, f"the topic has {self.count(topic)} partitions")

    def look(self, topic: str, partition: int, now: int) -> Partition:
        """The state of a partition; a new one, not kept yet, where nothing is known of it."""
        self.check(topic, partition)
        state = self._states.get((topic, partition))
        if state is None:
            end = self._storage.end(topic, partition)
            state = Partition(self._config.replica_lag_ms, end, self._config.min_in_sync)
        state.expire(now)
        return state

    def require_room(self, topic: str) -> None:
        """Refuse a topic that would count and exceed the limit."""
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

    def reported(self, topic: str, partition: int, state: Partition) -> None:
        """A follower has reported: keep what it said."""
        key = topic, partition
        self._states[key] = state
        if topic not in self._topics:
            self._reported.pop(key, None)
            self._reported[key] = None
            if len(self._reported) > max(self._config.max_topics, 1):
                oldest = next(iter(self._reported))
                del self._reported[oldest], self._states[oldest]

    def set_role(self, topic: str, partition: int, state: Partition, *, leader: bool) -> None:
        """Give a partition its role."""
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
        """Let time pass in all partitions."""
        for state in self._states.values():
            state.expire(now)

    def next_deadline(self) -> int | None:
        """When the next follower would fall behind; None where none can."""
        return min((d for s in self._states.values() if (d := s.next_deadline()) is not None), default=None)
