"""A full disk gets room again from what the broker removes: old segments and deleted topics."""

from __future__ import annotations

import errno
import logging
import os
import uuid
from pathlib import Path

import pytest

import kafkacodec as kc
from kafkacodec.broker.options import BrokerConfig
from kafkacodec.broker.topics.topics import Topics
from kafkacodec.broker.topics.waiting import Waiting
from kafkacodec.log import Partition
from kafkacodec.log.growing.directory import GrowingDirectory
from kafkacodec.log.growing.disk import Disk, OpenFile
from kafkacodec.log.growing.log import PartitionLog
from kafkacodec.log.growing.settings import LogConfig

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
