"""Runs machines of a client against the model of a cluster, one step at a time: the driver's place in state machines.

    network = ModelNetwork(model)                 # with a Cluster of the client in it
    network.add(machine)
    network.run(1000)                             # a second without failures, or
    network.apply(network.links[1, 0])            # broker 1 takes the next request,
    network.deliver(network.links[1, 0])          # its answer arrives,
    network.drop(network.links[1, 0])             # or the connection is lost with what is in flight

A connection is a queue: brokers answer in order. There are several for each broker, as in the driver: one for
coordinators, and others beside the first for what must not wait behind a request that is held back. A request is in
flight from the poll that made it; it may be lost before or after the broker applied it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from kafkacodec.client.core.backoff import Backoff
from kafkacodec.client.core.calls import ANY, Answer, Coordinator, Machine, Send, prepared
from kafkacodec.client.core.cluster import Cluster
from kafkacodec.client.driver.node import COORDINATION
from kafkacodec.errors import ConnectionFailed, DeadlineExceeded, KafkaCodecError
from tests.reference.model_broker import ModelCluster

__all__ = ["Flight", "Link", "ModelNetwork"]

NOT_YET = object()
LANES = (0, 1, 2)


@dataclass(eq=False)
class Flight:
    """A request on its way. `taken`: the broker got it; `response`: its answer, or `NOT_YET`."""

    machine: Machine
    send: Send
    request: Any
    version: int
    deadline: float
    taken: bool = False
    response: Any = NOT_YET

    def reply(self, response: Any) -> None:
        """The broker answers."""
        self.response = response


@dataclass(eq=False)
class Link:
    """A connection to a broker. One that hangs takes nothing in."""

    node: int
    lane: int
    flights: deque[Flight] = field(default_factory=deque)
    hangs: bool = False

    @property
    def held(self) -> bool:
        """Whether the broker may hold back what is asked next."""
        return any(flight.send.holds for flight in self.flights)


class ModelNetwork:
    """The machines of one client, and its connections.

    Args:
        model: the cluster.
        timeout_ms: for sends that name none.
        backoff: of the client's `Cluster`; without jitter by default.

    Attributes:
        cluster: the client's view, itself a machine.
        links: by broker and lane, as in the driver.
    """

    def __init__(self, model: ModelCluster, *, timeout_ms: float = 30_000, backoff: Backoff | None = None) -> None:
        self.model = model
        self.cluster = Cluster(
            [(f"node{node}", 9090 + node) for node in model.nodes],
            backoff=backoff or Backoff(100, 1000, jitter=0.0),
            auto_create=model.auto_create,
        )
        self.machines: list[Machine] = [self.cluster]
        self.links = {(node, lane): Link(node, lane) for node in model.nodes for lane in (*LANES, COORDINATION)}
        self._timeout_ms = timeout_ms
        self._unrouted: list[tuple[Machine, Send, float]] = []

    @property
    def now(self) -> float:
        """The time in ms."""
        return self.model.now

    def add(self, machine: Machine) -> None:
        """Run a machine from now on."""
        self.machines.append(machine)
        self.poll()

    def busy(self) -> list[Link]:
        """The connections with something in flight."""
        return [link for link in self.links.values() if link.flights]

    # One step

    def poll(self) -> None:
        """Poll every machine and put what it sends on its connection, until nothing new comes."""
        for _ in range(100):
            sends = [(machine, send) for machine in self.machines for send in machine.poll(self.now)]
            waiting, self._unrouted = self._unrouted, []
            for machine, send, deadline in waiting:
                self._route(machine, send, deadline)
            for machine, send in sends:
                wait = self._timeout_ms if send.timeout_ms is None else send.timeout_ms
                self._route(machine, send, self.now + wait)
            if not sends and len(self._unrouted) >= len(waiting):
                return
        raise AssertionError("machines send without an end at one moment")

    def _route(self, machine: Machine, send: Send, deadline: float) -> None:
        if send.to is ANY:
            node = next(iter(sorted(self.model.alive & set(self.cluster.brokers) or self.model.alive)), None)
            node = self.model.nodes[0] if node is None else node
        else:
            found = self.cluster.node_of(send.to)
            if found is None and isinstance(send.to, int):
                self.cluster.refresh()
                machine.failed(send, ConnectionFailed(f"broker {send.to} is not in the metadata"), self.now)
                return
            if found is None:
                self._unrouted.append((machine, send, deadline))
                return
            node = found if found > 0 else self.model.nodes[-1 - found]
        if node not in self.model.alive:
            self._lost(node)
            machine.failed(send, ConnectionFailed(f"broker {node} refuses connections"), self.now)
            return
        try:
            request, version = prepared(send.request, self.model.versions)
        except KafkaCodecError as error:
            machine.failed(send, error, self.now)
            return
        link = self.links[node, COORDINATION] if isinstance(send.to, Coordinator) else self._free(node)
        link.flights.append(Flight(machine, send, request, version, deadline))

    def _free(self, node: int) -> Link:
        links = [self.links[node, lane] for lane in LANES]
        free = next((link for link in links if not link.held), None)
        if free is None:
            free = next((link for link in links if all(f.send.given_up for f in link.flights)), links[0])
            given_up = [flight for flight in free.flights if flight.send.given_up]
            for flight in given_up:
                free.flights.remove(flight)
                self.model.forget(flight.reply)
                flight.machine.failed(flight.send, ConnectionFailed("given up", sent=True), self.now)
        return free

    def apply(self, link: Link) -> bool:
        """The broker takes the next request in, unless it is still at another one. Returns whether it did."""
        at_work = any(flight.taken and flight.response is NOT_YET for flight in link.flights)
        flight = next((flight for flight in link.flights if not flight.taken), None)
        if flight is None or at_work or link.hangs:
            return False
        flight.taken = True
        self.model.receive(link.node, flight.request, flight.version, flight.reply)
        return True

    def deliver(self, link: Link) -> bool:
        """The first answer arrives, if there is one. Returns whether it did."""
        if not link.flights or link.flights[0].response is NOT_YET:
            return False
        flight = link.flights.popleft()
        answer = Answer(flight.response, flight.version, link.node, request=flight.request)
        flight.machine.answered(flight.send, answer, self.now)
        self.poll()
        return True

    def drop(self, link: Link) -> None:
        """The connection is lost: all in flight fail, whatever the broker has done for them."""
        flights = list(link.flights)
        link.flights.clear()
        self._lost(link.node)
        for flight in flights:
            self.model.forget(flight.reply)
            error = ConnectionFailed(f"broker {link.node} closed the connection", sent=True)
            flight.machine.failed(flight.send, error, self.now)
        self.poll()

    def stop(self, node: int) -> None:
        """A broker ends, and its connections with it."""
        self.model.stop(node)
        for lane in (*LANES, COORDINATION):
            self.drop(self.links[node, lane])

    def advance(self, ms: float) -> None:
        """Let time go by; requests whose time is over fail, and their connections are closed."""
        self.model.advance(ms)
        waiting, self._unrouted = self._unrouted, []
        for machine, send, deadline in waiting:
            if deadline > self.now:
                self._unrouted.append((machine, send, deadline))
            else:
                machine.failed(send, DeadlineExceeded(f"no answer from {send.to!r}"), self.now)
        for link in self.links.values():
            late = [flight for flight in link.flights if flight.deadline <= self.now]
            for flight in late:
                link.flights.remove(flight)
                self.model.forget(flight.reply)
                error = DeadlineExceeded(f"no answer from broker {link.node}", sent=True)
                flight.machine.failed(flight.send, error, self.now)
            if late:
                self.drop(link)
        self.poll()

    # Many steps

    def run(self, ms: float, until: Any = None) -> bool:
        """Everything arrives, for so long, or until `until()` is true; returns whether it was."""
        end = self.now + ms
        self.poll()
        steps = 0
        while not (until is not None and until()):
            if self._all_once():
                steps += 1
                assert steps < 10_000, "requests and answers without an end at one moment"
                continue
            steps = 0
            due = [at for machine in self.machines if (at := machine.next_deadline()) is not None]
            due += [flight.deadline for link in self.links.values() for flight in link.flights]
            due += [at for at in (self.model.next_deadline(),) if at is not None]
            next_at = min(due, default=end)
            if next_at >= end:
                self.advance(end - self.now)
                return until is not None and bool(until())
            self.advance(max(next_at - self.now, 1))
        return True

    def _all_once(self) -> bool:
        """A step of every connection; returns whether there was one."""
        steps = [self.apply(link) or self.deliver(link) for link in self.links.values()]
        return any(steps)

    def _lost(self, node: int) -> None:
        self.cluster.refresh()
        self.cluster.coordinators.lost_node(node)
