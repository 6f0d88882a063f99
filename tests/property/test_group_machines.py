"""Members of a group against a model of its coordinator, whatever order answers, faults and rebalances come in.

No partition may be read by two members at a time, and when nothing happens any more each has exactly one. With
KAFKACODEC_LONG=1 it takes minutes instead of seconds (make cluster-proof).
"""

from __future__ import annotations

import os
import uuid
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kafkacodec import messages
from kafkacodec.assignment.assignors import ASSIGNORS
from kafkacodec.client.core.backoff import Backoff
from kafkacodec.client.core.calls import Answer, Coordinator, Send
from kafkacodec.client.core.cluster import Cluster
from kafkacodec.client.groups.classic import ClassicMembership
from kafkacodec.client.groups.membership import Assigned, Failed, GroupSettings, Left, Lost, Revoke
from kafkacodec.client.groups.modern import ModernMembership
from kafkacodec.client.groups.topics import Subscription
from kafkacodec.errors import ConnectionFailed, DeadlineExceeded
from kafkacodec.messages import APIS
from tests.examples import examples
from tests.reference.model_coordinators import ClassicCoordinator, ModernCoordinator

VERSIONS = {key: api.valid_versions for key, api in APIS.items()}
BACKOFF = Backoff(100, 1000, jitter=0.0)
SETTINGS = GroupSettings(group_id="g", heartbeat_interval_ms=500, max_poll_interval_ms=60_000, backoff=BACKOFF)
RETRIABLE = [14, 15, 16]


@dataclass(eq=False)
class Consumer:
    """A consumer around a membership: what it reads, and whether it still has to answer to a Revoke."""

    name: str
    cluster: Cluster
    group: Any
    reading: set = field(default_factory=set)
    revoking: set = field(default_factory=set)
    left: bool = False


@dataclass(eq=False)
class Flight:
    """A request under way: not yet at the coordinator, waiting there, or on its way back."""

    consumer: Consumer
    send: Send
    message: Any
    version: int
    token: int
    arrived: bool = False


