"""A trigger that finds nothing new lists and opens next to nothing, for any number of segments. Counts, not times."""

from __future__ import annotations

import os
import shutil
import time

import pytest

import kafkacodec as kc
from kafkacodec.log import Partition
from kafkacodec.log.partitions.listings import Listings
from kafkacodec.records.headers import scan
from kafkacodec.spark.errors import OptionError
from kafkacodec.spark.reading import streaming
from kafkacodec.spark.reading.options import parse_read_options
from kafkacodec.spark.reading.streaming import SegmentStreamReader
from tests.changed_logs import (
    COMPACTED,
    create_again,
    delete_first,
    delete_partition,
    delete_records,
    make_log,
    truncate,
    truncate_and_write,
)
from tests.stream_query import Query
from tests.unit.test_spark_planning import log


def settle(*directories):
    """Set the time of the last change back, as if nothing had happened for a while."""
    for directory in directories:
        before = time.time() - 60
        os.utime(directory, (before, before))


def calls_of(monkeypatch, name):
    """The paths that a function of `os` is called with."""
    paths, ordinary = [], getattr(os, name)

    def counting(path, *arguments, **more):
        paths.append(os.fspath(path))
        return ordinary(path, *arguments, **more)

    monkeypatch.setattr(os, name, counting)
    return paths


@pytest.fixture
def settled(monkeypatch):
    """Files count as settled at once; `tick` has passed before one changes, so that its times show that."""
    for module in ("files.access", "partitions.listings"):
        monkeypatch.setattr(f"kafkacodec.log.{module}.SETTLED_SECONDS", -1.0)


def tick(directory):
    """Return when the system gives files other times than all below this directory."""
    paths = [directory, *directory.rglob("*")]
    last = max(max(found.st_mtime_ns, found.st_ctime_ns) for found in map(os.stat, paths))
    probe = directory.parent / "probe"
    probe.touch()
    while probe.stat().st_mtime_ns <= last:
        probe.touch()
    probe.unlink()


def reader(directory, **options):
    return SegmentStreamReader(
        parse_read_options({"path": str(directory), "endAt": "logEnd", **options}, streaming=True), ("offset",)
    )


def latest(stream, start):
    return stream.latestOffset(start, stream.getDefaultReadLimit())


def ends(offsets):
    return {
        (topic, int(number)): place if isinstance(place, int) else place["offset"]
        for topic, numbers in offsets.items()
        for number, place in numbers.items()
    }


@pytest.mark.parametrize("segments", [3, 500])
def test_an_idle_trigger_does_the_same_for_any_number_of_segments(tmp_path, monkeypatch, segments):
    directories = [log(tmp_path / f"t-{n}", segments) for n in range(2)]
    settle(*directories)
    stream = reader(tmp_path)
    start = latest(stream, stream.initialOffset())
    start = latest(stream, start)
    listed, opened, looked = (calls_of(monkeypatch, name) for name in ("scandir", "open", "stat"))
    assert latest(stream, start) == start
    assert not {str(d) for d in directories} & set(listed)
    assert len([path for path in opened if path.endswith(".log")]) <= 2 * 4
    assert len(looked) <= 60
    assert ends(start) == {("t", 0): segments * 3, ("t", 1): segments * 3}


@pytest.mark.parametrize("partitions", [2, 40])
def test_an_idle_trigger_opens_no_file(tmp_path, monkeypatch, settled, partitions):
    for n in range(partitions):
        log(tmp_path / f"t-{n}", 2)
    stream = reader(tmp_path)
    start = latest(stream, latest(stream, stream.initialOffset()))
    assert latest(stream, start) == start
    opened, looked = (calls_of(monkeypatch, name) for name in ("open", "stat"))
    assert latest(stream, start) == start
    assert stream.reportLatestOffset() == {"t": {str(n): 6 for n in range(partitions)}}
    assert opened == []
    assert len(looked) <= 4 * partitions + 20


def test_a_new_query_walks_segments_without_indexes_once(tmp_path, monkeypatch, settled):
    directories = [tmp_path / f"t-{n}" for n in range(2)]
    for directory in directories:
        directory.mkdir()
        data = kc.encode([(b"k", b"v")] * 5000, batch_bytes=1)
        (directory / f"{0:020}.log").write_bytes(data)
    counts = []

    def counting(data, **options):
        counts.append(len(found := scan(data, **options)))
        return found

    monkeypatch.setattr("kafkacodec.log.segments.walk.scan", counting)
    stream = reader(tmp_path)
    stream.prepareForTriggerAvailableNow()
    start = stream.initialOffset()
    end = latest(stream, start)
    tasks = stream.partitions(start, end)
    assert ends(end) == {("t", 0): 5000, ("t", 1): 5000}
    assert sum(piece.size_in_bytes for task in tasks for piece in task.value) == 2 * len(data)
    assert 2 * 5000 <= sum(counts) < 2 * 5100


class Running(Query):
    """A query that is not started again: one reader for all of it."""

    def _reader(self):
        if not hasattr(self, "kept"):
            self.kept = super()._reader()
        return self.kept


def outcome(query):
    """The end of the next micro-batch, or why there is none."""
    try:
        return query.plan()
    except OptionError as error:
        return str(error)


