"""The broker's behaviour, step by step."""

from __future__ import annotations

from typing import Any

import pytest

from kafkacodec.dialects import line
from kafkacodec.errors import LocalProtocolError


class Session:
    """A broker with a clock, asked in words."""

    def __init__(self, storage: line.Storage | None = None, **config: Any) -> None:
        self.storage = storage or line.MemoryStorage()
        self.broker = line.Broker(self.storage, line.BrokerConfig(**config))
        self.now = 0
        self.id = 0
        self.asked: dict[str, str] = {}

    def send(self, command: str, args: str) -> list[line.Response]:
        self.id += 1
        self.asked[str(self.id)] = command
        replies = self.broker.receive(f"V1|{self.id}|{command}|{args}", self.now, connection=self.id)
        return [line.parse_response(reply.line, self.asked[reply.line.split("|")[1]]) for reply in replies]

    def ask(self, command: str, args: str) -> Any:
        (response,) = self.send(command, args)
        return response.fields if response.ok else response.code

    def wait(self, milliseconds: int) -> list[line.Reply]:
        self.now += milliseconds
        return self.broker.tick(self.now)


def test_produce_and_consume() -> None:
    s = Session()
    assert s.ask("PRODUCE", "orders user1:created") == {"partition": 0, "offset": 0, "hw": 1}
    assert s.ask("PRODUCE", "orders user1:paid acks=0") == {"partition": 0, "offset": 1, "hw": 2}
    assert s.ask("PRODUCE", "orders user1:sent acks=all") == {"partition": 0, "offset": 2, "hw": 3}
    messages = [{"offset": 1, "value": "paid"}, {"offset": 2, "value": "sent"}]
    assert s.ask("CONSUME", "orders 0 1") == {"messages": messages, "hw": 3}
    assert s.ask("CONSUME", "orders 0 9") == {"messages": [], "hw": 3}
    assert s.ask("CONSUME", "other 0 0") == {"messages": [], "hw": 0}
    assert s.ask("CONSUME", "orders 1 0") == "BAD_REQUEST"
    assert s.ask("CONSUME", "orders 0 -1") == "BAD_REQUEST"
    assert s.ask("PING", "") == {}
    assert s.ask("PONG", "") == "UNKNOWN_COMMAND"


def test_lines_that_cannot_be_read_are_answered_in_their_turn() -> None:
    s = Session()
    lines = line.LineReader().receive(b"V1|1|PRODUCE|t k:a\r\nV1|2|PRODUCE|t k:\xff\nV1|3|PRODUCE|t k:b\n")
    answers = [reply.line for text in lines for reply in s.broker.receive(text, 0)]
    assert answers[0::2] == ["V1|1|OK|partition=0 offset=0 hw=1", "V1|3|OK|partition=0 offset=1 hw=2"]
    assert answers[1].startswith("V1|0|ERR|BAD_REQUEST|")
    assert [m["value"] for m in s.ask("CONSUME", "t 0 0")["messages"]] == ["a", "b"]


def test_one_consume_answers_with_a_bounded_number_of_messages() -> None:
    s = Session(max_messages=2)
    for i in range(5):
        s.ask("PRODUCE", f"t k:{i}")
    assert [m["offset"] for m in s.ask("CONSUME", "t 0 1")["messages"]] == [1, 2]


def test_keys_choose_partitions() -> None:
    s = Session(topics={"t": 4})
    where = {s.ask("PRODUCE", f"t key-{i}:v")["partition"] for i in range(50)}
    assert where == {0, 1, 2, 3}
    assert len({s.ask("PRODUCE", "t same:v")["partition"] for _ in range(5)}) == 1


