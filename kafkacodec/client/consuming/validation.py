"""Checking after a change of leader that the new leader has the records that were read (KIP-320)."""

from __future__ import annotations

import logging
from functools import partial
from typing import Any, Final

from kafkacodec import messages
from kafkacodec.client.consuming.positions import Key, PartitionState, Position, Positions
from kafkacodec.client.core.backoff import Backoff
from kafkacodec.client.core.calls import Answer, Send, Versions
from kafkacodec.client.core.cluster import Cluster
from kafkacodec.client.core.retrying import worth_repeating
from kafkacodec.datatypes import dataclass
from kafkacodec.errors import LogTruncated, UnsupportedVersion, error
from kafkacodec.messages.keys import OFFSET_FOR_LEADER_EPOCH
from kafkacodec.protocol.client_defaults import client_request
from kafkacodec.protocol.versions import highest_common

__all__ = ["Validation"]

_UNKNOWN: Final = -1
_FIRST_FOR_CONSUMERS: Final = 3  # older ones need the permission to change the cluster
_log = logging.getLogger("kafkacodec.client")


@dataclass(eq=False, slots=True)
class _Check:
    state: PartitionState
    version: int
    position: Position
    leader_epoch: int  # of the asked leader


class Validation:
    """A machine that checks positions with a known leader epoch whenever the partition's leader epoch grows."""

    def __init__(self, cluster: Cluster, positions: Positions, *, backoff: Backoff) -> None:
        self._cluster = cluster
        self._positions = positions
        self._backoff = backoff
        self._now = 0.0
        self._asking: dict[PartitionState, _Check] = {}
        self._watch = positions.watch()
        self._generation = -1  # of the cluster, at the check of all partitions
        self._waiting: set[PartitionState] = set()  # to check again without a change

    def pending(self, state: PartitionState) -> bool:
        """Whether the partition needs a check before it is fetched."""
        if state.fetching is None:
            return False
        known = self._cluster.partition(*state.key)
        if known is None or known.leader_epoch <= state.validated_epoch:
            return False
        if state.fetching.leader_epoch < 0 or state.fetching.leader_epoch == known.leader_epoch:
            state.validated_epoch = known.leader_epoch
            return False
        return True

    def poll(self, now: float) -> list[Send]:
        """Requests to check positions, one per leader."""
        self._now = now
        rounds: dict[int, dict[Key, _Check]] = {}
        for state in self._states():
            if state in self._asking or now < state.next_at:
                self._waiting.add(state)
                continue
            known = self._cluster.partition(*state.key)
            if state.kept or state.failing or not self.pending(state) or known is None or known.leader is None:
                continue
            assert state.fetching is not None
            check = _Check(state, state.version, state.fetching, known.leader_epoch)
            rounds.setdefault(known.leader, {})[state.key] = self._asking[state] = check
            self._waiting.add(state)
        return [Send(node, partial(self._request, asked), context=asked) for node, asked in rounds.items()]

    def _states(self) -> list[PartitionState]:
        """Return the partitions that may need a check."""
        changed, generation, partitions = self._watch.take(), self._cluster.generation, self._positions.partitions
        waiting, self._waiting = self._waiting, set()
        if changed is None or generation != self._generation:
            self._generation = generation
            return list(partitions.values())
        return [state for state in {**changed, **dict.fromkeys(waiting)} if partitions.get(state.key) is state]

    def next_deadline(self) -> float | None:
        """When to retry a check after a failure."""
        watch, partitions = self._watch, self._positions.partitions
        states = partitions.values() if watch.whole else {*self._waiting, *tuple(watch.changed)}
        return min((s.next_at for s in states if s.next_at > self._now), default=None)

    def answered(self, send: Send, answer: Answer, now: float) -> None:
        """Compare the ends of the epochs with the positions."""
        asked: dict[Key, _Check] = dict(send.context)
        for topic in answer.message.topics:
            for entry in topic.partitions:
                check = asked.pop((topic.topic, entry.partition), None)
                if check is not None and self._current(check):
                    self._compare(check, entry, now)
        for check in asked.values():
            if self._current(check):
                self._again(check.state, now)

    def failed(self, send: Send, error: Exception, now: float) -> None:
        """Retry; skip the check if the broker does not support it."""
        if worth_repeating(error):
            self._cluster.refresh()
        for check in send.context.values():
            if not self._current(check):
                continue
            if worth_repeating(error):
                self._again(check.state, now)
            elif isinstance(error, UnsupportedVersion):
                check.state.validated_epoch = check.leader_epoch
            else:
                self._positions.fail(check.state, error)

    def _current(self, check: _Check) -> bool:
        """End a check; returns whether its answer is still useful."""
        self._asking.pop(check.state, None)
        return check.state.version == check.version and check.state.fetching == check.position

    def _again(self, state: PartitionState, now: float) -> None:
        state.failures += 1
        state.next_at = now + self._backoff.after(state.failures)

    def _request(self, asked: dict[Key, _Check], versions: Versions) -> tuple[Any, int]:
        version = highest_common(OFFSET_FOR_LEADER_EPOCH, versions)
        if version < _FIRST_FOR_CONSUMERS:
            raise UnsupportedVersion(f"OffsetForLeaderEpoch: version {version} is for brokers")
        kind = messages.OffsetForLeaderEpochRequest
        topics: dict[str, list[Any]] = {}
        for (topic, number), check in asked.items():
            entry = kind.OffsetForLeaderPartition(
                partition=number,
                current_leader_epoch=check.leader_epoch,
                leader_epoch=check.position.leader_epoch,
            )
            topics.setdefault(topic, []).append(entry)
        entries = [kind.OffsetForLeaderTopic(topic=name, partitions=found) for name, found in topics.items()]
        return client_request(kind, topics=entries), version

    def _compare(self, check: _Check, entry: Any, now: float) -> None:
        state, place = check.state, f"{check.state.topic}-{check.state.number}"
        if entry.error_code:
            refusal = error(entry.error_code)
            if refusal.retriable or refusal.stale_metadata:  # as Java's client, whatever it is
                self._cluster.refresh()
            if refusal.retriable or entry.error_code == _UNKNOWN:
                self._again(state, now)
                self._cluster.hindrances.refused(f"the position in {place} cannot be checked", entry.error_code, now)
            else:
                self._positions.fail(state, refusal(f"{place}: {refusal.name}"))
            return
        known = entry.end_offset >= 0 and entry.leader_epoch >= 0
        if not known and state.validated_epoch < 0:
            self._unknown_epoch(check, place, now)
            return
        state.failures = 0
        if entry.end_offset >= check.position.offset and entry.leader_epoch >= 0:
            state.validated_epoch = check.leader_epoch
            return
        self._truncated(check, entry.end_offset if known else None, entry.leader_epoch, place)

    def _unknown_epoch(self, check: _Check, place: str, now: float) -> None:
        """Handle a committed offset with a leader epoch that the partition never had, as after a restore or a copy.

        The offset may still be valid; the next fetch will tell. The metadata may be old, so it is refreshed first.
        """
        state, position = check.state, check.position
        if not state.failures:
            self._cluster.refresh()
            self._again(state, now)
            return
        _log.warning(
            "%s: the partition never had leader epoch %d of the committed offset %d, which is from another log; "
            "reading starts there anyway",
            place,
            position.leader_epoch,
            position.offset,
        )
        self._positions.forget_epoch(state)

    def _truncated(self, check: _Check, end: int | None, epoch: int, place: str) -> None:
        state = check.state
        text = (
            f"{place}: the records before offset {check.position.offset} were read and are no longer in the partition"
        )
        if end is not None:
            text += f": it differs from offset {end} on"
        lost = LogTruncated(text, divergent_offset=end)
        if self._positions.policy.refuses:
            self._positions.fail(state, lost)
        elif end is None:
            _log.warning("%s", lost)
            self._positions.reset(state)
        else:
            _log.warning("%s; reading continues there", lost)
            self._positions.seek(state.key, Position(end, epoch))
