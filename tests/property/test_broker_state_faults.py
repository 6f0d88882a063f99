"""The broker's group coordinator under any requests, while records are late, fail or are lost in a restart.

Every request gets exactly one answer, no request ends in an exception, and what a restart loads is what was.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from kafkacodec import messages
from kafkacodec.broker.state.consumers.group import ConsumerGroup
from kafkacodec.broker.state.coordinator import GroupCoordinator
from kafkacodec.messages.consumer_protocol import encode_assignment, encode_subscription
from tests.examples import examples
from tests.reference.coordinators import AT_ONCE, Asked, Bench, Cluster

GROUPS = st.sampled_from(["g", "g", "h"])
MEMBERS = st.integers(-1, 3)
INSTANCES = st.sampled_from([None, None, "box"])
PROTOCOLS = {
    "range": encode_subscription(messages.ConsumerProtocolSubscription(topics=["t"]), 1),
    "odd": b"\1",
}
SHARES = st.sampled_from([b"", b"odd", encode_assignment(messages.ConsumerProtocolAssignment(), 0)])


class Requests(RuleBasedStateMachine):
    """Requests of few groups and members, in any order."""

    def __init__(self) -> None:
        super().__init__()
        cluster = Cluster(t=2, u=1)
        self.bench = Bench(lambda: GroupCoordinator(cluster, 50, AT_ONCE))
        self.asked: list[Asked] = []
        self.ids: list[str] = []
        self.transacted = False
        self.epochs: dict[str, int] = {}

    def send(self, request: Any, version: int) -> None:
        self.asked.append(self.bench.send(request, version))
        self.learn()

    def learn(self) -> None:
        for asked in [asked for asked in self.asked if asked.answered]:
            self.asked.remove(asked)
            name, epoch = getattr(asked.answer, "member_id", None), getattr(asked.answer, "generation_id", None)
            if name and not isinstance(asked.answer, messages.ConsumerGroupHeartbeatResponse):
                self.ids.append(name)
                self.ids = self.ids[-4:]
                self.epochs[name] = epoch if epoch is not None else -1
            elif name:
                self.epochs[name] = asked.answer.member_epoch

    def member(self, number: int) -> str:
        return self.ids[number % len(self.ids)] if self.ids and number >= 0 else ""

    @rule(group=GROUPS, number=MEMBERS, instance=INSTANCES, protocol=st.sampled_from(sorted(PROTOCOLS)))
    def join(self, group: str, number: int, instance: str | None, protocol: str) -> None:
        row = messages.JoinGroupRequest.JoinGroupRequestProtocol(name=protocol, metadata=PROTOCOLS[protocol])
        request = messages.JoinGroupRequest(group_id=group, member_id=self.member(number), protocols=[row])
        request.session_timeout_ms = request.rebalance_timeout_ms = 10_000
        request.protocol_type, request.group_instance_id = "consumer", instance
        self.send(request, 7)

    @rule(group=GROUPS, number=MEMBERS, share=SHARES, instance=INSTANCES)
    def sync(self, group: str, number: int, share: bytes, instance: str | None) -> None:
        name = self.member(number)
        row = messages.SyncGroupRequest.SyncGroupRequestAssignment
        request = messages.SyncGroupRequest(group_id=group, member_id=name, group_instance_id=instance)
        request.generation_id = self.epochs.get(name, -1)
        request.assignments = [row(member_id=each, assignment=share) for each in self.ids]
        self.send(request, 4)

    @rule(group=GROUPS, number=MEMBERS)
    def beat(self, group: str, number: int) -> None:
        name = self.member(number)
        request = messages.HeartbeatRequest(group_id=group, member_id=name)
        request.generation_id = self.epochs.get(name, -1)
        self.send(request, 4)

    @rule(group=GROUPS, number=MEMBERS, instance=INSTANCES)
    def leave(self, group: str, number: int, instance: str | None) -> None:
        row = messages.LeaveGroupRequest.MemberIdentity(member_id=self.member(number), group_instance_id=instance)
        self.send(messages.LeaveGroupRequest(group_id=group, members=[row]), 4)

    @rule(group=GROUPS, name=st.sampled_from(["a", "b"]), epoch=st.sampled_from([None, None, 0, -1, -2]),
          instance=INSTANCES, full=st.booleans())  # fmt: skip
    def consume(self, group: str, name: str, epoch: int | None, instance: str | None, full: bool) -> None:
        request = messages.ConsumerGroupHeartbeatRequest(group_id=group, member_id=name, instance_id=instance)
        request.member_epoch = self.epochs.get(name, 0) if epoch is None else epoch
        if full or request.member_epoch == 0:
            request.rebalance_timeout_ms, request.subscribed_topic_names = 5_000, ["t"]
            request.topic_partitions = []
        self.send(request, 1)

    @rule(group=GROUPS, number=MEMBERS, transactional=st.booleans())
    def commit(self, group: str, number: int, transactional: bool) -> None:
        name = self.member(number)
        made: Any = messages.TxnOffsetCommitRequest if transactional else messages.OffsetCommitRequest
        topic, partition = (getattr(made, made.__name__ + part) for part in ("Topic", "Partition"))
        row = partition(partition_index=0, committed_offset=1, committed_metadata="")
        request = made(group_id=group, member_id=name, topics=[topic(name="t", partitions=[row])])
        request.generation_id_or_member_epoch = self.epochs.get(name, -1) if name else -1
        if transactional:
            self.transacted = True
            request.transactional_id, request.producer_id = "x", 7
        self.send(request, 5 if transactional else 8)

    @rule(group=GROUPS, committed=st.booleans())
    def end(self, group: str, committed: bool) -> None:
        if not self.bench.held:
            self.bench.machine.end_transaction(self.bench.machine.log_of(group)[1], 7, committed)

    @rule(group=GROUPS)
    def delete(self, group: str) -> None:
        self.send(messages.DeleteGroupsRequest(groups_names=[group]), 2)

    @rule(group=GROUPS)
    def look(self, group: str) -> None:
        self.send(messages.DescribeGroupsRequest(groups=[group]), 6)
        self.send(messages.ConsumerGroupDescribeRequest(group_ids=[group]), 1)
        self.send(messages.ListGroupsRequest(), 5)
        asked = messages.OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=None)
        self.send(messages.OffsetFetchRequest(groups=[asked], require_stable=True), 9)

    @rule(on=st.booleans())
    def hold(self, on: bool) -> None:
        self.bench.holds = on

    @rule(fails=st.booleans())
    def release(self, fails: bool) -> None:
        if self.bench.held:
            self.bench.release(OSError("no space left") if fails else None)
            self.learn()

    @rule(milliseconds=st.sampled_from([1_000, 9_000, 50_000]))
    def wait(self, milliseconds: int) -> None:
        self.bench.wait(milliseconds)
        self.learn()

    @rule()
    def restart(self) -> None:
        self.bench.held.clear()
        self.asked.clear()
        self.bench.restart()

    def teardown(self) -> None:
        self.bench.holds = False
        while self.bench.held:
            self.bench.release()
        self.bench.wait(700_000)
        self.learn()
        assert self.asked == []
        mine, fresh = self.bench.machine, self.bench.restarted()
        for name, group in mine.groups.items():
            if not self.transacted:  # markers are not in this log
                assert mine.offsets.places(name) == fresh.offsets.places(name)  # type: ignore[attr-defined]
            if isinstance(group, ConsumerGroup) or group.generation:
                again: Any = fresh.groups[name]  # type: ignore[attr-defined]
                assert (again.kind, again.state, again.described()) == (group.kind, group.state, group.described())


TestRequests = Requests.TestCase
TestRequests.settings = settings(max_examples=examples(100), stateful_step_count=40, deadline=None)
