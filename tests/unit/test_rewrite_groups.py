"""The membership protocol of the proposal: the server (`GroupController`)."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from kafkacodec.assignment.dividing import assign_round_robin
from kafkacodec.dialects import rewrite
from kafkacodec.dialects.rewrite import ErrorCode, Partition
from kafkacodec.errors import LocalProtocolError
from tests.rewrite_session import Session, outcome


def test_a_group_is_made_listed_and_deleted() -> None:
    s = Session()
    assert s.create() == ErrorCode.NONE
    assert s.create() == ErrorCode.GROUP_EXISTS
    assert s.create("", 100) == ErrorCode.INVALID_REQUEST
    assert s.create("h", 0) == ErrorCode.INVALID_REQUEST
    s.register("a")
    (reply,) = s.call(rewrite.ListGroups, "x", consumer_groups=["g", "nope"])
    assert reply.message.to_dict()["groups_info"] == [
        {
            "group_name": "g",
            "group_members": ["a"],
            "topics": ["t"],
            "controller_broker": {"broker_id": 7, "host": "localhost", "port": 9092},
            "session_timeout": 100,
        }
    ]
    assert reply.message.to_dict()["error_code"] == ErrorCode.UNKNOWN_GROUP
    s.create("h")
    (reply,) = s.call(rewrite.DeleteGroup, "x", consumer_group=["g", "h", "nope"])
    assert reply.message.to_dict()["deleted_consumer_groups"] == ["h"]
    assert reply.message.to_dict()["error_code"] == ErrorCode.GROUP_HAS_MEMBERS
    (reply,) = s.call(rewrite.ListGroups, "x")
    assert [info["group_name"] for info in reply.message.to_dict()["groups_info"]] == ["g"]


def test_members_share_partitions_when_all_have_registered() -> None:
    s = Session()
    s.create()
    assert s.register("b") == {"b": {0: -1, 1: -1, 2: -1, 3: -1}}
    assert s.heartbeat("b") == ErrorCode.NONE
    assert s.register("a") == {}
    assert s.heartbeat("a") == ErrorCode.NONE
    assert s.heartbeat("b") == ErrorCode.GROUP_CHANGES
    s.controller.commit("g", "b", {Partition("t", 0): 5, Partition("t", 3): 9})
    assert s.register("b") == {"a": {0: 5, 1: -1}, "b": {2: -1, 3: 9}}
    assert s.heartbeat("b") == ErrorCode.NONE
    assert s.controller.group("g").generation == 2


def test_other_strategies() -> None:
    s = Session(strategy=assign_round_robin)
    s.create()
    s.register("a")
    s.register("b")
    assert s.register("a") == {"a": {0: -1, 2: -1}, "b": {1: -1, 3: -1}}


def test_new_partitions_start_at_0() -> None:
    s = Session({"t": 1})
    s.create(topics=("t", "later"))
    s.register("a")
    assert s.controller.set_partitions("t", 2, 0) == []
    assert s.heartbeat("a") == ErrorCode.GROUP_CHANGES
    assert s.register("a") == {"a": {0: -1, 1: 0}}
    s.controller.set_partitions("later", 1, 0)
    (reply,) = s.call(rewrite.RegisterConsumer, "a", consumer_group="g", consumer_id="a")
    own: Any = reply.message
    assert [(p.topic, p.partition, p.offset) for p in own.partitions_to_own] == [
        ("later", 0, 0),
        ("t", 0, -1),
        ("t", 1, 0),
    ]
    with pytest.raises(LocalProtocolError):
        s.controller.set_partitions("t", 1, 0)
    s.controller.set_partitions("t", 2, 0)
    assert s.heartbeat("a") == ErrorCode.NONE


def test_who_does_not_register_in_time_is_given_up() -> None:
    s = Session()
    s.create()
    s.register("a")
    s.register("b")
    for s.now in (30, 60, 99):
        assert s.heartbeat("a") == ErrorCode.GROUP_CHANGES
    assert s.controller.next_deadline() == 100
    replies = s.controller.tick(100)
    assert [(r.connection, outcome(r.message)) for r in replies] == [("b", {0: -1, 1: -1, 2: -1, 3: -1})]
    s.now = 100
    assert s.heartbeat("a") == ErrorCode.UNKNOWN_MEMBER


def test_silent_members_are_given_up() -> None:
    s = Session()
    s.create()
    s.register("a")
    s.register("b")
    s.register("a")
    s.now = 60
    s.heartbeat("a")
    s.now = 101
    assert s.heartbeat("a") == ErrorCode.GROUP_CHANGES
    assert s.register("a") == {"a": {0: -1, 1: -1, 2: -1, 3: -1}}
    assert s.controller.group("g").generation == 3


def test_a_client_that_goes_is_given_up_at_once() -> None:
    s = Session()
    s.create()
    s.register("a")
    s.controller.create_group("e", 100, ["t"], ephemeral=True)
    s.register("c", "e")
    assert s.controller.group_names == ["e", "g"]
    s.controller.disconnect("a", 0)
    s.controller.disconnect("c", 0)
    s.controller.disconnect("nobody", 0)
    assert s.controller.group_names == ["g"]
    with pytest.raises(LocalProtocolError):
        s.controller.create_group("g", 1, [], ephemeral=True)


def test_registrations_that_are_refused() -> None:
    s = Session(max_members=1, max_groups=1)
    s.create()
    assert s.create("h") == ErrorCode.LIMIT_EXCEEDED
    assert s.register("a", "nope") == {"a": ErrorCode.UNKNOWN_GROUP}
    s.register("a")
    assert s.register("b") == {"b": ErrorCode.LIMIT_EXCEEDED}
    (reply,) = s.call(rewrite.RegisterConsumer, "a", consumer_group="g", consumer_id="other")
    assert outcome(reply.message) == ErrorCode.CLIENT_ID_IN_USE
    (reply,) = s.call(rewrite.RegisterConsumer, "b", consumer_group="g", consumer_id="a")
    assert outcome(reply.message) == ErrorCode.CLIENT_ID_IN_USE
    (reply,) = s.call(rewrite.RegisterConsumer, "b", consumer_group="g", consumer_id="")
    assert outcome(reply.message) == ErrorCode.INVALID_REQUEST
    assert s.heartbeat("a") == ErrorCode.NONE


def test_a_second_registration_of_a_member_that_waits_answers_the_first() -> None:
    s = Session()
    s.create()
    s.register("a")
    assert s.register("b") == {}
    first = s.id
    (reply,) = s.call(rewrite.RegisterConsumer, "b", consumer_group="g", consumer_id="b")
    assert (reply.connection, outcome(reply.message)) == ("b", ErrorCode.REPLACED)
    assert reply.message.to_dict()["correlation_id"] == first
    replies = s.call(rewrite.RegisterConsumer, "a", consumer_group="g", consumer_id="a")
    answered = {r.connection: r.message.to_dict()["correlation_id"] for r in replies}
    assert answered == {"a": s.id, "b": first + 1}


def test_a_partition_that_the_layout_cannot_hold_is_refused_at_once() -> None:
    """Partition is int16 in the layout: 0 to 32767."""
    s = Session({"t": 32768})
    s.create()
    (reply,) = s.call(rewrite.RegisterConsumer, "a", consumer_group="g", consumer_id="a")
    own: Any = type(reply.message).decode(reply.message.encode())
    assert len(own.partitions_to_own) == 32768
    for counts in ({"t": 32769}, {"t": -1}):
        with pytest.raises(LocalProtocolError, match="must be 0 to 32768"):
            Session(counts)
    with pytest.raises(LocalProtocolError, match="must be 0 to 32768"):
        s.controller.set_partitions("t", 32769, 0)
    assert s.heartbeat("a") == ErrorCode.NONE


def test_what_the_layout_cannot_hold_is_refused_before_it_is_kept() -> None:
    s = Session()
    for name, timeout, topics in (("x" * 32768, 1, []), ("g", 1 << 63, []), ("g", 1, ["t" * 32768]), ("\ud800", 1, [])):
        with pytest.raises(LocalProtocolError):
            s.controller.create_group(name, timeout, topics, ephemeral=False)
    s.create()
    s.register("a")
    with pytest.raises(LocalProtocolError):
        s.controller.commit("g", "a", {Partition("t", 0): 1 << 63})
    assert s.controller.group_names == ["g"]


def test_rewinds_that_wait_are_bounded() -> None:
    s = Session(max_rewinds=3)
    s.create()
    s.register("a")
    assert s.rewind("x", {("t", 0): 1, ("t", 1): 1}) == {}
    assert s.rewind("y", {("t", 0): 2, ("t", 1): 2}) == {
        "y": {0: (2, ErrorCode.LIMIT_EXCEEDED), 1: (2, ErrorCode.LIMIT_EXCEEDED)}
    }
    assert s.rewind("y", {("t", 0): 2}) == {}
    assert s.rewind("z", {}) == {"z": {}}
    assert s.register("a") == {"x": {0: (1, 0), 1: (1, 0)}, "y": {0: (2, 0)}, "a": {0: 2, 1: 1, 2: -1, 3: -1}}


def steps_of_a_heartbeat(groups: int) -> int:
    s = Session()
    for i in range(groups):
        s.create(f"g{i}")
        s.register(f"m{i}", f"g{i}")
    steps = 0

    def count(*_: Any) -> None:
        nonlocal steps
        steps += 1

    heartbeat = rewrite.Heartbeat(correlation_id=1, client_id="m0", session_timeout=100)
    sys.setprofile(count)
    try:
        s.controller.receive(heartbeat, 50)
    finally:
        sys.setprofile(None)
    return steps


def test_a_call_costs_the_same_however_many_groups_there_are() -> None:
    assert steps_of_a_heartbeat(300) == steps_of_a_heartbeat(3)


def test_commits_need_ownership_and_go_forward() -> None:
    s = Session()
    s.create()
    s.register("a")
    s.controller.commit("g", "a", {Partition("t", 0): 5})
    for group, consumer, partition, offset in (
        ("g", "a", 0, 4),
        ("g", "a", 9, 4),
        ("g", "b", 0, 6),
        ("h", "a", 0, 6),
        ("g", "a", 1, -1),
    ):
        with pytest.raises(LocalProtocolError):
            s.controller.commit(group, consumer, {Partition("t", 2): 1, Partition("t", partition): offset})
    assert s.controller.group("g").offsets == {("t", 0): 5}


def test_rewind_waits_for_the_other_owners() -> None:
    s = Session()
    s.create()
    s.register("a")
    s.register("b")
    s.register("a")
    s.controller.commit("g", "b", {Partition("t", 2): 50})
    assert s.rewind("a", {("t", 0): 3, ("t", 2): 4, ("t", 9): 1, ("t", 1): -5}) == {}
    assert s.heartbeat("a") == ErrorCode.NONE
    assert s.heartbeat("b") == ErrorCode.GROUP_CHANGES
    s.controller.commit("g", "b", {Partition("t", 2): 60})
    assert s.register("b") == {
        "a": {0: (3, 0), 2: (4, 0), 9: (1, ErrorCode.UNKNOWN_PARTITION), 1: (-5, ErrorCode.INVALID_REQUEST)},
        "b": {2: 4, 3: -1},
    }
    assert s.controller.group("g").generation == 2
    assert s.rewind("a", {("t", 0): 0}) == {"a": {0: (0, 0)}}
    assert s.rewind("a", {("t", 0): 0}, "nope") == {"a": {0: (0, ErrorCode.UNKNOWN_GROUP)}}


def test_a_change_during_a_rewind_finishes_both() -> None:
    s = Session()
    s.create()
    s.register("a")
    s.register("b")
    s.register("a")
    s.rewind("a", {("t", 3): 1})
    s.register("c")
    assert s.heartbeat("a") == ErrorCode.GROUP_CHANGES
    assert s.register("b") == {}
    answers = s.register("a")
    assert answers["b"] == {2: -1}
    assert answers["c"] == {3: 1}


def test_illegal_steps_of_the_controller_change_nothing() -> None:
    s = Session()
    s.create()
    s.controller.tick(10)
    with pytest.raises(LocalProtocolError):
        s.controller.tick(9)
    with pytest.raises(LocalProtocolError):
        s.register("a")
    with pytest.raises(LocalProtocolError):
        s.controller.receive(rewrite.HeartbeatResponse(), 10)
    with pytest.raises(LocalProtocolError):
        s.controller.group("nope")
    assert s.controller.group("g").members == {}
