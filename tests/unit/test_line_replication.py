"""The line protocol's broker: acks=all, followers, the high watermark."""

from __future__ import annotations

import pytest

from tests.line_session import Session


def test_acks_all_waits_for_the_followers_in_sync() -> None:
    s = Session(replication_factor=3, min_in_sync=2)
    assert s.send("PRODUCE", "t k:a acks=all") == []
    # Nothing is committed while fewer than min_in_sync replicas are in sync.
    assert s.ask("PRODUCE", "t k:b acks=1")["hw"] == 0
    answers = s.send("REPLICA_FETCH", "t 0 1 2")
    assert answers[0].fields == {"replica": 1, "acked_offset": 2, "hw": 2, "isr": [0, 1], "under_replicated": True}
    assert answers[1].correlation_id == "1"
    assert answers[1].fields == {"partition": 0, "offset": 0, "hw": 2}
    # The follower now limits the high watermark.
    assert s.send("PRODUCE", "t k:c acks=all") == []
    assert s.ask("CONSUME", "t 0 2") == {"messages": [], "hw": 2}
    assert [a.correlation_id for a in s.send("REPLICA_FETCH", "t 0 1 3")] == ["6", "4"]


def test_what_too_few_replicas_hold_is_not_shown() -> None:
    s = Session(replication_factor=3, min_in_sync=2, replica_lag_ms=50)
    s.ask("PRODUCE", "t k:a acks=1")
    assert s.ask("CONSUME", "t 0 0") == {"messages": [], "hw": 0}
    assert s.ask("REPLICA_FETCH", "t 0 1 1")["hw"] == 1
    assert s.ask("CONSUME", "t 0 0") == {"messages": [{"offset": 0, "value": "a"}], "hw": 1}
    # The follower falls out of sync: committed records stay committed, new ones are not.
    s.ask("PRODUCE", "t k:b acks=1")
    s.wait(51)
    assert s.broker.partition("t", 0).in_sync == [0]
    assert s.ask("CONSUME", "t 0 0")["hw"] == 1
    assert s.ask("REPLICA_FETCH", "t 0 2 2")["hw"] == 2
    # Another broker on the same records does not know the followers.
    again = Session(s.storage, replication_factor=3, min_in_sync=2)
    assert again.ask("CONSUME", "t 0 0") == {"messages": [], "hw": 0}
    assert again.ask("REPLICA_FETCH", "t 0 1 2")["hw"] == 2


def test_the_high_watermark_stays_in_the_follower_role() -> None:
    s = Session(replication_factor=2, min_in_sync=1, replica_lag_ms=50)
    s.ask("REPLICA_FETCH", "t 0 1 0")
    s.ask("PRODUCE", "t k:a acks=1")
    s.ask("REPLICA_FETCH", "t 0 1 1")
    s.ask("PRODUCE", "t k:b acks=1")
    assert s.ask("SET_PARTITION_ROLE", "t 0 follower")["hw"] == 1
    s.wait(1000)
    assert s.ask("CONSUME", "t 0 0")["hw"] == 1


def test_acks_all_times_out() -> None:
    s = Session(replication_factor=2, min_in_sync=2, replication_timeout_ms=100)
    assert s.send("PRODUCE", "t k:a acks=all") == []
    assert s.broker.next_deadline() == 100
    assert s.wait(99) == []
    (reply,) = s.wait(1)
    assert reply.connection == 1
    assert reply.line.startswith("V1|1|ERR|REPLICATION_TIMEOUT|")
    assert s.broker.next_deadline() is None


def test_a_follower_that_lags_leaves_and_comes_back() -> None:
    s = Session(replication_factor=2, replica_lag_ms=50)
    s.ask("PRODUCE", "t k:a")
    assert s.ask("REPLICA_FETCH", "t 0 1 0")["isr"] == [0]
    assert s.ask("REPLICA_FETCH", "t 0 1 1")["isr"] == [0, 1]
    s.wait(1000)
    assert s.broker.partition("t", 0).in_sync == [0, 1]
    assert s.ask("PRODUCE", "t k:b")["hw"] == 1
    assert s.broker.next_deadline() == 1051
    s.wait(51)
    assert s.broker.partition("t", 0).in_sync == [0]
    assert s.ask("CONSUME", "t 0 0")["hw"] == 2
    assert s.ask("REPLICA_FETCH", "t 0 1 1")["isr"] == [0]
    assert s.ask("REPLICA_FETCH", "t 0 1 2")["isr"] == [0, 1]


