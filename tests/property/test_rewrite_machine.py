"""Invariants of a controller and its members for any sequence of events."""

from __future__ import annotations

from collections import deque
from typing import Any

import hypothesis.strategies as st
from hypothesis import given, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kafkacodec.assignment.dividing import assign_range, assign_round_robin
from kafkacodec.dialects import rewrite
from kafkacodec.dialects.rewrite import MemberState, Partition
from kafkacodec.errors import KafkaCodecError, LocalProtocolError
from tests.dialect_vectors import rows
from tests.state_machines import machine_settings

SESSION, REQUEST = 90, 40
NAMES = ("a", "b", "c")
MEMBERS = st.sampled_from(NAMES)
ACTIVE = (MemberState.CONSUMING, MemberState.REWINDING)
# The first correlation id of calls outside `GroupMember`.
FOREIGN = 1 << 40
# A member and its connection: messages for an earlier connection are lost.
Connection = tuple[str, int]


class GroupMachine(RuleBasedStateMachine):
    """A controller and three members; messages between them arrive in order, but may be late or lost.

    Both sides may be restarted. A controller then loses its state: the text has no storage for it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = 0
        self.doubled = 0
        self.counts = {"t": 3, "u": 2}
        self.connections = dict.fromkeys(NAMES, 0)
        self.members = {name: self.make_member(name) for name in NAMES}
        self.to_controller: dict[str, deque[Any]] = {name: deque() for name in NAMES}
        self.to_member: dict[str, deque[Any]] = {name: deque() for name in NAMES}
        self.make_controller()

    def make_controller(self) -> None:
        self.controller = rewrite.GroupController(
            rewrite.Broker(0, "h", 1), self.counts, strategy=self.strategy, now=self.now, ephemeral=False
        )
        self.controller.create_group("g", SESSION, ["t", "u"], ephemeral=False)
        self.generation = 0
        self.owners: dict[tuple[int, Partition], Connection] = {}
        self.offsets: dict[Partition, int] = {}
        self.rewound: set[Partition] = set()
        # Calls that the controller has received and not answered, on open connections.
        self.unanswered: set[tuple[Connection, int]] = set()

    @staticmethod
    def make_member(name: str) -> rewrite.GroupMember:
        return rewrite.GroupMember(name, "g", name, request_timeout_ms=REQUEST)

    @staticmethod
    def strategy(partitions: Any, members: Any) -> Any:
        return (assign_range if len(members) % 2 else assign_round_robin)(partitions, members)

    def act(self, name: str, actions: list[rewrite.Action]) -> None:
        for action in actions:
            if isinstance(action, rewrite.Send):
                calls: Any = [type(action.call).decode(action.call.encode()) for _ in range(2)]
                calls[0].correlation_id += FOREIGN
                is_doubled = self.doubled > 0 and isinstance(action.call, rewrite.RegisterConsumer)
                self.doubled -= is_doubled
                self.to_controller[name] += calls if is_doubled else calls[1:]

    def deliver(self, replies: list[rewrite.Reply]) -> None:
        for reply in replies:
            connection: Any = reply.connection
            name, number = connection
            message: Any = type(reply.message).decode(reply.message.encode())
            if number == self.connections[name]:
                self.unanswered.remove((connection, message.correlation_id))
                if message.correlation_id < FOREIGN:
                    self.to_member[name].append(message)
            if isinstance(message, rewrite.RewindConsumerResponse):
                self.rewound |= {Partition(o.topic, o.partition) for o in message.actual_offsets if not o.error_code}
            if isinstance(message, rewrite.RegisterConsumerResponse) and not message.error_code:
                generation = self.controller.group("g").generation
                for own in message.partitions_to_own:
                    key = generation, Partition(own.topic, own.partition)
                    assert self.owners.setdefault(key, connection)[0] == name

    def forget_connection(self, name: str) -> None:
        """A new connection replaces a lost one; messages in transit are lost."""
        self.to_controller[name].clear()
        self.to_member[name].clear()
        self.connections[name] += 1
        self.unanswered = {(c, i) for c, i in self.unanswered if c[0] != name}

    @rule(name=MEMBERS)
    def start(self, name: str) -> None:
        if self.members[name].state is MemberState.IDLE:
            self.act(name, self.members[name].start(self.now))

    @rule(name=MEMBERS, count=st.integers(1, 4))
    def controller_reads(self, name: str, count: int) -> None:
        for _ in range(min(count, len(self.to_controller[name]))):
            call = self.to_controller[name].popleft()
            connection = name, self.connections[name]
            self.unanswered.add((connection, call.correlation_id))
            self.deliver(self.controller.receive(call, self.now, connection))

    @rule(name=MEMBERS, count=st.integers(1, 4))
    def member_reads(self, name: str, count: int) -> None:
        for _ in range(min(count, len(self.to_member[name]))):
            self.act(name, self.members[name].receive(self.to_member[name].popleft(), self.now))

    @rule(name=MEMBERS)
    def host_stops(self, name: str) -> None:
        if self.members[name].state is MemberState.STOPPING:
            self.act(name, self.members[name].stopped(self.now))

    @rule(name=MEMBERS)
    def a_call_is_lost(self, name: str) -> None:
        if self.to_controller[name]:
            self.to_controller[name].popleft()

    @rule(name=MEMBERS)
    def an_answer_is_lost(self, name: str) -> None:
        if self.to_member[name]:
            self.to_member[name].popleft()

    @rule()
    def the_next_registrations_are_sent_twice(self) -> None:
        """Registrations of a client without `GroupMember`. Each additional one may start another change."""
        self.doubled = 5

    @rule(name=MEMBERS)
    def connection_breaks(self, name: str) -> None:
        self.forget_connection(name)
        self.deliver(self.controller.disconnect(name, self.now))
        self.act(name, self.members[name].disconnected(self.now))

    @rule(name=MEMBERS, leaves=st.booleans())
    def member_restarts(self, name: str, leaves: bool) -> None:
        """Another process with the same names; the controller may or may not notice the lost connection."""
        self.forget_connection(name)
        if leaves:
            self.deliver(self.controller.disconnect(name, self.now))
        self.members[name] = self.make_member(name)

    @rule(lost=st.booleans())
    def controller_restarts(self, lost: bool) -> None:
        """Replies in transit may still arrive."""
        self.make_controller()
        for name in NAMES:
            if lost:
                self.forget_connection(name)
                self.act(name, self.members[name].disconnected(self.now))

    @rule(milliseconds=st.integers(0, SESSION) | st.sampled_from([10 * SESSION, 1 << 40]))
    def wait(self, milliseconds: int) -> None:
        self.now += milliseconds
        self.deliver(self.controller.tick(self.now))
        for name, member in self.members.items():
            self.act(name, member.tick(self.now))

    @rule(name=MEMBERS, offset=st.integers(0, 30))
    def commit(self, name: str, offset: int) -> None:
        for partition in self.members[name].partitions:
            before = dict(self.controller.group("g").offsets)
            try:
                self.controller.commit("g", name, {partition: offset})
            except LocalProtocolError:
                assert self.controller.group("g").offsets == before
                continue
            self.offsets[partition] = offset

    @rule(name=MEMBERS, partition=st.integers(0, 4), offset=st.integers(-1, 30))
    def rewind(self, name: str, partition: int, offset: int) -> None:
        if self.members[name].state is MemberState.CONSUMING:
            self.act(name, self.members[name].rewind({Partition("t", partition): offset}, self.now))

    @rule()
    def a_partition_is_added(self) -> None:
        self.counts = {**self.counts, "t": min(self.counts["t"] + 1, 6)}
        self.deliver(self.controller.set_partitions("t", self.counts["t"], self.now))

    def teardown(self) -> None:
        self.everything_calms_down()

    @rule()
    def everything_calms_down(self) -> None:
        """Once all messages are delivered and all members have stopped, all consume and each partition has an owner."""
        for _ in range(300):
            for name in NAMES:
                self.start(name)
                self.controller_reads(name, 4)
                self.member_reads(name, 4)
                self.host_stops(name)
            group = self.controller.group("g")
            stable = group.all_registered and not group.changing and sorted(group.members) == list(NAMES)
            silent = not any([*self.to_controller.values(), *self.to_member.values()])
            if stable and silent and all(m.state in ACTIVE for m in self.members.values()):
                break
            self.now += SESSION // 6
            self.wait(0)
        else:
            raise AssertionError(f"no calm: {[m.state for m in self.members.values()]}")
        assert not self.unanswered
        owned = [p for member in self.members.values() for p in member.partitions]
        assert sorted(owned) == [Partition(t, i) for t in ("t", "u") for i in range(self.counts[t])]

    @invariant()
    def generations_only_grow(self) -> None:
        generation = self.controller.group("g").generation
        assert generation >= self.generation
        self.generation = generation

    @invariant()
    def no_partition_has_two_owners(self) -> None:
        group = self.controller.group("g")
        if not group.changing:
            owned = [p for member in group.members.values() for p in member.owned]
            assert len(owned) == len(set(owned))

    @invariant()
    def offsets_move_back_only_by_rewind(self) -> None:
        now = self.controller.group("g").offsets
        for partition, offset in self.offsets.items():
            assert now[partition] >= offset or partition in self.rewound
        self.offsets = dict(now)
        self.rewound.clear()

    @invariant()
    def next_deadlines_are_not_in_the_past(self) -> None:
        for machine in (self.controller, *self.members.values()):
            deadline = machine.next_deadline()  # type: ignore[attr-defined]
            assert deadline is None or deadline >= 0

    @invariant()
    def a_member_that_waits_does_not_wait_for_ever(self) -> None:
        for member in self.members.values():
            if member.state not in (MemberState.IDLE, MemberState.STOPPING):
                deadline = member.next_deadline()
                assert deadline is not None
                assert deadline <= self.now + SESSION + REQUEST + 1


TestGroup = GroupMachine.TestCase
TestGroup.settings = machine_settings

BODIES = [(v["rpc"], bytes.fromhex(v["hex"])) for v in (*rows("rewrite/rpcs"), *rows("rewrite/bad"))]


@st.composite
def damaged_bodies(draw: Any) -> tuple[str, bytes]:
    name, body = draw(st.sampled_from(BODIES))
    at = draw(st.integers(0, len(body)))
    return name, body[:at] + draw(st.binary(max_size=3)) + body[at + draw(st.integers(0, 3)) :]


@given(damaged_bodies() | st.tuples(st.sampled_from([name for name, _ in BODIES]), st.binary()))
@settings(deadline=None)
def test_any_bytes_give_a_message_or_a_documented_error(case: tuple[str, bytes]) -> None:
    name, body = case
    try:
        message = getattr(rewrite, name).decode(body)
    except KafkaCodecError:
        return
    assert message.encode() == body
    controller = rewrite.GroupController(rewrite.Broker(0, "h", 1), {"orders": 2})
    try:
        controller.receive(message, 0)
    except LocalProtocolError:
        assert name.endswith("Response")
