"""The embedded broker is killed at random moments under load: nothing acknowledged is lost, no transaction is half."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from kafkacodec import client
from kafkacodec.errors import KafkaCodecError
from tests.integration.kafka_jvm import free_port
from tests.patience import SOON, eventually
from tests.processes import ROOT

pytestmark = pytest.mark.slow
KILLS = 200 if os.environ.get("KAFKACODEC_LONG") else 8
FORKS = """
import os, signal, sys, time
import kafkacodec as kc
kc.broker.serve  # loaded once for all
config = {"offsets.topic.num.partitions": 3, "transaction.state.log.num.partitions": 3, "segment.ms": 200,
          "group.streams.assignment.interval.ms": 0}
topics, listen = {"plain": 2, "both": 2}, f"kafka://127.0.0.1:{sys.argv[2]}"
for line in sys.stdin:
    begin = time.perf_counter()
    child = os.fork()
    if child == 0:
        kafka = kc.broker.serve(sys.argv[1], listen=listen, topics=topics, config=config)
        print(round((time.perf_counter() - begin) * 1000), flush=True)
        signal.pause()
    sys.stdin.readline()
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    print("killed", flush=True)
"""


class Killed:
    """A broker that is killed and started again on the same directory and port."""

    def __init__(self, path: Path) -> None:
        port = free_port()
        command = [sys.executable, "-c", FORKS, str(path), str(port)]
        self._forks = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.server = f"127.0.0.1:{port}"
        self.times: list[int] = []

    def start(self) -> None:
        self.times.append(int(self._said()))

    def kill(self) -> None:
        assert self._said() == "killed\n"

    def end(self) -> None:
        self._forks.communicate()

    def _said(self) -> str:
        assert self._forks.stdin is not None
        assert self._forks.stdout is not None
        self._forks.stdin.write("go on\n")
        self._forks.stdin.flush()
        return self._forks.stdout.readline()


class Load:
    """Producers that go on through every crash, and what they were told."""

    def __init__(self, server: str) -> None:
        self._server, self._ends = server, threading.Event()
        self.acknowledged: dict[int, list[tuple[int, int]]] = {0: [], 1: []}
        self.committed: list[int] = []
        self.failed: list[BaseException] = []
        self._threads = [threading.Thread(target=self._guarded, args=(work,)) for work in (self._plain, self._both)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        self._ends.set()
        for thread in self._threads:
            thread.join()

    def _guarded(self, work: Any) -> None:
        try:
            work()
        except BaseException as error:
            self.failed.append(error)

    def _plain(self) -> None:
        """An idempotent producer, of which nothing may be lost, be there twice, or change its order."""
        with client.Producer(self._server, linger_ms=1, retry_backoff_max_ms=100, reconnect_backoff_max_ms=100) as one:
            sent, number = [], 0
            while not self._ends.is_set():
                sent.append((number, one.send("plain", b"%d" % number, partition=number % 2)))
                number += 1
                if number % 50 == 0:
                    one.flush()
            for number, delivery in sent:
                self.acknowledged[number % 2].append((number, delivery.result(SOON).offset))

    def _both(self) -> None:
        """Transactions over two partitions. One whose end is not known is counted by what is visible at the end."""
        number = 0
        while not self._ends.is_set():
            options: dict[str, Any] = {"retry_backoff_max_ms": 100, "reconnect_backoff_max_ms": 100}
            with (
                suppress(KafkaCodecError),
                client.Producer(self._server, transactional_id="both", **options) as producer,
            ):
                while not self._ends.is_set():
                    number += 1
                    with producer.transaction():
                        for partition in range(2):
                            producer.send("both", b"%d" % number, partition=partition)
                        if number % 5 == 0:
                            producer.flush()
                    self.committed.append(number)


def read(server: str, topic: str) -> dict[int, list[tuple[int, int]]]:
    """Number and offset of the committed records by partition."""
    options: dict[str, Any] = {"isolation_level": "read_committed", "auto_offset_reset": "earliest"}
    with client.Consumer(bootstrap_servers=server, **options) as consumer:
        places = [(topic, n) for n in range(2)]
        consumer.assign(places)
        ends = consumer.end_offsets(places)
        found: dict[int, list[tuple[int, int]]] = {0: [], 1: []}
        while any(consumer.position(*place) < ends[place] for place in places):
            for place, batch in consumer.getmany(0.2).items():
                found[place[1]] += [(int(record.value or b""), record.offset) for record in batch]
        return found


def test_nothing_acknowledged_is_lost_and_no_transaction_is_half(tmp_path: Path) -> None:
    rnd = random.Random(KILLS)
    broker = Killed(tmp_path)
    broker.start()
    load = Load(broker.server)
    load.start()
    try:
        for _ in range(KILLS):
            before = len(load.committed)
            eventually(lambda before=before: len(load.committed) > before or load.failed)  # type: ignore[misc]
            time.sleep(rnd.uniform(0, 0.3))
            broker.kill()
            broker.start()
    finally:
        load.end()
    try:
        with client.Producer(broker.server, transactional_id="both") as producer:
            producer.init_transactions()  # ends what was left open
        plain, both = read(broker.server, "plain"), read(broker.server, "both")
    finally:
        broker.kill()
        broker.end()
    assert not load.failed
    assert plain == load.acknowledged
    halves = [[number for number, _ in both[partition]] for partition in range(2)]
    assert halves[0] == halves[1]
    assert len(set(halves[0])) == len(halves[0])
    assert set(load.committed) <= set(halves[0])
    print(f"{sum(map(len, plain.values()))} records, {len(load.committed)} transactions; restarts: {broker.times} ms")
