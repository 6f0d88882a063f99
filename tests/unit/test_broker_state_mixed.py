"""Members of both protocols in one group. Expected values are answers of Apache Kafka 4.1.0 to the same requests."""

from __future__ import annotations

import uuid
from typing import Any

from kafkacodec import messages
from kafkacodec.messages.consumer_protocol import decode_assignment, encode_assignment
from tests.reference.coordinators import Bench
from tests.reference.group_consumers import Consumer, consumers
from tests.reference.group_members import Member, bench, described, stable

T = uuid.UUID(int=100)
SUBSCRIBED = {"range": b"\0\0" + messages.ConsumerProtocolSubscription(topics=["t"]).encode(0)}


def two_partitions() -> Bench:
    """A coordinator of a cluster whose topic t has two partitions."""
    on = bench()
    on.cluster.counts["t"] = 2
    return on


def share(answer: Any) -> dict[str, list[int]]:
    """The partitions in the answer to SyncGroup."""
    assert answer.error_code == 0
    return {row.topic: row.partitions for row in decode_assignment(answer.assignment).assigned_partitions}


def classic_with_both(on: Bench, **fields: Any) -> Member:
    """A classic member that has both partitions."""
    old = Member(on, version=9, **fields)
    old.join(SUBSCRIBED)
    entry = messages.ConsumerProtocolAssignment.TopicPartition(topic="t", partitions=[0, 1])
    old.sync({old.id: encode_assignment(messages.ConsumerProtocolAssignment(assigned_partitions=[entry]), 0)})
    return old


def test_a_new_member_joins_a_classic_group() -> None:
    on = two_partitions()
    old, new = classic_with_both(on), Consumer(on, "new", "t")
    assert new.join().assignment.topic_partitions == []
    listed = on.ask(messages.ListGroupsRequest(), 5).groups[0]
    assert (listed.group_state, listed.group_type) == ("Reconciling", "consumer")
    assert {m.member_id: m.member_type for m in consumers(on).members} == {old.id: 0, "new": 1}
    assert old.beat() == 27
    answer = old.join(SUBSCRIBED)
    assert (answer.error_code, answer.protocol_name, answer.leader, answer.members) == (0, "range", "", [])
    assert share(old.sync()) == {"t": [0]}
    assert old.beat() == 0
    new.beat()
    assert new.owned == {T: [1]}
    new.beat(report=True)
    assert on.restarted().groups["g"].described() == on.machine.groups["g"].described()  # type: ignore[attr-defined]
    assert new.leave() == 0
    assert (old.beat(), described(on).group_state) == (27, "PreparingRebalance")
    answer = old.join(SUBSCRIBED)
    assert (answer.leader, len(answer.members)) == (old.id, 1)
    assert on.restarted().groups["g"].kind == "classic"  # type: ignore[attr-defined]


def test_a_classic_member_joins_a_new_group() -> None:
    on = two_partitions()
    a, old = Consumer(on, "a", "t"), Member(on, version=9)
    a.join()
    a.beat(report=True)
    answer = old.join(SUBSCRIBED)
    assert (answer.error_code, len(answer.member_id), answer.leader, answer.protocol_type) == (0, 22, "", "consumer")
    a.beat()
    assert (a.epoch, a.owned) == (2, {T: [0]})
    assert old.beat() == 0  # its share is not free yet
    a.beat(report=True)
    assert (a.epoch, old.beat()) == (3, 27)
    old.join(SUBSCRIBED)
    assert share(old.sync()) == {"t": [1]}
    assert consumers(on).group_state == "Stable"
    assert old.leave().members[0].error_code == 0
    assert (a.beat().member_epoch, a.owned) == (4, {T: [0, 1]})


def test_what_is_refused_to_classic_members() -> None:
    on = two_partitions()
    Consumer(on, "a", "t").join()
    old = Member(on, version=9)
    assert Member(on, protocol_type="connect").join(SUBSCRIBED).error_code == 23
    assert Member(on).join({"range": b"bad"}).error_code == 23
    old.join(SUBSCRIBED)
    assert Member(on).join({"other": SUBSCRIBED["range"]}).error_code == 23
    codes = [
        old.beat(generation_id=9),
        old.beat(member_id="nobody"),
        old.beat(member_id="a"),
        old.beat(group_instance_id="box"),
        old.sync(generation_id=9).error_code,
        old.sync(version=5, protocol_type="consumer", protocol_name="other").error_code,
    ]
    assert codes == [22, 25, 25, 25, 22, 23]


def test_a_group_whose_assignments_cannot_be_read_stays_classic() -> None:
    on = two_partitions()
    stable(on, 1)
    assert Consumer(on, "new", "t").join().error_code == 69
    other = bench()
    stable(other, 1, protocol_type="connect")
    assert Consumer(other, "new", "t").join().error_code == 69
    assert described(other).group_state == "Stable"


def test_a_classic_member_that_does_not_join_again_is_put_out() -> None:
    on = two_partitions()
    old, new = classic_with_both(on, rebalance_timeout_ms=700), Consumer(on, "new", "t")
    new.join()
    assert old.beat() == 27
    on.wait(700)
    assert old.beat() == 25
    new.beat(report=True)
    assert new.owned == {T: [0, 1]}


def test_a_static_classic_member_takes_its_place_again() -> None:
    on = two_partitions()
    Consumer(on, "a", "t").join()
    old = Member(on, version=9, group_instance_id="box")
    old.join(SUBSCRIBED)
    back = Member(on, version=9, group_instance_id="box")
    assert back.join(SUBSCRIBED).error_code == 0
    assert old.beat(group_instance_id="box") == 82
    assert {m.member_id for m in consumers(on).members} == {"a", back.id}


def test_those_that_wait_are_told_of_the_change() -> None:
    on = two_partitions()
    old, other = classic_with_both(on), Member(on, version=9)
    waiting = other.enter(SUBSCRIBED)
    assert not waiting.answered
    Consumer(on, "new", "t").join()
    assert (waiting.answer.error_code, old.beat()) == (27, 27)


def test_a_classic_member_that_does_not_sync_is_put_out() -> None:
    on = two_partitions()
    a = Consumer(on, "a", "t")
    a.join()
    old, other = Member(on, version=9), Member(on, version=9)
    old.join(SUBSCRIBED)
    assert old.sync().error_code == 0
    other.join(SUBSCRIBED)
    on.wait(19_999)
    assert (old.beat(), other.beat()) == (27, 0)
    on.wait(1)
    assert (old.beat(), other.beat()) == (27, 25)
