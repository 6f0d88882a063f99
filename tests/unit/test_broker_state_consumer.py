"""Groups of the consumer protocol. Expected values are answers of Apache Kafka 4.1.0 to the same requests."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from kafkacodec import messages
from kafkacodec.messages.stored import decode_internal_record
from tests.reference.group_consumers import Consumer, consumers, settle
from tests.reference.group_members import Member, bench, described, stable

T, U = uuid.UUID(int=100), uuid.UUID(int=101)


def test_one_member_gets_all_at_once() -> None:
    on = bench()
    a = Consumer(on, "a", "t")
    answer = a.join()
    assert (answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == ("a", 2, 5_000)
    assert a.owned == {T: [0, 1, 2]}
    assert a.beat(report=True).assignment is a.beat().assignment is None
    row = consumers(on)
    assert (row.group_state, row.group_epoch, row.assignment_epoch, row.assignor_name) == ("Stable", 2, 2, "uniform")
    member = row.members[0]
    assert (member.subscribed_topic_names, member.subscribed_topic_regex, member.member_type) == (["t"], "", 1)
    assert [(p.topic_name, p.partitions) for p in member.assignment.topic_partitions] == [("t", [0, 1, 2])]
    assert member.target_assignment == member.assignment
    listed = on.ask(messages.ListGroupsRequest(types_filter=["Consumer"]), 5).groups
    assert [(g.group_id, g.protocol_type, g.group_state, g.group_type) for g in listed] == [
        ("g", "consumer", "Stable", "consumer")
    ]
    assert (described(on).group_state, described(on, version=6).error_code) == ("Dead", 69)
    left = a.beat(member_epoch=-1)
    assert (left.error_code, left.member_epoch, left.heartbeat_interval_ms) == (0, -1, 0)
    row = consumers(on)
    assert (row.group_state, row.group_epoch, row.assignment_epoch, row.members) == ("Empty", 3, 3, [])
    a.epoch = 2
    assert a.code() == 25
    deleted = on.ask(messages.DeleteGroupsRequest(groups_names=["g"]), 2).results[0].error_code
    assert (deleted, consumers(on).error_code) == (0, 69)
    assert on.restarted().groups == {}  # type: ignore[attr-defined]


def test_version_0_makes_an_id() -> None:
    on = bench()
    request = messages.ConsumerGroupHeartbeatRequest
    every = {"group_id": "g", "rebalance_timeout_ms": 1_000, "subscribed_topic_names": ["t"], "topic_partitions": []}
    answer = on.ask(request(**every), 0)
    assert (answer.error_code, len(answer.member_id)) == (0, 22)
    assert on.ask(request(**every), 1).error_code == 42


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"group_id": ""}, 42),
        ({"group_id": "  "}, 42),
        ({"rebalance_timeout_ms": -1}, 42),
        ({"rebalance_timeout_ms": 0}, 0),
        ({"topic_partitions": None}, 42),
        ({"subscribed_topic_names": None}, 42),
        ({"subscribed_topic_names": []}, 0),
        ({"instance_id": ""}, 42),
        ({"rack_id": ""}, 42),
        ({"server_assignor": ""}, 112),
        ({"server_assignor": "best"}, 112),
        ({"member_epoch": 3}, 69),
        ({"member_epoch": -2}, 42),
        ({"member_epoch": -3}, 42),
        ({"subscribed_topic_names": None, "subscribed_topic_regex": "("}, 128),
    ],
)
def test_what_is_refused_at_joining(fields: dict[str, Any], code: int) -> None:
    answer = Consumer(bench(), "m", "t").join(**fields)
    assert (answer.error_code, answer.member_id is None, bool(answer.error_message)) == (code, code > 0, code > 0)


def test_epochs_of_heartbeats() -> None:
    on = bench()
    a = Consumer(on, "a", "u")
    a.join()
    a.beat(report=True, subscribed_topic_names=["t", "u"])
    a.beat(report=True)
    assert a.epoch == 3
    row = messages.ConsumerGroupHeartbeatRequest.TopicPartitions
    mine, more = [row(topic_id=U, partitions=[0])], [row(topic_id=U, partitions=[0, 1])]
    codes = [
        a.code(member_epoch=4),
        a.code(member_epoch=2),
        a.code(member_epoch=2, topic_partitions=mine),
        a.code(member_epoch=2, topic_partitions=more),
        a.code(member_id="nobody"),
        a.code(group_id="none"),
        a.code(member_epoch=0, topic_partitions=[], **a.joining),
    ]
    assert codes == [110, 110, 0, 110, 25, 69, 0]


def test_partitions_are_handed_over() -> None:
    on = bench()
    on.cluster.counts["t"] = 4
    a, b = Consumer(on, "a", "t"), Consumer(on, "b", "t")
    a.join()
    a.beat(report=True)
    answer = b.join()
    assert (answer.member_epoch, answer.assignment.topic_partitions) == (3, [])
    had = dict(a.owned)
    answer = a.beat()  # is told to give up
    assert (answer.member_epoch, a.owned) == (2, {T: [0, 1]})
    assert b.beat(report=True).assignment is None
    assert consumers(on).group_state == "Reconciling"
    row = messages.ConsumerGroupHeartbeatRequest.TopicPartitions
    assert a.beat(topic_partitions=[row(topic_id=T, partitions=had[T])]).member_epoch == 2
    answer = a.beat(report=True)
    assert (answer.member_epoch, answer.assignment) == (3, None)
    b.beat()
    assert b.owned == {T: [2, 3]}
    assert (b.leave(), b.on.machine.groups["g"].state) == (0, "Assigning")
    assert (a.beat().member_epoch, a.owned) == (4, {T: [0, 1, 2, 3]})


def test_who_does_not_give_up_in_time_or_is_silent_is_put_out() -> None:
    on = bench()
    a, b = Consumer(on, "a", "t", rebalance_timeout_ms=800), Consumer(on, "b", "t")
    a.join()
    a.beat(report=True)
    b.join()
    a.beat()
    on.wait(799)
    assert a.code() == 0
    on.wait(1)
    assert a.code() == 25
    settle(on, b)
    assert b.owned == {T: [0, 1, 2]}
    on.wait(44_999)
    assert b.code() == 0
    on.wait(45_000)
    assert b.code() == 25


def test_assignors() -> None:
    on = bench()
    on.cluster.counts["u"] = 3
    a, b = (Consumer(on, name, "t", "u", server_assignor="range") for name in ("a", "b"))
    for member in (a, b):
        member.join()
    settle(on, a, b)
    assert (a.owned, b.owned) == ({T: [0, 1], U: [0, 1]}, {T: [2], U: [2]})
    c = Consumer(on, "aa", "t", server_assignor="range")
    c.join()
    settle(on, a, b, c)
    assert (a.owned, b.owned, c.owned) == ({T: [0], U: [0, 1]}, {T: [2], U: [2]}, {T: [1]})
    assert consumers(on).assignor_name == "range"
    assert a.code(server_assignor="best") == 112


def test_members_with_different_topics_get_as_many() -> None:
    on = bench()
    a, b = Consumer(on, "a", "t"), Consumer(on, "b", "u")
    for member in (a, b):
        member.join()
    settle(on, a, b)
    assert (a.owned, b.owned) == ({T: [0, 1, 2]}, {U: [0]})
    b.beat(subscribed_topic_names=["t", "u"])
    settle(on, a, b)
    assert [sum(map(len, m.owned.values())) for m in (a, b)] == [2, 2]


def test_topics_that_come_grow_and_go() -> None:
    on = bench()
    del on.cluster.counts["u"]
    a = Consumer(on, "a", "u")
    assert a.join().assignment.topic_partitions == []
    on.cluster.counts["u"] = 2
    on.machine.topics_changed()
    assert (a.beat().member_epoch, a.owned) == (3, {U: [0, 1]})
    a.beat(report=True)
    on.cluster.counts["u"] = 3
    on.machine.topics_changed()
    assert (a.beat().member_epoch, a.owned) == (4, {U: [0, 1, 2]})
    a.beat(report=True)
    del on.cluster.counts["u"]
    on.machine.topics_changed()
    assert (a.beat().member_epoch, a.owned) == (4, {})


def test_regular_expressions() -> None:
    on = bench()
    a = Consumer(on, "a", subscribed_topic_names=None, subscribed_topic_regex="[tv]")
    assert a.join().assignment.topic_partitions == []
    on.wait(0)
    assert (a.beat().member_epoch, a.owned) == (2, {T: [0, 1, 2]})
    assert consumers(on).members[0].subscribed_topic_regex == "[tv]"
    on.cluster.counts["v"], on.cluster.ids["v"] = 1, uuid.UUID(int=102)
    on.machine.topics_changed()
    a.beat(report=True)
    on.wait(0)
    assert (a.beat().member_epoch, len(a.owned)) == (3, 2)
    a.beat(report=True)
    assert (a.beat(subscribed_topic_regex="nothing").member_epoch, a.owned) == (3, {})
    on.wait(0)
    fresh: Any = on.restarted()
    assert fresh.groups["g"].patterns == {"nothing": ()}


def test_a_regular_expression_finds_internal_topics_too() -> None:
    """As in Apache Kafka 4.4.0, seen with franz-go's Test848RegexBrokerResolves."""
    on = bench()
    on.cluster.counts["__internal"], on.cluster.ids["__internal"] = 1, uuid.UUID(int=103)
    a = Consumer(on, "a", subscribed_topic_names=None, subscribed_topic_regex="(__.*|t)")
    a.join()
    on.wait(0)
    a.beat()
    assert a.owned == {T: [0, 1, 2], uuid.UUID(int=103): [0]}


