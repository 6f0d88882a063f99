"""Classic groups of the broker. Expected values are answers of Apache Kafka 4.1.0 and 4.4.0 to the same requests."""

from __future__ import annotations

from typing import Any

import pytest

from kafkacodec import messages
from kafkacodec.broker.state.machine import partition_of
from kafkacodec.messages.stored import decode_internal_record
from tests.reference.group_members import Member, bench, described, stable


@pytest.mark.parametrize("version", range(10))
def test_a_member_joins_and_leaves_with_every_version(version: int) -> None:
    on = bench()
    member = Member(on, version=version)
    first = member.send_join()
    assert (first.answer.error_code, first.answer.generation_id) == ((79, -1) if version > 3 else (0, 1))
    member.id = first.answer.member_id
    answer = member.join() if version > 3 else member.joined(first)
    assert (answer.error_code, answer.generation_id, answer.leader, answer.protocol_name) == (0, 1, member.id, "range")
    assert answer.protocol_type == ("consumer" if version > 6 else None)
    assert [row.member_id for row in answer.members] == [member.id]
    named = {"protocol_type": "consumer", "protocol_name": "range"} if version > 4 else {}
    assert bytes(member.sync({member.id: b"mine"}, version=min(version, 5), **named).assignment) == b"mine"
    assert member.beat() == 0
    if version > 2:
        assert member.leave(min(version, 5)).members[0].error_code == 0
    else:
        left = on.ask(messages.LeaveGroupRequest(group_id="g", member_id=member.id), version)
        assert left.error_code == 0
    assert described(on).group_state == "Empty"


def test_what_is_refused_at_joining() -> None:
    on = bench()
    assert Member(on, "").join().error_code == 24
    unknown = Member(on)
    unknown.id = "nobody"
    assert unknown.send_join().answer.error_code == 25
    for timeout in (0, 5_999, 1_800_001, -1):
        assert Member(on, session_timeout_ms=timeout).join().error_code == 26
    assert Member(on, protocol_type="").join().error_code == 23
    assert Member(on).send_join(protocols={}).answer.error_code == 23
    assert described(on).group_state == "Dead"
    Member(on).join()
    assert Member(on, version=3, protocol_type="connect").join().error_code == 23
    assert Member(on, version=3).join({"mine": b""}).error_code == 23


def test_two_members_share_and_are_described() -> None:
    on = bench()
    a, b = Member(on), Member(on)
    a.join()
    a.sync({a.id: b"everything"})
    coming = b.enter()
    assert not coming.answered
    assert a.beat() == 27
    row = described(on)
    assert (row.group_state, row.protocol_data, sorted(bytes(m.member_assignment) for m in row.members)) == (
        "PreparingRebalance",
        "",
        [b"", b"everything"],
    )
    leader = a.join()
    follower = b.joined(coming)
    assert (leader.generation_id, leader.leader, len(leader.members), len(follower.members)) == (2, a.id, 2, 0)
    assert described(on).group_state == "CompletingRebalance"
    waiting = b.send_sync(version=5, protocol_type="consumer", protocol_name="range")
    assert not waiting.answered
    assert bytes(a.sync({a.id: b"for a", b.id: b"for b"}).assignment) == b"for a"
    assert (bytes(waiting.answer.assignment), waiting.answer.protocol_name) == (b"for b", "range")
    row = described(on)
    assert (row.group_state, row.protocol_type, row.protocol_data) == ("Stable", "consumer", "range")
    assert {m.client_host for m in row.members} == {"/127.0.0.1"}
    assert {bytes(m.member_metadata) for m in row.members} == {b"topics"}
    assert b.leave().members[0].error_code == 0
    assert a.beat() == 27
    assert a.join().generation_id == 3


