"""Segments that a broker replaces, deletes and adds between the listing of a partition and the end of reading it.

A segment is planned when it is its turn, so most of them are planned after the change.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import kafkacodec as kc
from kafkacodec.errors import MissingOffsets
from kafkacodec.log import LogWriter, Partition
from kafkacodec.log.opening import listing
from tests.changed_logs import (
    ALL,
    COMPACTED,
    END,
    create_again,
    delete_first,
    delete_partition,
    grow,
    half_cleaned,
    make_log,
    merge,
    offsets_of,
    truncate,
    write,
)

SETTLED, PAUSE = 0.02, 0.05  # seconds: longer than a tick of the file system's clock


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A partition whose files have not changed for so long that any change shows in their times."""
    monkeypatch.setattr(listing, "SETTLED_SECONDS", SETTLED)
    directory = make_log(tmp_path)
    time.sleep(PAUSE)
    return directory


def offsets(chunks: Iterator[Any]) -> list[int]:
    return [offset for chunk in chunks for offset in chunk["offset"].tolist()]


def listed(log: Path) -> Partition:
    partition = Partition(log)
    assert len(partition.segments) == 3
    return partition


def delete_two(directory: Path) -> list[int]:
    """Retention removes the two oldest segments."""
    for base in (0, 65):
        path = directory / f"{base:020}.log"
        path.rename(f"{path}.deleted")
    return list(range(133, END))


def truncate_before_the_last(directory: Path) -> list[int]:
    """A follower truncates in the middle segment and deletes the last one; what it has of the middle one stays."""
    (directory / f"{133:020}.log").unlink()
    kept = [b for b in ALL if b[0] >= 65 and b[1] < 100]
    os.truncate(directory / f"{65:020}.log", sum(len(data) for *_, data in kept))
    return offsets_of([b for b in ALL if b[0] < 65] + kept)


@pytest.mark.parametrize("change", COMPACTED, ids=lambda change: change.__name__)
def test_what_is_compacted_after_listing_is_read_once(log: Path, change: Callable[[Path], list[int]]) -> None:
    partition = listed(log)
    expected = change(log)
    if change is grow:  # the last segment is read to its end when reading starts
        expected = list(range(END + 9))
    assert offsets(partition.read(columns=["offset"])) == expected


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("change", COMPACTED, ids=lambda change: change.__name__)
def test_what_is_compacted_during_reading_is_read_once(
    log: Path, change: Callable[[Path], list[int]], isolation: Any
) -> None:
    """The open file is read to its end; after it comes what the others have of later offsets."""
    chunks = listed(log).read(isolation_level=isolation, columns=["offset"], max_rows=10)
    begun = next(chunks)["offset"].tolist()
    assert begun == list(range(10))
    expected = change(log)
    assert begun + offsets(chunks) == list(range(65)) + [offset for offset in expected if offset >= 65]


def test_a_segment_added_during_reading_is_not_read(log: Path) -> None:
    chunks = listed(log).read(columns=["offset"], max_rows=10)
    begun = next(chunks)["offset"].tolist()
    path = log / f"{END:020}.log"
    path.write_bytes(kc.encode([(None, b"later")] * 9, base_offset=END))
    assert begun + offsets(chunks) == list(range(END))


def test_what_retention_deletes_of_open_files_is_read(log: Path) -> None:
    chunks = listed(log).read(columns=["offset"], max_rows=10)
    begun = next(chunks)["offset"].tolist()
    delete_first(log)
    assert begun + offsets(chunks) == list(range(END))


LOST: list[tuple[Callable[[Path], list[int]], str]] = [
    (delete_two, "offsets 65 to 132 can no longer be read: the log now begins at offset 133"),
    (truncate, "can no longer be read: the log now ends at offset"),
    (truncate_before_the_last, "can no longer be read: the log now ends at offset"),
    (create_again, "can no longer be read: the topic was deleted and created again"),
    (delete_partition, "can no longer be read: the partition's directory no longer exists"),
]


