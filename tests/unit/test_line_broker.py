"""The state machine of the line protocol's broker."""

from __future__ import annotations

from typing import Any

import pytest

from kafkacodec.dialects import line
from kafkacodec.errors import LocalProtocolError
from tests.line_disk import Disk


class Session:
    """A broker with a clock; requests are command and arguments."""

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


def test_groups_share_partitions() -> None:
    s = Session(topics={"t": 5})
    assert s.ask("JOIN", "g t b") == {"generation": 1, "assigned": [0, 1, 2, 3, 4]}
    assert s.ask("JOIN", "g t a") == {"generation": 2, "assigned": [0, 2, 4]}
    assert s.ask("JOIN", "g t b") == {"generation": 2, "assigned": [1, 3]}
    assert s.ask("SYNC", "g t a 1") == "GENERATION_MISMATCH"
    assert s.ask("SYNC", "g t nobody 2") == "GENERATION_MISMATCH"
    assert s.ask("LEAVE", "g t a 2") == {"left": True}
    assert s.ask("LEAVE", "g t a 3") == "GENERATION_MISMATCH"
    assert s.ask("JOIN", "g t b") == {"generation": 3, "assigned": [0, 1, 2, 3, 4]}
    assert s.ask("JOIN", "g other b") == {"generation": 1, "assigned": [0]}


def test_the_assignor_is_the_groups() -> None:
    s = Session(topics={"t": 5})
    assert s.ask("JOIN", "g t b assignor=range") == {"generation": 1, "assigned": [0, 1, 2, 3, 4]}
    # No assignor means the group's; another one is refused, without a new generation.
    assert s.ask("JOIN", "g t a") == {"generation": 2, "assigned": [0, 1, 2]}
    assert s.ask("JOIN", "g t c assignor=round_robin") == "BAD_REQUEST"
    assert s.ask("JOIN", "g t a assignor=round_robin") == "BAD_REQUEST"
    assert s.ask("SYNC", "g t b 2") == {"generation": 2, "assigned": [3, 4]}
    s.ask("LEAVE", "g t b 2")
    # The only member may change the assignor, and so may the first member of an empty group.
    assert s.ask("JOIN", "g t a assignor=round_robin") == {"generation": 4, "assigned": [0, 1, 2, 3, 4]}
    assert s.ask("JOIN", "g t b assignor=round_robin") == {"generation": 5, "assigned": [1, 3]}
    s.wait(10_001)
    assert s.ask("JOIN", "g t c assignor=range")["assigned"] == [0, 1, 2, 3, 4]


def test_members_with_other_assignors_do_not_expel_each_other_for_ever() -> None:
    s = Session(topics={"t": 4})
    generations = []
    for _ in range(10):
        for consumer, assignor in (("a", "range"), ("b", "round_robin")):
            answer = s.ask("JOIN", f"g t {consumer} assignor={assignor}")
            generations += [answer["generation"]] if answer != "BAD_REQUEST" else []
    assert set(generations) == {1}


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
    # Without a tick too: the next request finds the member removed.
    s.now += 101
    assert s.ask("HEARTBEAT", "g t a 3") == "GENERATION_MISMATCH"


def test_what_requests_can_make_a_broker_keep_is_bounded() -> None:
    s = Session(max_topics=1, max_groups=1, max_members=1, max_offsets=1)
    s.ask("PRODUCE", "t k:v")
    assert s.ask("PRODUCE", "u k:v") == "BAD_REQUEST"
    assert s.ask("SET_PARTITION_ROLE", "u 0 follower") == "BAD_REQUEST"
    s.ask("JOIN", "g t a")
    assert s.ask("JOIN", "h t a") == "BAD_REQUEST"
    assert s.ask("JOIN", "g t b") == "BAD_REQUEST"
    assert s.ask("COMMIT", "g t a 1 0 1") == {"committed": True}
    assert s.ask("COMMIT", "g t a 1 0 2") == {"committed": True}
    s.ask("LEAVE", "g t a 1")
    s.ask("JOIN", "h t a")
    assert s.ask("COMMIT", "h t a 1 0 1") == "BAD_REQUEST"
    closed = Session(topics={"t": 1}, default_partitions=0)
    assert closed.ask("PRODUCE", "u k:v") == "BAD_REQUEST"
    assert closed.ask("JOIN", "g u a") == "BAD_REQUEST"
    full = Session(line.MemoryStorage(max_bytes=210))
    assert full.ask("PRODUCE", "t k:123456789")["offset"] == 0
    assert full.ask("PRODUCE", "t :")["offset"] == 1
    assert full.ask("PRODUCE", "t :") == "STORAGE_ERROR"
    assert len(full.broker.take_failures()) == 1


