"""Clients of Kafka 0.7, for threads and asyncio, with brokers of this package and a real ZooKeeper."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from contextlib import ExitStack

import pytest

import kafkacodec as kc
from kafkacodec.dialects import kafka07
from kafkacodec.errors import (
    BrokerError,
    ClientClosed,
    ConnectionFailed,
    CrcMismatch,
    DeadlineExceeded,
    EncodeError,
    LimitExceeded,
)
from tests.integration.zookeeper import ZooKeeperServer, end_session
from tests.kafka07_session import Client, message, produce
from tests.patience import SOON, eventually, until

pytestmark = pytest.mark.java
QUICK = {
    "fetch_backoff_ms": 10,
    "rebalance_backoff_ms": 20,
    "rebalance_retries": 1000,
    "session_timeout_ms": 30_000,
    "connection_timeout_ms": 30_000,
}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    found = ZooKeeperServer(tmp_path_factory.mktemp("zookeeper"))
    found.start()
    yield found
    found.stop()


@pytest.fixture
def zookeeper(server, request):
    """A path of a test's own, with which ZooKeeper is named."""
    path = f"/{abs(hash(request.node.name))}"
    with server.client() as client:
        client.ensure_path(path)
    return server.server + path


def tree(server, zookeeper):
    path = zookeeper.removeprefix(server.server)
    return {name.removeprefix(path): content for name, content in server.tree(path).items()}


def serving(zookeeper, number, data=None, **config):
    config = {
        "zk.connect": zookeeper,
        "num.partitions": 2,
        "zk.sessiontimeout.ms": 30_000,
        "zk.connectiontimeout.ms": 30_000,
        **config,
    }
    return kc.broker.serve(data, listen="kafka07://127.0.0.1:0", node_id=number, config=config)


@pytest.fixture
def brokers(zookeeper):
    with serving(zookeeper, 2) as first, serving(zookeeper, 10) as second:
        yield first, second


def read(consumer, count, timeout=60):
    found = []
    while len(found) < count:
        messages = consumer.poll(timeout)
        assert messages, f"only {len(found)} of {count}"
        found += messages
    return found


def owners(server, zookeeper, topic="t"):
    prefix = f"/consumers/g/owners/{topic}/"
    return {path.removeprefix(prefix): c for path, c in tree(server, zookeeper).items() if path.startswith(prefix)}


def producing(zookeeper, **options):
    return kafka07.Producer(zookeeper, connect_timeout_ms=30_000, **options)


def registered(server, zookeeper, topic="t", count=2):
    eventually(lambda: sum(p.startswith(f"/brokers/topics/{topic}/") for p in tree(server, zookeeper)) == count)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy"])
def test_what_is_sent_is_read_once_and_in_order(zookeeper, brokers, codec):
    with producing(zookeeper, compression_type=codec, batch_messages=7) as producer:
        sent = [producer.send("t", b"%d" % i, key=f"k{i % 5}") for i in range(500)]
        places = [delivery.result(SOON) for delivery in sent]
    expected = {}
    for i, place in enumerate(places):
        expected.setdefault((place.broker, place.partition), []).append(b"%d" % i)
    with kafka07.Consumer(zookeeper, "t", group="g", **QUICK) as consumer:
        found = {}
        for one in read(consumer, 500):
            found.setdefault((one.broker, one.partition), []).append(one.value)
        assert found == expected
        assert consumer.poll(0.05) == []


def test_keys_go_to_the_same_partition_whichever_producer_sends_them(server, zookeeper, brokers):
    for broker in brokers:
        with Client(broker.listeners[0]) as client:
            client.send(produce("t", 0))
            client.read("t")
    registered(server, zookeeper)
    pairs = [(2, 0), (2, 1), (10, 0), (10, 1)]
    for _ in range(2):
        with producing(zookeeper) as producer:
            for key, place in (("a", 97 % 4), ("b", 98 % 4), ("ab", (97 * 31 + 98) % 4)):
                assert producer.send("t", b"x", key=key).result(SOON)[1:] == pairs[place]


