"""The fetches under way to one broker: at most one of all that it has, and one beside it for what cannot wait for that.

A broker answers a fetch at the ends of partitions when records come, or when its wait is over. A position that was
sought meanwhile is fetched beside it, over another connection and without a session. That waits no longer than the
first one does, so that both come together again; and in small steps first, since who has sought may do so again: what
is given up holds a connection until its wait is over.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field

from kafkacodec.client.consuming.positions import Key, PartitionState, Position
from kafkacodec.client.consuming.session import FetchSession, Wanted
from kafkacodec.client.core.calls import Send

__all__ = ["Contents", "FetchNode", "Look", "Round"]

_FIRST_PATIENCE_MS = 2.0


@dataclass(eq=False, slots=True)
class Round:
    """One request to a broker, and what it asks for, which are `max_bytes` at most.

    Attributes:
        wait_ms: how long the broker may wait for records; 0 brings only what is there.
        aside: it is the one beside the other, without a session.
        until: when its wait ends, once it is written; else None.
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
        """Whether it asks for the position where the partition is to be fetched now."""
        found = self.asked.get(state.key)
        return found is not None and found[0] is state and found[1] == state.version and found[2] == state.fetching


@dataclass(frozen=True, slots=True)
class Contents:
    """What a request asks for, `least_bytes` at least, in a version up to `most`; not changed once it is made."""

    wanted: dict[Key, Wanted]
    asked: dict[Key, tuple[PartitionState, int, Position]]
    names: dict[uuid.UUID, str]
    least_bytes: int
    most: int


@dataclass(eq=False, slots=True)
class Look:
    """What a look at all partitions has found.

    Attributes:
        sources: the partitions that are to be fetched, by broker.
        contents: the requests for them, by broker and its version of Fetch.
        kept: something of them is kept for the user.
        passes: it holds only for the moment, since some of it depends on the time.
        at: the changes of positions and cluster while it holds; None if it does not.
    """

    sources: dict[int, list[PartitionState]] = field(default_factory=dict)
    contents: dict[tuple[int, int], Contents] = field(default_factory=dict)
    kept: bool = False
    passes: bool = False
    at: tuple[int, int] | None = None


@dataclass(eq=False, slots=True)
class FetchNode:
    """What is known of fetching from a broker.

    Attributes:
        asking: the fetch of all that it has; None if none is under way.
        beside: the one beside that.
        patience_ms: how long the next one beside that may wait.
    """

    session: FetchSession = field(default_factory=FetchSession)
    asking: Round | None = None
    beside: Round | None = None
    patience_ms: float = _FIRST_PATIENCE_MS
    failures: int = 0
    next_at: float = 0.0
    kept_bytes: int = 0

    def landed(self, asked: Round) -> bool:
        """A fetch is over; returns whether it was still of use."""
        if asked is self.asking:
            self.asking = None
        elif asked is self.beside:
            self.beside = None
        else:
            return False
        return True

    def not_beside(self, states: Iterable[PartitionState], now: float) -> list[PartitionState]:
        """The partitions for the fetch of all: without those that the other one brings or waits for."""
        beside = self.beside
        if beside is None or beside.until is None or (beside.wait_ms and now >= beside.until):
            return list(states)
        return [state for state in states if not beside.has(state)]

    def not_asking(self, states: Iterable[PartitionState]) -> list[PartitionState]:
        """The partitions for the fetch beside that of all."""
        return [state for state in states if self.asking is None or not self.asking.has(state)]

    def missed(self, states: Iterable[PartitionState]) -> list[PartitionState]:
        """The partitions that no fetch under way asks for."""
        return [s for s in self.not_asking(states) if self.beside is None or not self.beside.has(s)]

    def wait_left(self, now: float) -> float | None:
        """How long the fetch of all will still wait, in ms; None while it is not decided what it asks for."""
        if self.asking is None or self.asking.until is None:
            return None
        return max(self.asking.until - now, 0.0)

    def give_up_beside(self) -> None:
        """Have no use for the fetch beside the other one any more."""
        if self.beside is not None and self.beside.send is not None:
            self.beside.send.given_up = True
            self.patience_ms = _FIRST_PATIENCE_MS
        self.beside = None

    def answered_beside(self, useful: bool) -> None:
        """It brought records, or waited in vain."""
        self.patience_ms = _FIRST_PATIENCE_MS if useful else 2 * self.patience_ms
