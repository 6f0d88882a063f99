"""One broker as the driver sees it: its connection, its waiting requests, the time of the next attempt."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from kafkacodec.client.core.backoff import Backoff
from kafkacodec.client.core.calls import Answer, Machine, Send
from kafkacodec.client.driver.link import Link
from kafkacodec.datatypes import dataclass, field
from kafkacodec.errors import AuthenticationFailed, ConnectionFailed
from kafkacodec.messages import APIS
from kafkacodec.messages.keys import JOIN_GROUP, SYNC_GROUP

__all__ = ["COORDINATION", "Flight", "Node"]

COORDINATION = -1
"""The lane of requests to coordinators."""

_TAKE_TIME: Final = frozenset({JOIN_GROUP, SYNC_GROUP})  # they wait for other members


@dataclass(eq=False, slots=True)
class Flight:
    """A send in progress: it waits for its broker to be known, a connection or an answer; then it is `over`.

    Attributes:
        outcome: the outcome of a request without an answer, once it has left this process.
    """

    send: Send
    machine: Machine
    wait_ms: float
    deadline: float
    node: Node | None = None
    correlation_id: int | None = None
    sent_at: float = 0.0
    api_key: int = -1
    size: int = 0
    over: bool = False
    outcome: Answer | None = None

    @property
    def written(self) -> bool:
        """Whether the broker may have received the request."""
        return self.correlation_id is not None


@dataclass(eq=False, slots=True)
class Node:
    """A broker, or its second connection for coordination: a waiting fetch must not hold up heartbeats.

    Attributes:
        waiting: requests that are not written yet.
        in_flight: unanswered requests by correlation id.
        failures: the number of consecutive connections that failed to open.
        retry_at: the earliest time of the next connection.
        muted_until: the earliest time of the next request, as the broker throttles (KIP-219).
        quiet_until: the earliest time of the next warning that it is slow.
        connecting_since: when the connection that is being opened was begun.
        accepted: whether somebody at the address has accepted it.
        overdue: whether the connection is being closed because of a late answer.
        error: why the last connection failed to open, or ended with unanswered requests; None after a success.
    """

    number: int
    lane: int
    link: Link | None = None
    connecting: asyncio.Task[None] | None = None
    waiting: deque[Flight] = field(default_factory=deque)
    in_flight: dict[int, Flight] = field(default_factory=dict)
    failures: int = 0
    retry_at: float = 0.0
    muted_until: float = 0.0
    used_at: float = 0.0
    quiet_until: float = 0.0
    connecting_since: float = 0.0
    accepted: bool = False
    overdue: bool = False
    error: Exception | None = None

    @property
    def ready(self) -> bool:
        """Whether requests can be written."""
        return self.link is not None and self.link.ready

    @property
    def refused(self) -> AuthenticationFailed | None:
        """Why the broker refused this client; reported until `retry_at`."""
        return self.error if isinstance(self.error, AuthenticationFailed) else None

    @property
    def load(self) -> int:
        """The number of requests that wait or are in flight."""
        return len(self.waiting) + len(self.in_flight)

    @property
    def held(self) -> bool:
        """Whether an earlier request may delay the answer to the next one."""
        for flights in (self.in_flight.values(), self.waiting):  # asked for each request: any() would call a generator
            for flight in flights:
                if flight.send.holds and not flight.over:
                    return True
        return False

    @property
    def awaited(self) -> tuple[float, str] | None:
        """Since when an answer is waited for that should come at once, and which; None if there is none."""
        if self.connecting is not None:
            return self.connecting_since, "connected, but no answer" if self.accepted else "no connection"
        first = next(iter(self.in_flight.values()), None)
        if first is None or first.over or first.send.holds or first.api_key in _TAKE_TIME:
            return None
        return first.sent_at, f"no answer to {APIS[first.api_key].name}"

    @property
    def given_up(self) -> bool:
        """Whether none of the outstanding answers of this connection is needed."""
        return bool(self.load) and all(f.over or f.send.given_up for f in (*self.in_flight.values(), *self.waiting))

    def opened(self, now: float) -> None:
        """Record that the connection is ready."""
        self.failures, self.error, self.used_at = 0, None, now

    def not_opened(self, error: Exception, backoff: Backoff, now: float) -> None:
        """Record that the connection failed to open, and schedule the next one."""
        self.failures += 1
        self.error = error
        # Settings do not change, so a refusal leads to the longest wait at once.
        self.retry_at = now + (backoff.most_ms if self.refused else backoff.after(self.failures))

    def close_idle(self) -> None:
        """Close an unused connection without reporting it."""
        link, self.link = self.link, None
        if link is not None:
            link.close(ConnectionFailed(f"{link.name}: idle"))

    def take_sent(self) -> list[Flight]:
        """Remove and return the requests without answers that have left this process."""
        if self.link is None or self.link.draining:
            return []
        sent = [number for number, flight in self.in_flight.items() if flight.outcome is not None]
        return [self.in_flight.pop(number) for number in sent]

    def take_all(self) -> list[Flight]:
        """Remove and return all requests, those in flight first."""
        flights = [*self.in_flight.values(), *self.waiting]
        self.in_flight.clear()
        self.waiting.clear()
        return flights
