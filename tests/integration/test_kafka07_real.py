"""`make kafka07-proof`: a real Kafka 0.7.2, its clients and its mirror maker, with those of this package."""

from __future__ import annotations

import os
import random
import shutil
import socket
import struct
import subprocess
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import kafkacodec as kc
from kafkacodec.dialects import kafka07
from tests.integration.kafka07_real import RealBroker, RealTool, java_command
from tests.integration.zookeeper import ZooKeeperServer
from tests.kafka07_session import (
    Client,
    fetch,
    fetch_part,
    frame,
    message,
    multi_fetch,
    multi_produce,
    offsets,
    produce,
    produce_part,
    string,
    wrapper,
)
from tests.patience import SOON, eventually

BUILT = Path(os.environ.get("KAFKACODEC_KAFKA07", "none"))
pytestmark = [
    pytest.mark.java,
    pytest.mark.skipif(not (BUILT / "classes").is_dir(), reason="make kafka07-proof builds a real 0.7.2"),
]
M, BAD, LARGE = message(b"abc"), message(b"abc", crc=1), message(bytes(1_000_001))
QUICK = {"fetch_backoff_ms": 50, "rebalance_backoff_ms": 200, "rebalance_retries": 100, "session_timeout_ms": 10_000}
SETTINGS = {"num.partitions": 2, "topic.partition.count.map": "one:1,three:3", "log.file.size": 100}
SETS = [
    M + BAD, wrapper(M, BAD), wrapper(wrapper(wrapper(BAD))), message(b"abc", magic=2), message(b"abc", attributes=3),
    message(b"x", attributes=1), wrapper(message(b"abc", attributes=3)), M[:9], M[:4], M + bytes(4), bytes(4),
    struct.pack(">i", 4) + bytes(4), struct.pack(">ib", 5, 1) + bytes(4), M + struct.pack(">i", -1) + bytes(9),
    wrapper(M[:9]), wrapper(bytes(8)), BAD + LARGE, LARGE + BAD, M + LARGE, wrapper(LARGE), M + bytes(3), M + M[:9],
    bytes(3), b"", message(b"abc", magic=0) + M, message(b"abc", attributes=0xFC), wrapper(), wrapper(M + M[:9]),
    wrapper(wrapper(wrapper(M))), message(b""), message(bytes(1_000_000)), wrapper(M) + wrapper(), wrapper(M, bytes(2)),
]  # fmt: skip
REQUESTS = [
    struct.pack(">i", 0), struct.pack(">i", -1), struct.pack(">i", (100 << 20) + 1), frame(5, b""), frame(1, b""),
    frame(1, string("t") + struct.pack(">iq", 0, 0)), frame(1, struct.pack(">hiqi", -1, 0, 0, 9)),
    multi_fetch(fetch_part("t", 0, 0), count=2), multi_fetch(count=-1), multi_fetch(), multi_produce(),
    multi_produce(produce_part("never", 0, M), count=2), produce("never", 0, M, size=len(M) + 1),
    produce("never", 2, M), produce("never", 0, M, size=-1), produce("one", 1, M),
    offsets("t", 2, -1, 1), offsets("a/b", 0, -1, 1),
    produce("", 0, M), produce("..", 0, M), produce("a\x00b", 0, M), produce(b"a\xff", 0, M), fetch(b"a\xff", 0, 0),
    fetch("", 0, 0), fetch("a/b", 7, 0), fetch("t", 7, 0), fetch("t", -1, 0), fetch("x" * 256, 0, 0),
    *(produce(name, 0, M) + fetch(name, 0, 0) for name in ("a-b-7", "a b", "a:b", "a,b", "é")),
]  # fmt: skip


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory):
    server = ZooKeeperServer(tmp_path_factory.mktemp("zookeeper"))
    server.start()
    yield server.server
    server.stop()


@pytest.fixture
def path(zookeeper, request):
    """ZooKeeper with a path of the test's own."""
    with zookeeper_client(zookeeper) as client:
        client.ensure_path(f"/{request.node.name}")
    return f"{zookeeper}/{request.node.name}"


def real(tmp_path, path, number, name="real", **settings):
    broker = RealBroker(BUILT, tmp_path / name, path, number, **settings)
    broker.start()
    with zookeeper_client(path) as client:  # its port is open before it is registered
        eventually(lambda: client.exists(f"/brokers/ids/{number}"))
    return broker


