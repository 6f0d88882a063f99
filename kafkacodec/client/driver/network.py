"""The network of one client: runs machines over connections to brokers.

All methods are called in the thread of the event loop that made it. After each answer, failure or `Network.wake` every
machine is polled, its sends are routed to brokers, and a timer is set for the next deadline.
"""

from __future__ import annotations

import asyncio
import heapq
import os
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any

from kafkacodec.client.core.backoff import Backoff
from kafkacodec.client.core.calls import ANY, Answer, Coordinator, Machine, Place, Prepare, Send, prepared
from kafkacodec.client.core.cluster import BrokerAddress, Cluster
from kafkacodec.client.core.metrics import Metrics
from kafkacodec.client.core.retrying import Call, first_error
from kafkacodec.client.driver.connecting import Connector
from kafkacodec.client.driver.frames import Frame
from kafkacodec.client.driver.node import Flight, Node
from kafkacodec.client.driver.nodes import Nodes
from kafkacodec.client.options import ClientSettings, addresses
from kafkacodec.errors import (
    ClientClosed,
    ConnectionFailed,
    DeadlineExceeded,
    KafkaCodecError,
)

if TYPE_CHECKING:
    from kafkacodec.messages import Message
    from kafkacodec.protocol.connection import ResponseReceived

__all__ = ["Network"]


