"""The Kafka protocol as a service: finds the function of a request's API, and wakes what waits."""

from __future__ import annotations

from collections.abc import Iterable
from time import perf_counter
from typing import TYPE_CHECKING, Any

from kafkacodec.broker.kafka.apis import TABLE
from kafkacodec.broker.kafka.clustering.coordinators import elsewhere
from kafkacodec.broker.kafka.faults import Faults
from kafkacodec.broker.kafka.frozen import refused as refused_by_frozen
from kafkacodec.broker.kafka.security.enforcing import enforced
from kafkacodec.broker.kafka.security.peers import ANONYMOUS
from kafkacodec.messages import keys
from kafkacodec.net.service import NOTHING, Effect, Reply, together
from kafkacodec.net.tls import distinguished_name

if TYPE_CHECKING:
    from kafkacodec.broker.clock import Clock
    from kafkacodec.broker.kafka.node import Node
    from kafkacodec.broker.kafka.request import Request

__all__ = ["KafkaService"]


class KafkaService:
    """A `kafkacodec.net.service.Service` for clients of Kafka.

    Tokens of appends are functions: ``token(result, error, now)`` returns what follows.

    Its host passes the host's time; coordinators and logs use the broker's clock.

    Args:
        node: the broker.
        clock: the broker's.

    Attributes:
        faults: the injected faults.
    """

    def __init__(self, node: Node, clock: Clock) -> None:
        self._node, self._clock, self._time = node, clock, clock.__call__  # the method is found once
        node.clock = clock.now
        self._alarm = node.waiting.alarm
        self._deadline: float | None = None  # the earliest when the alarm was last rung
        self.faults = Faults(node, self._answer)

    def receive(self, request: Request, session: Any, to: Any, now: float) -> Effect:
        """Answer a request, or keep it until it can be answered."""
        request.session, request.to, request.received = session, to, now
        brokers, peer = self._node.brokers, request.peer
        request.broker = brokers.of(session) if brokers.several else brokers.ids[0]
        if peer.certified:
            peer.certified = False
            name = distinguished_name(session.certificate)
            peer.principal = f"User:{name}" if name else ANONYMOUS
        faults = self.faults
        injects = faults.rules or faults.lines or faults.paused
        return faults.receive(request) if injects else self._answer(request)

    def _answer(self, request: Request) -> Effect:
        node = self._node
        request.now = node.shares.now = self._time(request.received)
        login = request.peer.login
        if login is not None:
            refused: Effect | None = login.receive(request)
            if refused is not None:
                return refused
        if node.frozen:
            wrong = refused_by_frozen(node, request)
            if wrong is not None:
                return Effect((), (Reply(request.to, wrong),))
        if node.brokers.several:
            away = elsewhere(node, request)
            if away is not None:
                return Effect((), (Reply(request.to, away),))
        if node.authorizes:
            return enforced(node, request, self._carry_out)
        return self._carry_out(request)

    def _carry_out(self, request: Request) -> Effect:
        login = request.peer.login
        answer = TABLE[request.key].answer
        if self._node.catalog.quotas:
            began = perf_counter()
            found = answer(self._node, request)
            request.spent = perf_counter() - began
        else:
            found = answer(self._node, request)
        if login is not None and request.key == keys.API_VERSIONS:
            login.answered_versions(found)
        if found is None:
            return NOTHING
        return found if isinstance(found, Effect) else Effect((), (Reply(request.to, found),))

    def disconnected(self, session: Any, now: float) -> Effect:
        """Forget the waiting requests of a session."""
        self._node.waiting.forget(session)
        self.faults.forget(session)
        time = self._time(now)
        effect: Effect = self._node.shares.disconnected(session, time)
        return effect

    def tick(self, now: float) -> Effect:
        """Do what is due."""
        if self.faults.paused:
            return NOTHING
        self._alarm.ring()
        time = self._node.shares.now = self._time(now)
        shares = self._node.shares.partitions
        effects = [
            self.faults.due(now),
            self._node.later.due(now),
            self._node.waiting.due(now),
            self._node.topics.due(time),
            shares.due(time),
        ]
        for machine in self._node.running:
            deadline = machine.next_deadline()
            if deadline is not None and deadline <= time:
                effects.append(self._node.routed(machine, machine.tick(time)))
        return together(effects)

    def next_deadline(self) -> float | None:
        """Return when `tick` is needed."""
        if self.faults.paused:
            return None
        if not self._alarm.rung:
            return self._deadline
        self._alarm.rung = False
        node = self._node
        shared = node.shares.partitions.next_deadline()
        of_clock = [node.topics.next_deadline(), shared, *[machine.next_deadline() for machine in node.running]]
        first = _earliest(of_clock)
        of_host = None if first is None else self._clock.of_host(first)
        waits = (self.faults.next_deadline(), node.later.next_deadline(), node.waiting.next_deadline())
        self._deadline = _earliest([*waits, of_host])
        return self._deadline

    def appended(self, token: Any, result: Any, now: float) -> Effect:
        """Continue after an append, and answer requests that wait for its records."""
        time = self._node.shares.now = self._time(now)
        effect: Effect = token(result, None, time)
        if not self._node.waiting.touched:
            return effect
        return together([effect, self.woken(now)])

    def woken(self, now: float) -> Effect:
        """Answer requests whose records are there now."""
        return NOTHING if self.faults.paused else self._node.waiting.woken(now)

    def not_appended(self, token: Any, error: Exception, now: float) -> Effect:
        """Answer failed appends."""
        effect: Effect = token(None, error, self._time(now))
        return effect


def _earliest(deadlines: Iterable[float | None]) -> float | None:
    first = None
    for deadline in deadlines:
        if deadline is not None and (first is None or deadline < first):
            first = deadline
    return first