def test_a_static_member_is_replaced() -> None:
    on = bench()
    a, b = (Consumer(on, name, "t", instance_id="box") for name in ("a", "b"))
    a.join()
    a.beat(report=True)
    assert b.join().error_code == 111
    assert a.beat(member_epoch=-2, instance_id="box").member_epoch == -2
    row = consumers(on)
    assert (row.group_state, row.members[0].member_epoch) == ("Reconciling", -2)
    assert (b.join().member_epoch, b.owned) == (2, {T: [0, 1, 2]})
    a.epoch = 2
    assert a.code(instance_id="box") == 82
    assert [m.member_id for m in consumers(on).members] == ["b"]
    assert (b.code(instance_id="other"), b.leave(-2)) == (25, 42)
    assert (b.leave(instance_id="box"), consumers(on).group_state) == (0, "Empty")
    assert on.restarted().groups["g"].described() == on.machine.groups["g"].described()  # type: ignore[attr-defined]


def test_members_commit_with_their_epoch() -> None:
    on = bench()
    a = Consumer(on, "a", "t")
    a.join()
    a.beat(report=True)

    def commit(version: int, epoch: int, member: str) -> int:
        row = messages.OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
        row.committed_metadata = ""
        topics = [messages.OffsetCommitRequest.OffsetCommitRequestTopic(name="t", partitions=[row])]
        request = messages.OffsetCommitRequest(group_id="g", member_id=member, topics=topics)
        request.generation_id_or_member_epoch = epoch
        return int(on.ask(request, version).topics[0].partitions[0].error_code)

    def fetch(version: int, epoch: int, member: str | None) -> int:
        topics = [messages.OffsetFetchRequest.OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
        asked = messages.OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=topics)
        asked.member_id, asked.member_epoch = member, epoch
        return int(on.ask(messages.OffsetFetchRequest(groups=[asked]), version).groups[0].error_code)

    cases = [(9, 2, "a"), (9, 1, "a"), (9, 3, "a"), (9, 2, "nobody"), (9, -1, ""), (9, 2, ""), (8, 2, "a"), (2, 2, "a")]
    assert [commit(*case) for case in cases] == [0, 113, 113, 25, 25, 25, 35, 35]
    asked: list[tuple[int, int, str | None]] = [(9, 2, "a"), (9, 1, "a"), (9, 3, "a"), (9, 2, "nobody"), (9, -1, None)]
    assert [fetch(*case) for case in asked] == [0, 113, 113, 25, 0]
    row = messages.OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=0)
    topics = [messages.OffsetDeleteRequest.OffsetDeleteRequestTopic(name="t", partitions=[row])]
    deleted = on.ask(messages.OffsetDeleteRequest(group_id="g", topics=topics), 0)
    assert deleted.topics[0].partitions[0].error_code == 86
    assert on.ask(messages.DeleteGroupsRequest(groups_names=["g"]), 2).results[0].error_code == 68
    a.leave()
    assert commit(9, -1, "") == 0
    on.wait(7 * 86_400_000 + 600_000)
    assert consumers(on).error_code == 69