class Network:
    """Connections to the brokers of a cluster, and the machines that use them.

    Args:
        settings: the client's.

    Attributes:
        cluster: the cluster's metadata, itself a machine.
        metrics: what the client counts; machines add to them.
    """

    def __init__(self, settings: ClientSettings) -> None:
        self.settings = settings
        self.loop = asyncio.get_running_loop()
        self.cluster = Cluster(
            addresses(settings.bootstrap_servers),
            max_age_ms=settings.metadata_max_age_ms,
            backoff=self.retry_backoff(),
            auto_create=settings.allow_auto_create_topics,
        )
        self.metrics = Metrics()
        self.metrics.gauge("connections", lambda: sum(node.ready for node in self._nodes))
        self._reconnect = Backoff(settings.reconnect_backoff_ms, settings.reconnect_backoff_max_ms)
        self._connector = Connector(settings, self.now)
        self._process = os.getpid()
        self._machines: dict[Machine, Callable[[], None] | None] = {self.cluster: None}
        self._nodes = Nodes(self.cluster, settings.connections_max_idle_ms)
        self._unrouted: list[Flight] = []
        self._deadlines: list[tuple[float, int, Flight]] = []
        self._numbers = count()
        self._timer: asyncio.TimerHandle | None = None
        self._woken = False
        self.closed = False

    def now(self) -> float:
        """The time in ms, of the loop's clock."""
        return self.loop.time() * 1000

    def retry_backoff(self) -> Backoff:
        """The waits between attempts, as the client's options have them."""
        return Backoff(self.settings.retry_backoff_ms, self.settings.retry_backoff_max_ms)

    # Machines

    def add(self, machine: Machine, changed: Callable[[], None] | None = None) -> None:
        """Run a machine from now on. `changed` is called after the machine was called. Raises ClientClosed."""
        self.check()
        self._machines[machine] = changed
        self.wake()

    def remove(self, machine: Machine) -> None:
        """Run a machine no more: it gets no answers, also not to what was sent already."""
        self._machines.pop(machine, None)

    def wake(self) -> None:
        """Poll all machines soon."""
        if not self._woken and not self.closed:
            self._woken = True
            self.loop.call_soon(self._run)

    async def call(
        self,
        request: Message | Prepare,
        to: Place = ANY,
        *,
        timeout_ms: float | None = None,
        error_of: Callable[[Any], int] = first_error,
    ) -> Any:
        """Send a request, again while it fails for reasons that pass, and return the response.

        Args:
            request: the message, or what makes it for a broker's versions.
            to: where it goes.
            timeout_ms: for all attempts together. Default: ``default_api_timeout_ms``.
            error_of: the code of a response that decides about another attempt; 0 for none. Default: the response's
                ``error_code``, if it has one. A code that does not pass is the caller's to read.

        Raises:
            DeadlineExceeded: no answer in time; its cause is the last failure.
            AuthenticationFailed, RemoteProtocolError, UnsupportedVersion, EncodeError: at once.
            BrokerError: the coordinator cannot be found.
            ClientClosed: the client is closed, or was closed meanwhile.
        """
        self.check()
        limit_ms = self.settings.default_api_timeout_ms if timeout_ms is None else timeout_ms
        machine = Call(
            request,
            to,
            cluster=self.cluster,
            deadline=self.now() + limit_ms,
            attempt_ms=self.settings.request_timeout_ms,
            backoff=self.retry_backoff(),
            error_of=error_of,
        )
        done: asyncio.Future[None] = self.loop.create_future()
        self.add(machine, lambda: done.set_result(None) if machine.done and not done.done() else None)
        try:
            await done
        finally:
            self.remove(machine)
        if machine.error is not None:
            raise machine.error
        assert machine.answer is not None
        return machine.answer.message

    def check(self) -> None:
        """Raise ClientClosed if the client is closed, or used from another loop or process."""
        if self.closed:
            raise ClientClosed("the client is closed")
        if os.getpid() != self._process:
            raise ClientClosed("the client belongs to the process that this one was forked from: make a new one")
        try:
            here = asyncio.get_running_loop()
        except RuntimeError:
            here = None
        if here is not self.loop:
            raise ClientClosed("the client belongs to another event loop: make and use it in the same one")

    async def close(self) -> None:
        """Close all connections. What still waits for an answer fails with ClientClosed."""
        if self.closed:
            return
        self.closed = True
        if self._timer is not None:
            self._timer.cancel()
        reason = ClientClosed("the client was closed")
        tasks = []
        left, self._unrouted = self._unrouted, []
        for node in self._nodes:
            left += node.take_all()
            if node.connecting is not None:
                node.connecting.cancel()
                tasks.append(node.connecting)
            if node.link is not None:
                node.link.close(reason)
        for flight in left:
            self._fail(flight, reason)
        if tasks:
            await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # the loop closes sockets after this step

    # One pass

    def _run(self) -> None:
        self._woken = False
        if self.closed:
            return
        now = self.now()
        self._expire(now)
        for machine, changed in list(self._machines.items()):
            for send in machine.poll(now):
                self._submit(send, machine, now)
            if changed is not None:
                changed()
        waiting, self._unrouted = self._unrouted, []
        for flight in waiting:
            if not flight.over:
                self._route(flight, now)
        for node in self._nodes:
            self._pump(node, now)
        for node in self._nodes.idle(now):
            assert node.link is not None
            node.link.close(ConnectionFailed(f"{node.link.name}: idle"))
        self._set_timer(now)

    def _submit(self, send: Send, machine: Machine, now: float) -> None:
        wait = self.settings.request_timeout_ms if send.timeout_ms is None else send.timeout_ms
        flight = Flight(send, machine, now + wait)
        heapq.heappush(self._deadlines, (flight.deadline, next(self._numbers), flight))
        self._route(flight, now)

    def _route(self, flight: Flight, now: float) -> None:
        """Put a flight into the queue of its broker, or keep it until the broker is known."""
        place = flight.send.to
        if place is ANY:
            flight.node = self._nodes.any(now)
        else:
            refusal = self.cluster.coordinators.refusal(place) if isinstance(place, Coordinator) else None
            if refusal is not None:
                self.cluster.coordinators.forget(place)  # type: ignore[arg-type]
                self._fail(flight, refusal)
                return
            number = self.cluster.node_of(place)
            if number is None:
                self._hold(flight)
                return
            flight.node = self._nodes.get(number, isinstance(place, Coordinator))
        flight.node.waiting.append(flight)

    def _hold(self, flight: Flight) -> None:
        """Keep a flight until its place is known; a broker id that metadata does not have fails at once."""
        if isinstance(flight.send.to, int):
            self.cluster.refresh()
            self._fail(flight, ConnectionFailed(f"broker {flight.send.to} is not in the cluster's metadata"))
            return
        self._unrouted.append(flight)
        self.wake()  # the cluster has to ask

    # A broker's requests

    def _pump(self, node: Node, now: float) -> None:
        """Write what may be written, or connect."""
        if node.ready:
            self._write(node, now)
        elif node.waiting and node.refused is not None and now < node.retry_at:
            self._fail_all(node, node.refused)
        elif node.waiting and node.connecting is None and node.link is None and now >= node.retry_at:
            self._connect(node)

    def _write(self, node: Node, now: float) -> None:
        link, most = node.link, self.settings.max_in_flight_requests_per_connection
        while node.waiting and link is not None and link.ready and now >= node.muted_until:
            if len(node.in_flight) >= most:
                return
            flight = node.waiting.popleft()
            if flight.over:
                continue
            try:
                message, version = prepared(flight.send.request, link.versions)
                correlation_id, flight.size = link.send(message, version)
            except (KafkaCodecError, ValueError) as error:
                self._fail(flight, error)
                continue
            node.used_at = flight.sent_at = now
            if link.expects(correlation_id):
                flight.correlation_id = correlation_id
                node.in_flight[correlation_id] = flight
            else:
                self._answer(flight, Answer(None, version, node.number, request=message), now)

    def _connect(self, node: Node) -> None:
        address = self.cluster.address(node.number)
        if address is None:
            self._fail_all(node, ConnectionFailed(f"broker {node.number} is not in the cluster's metadata"))
            return
        node.connecting = self.loop.create_task(self._open(node, address), name=f"kafkacodec connects to {address}")

    async def _open(self, node: Node, address: BrokerAddress) -> None:
        """Connect to a broker; on failure all that waits for it fails."""
        try:
            link = await self._connector.connect(
                address,
                answered=lambda event, frame: self._received(node, event, frame),
                ended=lambda link, reason: self._lost(node, link, reason),
            )
        except KafkaCodecError as error:
            node.connecting = None
            node.not_opened(error, self._reconnect, self.now())
            self.metrics.counter("connections_failed").add()
            self._broken(node, error)
            return
        node.connecting = None
        node.link = link
        node.opened(self.now())
        self.metrics.counter("connections_opened").add()
        self.wake()

    def _lost(self, node: Node, link: Any, reason: Exception) -> None:
        """The connection to a broker has ended."""
        if node.link is link:
            node.link = None
            if node.load:
                node.not_opened(reason, self._reconnect, self.now())
                self.metrics.counter("connections_failed").add()
            self._broken(node, reason)

    def _broken(self, node: Node, reason: Exception) -> None:
        if not self.closed:
            self.cluster.refresh()
            self.cluster.coordinators.lost_node(node.number)
        self._fail_all(node, reason)
        self.wake()

    # Answers

    def _received(self, node: Node, event: ResponseReceived, frame: Frame) -> None:
        flight = node.in_flight.pop(event.correlation_id, None)
        if flight is None or flight.over:
            return
        now = self.now()
        throttle_ms = getattr(event.message, "throttle_time_ms", 0)
        if throttle_ms > 0:
            node.muted_until = max(node.muted_until, now + throttle_ms)
            self.metrics.counter("throttle_ms").add(throttle_ms)
        self.metrics.request(event.api_key, now - flight.sent_at, flight.size, len(frame.view))
        self._answer(flight, Answer(event.message, event.version, node.number, frame, event.request), now)

    def _answer(self, flight: Flight, answer: Answer, now: float) -> None:
        flight.over = True
        if flight.machine in self._machines:
            flight.machine.answered(flight.send, answer, now)
        self.wake()

    def _fail_all(self, node: Node, reason: Exception) -> None:
        for flight in node.take_all():
            self._fail(flight, reason)

    def _fail(self, flight: Flight, reason: Exception) -> None:
        if flight.over:
            return
        flight.over = True
        self.metrics.failure(type(reason).__name__)
        if flight.machine in self._machines:
            flight.machine.failed(flight.send, _for_flight(reason, flight), self.now())
        self.wake()

    # Time

    def _expire(self, now: float) -> None:
        """Fail what has had no answer in time, and close its connection: later answers wait for the missing one."""
        while self._deadlines and (self._deadlines[0][0] <= now or self._deadlines[0][2].over):
            _, _, flight = heapq.heappop(self._deadlines)
            if flight.over:
                continue
            node, place = flight.node, flight.send.to
            where = f"broker {node.number}" if node is not None else repr(place)
            sent = flight.correlation_id is not None
            wait_ms = self.settings.request_timeout_ms if flight.send.timeout_ms is None else flight.send.timeout_ms
            reason = f": {self.cluster.last_error}" if node is None and self.cluster.last_error is not None else ""
            self._fail(flight, DeadlineExceeded(f"no answer from {where} within {wait_ms:.0f} ms{reason}", sent=sent))
            if sent and node is not None and node.link is not None:
                node.link.close(ConnectionFailed(f"{node.link.name}: closed, since it did not answer in time"))

    def _set_timer(self, now: float) -> None:
        due = [at for machine in self._machines if (at := machine.next_deadline()) is not None]
        if self._deadlines:
            due.append(self._deadlines[0][0])
        due += self._nodes.deadlines(now)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if due:
            self._timer = self.loop.call_at(max(min(due), now) / 1000, self.wake)


def _for_flight(reason: Exception, flight: Flight) -> Exception:
    """The reason with what it means for this request: whether the broker may have got it."""
    if flight.correlation_id is not None and isinstance(reason, ConnectionFailed) and not reason.sent:
        return type(reason)(str(reason), sent=True)
    return reason