def test_topics_that_are_only_asked_for_take_no_room() -> None:
    s = Session(max_topics=2, replication_factor=2)
    for i in range(10):
        assert s.ask("CONSUME", f"nobody-{i} 0 0") == {"messages": [], "hw": 0}
        assert s.ask("REPLICA_FETCH", f"copied-{i} 0 1 0")["isr"] == [0, 1]
        assert s.ask("SET_PARTITION_ROLE", f"led-{i} 0 leader")["role"] == "leader"
        assert s.ask("OFFSET", f"g nobody-{i} 0") == {"offset": -1}
    assert len(s.broker._partitions._states) == 2
    assert s.ask("PRODUCE", "t k:v")["offset"] == 0
    # Roles are kept, and the follower role counts towards the limit.
    assert s.ask("SET_PARTITION_ROLE", "u 0 follower")["role"] == "follower"
    assert s.ask("PRODUCE", "v k:v") == "BAD_REQUEST"
    assert s.ask("PRODUCE", "u k:v") == "NOT_LEADER"
    assert s.ask("SET_PARTITION_ROLE", "u 0 leader")["role"] == "leader"
    assert s.ask("PRODUCE", "v k:v")["offset"] == 0
    # Topics with records count after a restart too.
    again = Session(s.storage, max_topics=2)
    assert again.ask("PRODUCE", "w k:v") == "BAD_REQUEST"
    assert again.ask("PRODUCE", "t k:v")["offset"] == 1


def test_groups_that_nobody_is_in_take_no_room() -> None:
    s = Session(max_groups=3)
    for i in range(20):
        s.ask("JOIN", f"g-{i} t a")
        assert s.ask("LEAVE", f"g-{i} t a 1") == {"left": True}
    assert len(s.storage.load_groups()) == 3
    for i in range(20):
        assert s.ask("JOIN", f"h-{i} t a")["generation"] == 1
        s.wait(10_001)
    assert len(s.storage.load_groups()) == 3
    assert s.ask("JOIN", "h-19 t a")["generation"] == 3


def test_a_group_without_members_keeps_its_offsets_for_a_while() -> None:
    s = Session(max_groups=1, group_retention_ms=50_000)
    for i in range(3):
        s.ask("JOIN", f"g-{i} t a")
        s.ask("COMMIT", f"g-{i} t a 1 0 {i + 5}")
        s.ask("LEAVE", f"g-{i} t a 1")
    assert s.broker.next_deadline() == 50_001
    s.wait(50_000)
    assert [s.ask("OFFSET", f"g-{i} t 0")["offset"] for i in range(3)] == [5, 6, 7]
    assert s.ask("JOIN", "g-2 t a")["generation"] == 3
    s.ask("HEARTBEAT", "g-2 t a 3")
    s.wait(1)
    assert [s.ask("OFFSET", f"g-{i} t 0")["offset"] for i in range(3)] == [-1, -1, 7]
    assert s.storage.load_offsets() == [{"group": "g-2", "topic": "t", "partition": 0, "offset": 7}]
    assert [row["group"] for row in s.storage.load_groups()] == ["g-2"]


def test_requests_that_wait_are_bounded() -> None:
    s = Session(replication_factor=2, min_in_sync=2, max_waiting=3, replication_timeout_ms=100)
    for _ in range(3):
        assert s.send("PRODUCE", "t k:a acks=all") == []
    assert s.ask("PRODUCE", "t k:a acks=all") == "BAD_REQUEST"
    assert s.ask("PRODUCE", "t k:a acks=1")["offset"] == 3
    s.broker.disconnect(1)
    assert s.send("PRODUCE", "t k:a acks=all") == []
    assert len(s.wait(100)) == 3
    assert s.send("PRODUCE", "t k:a acks=all") == []