def test_acks_all_waits_for_the_followers_in_sync() -> None:
    s = Session(replication_factor=3, min_in_sync=2)
    assert s.send("PRODUCE", "t k:a acks=all") == []
    assert s.ask("PRODUCE", "t k:b acks=1")["hw"] == 2
    # Only the leader is in sync, so that it alone decides the high watermark; acks=all still wants two.
    answers = s.send("REPLICA_FETCH", "t 0 1 2")
    assert answers[0].fields == {"replica": 1, "acked_offset": 2, "hw": 2, "isr": [0, 1], "under_replicated": True}
    assert answers[1].correlation_id == "1"
    assert answers[1].fields == {"partition": 0, "offset": 0, "hw": 2}
    # From here on the follower holds the high watermark back.
    assert s.send("PRODUCE", "t k:c acks=all") == []
    assert s.ask("CONSUME", "t 0 2") == {"messages": [], "hw": 2}
    assert [a.correlation_id for a in s.send("REPLICA_FETCH", "t 0 1 3")] == ["6", "4"]


def test_acks_all_times_out() -> None:
    s = Session(replication_factor=2, min_in_sync=2, replication_timeout_ms=100)
    assert s.send("PRODUCE", "t k:a acks=all") == []
    assert s.broker.next_deadline() == 100
    assert s.wait(99) == []
    (reply,) = s.wait(1)
    assert reply.connection == 1
    assert reply.line.startswith("V1|1|ERR|REPLICATION_TIMEOUT|")
    assert s.broker.next_deadline() is None


def test_a_follower_that_stays_behind_leaves_and_comes_back() -> None:
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


def test_a_follower_just_behind_a_busy_leader_stays_in_sync() -> None:
    s = Session(replication_factor=2, replica_lag_ms=50)
    s.ask("REPLICA_FETCH", "t 0 1 0")
    for i in range(1, 20):
        s.ask("PRODUCE", "t k:v")
        s.now += 20
        assert s.ask("REPLICA_FETCH", f"t 0 1 {i - 1}")["isr"] == [0, 1]


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
    assert answers[0].fields == {"topic": "t", "partition": 0, "role": "follower", "hw": 1}
    assert (answers[1].correlation_id, answers[1].code) == ("1", "NOT_LEADER")
    assert s.ask("PRODUCE", "t k:a acks=0") == "NOT_LEADER"
    assert s.ask("REPLICA_FETCH", "t 0 1 0") == "NOT_LEADER"
    assert s.ask("CONSUME", "t 0 0")["hw"] == 1
    # What the host copies from the new leader counts once this broker leads again.
    s.storage.append("t", 0, "k", "b")
    assert s.ask("SET_PARTITION_ROLE", "t 0 leader")["hw"] == 2
    assert s.ask("PRODUCE", "t k:c")["offset"] == 2


def test_groups_share_partitions() -> None:
    s = Session(topics={"t": 5})
    assert s.ask("JOIN", "g t b") == {"generation": 1, "assigned": [0, 1, 2, 3, 4]}
    assert s.ask("JOIN", "g t a") == {"generation": 2, "assigned": [0, 2, 4]}
    assert s.ask("JOIN", "g t b") == {"generation": 2, "assigned": [1, 3]}
    assert s.ask("JOIN", "g t b assignor=range") == {"generation": 3, "assigned": [3, 4]}
    assert s.ask("SYNC", "g t a 3") == {"generation": 3, "assigned": [0, 1, 2]}
    assert s.ask("SYNC", "g t a 2") == "GENERATION_MISMATCH"
    assert s.ask("SYNC", "g t nobody 3") == "GENERATION_MISMATCH"
    assert s.ask("LEAVE", "g t a 3") == {"left": True}
    assert s.ask("LEAVE", "g t a 4") == "GENERATION_MISMATCH"
    assert s.ask("JOIN", "g t b") == {"generation": 4, "assigned": [0, 1, 2, 3, 4]}
    assert s.ask("JOIN", "g other b") == {"generation": 1, "assigned": [0]}


