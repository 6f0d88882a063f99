"""Flushing in the embedded broker: what is answered after the disk has it, and what of it is forgotten by none."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
import uuid
from pathlib import Path

import pytest

import kafkacodec as kc
from kafkacodec import client
from kafkacodec.broker.host.flushing import Flusher
from kafkacodec.broker.options import BrokerConfig
from kafkacodec.broker.topics.configs import TopicConfig
from kafkacodec.broker.topics.partition import Partition
from kafkacodec.broker.topics.topics import Topics
from kafkacodec.broker.topics.waiting import Waiting
from kafkacodec.log.growing.directory import GrowingDirectory
from kafkacodec.log.growing.disk import Disk, OpenFile
from tests.patience import SOON, eventually

BATCH = kc.encode([(b"k", b"v")])


def safe(broker, topic: str, number: int = 0) -> tuple[int, int]:
    """What of a log is on the disk, and its end."""
    log = broker._serving._topics.partition(topic, number).log
    return log.recovery_point, log.end_offset


def test_with_flush_always_what_is_acknowledged_is_on_the_disk(tmp_path):
    with kc.broker.serve(tmp_path, topics={"t": 1}, flush="always") as broker:
        assert safe(broker, "__cluster_metadata") == (safe(broker, "__cluster_metadata")[1],) * 2
        with client.Producer(broker.bootstrap_servers) as producer:
            for n in range(3):
                assert producer.send("t", b"%d" % n).result().offset == n
                assert safe(broker, "t") == (n + 1, n + 1)
        assert broker.write("t", [(b"k", b"v")]) == 3
        assert safe(broker, "t") == (4, 4)
        broker.create_topic("made", 1)
        with client.Producer(broker.bootstrap_servers, transactional_id="x") as producer, producer.transaction():
            producer.send("made", b"in a transaction")
        topics = [topic for topic in broker._serving._node.names() if topic.startswith("__transaction")]
        assert topics
        numbers = range(broker._serving._node.partitions("__transaction_state"))
        states = [safe(broker, "__transaction_state", n) for n in numbers]
        assert sum(end for _, end in states) >= 3
        assert all(point == end for point, end in states)
        assert broker.records("made")["value"].tolist() == [b"in a transaction"]


def test_flush_messages_and_the_default():
    with kc.broker.serve() as broker:
        broker.create_topic("usual", 1)
        broker.create_topic("third", 1, {"flush.messages": 3})
        with client.Producer(broker.bootstrap_servers) as producer:
            for n in range(5):
                for topic in ("usual", "third"):
                    producer.send(topic, b"%d" % n).result()
                assert safe(broker, "usual") == (0, n + 1)
                assert safe(broker, "third") == (0 if n < 2 else 3, n + 1)


def test_wrong_words():
    with pytest.raises(ValueError, match="flush must be 'system' or 'always', not 'never'"):
        kc.broker.serve(flush="never")  # type: ignore[arg-type]


class Failing(Disk):
    """A disk that cannot keep what it was given, once `full` is set."""

    full = False

    def sync(self, file: OpenFile) -> None:
        if self.full and file.path.endswith(".log"):
            raise OSError(errno.EIO, os.strerror(errno.EIO), file.path)
        super().sync(file)


class Unused:
    def run(self, work, then) -> None:
        raise AssertionError


@pytest.fixture
def topics(tmp_path):
    disk = Failing()
    directory = GrowingDirectory(tmp_path / "data", disk=disk)
    made = Topics(directory, BrokerConfig().running({}), Waiting(), 300_000, Unused(), 1 << 20)
    yield made, disk
    directory.abandon()


def test_a_log_that_could_not_be_flushed_takes_nothing_more(topics):
    made, disk = topics
    topic_id = uuid.uuid4()
    made.open("t", topic_id, [(0, 0), (1, 0)], {"flush.messages": "1"})
    made.append(("t", 0), BATCH)
    assert made.must_flush(("t", 0))
    disk.full = True
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        made.flushing(("t", 0)).sync()
    disk.full = False
    with pytest.raises(OSError, match="start the broker anew"):
        made.append(("t", 0), BATCH)
    assert made.append(("t", 1), BATCH).base_offset == 0
    # What is flushed of a topic that was deleted says nothing about a new one of its name.
    flushing = made.flushing(("t", 1))
    flushing.sync()
    made.delete(topic_id)
    made.open("t", uuid.uuid4(), [(1, 0)], {})
    made.append(("t", 1), BATCH)
    made.flushed(("t", 1), flushing)
    partition = made.partition("t", 1)
    assert partition is not None
    assert partition.log.recovery_point == 0


async def test_flush_ms(topics):
    made, _ = topics
    made.open("timed", uuid.uuid4(), [(0, 0)], {"flush.ms": "1000"})
    made.open("usual", uuid.uuid4(), [(0, 0)], {})
    flusher, told = Flusher(asyncio.get_running_loop(), made), asyncio.Queue()
    made.flushes.flush = lambda logs, then: flusher.flush(logs, lambda error: (then(error), told.put_nowait(error)))
    for name in ("timed", "usual"):
        made.append((name, 0), BATCH)
    made.due(5_000)
    assert made.next_deadline() == 6_000
    assert await asyncio.wait_for(told.get(), 60) is None
    assert [made.partition(name, 0).log.recovery_point for name in ("timed", "usual")] == [1, 0]
    made.append(("timed", 0), BATCH)
    made.due(5_999)
    assert told.empty()
    made.due(6_000)
    assert await asyncio.wait_for(told.get(), 60) is None
    assert made.partition("timed", 0).log.recovery_point == 2
    made.due(7_000)  # there is nothing new
    made.configure("timed", "flush.ms", None)
    made.append(("timed", 0), BATCH)
    made.due(9_000)
    await flusher.close()
    assert told.empty()


def test_a_partition_knows_when_it_must_flush(tmp_path: Path) -> None:
    directory = GrowingDirectory(tmp_path)
    config = TopicConfig({"flush.messages": "2"}, {})
    partition = Partition("t", uuid.uuid4(), 0, directory.open("t", 0), 0, config)
    known = []
    for _ in range(2):
        partition.append(bytearray(BATCH))
        known.append(partition.must_flush)
    assert known == [False, True]
    flush = partition.flushing()
    partition.append(bytearray(BATCH))
    flush.sync()
    partition.flushed(flush)
    assert (partition.log.recovery_point, partition.must_flush) == (2, False)
    directory.abandon()


def test_what_is_rolled_during_a_flush_is_flushed_after_it(tmp_path):
    with kc.broker.serve(tmp_path, topics={"t": 1}, config={"segment.bytes": 1 << 20}) as broker:
        log, rows = broker._serving._topics.partition("t", 0).log, [(b"k", bytes(1000))] * 1100
        go_on = threading.Event()
        log._disk.sync = lambda file: go_on.wait(60)
        try:
            for _ in range(4):  # each rolls; the flush of the first waits
                broker.write("t", rows)
        finally:
            go_on.set()
        eventually(lambda: log.recovery_point >= log.segments[-1].base_offset)


def test_what_was_rolled_is_on_the_disk_soon_and_is_not_read_again_after_a_crash(tmp_path):
    with kc.broker.serve(tmp_path, topics={"t": 1}, config={"segment.bytes": 1 << 20}) as broker:
        rows = [(b"k", bytes(1000))] * 300
        for _ in range(8):
            broker.write("t", rows)
        log = broker._serving._topics.partition("t", 0).log
        begun = log.segments[-1].base_offset
        assert begun > 0
        eventually(lambda: log.recovery_point >= begun)
        assert not log.has_sealed_unflushed
        point = tmp_path / "recovery-point-offset-checkpoint"
        eventually(lambda: f"t 0 {log.recovery_point}\n" in point.read_text())


def test_a_full_disk_is_logged_once_until_it_has_room(tmp_path, monkeypatch, caplog):
    real, full = Disk.write, True

    def write(self, file, data, position):
        if full and file.path.endswith("orders-0/00000000000000000000.log"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), file.path)
        real(self, file, data, position)

    monkeypatch.setattr(Disk, "write", write)
    with (
        kc.broker.serve(tmp_path, topics=["orders"]) as broker,
        client.Producer(broker.bootstrap_servers, retry_backoff_ms=10, retry_backoff_max_ms=10) as producer,
    ):
        for number in range(2):
            before, full = producer.metrics()["producer.retries"], True
            sent = producer.send("orders", b"value")
            eventually(lambda before=before: producer.metrics()["producer.retries"] > before + 1)
            full = False
            sent.result(SOON)
            assert caplog.text.count("could not be appended to: [Errno 28] No space left on device: ") == number + 1