def test_calls_of_classic_members() -> None:
    on = bench()
    a = Consumer(on, "a", "t")
    a.join()
    other = Member(on)
    other.id, other.generation = "a", 1
    assert (other.beat(), other.sync().error_code) == (25, 25)
    assert other.leave(5, member_id="nobody").members[0].error_code == 25
    assert Member(on, protocol_type="connect").join().error_code == 23
    assert (other.leave(5).members[0].error_code, consumers(on).group_state) == (0, "Empty")


def test_an_empty_group_becomes_one_of_the_other_protocol() -> None:
    on = bench()
    (gone,) = stable(on, 1)
    late = Consumer(on, "late", "t")
    assert late.join().error_code == 69  # it has a member
    gone.leave()
    assert (late.join().member_epoch, late.owned) == (2, {T: [0, 1, 2]})
    assert on.restarted().groups["g"].kind == "consumer"  # type: ignore[attr-defined]
    late.leave()
    (again,) = stable(on, 1)
    assert (again.generation, described(on).group_state) == (1, "Stable")
    assert on.restarted().groups["g"].kind == "classic"  # type: ignore[attr-defined]


def test_settings_of_a_group() -> None:
    on = bench()
    on.machine.configure("g", "consumer.heartbeat.interval.ms", 6_000)
    a = Consumer(on, "a", "t")
    assert a.join().heartbeat_interval_ms == 6_000
    on.machine.configure("g", "consumer.heartbeat.interval.ms", None)
    assert a.beat().heartbeat_interval_ms == 5_000
    with pytest.raises(KeyError):
        on.machine.configure("g", "none", 1)