@contextmanager
def zookeeper_client(path):
    from kazoo.client import KazooClient

    client = KazooClient(path)
    client.start(60)
    try:
        yield client
    finally:
        client.stop()
        client.close()


def ours(path, number, data=None, **config):
    config = {"zk.connect": path, "num.partitions": 2, "zk.sessiontimeout.ms": 10_000, **config}
    return kc.broker.serve(data, listen="kafka07://127.0.0.1:0", node_id=number, config=config)


def answers(address, data):
    with Client(address) as client:
        with suppress(OSError):
            client.send(data)
            client.socket.shutdown(socket.SHUT_WR)
        found = []
        while (one := client.frame()) is not None:
            found.append(one)
        return found


def segments(directory):
    return {str(p.relative_to(directory)): p.read_bytes() for p in Path(directory).rglob("*.kafka")}


def streams():
    names = iter(f"d{number}" for number in range(1 << 20))
    for data in SETS:
        name, other = next(names), next(names)
        yield produce(name, 0, data) + fetch(name, 0, 0, 2_000_000) + offsets(name, 0, -1, 10)
        parts = produce_part(other, 0, M), produce_part(other, 1, data), produce_part(other, 0, M)
        yield multi_produce(*parts) + fetch(other, 0, 0) + fetch(other, 1, 0, 2_000_000)
    name = next(names)
    yield b"".join(produce(name, 0, message(bytes(91))) for _ in range(3))
    for time in (-1, -2, -3, 0, 5, 1 << 60):
        for count in (0, 1, 2, 10, -1):
            yield from (offsets(topic, p, time, count) for topic, p in ((name, 0), (name, 1), ("nolog", 0)))
    for at in (-1, 0, 1, 100, 101, 102, 202, 302, 303, 304):
        yield from (fetch(name, 0, at, size) for size in (0, 1, 3, 50, 1000))
    for data in REQUESTS:
        yield produce(name, 1, M) + fetch(name, 1, 0, 3) + data + fetch(name, 1, 0, 3)
    rnd = random.Random(7)
    for _ in range(1000):
        changed = bytearray(rnd.choice([M + M, wrapper(M, M), M + wrapper(M), message(b"q", magic=0) + M]))
        for _ in range(rnd.randrange(1, 3)):
            changed[rnd.randrange(len(changed))] = rnd.choice([0, 1, 2, 3, 255, rnd.randrange(256)])
        name = next(names)
        yield produce(name, 0, bytes(changed)) + fetch(name, 0, 0)


def test_both_brokers_answer_and_store_the_same(path, tmp_path):
    one = real(tmp_path, path, 0, **{name.replace(".", "_"): value for name, value in SETTINGS.items()})
    try:
        with kc.broker.serve(listen="kafka07://127.0.0.1:0", config=SETTINGS) as other:
            for data in streams():
                assert answers(one.server, data) == answers(other.listeners[0], data), data[:200]
            assert segments(one.logs) == segments(other.data)
    finally:
        one.stop()


def test_its_producer_and_consumer_with_our_broker(path, tmp_path):
    with ours(path, 3) as broker:
        tool = java_command(BUILT, "kafka.producer.ConsoleProducer", "--zookeeper", path, "--topic", "t", "--sync")
        subprocess.run(tool, input=b"".join(b"v%d\n" % i for i in range(50)), check=True, timeout=120)
        found = set()
        with kafka07.SimpleConsumer(broker.listeners[0].partition("://")[2]) as consumer:
            for partition in (0, 1):
                found |= {bytes(row.value) for row in consumer.fetch("t", partition, 0)}
        assert found == {b"v%d" % i for i in range(50)}
        tool = java_command(
            BUILT, "kafka.consumer.ConsoleConsumer", "--zookeeper", path, "--topic", "t", "--from-beginning",
            "--max-messages", 50,
        )  # fmt: skip
        output = subprocess.run(tool, capture_output=True, check=True, timeout=120).stdout.split()
        assert {line for line in output if line.startswith(b"v")} == found


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy"])
def test_our_clients_with_its_broker(path, tmp_path, codec):
    broker = real(tmp_path, path, 0, num_partitions=3)
    try:
        with kafka07.Producer(path, compression_type=codec, session_timeout_ms=10_000) as producer:
            for i in range(200):
                producer.send("t", b"%d" % i, key=f"k{i % 9}").result(SOON)
        found = []
        with kafka07.Consumer(path, "t", group="g", **QUICK) as consumer:
            while len(found) < 200:
                found += [int(one.value) for one in consumer.poll(30)]
        assert sorted(found) == list(range(200))
    finally:
        broker.stop()


