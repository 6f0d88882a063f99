"""Members of a share group against a model of its brokers, whatever is lost, late or over meanwhile.

A record is done only when a member was given it and said so, and in the end all are done.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from kafkacodec import messages
from kafkacodec.assignment.partitions import TopicPartition
from kafkacodec.client.core.backoff import Backoff
from kafkacodec.client.core.calls import Answer, Send
from kafkacodec.client.core.cluster import Cluster
from kafkacodec.client.groups.membership import GroupMetadata
from kafkacodec.client.groups.share_reader import ShareReader
from kafkacodec.client.groups.share_session import AcknowledgeType, ShareLimits
from kafkacodec.client.sharing.deliveries import Deliveries, ShareRecord
from kafkacodec.client.sharing.settings import ShareConsumerSettings
from kafkacodec.errors import ConnectionFailed, LocalProtocolError
from kafkacodec.messages import APIS
from tests.reference.model_shares import LOCK_MS, TOPIC_ID, ShareBroker
from tests.state_machines import machine_settings

VERSIONS = {key: api.valid_versions for key, api in APIS.items()}
BACKOFF = Backoff(100, 1000, jitter=0.0)
PARTITIONS = 2  # partition 0 is led by broker 1, partition 1 by broker 2
MEMBERS = st.integers(0, 9)
KINDS = st.sampled_from(["accept", "release", "reject"])


@dataclass(eq=False)
class Member:
    """A share consumer without I/O, and what the application has of it."""

    name: str
    explicit: bool
    metadata: GroupMetadata | None
    cluster: Cluster
    reader: ShareReader = field(init=False)
    deliveries: Deliveries = field(init=False)
    given: list[ShareRecord] = field(default_factory=list)
    left: bool = False
    faults: bool = False  # whether it may have lost something

    def __post_init__(self) -> None:
        limits = ShareLimits(max_records=4)
        self.reader = ShareReader(self.cluster, lambda: self.metadata, limits=limits, implicit=False, backoff=BACKOFF)
        mode = "explicit" if self.explicit else "implicit"
        settings: Any = {"bootstrap_servers": "h", "group_id": "g", "share_acknowledgement_mode": mode}
        self.deliveries = Deliveries(self.reader, ShareConsumerSettings(**settings))
        self.reader.assign(TopicPartition("t", number) for number in range(PARTITIONS))


@dataclass(eq=False)
class Flight:
    """A request that has not arrived."""

    member: Member
    send: Send
    message: Any
    version: int


class Shares(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.brokers = {n + 1: ShareBroker(n, self.ended) for n in range(PARTITIONS)}
        self.members: list[Member] = []
        self.flights: list[Flight] = []
        self.said: dict[tuple[str, int, int, int], str] = {}
        self.numbers = count()

    # The members

    @initialize(explicit=st.booleans())
    def start(self, explicit: bool) -> None:
        self.join(explicit)

    @precondition(lambda self: len(self.members) < 4)
    @rule(explicit=st.booleans())
    def join(self, explicit: bool) -> None:
        name = f"m{next(self.numbers)}"
        cluster = Cluster([("h", 1)], backoff=BACKOFF)
        cluster.want(["t"])
        self.members.append(Member(name, explicit, GroupMetadata("g", 1, name), cluster))
        self.run()

    @rule(at=MEMBERS, most=st.integers(1, 5))
    def ask(self, at: int, most: int) -> None:
        """Ask for records, as getmany does."""
        member = self.member(at)
        if member is None or not self.processed(member):
            return
        member.deliveries.take()
        if not member.deliveries.ready and not member.reader.fetching:
            member.reader.fetch()
            self.run()
        for record in member.deliveries.next(most):
            kept = self.brokers[record.partition + 1].offsets[record.offset]
            assert record.value == kept.value
            assert record.delivery_count <= kept.count
            assert record.place not in {other.place for other in member.given}
            member.given.append(record)

    @rule(at=MEMBERS, which=MEMBERS, kind=KINDS)
    def acknowledge(self, at: int, which: int, kind: str) -> None:
        member = self.member(at)
        if member is None or not member.given:
            return
        record = member.given.pop(which % len(member.given))
        try:
            member.deliveries.acknowledge(record, kind)
            self.say(member, record, kind)
        except LocalProtocolError:
            assert member.faults

    @rule(at=MEMBERS)
    def commit(self, at: int) -> None:
        member = self.member(at)
        if member is not None and (member.explicit or self.processed(member)):
            member.reader.flush()
            self.run()

    @precondition(lambda self: sum(not member.left for member in self.members) > 1)
    @rule(at=MEMBERS)
    def leave(self, at: int) -> None:
        member = self.member(at)
        if member is not None:
            member.left = True
            member.given.clear()
            member.deliveries.forget()
            member.reader.close()
            self.run()

    # What happens

    @rule(partition=st.integers(0, PARTITIONS - 1), records=st.lists(st.booleans(), min_size=1, max_size=4))
    def produce(self, partition: int, records: list[bool]) -> None:
        """Records, with empty offsets between them."""
        for present in records:
            self.brokers[partition + 1].append(b"%d" % next(self.numbers) if present else None)

    @precondition(lambda self: bool(self.flights))
    @rule(at=st.integers(0, 99))
    def progress(self, at: int) -> None:
        flight = self.flights.pop(at % len(self.flights))
        response = self.brokers[flight.send.to].handle(flight.message, self.now)
        response = type(response).decode(response.encode(flight.version), flight.version)
        flight.member.faults |= bool(response.error_code)
        flight.member.reader.answered(flight.send, Answer(response, flight.version, flight.send.to), self.now)
        self.run()

    @precondition(lambda self: bool(self.flights))
    @rule(at=st.integers(0, 99), applied=st.booleans())
    def drop(self, at: int, applied: bool) -> None:
        """A connection breaks, before a request arrives or after."""
        flight = self.flights.pop(at % len(self.flights))
        if applied:
            self.brokers[flight.send.to].handle(flight.message, self.now)
        flight.member.faults = True
        flight.member.reader.failed(flight.send, ConnectionFailed("dropped", sent=True), self.now)
        self.run()

    @rule(ms=st.sampled_from([1.0, 200.0, LOCK_MS / 2, LOCK_MS]))
    def wait(self, ms: float) -> None:
        self.now += ms
        self.run()

    @rule(at=MEMBERS, node=st.integers(1, PARTITIONS))
    def lose_session(self, at: int, node: int) -> None:
        self.brokers[node].forget(self.members[at % len(self.members)].name)

    @rule(at=MEMBERS, back=st.booleans())
    def fence(self, at: int, back: bool) -> None:
        """The coordinator removes a member, which joins again now or later."""
        member = self.members[at % len(self.members)]
        for broker in self.brokers.values():
            broker.forget(member.name)
        member.metadata, member.faults = None, True
        self.run()
        if back:
            member.metadata = GroupMetadata("g", 1, member.name)
            self.run()

    @rule(at=MEMBERS)
    def come_back(self, at: int) -> None:
        member = self.members[at % len(self.members)]
        member.metadata = GroupMetadata("g", 1, member.name)
        self.run()

    # What must hold

    def ended(self, member: str, partition: int, offset: int, delivery: int, kind: int) -> None:
        """A broker calls a record done: this member has said so of this delivery."""
        said = self.said.get((member, partition, offset, delivery))
        assert said == {AcknowledgeType.ACCEPT: "accept", AcknowledgeType.REJECT: "reject"}[AcknowledgeType(kind)]

    def teardown(self) -> None:
        """Without faults, and with a member that accepts all, everything is done."""
        if not self.members:
            return
        self.join(explicit=False)
        for at in range(len(self.members)):
            self.come_back(at)
        for _ in range(200):
            for at in range(len(self.members)):
                for record in list(self.members[at].given):
                    self.acknowledge(at, self.members[at].given.index(record), "accept")
                self.ask(at, 5)
            while self.flights:
                self.progress(0)
            self.wait(200)
            ends = [kept.end for broker in self.brokers.values() for kept in broker.offsets]
            if None not in ends:
                break
        assert None not in ends
        assert all(member.reader.closed for member in self.members if member.left)

    # How it is run

    def member(self, at: int) -> Member | None:
        member = self.members[at % len(self.members)]
        return None if member.left else member

    def processed(self, member: Member) -> bool:
        """The application is done with what it has; False if it first has to say more."""
        try:
            member.deliveries.processed()
        except LocalProtocolError:
            assert member.explicit
            assert member.given
            return False
        assert not member.explicit or not member.given or member.faults
        for record in () if member.explicit else member.given:
            self.say(member, record, "accept")
        member.given.clear()
        return True

    def say(self, member: Member, record: ShareRecord, kind: str) -> None:
        self.said[member.name, record.partition, record.offset, record.delivery_count] = kind

    def run(self) -> None:
        """Poll everything; metadata are answered at once."""
        for member in self.members:
            for send in member.cluster.poll(self.now):
                member.cluster.answered(send, Answer(metadata(), 12, 1), self.now)
            for send in member.reader.poll(self.now):
                message, version = send.request(VERSIONS)
                received = type(message).decode(message.encode(version), version)
                self.flights.append(Flight(member, send, received, version))
            for result in member.reader.take_results():
                for run in result.runs if result.error is None else ():
                    kept = self.brokers[result.partition.partition + 1].offsets[run.first : run.last + 1]
                    assert run.type == AcknowledgeType.RELEASE or {each.end for each in kept} == {run.type}


def metadata() -> Any:
    kind = messages.MetadataResponse
    partitions = [
        kind.MetadataResponsePartition(partition_index=n, leader_id=n + 1, leader_epoch=1) for n in range(PARTITIONS)
    ]
    brokers = [kind.MetadataResponseBroker(node_id=n + 1, host="h", port=n + 1) for n in range(PARTITIONS)]
    topic = kind.MetadataResponseTopic(name="t", topic_id=TOPIC_ID, partitions=partitions)
    return kind(brokers=brokers, controller_id=1, topics=[topic])


TestShares = Shares.TestCase
TestShares.settings = machine_settings
