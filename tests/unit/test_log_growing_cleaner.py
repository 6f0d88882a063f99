"""Compaction of a growing log: what stays, what of it is changed, and what a crash leaves."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import kafkacodec as kc
from kafkacodec.log import Partition
from kafkacodec.log.growing.cleaner import clean
from kafkacodec.log.growing.disk import Disk
from kafkacodec.log.growing.log import PartitionLog
from kafkacodec.log.growing.settings import LogConfig

START = 1_700_000_000_000
HOUR = 3_600_000
CONFIG = LogConfig(segment_bytes=3000, index_interval_bytes=300, compact=True, delete=False, delete_retention_ms=HOUR)
Rows = list[tuple[int, int, bytes | None, bytes | None]]


def append(log: PartitionLog, rows: list[tuple[bytes | None, bytes | None]], time: int = START, **options: Any) -> None:
    records = [(n, time + n, 0, key, value, [("h", b"x")]) for n, (key, value) in enumerate(rows)]
    log.append(bytearray(kc.encode(records, **options)), leader_epoch=0)


def end(log: PartitionLog, kind: Any, producer: int, epoch: int = 0) -> None:
    marker = kc.control_batch(kind, offset=0, producer_id=producer, producer_epoch=epoch, timestamp=START)
    log.append(bytearray(marker), leader_epoch=0)


def rows(log: PartitionLog, **options: Any) -> Rows:
    """What a consumer reads."""
    found: Rows = []
    for chunk in Partition(log.path).read(**options):
        columns = (chunk[name].tolist() for name in ("offset", "key", "value"))
        times = chunk["timestamp"].astype(int).tolist()
        found += [(o, t, k, v) for (o, k, v), t in zip(zip(*columns, strict=True), times, strict=True)]
    return found


def headers(log: PartitionLog) -> list[dict[str, Any]]:
    names = ("base_offset", "last_offset", "count", "base_timestamp", "max_timestamp", "delete_horizon_ms", "codec",
             "is_control", "producer_id", "base_sequence", "crc_ok")  # fmt: skip
    found = []
    for segment in Partition(log.path).segments:
        table = kc.scan(Path(segment.path).read_bytes()).to_arrow()
        found += [{name: row[name] for name in names} for row in table.to_pylist()]
    return found


def cleaned_once(log: PartitionLog, now: int, start: int = 0) -> int:
    """Clean, roll before it, and check the files; where the next pass begins."""
    log.roll()
    result = clean(log, start, now)
    assert result is not None
    assert Partition(log.path).verify().ok, list(Partition(log.path).verify().findings)
    assert all(header["crc_ok"] for header in headers(log))
    return result.end_offset


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_the_newest_record_of_each_key_stays(tmp_path: Path, codec: str) -> None:
    log = PartitionLog(tmp_path / "t-0", CONFIG)
    rnd = random.Random(codec)
    for n in range(60):
        pairs = [(b"key%d" % rnd.randrange(150), b"%d" % rnd.randrange(10**9)) for _ in range(9)]
        append(log, [(None, b"no key"), *pairs] if n % 7 == 0 else [*pairs], START + 1000 * n, codec=codec)
    before = rows(log)
    newest = {key: offset for offset, _, key, _ in before if key is not None}
    expected = [row for row in before if row[2] is not None and newest[row[2]] == row[0]]
    size = log.size_in_bytes
    at = cleaned_once(log, START + HOUR)
    assert at == log.end_offset
    assert rows(log) == expected
    assert log.size_in_bytes < size / 2
    # The batches have the codec that they had; opening again finds the same.
    assert {header["codec"] for header in headers(log) if header["count"]} == {codec}
    again = PartitionLog(log.path, CONFIG)
    assert (again.end_offset, again.loss, rows(again)) == (log.end_offset, None, expected)
    # What comes later replaces what was kept; the rest of the batches is not changed.
    for key in {row[2] for row in expected[:20]}:
        append(again, [(key, b"new")])
    cleaned_once(again, START + HOUR, at)
    assert [row for row in rows(again) if row[0] < at] == [
        r for r in expected if r[2] not in {e[2] for e in expected[:20]}
    ]
    assert clean(again, again.end_offset, START) is None


def test_the_active_segment_and_young_ones_are_not_cleaned(tmp_path: Path) -> None:
    log = PartitionLog(tmp_path / "t-0", CONFIG)
    append(log, [(b"a", b"1")])
    append(log, [(b"a", b"2")])
    assert clean(log, 0, START) is None
    log.roll()
    append(log, [(b"a", b"3")])
    log.config = LogConfig(compact=True, min_compaction_lag_ms=HOUR)
    assert clean(log, 0, START + HOUR - 1) is None
    result = clean(log, 0, START + HOUR)
    assert result is not None
    assert result.end_offset == 2
    assert [row[0] for row in rows(log)] == [1, 2]


def test_tombstones_stay_until_their_horizon(tmp_path: Path) -> None:
    log = PartitionLog(tmp_path / "t-0", CONFIG)
    append(log, [(b"a", b"1"), (b"b", b"2"), (b"c", b"3")])
    append(log, [(b"a", None), (b"d", b"4")])
    at = cleaned_once(log, START + 5)
    kept = [(1, START + 1, b"b", b"2"), (2, START + 2, b"c", b"3"), (3, START, b"a", None), (4, START + 1, b"d", b"4")]
    assert rows(log) == kept
    first, second = headers(log)
    assert (first["base_offset"], first["last_offset"], first["delete_horizon_ms"]) == (0, 2, None)
    assert (second["base_offset"], second["last_offset"], second["count"]) == (3, 4, 2)
    assert second["delete_horizon_ms"] == START + 5 + HOUR
    assert second["max_timestamp"].timestamp() * 1000 == START + 1
    append(log, [(b"x", b"1")])
    at = cleaned_once(log, START + 4 + HOUR, at)
    assert rows(log)[:4] == kept
    append(log, [(b"x", b"2")])
    cleaned_once(log, START + 5 + HOUR, at)
    assert [row[2] for row in rows(log)] == [b"b", b"c", b"d", b"x"]
    assert [h["delete_horizon_ms"] for h in headers(log) if h["base_offset"] == 3] == [START + 5 + HOUR]


def test_the_last_batch_of_a_producer_stays_empty(tmp_path: Path) -> None:
    log = PartitionLog(tmp_path / "t-0", CONFIG, clock=lambda: START)
    for n in range(3):
        append(log, [(b"a", b"1"), (b"a", b"2")], producer_id=7, producer_epoch=1, base_sequence=2 * n, codec="gzip")
    append(log, [(b"a", b"3")])
    cleaned_once(log, START)
    assert [row[0] for row in rows(log)] == [6]
    empty, _ = headers(log)
    assert (empty["base_offset"], empty["last_offset"], empty["count"], empty["base_sequence"]) == (4, 5, 0, 4)
    assert (empty["producer_id"], empty["base_timestamp"], empty["codec"]) == (7, None, "none")
    assert empty["max_timestamp"].timestamp() * 1000 == START + 1
    again = PartitionLog(log.path, CONFIG, clock=lambda: START)
    assert (again.producers[7].last_sequence, again.producers[7].last_offset) == (5, 5)


def test_aborted_records_go_and_their_marker_later(tmp_path: Path) -> None:
    log = PartitionLog(tmp_path / "t-0", CONFIG, clock=lambda: START)
    append(log, [(b"a", b"kept")])
    append(log, [(b"a", b"aborted")], producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    end(log, "abort", 7)
    append(log, [(b"b", b"committed")], producer_id=8, producer_epoch=0, base_sequence=0, is_transactional=True)
    end(log, "commit", 8)
    append(log, [(b"c", b"x")], producer_id=7, producer_epoch=0, base_sequence=1)
    committed = rows(log, isolation_level="read_committed")
    at = cleaned_once(log, START)
    assert rows(log) == rows(log, isolation_level="read_committed") == committed
    assert [(h["base_offset"], h["delete_horizon_ms"]) for h in headers(log) if h["is_control"]] == [
        (2, None),
        (4, None),
    ]
    assert [entry.last_offset for entry in log.segments[0].aborted.entries] == [2]
    append(log, [(b"y", b"1")])
    at = cleaned_once(log, START, at)
    horizons = [(h["base_offset"], h["delete_horizon_ms"]) for h in headers(log) if h["is_control"]]
    assert horizons == [(2, START + HOUR), (4, None)]
    assert log.segments[0].aborted.entries == []
    append(log, [(b"y", b"2")])
    cleaned_once(log, START + HOUR, at)
    assert [h["base_offset"] for h in headers(log) if h["is_control"]] == [4]
    assert rows(log)[:3] == committed


def test_what_an_open_transaction_may_change_is_not_cleaned(tmp_path: Path) -> None:
    log = PartitionLog(tmp_path / "t-0", CONFIG, clock=lambda: START)
    append(log, [(b"a", b"1")])
    append(log, [(b"a", b"2")])
    log.roll()
    append(log, [(b"a", b"3")], producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    log.roll()
    result = clean(log, 0, START)
    assert result is not None
    assert result.end_offset == 2
    assert [row[0] for row in rows(log)] == [1, 2]


class Crash(Exception):
    """The process ends."""


class CrashingDisk(Disk):
    """Ends the process at a change of the disk."""

    left = 0

    def _count(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise Crash

    def rename(self, path: str, to: str) -> None:
        self._count()
        super().rename(path, to)

    def remove(self, path: str) -> None:
        self._count()
        super().remove(path)

    def sync_names(self, directory: str) -> None:
        self._count()
        super().sync_names(directory)


def test_a_crash_while_segments_are_replaced(tmp_path: Path) -> None:
    crashes = 0
    for left in range(1, 200):
        disk = CrashingDisk()
        log = PartitionLog(tmp_path / f"t-{left}", CONFIG, disk=disk, clock=lambda: START)
        for n in range(15):
            append(log, [(b"key%d" % (n * i % 17), b"%d" % n * 50) for i in range(5)])
        append(log, [(b"key0", b"aborted")], producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
        end(log, "abort", 7)
        log.roll()
        log.flush()
        newest = {row[2]: row for row in rows(log, isolation_level="read_committed", gaps="accept")}
        disk.left = left
        try:
            clean(log, 0, START)
            break
        except Crash:
            crashes += 1
        disk.left = 0
        again = PartitionLog(log.path, CONFIG, recovery_point=log.end_offset, clock=lambda: START)
        assert (again.end_offset, again.loss) == (log.end_offset, None)
        # Nothing tells that the log is compacted where a whole segment has become empty.
        findings = [f for f in Partition(log.path).verify().findings if f.kind != "gap"]
        assert not findings, (left, findings)
        found = rows(again, isolation_level="read_committed", gaps="accept")
        assert {row[2]: row for row in found} == newest
        assert not [name.name for name in Path(log.path).iterdir() if name.suffix in (".swap", ".cleaned", ".deleted")]
    assert crashes > 10
