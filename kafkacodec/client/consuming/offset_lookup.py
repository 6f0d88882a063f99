"""Looking up offsets by time, or at the start or end of a partition: ListOffsets, sent to its leader."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final

from kafkacodec import messages
from kafkacodec.client.consuming.positions import Key, PartitionState, Position, Positions
from kafkacodec.client.core.backoff import Backoff
from kafkacodec.client.core.calls import Answer, Send, Versions
from kafkacodec.client.core.cluster import Cluster
from kafkacodec.client.core.coordinators import MOST_BROKEN
from kafkacodec.client.core.metadata import Topic
from kafkacodec.client.core.missing import UNKNOWN_MS
from kafkacodec.client.core.retrying import worth_repeating
from kafkacodec.datatypes import NamedTuple, dataclass, field
from kafkacodec.errors import (
    LEADER_NOT_AVAILABLE,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSUPPORTED_FOR_MESSAGE_FORMAT,
    RemoteProtocolError,
    error,
)
from kafkacodec.messages.keys import LIST_OFFSETS
from kafkacodec.protocol.client_defaults import client_request
from kafkacodec.protocol.versions import highest_common

__all__ = ["FoundOffset", "OffsetLookup", "Query"]

_FIRST_BY_TIME: Final = 1
_UNKNOWN: Final = -1


class FoundOffset(NamedTuple):
    """The first record at or after a time.

    Attributes:
        offset (int): its offset.
        timestamp (int): its timestamp, in ms since 1970; -1 for the start and the end of a partition.
        leader_epoch (int): -1 if the broker does not say it.
    """

    offset: int
    timestamp: int = -1
    leader_epoch: int = -1


@dataclass(eq=False, slots=True)
class Query:
    """Offsets that a user asks for. Once `done`, `found` has them; None where no record is that late."""

    left: set[Key]
    found: dict[Key, FoundOffset | None] = field(default_factory=dict)
    error: Exception | None = None
    last_error: Exception | None = None

    @property
    def done(self) -> bool:
        """Whether all offsets are found, or the query has failed."""
        return self.error is not None or not self.left


@dataclass(eq=False, slots=True)
class _Want:
    """A partition's offset, for a query or for the partition's own position."""

    key: Key
    timestamp: int
    query: Query | None = None
    state: PartitionState | None = None
    version: int = 0
    asking: bool = False
    next_at: float = 0.0
    failures: int = 0
    unknown_since: float | None = None

    @property
    def needed(self) -> bool:
        """Whether the answer is still useful."""
        if self.query is not None:
            return not self.query.done
        assert self.state is not None
        return self.state.version == self.version and self.state.sought is not None and not self.state.failing


class OffsetLookup:
    """A machine that finds offsets: for partitions without a position, and for users."""

    def __init__(self, cluster: Cluster, positions: Positions, *, committed: bool, backoff: Backoff) -> None:
        self._cluster = cluster
        self._positions = positions
        self._isolation_level = int(committed)
        self._backoff = backoff
        self._wants: list[_Want] = []
        self._now = 0.0
        self._versions: dict[PartitionState, int] = {}  # of the states that have a want
        self._watch = positions.watch()

    def ask(self, timestamps: Mapping[Key, int]) -> Query:
        """Start to look up offsets by timestamp."""
        query = Query(set(timestamps))
        self._wants += [_Want(key, timestamp, query=query) for key, timestamp in timestamps.items()]
        self._cluster.want({topic for topic, _ in timestamps}, create=False, keep=False)
        return query

    @property
    def topics(self) -> set[str]:
        """The topics whose offsets are not found yet."""
        return {want.key[0] for want in self._wants if want.needed}

    def cancel(self, query: Query) -> None:
        """Stop a query that the user no longer waits for."""
        query.left.clear()

    # A machine

    def poll(self, now: float) -> list[Send]:
        """The requests that are due, one per leader."""
        self._now = now
        self._collect()
        rounds: dict[tuple[int, bool], list[dict[Key, _Want]]] = {}
        for want in self._wants:
            if want.asking or now < want.next_at:
                continue
            leader = self._leader(want)
            if leader is None:
                continue
            found = rounds.setdefault((leader, want.timestamp >= 0), [])
            free = next((asked for asked in found if want.key not in asked), None)
            if free is None:
                found.append({want.key: want})
            else:
                free[want.key] = want
        return [self._send(node, by_time, asked) for (node, by_time), all in rounds.items() for asked in all]

    def next_deadline(self) -> float | None:
        """When to retry next; at once for a partition that has just lost its position."""
        watch = self._watch
        changed = self._positions.partitions.values() if watch.whole else tuple(watch.changed)
        if any(map(self._new, changed)):
            return self._now
        return min((w.next_at for w in self._wants if not w.asking and w.next_at > self._now), default=None)

    def answered(self, send: Send, answer: Answer, now: float) -> None:
        """Take the offsets of an answer."""
        asked: dict[Key, _Want] = dict(send.context)
        for topic in answer.message.topics:
            for entry in topic.partitions:
                want = asked.pop((topic.name, entry.partition_index), None)
                if want is not None:
                    self._take(want, entry, answer.version, now)
        self._again(asked.values(), RemoteProtocolError("the answer to ListOffsets lacks partitions"), now)

    def failed(self, send: Send, error: Exception, now: float) -> None:
        """Retry, unless that cannot help."""
        again: set[_Want] = set()
        if worth_repeating(error):
            self._cluster.refresh()
            most = MOST_BROKEN - 1 if isinstance(error, RemoteProtocolError) else sys.maxsize
            again = {want for want in send.context.values() if want.failures < most}
            self._again(again, error, now)
        for want in send.context.values():
            if want not in again:
                self._refuse(want, error)

    # Steps

    def _collect(self) -> None:
        """Add partitions that need a position, and drop what is no longer needed."""
        changed = self._watch.take()
        partitions = self._positions.partitions
        if self._wants or self._versions:
            self._wants = [want for want in self._wants if want.needed]
            self._versions = {want.state: want.version for want in self._wants if want.state is not None}
        for state in partitions.values() if changed is None else changed:
            if self._new(state) and state.sought is not None and partitions.get(state.key) is state:
                self._wants.append(_Want(state.key, state.sought, state=state, version=state.version))
                self._versions[state] = state.version

    def _new(self, state: PartitionState) -> bool:
        """Whether a partition needs a position that is not being looked up yet."""
        return state.sought is not None and not state.failing and self._versions.get(state) != state.version

    def _leader(self, want: _Want) -> int | None:
        topic = self._cluster.topics.get(want.key[0])
        if topic is not None and topic.refusal is not None:
            self._cluster.refresh()  # it may be another time
            self._refuse(want, topic.refusal(f"topic {want.key[0]!r}: {topic.refusal.name}"))
            return None
        leader = self._cluster.leader(*want.key)
        if leader is None and topic is not None:
            self._cluster.refresh()
            kind = topic.error or error(LEADER_NOT_AVAILABLE)
            why = _why_without_leader(topic, want.key[1])
            self._note(want, kind, why)
            if want.key[1] in topic.partitions:
                self._hold_up(want, kind.code)
            elif want.query is not None and (topic.partitions or topic.error is error(UNKNOWN_TOPIC_OR_PARTITION)):
                want.unknown_since = self._now if want.unknown_since is None else want.unknown_since
                if self._now - want.unknown_since >= UNKNOWN_MS:
                    self._refuse(want, error(UNKNOWN_TOPIC_OR_PARTITION)(why))
        return leader

    def _send(self, node: int, by_time: bool, asked: dict[Key, _Want]) -> Send:
        for want in asked.values():
            want.asking = True
        return Send(node, partial(self._request, by_time, asked), context=asked)

    def _request(self, by_time: bool, asked: dict[Key, _Want], versions: Versions) -> tuple[Any, int]:
        if by_time:  # version 0 has only the start offsets of segments
            theirs = versions.get(LIST_OFFSETS, range(0))
            version = highest_common(
                LIST_OFFSETS, {LIST_OFFSETS: range(max(_FIRST_BY_TIME, theirs.start), theirs.stop)}
            )
        else:
            version = highest_common(LIST_OFFSETS, versions)
        kind = messages.ListOffsetsRequest
        topics: dict[str, list[Any]] = {}
        for (topic, number), want in asked.items():
            known = self._cluster.partition(topic, number)
            entry = kind.ListOffsetsPartition(
                partition_index=number,
                current_leader_epoch=-1 if known is None else known.leader_epoch,
                timestamp=want.timestamp,
            )
            topics.setdefault(topic, []).append(entry)
        entries = [kind.ListOffsetsTopic(name=name, partitions=partitions) for name, partitions in topics.items()]
        return client_request(kind, isolation_level=self._isolation_level, topics=entries), version

    def _take(self, want: _Want, entry: Any, version: int, now: float) -> None:
        if entry.error_code == UNSUPPORTED_FOR_MESSAGE_FORMAT:  # records without timestamps
            self._found(want, None)
        elif entry.error_code:
            refusal = error(entry.error_code)
            if refusal.retriable or refusal.stale_metadata:  # as Java's client, whatever it is
                self._cluster.refresh()
            problem = refusal(f"{want.key[0]}-{want.key[1]}: {refusal.name}")
            if refusal.retriable or entry.error_code == _UNKNOWN:
                self._again([want], problem, now)
                self._hold_up(want, entry.error_code)
            else:
                self._refuse(want, problem)
        elif version < _FIRST_BY_TIME:
            offsets = entry.old_style_offsets
            self._found(want, FoundOffset(offsets[0]) if offsets else None)
        else:
            known = entry.offset >= 0
            self._found(want, FoundOffset(entry.offset, entry.timestamp, entry.leader_epoch) if known else None)

    def _found(self, want: _Want, found: FoundOffset | None) -> None:
        if not want.needed:
            return
        if want.query is not None:
            want.query.left.discard(want.key)
            want.query.found[want.key] = found
        elif want.state is not None and found is not None:
            self._positions.found(want.state, Position(found.offset, found.leader_epoch))
        elif want.state is not None:
            self._positions.none_found(want.state)

    def _again(self, wants: Iterable[_Want], problem: Exception, now: float) -> None:
        for want in wants:
            want.asking = False
            want.failures += 1
            want.next_at = now + self._backoff.after(want.failures)
            if want.query is not None:
                want.query.last_error = problem

    def _note(self, want: _Want, refusal: Any, text: str) -> None:
        if want.query is not None:
            want.query.last_error = refusal(text)

    def _hold_up(self, want: _Want, code: int) -> None:
        what = f"the {'offset' if want.state is None else 'position'} in {want.key[0]}-{want.key[1]} is not found"
        self._cluster.hindrances.refused(what, code, self._now)

    def _refuse(self, want: _Want, problem: Exception) -> None:
        if not want.needed:
            return
        if want.query is not None:
            want.query.error = problem
        elif want.state is not None:
            self._positions.fail(want.state, problem)


def _why_without_leader(topic: Topic, number: int) -> str:
    if not topic.partitions and topic.error is error(UNKNOWN_TOPIC_OR_PARTITION):
        return f"topic {topic.name!r} does not exist"
    if not topic.partitions and topic.error is not None:
        return f"{topic.name}-{number} has no known leader: {topic.error.name}"
    if topic.partitions and number not in topic.partitions:
        return f"topic {topic.name!r} has no partition {number}: its highest is {max(topic.partitions)}"
    return f"{topic.name}-{number} has no known leader"
