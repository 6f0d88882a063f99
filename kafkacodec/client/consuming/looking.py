"""The partitions to fetch and their brokers, recomputed only for changed partitions."""

from __future__ import annotations

from collections.abc import Iterable

from kafkacodec.client.consuming.fetch_errors import FetchErrors
from kafkacodec.client.consuming.positions import NO_END, PartitionState, Positions
from kafkacodec.client.consuming.rounds import Contents
from kafkacodec.client.consuming.settings import ConsumerSettings
from kafkacodec.client.consuming.validation import Validation
from kafkacodec.client.core.cluster import Cluster
from kafkacodec.datatypes import dataclass, field

__all__ = ["Look", "Looking"]


@dataclass(eq=False, slots=True)
class Look:
    """The state of all partitions.

    Attributes:
        sources: the partitions to fetch, by broker.
        nodes: the broker of each of them.
        kept: partitions with fetched records for the user.
        ahead: partitions whose broker has more records, as far as known.
        passing: partitions that depend on the time, to check each time.
        contents: the last request for all partitions of a broker, with its version of Fetch.
        changed: the partitions of a broker that were checked since that request.
    """

    sources: dict[int, dict[PartitionState, None]] = field(default_factory=dict)
    nodes: dict[PartitionState, int] = field(default_factory=dict)
    kept: set[PartitionState] = field(default_factory=set)
    ahead: set[PartitionState] = field(default_factory=set)
    passing: set[PartitionState] = field(default_factory=set)
    contents: dict[int, tuple[int, Contents]] = field(default_factory=dict)
    changed: dict[int, dict[PartitionState, None]] = field(default_factory=dict)

    def put(self, state: PartitionState, node: int | None) -> None:
        """Note the broker of a partition; None if it is not to be fetched."""
        before = self.nodes.pop(state, None)
        if before is not None and before != node:
            del self.sources[before][state]
            if not self.sources[before]:
                del self.sources[before]
            self.changed.setdefault(before, {})[state] = None
        if node is not None:
            self.nodes[state] = node
            self.sources.setdefault(node, {})[state] = None
            self.changed.setdefault(node, {})[state] = None


class Looking:
    """Checks partitions.

    Args:
        cluster, positions, validation, errors, settings: the parts of the same consumer.
    """

    def __init__(
        self,
        cluster: Cluster,
        positions: Positions,
        validation: Validation,
        errors: FetchErrors,
        settings: ConsumerSettings,
    ) -> None:
        self._cluster, self._positions, self._validation, self._errors = cluster, positions, validation, errors
        self._committed = settings.isolation_level == "read_committed"
        self._watch = positions.watch()
        self._generation = -1
        self._look = Look()

    def look(self, now: float) -> Look:
        """Return the current state."""
        changed, generation = self._watch.take(), self._cluster.generation
        states: Iterable[PartitionState]
        if changed is None or generation != self._generation:
            self._look, self._generation = Look(), generation
            states = self._positions.partitions.values()
        else:
            states = {**changed, **dict.fromkeys(self._look.passing)}
        for state in states:
            self._look_at(state, now)
        return self._look

    def node(self, state: PartitionState) -> int | None:
        """The broker of a partition at the last look; None if it was not to be fetched."""
        return self._look.nodes.get(state)

    @property
    def waiting(self) -> Iterable[PartitionState]:
        """Return partitions that may have a time to wait for."""
        if self._watch.whole or self._generation != self._cluster.generation:
            return self._positions.partitions.values()
        return {*self._look.passing, *tuple(self._watch.changed)}

    def at_end(self, state: PartitionState) -> bool:
        """Whether the broker has no more records of the partition, as far as known."""
        if state.fetching is None or state.fetching is state.empty_at:
            return True
        committed = self._committed and state.last_stable_offset >= 0
        end = state.last_stable_offset if committed else state.high_watermark
        return 0 <= end <= state.fetching.offset

    def source(self, state: PartitionState, now: float) -> int | None:
        """The broker to fetch a partition from; None if it must not be fetched now."""
        if state.fetching is None or state.paused or state.draining or state.failing or now < state.next_at:
            return None
        if state.fetching.offset >= state.end != NO_END or (state.first_bytes and state.kept):
            return None
        leader = self._cluster.leader(state.topic, state.number)
        if leader is None:
            self._look.passing.add(state)
            self._errors.no_leader(state, now)
            return None
        topic_id = self._cluster.topic_id(state.topic)
        if state.topic_id is None:
            state.topic_id = topic_id
        if topic_id is not None and topic_id != state.topic_id:
            self._errors.created_again(state)
            return None
        if self._validation.pending(state):
            return None
        if state.preferred is not None:
            if now < state.preferred_until and self._cluster.address(state.preferred) is not None:
                return state.preferred
            state.preferred = None
        return leader

    def _look_at(self, state: PartitionState, now: float) -> None:
        look = self._look
        look.passing.discard(state)
        if self._positions.partitions.get(state.key) is not state:
            return  # it was assigned: all are looked at then
        look.put(state, self.source(state, now))
        if state.failures or now < state.next_at or state.preferred is not None:
            look.passing.add(state)
        for known, holds in ((look.kept, bool(state.kept)), (look.ahead, not self.at_end(state))):
            if holds:
                known.add(state)
            else:
                known.discard(state)
