"""The client rewrite's groups at a listener of the broker."""

from __future__ import annotations

import json
import random
import socket
import struct
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import kafkacodec as kc
from kafkacodec.dialects import rewrite
from kafkacodec.dialects.rewrite import ErrorCode
from kafkacodec.dialects.rewrite.rpcs import ANSWERS
from kafkacodec.errors import CorruptRecord
from tests.dialect_vectors import rows
from tests.leaks import KEPT_BY_SANITIZER
from tests.rewrite_calls import Connection


@contextmanager
def serving(data=None, partitions=4, **options):
    topics = {"orders": partitions}
    with kc.broker.serve(data, listen="rewrite://127.0.0.1:0", topics=topics, **options) as broker:
        yield broker, broker.listeners[0]


def test_a_group_is_made_listed_joined_and_deleted():
    with serving() as (_, address), Connection(address) as a, Connection(address) as b:
        assert a.create() == ErrorCode.NONE
        assert a.create() == ErrorCode.GROUP_EXISTS
        host, port = address.partition("://")[2].rsplit(":", 1)
        (info,) = b.list("g").groups_info
        assert info.controller_broker.to_dict() == {"broker_id": 1, "host": host, "port": int(port)}
        assert (info.topics, info.session_timeout, info.group_members) == (["orders"], 30_000, [])
        assert a.register("a") == {0: -1, 1: -1, 2: -1, 3: -1}
        assert a.heartbeat("a") == (ErrorCode.NONE, 1)
        waiting = b.registering("b")
        while a.heartbeat("a")[0] != ErrorCode.GROUP_CHANGES:
            pass
        assert a.commit("a", {0: 5, 3: 9}) == ErrorCode.NONE
        assert a.register("a") == {0: 5, 1: -1}
        assert b.registered(waiting) == {2: -1, 3: 9}
        assert b.heartbeat("b") == (ErrorCode.NONE, 2)
        assert b.commit("b", {0: 6}) == ErrorCode.NOT_OWNER
        assert a.delete("g") == ([], ErrorCode.GROUP_HAS_MEMBERS)
        assert a.heartbeat("nobody") == (ErrorCode.UNKNOWN_MEMBER, 0)
        assert a.create("empty") == ErrorCode.NONE
        assert a.delete("empty", "nope") == (["empty"], ErrorCode.UNKNOWN_GROUP)


def test_members_are_told_the_address_that_they_have_connected_to():
    with kc.broker.serve(listen="rewrite://0.0.0.0:0", topics=["orders"]) as broker:
        port = int(broker.listeners[0].rpartition(":")[2])
        for host in ("127.0.0.1", "127.0.0.2"):
            with Connection(f"rewrite://{host}:{port}") as a:
                a.create()
                (info,) = a.list("g").groups_info
                assert info.controller_broker.to_dict() == {"broker_id": 1, "host": host, "port": port}


@pytest.mark.parametrize("clock", ["manual", "running"])
def test_sessions_follow_the_brokers_clock(clock):
    with serving(clock=clock) as (broker, address), Connection(address) as a:
        a.create()
        a.register("a")
        broker.advance(20)
        assert a.heartbeat("a")[0] == ErrorCode.NONE
        broker.advance(31)
        assert a.heartbeat("a")[0] == ErrorCode.UNKNOWN_MEMBER


def test_a_commit_by_an_earlier_connection_comes_too_late():
    """It was sent before the member registered anew, and could undo a rewind."""
    with serving() as (_, address), Connection(address) as before, Connection(address) as since:
        before.create()
        before.register("a")
        assert before.commit("a", {0: 5}) == ErrorCode.NONE
        since.register("a")
        assert before.commit("a", {0: 6}) == ErrorCode.NOT_OWNER
        assert since.commit("a", {0: 7}) == ErrorCode.NONE
        assert before.fetch()[0] == 7


