"""Files that a broker replaces, deletes or truncates between planning and reading, as Spark's tasks see it."""

from __future__ import annotations

import logging
import os
import pickle
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import kafkacodec as kc
from kafkacodec.errors import MissingOffsets
from kafkacodec.log.files.access import MappedFile
from kafkacodec.spark.reading.options import parse_read_options
from kafkacodec.spark.reading.planning import plan
from kafkacodec.spark.reading.tasks import read_ranges
from tests.changed_logs import (
    ALL,
    COMPACTED,
    END,
    create_again,
    delete_first,
    delete_partition,
    delete_records,
    half_cleaned,
    make_log,
    merge,
    offsets_of,
    truncate,
    truncate_and_write,
    write,
)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return make_log(tmp_path)


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


def test_a_segment_that_vanishes_from_the_middle_was_not_cleaned(log):
    """The cleaner would have made the segment before it anew."""
    time.sleep(0.05)  # longer than a tick of the file system's clock
    middle = log / f"{65:020}.log"
    os.utime(middle)
    read = tasks(log)
    middle.unlink()
    with pytest.raises(MissingOffsets, match="gap of 68 offsets from 65 on"):
        read()


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
    [counted] = kc.log.statistics(log)
    assert (counted.num_records, counted.first_offset, counted.last_offset) == (len(expected), expected[0], END - 1)


@pytest.mark.parametrize("rows", [1, 3, 11, 1000])
@pytest.mark.parametrize("columns", [["offset"], ["value"]])
@pytest.mark.parametrize("change", [truncate, truncate_and_write], ids=lambda change: change.__name__)
def test_a_file_that_is_shortened_while_it_is_read(log, change, columns, rows):
    """A task has read the first batches of the active segment; what is before the cut is still read, once."""
    options = parse_read_options({"path": str(log.parent), "failOnDataLoss": "false"})
    [(*_, piece)] = plan(options)
    assert piece.path.endswith(f"{133:020}.log")
    values = [value for chunk in piece.read(columns=columns) for value in pa.record_batch(chunk)[0].to_pylist()]
    assert len(values) == END - 133
    found, kept, lost = [], None, []
    for chunk in piece.read(max_rows=rows, lost="report", columns=columns):
        found += pa.record_batch(chunk)[0].to_pylist()
        if kept is None:
            kept = change(log)
        lost += [problem.exception for problem in chunk.problems if isinstance(problem.exception, MissingOffsets)]
    cut = kept[-1] + 1
    read = max(rows, cut - 133) if rows < 1000 else END - 133  # a chunk may have had more before the cut
    assert found == values[: min(read, END - 133)]
    assert [(error.first_offset, error.end_offset) for error in lost] == [(cut, END)]


@pytest.mark.parametrize("rows", [200, 7])
@pytest.mark.parametrize("grown", [False, True], ids=["planned", "grown"])
@pytest.mark.parametrize("moment", ["__init__", "check_size"])
def test_a_preallocated_segment_that_is_trimmed_at_any_moment(tmp_path, monkeypatch, rows, grown, moment):
    """A broker does so when it begins the next one; it wrote into the file since planning."""
    number = called = 0
    ordinary = getattr(MappedFile, moment)

    def trim(self, *arguments):
        nonlocal called
        ordinary(self, *arguments)
        if self.path.endswith(f"{133:020}.log"):
            called += 1
            if called == number:
                os.truncate(self.path, size)

    while called >= number:
        number, called = number + 1, 0
        log = make_log(tmp_path / str(number))
        path = log / f"{133:020}.log"
        size = path.stat().st_size
        os.truncate(path, size + 6000)
        read = tasks(log, maxRecordsPerPartition=str(rows))
        if grown:
            os.utime(path, (1, 1))
        with monkeypatch.context() as patches:
            patches.setattr(MappedFile, moment, trim)
            assert read() == list(range(END))
    assert number >= 2


def test_files_that_come_and_go_are_planned_again(log, monkeypatch):
    """The cleaner merges two segments when the first of them has been planned."""
    from kafkacodec.log import Segment

    ordinary, changed = Segment._whole, []

    def whole(self, *arguments):
        if self.base_offset == 65 and not changed:
            changed.append(merge(log))
        return ordinary(self, *arguments)

    monkeypatch.setattr(Segment, "_whole", whole)
    assert tasks(log)() == changed[0]


def test_batches_may_end_at_the_high_watermark(log):
    (log.parent / "replication-offset-checkpoint").write_text("0\n1\nnone 0 50\n")
    assert tasks(log)() == list(range(END))
    assert tasks(log, endAt="highWatermark")() == list(range(50))
    assert tasks(log, endAt="highWatermark", endingOffsets='{"none": {"0": 40}}')() == list(range(40))
    (log.parent / "replication-offset-checkpoint").unlink()
    assert tasks(log, endAt="highWatermark")() == list(range(END))


def test_a_log_whose_first_cleaning_is_not_finished(log):
    """The cleaner has removed all records of the second segment; it writes its checkpoint when it is done."""
    path = log / f"{65:020}.log"
    path.rename(f"{path}.deleted")
    write(log, 65, [])
    assert tasks(log)() == offsets_of([b for b in ALL if b[0] < 65 or b[0] >= 133])
    (log / f"{65:020}.log.deleted").unlink()
    with pytest.raises(
        MissingOffsets, match="gap of 68 offsets from 65 on: it is unknown whether this is compaction or loss"
    ):
        tasks(log)()
    (log.parent / "cleaner-offset-checkpoint").write_text("0\n1\nnone 0 133\n")
    assert tasks(log)() == offsets_of([b for b in ALL if b[0] < 65 or b[0] >= 133])