def test_members_share_the_partitions_and_each_is_owned_once(server, zookeeper, brokers):
    with producing(zookeeper) as producer:
        for i in range(100):
            producer.send("t", b"%d" % i).result(SOON)
    registered(server, zookeeper)
    with ExitStack() as stack:
        members = []
        for name in "abc":
            made = kafka07.Consumer(zookeeper, "t", group="g", consumer_id=name, **QUICK)
            members.append(stack.enter_context(made))
            members[-1].poll()
            shares = {"a": [4], "b": [2, 2], "c": [2, 1, 1]}[name]
            eventually(lambda members=members, shares=shares: [len(m.assignment) for m in members] == shares)
        assert owners(server, zookeeper) == {"10-0": "g_a-0", "10-1": "g_a-0", "2-0": "g_b-0", "2-1": "g_c-0"}
        members[0].close()
        eventually(lambda: [len(m.assignment) for m in members[1:]] == [2, 2])
        assert owners(server, zookeeper) == {"10-0": "g_b-0", "10-1": "g_b-0", "2-0": "g_c-0", "2-1": "g_c-0"}
    assert owners(server, zookeeper) == {}


def test_a_member_reads_on_where_the_one_before_it_ended(server, zookeeper, brokers):
    with producing(zookeeper) as producer:
        for i in range(50):
            producer.send("t", b"%d" % i).result(SOON)
        with kafka07.Consumer(zookeeper, "t", group="g", **QUICK) as consumer:
            assert len({one.value for one in read(consumer, 50)}) == 50
        ends = {p: c for p, c in tree(server, zookeeper).items() if p.startswith("/consumers/g/offsets/t/")}
        assert sum(int(offset) for offset in ends.values()) == sum(10 + len(b"%d" % i) for i in range(50))
        producer.send("t", b"last").result(SOON)
    with kafka07.Consumer(zookeeper, "t", group="g", **QUICK) as consumer:
        assert [one.value for one in read(consumer, 1)] == [b"last"]


def test_what_is_not_committed_is_read_again(zookeeper, brokers):
    with producing(zookeeper) as producer:
        producer.send("t", b"x").result(SOON)
    options = {"group": "g", "auto_commit": False, **QUICK}
    for _ in range(2):
        with kafka07.Consumer(zookeeper, "t", **options) as consumer:
            read(consumer, 1)
    with kafka07.Consumer(zookeeper, "t", **options) as consumer:
        read(consumer, 1)
        consumer.commit()
    with kafka07.Consumer(zookeeper, "t", **options) as consumer:
        assert consumer.poll(0.1) == []


def test_a_member_whose_session_is_lost_joins_again_with_the_same_id(server, zookeeper, brokers):
    with producing(zookeeper) as producer:
        producer.send("t", b"first").result(SOON)
        registered(server, zookeeper, count=1)
        with (
            kafka07.Consumer(zookeeper, "t", group="g", consumer_id="a", **QUICK) as first,
            kafka07.Consumer(zookeeper, "t", group="g", consumer_id="b", **QUICK) as second,
        ):
            read(first, 1)
            second.poll()
            eventually(lambda: set(owners(server, zookeeper).values()) == {"g_a-0", "g_b-0"})
            end_session(server.server, first._face._engine.session)
            eventually(lambda: "/consumers/g/ids/g_a" in tree(server, zookeeper))
            eventually(lambda: set(owners(server, zookeeper).values()) == {"g_a-0", "g_b-0"})
            producer.send("t", b"second").result(SOON)
            eventually(lambda: first.poll(0.1) + second.poll(0.1))


def test_changes_are_noticed_after_a_lost_connection(server, zookeeper):
    with serving(zookeeper, 2) as first, kafka07.Consumer(zookeeper, "t", group="g", **QUICK) as consumer:
        with Client(first.listeners[0]) as client:
            client.send(produce("t", 0, message(b"first")))
        assert [one.value for one in read(consumer, 1)] == [b"first"]
        session = consumer._face._engine.session
        server.stop()
        server.start()
        eventually(lambda: consumer._face._engine.session == session)
        with serving(zookeeper, 10) as second, Client(second.listeners[0]) as client:
            client.send(produce("t", 0, message(b"second")))
            assert [one.value for one in read(consumer, 1)] == [b"second"]


