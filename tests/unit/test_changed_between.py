"""Files that a broker replaces, deletes or truncates between planning and reading, as Spark's tasks see it.

The bytes are those that Kafka wrote; each change is made as the broker makes it: by the log cleaner, by retention, by a
follower that truncates, by deleting a topic and creating it again.
"""

from __future__ import annotations

import logging
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import kafkacodec as kc
from kafkacodec.errors import MissingOffsets
from kafkacodec.spark.options import parse_read_options
from kafkacodec.spark.planning import plan
from kafkacodec.spark.reading import read_ranges
from tests.corpus import ROOT

SOURCE = ROOT / "logs" / "kraft-4.1.0" / "none-0"
FIRST_ID, SECOND_ID = "MkU3OEVBNTcwNTJENDM2Qg", "c2Vjb25kLXRvcGljLWlkMQ"


def batches(path: Path) -> list[tuple[int, int, bytes]]:
    """The batches of a segment: first offset, last offset, bytes."""
    data = path.read_bytes()
    headers = kc.scan(data)
    columns = (headers[name].tolist() for name in ("base_offset", "last_offset", "position", "size_in_bytes"))
    return [(base, last, data[at : at + size]) for base, last, at, size in zip(*columns, strict=True)]


ALL = [batch for path in sorted(SOURCE.glob("*.log")) for batch in batches(path)]
END = ALL[-1][1] + 1
assert END == 174


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Three segments, from offset 0, 65 and 133 on; the last one is active."""
    directory = tmp_path / "logs" / "none-0"
    directory.mkdir(parents=True)
    for base, end in ((0, 65), (65, 133), (133, END)):
        write(directory, base, [b for b in ALL if base <= b[0] and b[1] < end])
    (directory / "partition.metadata").write_text(f"version: 0\ntopic_id: {FIRST_ID}\n")
    (directory / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    return directory


def write(directory: Path, base: int, kept: list[tuple[int, int, bytes]], suffix: str = ".log") -> Path:
    path = directory / f"{base:020}{suffix}"
    path.write_bytes(b"".join(data for _, _, data in kept))
    return path


def offsets_of(kept: list[tuple[int, int, bytes]]) -> list[int]:
    return [offset for base, last, _ in kept for offset in range(base, last + 1)]


def tail_removed(kept: list[tuple[int, int, bytes]]) -> list[tuple[int, int, bytes]]:
    """Without every other batch, and without the last one."""
    return kept[1:-1:2]


def clean(directory: Path, suffix: str = ".log") -> list[int]:
    """The cleaner replaces the first segment by a smaller one with the same time of modification."""
    path = directory / f"{0:020}.log"
    state = path.stat()
    kept = tail_removed(batches(path))
    new = write(directory, 0, kept, ".log.cleaned")
    os.utime(new, ns=(state.st_mtime_ns, state.st_mtime_ns))
    new = new.rename(new.with_suffix(".swap"))
    path.rename(f"{path}.deleted")
    if suffix == ".log":
        new.rename(path)
    return offsets_of(kept + [b for b in ALL if b[0] >= 65])


def half_cleaned(directory: Path) -> list[int]:
    """As `clean`, but the last rename has not happened yet, as when a broker is killed there."""
    return clean(directory, ".log.swap")


def merge(directory: Path) -> list[int]:
    """The cleaner replaces two segments by one."""
    paths = [directory / f"{base:020}.log" for base in (0, 65)]
    kept = tail_removed([b for path in paths for b in batches(path)])
    new = write(directory, 0, kept, ".log.swap")
    for path in paths:
        path.rename(f"{path}.deleted")
    new.rename(paths[0])
    return offsets_of(kept + [b for b in ALL if b[0] >= 133])


def grow(directory: Path) -> list[int]:
    """Records after those that were planned."""
    with open(directory / f"{133:020}.log", "ab") as file:
        file.write(kc.encode([(None, b"later")] * 9, base_offset=END))
    return list(range(END))


def roll_and_clean(directory: Path) -> list[int]:
    """The segment that was active when it was planned is cleaned."""
    path = directory / f"{133:020}.log"
    kept = batches(path)[::2]
    write(directory, END, [])
    new = write(directory, 133, kept, ".log.swap")
    path.rename(f"{path}.deleted")
    new.rename(path)
    return offsets_of([b for b in ALL if b[0] < 133] + kept)


COMPACTED = [clean, half_cleaned, merge, grow, roll_and_clean]


def delete_first(directory: Path) -> list[int]:
    """Retention removes the oldest segment."""
    path = directory / f"{0:020}.log"
    path.rename(f"{path}.deleted")
    return list(range(65, END))


def delete_records(directory: Path) -> list[int]:
    """Records below an offset are deleted; the first segment is gone, the second one still has some of them."""
    delete_first(directory)
    (directory.parent / "log-start-offset-checkpoint").write_text("0\n1\nnone 0 70\n")
    return list(range(70, END))


def truncate(directory: Path) -> list[int]:
    """A follower truncates its active segment, inside a batch's bytes."""
    path = directory / f"{133:020}.log"
    kept = batches(path)[:2]
    os.truncate(path, sum(len(data) for *_, data in kept))
    return offsets_of([b for b in ALL if b[0] < 133] + kept)