def test_commits_need_generation_and_ownership() -> None:
    s = Session(topics={"t": 2})
    s.ask("JOIN", "g t a")
    s.ask("JOIN", "g t b")
    assert s.ask("OFFSET", "g t 0") == {"offset": -1}
    assert s.ask("COMMIT", "g t a 2 0 7") == {"committed": True}
    assert s.ask("COMMIT", "g t a 2 0 7") == {"committed": True}
    assert s.ask("COMMIT", "g t a 2 1 7") == "GENERATION_MISMATCH"
    assert s.ask("COMMIT", "g t a 1 0 8") == "GENERATION_MISMATCH"
    assert s.ask("COMMIT", "g t c 2 0 8") == "GENERATION_MISMATCH"
    assert s.ask("COMMIT", "g t a 2 0 6") == "BAD_REQUEST"
    assert s.ask("COMMIT", "g t b 2 1 -1") == "BAD_REQUEST"
    assert s.ask("OFFSET", "g t 0") == {"offset": 7}
    assert s.ask("OFFSET", "g t 2") == "BAD_REQUEST"


def test_silent_members_are_taken_out() -> None:
    s = Session(topics={"t": 2}, session_timeout_ms=100)
    s.ask("JOIN", "g t a")
    s.ask("JOIN", "g t b")
    s.now = 100
    assert s.ask("HEARTBEAT", "g t a 2") == {"heartbeat": "ok"}
    assert s.broker.next_deadline() == 101
    s.wait(1)
    assert s.ask("HEARTBEAT", "g t a 2") == "GENERATION_MISMATCH"
    assert s.ask("HEARTBEAT", "g t b 2") == "GENERATION_MISMATCH"
    assert s.ask("JOIN", "g t a") == {"generation": 3, "assigned": [0, 1]}
    # Without a tick too: whoever asks next finds the member gone.
    s.now += 101
    assert s.ask("HEARTBEAT", "g t a 3") == "GENERATION_MISMATCH"


def test_what_requests_can_make_a_broker_keep_is_bounded() -> None:
    s = Session(max_topics=1, max_groups=1, max_members=1)
    s.ask("PRODUCE", "t k:v")
    assert s.ask("PRODUCE", "u k:v") == "BAD_REQUEST"
    s.ask("JOIN", "g t a")
    assert s.ask("JOIN", "h t a") == "BAD_REQUEST"
    assert s.ask("JOIN", "g t b") == "BAD_REQUEST"
    closed = Session(topics={"t": 1}, default_partitions=0)
    assert closed.ask("PRODUCE", "u k:v") == "BAD_REQUEST"
    assert closed.ask("JOIN", "g u a") == "BAD_REQUEST"


def test_a_closed_connection_is_not_answered() -> None:
    s = Session(replication_factor=2, min_in_sync=2)
    assert s.send("PRODUCE", "t k:a acks=all") == []
    s.broker.disconnect(1)
    assert s.wait(100_000) == []


def test_illegal_steps_change_nothing() -> None:
    s = Session()
    s.wait(10)
    with pytest.raises(LocalProtocolError):
        s.broker.receive("V1|1|PRODUCE|t k:v", 9)
    with pytest.raises(LocalProtocolError):
        s.broker.tick(9)
    with pytest.raises(LocalProtocolError):
        s.broker.partition("t", 1)
    assert s.storage.end("t", 0) == 0


class Full(line.MemoryStorage):
    """A storage that can refuse to save."""

    full = False

    def save_groups(self, groups: list[dict[str, Any]]) -> None:
        if self.full:
            raise OSError("full")
        super().save_groups(groups)

    def save_offsets(self, offsets: list[dict[str, Any]]) -> None:
        if self.full:
            raise OSError("full")
        super().save_offsets(offsets)


def test_where_the_storage_fails_nothing_has_changed() -> None:
    storage = Full()
    s = Session(storage, topics={"t": 2})
    s.ask("JOIN", "g t a")
    s.ask("COMMIT", "g t a 1 0 5")
    storage.full = True
    for command, args in (("JOIN", "g t b"), ("COMMIT", "g t a 1 0 6"), ("LEAVE", "g t a 1")):
        with pytest.raises(OSError, match="full"):
            s.send(command, args)
    assert s.ask("SYNC", "g t a 1") == {"generation": 1, "assigned": [0, 1]}
    assert s.ask("OFFSET", "g t 0") == {"offset": 5}