def test_a_member_waits_for_the_end_of_an_earlier_session_with_its_id(server, zookeeper, brokers):
    path = "/consumers/g/ids/g_a"
    with kafka07.Consumer(zookeeper, "t", group="g", consumer_id="a", **QUICK) as consumer:
        consumer.poll()
        content = tree(server, zookeeper)[path]
    with kafka07.Consumer(zookeeper, "t", group="g", consumer_id="a", **QUICK) as consumer:
        with server.client() as killed:
            killed.create(zookeeper.removeprefix(server.server) + path, content.encode(), ephemeral=True)
            thread = threading.Thread(target=consumer.poll)
            thread.start()
            eventually(lambda: getattr(consumer._face._engine, "_zookeeper", None) and _waits_for_a_node(consumer))
        thread.join()
        assert path in tree(server, zookeeper)


def _waits_for_a_node(consumer):
    return consumer._face._engine._zookeeper._client._data_watchers


def test_a_topic_that_comes_later_is_read(server, zookeeper, brokers):
    with (
        kafka07.Consumer(zookeeper, ["t", "u"], group="g", **QUICK) as named,
        kafka07.Consumer(zookeeper, group="h", whitelist="t, late.*", **QUICK) as filtered,
        producing(zookeeper) as producer,
    ):
        assert named.poll() == filtered.poll() == []
        assert tree(server, zookeeper)[f"/consumers/h/ids/{filtered.consumer_id}"] == "*1*t|late.*"
        for topic in ("u", "later", "other"):
            producer.send(topic, topic.encode()).result(SOON)
        assert [one.value for one in read(named, 1)] == [b"u"]
        assert [one.value for one in read(filtered, 1)] == [b"later"]
        assert filtered.poll(0.05) == []


def test_a_broker_that_comes_back_is_read_on(zookeeper, tmp_path):
    with producing(zookeeper) as producer:
        with serving(zookeeper, 2, tmp_path):
            producer.send("t", b"first").result(SOON)
            consumer = kafka07.Consumer(zookeeper, "t", group="g", **QUICK)
            assert [one.value for one in read(consumer, 1)] == [b"first"]
        with pytest.raises(BrokerError, match="no broker"):
            producer.send("t", b"x")
        with consumer, serving(zookeeper, 2, tmp_path):
            producer.send("t", b"second").result(SOON)
            assert [one.value for one in read(consumer, 1)] == [b"second"]


@pytest.mark.parametrize("stored", ["-1", "1000000"])
def test_an_offset_that_is_not_in_the_log_is_reset(server, zookeeper, brokers, stored):
    with producing(zookeeper) as producer:
        place = producer.send("t", b"x").result(SOON)
    path = f"{zookeeper.removeprefix(server.server)}/consumers/g/offsets/t/{place.broker}-{place.partition}"
    with server.client() as client:
        client.create(path, stored.encode(), makepath=True)
    with kafka07.Consumer(zookeeper, "t", group="g", **QUICK) as consumer:
        assert [one.value for one in read(consumer, 1)] == [b"x"]


def test_a_group_may_begin_at_the_end(server, zookeeper, brokers):
    with producing(zookeeper) as producer:
        producer.send("t", b"old").result(SOON)
        registered(server, zookeeper, count=1)
        with kafka07.Consumer(zookeeper, "t", group="g", auto_offset_reset="largest", **QUICK) as consumer:
            assert consumer.poll(0.2) == []
            producer.send("t", b"new", key="k").result(SOON)
            assert [one.value for one in read(consumer, 1)] == [b"new"]
        ends = [c for p, c in tree(server, zookeeper).items() if p.startswith("/consumers/g/offsets/t/")]
        assert sum(map(int, ends)) == 26


def test_damage_and_size_are_told_and_other_partitions_are_read(server, zookeeper, tmp_path):
    with serving(zookeeper, 2, tmp_path) as broker, Client(broker.listeners[0]) as client:
        client.send(produce("t", 0, message(b"good"), message(b"damaged")), produce("t", 1, message(bytes(5000))))
        client.read("t")
        path = tmp_path / "t-0" / f"{0:020}.kafka"
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(data)
        registered(server, zookeeper, count=1)
        options = {"fetch_size": 100, "max_fetch_size": 4000, **QUICK}
        with kafka07.Consumer(zookeeper, "t", group="g", **options) as consumer:
            errors, values = set(), []
            while len(errors) < 2 or not values:
                try:
                    values += [one.value for one in consumer.poll(30)]
                except (CrcMismatch, LimitExceeded) as error:
                    errors.add(type(error))
            assert (errors, values) == ({CrcMismatch, LimitExceeded}, [b"good"])