def truncate_and_write(directory: Path) -> list[int]:
    """A follower truncates at offset 140 or before it, and gets other records in their place."""
    kept = truncate(directory)
    cut = kept[-1] + 1
    with open(directory / f"{133:020}.log", "ab") as file:
        file.write(kc.encode([(None, b"other")] * 100, base_offset=cut, partition_leader_epoch=1))
    (directory / "leader-epoch-checkpoint").write_text(f"0\n2\n0 0\n1 {cut}\n")
    return kept


def create_again(directory: Path) -> list[int]:
    """The topic is deleted and created again, and has as many records as before."""
    copy = directory.with_name("copy")
    shutil.copytree(directory, copy)
    directory.rename(directory.with_name("none-0.0123456789abcdef0123456789abcdef-delete"))
    copy.rename(directory)
    (directory / "partition.metadata").write_text(f"version: 0\ntopic_id: {SECOND_ID}\n")
    return []


def delete_partition(directory: Path) -> list[int]:
    """The partition is deleted."""
    directory.rename(directory.with_name("none-0.0123456789abcdef0123456789abcdef-delete"))
    return []


LOST: list[tuple[Callable[[Path], list[int]], str]] = [
    (delete_first, "offsets 0 to 64 can no longer be read: the log now begins at offset 65"),
    (delete_records, "offsets 0 to 64 can no longer be read: the log now begins at offset 70"),
    (truncate, "can no longer be read: the log now ends at offset"),
    (truncate_and_write, "can no longer be read: the log was truncated at offset"),
    (create_again, "can no longer be read: the topic was deleted and created again"),
    (delete_partition, "can no longer be read: the partition's directory no longer exists"),
]

SIZES = [{}, {"maxPartitionBytes": "2000"}, {"maxRecordsPerPartition": "7"}]


def tasks(log: Path, **given: str):
    """What the driver plans, as the tasks get it; tasks may start when others have ended."""
    options = parse_read_options({"path": str(log.parent), **given})
    planned = pickle.loads(pickle.dumps(plan(options)))

    def read() -> list[int]:
        how = {"permissive": options.permissive, "gaps": options.gaps, "fail_on_data_loss": options.fail_on_data_loss}
        found = [batch for task in planned for batch in read_ranges(task, ["offset"], **how)]
        return pa.Table.from_batches(found)["offset"].to_pylist() if found else []

    return read


@pytest.mark.parametrize("mode", ["FAILFAST", "PERMISSIVE"])
@pytest.mark.parametrize("size", SIZES, ids=["whole", "bytes", "records"])
@pytest.mark.parametrize("change", COMPACTED, ids=lambda change: change.__name__)
def test_what_the_cleaner_left_is_read_once(log, change, size, mode, caplog):
    read = tasks(log, mode=mode, **size)
    expected = change(log)
    with caplog.at_level(logging.WARNING, logger="kafkacodec.spark"):
        assert read() == expected
    assert caplog.text == ""