@pytest.mark.parametrize("on_error", ["raise", "skip"])
@pytest.mark.parametrize(("change", "reason"), LOST, ids=[change.__name__ for change, _ in LOST])
def test_what_is_lost_during_reading_is_damage(
    log: Path, change: Callable[[Path], list[int]], reason: str, on_error: Any
) -> None:
    chunks = listed(log).read(columns=["offset"], max_rows=10, on_error=on_error)
    found = next(chunks)["offset"].tolist()
    expected = change(log)
    problems: list[Exception] = []
    try:
        for chunk in chunks:
            found += chunk["offset"].tolist()
            problems += [problem.exception for problem in chunk.problems]
    except MissingOffsets as error:
        problems.append(error)
    whole = list(range(65)) + [offset for offset in expected if offset >= 65]
    assert found == (whole if on_error == "skip" else whole[: len(found)])
    assert isinstance(problems[0], MissingOffsets)
    assert reason in str(problems[0])
    lost = {offset for p in problems if isinstance(p, MissingOffsets) for offset in range(p.first_offset, p.end_offset)}
    assert {*range(END)} - {*whole} == lost or on_error == "raise"


def test_what_retention_deletes_after_listing_is_missing(log: Path) -> None:
    partition = listed(log)
    delete_first(log)
    with pytest.raises(MissingOffsets, match="offsets 0 to 64 can no longer be read: the log now begins at offset 65"):
        offsets(partition.read(columns=["offset"]))
    assert offsets(partition.read(columns=["offset"], on_error="skip")) == list(range(65, END))


@pytest.mark.parametrize("begun", [False, True], ids=["after listing", "during reading"])
def test_a_segment_that_vanishes_from_the_middle_was_not_cleaned(log: Path, begun: bool) -> None:
    """The cleaner would have made the segment before it anew."""
    chunks = listed(log).read(columns=["offset"], max_rows=10)
    if begun:
        next(chunks)
    (log / f"{65:020}.log").unlink()
    with pytest.raises(MissingOffsets, match="gap of 68 offsets from 65 on"):
        offsets(chunks)


def test_the_first_name_of_a_half_cleaned_segment_may_change(log: Path) -> None:
    expected = half_cleaned(log)
    time.sleep(PAUSE)
    chunks = listed(log).read(columns=["offset"], max_rows=10)
    begun = next(chunks)["offset"].tolist()
    (log / f"{0:020}.log.swap").rename(log / f"{0:020}.log")
    assert begun + offsets(chunks) == expected


def test_a_swapped_segment_with_the_records_of_two_during_reading(log: Path) -> None:
    """The cleaner has renamed its file, which has the records of two segments, but not yet all that it replaces."""
    partition = listed(log)
    kept = [b for b in ALL if b[0] < 133][1:-1:2]
    write(log, 0, kept, ".log.swap")
    (log / f"{0:020}.log").rename(log / f"{0:020}.log.deleted")
    expected = offsets_of([b for b in kept if b[0] < 65] + [b for b in ALL if b[0] >= 65])
    assert offsets(partition.read(columns=["offset"])) == expected


def test_the_current_directory_may_have_no_name(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(log)
    chunks = Partition("").read(columns=["offset"], max_rows=10)
    begun = next(chunks)["offset"].tolist()
    merge(log)
    assert begun + offsets(chunks) == list(range(65)) + [o for o in offsets(Partition(log).read()) if o >= 65]


def test_named_files_are_planned_before_the_first_row(log: Path) -> None:
    """Nothing tells when they were listed, so a file that replaced one of them would be read as it."""
    partition = Partition(log, segments=sorted(log.glob("*.log")))
    merge(log)
    with pytest.raises(FileNotFoundError, match=f"{65:020}"):
        next(partition.read(columns=["offset"]))


@pytest.mark.parametrize("segments", [30, 300])
def test_the_first_rows_look_at_few_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, segments: int) -> None:
    monkeypatch.setattr(listing, "SETTLED_SECONDS", SETTLED)
    with LogWriter(tmp_path, "t", 0, segment_bytes=1, sync=False) as writer:
        for _ in range(segments):
            writer.write([(None, b"a")])
    time.sleep(PAUSE)
    partition = Partition(tmp_path / "t-0")
    assert len(partition.segments) >= segments
    looked: list[str] = []
    for name in ("stat", "open"):
        _record(monkeypatch, name, looked)
    chunks = partition.read(columns=["offset"])
    assert next(chunks)["offset"].tolist() == [0]
    assert len({path for path in looked if path.endswith(".log")}) <= 4
    assert offsets(chunks) == list(range(1, segments))


def _record(monkeypatch: pytest.MonkeyPatch, name: str, paths: list[str]) -> None:
    ordinary = getattr(os, name)

    def recording(path: Any, *arguments: Any, **more: Any) -> Any:
        paths.append(os.fsdecode(path) if not isinstance(path, int) else "")
        return ordinary(path, *arguments, **more)

    monkeypatch.setattr(os, name, recording)