def test_a_group_that_cannot_share_is_told(server, zookeeper, brokers):
    with server.client() as client:
        client.create(f"{zookeeper.removeprefix(server.server)}/consumers/g/ids/g_x", b"?", makepath=True)
    options = {**QUICK, "rebalance_retries": 2}
    with kafka07.Consumer(zookeeper, "t", group="g", consumer_id="a", **options) as consumer:
        with pytest.raises(BrokerError, match=r"2 tries: .*g_x"):
            consumer.poll()
        assert "/consumers/g/ids/g_a" not in tree(server, zookeeper)  # nobody counts it
        with server.client() as client:
            client.delete(f"{zookeeper.removeprefix(server.server)}/consumers/g/ids/g_x")
        consumer.poll()
        with (
            kafka07.Consumer(zookeeper, "u", group="g", consumer_id="a", **QUICK) as twin,
            pytest.raises(BrokerError, match="already exists"),
        ):
            twin.poll()


def test_a_list_of_brokers_instead_of_zookeeper(brokers):
    text = ",".join(f"{i}:{b.listeners[0].partition('://')[2]}" for i, b in zip((2, 10), brokers, strict=True))
    with kafka07.Producer(brokers=text) as producer:
        sent = [producer.send("t", b"x", key="same").result(SOON) for _ in range(60)]
    assert {place.broker for place in sent} == {2, 10}
    assert {place.partition for place in sent} == {-1}
    ends = []
    for broker in brokers:
        with kafka07.SimpleConsumer(broker.listeners[0].partition("://")[2]) as consumer:
            ends += [consumer.latest("t", 0), consumer.latest("t", 1)]
    assert sum(ends) == 60 * 11
    assert min(ends) > 0


def test_a_refused_message_closes_the_connection_which_is_logged_and_made_anew(brokers, caplog):
    address = brokers[0].listeners[0].partition("://")[2]
    with kafka07.Producer(brokers=f"2:{address}", max_message_size=2_000_000, linger_ms=0) as producer:
        engine = producer._face._engine
        producer.send("t", b"x").result(SOON)
        brokers[0]._thread.run(lambda: brokers[0]._serving._host.end([]))
        connection = engine._links[2]._connection
        producer._thread.soon(connection._transport.write, produce("t", 9, message(b"x")))
        eventually(lambda: not connection.is_open)
        with caplog.at_level(logging.WARNING, "kafkacodec.client"):
            producer.send("t", b"y").result(SOON)
        assert "it may have refused a message" in caplog.text
    with kafka07.SimpleConsumer(address) as consumer:
        assert consumer.latest("t", 0) + consumer.latest("t", 1) == 22


def test_connections_are_made_anew_after_so_many_requests(brokers):
    address = brokers[0].listeners[0].partition("://")[2]
    with kafka07.Producer(brokers=f"2:{address}", linger_ms=0, reconnect_interval=2) as producer:
        seen = set()
        for _ in range(6):
            producer.send("t", b"x").result(SOON)
            seen.add(producer._face._engine._links[2]._connection)
        assert len(seen) == 3
    with kafka07.SimpleConsumer(address) as consumer:
        assert consumer.latest("t", 0) + consumer.latest("t", 1) == 66


def test_a_broker_that_is_not_there_is_told_after_some_tries():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with (
            kafka07.Producer(brokers=f"1:{address}", connect_timeout_ms=50) as producer,
            pytest.raises(ConnectionFailed, match="refused"),
        ):
            producer.send("t", b"x").result(SOON)
        with kafka07.Producer(address, connect_timeout_ms=50) as producer, pytest.raises(DeadlineExceeded):
            producer.send("t", b"x")
        with (
            kafka07.Consumer(address, "t", group="g", connection_timeout_ms=50) as consumer,
            pytest.raises(DeadlineExceeded),
        ):
            consumer.poll()