@pytest.mark.parametrize("size", SIZES, ids=["whole", "bytes", "records"])
@pytest.mark.parametrize("given", [{}, {"mode": "PERMISSIVE", "failOnDataLoss": "true"}], ids=["batch", "permissive"])
@pytest.mark.parametrize(("change", "reason"), LOST, ids=[change.__name__ for change, _ in LOST])
def test_what_is_lost_is_an_error(log, change, reason, given, size):
    read = tasks(log, **given, **size)
    change(log)
    with pytest.raises(MissingOffsets) as raised:
        read()
    if not size:
        assert reason in str(raised.value)
    assert str(log) in str(raised.value)
    assert raised.value.certain


@pytest.mark.parametrize("size", SIZES, ids=["whole", "bytes", "records"])
@pytest.mark.parametrize("given", [{"failOnDataLoss": "false"}, {"mode": "PERMISSIVE"}], ids=["failfast", "permissive"])
@pytest.mark.parametrize(("change", "reason"), LOST, ids=[change.__name__ for change, _ in LOST])
def test_what_is_lost_is_logged(log, change, reason, given, size, caplog):
    read = tasks(log, **given, **size)
    expected = change(log)
    if change is delete_records:  # planned ranges of files that are still there are read
        expected = [*range(65, 70), *expected]
    with caplog.at_level(logging.WARNING, logger="kafkacodec.spark"):
        assert read() == expected
    assert "can no longer be read" in caplog.text
    if not size:
        assert reason in caplog.text


def test_what_is_planned_from_a_half_cleaned_log(log):
    expected = half_cleaned(log)
    assert tasks(log)() == expected
    read = tasks(log)
    (log / f"{0:020}.log.swap").rename(log / f"{0:020}.log")
    assert read() == expected


def test_a_swapped_in_segment_beside_those_that_it_replaces(log):
    """The cleaner's file has the records of two segments, of which one is renamed already."""
    kept = [b for b in ALL if b[0] < 133][1:-1:2]
    write(log, 0, kept, ".log.swap")
    (log / f"{0:020}.log").rename(log / f"{0:020}.log.deleted")
    expected = offsets_of([b for b in kept if b[0] < 65] + [b for b in ALL if b[0] >= 65])
    assert tasks(log)() == expected
    assert tasks(log, maxPartitionBytes="2000")() == expected


@pytest.mark.parametrize("change", [truncate, truncate_and_write], ids=lambda change: change.__name__)
def test_a_file_that_is_shortened_while_it_is_read(log, change, caplog):
    """A task has read the first batches of the active segment; what is before the cut is still read, once."""
    options = parse_read_options({"path": str(log.parent), "failOnDataLoss": "false"})
    [(*_, piece)] = plan(options)
    assert piece.path.endswith(f"{133:020}.log")
    found, kept = [], None
    for chunk in piece.read(max_rows=3, lost="report", columns=["offset"]):
        found += chunk["offset"].tolist()
        if kept is None:
            kept = change(log)
        lost = [problem.exception for problem in chunk.problems]
    assert found == [offset for offset in kept if offset >= 133]
    assert [(type(error), error.first_offset, error.end_offset) for error in lost] == [
        (MissingOffsets, kept[-1] + 1, END)
    ]


def test_files_that_come_and_go_are_planned_again(log, monkeypatch):
    """The cleaner merges two segments when the first of them has been planned."""
    from kafkacodec.log import Segment

    ordinary, changed = Segment.ranges, []

    def ranges(self, **options):
        if self.base_offset == 65 and not changed:
            changed.append(merge(log))
        return ordinary(self, **options)

    monkeypatch.setattr(Segment, "ranges", ranges)
    assert tasks(log)() == changed[0]