def test_a_member_whose_connection_ends_is_no_member():
    with serving() as (_, address), Connection(address) as a:
        a.create()
        a.register("a")
        with Connection(address) as b:
            waiting = b.registering("b")
            while a.heartbeat("a")[0] == ErrorCode.NONE:
                pass
            assert len(a.register("a")) == 2
            assert len(b.registered(waiting)) == 2
        while a.heartbeat("a")[0] == ErrorCode.NONE:
            pass
        assert len(a.register("a")) == 4


def test_a_member_that_has_registered_at_a_new_connection_outlives_the_old_one():
    with serving() as (_, address), Connection(address) as old:
        old.create()
        old.register("a")
        with Connection(address) as new:
            assert len(new.register("a")) == 4
            old.socket.close()
            with Connection(address) as other:  # by now the end of the old one was seen
                other.list()
            assert new.heartbeat("a") == (ErrorCode.NONE, 2)
            assert new.list("g").groups_info[0].group_members == ["a"]


def test_a_silent_member_is_removed():
    with serving() as (_, address), Connection(address) as a, Connection(address) as b:
        a.create(timeout=500)
        a.register("a")
        assert b.register("b") == {0: -1, 1: -1, 2: -1, 3: -1}


def test_new_partitions_and_topics_are_assigned():
    with serving() as (broker, address), Connection(address) as a:
        a.create(topics=("orders", "later"))
        assert a.register("a") == {0: -1, 1: -1, 2: -1, 3: -1}
        broker.create_topic("later", 1)
        while a.heartbeat("a")[0] == ErrorCode.NONE:
            pass
        number = a.registering("a")
        own = {(p.topic, p.partition): p.offset for p in a.receive(number).partitions_to_own}
        assert own == {**{("orders", n): -1 for n in range(4)}, ("later", 0): 0}


def test_a_rewind_is_told_to_the_owners():
    with serving() as (_, address), Connection(address) as a, Connection(address) as b:
        a.create()
        a.register("a")
        waiting = b.registering("b")
        while a.heartbeat("a")[0] == ErrorCode.NONE:
            pass
        a.register("a")
        b.registered(waiting)
        assert a.commit("a", {0: 10}) == ErrorCode.NONE
        assert b.commit("b", {2: 10}) == ErrorCode.NONE
        rewinding = a.rewinding("a", {0: 3, 2: 4, 9: 1})
        while b.heartbeat("b")[0] == ErrorCode.NONE:
            pass
        assert b.register("b") == {2: 4, 3: -1}
        found = {o.partition: (o.offset, o.error_code) for o in a.receive(rewinding).actual_offsets}
        assert found == {0: (3, 0), 2: (4, 0), 9: (1, ErrorCode.UNKNOWN_PARTITION)}
        assert a.fetch() == {0: 3, 2: 4}
        assert a.heartbeat("a") == (ErrorCode.NONE, 2)


def test_groups_generations_and_offsets_survive_a_restart(tmp_path):
    with serving(tmp_path) as (_, address), Connection(address) as a:
        a.create()
        a.create("gone")
        a.register("a")
        a.register("a")
        assert a.commit("a", {0: 5, 1: 7}) == ErrorCode.NONE
        stored = json.loads((tmp_path / "rewrite-groups.json").read_text())
        assert {row["group"]: row["generation"] for row in stored["rows"]} == {"g": 2, "gone": 0}
        assert a.delete("gone") == (["gone"], ErrorCode.NONE)
    (tmp_path / f".rewrite-groups.json.{'0' * 16}.unfinished").write_bytes(b"killed")
    with serving(tmp_path) as (_, address), Connection(address) as a:
        assert not list(tmp_path.glob("*unfinished"))
        assert a.controllers() == ({"g": 1}, ErrorCode.NONE)
        assert a.fetch() == {0: 5, 1: 7}
        assert a.heartbeat("a") == (ErrorCode.UNKNOWN_MEMBER, 0)
        assert a.register("a") == {0: 5, 1: 7, 2: -1, 3: -1}
        assert a.heartbeat("a") == (ErrorCode.NONE, 3)


def test_a_damaged_file_of_groups_is_an_error(tmp_path):
    (tmp_path / "rewrite-groups.json").write_text('{"format":1,"rows":[{"group":"g"}]}')
    with pytest.raises(CorruptRecord, match=r"rewrite-groups\.json"), serving(tmp_path):
        pass


