"""A full disk gets room again from what the broker removes: old segments and deleted topics."""

from __future__ import annotations

import errno
import logging
import os
import uuid
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import kafkacodec as kc
from kafkacodec import errors
from kafkacodec.broker.options import BrokerConfig
from kafkacodec.broker.topics.topics import Topics
from kafkacodec.broker.topics.waiting import Waiting
from kafkacodec.log import Partition
from kafkacodec.log.growing.directory import GrowingDirectory
from kafkacodec.log.growing.disk import Disk, OpenFile
from kafkacodec.log.growing.log import PartitionLog
from kafkacodec.log.growing.settings import LogConfig
from tests.broker_wire import wire_to
from tests.kafka07_session import Client, message, offsets, produce
from tests.unit.test_broker_line import Client as Lines

START = 1_700_000_000_000
HOUR = 3_600_000


class FullDisk(Disk):
    """Has no room for further bytes while `full` is set."""

    full = False

    def write(self, file: OpenFile, data: bytes | bytearray | memoryview, position: int) -> None:
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), file.path)
        super().write(file, data, position)


class Unused:
    def run(self, work, then) -> None:
        raise AssertionError


def fill(log: PartitionLog) -> None:
    """Five batches of ten records, each in a segment of its own."""
    for n in range(5):
        log.append(bytearray(kc.encode([(i, START, 0, b"k", b"v", []) for i in range(10)])), leader_epoch=0)
        if n < 4:
            log.roll()


def test_old_segments_go_although_no_new_one_can_be_made(tmp_path: Path) -> None:
    now, disk = START, FullDisk()
    log = PartitionLog(tmp_path / "t-0", LogConfig(retention_ms=HOUR), clock=lambda: now, disk=disk)
    fill(log)
    now += 2 * HOUR
    disk.full = True
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        log.retention()
    assert (log.first_offset, log.start_offset, log.end_offset) == (40, 40, 50)
    assert log.read(40, 1 << 20).count
    log.purge(now + 60_000)
    assert [path.name for path in Path(log.path).glob("*.log*")] == [f"{40:020d}.log"]
    disk.full = False
    log.retention()
    assert (log.first_offset, log.start_offset, log.end_offset) == (50, 50, 50)
    log.append(bytearray(kc.encode([(b"k", b"v")])), leader_epoch=0)
    log.close()
    assert Partition(log.path).verify().clean


def test_epochs_that_could_not_be_cut_are_cut_later(tmp_path: Path) -> None:
    now, disk = START, FullDisk()
    log = PartitionLog(tmp_path / "t-0", LogConfig(retention_bytes=1, retention_ms=-1), clock=lambda: now, disk=disk)
    fill(log)
    disk.full = True
    log.retention()
    assert (log.first_offset, log.start_offset) == (40, 40)
    disk.full = False
    log.retention()
    log.close()
    log.purge(everything=True)
    assert Partition(log.path).verify().clean


