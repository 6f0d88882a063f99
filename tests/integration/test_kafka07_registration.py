"""The broker of Kafka 0.7 in a real ZooKeeper."""

from __future__ import annotations

import logging
import re
import signal

import pytest

import kafkacodec as kc
from tests.integration.zookeeper import ZooKeeperServer, end_session
from tests.kafka07_session import Client, message, produce
from tests.patience import eventually

pytestmark = pytest.mark.java
M = message(b"abc")


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory):
    server = ZooKeeperServer(tmp_path_factory.mktemp("zookeeper"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def root(zookeeper, request):
    """A path of a test's own, with which ZooKeeper is named."""
    path = f"/{request.node.name.strip(']').replace('[', '-')}"
    with zookeeper.client() as client:
        client.ensure_path(path)
    return zookeeper.server + path


def tree(zookeeper, root):
    path = root.removeprefix(zookeeper.server)
    return {name.removeprefix(path): content for name, content in zookeeper.tree(path).items()}


def serving(root, data=None, **options):
    config = {
        "zk.connect": root,
        "zk.sessiontimeout.ms": 30_000,
        "zk.connectiontimeout.ms": 30_000,
        **options.pop("config", {}),
    }
    return kc.broker.serve(data, listen="kafka07://127.0.0.1:0", config=config, **options)


def test_a_broker_and_its_topics_are_registered_as_long_as_it_runs(zookeeper, root, tmp_path):
    config = {"num.partitions": 2, "topic.partition.count.map": "many:7"}
    with serving(root, tmp_path, node_id=4, config=config) as broker:
        port = broker.listeners[0].rpartition(":")[2]
        found = tree(zookeeper, root)
        assert re.fullmatch(rf"127\.0\.0\.1-[0-9]{{13}}:127\.0\.0\.1:{port}", found.pop("/brokers/ids/4"))
        assert found == {"/brokers": None, "/brokers/ids": None}
        with Client(broker.listeners[0]) as client:
            client.send(produce("few", 1, M), produce("many", 3, M), produce("many", 4, M))
            client.read("many", 4)
            client.send(produce("refused", 0, message(b"abc", crc=1)))
            assert client.is_closed()
        eventually(lambda: "/brokers/topics/refused/4" in tree(zookeeper, root))
        found = tree(zookeeper, root)
        assert [found[f"/brokers/topics/{name}/4"] for name in ("few", "many", "refused")] == ["2", "7", "2"]
    left = tree(zookeeper, root)
    assert set(left) == {
        "/brokers",
        "/brokers/ids",
        "/brokers/topics",
        *(f"/brokers/topics/{n}" for n in found_in(left)),
    }
    with serving(root, tmp_path, config=config):
        assert tree(zookeeper, root)["/brokers/topics/many/4"] == "7"


def found_in(left):
    names = {path.split("/")[3] for path in left if path.startswith("/brokers/topics/")}
    assert names == {"few", "many", "refused"}
    return names


def test_a_lost_session_is_followed_by_another_with_the_same_nodes(zookeeper, root, tmp_path):
    with serving(root, tmp_path) as broker, Client(broker.listeners[0]) as client:
        client.send(produce("t", 0, M))
        eventually(lambda: "/brokers/topics/t/1" in tree(zookeeper, root))
        before = tree(zookeeper, root)
        registration = broker._serving._dialects._begun["kafka07"][0].registration
        end_session(zookeeper.server, registration.session)
        eventually(
            lambda: tree(zookeeper, root).get("/brokers/ids/1", before["/brokers/ids/1"]) != before["/brokers/ids/1"]
        )
        eventually(lambda: tree(zookeeper, root).get("/brokers/topics/t/1") == "1")
        assert client.read("t") == M


def test_a_zookeeper_that_is_frozen_stops_nothing_but_what_it_is_for(zookeeper, root, tmp_path, caplog):
    config = {"zk.sessiontimeout.ms": 1000, "zk.connectiontimeout.ms": 1000}
    with serving(root, tmp_path / "a", config={**config, "zk.connectiontimeout.ms": 30_000}) as broker:
        before = tree(zookeeper, root)["/brokers/ids/1"]
        zookeeper.signal(signal.SIGSTOP)
        try:
            with Client(broker.listeners[0]) as client:
                client.send(produce("t", 0, M))
                assert client.read("t") == M
            with pytest.raises(OSError, match=r"ZooKeeper at .* does not answer"):
                serving(root, tmp_path / "b", config=config)
        finally:
            zookeeper.signal(signal.SIGCONT)
        eventually(lambda: tree(zookeeper, root).get("/brokers/topics/t/1") == "1")
        assert f"the connection to ZooKeeper at {root} is lost" in caplog.text
        eventually(lambda: "/brokers/ids/1" in tree(zookeeper, root))
        assert tree(zookeeper, root)["/brokers/ids/1"].split(":")[1:] == before.split(":")[1:]
        zookeeper.signal(signal.SIGSTOP)
        try:
            broker.stop()
        finally:
            zookeeper.signal(signal.SIGCONT)
    eventually(lambda: "/brokers/ids/1" not in tree(zookeeper, root))


def test_an_id_is_of_one_broker(root, tmp_path):
    with serving(root, tmp_path / "a"):
        with pytest.raises(OSError, match="broker 1 is in ZooKeeper already"):
            serving(root, tmp_path / "b")
        with serving(root, tmp_path / "c", node_id=2):
            pass
    with serving(root, tmp_path / "b"):
        pass


def test_its_name_may_be_given(zookeeper, root):
    with serving(root, config={"hostname": "kafka.example"}):
        assert tree(zookeeper, root)["/brokers/ids/1"].split(":")[1] == "kafka.example"
    with pytest.raises(OSError, match="colon"):
        serving(root, config={"hostname": "a:b"})


def test_a_zookeeper_that_is_not_there_is_told_once(tmp_path, caplog):
    """kazoo has a warning for each attempt to connect."""
    caplog.set_level(logging.INFO)
    with pytest.raises(OSError, match=r"ZooKeeper at 127\.0\.0\.1:1 does not answer"):
        serving("127.0.0.1:1", tmp_path, config={"zk.connectiontimeout.ms": 50})
    assert not caplog.records
    with kc.broker.serve(tmp_path, listen="kafka07://127.0.0.1:0"):  # and nothing is left of it
        pass
