"""The errors of fetched partitions: which are retried, which reset the position, which the user sees."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any, Final

from kafkacodec.client.consuming.positions import PartitionState, Positions
from kafkacodec.client.consuming.settings import ConsumerSettings
from kafkacodec.client.core.backoff import Backoff
from kafkacodec.client.core.cluster import Cluster
from kafkacodec.errors import CORRUPT_MESSAGE, LEADER_NOT_AVAILABLE, OFFSET_OUT_OF_RANGE, error

__all__ = ["FetchErrors"]

_UNKNOWN: Final = -1
_log = logging.getLogger("kafkacodec.client")


class FetchErrors:
    """Handles the error of a partition: retries, resets the position, or reports to the user."""

    def __init__(self, cluster: Cluster, positions: Positions, backoff: Backoff, settings: ConsumerSettings) -> None:
        self._cluster = cluster
        self._positions = positions
        self._backoff = backoff
        self._settings = settings

    def act(self, state: PartitionState, entry: Any, endpoints: Iterable[Any], source: int, now: float) -> None:
        """Handle the error that `source` returned for a partition."""
        refusal = error(entry.error_code)
        from_follower = source != self._cluster.leader(*state.key)
        state.preferred = None
        if entry.error_code == OFFSET_OUT_OF_RANGE:
            if from_follower:  # it may lag behind the leader
                self._again(state, now)
            else:
                self._out_of_range(state, now)
        elif entry.error_code == CORRUPT_MESSAGE or not (refusal.retriable or entry.error_code == _UNKNOWN):
            assert state.fetching is not None
            self.for_user(
                state, refusal(f"{state.topic}-{state.number} at offset {state.fetching.offset}: {refusal.name}")
            )
        else:
            self._moved(state, entry.current_leader, endpoints, refusal.stale_metadata or state.failures > 0)
            self._again(state, now)
            self._hold_up(state, entry.error_code, now)

    def for_user(self, state: PartitionState, problem: Exception) -> None:
        """Report an error once the records already fetched are read."""
        if state.kept:
            state.draining = True
        elif not state.failing:
            self._positions.fail(state, problem)

    def no_leader(self, state: PartitionState, now: float) -> None:
        """Refresh metadata that names no leader, or report why the partition cannot be read."""
        topic = self._cluster.topics.get(state.topic)
        if topic is not None:
            self._cluster.refresh()
            if topic.partitions:
                self._hold_up(state, LEADER_NOT_AVAILABLE, now)
            if topic.refusal is not None:
                self.for_user(state, topic.refusal(f"topic {state.topic!r}: {topic.refusal.name}"))

    def created_again(self, state: PartitionState) -> None:
        """Reset the position: the topic was deleted and created again, and the position belongs to the old one."""
        assert state.fetching is not None
        place, offset = f"{state.topic}-{state.number}", state.fetching.offset
        self._start_by_policy(
            state, f"{place}: the topic was deleted and created again after offset {offset} was reached"
        )

    def _out_of_range(self, state: PartitionState, now: float) -> None:
        assert state.fetching is not None
        if state.failures:
            state.next_at = now + self._backoff.after(state.failures)
        state.failures += 1
        text = f"{state.topic}-{state.number}: the broker does not have offset {state.fetching.offset}"
        if state.log_start_offset >= 0:
            text += f"; it had offsets from {state.log_start_offset} to {state.high_watermark} before"
        self._start_by_policy(state, text)

    def _start_by_policy(self, state: PartitionState, text: str) -> None:
        """Reset the position once the records already fetched are read; `text` says why."""
        if state.kept:
            state.draining = True
            return
        if not self._positions.policy.refuses:
            _log.warning("%s; continuing as auto_offset_reset says", text)
        self._positions.reset(state, error(OFFSET_OUT_OF_RANGE)(text))

    def _moved(self, state: PartitionState, leader: Any, endpoints: Iterable[Any], stale: bool) -> None:
        newer = leader.leader_id >= 0 and self._cluster.leader_changed(
            state.topic, state.number, leader.leader_id, leader.leader_epoch, endpoints
        )
        if stale and not newer:
            self._cluster.refresh()

    def _hold_up(self, state: PartitionState, code: int, now: float) -> None:
        self._cluster.hindrances.refused(f"{state.topic}-{state.number} cannot be fetched", code, now)

    def _again(self, state: PartitionState, now: float) -> None:
        state.failures += 1
        state.next_at = now + self._backoff.after(state.failures)
