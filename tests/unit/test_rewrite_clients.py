"""Clients of the rewrite against a broker over sockets: the examples of the text."""

from __future__ import annotations

import asyncio
import select
import socket
import threading
import time

import pytest

import kafkacodec as kc
from kafkacodec.dialects import rewrite
from kafkacodec.dialects.rewrite import ErrorCode
from kafkacodec.dialects.rewrite.driving import MemberDriver
from kafkacodec.errors import (
    ClientClosed,
    ConnectionFailed,
    DeadlineExceeded,
    EncodeError,
    KafkaCodecError,
    LocalProtocolError,
    QueueFull,
)
from tests.rewrite_calls import Connection


@pytest.fixture
def broker(tmp_path):
    listen = ("kafka://127.0.0.1:0", "rewrite://127.0.0.1:0")
    with kc.broker.serve(tmp_path, listen=listen, topics={"orders": 4, "other": 2}) as found:
        yield found


def groups(broker):
    return broker.listeners[1].partition("://")[2]


def consumer(broker, **config):
    given = {
        "bootstrap.servers": broker.bootstrap_servers,
        "rewrite.servers": groups(broker),
        "group.id": "g",
        "auto.offset.reset": "earliest",
        "session.timeout.ms": 3_000,
    }
    return rewrite.Consumer({**given, **{name.replace("_", "."): value for name, value in config.items()}})


def fill(broker, count, partition=0, topic="orders", start=0):
    records = [kc.Record(i, 1_000, 0, b"k", b"%d-%d" % (partition, start + i), ()) for i in range(count)]
    broker.write(topic, records, partition=partition)


def polled(consumer, count, *others):
    """So many messages of a consumer, while others go on."""
    found = []
    end = time.monotonic() + 60
    while len(found) < count and time.monotonic() < end:
        found += consumer.poll(0.05)
        for other in others:
            assert other.poll(0.05) == []
    return found


def together(*consumers, until):
    """Poll several until something is true of them; what they returned."""
    found = [[] for _ in consumers]
    end = time.monotonic() + 60
    while not until() and time.monotonic() < end:
        for number, one in enumerate(consumers):
            found[number] += one.poll(0.02)
    assert until()
    return found


# The producer


def test_messages_are_sent_and_their_offsets_told(broker):
    with rewrite.Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
        done = []
        response = producer.send(rewrite.KafkaMessage("orders", b"key", b"message"))
        response.on_completion(lambda: done.append("All done"))
        assert (response.get_offset(), response.get_error()) == (0, None)
        assert response.wait(0)
        several = producer.send(*(rewrite.KafkaMessage("orders", "key", f"m{i}") for i in range(10)))
        assert several.get_offsets() == [*range(1, 11)]
        several.on_completion(lambda: done.append("at once"))
        assert done == ["All done", "at once"]
    assert [bytes(value) for value in broker.records("orders")["value"]][:2] == [b"message", b"m0"]
    with pytest.raises(ClientClosed):
        raise producer.send(rewrite.KafkaMessage("orders", b"key", b"message")).get_error()


def test_what_cannot_be_sent_has_its_error_in_the_response(broker):
    with rewrite.Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
        done = []
        response = producer.send(rewrite.KafkaMessage("orders", b"k", 5), rewrite.KafkaMessage("orders", b"k", b"good"))
        response.on_completion(lambda: done.append(1))
        assert isinstance(response.get_error(), EncodeError)
        assert response.get_offsets() == [None, 0]
        assert done == [1]
        with pytest.raises(ValueError, match="needs a message"):
            producer.send()