def test_the_records_are_what_kafka_writes() -> None:
    on = bench()
    Consumer(on, "a", "t", instance_id="box", rack_id="r").join()
    (append,) = on.log
    found: list[Any] = [decode_internal_record("__consumer_offsets", *row) for row in append.data.rows]
    assert [type(record.key).__name__ for record in found] == [
        "ConsumerGroupMemberMetadataKey",
        "ConsumerGroupMetadataKey",
        "ConsumerGroupTargetAssignmentMemberKey",
        "ConsumerGroupTargetAssignmentMetadataKey",
        "ConsumerGroupCurrentMemberAssignmentKey",
    ]
    member, group, target, since, current = (record.value for record in found)
    assert (member.instance_id, member.rack_id, member.client_id, member.subscribed_topic_names) == (
        "box",
        "r",
        "app",
        ["t"],
    )
    assert (group.epoch, since.assignment_epoch, current.member_epoch, current.state) == (2, 2, 2, 0)
    assert target.topic_partitions[0].partitions == current.assigned_partitions[0].partitions == [0, 1, 2]


def test_a_heartbeat_that_cannot_be_kept_changes_nothing() -> None:
    on = bench()
    on.holds = True
    request = messages.ConsumerGroupHeartbeatRequest(group_id="g", member_id="a", member_epoch=0)
    request.rebalance_timeout_ms, request.subscribed_topic_names, request.topic_partitions = 1_000, ["t"], []
    asked = on.send(request, 1)
    on.release(OSError("no space left"))
    assert (asked.answer.error_code, on.machine.groups) == (16, {})


def test_targets_stay_for_an_interval_also_across_a_restart() -> None:
    on = bench(group_consumer_assignment_interval_ms=1_000)  # as Apache Kafka 4.4.0
    a, b = Consumer(on, "a", "t"), Consumer(on, "b", "t")
    a.join()
    on.wait(999)
    assert (b.join().member_epoch, b.owned) == (2, {})
    row = consumers(on)
    assert (row.group_state, row.group_epoch, row.assignment_epoch) == ("Assigning", 3, 2)
    on.restart()
    assert a.beat(report=True).assignment is None
    on.wait(1)
    assert (a.beat(report=True).member_epoch, len(a.owned[T])) == (2, 2)
    settle(on, a, b)
    assert sorted(a.owned[T] + b.owned[T]) == [0, 1, 2]