class Groups(RuleBasedStateMachine):
    coordinator: Any

    def make(self, cluster: Cluster) -> Any:
        raise NotImplementedError

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.topics = {"a": (uuid.UUID(int=2), 3), "b": (uuid.UUID(int=3), 2)}
        self.consumers: list[Consumer] = []
        self.flights: list[Flight] = []
        self.numbers = count()
        self.calm = False

    # What happens

    @initialize()
    def start(self) -> None:
        self.join({"a", "b"})

    @precondition(lambda self: len(self.consumers) < 5)
    @rule(topics=st.sampled_from([{"a"}, {"b"}, {"a", "b"}]))
    def join(self, topics: set) -> None:
        cluster = Cluster([("h", 1)], backoff=BACKOFF)
        made = Consumer(f"c{next(self.numbers)}", cluster, self.make(cluster))
        made.group.subscribe(Subscription(topics), self.now)
        made.group.polled(self.now, waiting=True)
        self.consumers.append(made)
        self.run()

    @rule(at=st.integers(0, 9), topics=st.sampled_from([{"a"}, {"b"}, {"a", "b"}]))
    def subscribe(self, at: int, topics: set) -> None:
        consumer = self.consumers[at % len(self.consumers)]
        if not consumer.left:
            consumer.group.subscribe(Subscription(topics), self.now)
            self.run()

    @precondition(lambda self: sum(not consumer.left for consumer in self.consumers) > 1)
    @rule(at=st.integers(0, 9))
    def leave(self, at: int) -> None:
        consumer = self.consumers[at % len(self.consumers)]
        consumer.left = True
        consumer.group.leave(self.now)
        self.run()

    @rule(at=st.integers(0, 9))
    def revoked(self, at: int) -> None:
        consumer = self.consumers[at % len(self.consumers)]
        if consumer.revoking:
            consumer.reading -= consumer.revoking
            consumer.revoking = set()
            consumer.group.revoked(self.now)
            self.run()

    @rule(ms=st.sampled_from([1, 100, 500, 2000]))
    def wait(self, ms: int) -> None:
        self.now += ms
        self.run()

    @precondition(lambda self: bool(self.flights))
    @rule(at=st.integers(0, 99))
    def progress(self, at: int) -> None:
        self.advance(self.flights[at % len(self.flights)])

    @precondition(lambda self: bool(self.flights))
    @rule(at=st.integers(0, 99), applied=st.booleans(), late=st.booleans())
    def drop(self, at: int, applied: bool, late: bool) -> None:
        """A connection breaks, or an answer does not come in time."""
        flight = self.flights[at % len(self.flights)]
        if applied and not flight.arrived:
            self.coordinator.handle(flight.message, flight.token)
        self.flights.remove(flight)
        kind = DeadlineExceeded if late else ConnectionFailed
        flight.consumer.group.failed(flight.send, kind("dropped", sent=applied), self.now)
        self.run()

    @precondition(lambda self: any(not flight.arrived for flight in self.flights))
    @rule(at=st.integers(0, 99), code=st.sampled_from(RETRIABLE))
    def refuse(self, at: int, code: int) -> None:
        waiting = [flight for flight in self.flights if not flight.arrived]
        flight = waiting[at % len(waiting)]
        name = type(flight.message).__name__.replace("Request", "Response")
        self.deliver(flight, getattr(messages, name)(error_code=code))

    @rule(at=st.integers(0, 9))
    def expire(self, at: int) -> None:
        """The coordinator removes a member, which will hear of it."""
        names = list(self.coordinator.members)
        if names:
            self.coordinator.expire(names[at % len(names)])
            self.run()

    @precondition(lambda self: sum(n for _, n in self.topics.values()) < 12)
    @rule(topic=st.sampled_from("ab"))
    def more_partitions(self, topic: str) -> None:
        topic_id, number = self.topics[topic]
        self.topics[topic] = topic_id, number + 1
        for consumer in self.consumers:
            consumer.cluster.refresh()
        if isinstance(self.coordinator, ModernCoordinator):
            self.coordinator.changed()
        self.run()

    @rule(rounds=st.integers(1, 20), revoking=st.booleans())
    def go_on(self, rounds: int, revoking: bool) -> None:
        """Without faults for a while; consumers answer to a Revoke at once, or not at all."""
        for _ in range(rounds):
            for flight in list(self.flights):
                if flight in self.flights:
                    self.advance(flight)
                    self.nothing_is_read_twice()
            for at in range(len(self.consumers) if revoking else 0):
                self.revoked(at)
            self.wait(200)

    # What must hold

    @invariant()
    def nothing_is_read_twice(self) -> None:
        """By members that the coordinator knows; the others have not heard yet that they were removed."""
        seen: dict = {}
        for consumer in self.consumers:
            if self.coordinator.knows(consumer.group._member_id):
                for place in consumer.reading:
                    assert place not in seen, (place, consumer.name, seen[place])
                    seen[place] = consumer.name

    def teardown(self) -> None:
        """Nothing happens any more, and time goes on: everything is read by one member."""
        if not self.consumers:
            return
        self.go_on(100, revoking=True)
        # Members whose LeaveGroup, or whose first answer, was lost send no heartbeats.
        used = {consumer.group._member_id for consumer in self.consumers if not consumer.left}
        for name in [name for name in self.coordinator.members if name not in used]:
            self.coordinator.expire(name)
        self.go_on(200, revoking=True)
        living = [consumer for consumer in self.consumers if not consumer.left]
        reading = [place for consumer in self.consumers for place in consumer.reading]
        wanted = {topic for consumer in living for topic in self.wants(consumer)}
        assert sorted(reading) == sorted((t, n) for t in wanted for n in range(self.topics[t][1]))
        for consumer in living:
            assert consumer.group.stable
            assert set(consumer.group.partitions) == consumer.reading
            assert {topic for topic, _ in consumer.reading} <= self.wants(consumer)

    # How it is run

    def wants(self, consumer: Consumer) -> set:
        return set(consumer.group._topics.names())

    def run(self) -> None:
        """Poll everything; metadata and coordinators are answered at once."""
        for consumer in self.consumers:
            for _ in range(20):
                asked = consumer.cluster.poll(self.now)
                for send in asked:
                    message, version = send.request(VERSIONS)
                    consumer.cluster.answered(send, Answer(self.answer(message, version), version, 1), self.now)
                sends = consumer.group.poll(self.now)
                for send in sends:
                    self.take_off(consumer, send)
                self.take_events(consumer)
                if not asked and not sends:
                    break
            else:
                raise AssertionError("a machine asks in a tight circle")

    def take_off(self, consumer: Consumer, send: Send) -> None:
        message, version = send.request(VERSIONS)
        received = type(message).decode(message.encode(version), version)
        if isinstance(message, messages.MetadataRequest):
            answer = Answer(self.answer(received, version), version, 1)
            consumer.group.answered(send, answer, self.now)
            return
        if send.to == 1:  # beside a JoinGroup or SyncGroup that waits
            assert isinstance(message, messages.LeaveGroupRequest)
        else:
            assert send.to == Coordinator("group", "g")
            consumer.cluster.node_of(send.to)
        self.flights.append(Flight(consumer, send, received, version, next(self.numbers)))

    def answer(self, message: Any, version: int) -> Any:
        if isinstance(message, messages.FindCoordinatorRequest):
            found = messages.FindCoordinatorResponse
            return found(coordinators=[found.Coordinator(key="g", node_id=1, host="h", port=1)])
        kind = messages.MetadataResponse
        topics = []
        for name, (topic_id, number) in self.topics.items():
            partitions = [kind.MetadataResponsePartition(partition_index=n, leader_id=1) for n in range(number)]
            topics.append(kind.MetadataResponseTopic(name=name, topic_id=topic_id, partitions=partitions))
        return kind(brokers=[kind.MetadataResponseBroker(node_id=1, host="h", port=1)], controller_id=1, topics=topics)

    def advance(self, flight: Flight) -> None:
        """A request arrives, in the order of its connection, or its answer does."""
        if not flight.arrived:
            link = flight.consumer, flight.send.to
            waiting = (each for each in self.flights if not each.arrived)
            flight = next(each for each in waiting if (each.consumer, each.send.to) == link)
            flight.arrived = True
            self.coordinator.handle(flight.message, flight.token)
        elif flight.token in self.coordinator.ready:
            self.deliver(flight, self.coordinator.ready.pop(flight.token))

    def deliver(self, flight: Flight, response: Any) -> None:
        self.flights.remove(flight)
        response = type(response).decode(response.encode(flight.version), flight.version)
        flight.consumer.group.answered(flight.send, Answer(response, flight.version, 1), self.now)
        self.run()

    def take_events(self, consumer: Consumer) -> None:
        for event in consumer.group.take_events():
            match event:
                case Revoke(partitions):
                    assert set(partitions) <= consumer.reading
                    assert not consumer.revoking
                    consumer.revoking = set(partitions)
                case Lost(partitions):
                    assert set(partitions) == consumer.reading
                    consumer.reading, consumer.revoking = set(), set()
                case Assigned(added, partitions):
                    assert not consumer.revoking
                    assert not set(added) & consumer.reading
                    consumer.reading |= set(added)
                    assert consumer.reading == set(partitions)
                case Left():
                    assert consumer.left
                    assert not consumer.reading
                case Failed(error):
                    raise AssertionError from error


class EagerGroups(Groups):
    def __init__(self) -> None:
        super().__init__()
        self.coordinator = ClassicCoordinator()

    def make(self, cluster: Cluster) -> Any:
        return ClassicMembership(SETTINGS, cluster)


class CooperativeGroups(EagerGroups):
    def make(self, cluster: Cluster) -> Any:
        return ClassicMembership(SETTINGS, cluster, [ASSIGNORS["cooperative-sticky"]()])


class ModernGroups(Groups):
    def __init__(self) -> None:
        super().__init__()
        self.coordinator = ModernCoordinator(self.topics)

    def make(self, cluster: Cluster) -> Any:
        return ModernMembership(SETTINGS, cluster)


LONG = bool(os.environ.get("KAFKACODEC_LONG"))
COUNTS = settings(max_examples=examples(2000 if LONG else 50), stateful_step_count=50 if LONG else 30, deadline=None)
TestEager, TestCooperative, TestModern = EagerGroups.TestCase, CooperativeGroups.TestCase, ModernGroups.TestCase
TestEager.settings = TestCooperative.settings = TestModern.settings = COUNTS