def test_sending_waits_for_no_metadata():
    """A broker that never answers holds up nobody; the outcome is known later."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        config = {"bootstrap.servers": f"127.0.0.1:{silent.getsockname()[1]}", "max.block.ms": 1_000}
        with rewrite.Producer(config) as producer:
            done = threading.Event()
            responses = [producer.send(rewrite.KafkaMessage("orders", b"k", b"%d" % i)) for i in range(100)]
            responses[-1].on_completion(done.set)
            assert not any(response.wait(0) for response in responses)
            assert done.wait(60)
            assert isinstance(responses[-1].get_error(), DeadlineExceeded)
            assert all(response.wait(60) for response in responses)
            assert responses[0].get_offset() is None


def test_a_topic_that_does_not_exist_holds_up_no_other():
    config = {"auto.create.topics.enable": False}
    with kc.broker.serve(topics={"orders": 1}, config=config) as broker:
        config = {"bootstrap.servers": broker.bootstrap_servers, "max.block.ms": 3_000}
        with rewrite.Producer(config) as producer:
            strange = producer.send(rewrite.KafkaMessage("strange", b"k", b"v"))
            known = [producer.send(rewrite.KafkaMessage("orders", b"k", b"%d" % i)) for i in range(1_000)]
            assert [response.get_offset() for response in known] == [*range(1_000)]
            assert known[0].get_error() is None
            assert isinstance(strange.get_error(), KafkaCodecError)


def test_sending_waits_for_memory_only():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with rewrite.Producer({"bootstrap.servers": address, "max.block.ms": 500, "buffer.memory": 2_000}) as producer:
            responses = [producer.send(rewrite.KafkaMessage("orders", None, b"x" * 1_000)) for _ in range(3)]
            assert {type(response.get_error()) for response in responses} <= {QueueFull, DeadlineExceeded}
    with pytest.raises(ClientClosed):
        producer.send(rewrite.KafkaMessage("orders", b"k", b"v"))


# Single calls


def test_calls_and_replies_are_polled(broker):
    with rewrite.KafkaConnection(groups(broker)) as connection:
        assert connection.poll(0) == []
        calls = [
            rewrite.CreateGroup(correlation_id=1, consumer_group="g", session_timeout=9_000, topics=["orders"]),
            rewrite.ListGroups(correlation_id=2),
        ]
        found = []
        found += connection.poll(0, *calls)
        while len(found) < 2:
            found += connection.poll(5)
        assert {reply.correlation_id: type(reply) for reply in found} == {
            1: rewrite.CreateGroupResponse,
            2: rewrite.ListGroupsResponse,
        }
        names = {"client_id": "a", "consumer_group": "g", "consumer_id": "a"}
        (reply,) = connection.poll(30, rewrite.RegisterConsumer(correlation_id=7, **names))
        assert len(reply.partitions_to_own) == 4
        (reply,) = connection.poll(30, rewrite.Heartbeat(correlation_id=8, client_id="a"))
        assert (reply.correlation_id, reply.error_code, reply.controller_generation) == (8, 0, 1)
        with pytest.raises(EncodeError, match="is not a call"):
            connection.poll(0, reply)
        assert connection.pending == 0
    with pytest.raises(ClientClosed):
        connection.poll(0)


def test_a_server_that_is_not_reached_is_told_in_the_reply():
    with rewrite.KafkaConnection("127.0.0.1:1") as connection:
        (reply,) = connection.poll(30, rewrite.ListGroups(correlation_id=4))
        assert (reply.correlation_id, reply.error_code) == (4, ErrorCode.CONTROLLER_UNREACHABLE)


# The consumer


class Address:
    """An address at which nobody listens now."""

    def __enter__(self):
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            return f"127.0.0.1:{one.getsockname()[1]}"

    def __exit__(self, *exception):
        pass


class Rewinding(threading.Thread):
    """A rewind in another thread, while other members go on in this one."""

    def __init__(self, consumer, offsets):
        super().__init__()
        self.consumer, self.offsets, self.error = consumer, offsets, None

    def run(self):
        try:
            self.consumer.rewind_offsets(self.offsets)
        except Exception as error:
            self.error = error


def test_messages_of_assigned_partitions_are_polled_and_committed(broker):
    for partition in range(4):
        fill(broker, 5, partition)
    with consumer(broker, enable_auto_commit=False) as one:
        one.add_topic("orders")
        messages = polled(one, 20)
        assert sorted(m.message for m in messages) == sorted(b"%d-%d" % (p, i) for p in range(4) for i in range(5))
        assert messages[0].key == b"k"
        assert one.assignment == [("orders", p) for p in range(4)]
        one.commit("orders", 0)
        with Connection(broker.listeners[1]) as calls:
            assert calls.fetch() == {0: 5}
            one.commit("orders")
            assert calls.fetch() == dict.fromkeys(range(4), 5)
        fill(broker, 1, 2, start=5)
    with consumer(broker) as next_one:
        next_one.add_topic("orders")
        assert [m.message for m in polled(next_one, 1)] == [b"2-5"]
        assert next_one.last_error is None


def test_what_was_returned_is_committed_by_itself(broker):
    fill(broker, 5)
    with consumer(broker, auto_commit_interval_ms=1) as one, Connection(broker.listeners[1]) as calls:
        one.add_topic("orders")
        polled(one, 5)
        assert calls.fetch() == {}
        one.poll(0.01)
        assert calls.fetch() == {0: 5}
        fill(broker, 2, start=5)
        polled(one, 2)
    with Connection(broker.listeners[1]) as calls:
        assert calls.fetch() == {0: 7}


def test_a_new_member_takes_its_part_and_each_message_is_read_once(broker):
    with consumer(broker) as a, consumer(broker) as b:
        a.add_topic("orders")
        b.add_topic("orders")
        found = together(a, until=lambda: len(a.assignment) == 4)
        for partition in range(4):
            fill(broker, 10, partition)
        found[0] += polled(a, 10)
        more = together(a, b, until=lambda: len(a.assignment) == len(b.assignment) == 2)
        messages = [*found[0], *more[0], *more[1]]
        for partition in range(4):
            fill(broker, 10, partition, start=10)
        end = time.monotonic() + 60
        while len(messages) < 80 and time.monotonic() < end:
            messages += [*a.poll(0.02), *b.poll(0.02)]
        values = sorted(m.message for m in messages)
        assert values == sorted(b"%d-%d" % (p, i) for p in range(4) for i in range(20))
        assert set(a.assignment) | set(b.assignment) == {("orders", p) for p in range(4)}


def test_a_rewind_moves_all_owners(broker):
    for partition in range(4):
        fill(broker, 5, partition)
    ids = {"a": "client-a", "b": "client-b"}
    with consumer(broker, client_id=ids["a"]) as a, consumer(broker, client_id=ids["b"]) as b:
        a.add_topic("orders")
        b.add_topic("orders")
        together(a, b, until=lambda: len(a.assignment) == len(b.assignment) == 2)
        end = time.monotonic() + 60
        committed: dict[int, int] = {}
        with Connection(broker.listeners[1]) as calls:
            while committed != dict.fromkeys(range(4), 5) and time.monotonic() < end:
                a.poll(0.02)
                b.poll(0.02)
                a.commit()
                b.commit()
                committed = calls.fetch()
        own, others = a.assignment[0], b.assignment[0]
        told = []
        rewinding = Rewinding(a, {own: 3, others: 2})
        rewinding.start()
        while rewinding.is_alive():
            told += b.poll(0.02)
        rewinding.join()
        assert rewinding.error is None
        told += polled(b, 3 - len(told))
        assert [(m.topic, m.partition, m.offset) for m in told] == [(*others, offset) for offset in (2, 3, 4)]
        assert [(m.topic, m.partition, m.offset) for m in polled(a, 2)] == [(*own, offset) for offset in (3, 4)]


class Held:
    """Keeps the replies of members until some have come, so that one poll takes them all."""

    def __init__(self, monkeypatch):
        self._real = MemberDriver.replies
        self.wanted = lambda replies: True
        monkeypatch.setattr(MemberDriver, "replies", lambda driver: self._replies(driver))

    def _replies(self, driver):
        if self.wanted([reply for _, reply in driver._found]):
            return self._real(driver)
        driver.arrived.clear()
        return []


def of_kind(replies, kind):
    return [reply for reply in replies if isinstance(reply, kind)]


def test_a_change_that_comes_with_the_reply_to_a_rewind_does_not_undo_it(broker, monkeypatch):
    """The member stops and commits what it had read: but not where it has gone back."""
    fill(broker, 10)
    held = Held(monkeypatch)
    with consumer(broker, session_timeout_ms=3000) as a, Connection(broker.listeners[1]) as b:
        a.add_topic("orders")
        polled(a, 10)
        joined = []

        def both_are_there(replies):
            if not of_kind(replies, rewrite.RewindConsumerResponse):
                return False
            if not joined:
                joined.append(b.registering("b"))
            return any(reply.error_code for reply in of_kind(replies, rewrite.HeartbeatResponse))

        held.wanted = both_are_there
        a.rewind_offsets({("orders", 0): 4})
        assert b.fetch()[0] == 4
        held.wanted = lambda replies: True
        together(a, until=lambda: a.generation == 2)
        assert b.fetch()[0] == 4


async def test_nothing_is_committed_of_partitions_that_go_back(broker, monkeypatch):
    """A rewind that is given up is on its way all the same: neither a poll nor a commit undoes it."""
    fill(broker, 10)
    held = Held(monkeypatch)
    config = {
        "bootstrap.servers": broker.bootstrap_servers, "rewrite.servers": groups(broker), "group.id": "g",
        "auto.offset.reset": "earliest", "auto.commit.interval.ms": 1,
    }  # fmt: skip
    async with rewrite.aio.Consumer(config) as a:
        a.add_topic("orders")
        read = []
        while len(read) < 10:
            read += await a.poll(1)
        held.wanted = lambda replies: False
        rewinding = asyncio.ensure_future(a.rewind_offsets({("orders", 0): 4}))
        while not of_kind([reply for _, reply in a._work._driver._found], rewrite.RewindConsumerResponse):
            await asyncio.sleep(0.01)
        rewinding.cancel()
        await asyncio.wait([rewinding])
        await a.poll(0.05)
        await a.commit()
        with Connection(broker.listeners[1]) as calls:
            assert calls.fetch()[0] == 4
            held.wanted = lambda replies: True
            assert [m.offset for m in await a.poll(30)] == [4, 5, 6, 7, 8, 9]
            await a.commit()
            assert calls.fetch()[0] == 10


def test_rewinds_that_cannot_be_are_told(broker):
    fill(broker, 5)
    with consumer(broker) as a:
        a.add_topic("orders")
        polled(a, 5)
        with pytest.raises(rewrite.GroupError, match="orders-9 is not rewound: UNKNOWN_PARTITION") as caught:
            a.rewind_offsets({("orders", 9): 1, ("orders", 0): 4})
        assert caught.value.code == ErrorCode.UNKNOWN_PARTITION
        assert [m.offset for m in polled(a, 1)] == [4]


def test_given_partitions_are_read_beside_and_their_offsets_kept(broker):
    fill(broker, 4, 1, "other")
    for _ in range(2):
        with consumer(broker, enable_auto_commit=False) as one:
            one.add_topic("other", 1)
            assert [m.offset for m in polled(one, 4)] == [0, 1, 2, 3]
            assert one.assignment == [("other", 1)]
    with consumer(broker) as one:
        one.add_topic("other", 1)
        polled(one, 4)
    fill(broker, 1, 1, "other", start=4)
    with consumer(broker) as one:
        one.add_topic("other", 1)
        assert [m.offset for m in polled(one, 1)] == [4]
        one.rewind_offsets({("other", 1): 2})
        assert [m.offset for m in polled(one, 3)] == [2, 3, 4]
        with pytest.raises(LocalProtocolError, match="only its given partitions"):
            one.rewind_offsets({("other", 0): 2})


def test_a_member_that_is_not_polled_is_thrown_out_and_returns(broker):
    fill(broker, 5)
    with consumer(broker, session_timeout_ms=300) as a, consumer(broker) as b:
        a.add_topic("orders")
        polled(a, 5)
        b.add_topic("orders")
        together(b, until=lambda: len(b.assignment) == 4)
        together(a, b, until=lambda: len(a.assignment) == len(b.assignment) == 2)


def test_replies_that_came_between_polls_count(broker, monkeypatch):
    """A member that is polled seldom, but often enough, stays: here two thirds of a session pass between polls."""
    passed = 0
    real = MemberDriver.now
    monkeypatch.setattr(MemberDriver, "now", staticmethod(lambda: real() + passed))
    with consumer(broker, session_timeout_ms=300_000) as a:
        a.add_topic("orders")
        together(a, until=lambda: a.generation == 1)
        servers = a._face._work._servers
        (dialer,) = servers._dialers.values()
        for _ in range(4):
            passed += 200_000
            connection, sent = dialer._connection, dialer._connection._exchange._last_id
            while connection._exchange._last_id == sent:  # a heartbeat leaves
                a.poll()
            if connection.pending:
                assert select.select([connection._transport.get_extra_info("socket")], [], [], 60)[0]
        assert a.generation == 1
        assert len(a.assignment) == 4


def test_what_is_wrong_is_told(broker):
    with Connection(broker.listeners[1]) as calls:
        calls.create(topics=("other",))
    with consumer(broker) as a:
        with pytest.raises(LocalProtocolError, match="nothing to read"):
            a.poll()
        a.add_topic("orders")
        with pytest.raises(ValueError, match="was added in the other way"):
            a.add_topic("orders", 1)
        with pytest.raises(LocalProtocolError, match=r"has the topics \['other'\], and not \['orders'\]"):
            a.poll(30)
    with pytest.raises(ClientClosed):
        a.poll()
    with consumer(broker, client_id="same", group_id="h") as a, consumer(broker, client_id="same", group_id="i") as b:
        a.add_topic("orders")
        b.add_topic("orders")
        together(a, until=lambda: len(a.assignment) == 4)
        with pytest.raises(rewrite.GroupError, match="refuses the consumer: CLIENT_ID_IN_USE"):
            b.poll(30)
    for config, reason in [
        ({}, "needs bootstrap.servers"),
        ({"bootstrap.servers": "h:1"}, "needs rewrite.servers"),
        ({"bootstrap.servers": "h:1", "rewrite.servers": "h:1", "enable.auto.commit": "x"}, "not true or false"),
        ({"bootstrap.servers": "h:1", "rewrite.servers": "h:1", "session.timeout.ms": "x"}, "not a number"),
    ]:
        with pytest.raises(ValueError, match=reason):
            rewrite.Consumer(config)
    alone = rewrite.Consumer({"bootstrap.servers": "h:1", "rewrite.servers": "h:1"})
    with alone, pytest.raises(ValueError, match=r"no group\.id"):
        alone.add_topic("orders")


def test_a_consumer_that_is_dropped_warns(broker):
    dropped = consumer(broker)
    with pytest.warns(ResourceWarning, match="was not closed; it was created at"):
        del dropped


def test_servers_that_are_not_reached_are_told_and_then_found(tmp_path):
    with kc.broker.serve(tmp_path, topics={"orders": 1}) as broker, Address() as address:
        fill(broker, 3)
        config = {
            "bootstrap.servers": broker.bootstrap_servers, "rewrite.servers": f"127.0.0.1:1,{address}",
            "group.id": "g", "auto.offset.reset": "earliest",
        }  # fmt: skip
        with rewrite.Consumer(config) as one:
            one.add_topic("orders")
            assert one.poll(0.2) == []
            assert isinstance(one.last_error, ConnectionFailed)
            with kc.broker.serve(listen=f"rewrite://{address}", topics={"orders": 1}):
                assert len(polled(one, 3)) == 3
                assert one.last_error is None


def test_the_same_for_asyncio(broker):
    fill(broker, 3)
    config = {
        "bootstrap.servers": broker.bootstrap_servers, "rewrite.servers": groups(broker), "group.id": "g",
        "auto.offset.reset": "earliest",
    }  # fmt: skip

    async def run():
        async with rewrite.aio.Consumer(config) as one, rewrite.aio.KafkaConnection(groups(broker)) as connection:
            one.add_topic("orders")
            found = []
            while len(found) < 3:
                found += await one.poll(1.0)
            await one.commit()
            await one.rewind_offsets({("orders", 0): 1})
            found = []
            while len(found) < 2:
                found += await one.poll(1.0)
            (listed,) = await connection.poll(30, rewrite.ListGroups())
            return found, listed

    found, listed = asyncio.run(run())
    assert [m.offset for m in found] == [1, 2]
    assert [info.group_name for info in listed.groups_info] == ["g"]
