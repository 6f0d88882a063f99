"""Requests in progress: routed to a broker, sent over a connection, until the answer or the time limit."""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

from kafkacodec.client.core.backoff import Backoff
from kafkacodec.client.core.calls import ANY, Answer, Coordinator, Machine, Place, Send, prepared
from kafkacodec.client.core.cluster import Cluster
from kafkacodec.client.core.metadata import BrokerAddress
from kafkacodec.client.core.metrics import Metrics
from kafkacodec.client.core.old_brokers import throttles_late
from kafkacodec.client.driver.connecting import Connector
from kafkacodec.client.driver.node import COORDINATION, Flight, Node
from kafkacodec.client.driver.nodes import SLOW_MS, Nodes
from kafkacodec.client.driver.quiet import QUIET_MS, Quiet
from kafkacodec.client.options import ClientSettings
from kafkacodec.errors import ConnectionFailed, DeadlineExceeded, KafkaCodecError
from kafkacodec.net.frames import Frame

if TYPE_CHECKING:
    from kafkacodec.protocol.connection import ResponseReceived

__all__ = ["Traffic"]

_log = logging.getLogger("kafkacodec.client")


class Traffic:
    """The flights of one network and their connections.

    Args:
        settings: the client's.
        cluster: resolves destinations.
        metrics: the metrics to update.
        clock: the time in ms.
        runs: whether a machine still runs; nothing is sent for others.
        landed: called once for each flight, with its answer or the reason why there is none.
        wake: requests another `step` soon.
    """

    def __init__(
        self,
        settings: ClientSettings,
        cluster: Cluster,
        metrics: Metrics,
        *,
        clock: Callable[[], float],
        runs: Callable[[Machine], bool],
        landed: Callable[[Flight, Answer | Exception], None],
        wake: Callable[[], None],
    ) -> None:
        self._settings, self._cluster, self._metrics = settings, cluster, metrics
        self._clock, self._runs, self._landed, self._wake = clock, runs, landed, wake
        self._connector = Connector(settings, clock)
        self._reconnect = Backoff(settings.reconnect_backoff_ms, settings.reconnect_backoff_max_ms)
        self._nodes = Nodes(cluster, settings.connections_max_idle_ms)
        self._unrouted: list[Flight] = []
        self._deadlines: list[tuple[float, int, Flight]] = []
        self._most_deadlines = 64
        self._numbers = count()
        self._quiet = Quiet()
        self._closed = self._reached = False
        metrics.gauge("connections", lambda: sum(node.ready for node in self._nodes))

    def submit(self, send: Send, machine: Machine, now: float) -> Flight:
        """Start a request, which `write` or `step` writes."""
        flight = self._begun(send, machine, now)
        self._route(flight, now)
        return flight

    def _begun(self, send: Send, machine: Machine, now: float) -> Flight:
        wait_ms = self._settings.request_timeout_ms if send.timeout_ms is None else send.timeout_ms
        flight = Flight(send, machine, wait_ms, now + wait_ms)
        heapq.heappush(self._deadlines, (flight.deadline, next(self._numbers), flight))
        if len(self._deadlines) > self._most_deadlines:
            self._forget_landed()
        return flight

    def adopt(
        self, node: Node, send: Send, machine: Machine, number: int, sent_at: float, size: int, rest: bytes | None
    ) -> Flight:
        """Wait for the answer to a request that was written past the loop."""
        assert node.link is not None
        flight = self._begun(send, machine, sent_at)
        message, version = prepared(send.request, node.link.opening.versions)
        flight.node, flight.correlation_id, flight.sent_at, flight.size = node, number, sent_at, size
        flight.api_key = message.api_key or 0
        node.in_flight[number] = flight
        node.link.adopt(number, message, version, rest)
        return flight

    def free_node(self, number: int) -> Node:
        """Where the next request to a broker goes."""
        return self._nodes.free(number)

    def write(self, flight: Flight, now: float) -> bool:
        """Write a request now if its connection takes it; returns whether it did. If not, a `step` is needed."""
        node = flight.node
        if node is None or node.link is None or not node.link.ready:
            return False
        self._write(node, now)
        return not node.waiting

    def _forget_landed(self) -> None:
        """Free flights that are over, with their requests, even if an earlier one has not reached its time limit."""
        self._deadlines = [entry for entry in self._deadlines if not entry[2].over]
        heapq.heapify(self._deadlines)
        self._most_deadlines = 2 * len(self._deadlines) + 64

    def step(self, now: float) -> None:
        """Write requests, open connections, and end requests that took too long."""
        self._expire(now)
        waiting, self._unrouted = self._unrouted, []
        for flight in waiting:
            if self._cluster.refused is not None:
                self._land(flight, self._cluster.refused)
            elif not self._dropped(flight):
                self._route(flight, now)
        for node in self._nodes:
            if node.waiting:
                if node.link is not None and node.link.ready:
                    self._write(node, now)
                else:
                    self._pump(node, now)
            if now >= self._nodes.slow_at and (node.in_flight or node.connecting is not None):
                self._tell_slow(node, now)
        self._nodes.close_idle(now)

    def next_deadline(self, now: float) -> float:
        """When a step is needed; infinite for never."""
        first = self._nodes.next_deadline(now)
        if self._deadlines and self._deadlines[0][0] < first:
            return self._deadlines[0][0]
        return first

    async def close(self, reason: Exception) -> None:
        """End all flights with `reason`, and all connections."""
        tasks = self.abort(reason)
        if tasks:
            await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # lets the loop close the sockets

    def abort(self, reason: Exception) -> list[asyncio.Task[None]]:
        """Like `close`, without waiting for the ending tasks, which it returns."""
        self._closed = True
        left, self._unrouted = self._unrouted, []
        tasks = self._connector.close()
        for node in self._nodes:
            left += node.take_all()
            if node.connecting is not None:
                node.connecting.cancel()
                tasks.append(node.connecting)
            if node.link is not None:
                node.link.close(reason)
        for flight in left:
            self._land(flight, reason)
        return tasks

    # To a broker

    def _route(self, flight: Flight, now: float) -> None:
        """Queue a flight for its broker, or keep it until the broker is known."""
        place = flight.send.to
        if place is ANY:
            flight.node = self._nodes.any(now)
            flight.node.waiting.append(flight)
            return
        refusal = self._cluster.coordinators.refusal(place) if isinstance(place, Coordinator) else None
        if refusal is not None and isinstance(place, Coordinator):
            self._cluster.coordinators.forget(place)
            self._land(flight, refusal)
            return
        number = self._cluster.node_of(place)
        if number is not None:
            flight.node = self._lane(number, place)
            flight.node.waiting.append(flight)
        elif isinstance(place, int) and self._cluster.brokers:
            self._cluster.refresh()
            self._land(flight, ConnectionFailed(f"broker {place} is not in the cluster's metadata"))
        else:
            self._unrouted.append(flight)  # the cluster asks, and its answer wakes the network

    def _lane(self, number: int, place: Place) -> Node:
        """The connection for a request. Closes one whose answers are no longer needed."""
        if isinstance(place, Coordinator):
            return self._nodes.get(number, COORDINATION)
        node = self._nodes.free(number)
        if (node.in_flight or node.waiting) and node.held and node.given_up:
            node.close_idle()
            for flight in node.take_all():
                if not flight.over:
                    flight.over = True
                    self._landed(flight, ConnectionFailed(f"{self._named(node)}: given up", sent=True))
        return node

    def _pump(self, node: Node, now: float) -> None:
        """Connect for requests that wait, or give them up."""
        if now < node.retry_at and (reason := node.refused or self._cluster.absence.reason):
            self._land_all(node, reason)
        elif node.connecting is None and node.link is None and now >= node.retry_at:
            self._connect(node)

    def _write(self, node: Node, now: float) -> None:
        link, most = node.link, self._settings.max_in_flight_requests_per_connection
        while node.waiting and link is not None and link.ready and not link.draining and now >= node.muted_until:
            if len(node.in_flight) >= most:
                return
            flight = node.waiting.popleft()
            if flight.over or not self._runs(flight.machine):
                flight.over = True
                continue
            try:
                message, version = prepared(flight.send.request, link.opening.versions)
                number, flight.size, answered = link.send(message, version)
            except Exception as error:  # any problem with the request is reported to its sender
                self._land(flight, error)
                continue
            node.used_at = flight.sent_at = now
            flight.correlation_id = number
            flight.api_key = message.api_key or 0
            node.in_flight[number] = flight
            if not answered:
                flight.outcome = Answer(None, version, node.number, request=message)
                self._land_sent(node)

    def _dropped(self, flight: Flight) -> bool:
        """Whether a request need no longer be written: it has timed out, or nothing waits for it."""
        flight.over = flight.over or not self._runs(flight.machine)
        return flight.over

    def _connect(self, node: Node) -> None:
        address = self._cluster.address(node.number)
        if address is None:
            self._land_all(node, ConnectionFailed(f"broker {node.number} is not in the cluster's metadata"))
            return
        loop = asyncio.get_running_loop()
        node.connecting = loop.create_task(self._open(node, address), name=f"connect to {address.host}:{address.port}")
        node.connecting_since, node.accepted = self._clock(), False
        node.connecting.add_done_callback(lambda task: self._given_up(node, task))

    def _given_up(self, node: Node, task: asyncio.Task[None]) -> None:
        """Handle the end of a connecting task that was cancelled, or whose token provider called sys.exit()."""
        if node.connecting is task:
            node.connecting = None
            reason = "cancelled" if task.cancelled() else repr(task.exception())
            error = ConnectionFailed(f"{self._named(node)}: {reason}")
            self._failed(node, error)
            self._broken(node, error)

    def _accepted(self, node: Node) -> None:
        node.accepted = True
        self._cluster.absence.accepted(node.number)

    async def _open(self, node: Node, address: BrokerAddress) -> None:
        """Connect to a broker; on failure all its waiting requests fail."""
        try:
            link = await self._connector.connect(
                address,
                accepted=partial(self._accepted, node),
                answered=partial(self._received, node),
                ended=lambda link, reason: self._lost(node, link, reason),
                resumed=lambda: self._resumed(node),
            )
        except Exception as problem:  # any error leads to the next attempt
            name = f"broker {address.host}:{address.port}"
            error = problem if isinstance(problem, KafkaCodecError) else ConnectionFailed(f"{name}: {problem}")
            error.__cause__ = error.__cause__ if error is problem else problem
            node.connecting = None
            self._failed(node, error)
            self._broken(node, error)
            return
        _log.debug("%s: connected", link.name)
        node.connecting, node.link = None, link
        node.opened(self._clock())
        self._metrics.counter("connections_opened").add()
        self._wake()

    # From a broker

    def _received(self, node: Node, event: ResponseReceived, frame: Frame) -> None:
        if not self._reached:
            self._reached = True
            self._cluster.absence.reached()
        flight = node.in_flight.pop(event.correlation_id, None)
        if flight is None or flight.over:
            return
        now = self._clock()
        throttle_ms = getattr(event.message, "throttle_time_ms", 0)
        if throttle_ms > 0:
            if node.link is None or not throttles_late(node.link.versions):
                node.muted_until = max(node.muted_until, now + throttle_ms)
            self._metrics.counter("throttle_ms").add(throttle_ms)
        self._metrics.request(event.api_key, now - flight.sent_at, flight.size, len(frame.view))
        flight.over = True
        self._landed(flight, Answer(event.message, event.version, node.number, frame, event.request))

    def _resumed(self, node: Node) -> None:
        self._land_sent(node)
        self._wake()

    def _land_sent(self, node: Node) -> None:
        for flight in node.take_sent():
            if flight.outcome is not None:
                self._land(flight, flight.outcome)

    def _lost(self, node: Node, link: Any, reason: Exception) -> None:
        """Handle the end of a connection to a broker."""
        if node.link is not link:
            return
        node.link = None
        if node.load or node.overdue:
            self._failed(node, reason)
        node.overdue = False
        self._broken(node, reason)

    def _failed(self, node: Node, reason: Exception) -> None:
        """Schedule the next connection. Retried failures are logged, but not every time, nor those soon raised."""
        now = self._clock()
        node.not_opened(reason, self._reconnect, now)
        told = self._cluster.absence.failed(node.number, reason, now)
        if node.refused is None and not told and not self._closed:
            level = logging.WARNING if self._quiet.wants(str(reason), now) else logging.DEBUG
            _log.log(level, "%s", reason)

    def _tell_slow(self, node: Node, now: float) -> None:
        """Log a wait that takes longer than a user would expect."""
        awaited = node.awaited
        if awaited is not None and now >= awaited[0] + SLOW_MS and now >= node.quiet_until and not self._closed:
            node.quiet_until = now + QUIET_MS
            seconds = (now - awaited[0]) / 1000
            _log.warning("waiting for %s: %s for %.0f s", self._named(node), awaited[1], seconds)

    def _broken(self, node: Node, reason: Exception) -> None:
        if not self._closed:
            self._metrics.counter("connections_failed").add()
            self._cluster.refresh()
            self._cluster.coordinators.lost_node(node.number)
        self._land_all(node, reason)
        self._wake()

    def _expire(self, now: float) -> None:
        """End requests that were not answered in time, and close their connections, as later answers wait for these."""
        while self._deadlines and (self._deadlines[0][0] <= now or self._deadlines[0][2].over):
            _, _, flight = heapq.heappop(self._deadlines)
            if flight.over:
                continue
            node = flight.node
            where = self._named(node) if node is not None else repr(flight.send.to)
            last = self._why_without_node(flight) if node is None else None if flight.written else node.error
            if last is None:
                reason = f"no answer from {where} within {flight.wait_ms:.0f} ms"
            else:
                reason = f"the request to {where} was not sent within {flight.wait_ms:.0f} ms: {last}"
            self._land(flight, DeadlineExceeded(reason, sent=flight.written))
            if flight.written and node is not None and node.link is not None:
                node.overdue = True
                node.link.close(ConnectionFailed(f"{node.link.name}: closed, since it did not answer in time"))

    def _why_without_node(self, flight: Flight) -> Exception | None:
        """Why it is not known to which broker a request goes."""
        place = flight.send.to
        refused = self._cluster.coordinators.last_error(place) if isinstance(place, Coordinator) else None
        return refused or self._cluster.last_error

    def _named(self, node: Node) -> str:
        address = self._cluster.address(node.number)
        return f"broker {node.number}" if address is None else f"broker {address.host}:{address.port}"

    def _land_all(self, node: Node, reason: Exception) -> None:
        for flight in node.take_all():
            self._land(flight, reason)

    def _land(self, flight: Flight, outcome: Answer | Exception) -> None:
        if flight.over:
            return
        flight.over = True
        if isinstance(outcome, Exception):
            self._metrics.failure(type(outcome).__name__)
            if flight.written and isinstance(outcome, ConnectionFailed) and not outcome.sent:
                outcome = type(outcome)(str(outcome), sent=True)
        self._landed(flight, outcome)