def test_a_follower_just_after_a_busy_leader_stays_in_sync() -> None:
    s = Session(replication_factor=2, replica_lag_ms=50)
    s.ask("REPLICA_FETCH", "t 0 1 0")
    for i in range(1, 20):
        s.ask("PRODUCE", "t k:v")
        s.now += 20
        assert s.ask("REPLICA_FETCH", f"t 0 1 {i - 1}")["isr"] == [0, 1]


@pytest.mark.parametrize("lag", [2, 3, 4])
def test_a_follower_some_records_after_a_busy_leader_comes_in(lag: int) -> None:
    """It reports every 10 ms what the leader had `lag` * 10 ms ago, and a lag of 50 ms is allowed."""
    s = Session(replication_factor=2, replica_lag_ms=50)
    for i in range(1, 100):
        s.ask("PRODUCE", "t k:v")
        s.now += 10
        isr = s.ask("REPLICA_FETCH", f"t 0 1 {max(i - lag, 0)}")["isr"]
    assert isr == [0, 1]
    assert s.broker.partition("t", 0).high_watermark == 99 - lag


def test_a_follower_too_far_from_a_busy_leader_stays_out() -> None:
    s = Session(replication_factor=2, replica_lag_ms=50)
    for i in range(1, 100):
        s.ask("PRODUCE", "t k:v")
        s.now += 10
        isr = s.ask("REPLICA_FETCH", f"t 0 1 {max(i - 6, 0)}")["isr"]
    assert isr == [0]
    assert s.broker.partition("t", 0).high_watermark == 99


def test_what_a_partition_notes_of_its_appends_is_bounded() -> None:
    s = Session(replication_factor=2, replica_lag_ms=1_000_000)
    s.ask("REPLICA_FETCH", "t 0 1 0")
    for _ in range(3000):
        s.now += 400
        s.ask("PRODUCE", "t k:v")
    state = s.broker.partition("t", 0)
    assert len(state._appended) < 300
    assert state.in_sync == [0]


def test_a_follower_that_lost_records_is_not_in_sync() -> None:
    s = Session(replication_factor=2)
    s.ask("REPLICA_FETCH", "t 0 1 0")
    s.ask("PRODUCE", "t k:a")
    s.ask("REPLICA_FETCH", "t 0 1 1")
    assert s.ask("REPLICA_FETCH", "t 0 1 0") == {
        "replica": 1, "acked_offset": 0, "hw": 1, "isr": [0], "under_replicated": True,
    }  # fmt: skip


def test_a_follower_cannot_be_ahead() -> None:
    s = Session(replication_factor=2)
    assert s.ask("REPLICA_FETCH", "t 0 1 1") == "BAD_REQUEST"
    assert s.ask("REPLICA_FETCH", "t 0 1 -1") == "BAD_REQUEST"
    assert s.ask("REPLICA_FETCH", "t 0 2 0") == "BAD_REQUEST"


def test_the_follower_role_refuses_records() -> None:
    s = Session(replication_factor=2, min_in_sync=2)
    assert s.send("PRODUCE", "t k:a acks=all") == []
    answers = s.send("SET_PARTITION_ROLE", "t 0 follower")
    assert answers[0].fields == {"topic": "t", "partition": 0, "role": "follower", "hw": 0}
    assert (answers[1].correlation_id, answers[1].code) == ("1", "NOT_LEADER")
    assert s.ask("PRODUCE", "t k:a acks=0") == "NOT_LEADER"
    assert s.ask("REPLICA_FETCH", "t 0 1 0") == "NOT_LEADER"
    assert s.ask("CONSUME", "t 0 0")["hw"] == 0
    # Records that the host copies from the new leader count once this broker is the leader again.
    s.storage.append("t", 0, "k", "b")
    assert s.ask("SET_PARTITION_ROLE", "t 0 leader")["hw"] == 0
    assert s.ask("REPLICA_FETCH", "t 0 1 2")["hw"] == 2
    assert s.ask("PRODUCE", "t k:c")["offset"] == 2