def test_no_answer_is_longer_than_a_reader_takes() -> None:
    limit = 10_000
    s = Session(max_line_bytes=limit)
    for size in (100, 3000, 3000, 3000, 3000, 7000, 9000, 20):
        s.ask("PRODUCE", f"t k:{'ä,1:' * (size // 5)}")
    end = s.ask("CONSUME", "t 0 0")["hw"]
    assert end == 7  # a value of 9000 bytes could not be consumed
    reader, read = line.LineReader(max_line_bytes=limit), 0
    while read < end:
        (reply,) = s.broker.receive(f"V1|{'i' * 256}|CONSUME|t 0 {read}", 0)
        (text,) = reader.receive(reply.line.encode() + b"\n")
        assert isinstance(text, str)
        messages = line.parse_response(text, "CONSUME").fields["messages"]
        assert [m["offset"] for m in messages] == list(range(read, read + len(messages)))
        assert messages
        read += len(messages)
    # Ids and names in responses are limited too.
    for request in (
        f"V1|{'i' * 9000}|PING|",
        f"V1|{'i' * 9000}|NOPE|",
        f"V1|1|JOIN|{'g' * 256} t a",
        f"V1|1|{'X' * 9000}|",
    ):
        (reply,) = s.broker.receive(request, 0)
        assert "|ERR|" in reply.line
        assert len(reply.line) < 300
    # A consumer can skip a record that was added to the storage directly.
    s.storage.append("u", 0, "k", "x" * limit)
    s.storage.append("u", 0, "k", "y")
    assert s.ask("CONSUME", "u 0 0") == "BAD_REQUEST"
    assert s.ask("CONSUME", "u 0 1")["messages"] == [{"offset": 1, "value": "y"}]


@pytest.mark.parametrize(
    "config",
    [
        {"min_in_sync": 2},
        {"min_in_sync": 0},
        {"max_waiting": -1},
        {"session_timeout_ms": -1},
        {"max_line_bytes": 4000},
        {"topics": {"t": -1}},
        {"replication_factor": 1_000_000},
        {"topics": {"t": 1_000_000}},
        {"topics": {"default_partitions": 1_000_000}},
        {"default_partitions": 1 << 62},
    ],
)
def test_settings_that_make_no_sense(config: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"must be|must not be|cannot list"):
        line.BrokerConfig(**config)


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


def test_where_the_storage_fails_the_request_is_answered_and_nothing_has_changed() -> None:
    storage = line.MemoryStorage()
    disk = Disk(storage)
    s = Session(storage, topics={"t": 2})
    s.ask("JOIN", "g t a")
    s.ask("COMMIT", "g t a 1 0 5")
    disk.full = True
    for command, args in (("JOIN", "g t b"), ("COMMIT", "g t a 1 0 6"), ("LEAVE", "g t a 1"), ("PRODUCE", "t k:v")):
        assert s.ask(command, args) == "STORAGE_ERROR"
    assert [str(e) for e in s.broker.take_failures()] == ["[Errno 28] full"] * 4
    assert s.broker.take_failures() == []
    assert s.ask("SYNC", "g t a 1") == {"generation": 1, "assigned": [0, 1]}
    assert s.ask("OFFSET", "g t 0") == {"offset": 5}
    assert s.ask("CONSUME", "t 0 0") == {"messages": [], "hw": 0}
    disk.full = False
    assert s.ask("JOIN", "g t b")["generation"] == 2
    assert s.ask("PRODUCE", "t k:v")["offset"] == 0


def test_a_full_disk_stops_neither_time_nor_those_who_live() -> None:
    storage = line.MemoryStorage()
    disk = Disk(storage)
    config = {"topics": {"t": 2}, "replication_factor": 2, "min_in_sync": 2, "replication_timeout_ms": 15_000}
    s = Session(storage, **config)
    s.ask("JOIN", "g t silent")
    s.ask("JOIN", "g t alive")
    assert s.send("PRODUCE", "t k:a acks=all") == []
    disk.full = True
    for s.now in (5_000, 10_000, 12_000):
        assert s.ask("HEARTBEAT", "g t alive 2") == {"heartbeat": "ok"}
    assert len(s.broker.take_failures()) == 1
    # It is retried once a second, not at every request.
    assert s.broker.next_deadline() == 13_000
    assert s.wait(500) == []
    assert s.broker.take_failures() == []
    assert s.wait(500) == []
    assert len(s.broker.take_failures()) == 1
    (reply,) = s.wait(2_000)
    assert reply.line.startswith("V1|3|ERR|REPLICATION_TIMEOUT|")
    assert s.ask("SYNC", "g t alive 2")["assigned"] == [0]
    disk.full = False
    s.wait(1_000)
    assert s.ask("HEARTBEAT", "g t silent 2") == "GENERATION_MISMATCH"
    assert s.ask("JOIN", "g t alive") == {"generation": 3, "assigned": [0, 1]}
    assert [row["generation"] for row in storage.load_groups()] == [3]


def test_many_groups_are_saved_at_once() -> None:
    """All groups are in one file: the expiry of several groups must write it once."""
    storage, saved = line.MemoryStorage(), []
    s = Session(storage)
    for i in range(50):
        s.ask("JOIN", f"g-{i} t a")
    storage.save_groups = saved.append  # type: ignore[method-assign]
    s.wait(10_001)
    assert [len(rows) for rows in saved] == [50]
