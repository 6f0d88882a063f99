"""Producers of Kafka 0.7 whose ZooKeeper ends or is silent while they ask it."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

import kafkacodec as kc
from kafkacodec.dialects import kafka07
from kafkacodec.errors import DeadlineExceeded
from tests.integration.zookeeper import ZooKeeperServer
from tests.patience import SOON, eventually

pytestmark = pytest.mark.java


@pytest.fixture
def server(tmp_path):
    found = ZooKeeperServer(tmp_path)
    found.start()
    config = {"zk.connect": found.server, "zk.sessiontimeout.ms": 60_000, "zk.connectiontimeout.ms": 30_000}
    with ExitStack() as stack:
        stack.callback(found.kill)
        stack.enter_context(kc.broker.serve(listen="kafka07://127.0.0.1:0", node_id=2, config=config))
        yield found


def freeze(server):
    """Stop all of its threads, each of which stops when the system next looks at it."""
    server.signal(signal.SIGSTOP)
    tasks = Path("/proc", str(server._process.pid), "task")
    eventually(lambda: all("\nState:\tT" in (task / "status").read_text() for task in tasks.iterdir()))


def waiting_bytes(server):
    """What ZooKeeper has received and not read."""
    port = f"{int(server.server.rpartition(':')[2]):04X}"
    tables = [Path("/proc/net", name).read_text() for name in ("tcp", "tcp6")]  # Java's sockets are of both
    rows = [line.split() for table in tables for line in table.splitlines()[1:]]
    return sum(int(row[4].partition(":")[2], 16) for row in rows if row[1].endswith(f":{port}"))


def test_a_producer_waits_for_zookeeper_if_that_ends_while_it_is_asked(server):
    options = {"connect_timeout_ms": 30_000, "session_timeout_ms": 60_000}
    with kafka07.Producer(server.server, **options) as producer, ThreadPoolExecutor(1) as thread:
        assert producer.send("t", b"first").result(SOON).broker == 2
        freeze(server)
        before = waiting_bytes(server)
        sent = thread.submit(producer.send, "other", b"second")
        eventually(lambda: waiting_bytes(server) > before)
        server.kill()
        server.start()
        assert sent.result(SOON).result(SOON).broker == 2


def test_a_producer_whose_zookeeper_is_silent_is_told(server):
    with kafka07.Producer(server.server, connect_timeout_ms=5000) as producer:
        producer.send("t", b"first").result(SOON)
        freeze(server)
        try:
            with pytest.raises(DeadlineExceeded, match=r"ZooKeeper at .* has not answered within 5 s"):
                producer.send("other", b"second")
        finally:
            server.signal(signal.SIGCONT)