def test_a_simple_consumer(brokers):
    with Client(brokers[0].listeners[0]) as client:
        client.send(produce("t", 0, message(bytes(500)), message(b"x")))
        client.read("t")
    with kafka07.SimpleConsumer(brokers[0].listeners[0].partition("://")[2]) as consumer:
        columns = consumer.fetch("t", 0, 0, max_size=20)
        assert columns["next_offset"].tolist() == [510]
        assert consumer.fetch("t", 0, 510)["next_offset"].tolist() == [521]
        assert len(consumer.fetch("t", 0, 521)) == 0
        assert consumer.offsets("t", 0, -1, 5) == [521, 0]
        assert consumer.earliest("t", 0) == 0
        codes = consumer.multifetch([kafka07.FetchRequest("t", 0, 521, 9), kafka07.FetchRequest("t", 5, 0, 9)])
        assert [one.error_code for one in codes] == [0, 3]
        with pytest.raises(BrokerError, match="OFFSET_OUT_OF_RANGE"):
            consumer.fetch("t", 0, 600)
        with pytest.raises(LimitExceeded):
            consumer.fetch("t", 0, 0, max_size=20, max_message_size=100)
        with pytest.raises(ConnectionFailed):
            consumer.offsets("t", 9, -1, 5)


async def test_asyncio_reads_what_asyncio_wrote(zookeeper, brokers):
    async with (
        kafka07.aio.Producer(zookeeper) as producer,
        kafka07.aio.Consumer(zookeeper, {"t": 2}, group="g", **QUICK) as consumer,
    ):
        sent = [await producer.send("t", b"%d" % i) for i in range(50)]
        await producer.flush()
        assert all(delivery.done() for delivery in sent)
        found = []
        async with asyncio.timeout(60):
            while len(found) < 50:
                found += [one.value for one in await consumer.poll(10)]
        assert sorted(found, key=int) == [b"%d" % i for i in range(50)]


@pytest.mark.parametrize("kind", ["producer", "consumer"])
def test_a_dropped_client_warns_and_ends(server, zookeeper, brokers, kind):
    if kind == "producer":
        clients = [producing(zookeeper)]
        clients[0].send("t", b"x").result(SOON)
    else:
        consumer = kafka07.Consumer(zookeeper, "t", group="g", **QUICK)
        consumer.poll()
        clients = [consumer]
        del consumer
    thread = clients[0]._thread
    with pytest.warns(ResourceWarning, match=r"was not closed; .* at .*test_kafka07_clients"):
        clients.clear()
    thread._thread.join(30)
    assert not thread._thread.is_alive()
    assert not [path for path in tree(server, zookeeper) if path.startswith("/consumers/g/ids/")]


async def test_a_dropped_client_of_asyncio_warns_and_leaves(server, zookeeper, brokers):
    clients = [kafka07.aio.Consumer(zookeeper, "t", group="g", **QUICK)]
    await clients[0].poll()
    engine = clients[0]._engine
    with pytest.warns(ResourceWarning, match="was not closed"):
        clients.clear()
    await until(lambda: engine._tasks and all(task.done() for task in engine._tasks))
    await asyncio.to_thread(
        eventually, lambda: not [p for p in tree(server, zookeeper) if p.startswith("/consumers/g/ids/")]
    )


def test_a_closed_client_says_so(zookeeper, brokers):
    producer, consumer = producing(zookeeper), kafka07.Consumer(zookeeper, "t", group="g", **QUICK)
    simple = kafka07.SimpleConsumer(brokers[0].listeners[0].partition("://")[2])
    for client in (producer, consumer, simple):
        client.close()
        client.close()
    for call in (lambda: producer.send("t", b"x"), consumer.poll, lambda: simple.latest("t", 0)):
        with pytest.raises(ClientClosed):
            call()


def test_wrong_arguments():
    for make in (
        lambda: kafka07.Producer(),
        lambda: kafka07.Producer("z:1", brokers="1:h:1"),
        lambda: kafka07.Producer(brokers="h:1"),
        lambda: kafka07.Producer("z:1", compression_type="lz4"),
        lambda: kafka07.Producer("z:1", batch_messages=40_000),
        lambda: kafka07.Consumer("z:1", group="g"),
        lambda: kafka07.Consumer("z:1", "t", group="g", whitelist="x"),
        lambda: kafka07.Consumer("z:1", {"t": 0}, group="g"),
        lambda: kafka07.Consumer("z:1", "t", group="g", auto_offset_reset="earliest"),
        lambda: kafka07.SimpleConsumer("a:1,b:2"),
    ):
        with pytest.raises(ValueError):
            make()


def test_names_and_sizes_are_refused_before_they_are_sent(brokers):
    with kafka07.Producer(brokers=f"2:{brokers[0].listeners[0].partition('://')[2]}") as producer:
        for topic, value in (("a/b", b"x"), ("t", bytes(1_000_001))):
            with pytest.raises(EncodeError):
                producer.send(topic, value)
