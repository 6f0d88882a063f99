"""Files of a growing log byte for byte as a real broker's, and what goes when."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import kafkacodec as kc
from kafkacodec.log import Partition
from kafkacodec.log.growing.disk import Disk
from kafkacodec.log.growing.log import PartitionLog
from kafkacodec.log.growing.settings import LogConfig

START = 1_700_000_000_000
HOUR = 3_600_000


@pytest.mark.parametrize("name", ["orders-0", "orders-1", "orders-2", "payments-0", "__transaction_state-0"])
def test_the_files_of_a_real_broker(tmp_path: Path, name: str) -> None:
    """Its batches, appended one by one, make the same segments, indexes, snapshots and epochs."""
    real = Path(kc.sample().path) / name
    now = START
    log = PartitionLog(tmp_path / name, LogConfig(segment_ms=2**62), clock=lambda: now)
    for segment in Partition(real).segments:
        headers = segment.scan()
        if segment.base_offset:
            log.roll(segment.base_offset)
        data = Path(segment.path).read_bytes()
        columns = ("position", "size_in_bytes", "base_offset", "partition_leader_epoch")
        for at, size, base, epoch in zip(*(headers[column].tolist() for column in columns), strict=True):
            log.append(bytearray(data[at : at + size]), leader_epoch=epoch, base_offset=base)
    log.close()
    for path in sorted(real.iterdir()):
        if path.name != "partition.metadata":
            assert (Path(log.path) / path.name).read_bytes() == path.read_bytes(), path.name
    surplus = set(os.listdir(log.path)) - set(os.listdir(real))
    assert not surplus


def test_what_a_real_broker_left_is_continued(tmp_path: Path) -> None:
    shutil.copytree(Path(kc.sample().path) / "payments-0", tmp_path / "payments-0")
    for clean in (True, False):
        log = PartitionLog(tmp_path / "payments-0", clean=clean, clock=lambda: 1_763_834_000_000)
        assert (log.start_offset, log.end_offset, log.loss) == (0, 134, None)
        assert log.last_stable_offset == Partition(log.path).last_stable_offset()
        transactions = Partition(log.path).transactions()
        first = log.read(8, 1 << 20)
        told = log.aborted_in(first, 8)
        assert sorted(told) == [(p, f) for p, f, last in transactions.aborted.tolist() if last >= 8]
        assert told
    log.append(bytearray(kc.encode([(b"k", b"v")])), leader_epoch=log.leader_epoch)
    assert Partition(log.path).verify().ok


def filled(path: Path, config: LogConfig, now: list[int], *, step: int = HOUR // 2) -> PartitionLog:
    """Ten batches of ten records, each in a segment of its own."""
    log = PartitionLog(path, config, clock=lambda: now[0])
    for n in range(10):
        rows = [(i, START + n * step, 0, b"k", b"v", []) for i in range(10)]
        log.append(bytearray(kc.encode(rows)), leader_epoch=0)
        if n < 9:
            log.roll()
    return log


def test_old_segments_go(tmp_path: Path) -> None:
    now = [START + 9 * HOUR // 2]
    log = filled(tmp_path / "t-0", LogConfig(retention_ms=HOUR), now)
    view = log.read(0, 100).view()
    kept = bytes(view)
    log.retention()
    # The newest records of 60 are an hour and a half old, those of 70 an hour, which is not too old.
    assert (log.first_offset, log.start_offset, log.end_offset) == (70, 70, 100)
    names = os.listdir(log.path)
    assert sum(name.endswith(".deleted") for name in names) == 7 * 3 + 6
    assert f"{0:020d}.log.deleted" in names
    assert f"{60:020d}.snapshot.deleted" in names
    assert f"{70:020d}.snapshot" in names
    assert bytes(view) == kept
    assert Partition(log.path).verify().ok
    assert log.epoch_at(70) == 0
    log.purge(now[0] + 59_999)
    assert len(os.listdir(log.path)) == len(names)
    log.purge(now[0] + 60_000)
    assert not [name for name in os.listdir(log.path) if name.endswith(".deleted")]
    now[0] += 24 * HOUR
    log.retention()
    assert (log.first_offset, log.start_offset, log.end_offset) == (100, 100, 100)
    assert log.read(100, 100).count == 0
    log.append(bytearray(kc.encode([(b"k", b"v")])), leader_epoch=0)
    assert kc.decode(log.read(100, 1000).read())["offset"].tolist() == [100]
    assert Partition(log.path).verify().ok
    again = PartitionLog(log.path)
    assert (again.start_offset, again.end_offset) == (100, 101)
    assert not [name for name in os.listdir(log.path) if name.endswith(".deleted")]


def test_segments_beyond_the_size_go(tmp_path: Path) -> None:
    now = [START]
    log = filled(tmp_path / "t-0", LogConfig(), now)
    size = log.size_in_bytes // 10
    log.config = LogConfig(retention_bytes=5 * size + 1, retention_ms=-1)
    log.retention()
    assert (log.first_offset, log.size_in_bytes) == (40, 6 * size)
    log.config = LogConfig(retention_bytes=0, retention_ms=-1)
    log.retention()
    assert (log.first_offset, log.size_in_bytes, log.end_offset) == (100, 0, 100)


def test_a_log_that_is_only_compacted_keeps_old_segments(tmp_path: Path) -> None:
    now = [START + 1000 * HOUR]
    log = filled(tmp_path / "t-0", LogConfig(retention_ms=HOUR, retention_bytes=0, delete=False), now)
    assert log.retention() == []
    log.delete_before(25)
    log.retention()
    assert (log.first_offset, log.start_offset) == (20, 25)
    with pytest.raises(IndexError, match="offset 101 is after the end 100"):
        log.delete_before(101)


def test_producers_are_forgotten(tmp_path: Path) -> None:
    now = [START]
    log = PartitionLog(tmp_path / "t-0", LogConfig(retention_ms=-1), clock=lambda: now[0])
    for producer, transactional in ((7, False), (8, True)):
        data = kc.encode(
            [(0, START, 0, b"k", b"v", [])], producer_id=producer, producer_epoch=2, base_sequence=5,
            is_transactional=transactional,
        )  # fmt: skip
        log.append(bytearray(data), leader_epoch=0)
    assert (log.producers[7].producer_epoch, log.producers[7].last_sequence, log.producers[7].last_offset) == (2, 5, 0)
    assert dict(log.open_transactions) == {8: 1}
    assert log.last_stable_offset == 1
    now[0] += 24 * HOUR
    log.retention()
    assert set(log.producers) == {7, 8}
    now[0] += 1
    log.retention()
    assert set(log.producers) == {8}
    log.close()
    again = PartitionLog(log.path, clean=True, clock=lambda: now[0])
    assert set(again.producers) == {8}
    assert dict(again.open_transactions) == {8: 1}


def test_what_is_flushed_meanwhile(tmp_path: Path) -> None:
    log = PartitionLog(tmp_path / "t-0", LogConfig(segment_bytes=300))
    data = kc.encode([(b"k", b"v" * 50)])
    for _ in range(5):
        log.append(bytearray(data), leader_epoch=0)
    flushing = log.flushing()
    assert {os.path.basename(file.path) for file in flushing.files} >= {
        os.path.basename(segment.path) for segment in log._segments
    }
    for _ in range(5):
        log.append(bytearray(data), leader_epoch=1)
    flushing.sync()
    assert log.flushed(flushing) == log.recovery_point == 5
    names = [os.path.basename(file.path) for file in log.flushing().files]
    assert "leader-epoch-checkpoint" in names
    assert f"{0:020d}.log" not in names
    assert log.flush() == 10
    # Only the last segment is left to be flushed.
    assert [file.path for file in log.flushing().files] == [log._segments[-1].path]


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="open files are listed in /proc")
def test_few_files_stay_open(tmp_path: Path) -> None:
    """More logs than files are kept: each is appended to and read as if it were open, also what was read before."""

    def num_open() -> int:
        found = (os.path.realpath(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd"))
        return sum(path.startswith(f"{tmp_path}{os.sep}") for path in found)

    disk = Disk(most_kept=2)
    logs = [PartitionLog(tmp_path / f"few-{n}", disk=disk) for n in range(5)]
    before = logs[0].read(0, 1 << 20)
    for turn in range(3):
        for n, log in enumerate(logs):
            log.append(bytearray(kc.encode([(None, b"%d %d" % (n, turn))])), leader_epoch=0)
            assert num_open() <= 3  # with the one that `before` holds
            if not n and not turn:
                before = log.read(0, 1 << 20)
    for n, log in enumerate(logs):
        values = [bytes(value) for value in kc.decode(log.read(0, 1 << 20).view())["value"]]
        assert values == [b"%d %d" % (n, turn) for turn in range(3)]
    assert kc.decode(before.read())["value"] == kc.decode(before.view())["value"]
    for log in logs:
        log.close()
        assert Partition(log.path).verify().ok
