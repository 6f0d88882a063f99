"""Look-ups by offset and time with missing, stale or damaged index files: always right, and faults are reported."""

from __future__ import annotations

import random
import shutil

import numpy as np
import pytest

import kafkacodec as kc
from kafkacodec.log.files import access as files
from kafkacodec.log.formats import indexes
from kafkacodec.log.reading import lookup
from kafkacodec.records.headers import scan
from tests.corpus import ROOT

SOURCE = ROOT / "logs/kraft-4.1.0/txn-codecs-0"
LOGS = sorted(path for path in SOURCE.glob("*.log") if path.stat().st_size > 10_000)


@pytest.fixture
def copy(tmp_path):
    """A copy of a segment with several index entries and its index files, to be damaged."""
    source = max(LOGS, key=lambda path: len(kc.log.read_offset_index(path.with_suffix(".index"))))
    for suffix in (".log", ".index", ".timeindex"):
        shutil.copyfile(source.with_suffix(suffix), tmp_path / (source.stem + suffix))
    return tmp_path / source.name


def truth(path):
    records = kc.decode(path.read_bytes(), include_control=True)
    return records["offset"].tolist(), records["timestamp"].astype(np.int64).tolist()


def assert_right(path):
    """Check the look-up of every offset and time; returns the problems of the index files."""
    segment = kc.log.Segment(path)
    offsets, times = truth(path)
    headers = segment.scan()
    for offset in offsets[::3]:
        at = int(np.flatnonzero(headers["last_offset"] >= offset)[0])
        assert segment.position_of_offset(offset) == headers["position"][at]
    for time in sorted(set(times))[::3]:
        assert segment.offset_of_timestamp(time) == next(o for o, t in zip(offsets, times, strict=True) if t >= time)
    assert segment.last_offset() == offsets[-1]
    assert segment.offset_of_timestamp(max(times) + 1) is None
    return segment.index_problems


def test_intact_indexes_are_used(copy):
    assert assert_right(copy) == []
    index = kc.log.read_offset_index(copy.with_suffix(".index"))
    with files.MappedFile(str(copy)) as file:
        start = lookup.Lookup(file, kc.log.Segment(copy).base_offset).start_for_offset(int(index["offset"][-1]))
    assert start == index["position"][-1] > 0


@pytest.mark.parametrize("gone", [(".index",), (".timeindex",), (".index", ".timeindex")])
def test_missing_indexes(copy, gone):
    for suffix in gone:
        copy.with_suffix(suffix).unlink()
    assert assert_right(copy) == []


@pytest.fixture
def headers_read(monkeypatch):
    """The numbers of batches whose headers are read."""
    counts = []

    def counting(data, **options):
        counts.append(len(found := scan(data, **options)))
        return found

    monkeypatch.setattr("kafkacodec.log.segments.walk.scan", counting)
    return counts


@pytest.fixture
def settled(monkeypatch):
    """Files count at once as those that have not changed for a while."""
    monkeypatch.setattr(files, "SETTLED_SECONDS", -1.0)


def written(path, data):
    path.write_bytes(data)
    return kc.log.Segment(path)


def test_a_segment_without_indexes_is_walked_once(tmp_path, settled, headers_read):
    path = tmp_path / f"{0:020}.log"
    data = kc.encode([(b"k", b"v")] * 5000, batch_bytes=1)
    segment = written(path, data)
    assert segment.last_offset() == 4999
    assert sum(headers_read) >= 5000
    headers_read.clear()
    last = len(data) - len(kc.encode([(b"k", b"v")]))
    assert segment.position_of_offset(4999) == last
    assert segment._mark_of(4999).base_offset == 4999
    [*ranges] = segment.ranges(end_offset=5000, max_records=10**6)
    assert [(piece.start_position, piece.end_position) for piece in ranges] == [(0, len(data))]
    assert sum(headers_read) < 20
    assert segment.position_of_offset(4998) < last
    written(path, data + kc.encode([(b"k", b"v")], base_offset=6000))
    assert segment.position_of_offset(5000) == len(data)
    assert segment.last_offset() == 6000


