"""A log that grows: appended to, read, rolled, cut, opened again. Judged by the readers of finished logs."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import kafkacodec as kc
from kafkacodec.errors import EncodeError, Truncated, UnsupportedMagic
from kafkacodec.log import Partition
from kafkacodec.log.growing.disk import Disk, OpenFile
from kafkacodec.log.growing.log import PartitionLog
from kafkacodec.log.growing.settings import LogConfig

START = 1_700_000_000_000


def batch(count: int = 10, time: int = START, size: int = 50, **options: Any) -> bytearray:
    rows = [(n, time + n, 0, b"key", n.to_bytes(4, "big") * (size // 4), []) for n in range(count)]
    return bytearray(kc.encode(rows, batch_bytes=1 << 30, **options))


def check(log: PartitionLog) -> None:
    """The readers of finished logs find what the log says."""
    found = Partition(log.path)
    report = found.verify()
    assert report.ok, list(report.findings)
    assert found.end_offset() == log.end_offset
    assert found.size_in_bytes == log.size_in_bytes
    assert [s.base_offset for s in found.segments] == [s.base_offset for s in log._segments]


def offsets(log: PartitionLog, start: int | None = None) -> list[int]:
    """What reading finds, range after range."""
    at, found = log.start_offset if start is None else start, []
    while at < log.end_offset:
        piece = log.read(at, 1000)
        assert bytes(piece.view()) == piece.read()
        chunk = [n for n in kc.decode(piece.read())["offset"].tolist() if n >= at]
        found += chunk
        at = chunk[-1] + 1
    return found


def names(log: PartitionLog) -> list[str]:
    return sorted(os.listdir(log.path))


def test_offsets_and_the_epoch_are_written_into_the_batches(tmp_path: Path) -> None:
    log = PartitionLog(tmp_path / "orders-0")
    first = log.append(batch(10), leader_epoch=3)
    second = log.append(batch(5) + batch(6, START + 500), leader_epoch=4)
    assert (first.base_offset, first.last_offset, first.max_timestamp, first.position) == (0, 9, START + 9, 0)
    assert (second.base_offset, second.last_offset, second.max_timestamp) == (10, 20, START + 505)
    assert second.position == first.size
    headers = kc.scan(log.read(0, 1 << 20).read())
    assert headers["base_offset"].tolist() == [0, 10, 15]
    assert headers["partition_leader_epoch"].tolist() == [3, 4, 4]
    assert headers["crc_ok"].all()
    assert log.epoch_end(3) == (3, 10)
    assert log.epoch_end(4) == (4, 21)
    assert log.epoch_end(5) == (-1, -1)
    assert [log.epoch_at(offset) for offset in (0, 9, 10)] == [3, 3, 4]
    check(log)


def test_what_is_no_batch_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    log = PartitionLog(tmp_path / "orders-0")
    log.append(batch(), leader_epoch=0)
    before = (tmp_path / "orders-0" / "00000000000000000000.log").read_bytes()
    with pytest.raises(Truncated):
        log.append(batch()[:-1], leader_epoch=0)
    with pytest.raises(UnsupportedMagic):
        log.append(bytearray(kc.encode([(b"k", b"v")], magic=1)), leader_epoch=0)
    with pytest.raises(EncodeError, match="no batch"):
        log.append(bytearray(), leader_epoch=0)
    with pytest.raises(EncodeError, match="below the end 10"):
        log.append(batch(), leader_epoch=0, base_offset=9)
    assert (tmp_path / "orders-0" / "00000000000000000000.log").read_bytes() == before
    assert log.end_offset == 10
    check(log)


def test_reading_by_offset_across_segments(tmp_path: Path) -> None:
    log = PartitionLog(tmp_path / "orders-0", LogConfig(segment_bytes=3000, index_interval_bytes=600))
    for n in range(50):
        log.append(batch(7, START + n), leader_epoch=0)
    assert len(log._segments) > 5
    assert offsets(log) == list(range(350))
    assert offsets(log, 123) == list(range(123, 350))
    check(log)
    whole = log.read(8, 1)
    assert kc.decode(whole.read())["offset"].tolist() == list(range(7, 14))
    assert log.read(8, 100, at_least_one=False).count == 100
    assert log.read(8, 0, at_least_one=False).count == 0
    assert kc.decode(log.read(8, 1 << 20, upto=21).read())["offset"].tolist() == list(range(7, 21))
    assert log.read(21, 1 << 20, upto=21).count == 0
    assert log.read(350, 1000).count == 0
    for wrong in (-1, 351):
        with pytest.raises(IndexError, match="is not between 0 and 350"):
            log.read(wrong, 1000)


def test_the_files_of_a_log_that_was_closed(tmp_path: Path) -> None:
    log = PartitionLog(tmp_path / "orders-0", LogConfig(segment_bytes=3000, index_interval_bytes=600))
    for n in range(10):
        log.append(batch(7, START + 10 * n), leader_epoch=0)
    log.close()
    bases = [segment.base_offset for segment in log._segments]
    expected = [f"{base:020d}{suffix}" for base in bases for suffix in (".index", ".log", ".timeindex")]
    expected += [f"{offset:020d}.snapshot" for offset in [*bases[1:], 70]]
    assert names(log) == sorted([*expected, "leader-epoch-checkpoint"])
    assert (tmp_path / "orders-0" / f"{70:020d}.snapshot").read_bytes()[6:] == bytes(4)
    assert len((tmp_path / "orders-0" / f"{70:020d}.snapshot").read_bytes()) == 10
    for segment in Partition(log.path).segments:
        times = kc.log.read_time_index(segment.path.replace(".log", ".timeindex"))
        assert times["timestamp"][-1] == segment.scan()["max_timestamp"].astype(int).max()
    check(log)


def test_the_same_indexes_as_the_writer_of_finished_segments(tmp_path: Path) -> None:
    log = PartitionLog(tmp_path / "orders-0", LogConfig(index_interval_bytes=600))
    with kc.log.LogWriter(tmp_path, "others", 0, index_interval_bytes=600, sync=False) as writer:
        for n in range(60):
            data = batch(7, START + (n * 37) % 50)
            log.append(data, leader_epoch=0)
            writer.write_batches(bytes(data))
            if n == 30:
                log.close()
                log = PartitionLog(tmp_path / "orders-0", LogConfig(index_interval_bytes=600), clean=True)
    log.close()
    for suffix in (".log", ".index", ".timeindex"):
        files = [tmp_path / name / f"{0:020d}{suffix}" for name in ("orders-0", "others-0")]
        assert files[0].read_bytes() == files[1].read_bytes(), suffix


def test_segments_end_by_the_time_of_their_records(tmp_path: Path) -> None:
    log = PartitionLog(tmp_path / "orders-0", LogConfig(segment_ms=100), clock=lambda: START)
    for time in (0, 80, 91, 92, 10, 200, 400):
        log.append(batch(10, START + time), leader_epoch=0)
    # The largest timestamp of the first batch counts: 9 + 100 is not exceeded by 91 + 9, but is by 92 + 9.
    assert [segment.base_offset for segment in log._segments] == [0, 50, 60]
    check(log)


def test_segments_without_timestamps_end_by_the_clock(tmp_path: Path) -> None:
    now = START
    log = PartitionLog(tmp_path / "orders-0", LogConfig(segment_ms=100), clock=lambda: now)
    for wait in (50, 50, 1, 100):
        now += wait
        log.append(bytearray(kc.encode([(b"k", b"v")])), leader_epoch=0)
    assert [segment.base_offset for segment in log._segments] == [0, 2]
    check(log)


def test_segments_end_when_an_index_is_full(tmp_path: Path) -> None:
    log = PartitionLog(tmp_path / "orders-0", LogConfig(segment_index_bytes=60, index_interval_bytes=0))
    for n in range(20):
        log.append(batch(1, START + n), leader_epoch=0)
    for segment in log._segments:
        assert os.path.getsize(segment.path.replace(".log", ".timeindex")) <= 60
    assert len(log._segments) > 3
    check(log)


def test_offsets_too_far_apart_for_one_index(tmp_path: Path) -> None:
    log = PartitionLog(tmp_path / "orders-0")
    for offset in (5, 2**31 + 5, 2**40):
        log.append(batch(1), leader_epoch=0, base_offset=offset)
    assert [segment.base_offset for segment in log._segments] == [0, 2**31 + 5, 2**40]
    assert [log.read(offset, 1).base_offset for offset in (5, 6, 2**40)] == [0, 2**31 + 5, 2**40]


def test_looking_up_times(tmp_path: Path) -> None:
    log = PartitionLog(tmp_path / "orders-0", LogConfig(segment_bytes=3000, index_interval_bytes=600))
    assert log.offset_for_timestamp(0) is None
    assert log.max_timestamp() is None
    for n in range(50):
        log.append(batch(10, START + 100 * (n if n != 20 else 90)), leader_epoch=n // 10)
    for time, offset in ((0, 0), (5, 5), (10, 10), (105, 15), (2000, 200), (4900, 200)):
        found = log.offset_for_timestamp(START + time)
        assert found is not None
        assert (found.offset, found.leader_epoch) == (offset, offset // 100)
    assert log.offset_for_timestamp(START + 9010) is None
    assert log.max_timestamp() == (START + 9009, 209, 2)
    expected = [Partition(log.path).offset_of_timestamp(START + time) for time in range(0, 6000, 57)]
    found_at = [log.offset_for_timestamp(START + time) for time in range(0, 6000, 57)]
    assert [found and found.offset for found in found_at] == expected


def test_what_is_cut_is_gone(tmp_path: Path) -> None:
    log = PartitionLog(tmp_path / "orders-0", LogConfig(segment_bytes=3000, index_interval_bytes=600))
    for n in range(50):
        log.append(batch(7, START + n), leader_epoch=n // 10)
    assert log.truncate(400) == 350
    for offset, end in ((300, 294), (294, 294), (293, 287), (150, 147), (0, 0)):
        assert log.truncate(offset) == end == log.end_offset
        assert all(entry.start_offset < end for entry in Partition(log.path).leader_epochs)
        check(log)
        assert offsets(log) == list(range(end))
    log.append(batch(7), leader_epoch=9)
    assert offsets(log) == list(range(7))
    check(log)


def test_opening_again(tmp_path: Path) -> None:
    config = LogConfig(segment_bytes=3000, index_interval_bytes=600)
    log = PartitionLog(tmp_path / "orders-0", config)
    for n in range(20):
        log.append(batch(7, START + n), leader_epoch=n)
        if n % 3 == 0:
            log.close()
        recovery_point = log.recovery_point
        log = PartitionLog(log.path, config, clean=n % 3 == 0, recovery_point=recovery_point)
        assert (log.end_offset, log.loss) == (7 * (n + 1), None)
        check(log)
    assert log.epoch_end(5) == (5, 42)
    assert offsets(log) == list(range(140))


def test_lone_segments_are_enough(tmp_path: Path) -> None:
    config = LogConfig(segment_bytes=3000, index_interval_bytes=600)
    log = PartitionLog(tmp_path / "orders-0", config)
    for n in range(20):
        log.append(batch(7, START + n), leader_epoch=n // 5)
    log.close()
    files = {path.name: path.read_bytes() for path in Path(log.path).iterdir()}
    for name in files:
        if not name.endswith(".log"):
            (Path(log.path) / name).unlink()
    again = PartitionLog(log.path, config, clean=True)
    again.close()
    # A broker does not make the snapshots of earlier segments either.
    made = {path.name: path.read_bytes() for path in Path(log.path).iterdir()}
    assert {name for name in files if name not in made} <= {name for name in files if name.endswith(".snapshot")}
    assert made == {name: files[name] for name in made}


def test_a_torn_end_is_cut_away(tmp_path: Path) -> None:
    log = PartitionLog(tmp_path / "orders-0")
    log.append(batch(3), leader_epoch=0)
    log.append(batch(2), leader_epoch=0)
    log.flush()
    path = tmp_path / "orders-0" / f"{0:020d}.log"
    whole = path.read_bytes()
    kept = log.read(0, 1 << 20, upto=3).count
    for size in range(kept, len(whole) + 1):
        for filled in (b"", bytes(50), b"\xff" * 50):
            torn = whole[:size] + filled
            path.write_bytes(torn)
            again = PartitionLog(log.path, recovery_point=3)
            end, left = (5, len(whole)) if torn.startswith(whole) else (3, kept)
            assert (again.end_offset, path.stat().st_size) == (end, left)
            assert (again.loss is None) == (len(torn) == left)
            assert again.loss is None or again.loss.bytes == len(torn) - left
    path.write_bytes(whole[:-1])
    again = PartitionLog(log.path)
    assert again.append(batch(2), leader_epoch=0).base_offset == 3
    assert path.read_bytes() == whole
    check(again)


def test_segments_after_damage_are_removed_and_reported(tmp_path: Path) -> None:
    config = LogConfig(segment_bytes=1500)
    log = PartitionLog(tmp_path / "orders-0", config)
    for n in range(20):
        log.append(batch(7, START + n), leader_epoch=0)
    log.flush()
    damaged = Path(log._segments[2].path)
    data = bytearray(damaged.read_bytes())
    data[-1] ^= 1
    damaged.write_bytes(data)
    base, total = log._segments[3].base_offset, log.size_in_bytes
    again = PartitionLog(log.path, config)
    assert again.loss is not None
    assert again.end_offset == again.loss.end_offset == base - 7
    assert again.loss.reason == "the checksum of a batch is wrong"
    assert again.loss.segments == len(log._segments) - 3
    assert again.loss.bytes == total - again.size_in_bytes
    check(again)


def test_what_is_on_the_disk_is_not_read_again(tmp_path: Path) -> None:
    log = PartitionLog(tmp_path / "orders-0", LogConfig(index_interval_bytes=600))
    for n in range(20):
        log.append(batch(7, START + n), leader_epoch=0)
    log.close()
    path = tmp_path / "orders-0" / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    data[100] ^= 1  # in the first batch
    path.write_bytes(data)
    again = PartitionLog(log.path, LogConfig(index_interval_bytes=600), recovery_point=130)
    assert (again.end_offset, again.loss) == (140, None)
    assert PartitionLog(log.path).end_offset == 0


class FailingDisk(Disk):
    """Fails, perhaps after a part of the bytes, when `left` calls were made."""

    def __init__(self, left: int, written: int) -> None:
        super().__init__()
        self.left, self.written = left, written

    def _count(self) -> bool:
        self.left -= 1
        return self.left == 0

    def write(self, file: OpenFile, data: bytes | bytearray | memoryview, position: int) -> None:
        if self._count():
            super().write(file, bytes(data)[: self.written], position)
            raise OSError(28, "No space left on device", file.path)
        super().write(file, data, position)

    def open(self, path: str) -> OpenFile:
        if self._count():
            raise OSError(24, "Too many open files", path)
        return super().open(path)

    def rename(self, path: str, to: str) -> None:
        if self._count():
            raise OSError(28, "No space left on device", path)
        super().rename(path, to)

    def truncate(self, file: OpenFile, size: int) -> None:
        if self._count():
            raise OSError(5, "Input/output error", file.path)
        super().truncate(file, size)


@pytest.mark.parametrize("written", [0, 61, 10_000])
def test_a_failed_append_leaves_the_log_as_it_was(tmp_path: Path, written: int) -> None:
    config = LogConfig(segment_bytes=2000, index_interval_bytes=300)
    for left in range(1, 10):
        disk = FailingDisk(0, written)
        log = PartitionLog(tmp_path / f"orders-{left}", config, disk=disk)
        failures = 0
        for n in range(12):
            disk.left = left
            end = log.end_offset
            try:
                log.append(
                    batch(7, START + n, is_transactional=True, producer_id=5, producer_epoch=0, base_sequence=end),
                    leader_epoch=n // 3,
                )
            except OSError:
                failures += 1
                assert log.end_offset == end
                disk.left = 0
                assert (
                    log.append(
                        batch(7, START + n, is_transactional=True, producer_id=5, producer_epoch=0, base_sequence=end),
                        leader_epoch=n // 3,
                    ).base_offset
                    == end
                )
        disk.left = 0
        assert offsets(log) == list(range(84))
        check(log)
        assert failures or left > 3
        again = PartitionLog(log.path, config)
        assert (again.end_offset, again.loss) == (84, None)
        check(again)


@pytest.mark.parametrize("left", range(1, 20))
def test_a_segment_that_could_not_be_started_does_not_hide_the_records_after_it(tmp_path: Path, left: int) -> None:
    """The next batch fits into the segment before, so that no retry starts the new one."""
    config = LogConfig(segment_bytes=2000)
    disk = FailingDisk(0, 0)
    log = PartitionLog(tmp_path / "orders-0", config, disk=disk)
    log.append(batch(7, START), leader_epoch=0)
    disk.left = left
    large = batch(100, START)
    assert log.size_in_bytes + len(large) > config.segment_bytes
    with contextlib.suppress(OSError):
        log.append(large, leader_epoch=0)
    disk.left = 0
    first = log.end_offset
    for n in range(3):
        assert log.append(batch(1, START), leader_epoch=0).base_offset == first + n
    assert offsets(log) == list(range(first + 3))
    check(log)
    for clean in (True, False):
        again = PartitionLog(log.path, config, clean=clean)
        assert (again.end_offset, again.loss) == (first + 3, None)
        assert offsets(again) == list(range(first + 3))
    segments = {name[:20] for name in os.listdir(log.path) if name.endswith(".log")}
    assert {name[:20] for name in os.listdir(log.path) if name.endswith("index")} == segments


def test_indexes_that_cannot_be_written_now_are_written_later(tmp_path: Path) -> None:
    """The batches are appended all the same: nothing is said to have failed that is in the log."""

    class NoIndexes(Disk):
        full = True

        def write(self, file: OpenFile, data: bytes | bytearray | memoryview, position: int) -> None:
            if self.full and file.path.endswith("index"):
                raise OSError(28, "No space left on device", file.path)
            super().write(file, data, position)

    disk = NoIndexes()
    log = PartitionLog(tmp_path / "orders-0", LogConfig(index_interval_bytes=0), disk=disk)
    for n in range(100):
        log.append(
            batch(1, START + n, producer_id=5, producer_epoch=0, base_sequence=n, is_transactional=True), leader_epoch=0
        )
        marker = kc.control_batch("abort", offset=0, producer_id=5, producer_epoch=0)
        assert log.append(bytearray(marker), leader_epoch=0).last_offset == 2 * n + 1
    for written_again in (log.flush, log.roll):
        with pytest.raises(OSError, match="No space left"):
            written_again()
    assert log.recovery_point == 0
    disk.full = False
    assert log.flush() == 200
    log.close()
    check(log)
    index = kc.log.read_transaction_index(tmp_path / "orders-0" / f"{0:020d}.txnindex")
    assert index["last_offset"].tolist() == list(range(1, 200, 2))
    assert len(kc.log.read_offset_index(tmp_path / "orders-0" / f"{0:020d}.index")) == 199


def test_a_disk_that_takes_a_part(tmp_path: Path) -> None:
    """A limit on the size of files: the system writes what fits, then refuses the rest."""
    program = """
import resource, signal, sys
from kafkacodec.log.growing.log import PartitionLog
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
log = PartitionLog(sys.argv[1])
data = bytes.fromhex(sys.argv[2])
log.append(bytearray(data), leader_epoch=0)
resource.setrlimit(resource.RLIMIT_FSIZE, (len(data) * 3 // 2, resource.RLIM_INFINITY))
try:
    log.append(bytearray(data), leader_epoch=0)
except OSError as error:
    print(error.errno, error.filename == log._segments[0].path, log.end_offset, log.size_in_bytes == len(data))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(log.append(bytearray(data), leader_epoch=0).base_offset)
"""
    command = [sys.executable, "-c", program, str(tmp_path / "orders-0"), batch(10).hex()]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert output == "27 True 10 True\n10\n"
    assert Partition(tmp_path / "orders-0").verify().ok
