"""What is done about a write that was pending when its job ended: decisions, the format, hostile content."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import kafkacodec as kc
from kafkacodec.errors import CorruptRecord
from kafkacodec.log import LogWriter, Partition
from kafkacodec.log.formats import layout
from kafkacodec.spark.errors import UnfinishedWrite
from kafkacodec.spark.writing import recovery
from kafkacodec.spark.writing.journal import (
    MAX_APPS,
    Identity,
    Journal,
    State,
    Transaction,
    WrittenPartition,
    WrittenSegment,
    encode_state,
    in_place,
    parse_state,
    why_not,
)
from kafkacodec.spark.writing.recovery import recover_write

SEGMENTS = tuple(
    WrittenSegment(base, tuple(Identity(base + n, 10 * (base + n)) for n in range(3))) for base in (100, 150)
)
WRITTEN = WrittenPartition("t-0", 100, 180, SEGMENTS)
ALL = {name: identity for segment in SEGMENTS for name, identity in segment.names().items()}
LOGS = [f"{base:020d}.log" for base in (100, 150)]
EARLIER = {f"{0:020d}.log": Identity(1, 5000), "partition.metadata": Identity(2, 40)}


def test_the_last_segment_is_removed_first_and_before_its_indexes() -> None:
    names = in_place(WRITTEN, {**EARLIER, **ALL})
    assert names == [
        f"{base:020d}{suffix}" for base in (150, 100) for suffix in (".log", ".timeindex", ".index")
    ]  # fmt: skip


def test_only_what_is_there_and_the_same_is_removed() -> None:
    assert in_place(WRITTEN, EARLIER) == []
    assert why_not(WRITTEN, EARLIER, -1) is None
    first = {name: ALL[name] for name in list(ALL)[:3]}
    assert in_place(WRITTEN, first) == [f"{100:020d}{suffix}" for suffix in (".log", ".timeindex", ".index")]
    index = f"{100:020d}.index"
    assert index not in in_place(WRITTEN, {**first, index: Identity(7, first[index].size)})
    assert index not in in_place(WRITTEN, {**first, index: Identity(first[index].inode, 7)})


@pytest.mark.parametrize(
    ("listing", "high_watermark", "reason"),
    [
        ({**EARLIER, **ALL}, -1, None),
        ({**EARLIER, **ALL}, 100, None),
        ({**EARLIER, **ALL}, 101, "a broker has made its records readable up to offset 101"),
        ({**ALL, f"{180:020d}.log": Identity(9, 1)}, -1, f"{180:020d}.log has been appended since"),
        ({**ALL, f"{180:020d}.log": Identity(9, 0)}, -1, None),  # a broker's empty one
        ({**ALL, LOGS[1]: Identity(152, 9999)}, -1, f"{LOGS[1]} has been changed or copied since"),
        ({**ALL, LOGS[1]: Identity(9999, ALL[LOGS[1]].size)}, -1, f"{LOGS[1]} has been changed or copied since"),
        ({LOGS[0]: ALL[LOGS[0]], LOGS[1]: Identity(9, 1)}, -1, f"{LOGS[1]} has been appended since"),
        # Another writer was first, and nothing of the job is there.
        ({LOGS[0]: Identity(9, 1), f"{120:020d}.log": Identity(10, 1)}, 130, None),
    ],
)
def test_when_it_cannot_be_removed(listing: dict[str, Identity], high_watermark: int, reason: str | None) -> None:
    assert why_not(WRITTEN, listing, high_watermark) == reason


def test_versions_increase_and_the_oldest_applications_are_dropped() -> None:
    state = State()
    assert not state.has(Transaction("a", 0))
    assert not state.has(None)
    state = state.completed(Transaction("a", 3))
    assert [state.has(Transaction("a", version)) for version in (2, 3, 4)] == [True, True, False]
    for number in range(MAX_APPS - 1):
        state = State({**state.versions, f"b{number}": 0})
    assert state.completed(None).has(Transaction("a", 3))
    later = state.completed(Transaction("c", 0))
    assert len(later.versions) == MAX_APPS
    assert not later.has(Transaction("a", 3))
    assert list(state.completed(Transaction("a", 4)).versions)[-1] == "a"


def test_what_is_stored_comes_back() -> None:
    for journal in (None, Journal(None, ()), Journal(Transaction("ü\ud800", 2**63 - 1), (WRITTEN,))):
        state = State({"a": 0, "b": 7}, journal)
        assert parse_state(encode_state(state), "f") == state


def content(**changed: Any) -> dict[str, Any]:
    return {"version": 1, "transactions": [], "journal": None, **changed}


def journal(name: object = "t-0", start: object = 0, end: object = 9, segments: object = None) -> dict[str, Any]:
    given = [[0, [[1, 1]] * 3]] if segments is None else segments
    return content(journal={"transaction": None, "partitions": [[name, start, end, given]]})


HOSTILE: list[object] = [
    None, [], {}, 7, content(version=2), content(version="1"), content(more=1), content(transactions={}),
    content(transactions=[["a"]]), content(transactions=[["", 1]]), content(transactions=[["a", -1]]),
    content(transactions=[["a", 1.0]]), content(transactions=[["a", True]]), content(transactions=[["a" * 513, 1]]),
    content(transactions=[["a", 2**63]]), content(transactions=[[["a"], 1]]),
    content(transactions=[[str(n), 1] for n in range(MAX_APPS + 1)]), content(journal=[]), content(journal={}),
    journal("../x-0"), journal("/etc-0"), journal(".."), journal(""), journal("t"), journal("a/b-0"), journal("t-00"),
    journal("t-99999999999"), journal("t-0.abc-delete"), journal("t\0-0"), journal("t-0\n"), journal(["t-0"]),
    journal(start=-1), journal(start=5, end=1), journal(start="0"), journal(end=2**63), journal(segments={}),
    journal(segments=[[0]]), journal(segments=[["../../x", [[1, 1]] * 3]]), journal(segments=[[0, [[1, 1]] * 2]]),
    journal(segments=[[0, [[1]] * 3]]), journal(segments=[[0, [[-1, 1]] * 3]]), journal(segments=[[1, [[1, 1]] * 3]]),
    journal(segments=[[0, [[1, 1]] * 3]] * 2), journal(segments=[[0, [[1, 1]] * 3], [10, [[1, 1]] * 3]]),
    content(journal={"transaction": None, "partitions": [["t-0", 0, 9, [[0, [[1, 1]] * 3]]]] * 2}),
]  # fmt: skip


@pytest.mark.parametrize("data", [*map(json.dumps, HOSTILE), "", "{", "\xff", "[" * 100_000, "\0" * 1000])
def test_hostile_content_is_refused_with_the_files_name(data: str, tmp_path: Path) -> None:
    (tmp_path / layout.WRITE_STATE).write_text(data, encoding="latin-1")
    for call in (lambda: recovery.roll_back(str(tmp_path)), lambda: recover_write(tmp_path, keep=True)):
        with pytest.raises(CorruptRecord) as caught:
            call()
        assert caught.value.path == str(tmp_path / layout.WRITE_STATE)
    assert os.listdir(tmp_path) == [layout.WRITE_STATE]


def pending(directory: Path, *partitions: WrittenPartition) -> None:
    """A log directory whose last job has ended while it published."""
    recovery.store_state(str(directory), State({"a": 1}, Journal(Transaction("a", 2), partitions)))


def written(directory: Path, topic: str = "t") -> WrittenPartition:
    """Append five records, as if by a job."""
    with LogWriter(directory, topic, 0, append=True, sync=False) as writer:
        start = writer.next_offset
        writer.write([(None, b"x")] * 5)
    base = f"{start:020d}"
    files = (os.stat(directory / f"{topic}-0" / (base + suffix)) for suffix in (".index", ".timeindex", ".log"))
    segment = WrittenSegment(start, tuple(Identity(s.st_ino, s.st_size) for s in files))
    return WrittenPartition(f"{topic}-0", start, start + 5, (segment,))


def test_a_pending_write_is_rolled_back_once(tmp_path: Path) -> None:
    written(tmp_path)
    before = sorted(os.listdir(tmp_path / "t-0"))
    pending(tmp_path, written(tmp_path), WrittenPartition("u-3", 100, 180, SEGMENTS))
    recovery.roll_back(str(tmp_path))
    assert sorted(os.listdir(tmp_path / "t-0")) == before
    assert recovery.read_state(str(tmp_path)) == State({"a": 1})
    assert recover_write(tmp_path) == []


def test_what_others_have_appended_stays_and_is_named(tmp_path: Path) -> None:
    first, other = written(tmp_path), written(tmp_path, "u")
    pending(tmp_path, first, other)
    with LogWriter(tmp_path, "t", 0, append=True, sync=False) as writer:
        writer.write([(None, b"later")])
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for call in (lambda: recovery.roll_back(str(tmp_path)), lambda: recover_write(tmp_path)):
        with pytest.raises(UnfinishedWrite, match=r"\(t-0 from offset 0 to 5: 0+5\.log has been appended .*keep=True"):
            call()
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    kept = recover_write(tmp_path, keep=True)
    assert kept == [str(tmp_path / name / f"{0:020d}.log") for name in ("t-0", "u-0")]
    assert Partition(tmp_path / "t-0").end_offset() == 6
    assert recovery.read_state(str(tmp_path)) == State({"a": 1})
    assert recover_write(tmp_path) == []


def test_a_broker_that_has_served_the_records_is_named(tmp_path: Path) -> None:
    pending(tmp_path, written(tmp_path))
    (tmp_path / layout.HIGH_WATERMARK_CHECKPOINT).write_text("0\n1\nt 0 3\n")
    with pytest.raises(UnfinishedWrite, match="a broker has made its records readable up to offset 3"):
        recovery.roll_back(str(tmp_path))
    assert Partition(tmp_path / "t-0").end_offset() == 5


def test_links_are_not_followed(tmp_path: Path) -> None:
    outside, logs = tmp_path / "outside", tmp_path / "logs"
    logs.mkdir()
    elsewhere = written(outside)
    (logs / "t-0").symlink_to(outside / "t-0")
    pending(logs, elsewhere)
    for keep in (False, True):
        with pytest.raises(NotADirectoryError) as caught:
            recover_write(logs, keep=keep)
        assert caught.value.filename == str(logs / "t-0")
    assert Partition(outside / "t-0").end_offset() == 5
    (logs / "t-0").unlink()
    (logs / "t-0").mkdir()
    for path in (outside / "t-0").iterdir():  # links with the names of the job's files
        (logs / "t-0" / path.name).symlink_to(path)
    assert recover_write(logs) == []
    assert Partition(outside / "t-0").end_offset() == 5
    (logs / layout.WRITE_STATE).unlink()
    (logs / layout.WRITE_STATE).symlink_to(outside / "state")
    with pytest.raises(OSError, match="symbolic link"):
        recovery.roll_back(str(logs))


def test_a_partition_that_has_become_something_else(tmp_path: Path) -> None:
    (tmp_path / "t-0").write_bytes(b"")
    pending(tmp_path, WRITTEN)
    with pytest.raises(NotADirectoryError):
        recovery.roll_back(str(tmp_path))


def test_a_job_that_is_publishing_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "WAIT", 0.1)
    pending(tmp_path, written(tmp_path))
    with (
        recovery.directory_lock(str(tmp_path), wait=0),
        pytest.raises(BlockingIOError, match="is writing to this log directory"),
    ):
        recovery.roll_back(str(tmp_path))
    assert Partition(tmp_path / "t-0").end_offset() == 5
    with LogWriter(tmp_path, "t", 0, append=True), pytest.raises(BlockingIOError, match="writing to this partition"):
        recovery.roll_back(str(tmp_path))
    recovery.roll_back(str(tmp_path))
    assert Partition(tmp_path / "t-0").end_offset() == 0


def test_without_locks_only_when_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pending(tmp_path, written(tmp_path))
    monkeypatch.setattr("kafkacodec.log.files.locks.PartitionLock._take", lambda self, file: None)
    with pytest.raises(UnfinishedWrite, match="the file system has no locks"):
        recovery.roll_back(str(tmp_path))
    assert len(recover_write(tmp_path)) == 1


def test_a_state_that_could_not_be_read_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "MAX_STATE_BYTES", 100)
    with pytest.raises(OSError, match="too many segments in one write"):
        pending(tmp_path, WRITTEN)
    assert not os.listdir(tmp_path)
    (tmp_path / layout.WRITE_STATE).write_bytes(b" " * 101)
    with pytest.raises(kc.LimitExceeded):
        recovery.read_state(str(tmp_path))