@pytest.mark.parametrize(
    "batches",
    [
        pytest.param([{"base_offset": 5}, {"base_offset": 2}, {"base_offset": 7}], id="out of order"),
        pytest.param([{"base_offset": 0, "magic": 1}, {"base_offset": 1, "magic": 1}], id="message sets"),
        pytest.param([{"base_offset": 0}, {"base_offset": 1 << 40}], id="wrong last"),
    ],
)
def test_the_last_batch_is_no_place_to_begin_where_others_may_be_later(tmp_path, settled, batches):
    path = tmp_path / f"{0:020}.log"
    data = b"".join(kc.encode([(b"k", b"v")], **options) for options in batches)
    segment = written(path, data)
    end = segment.last_offset()
    with files.MappedFile(str(path)) as file:
        assert segment._lookup(file).known_last is None
    for offset in (1, 2, 5, 7):
        assert segment.position_of_offset(offset) == kc.log.Segment(path).position_of_offset(offset)
    assert end == kc.log.Segment(path).last_offset()


def test_indexes_of_another_segment(copy):
    other = next(path for path in LOGS if path.name != copy.name and path.with_suffix(".index").stat().st_size > 8)
    for suffix in (".index", ".timeindex"):
        shutil.copyfile(other.with_suffix(suffix), copy.with_suffix(suffix))
    assert assert_right(copy)


def test_index_entries_moved_by_some_offsets_or_bytes(copy):
    index = kc.log.read_offset_index(copy.with_suffix(".index"))
    base = index.base_offset
    for offsets, positions in [
        (index["offset"] + 7, index["position"]),
        (index["offset"] - 7, index["position"]),
        (index["offset"], index["position"] + 1),
        (index["offset"], index["position"] + 100_000),
    ]:
        copy.with_suffix(".index").write_bytes(indexes.encode_offset_index(offsets, positions, base))
        problems = assert_right(copy)
        assert problems
        assert {problem.path for problem in problems} == {str(copy.with_suffix(".index"))}


def test_time_index_entries_that_promise_too_much(copy):
    index = kc.log.read_time_index(copy.with_suffix(".timeindex"))
    moved = indexes.encode_time_index(index["timestamp"] - 60_000, index["offset"], index.base_offset)
    copy.with_suffix(".timeindex").write_bytes(moved)
    assert assert_right(copy)


@pytest.mark.slow
def test_every_kind_of_damage_to_the_index_bytes(copy):
    rng = random.Random(4)
    for suffix in (".index", ".timeindex"):
        whole = copy.with_suffix(suffix).read_bytes()
        for _ in range(25):
            data = bytearray(whole)
            for _ in range(rng.randint(1, 4)):
                data[rng.randrange(len(data))] = rng.randrange(256)
            copy.with_suffix(suffix).write_bytes(data[: rng.choice([len(data), rng.randrange(len(data))])])
            assert_right(copy)
        copy.with_suffix(suffix).write_bytes(whole)


def test_damaged_batch_before_the_place_is_jumped_over_by_the_index(copy):
    index = kc.log.read_offset_index(copy.with_suffix(".index"))
    data = bytearray(copy.read_bytes())
    data[8:12] = b"\xff\xff\xff\xff"  # the length of the first batch
    copy.write_bytes(data)
    offset = int(index["offset"][-1])
    got = next(kc.log.Segment(copy).ranges(start_offset=offset)[0].read(include_control=True))
    assert got["offset"][0] == offset


def test_start_by_time_touches_little_of_a_large_segment(tmp_path):
    """Pages of a sparse 1 GiB file that were read, by the process's resident memory."""
    batch = bytearray(kc.encode([(b"k", b"v" * 16_000)], base_offset=0))
    size, step = 1 << 30, len(batch)
    path = tmp_path / "00000000000000000000.log"
    offsets = np.arange(size // step)
    with open(path, "wb") as file:
        wanted = offsets[-40:]
        file.truncate(len(offsets) * step)
        for offset in wanted.tolist():
            file.seek(offset * step)
            records = kc.encode([kc.Record(offset, offset * 1000, 0, b"k", b"v" * 16_000, ())], base_offset=offset)
            assert len(records) == step
            file.write(records)
    keep = offsets[-40::2]
    path.with_suffix(".index").write_bytes(indexes.encode_offset_index(keep, keep * step, 0))
    path.with_suffix(".timeindex").write_bytes(indexes.encode_time_index(keep * 1000, keep, 0))
    segment = kc.log.Segment(path)
    with files.MappedFile(str(path)) as file:
        found = lookup.Lookup(file, 0)
        target = int(offsets[-20])
        assert found.offset_of_timestamp(target * 1000) == target
        with open("/proc/self/smaps") as maps:
            text = maps.read().split(str(path))[1]
        resident = next(int(line.split()[1]) for line in text.splitlines() if line.startswith("Rss:"))
    assert resident < 1024
    assert segment.index_problems == []
