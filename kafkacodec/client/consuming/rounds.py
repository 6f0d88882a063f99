"""The fetches under way to one broker: a main fetch of all partitions, and one beside it for what cannot wait.

A broker answers a fetch at the ends of partitions when records arrive, or when its wait is over. After a seek, the new
position is fetched beside it, over another connection and without a session. That fetch waits no longer than the main
one, so that one fetch serves both again; and its first waits are short, since another seek may follow and an abandoned
fetch holds a connection until its wait is over.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable

from kafkacodec.client.consuming.positions import Key, PartitionState, Position
from kafkacodec.client.consuming.session import FetchSession, Wanted
from kafkacodec.client.core.calls import Send
from kafkacodec.datatypes import NamedTuple, dataclass, field

__all__ = ["Contents", "FetchNode", "Round"]

_FIRST_PATIENCE_MS = 2.0


@dataclass(eq=False, slots=True)
class Round:
    """One request to a broker for at most `max_bytes`.

    Attributes:
        wait_ms: how long the broker may wait for records; 0 brings only what is there.
        aside: whether it is the fetch beside the main one, without a session.
        until: when its wait ends; None before it is written.
    """

    node: int
    max_bytes: int
    wait_ms: float
    aside: bool = False
    until: float | None = None
    send: Send | None = None
    asked: dict[Key, tuple[PartitionState, int, Position]] = field(default_factory=dict)
    names: dict[uuid.UUID, str] = field(default_factory=dict)

    def has(self, state: PartitionState) -> bool:
        """Whether it fetches the partition from its current position."""
        found = self.asked.get(state.key)
        return found is not None and found[0] is state and found[1] == state.version and found[2] == state.fetching


class Contents(NamedTuple):
    """The contents of a request for at least `least_bytes`, in a version up to `most`. Immutable."""

    wanted: dict[Key, Wanted]
    asked: dict[Key, tuple[PartitionState, int, Position]]
    names: dict[uuid.UUID, str]
    least_bytes: int
    most: int


@dataclass(eq=False, slots=True)
class FetchNode:
    """The state of fetching from one broker.

    Attributes:
        asking: the main fetch; None if none is under way.
        beside: the fetch beside it.
        patience_ms: how long the next fetch beside it may wait.
    """

    session: FetchSession = field(default_factory=FetchSession)
    asking: Round | None = None
    beside: Round | None = None
    patience_ms: float = _FIRST_PATIENCE_MS
    failures: int = 0
    next_at: float = 0.0
    kept_bytes: int = 0

    @property
    def answers_soon(self) -> bool:
        """Whether an answer without a wait is under way; everything is looked at again when it comes."""
        return self.asking is not None and not self.asking.wait_ms

    def landed(self, asked: Round) -> bool:
        """End a fetch; returns whether its answer is still useful."""
        if asked is self.asking:
            self.asking = None
        elif asked is self.beside:
            self.beside = None
        else:
            return False
        return True

    def not_beside(self, states: Collection[PartitionState], now: float) -> Collection[PartitionState]:
        """The partitions for the main fetch, without those of the fetch beside it."""
        beside = self.beside
        if beside is None or beside.until is None or (beside.wait_ms and now >= beside.until):
            return states
        return [state for state in states if not beside.has(state)]

    def not_asking(self, states: Iterable[PartitionState]) -> list[PartitionState]:
        """The partitions for the fetch beside the main one."""
        return [state for state in states if self.asking is None or not self.asking.has(state)]

    def missed(self, states: Iterable[PartitionState]) -> list[PartitionState]:
        """The partitions that no fetch under way includes."""
        return [s for s in self.not_asking(states) if self.beside is None or not self.beside.has(s)]

    def wait_left(self, now: float) -> float | None:
        """How long the main fetch will still wait, in ms; None before it is written."""
        if self.asking is None or self.asking.until is None:
            return None
        return max(self.asking.until - now, 0.0)

    def give_up_beside(self) -> None:
        """Abandon the fetch beside the main one."""
        if self.beside is not None and self.beside.send is not None:
            self.beside.send.given_up = True
            self.patience_ms = _FIRST_PATIENCE_MS
        self.beside = None

    def answered_beside(self, useful: bool) -> None:
        """Adapt the next wait: short after records, longer after none."""
        self.patience_ms = _FIRST_PATIENCE_MS if useful else 2 * self.patience_ms