def test_nothing_is_said_of_what_the_disk_does_not_take(tmp_path):
    with serving(tmp_path) as (_, address), Connection(address) as a:
        a.create()
        a.register("a")
        (tmp_path / "rewrite-groups.json").unlink()
        (tmp_path / "rewrite-groups.json").mkdir()  # cannot be replaced by a file
        assert a.commit("a", {0: 5}) == ErrorCode.STORAGE_ERROR
        assert a.list("g").error_code == ErrorCode.STORAGE_ERROR
        (tmp_path / "rewrite-groups.json").rmdir()
        assert a.commit("a", {0: 6}) == ErrorCode.NONE
        assert a.fetch() == {0: 6}


# Several servers


@contextmanager
def cluster(tmp_path, count=3):
    """Servers that share the groups; each may be stopped and started again by its number."""
    with ExitStack() as ports:
        sockets = [ports.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        addresses = [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]
    servers = ",".join(f"{number}@{address}" for number, address in enumerate(addresses))

    def start(number):
        return kc.broker.serve(
            tmp_path / str(number), listen=f"rewrite://{addresses[number]}", topics={"orders": 4}, node_id=number,
            config={"rewrite.servers": servers},
        )  # fmt: skip

    with ExitStack() as stack:
        brokers = [stack.enter_context(start(number)) for number in range(count)]
        yield addresses, brokers, lambda number: stack.enter_context(start(number))


def test_any_server_answers_for_all_groups(tmp_path):
    names = [f"group-{number}" for number in range(12)]
    with cluster(tmp_path) as (addresses, _, _), ExitStack() as stack:
        each = [stack.enter_context(Connection(address)) for address in addresses]
        for number, name in enumerate(names):
            assert each[number % 3].create(name) == ErrorCode.NONE
            assert each[(number + 1) % 3].create(name) == ErrorCode.GROUP_EXISTS
        found, code = each[0].controllers()
        assert (sorted(found), code) == (sorted(names), ErrorCode.NONE)
        assert set(found.values()) == {0, 1, 2}
        for connection in each:
            assert connection.controllers() == (found, ErrorCode.NONE)
            some = names[5:2:-1]
            listed, code = connection.controllers(*some, "nope")
            assert (list(listed), code) == (some, ErrorCode.UNKNOWN_GROUP)
        for name in names:
            for number, connection in enumerate(each):
                expected = {0: -1, 1: -1, 2: -1, 3: -1} if number == found[name] else ErrorCode.NOT_CONTROLLER
                assert connection.register(f"{name}-{number}", name) == expected
        assert each[0].delete(*names) == ([], ErrorCode.GROUP_HAS_MEMBERS)
        each[0].create("empty-1")
        each[0].create("empty-2")
        assert each[1].delete("empty-2", "empty-1") == (["empty-2", "empty-1"], ErrorCode.NONE)
        wrong = each[(found[names[0]] + 1) % 3]
        assert wrong.commit("x", {0: 1}, names[0]) == ErrorCode.NOT_CONTROLLER
        rewound = wrong.receive(wrong.rewinding("x", {0: 1}, names[0]))
        assert [entry.error_code for entry in rewound.actual_offsets] == [ErrorCode.NOT_CONTROLLER]
        member = f"{names[0]}-{found[names[0]]}"
        assert each[found[names[0]]].heartbeat(member) == (ErrorCode.NONE, 1)
        assert wrong.heartbeat(member) == (ErrorCode.NOT_CONTROLLER, 0)


def test_an_ephemeral_group_goes_with_its_last_member(tmp_path):
    """Any server makes one, also for another controller."""
    with cluster(tmp_path) as (addresses, _, _), ExitStack() as stack:
        each = [stack.enter_context(Connection(address)) for address in addresses]
        for one in each:
            call = rewrite.CreateEphemeralGroup(consumer_group="g", session_timeout=30_000, topics=["orders"])
            assert one.ask(call).error_code in (ErrorCode.NONE, ErrorCode.GROUP_EXISTS)
        ((_, number),) = each[0].controllers("g")[0].items()
        with Connection(addresses[number]) as member:
            assert member.register("a") == {0: -1, 1: -1, 2: -1, 3: -1}
            assert each[0].delete("g") == ([], ErrorCode.GROUP_HAS_MEMBERS)
        while each[1].controllers("g") != ({}, ErrorCode.UNKNOWN_GROUP):
            pass


def test_a_controller_that_is_not_reached_is_told_and_comes_back(tmp_path):
    with cluster(tmp_path, 2) as (addresses, brokers, start), Connection(addresses[0]) as a:
        for number in range(8):
            a.create(f"g{number}")
        found, _ = a.controllers()
        assert set(found.values()) == {0, 1}
        own = {name: number for name, number in found.items() if number == 0}
        far = next(name for name, number in found.items() if number == 1)
        brokers[1].stop()
        assert a.controllers() == (own, ErrorCode.CONTROLLER_UNREACHABLE)
        assert a.controllers(far) == ({}, ErrorCode.CONTROLLER_UNREACHABLE)
        assert a.create(far) == ErrorCode.CONTROLLER_UNREACHABLE
        assert a.delete(far, *own) == (list(own), ErrorCode.CONTROLLER_UNREACHABLE)
        start(1)
        assert a.controllers(far) == ({far: 1}, ErrorCode.NONE)


def test_settings_that_cannot_be_are_refused(tmp_path):
    for servers, reason in [
        ("0@h:1,0@h:2", "two servers have the id 0"),
        ("h:1", "is not id@host:port"),
        ("0@h:1", "none of the servers has the id of this one, 1"),
    ]:
        config = {"rewrite.servers": servers}
        with pytest.raises(ValueError, match=reason):
            kc.broker.serve(tmp_path, listen="rewrite://127.0.0.1:0", config=config).stop()
    with pytest.raises(ValueError, match="range or round_robin"):
        kc.broker.serve(listen="rewrite://127.0.0.1:0", config={"rewrite.assignment.strategy": "x"}).stop()


def test_the_strategy_is_a_setting():
    with (
        serving(config={"rewrite.assignment.strategy": "round_robin"}) as (_, address),
        Connection(address) as a,
        Connection(address) as b,
    ):
        a.create()
        a.register("a")
        waiting = b.registering("b")
        while a.heartbeat("a")[0] == ErrorCode.NONE:
            pass
        assert list(a.register("a")) == [0, 2]
        assert list(b.registered(waiting)) == [1, 3]


# Golden calls


def test_golden_calls_are_answered():
    """Each call of the vectors, as its bytes: those that make groups come last."""
    calls = {call.__name__: (key, call) for key, call in rewrite.API_KEYS.items()}
    vectors = [vector for vector in rows("rewrite/rpcs") if vector["rpc"] in calls]
    not_in_the_text = {"CommitOffsets", "FetchOffsets", "CreateEphemeralGroup"}
    assert {vector["rpc"] for vector in vectors} == calls.keys() - not_in_the_text
    with serving() as (_, address):
        for vector in sorted(vectors, key=lambda vector: vector["rpc"] == "CreateGroup"):
            body = bytes.fromhex(vector["hex"])
            key, call = calls[vector["rpc"]]
            with Connection(address) as one:
                one.socket.sendall(struct.pack(">ih", len(body) + 2, key) + body)
                with one.socket.makefile("rb") as stream:
                    size = stream.read(4)
                    frame = size + stream.read(int.from_bytes(size, "big"))
            reply = rewrite.decode_reply(frame, ANSWERS[call]).to_dict()
            assert reply["correlation_id"] == call.decode(body).to_dict()["correlation_id"]
            assert reply["version"] == call.decode(body).to_dict()["version"]


def test_golden_bad_calls_end_their_connection_and_no_other():
    keys = {call.__name__: key for key, call in rewrite.API_KEYS.items()}
    with serving() as (_, address), Connection(address) as steady:
        for vector in rows("rewrite/bad"):
            if vector["rpc"] in keys:
                body = bytes.fromhex(vector["hex"])
                with Connection(address) as one:
                    good = rewrite.encode_request(rewrite.ListGroups(correlation_id=1))
                    one.socket.sendall(good + struct.pack(">ih", len(body) + 2, keys[vector["rpc"]]) + body)
                    frame = b"".join(iter(lambda: one.socket.recv(1 << 16), b""))
                assert rewrite.decode_reply(frame, rewrite.ListGroupsResponse).to_dict()["correlation_id"] == 1
        assert steady.create() == ErrorCode.NONE


# Any bytes

STREAMS = 10_000
WARM = 2_000  # until the process has its memory
MOST_GROWTH = (16 << 20) + KEPT_BY_SANITIZER
NUMBERS = [0, 1, -1, -2, 2**31 - 1, -(2**31), 4 << 20, (4 << 20) + 1, 2, 6]
SEEDS = [
    rewrite.encode_request(call)
    for call in (
        rewrite.ListGroups(correlation_id=1, client_id="a"),
        rewrite.ListGroups(correlation_id=1, consumer_groups=["g", "h"]),
        rewrite.CreateGroup(correlation_id=2, consumer_group="h", session_timeout=10, topics=["orders"]),
        rewrite.DeleteGroup(correlation_id=3, consumer_group=["h"]),
        rewrite.RegisterConsumer(correlation_id=4, client_id="a", consumer_group="h", consumer_id="a"),
        rewrite.Heartbeat(correlation_id=5, client_id="a"),
        rewrite.FetchOffsets(correlation_id=6, consumer_group="h"),
        rewrite.CommitOffsets(
            correlation_id=7, client_id="a", consumer_group="h",
            offsets=[rewrite.CommitOffsets.PartitionOffset(topic="orders", partition=1, offset=4)],
        ),
        rewrite.RewindConsumer(
            correlation_id=8, client_id="a", consumer_group="h",
            new_offsets=[rewrite.RewindConsumer.PartitionOffset(topic="orders", partition=1, offset=4)],
        ),
    )
] + [rewrite.encode_request(rewrite.ListGroups(), passed_on=True), b""]  # fmt: skip


def stream(rnd: random.Random) -> bytes:
    data = bytearray(b"".join(rnd.choice(SEEDS) for _ in range(rnd.randrange(1, 5))))
    for _ in range(rnd.randrange(4)):
        at = rnd.randrange(len(data) + 1)
        match rnd.randrange(5):
            case 0 if data:
                data[at % len(data)] = rnd.randrange(256)
            case 1:
                del data[at : at + rnd.randrange(9)]
            case 2:
                data[at:at] = rnd.randbytes(rnd.randrange(20))
            case 3:
                data[at : at + 4] = struct.pack(">i", rnd.choice(NUMBERS))
            case _:
                data = data[:at]
    return bytes(data) if rnd.random() < 0.9 else rnd.randbytes(rnd.randrange(200))


def resident() -> int:
    fields = Path("/proc/self/statm").read_text().split()
    return int(fields[1]) * 4096


@pytest.mark.slow
def test_any_bytes_are_answered_or_the_connection_is_closed(caplog):
    caplog.set_level("ERROR", "kafkacodec.broker")
    rnd = random.Random(0)
    with serving() as (broker, address), Connection(address) as steady:
        steady.create(timeout=600_000)
        steady.register("steady")
        before = 0
        for number in range(STREAMS):
            if number == WARM:
                before = resident()
            with Connection(address) as one:
                try:
                    one.socket.sendall(stream(rnd))
                    one.socket.shutdown(socket.SHUT_WR)
                    received = b"".join(iter(lambda: one.socket.recv(1 << 16), b""))
                except OSError:  # it is closed already
                    continue
            while received:
                (size,) = struct.unpack_from(">i", received)
                assert 10 <= size <= len(received) - 4
                received = received[4 + size :]
            if number % 500 == 0:
                assert steady.heartbeat("steady") == (ErrorCode.NONE, 1)
        assert not caplog.records
        assert resident() - before < MOST_GROWTH
        assert broker.statistics().connections <= 2
