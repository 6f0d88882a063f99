"""The line protocol's broker: records, limits, settings, a storage that fails."""

from __future__ import annotations

from typing import Any

import pytest

from kafkacodec.dialects import line
from kafkacodec.errors import LocalProtocolError
from tests.line_disk import Disk
from tests.line_session import Session


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