def test_a_static_member_comes_back_without_a_rebalance() -> None:
    on = bench()
    one = Member(on, version=9, group_instance_id="box-1")
    one.join()
    one.sync({one.id: b"mine"}, group_instance_id="box-1")
    back = Member(on, version=9, group_instance_id="box-1")
    answer = back.join()
    assert (answer.generation_id, answer.skip_assignment, answer.leader) == (1, True, back.id)
    assert [row.member_id for row in answer.members] == [back.id]
    assert bytes(back.sync(group_instance_id="box-1").assignment) == b"mine"
    assert (one.beat(group_instance_id="box-1"), one.beat()) == (82, 25)
    assert one.sync(group_instance_id="box-1").error_code == 82
    assert one.join().error_code == 82
    older = Member(on, version=8, group_instance_id="box-1")
    answer = older.join()
    assert (answer.skip_assignment, answer.leader, answer.members) == (False, back.id, [])
    assert bytes(older.sync(group_instance_id="box-1").assignment) == b"mine"
    assert one.leave(5, group_instance_id="box-1").members[0].error_code == 82
    assert one.leave(5, member_id="", group_instance_id="box-1").members[0].error_code == 0
    assert described(on).group_state == "Empty"


def test_what_is_refused_at_syncing() -> None:
    on = bench()
    (m,) = stable(on, 1)
    codes = [
        m.sync(generation_id=7).error_code,
        m.sync(generation_id=-1).error_code,
        m.sync(member_id="nobody").error_code,
        m.sync(group_id="none").error_code,
        m.sync(group_id="").error_code,
        m.sync(version=5, protocol_type="connect", protocol_name="range").error_code,
        m.sync(version=5, protocol_type="consumer", protocol_name="sticky").error_code,
        m.sync(version=5).error_code,
        m.sync(version=5, protocol_type="consumer", protocol_name="range").error_code,
    ]
    assert codes == [22, 22, 25, 25, 24, 23, 23, 23, 0]


def test_the_protocol_is_chosen_by_votes() -> None:
    on = bench()
    offers = [{"x": b"", "y": b"", "z": b""}, {"z": b"", "y": b""}, {"w": b"", "y": b"", "z": b""}]
    a, b, c = (Member(on) for _ in offers)
    assert a.join(offers[0]).protocol_name == "x"
    a.sync()
    coming = b.enter(offers[1])
    assert a.join(offers[0]).protocol_name == b.joined(coming).protocol_name == "y"
    third = c.enter(offers[2])
    asked = [a.send_join(offers[0]), b.send_join(offers[1])]
    assert [one.answer.protocol_name for one in (*asked, third)] == ["y"] * 3


def test_who_is_silent_or_slow_is_put_out() -> None:
    on = bench()
    a, b = stable(on, 2, session_timeout_ms=6_000, rebalance_timeout_ms=700)
    on.wait(5_000)
    assert a.beat() == 0
    on.wait(1_500)
    assert (a.beat(), b.beat()) == (27, 25)
    assert a.join().generation_id == 3
    a.sync()
    c = Member(on, rebalance_timeout_ms=700)
    coming = c.enter()
    on.wait(700)  # a does not come
    assert (c.joined(coming).leader, a.beat()) == (c.id, 25)
    on.wait(700)  # c does not ask for its assignment
    assert (c.beat(), described(on).group_state) == (25, "Empty")


def test_an_id_that_was_given_out_holds_a_rebalance_until_it_expires() -> None:
    on = bench()
    (a,) = stable(on, 1)
    b = Member(on)
    b.id = b.send_join().answer.member_id
    assert (a.beat(), b.beat(), b.sync().error_code) == (0, 25, 25)
    again = a.send_join()
    assert not again.answered
    on.wait(20_000)  # the rebalance time-out of a
    assert again.answer.generation_id == 2
    assert b.leave(5).members[0].error_code == 0
    assert b.send_join().answer.error_code == 25


def test_the_first_members_are_waited_for() -> None:
    on = bench(group_initial_rebalance_delay_ms=3_000)
    a, b = Member(on), Member(on)
    first = a.enter()
    on.wait(2_000)
    second = b.enter()
    on.wait(1_000)
    assert not first.answered
    on.wait(3_000)
    assert len(a.joined(first).members) == 2
    assert b.joined(second).generation_id == 1