def higher_watermark(directory):
    (directory.parent / "replication-offset-checkpoint").write_text("0\n1\nnone 0 150\n")


CHANGES = [
    *COMPACTED,
    delete_first,
    delete_records,
    truncate,
    truncate_and_write,
    create_again,
    delete_partition,
    higher_watermark,
]


@pytest.mark.parametrize("read", [10, 100, 140, None])
@pytest.mark.parametrize("lenient", ["true", "false"])
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_whatever_changes_after_idle_triggers_is_seen(tmp_path, monkeypatch, settled, change, lenient, read):
    """As by a reader that has seen nothing before."""
    monkeypatch.setattr(streaming, "MISSING_TRIES", 1)
    directory = make_log(tmp_path)
    (tmp_path / "logs" / "replication-offset-checkpoint").write_text("0\n1\nnone 0 145\n")
    query = Running(tmp_path / "logs", failOnDataLoss=lenient)
    query.step(read)
    for _ in range(2):
        before = outcome(query)
    tick(tmp_path / "logs")
    change(directory)
    now = outcome(query)
    assert now == outcome(Query(tmp_path / "logs", query.at, failOnDataLoss=lenient))
    if change in (truncate, create_again, higher_watermark) and read is None:
        assert now != before


@pytest.mark.parametrize("segments", [3, 300])
def test_merged_replicas_are_opened_once(tmp_path, monkeypatch, segments):
    for module in ("files.access", "partitions.listings"):
        monkeypatch.setattr(f"kafkacodec.log.{module}.SETTLED_SECONDS", -1.0)
    directories = [log(tmp_path / f"{n}" / "t-0", segments) for n in range(3)]
    stream = reader(tmp_path, replicas="merge")
    start = latest(stream, stream.initialOffset())
    opened = calls_of(monkeypatch, "open")
    assert latest(stream, start) == start
    assert len([path for path in opened if path.endswith(".log")]) <= 3 * 4
    os.unlink(directories[0] / f"{3:020}.log")
    os.unlink(directories[1] / f"{3:020}.log")
    end = latest(stream, start)
    assert ends(end) == ends(start)
    [*tasks] = stream.partitions({}, end)
    holders = {piece.path.split("/")[-3] for task in tasks for piece in task.value if piece.first_offset == 3}
    assert holders == {"2"}


def test_what_is_appended_rolled_and_deleted_is_seen(tmp_path):
    """Whether the directory changed a moment ago or not."""
    directory = log(tmp_path / "t-0", 4)
    data = bytearray((directory / f"{0:020}.log").read_bytes())
    settle(directory)
    stream = reader(tmp_path, failOnDataLoss="false")
    place = latest(stream, stream.initialOffset())
    assert ends(place) == {("t", 0): 12}
    for base in (12, 15, 18, 21):
        data[:8] = base.to_bytes(8, "big")
        if base % 2:
            (directory / f"{base:020}.log").write_bytes(data)
        else:
            with open(sorted(directory.glob("*.log"))[-1], "ab") as file:
                file.write(data)
            settle(directory)
        place = latest(stream, place)
        assert ends(place) == {("t", 0): base + 3}
    settle(directory)
    place = latest(stream, place)
    for base in (0, 3):
        (directory / f"{base:020}.log").unlink()
    [piece, *_] = stream.partitions(stream.initialOffset(), place)
    assert piece.value[0].first_offset == 6
    shutil.rmtree(directory)
    log(tmp_path / "u-0", 1)
    assert ends(latest(stream, {}))["u", 0] == 3


def test_listings_are_kept_while_a_directory_does_not_change(tmp_path, monkeypatch):
    directory, other = log(tmp_path / "t-0", 3), log(tmp_path / "t-1", 1)
    listings = Listings()
    listed = calls_of(monkeypatch, "scandir")
    first = listings.restore(Partition(directory)).segments
    listings.restore(Partition(directory))
    assert listed.count(str(directory)) >= 2  # it has just changed
    settle(directory, other)
    listed.clear()
    kept = listings.restore(Partition(directory)).segments
    assert [segment.path for segment in kept] == [segment.path for segment in first]
    assert listings.restore(Partition(directory)).segments is kept
    assert len(listed) == 1
    listings.restore(Partition(other))
    listings.keep([Partition(directory)])
    assert listings.restore(Partition(other)).segments is not None
    assert listings.restore(Partition(directory)).segments is kept
    (directory / f"{9:020}.log").touch()
    assert len(listings.restore(Partition(directory)).segments) == 4
    with pytest.raises(FileNotFoundError):
        listings.restore(Partition(tmp_path / "none"))


def test_faults_of_an_index_are_listed_once(tmp_path):
    """A segment that is looked at again and again keeps its problems."""
    directory = log(tmp_path / "t-0", 1)
    (directory / f"{0:020}.index").write_bytes(b"\xff" * 24)
    [segment] = kc.log.Partition(directory).segments
    segment.last_offset()
    count = len(segment.index_problems)
    assert count
    for _ in range(3):
        segment.last_offset()
        segment.position_of_offset(1)
    assert len(segment.index_problems) == count