def test_a_group_of_both_kinds_of_consumers(path, tmp_path):
    shell = RealTool(
        BUILT, tmp_path / "shell", "kafka.tools.ConsumerShell", ["--topic", "t", "--partitions", 1],
        props={"zk.connect": path, "groupid": "g", "consumerid": "b", "zk.sessiontimeout.ms": 5000,
               "rebalance.backoff.ms": 300, "rebalance.retries.max": 50},
    )  # fmt: skip
    with ours(path, 1), kafka07.Producer(path, session_timeout_ms=10_000, linger_ms=0) as producer:
        for i in range(10):
            producer.send("t", b"first%d" % i).result(SOON)
        with kafka07.Consumer(path, "t", group="g", consumer_id="a", **QUICK) as consumer:
            found = []
            eventually(lambda: (found.extend(one.value for one in consumer.poll(0.1)), len(found) >= 10)[1])
            assert len(consumer.assignment) == 2
            shell.launch()
            eventually(lambda: (consumer.poll(0.1), len(consumer.assignment) == 1)[1])
            sent = {b"second%d" % i for i in range(40)}
            for value in sorted(sent):
                producer.send("t", value).result(SOON)

            def arrived():
                found.extend(one.value for one in consumer.poll(0.1))
                printed = shell.output.read_bytes()
                return sent <= {*found, *(value for value in sent if value in printed)}

            eventually(arrived)
            assert any(value in shell.output.read_bytes() for value in sent)
            shell.kill()
            eventually(lambda: (consumer.poll(0.1), len(consumer.assignment) == 2)[1])


def test_its_mirror_maker_between_both_brokers(zookeeper, path, tmp_path):
    with zookeeper_client(zookeeper) as client:
        client.ensure_path("/target")
    target = f"{zookeeper}/target"
    mirror = RealTool(
        BUILT, tmp_path / "mirror", "kafka.tools.MirrorMaker", ["--whitelist", "t.*"],
        consumer_config={"zk.connect": path, "groupid": "mirror", "autooffset.reset": "smallest"},
        producer_config={"zk.connect": target, "compression.codec": 1},
    )  # fmt: skip
    with ours(path, 0), ours(target, 5), kafka07.Producer(path, session_timeout_ms=10_000) as producer:
        for i in range(30):
            producer.send("topic", b"%d" % i).result(SOON)
        mirror.launch()
        try:
            found = []
            with kafka07.Consumer(target, "topic", group="g", **QUICK) as consumer:
                eventually(lambda: (found.extend(int(one.value) for one in consumer.poll(0.2)), len(found) >= 30)[1])
            assert sorted(found) == list(range(30))
        finally:
            mirror.kill()


def test_log_directories_both_ways(path, tmp_path):
    broker = real(tmp_path, path, 0, log_file_size=200)
    with Client(broker.server) as client:
        for i in range(40):
            client.send(produce("t", 0, message(b"real%d" % i)))
        client.read("t")
    broker.kill()
    shutil.copytree(broker.logs, tmp_path / "copy")
    with (tmp_path / "copy" / "t-0" / max(os.listdir(tmp_path / "copy" / "t-0"))).open("ab") as file:
        file.write(M[:7])  # torn
    with (
        kc.broker.serve(tmp_path / "copy", listen="kafka07://127.0.0.1:0", config={"log.file.size": 200}) as other,
        Client(other.listeners[0]) as client,
    ):
        for i in range(40):
            client.send(produce("t", 0, message(b"ours%d" % i)))
        ends = client.offsets("t", 0, -1, 100)
    shutil.rmtree(broker.logs)
    shutil.copytree(tmp_path / "copy", broker.logs)
    broker = RealBroker(BUILT, tmp_path / "real2", path, 7, log_dir=broker.logs, log_file_size=200)
    broker.start()
    try:
        with Client(broker.server) as client:
            assert client.offsets("t", 0, -1, 100) == ends
        with kafka07.SimpleConsumer(broker.server) as consumer:
            found, at = [], 0
            while at < ends[0]:
                columns = consumer.fetch("t", 0, at)
                found += [bytes(row.value) for row in columns]
                at = int(columns["next_offset"][-1])
        assert found == [b"real%d" % i for i in range(40)] + [b"ours%d" % i for i in range(40)]
    finally:
        broker.stop()