def test_each_partition_is_tried_and_deleted_topics_go(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    now, disk = START, FullDisk()
    directory = GrowingDirectory(tmp_path, clock=lambda: now, disk=disk)
    topics = Topics(directory, BrokerConfig().running({}), Waiting(), 300_000, Unused(), 1 << 20)
    gone = uuid.uuid4()
    topics.open("gone", gone, [(0, 0)], {})
    topics.open("old", uuid.uuid4(), [(0, 0), (1, 0)], {"retention.ms": str(HOUR)})
    logs = [directory.logs["old", number] for number in (0, 1)]
    for log in logs:
        fill(log)
    topics.due(now)
    now += 2 * HOUR
    disk.full = True
    with caplog.at_level(logging.ERROR):
        topics.delete(gone)
    assert not caplog.records  # it is set aside; the checkpoints are written later
    topics.due(now)
    now += 2 * HOUR
    topics.due(now)
    assert all("No space left on device" in record.getMessage() for record in caplog.records)
    assert [log.start_offset for log in logs] == [40, 40]
    assert not [path for path in tmp_path.rglob("*") if path.name.endswith((".deleted", "-delete"))]
    disk.full = False
    caplog.clear()
    now += 2 * HOUR
    topics.due(now)
    assert [log.start_offset for log in logs] == [50, 50]
    assert not caplog.records
    directory.close()


def without_room_for(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A disk that has room for everything but new files of this name, as one with a few bytes left in other files."""
    real = Disk.write

    def write(self: Disk, file: OpenFile, data: bytes | bytearray | memoryview, position: int) -> None:
        if name in file.path:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), file.path)
        real(self, file, data, position)

    monkeypatch.setattr(Disk, "write", write)


def test_a_topic_without_room_for_its_directories_is_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with kc.broker.serve(tmp_path, topics=["orders"]) as broker, wire_to(broker) as wire:
        new = {"name": "new", "num_partitions": 3, "replication_factor": 1}
        more = {"name": "orders", "count": 3, "assignments": None}
        without_room_for(monkeypatch, "-2/partition.metadata")
        for _ in range(2):  # it is not there the second time either
            made: Any = wire.ask("CreateTopics", 7, topics=[new], timeout_ms=9000)
            added: Any = wire.ask("CreatePartitions", 3, topics=[more], timeout_ms=9000)
            assert [row.error_code for row in (*made.topics, *added.results)] == [errors.KAFKA_STORAGE_ERROR] * 2
        with pytest.raises(errors.BrokerError, match="topic 'other' cannot be stored: the log"):
            broker.create_topic("other", 3)
        known: Any = wire.ask("Metadata", 9, topics=None)
        assert [(row.name, len(row.partitions)) for row in known.topics] == [("orders", 1)]
        places = sorted(path.name for path in tmp_path.iterdir() if path.is_dir())
        assert places == ["__cluster_metadata-0", "orders-0"]
        assert "__cluster_metadata-0 could not be appended to: [Errno 28] No space left on device: " in caplog.text
        assert "new-2" in caplog.text
        monkeypatch.undo()
        again: Any = wire.ask("CreateTopics", 7, topics=[new], timeout_ms=9000)
        assert again.topics[0].error_code == errors.NONE


def test_a_topic_that_is_made_again_has_no_records_of_one_that_could_not_be_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def rename(self: Disk, old: str, new: str) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO), old)

    with kc.broker.serve(tmp_path, topics=["orders"]) as broker, wire_to(broker) as wire:
        broker.write("orders", [(b"k", b"of the old one")])
        monkeypatch.setattr(Disk, "rename", rename)
        wire.ask("DeleteTopics", 4, topic_names=["orders"], timeout_ms=9000)
        assert "the files of topic orders cannot be deleted: [Errno 5]" in caplog.text
        monkeypatch.undo()
        broker.create_topic("orders")
        assert len(broker.records("orders")) == 0


def test_a_line_that_would_make_a_topic_without_room_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no fault of the request, which may be tried again."""
    with (
        kc.broker.serve(tmp_path, listen="line://127.0.0.1:0") as broker,
        closing(Lines(broker.listeners[0])) as client,
    ):
        without_room_for(monkeypatch, "partition.metadata")
        assert client.ask("V1|1|PRODUCE|new k:v").startswith("V1|1|ERR|STORAGE_ERROR|")
        monkeypatch.undo()
        assert client.ask("V1|2|PRODUCE|new k:v") == "V1|2|OK|partition=0 offset=0 hw=1"


@pytest.mark.parametrize("name", ["t-0", "new-0"])
def test_a_partition_of_kafka07_without_room_is_logged_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    topic, data = name.partition("-")[0], message(b"abc")
    with kc.broker.serve(tmp_path, listen="kafka07://127.0.0.1:0") as broker:
        with Client(broker.listeners[0]) as client:
            client.send(produce("t", 0, data))
            assert client.read("t") == data
        for room in (False, True, False):
            if not room:
                without_room_for(monkeypatch, name)
            for _ in range(2):
                with Client(broker.listeners[0]) as client:
                    client.send(produce(topic, 0, data))
                    assert client.code(offsets(topic, 0, -1, 1)) == (0 if room else None)
            monkeypatch.undo()
    said = f"{name} could not be appended to: [Errno 28] No space left on device"
    assert [said in record.getMessage() for record in caplog.records if record.levelno == logging.ERROR] == [True] * 2