def test_the_record_is_what_kafka_writes_and_loads_again() -> None:
    on = bench()
    (m,) = stable(on, 1, group_instance_id="box")
    (append,) = on.log
    assert append.log == ("__consumer_offsets", partition_of("g", 50)) == ("__consumer_offsets", 103 % 50)
    (row,) = append.data.rows
    found = decode_internal_record("__consumer_offsets", *row)
    assert found is not None
    assert (type(found.key).__name__, found.version) == ("GroupMetadataKey", 3)
    value: Any = found.value
    assert (value.protocol_type, value.generation, value.protocol, value.leader) == ("consumer", 1, "range", m.id)
    assert (value.members[0].session_timeout, bytes(value.members[0].assignment)) == (30_000, b"0")
    fresh: Any = on.restarted()
    assert fresh.groups["g"].described() == on.machine.groups["g"].described()
    on.machine = fresh
    assert m.beat(group_instance_id="box") == 0
    on.wait(30_000)
    assert (m.beat(), described(on).group_state) == (25, "Empty")


def test_an_assignment_that_cannot_be_kept_is_no_assignment() -> None:
    on = bench()
    (m,) = [Member(on)]
    m.join()
    on.holds = True
    waiting = m.send_sync({m.id: b"mine"})
    beat = on.send(messages.HeartbeatRequest(group_id="g", generation_id=1, member_id=m.id), 4)
    assert not waiting.answered  # both wait for the record
    assert not beat.answered
    on.release(OSError("no space left"))
    assert (waiting.answer.error_code, beat.answer.error_code) == (16, 27)
    on.holds = False
    m.join()
    assert bytes(m.sync({m.id: b"mine"}).assignment) == b"mine"


def test_that_a_group_is_empty_is_written_when_there_is_room_again() -> None:
    on = bench()
    (m,) = stable(on, 1)
    on.holds = True
    m.leave()
    on.release(OSError("no space left"))
    assert on.restarted().groups["g"].state == "Stable"  # type: ignore[attr-defined]
    on.holds = False
    on.wait(1_000)
    assert on.restarted().groups["g"].state == "Empty"  # type: ignore[attr-defined]


def test_groups_are_listed_and_deleted() -> None:
    on = bench()
    (m,) = stable(on, 1)
    listed = on.ask(messages.ListGroupsRequest(states_filter=["STABLE"]), 5).groups
    assert [(row.group_id, row.protocol_type, row.group_state, row.group_type) for row in listed] == [
        ("g", "consumer", "Stable", "classic")
    ]
    assert on.ask(messages.ListGroupsRequest(states_filter=["Empty"]), 5).groups == []
    assert on.ask(messages.ListGroupsRequest(types_filter=["share"]), 5).groups == []

    def delete(*names: str) -> list[int]:
        return [row.error_code for row in on.ask(messages.DeleteGroupsRequest(groups_names=list(names)), 2).results]

    assert delete("g", "none", "none") == [68, 69]
    m.leave()
    assert (delete("g"), delete("g")) == ([0], [69])
    missing = described(on, version=6)
    assert (missing.error_code, missing.group_state, bool(missing.error_message)) == (69, "Dead", True)
    assert on.restarted().groups == {}  # type: ignore[attr-defined]


# By `Utils.abs(key.hashCode()) % 50` of Apache Kafka 4.4.0; some of the hashes are negative.
KEYS = [("", 0), ("a", 47), ("consumer-group", 38), ("größe", 7),
        ("classic-1", 40), ("consumer", 22), ("consumer-1", 6)]  # fmt: skip


@pytest.mark.parametrize(("key", "partition"), KEYS)
def test_the_partition_of_a_key_is_that_of_java(key: str, partition: int) -> None:
    assert partition_of(key, 50) == partition
