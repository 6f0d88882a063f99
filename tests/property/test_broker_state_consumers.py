"""The broker's groups of the consumer protocol: whatever members and topics do, and whatever is lost on the way.

No partition is given to a member before its last owner has given it up; when nothing happens any more, each partition
has one owner; what a restart loads is what was.
"""

from __future__ import annotations

import uuid
from typing import Any

from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kafkacodec import messages
from kafkacodec.broker.state.coordinator import GroupCoordinator
from tests.examples import examples
from tests.reference.coordinators import AT_ONCE, Bench, Cluster

SLOTS = st.integers(0, 3)
SUBSCRIPTIONS = st.sampled_from([["t"], ["u"], ["t", "u"]])


class Reader:
    """A member; what it reads changes only with the answers that reach it."""

    def __init__(self, name: str) -> None:
        self.name, self.epoch = name, 0
        self.reads: set[tuple[uuid.UUID, int]] = set()


class ConsumerGroups(RuleBasedStateMachine):
    """Members that beat, lose answers, leave and vanish."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster(t=3, u=2)
        self.bench = Bench(lambda: GroupCoordinator(self.cluster, options=AT_ONCE))
        self.readers: dict[int, Reader] = {}
        self.number = 0

    @rule(slot=SLOTS, topics=SUBSCRIPTIONS, assignor=st.sampled_from([None, "range"]))
    def join(self, slot: int, topics: list[str], assignor: str | None) -> None:
        if slot in self.readers:
            return
        self.number += 1
        self.readers[slot] = Reader(f"m{self.number}")
        self.beat(
            slot, False, True, rebalance_timeout_ms=10_000, subscribed_topic_names=topics, server_assignor=assignor
        )

    @rule(slot=SLOTS, lost=st.booleans(), report=st.booleans())
    def beats(self, slot: int, lost: bool, report: bool) -> None:
        self.beat(slot, lost, report)

    @rule(slot=SLOTS, topics=SUBSCRIPTIONS)
    def subscribe(self, slot: int, topics: list[str]) -> None:
        self.beat(slot, False, False, subscribed_topic_names=topics)

    def beat(self, slot: int, lost: bool, report: bool, **fields: Any) -> int:
        reader = self.readers.get(slot)
        if reader is None:
            return 0
        row = messages.ConsumerGroupHeartbeatRequest.TopicPartitions
        if report:
            fields["topic_partitions"] = [row(topic_id=topic, partitions=[number]) for topic, number in reader.reads]
        every = {"group_id": "g", "member_id": reader.name, "member_epoch": reader.epoch}
        answer = self.bench.ask(messages.ConsumerGroupHeartbeatRequest(**every | fields), 1)
        if answer.error_code:
            del self.readers[slot]
        elif not lost:
            reader.epoch = answer.member_epoch
            if answer.assignment is not None:
                rows = answer.assignment.topic_partitions
                reader.reads = {(row.topic_id, number) for row in rows for number in row.partitions}
        return int(answer.error_code)

    @rule(slot=SLOTS)
    def leave(self, slot: int) -> None:
        if slot in self.readers:
            request = messages.ConsumerGroupHeartbeatRequest(group_id="g", member_id=self.readers.pop(slot).name)
            request.member_epoch = -1
            self.bench.ask(request, 1)

    @rule(milliseconds=st.sampled_from([9_000, 44_000]))
    def wait(self, milliseconds: int) -> None:
        self.bench.wait(milliseconds)
        known = self.members()
        self.readers = {slot: reader for slot, reader in self.readers.items() if reader.name in known}

    @rule(partitions=st.integers(1, 5))
    def grow(self, partitions: int) -> None:
        self.cluster.counts["u"] = max(self.cluster.counts["u"], partitions)
        self.bench.machine.topics_changed()

    @rule()
    def restart(self) -> None:
        before = self.described()
        self.bench.restart()
        assert self.described() == before

    def described(self) -> Any:
        return self.bench.ask(messages.ConsumerGroupDescribeRequest(group_ids=["g"]), 1).groups[0]

    def members(self) -> dict[str, Any]:
        group = self.bench.machine.groups.get("g")
        return {} if group is None else dict(group.members)

    @invariant()
    def nothing_is_read_twice(self) -> None:
        held: set[tuple[uuid.UUID, int]] = set()
        for member in self.members().values():
            assert not held & (member.assigned | member.revoking)
            assert not member.assigned & member.revoking
            held |= member.assigned | member.revoking

    def teardown(self) -> None:
        for _ in range(25):  # a member that was refused is there until its session ends
            for slot in list(self.readers):
                self.beat(slot, False, True)
            self.bench.wait(2_000)
        if not self.readers:
            return
        for slot in list(self.readers):
            self.beat(slot, False, True)
        row = self.described()
        assert row.group_state == "Stable"
        wanted = {name for member in self.members().values() for name in member.topics}
        every = {(self.cluster.ids[name], n) for name in wanted for n in range(self.cluster.counts[name])}
        given = [place for member in self.members().values() for place in member.assigned]
        assert sorted(given) == sorted(every)


TestConsumerGroups = ConsumerGroups.TestCase
TestConsumerGroups.settings = settings(max_examples=examples(60), stateful_step_count=20, deadline=None)
