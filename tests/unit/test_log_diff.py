"""Differences between two copies of a log, against comparisons of their records one by one."""

import random
import shutil
from collections import Counter

import pytest

import kafkacodec as kc
from kafkacodec.log.analysis import difference
from kafkacodec.log.analysis.difference import ChangedRecord, OffsetRange, compare
from kafkacodec.records.comparing import COMPARED
from tests.corpus import ROOT, log_directories, sample, segments
from tests.dialect_vectors import ROOT as DIALECTS

BROKER = ROOT / "logs" / "kraft-4.1.0"
NAME = "00000000000000000000.log"


def one(a, b, **options):
    (found,) = kc.log.diff(a, b, **options)
    return found


def log_of(directory, rows, *, codec="none", batch_rows=7):
    """A partition of rows (offset, timestamp, key, value, headers); consecutive offsets share batches."""
    directory.mkdir(parents=True, exist_ok=True)
    runs = []
    for row in rows:
        if runs and row[0] == runs[-1][-1][0] + 1 and len(runs[-1]) < batch_rows:
            runs[-1].append(row)
        else:
            runs.append([row])
    data = b"".join(
        kc.encode(
            [kc.Record(offset, time, 0, key, value, headers) for offset, time, key, value, headers in run],
            base_offset=run[0][0],
            codec=codec,
        )
        for run in runs
    )
    (directory / NAME).write_bytes(data)
    return directory


@pytest.mark.parametrize("directory", log_directories(), ids=lambda path: path.name)
def test_a_directory_equals_itself(directory):
    found = list(kc.log.diff(directory, directory))
    assert all(part.equal for part in found)
    by_path = Counter()
    for item in segments(writer=directory.name):
        if item.path.suffix == ".log":
            by_path[str(item.path.parent)] += len(item.expected.records)
    for part in found:
        if part.a in by_path:
            assert part.equal_records == part.a_records == part.b_records == by_path[part.a]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_batches_and_codecs_do_not_count(tmp_path, codec):
    records = [(r.offset, r.timestamp, r.key, r.value, r.headers) for r in rows_of(BROKER / "mixed-0")]
    copy = log_of(tmp_path / "mixed-0", records, codec=codec, batch_rows=31)
    found = one(BROKER / "mixed-0", copy)
    assert found.equal
    assert found.equal_records == len(records) == 224


def rows_of(path):
    return [row for chunk in kc.log.Partition(path).read() for row in chunk.records()]


def random_log(rnd):
    rows, offset = [], rnd.randrange(5)
    for _ in range(rnd.randrange(1, 60)):
        offset += 1 if rnd.random() < 0.8 else rnd.randrange(1, 9)
        rows.append([offset, 1_700_000_000_000 + rnd.randrange(5), *content(rnd)])
    return rows


def content(rnd):
    key = rnd.choice([None, b"", b"k", b"key"])
    value = rnd.choice([None, b"", b"a", b"b", b"value" * rnd.randrange(4)])
    headers = rnd.choice([[], [], [("h", b"1")], [("h", None)], [("h", b"1"), ("i", b"")], [("ü", b"1")]])
    return [key, value, headers]


@pytest.mark.parametrize("seed", range(60))
def test_any_two_logs(tmp_path, monkeypatch, seed):
    """With chunks of a few rows, so that they never end at the same offsets."""
    rnd = random.Random(seed)
    monkeypatch.setattr(difference, "_ROWS", rnd.choice([1, 2, 5, 1000]))
    a = random_log(rnd)
    b = [list(row) for row in a if rnd.random() < 0.9] if seed % 3 else random_log(rnd)
    for row in b:
        if rnd.random() < 0.2:
            row[1:] = [1_700_000_000_000 + rnd.randrange(5), *content(rnd)]
    b = b or [a[0]]
    found = one(log_of(tmp_path / "t-0", a), log_of(tmp_path / "b" / "t-0", b, codec="lz4", batch_rows=3))
    left, right = {row[0]: tuple(row[1:]) for row in a}, {row[0]: tuple(row[1:]) for row in b}
    changed = [
        ChangedRecord(
            offset,
            tuple(
                name for name, mine, theirs in zip(COMPARED, left[offset], right[offset], strict=True) if mine != theirs
            ),
        )
        for offset in sorted(left.keys() & right.keys())
        if left[offset] != right[offset]
    ]
    assert found.records == changed
    assert found.changed_columns == Counter(name for record in changed for name in record.columns)
    assert found.equal_records == len(left.keys() & right.keys()) - len(changed)
    assert spans(found.a_ranges) == runs_of(left, right)
    assert spans(found.b_ranges) == runs_of(right, left)
    assert (found.a_only, found.b_only) == (len(left.keys() - right.keys()), len(right.keys() - left.keys()))
    assert found.equal == (left == right)


def spans(ranges):
    """Ranges without their causes, at which they are cut too."""
    return [offset for part in ranges for offset in (part.first_offset, part.last_offset, part.num_records)]


def runs_of(mine, theirs):
    """The same by hand: runs of records that only `mine` has, cut where the other log starts and ends."""
    start, end = 0, max(theirs) + 1  # the segment's name says 0
    runs, before = [], None
    for offset in sorted(mine):
        cause = (offset < start, offset >= end)
        if offset in theirs:
            before = None
            continue
        if before != cause:
            runs.append([offset, offset, 0])
        before = cause
        runs[-1][1] = offset
        runs[-1][2] += 1
    return [number for run in runs for number in run]


def test_null_and_empty_differ(tmp_path):
    a = log_of(tmp_path / "t-0", [(0, 5, None, b"", [("h", None)]), (1, 5, b"", None, [])])
    b = log_of(tmp_path / "b" / "t-0", [(0, 5, b"", b"", [("h", b"")]), (1, 5, b"", b"", [])])
    assert one(a, b).records == [ChangedRecord(0, ("key", "headers")), ChangedRecord(1, ("value",))]


def test_a_truncated_copy_ends_before(tmp_path):
    cut = "logs/truncated/kraft-4.1.0/gzip-0"
    kept = sample(f"{cut}/00000000000000000157.log").expected.records
    whole = [r for s in segments(writer="kraft-4.1.0") if "/gzip-0/" in s.name for r in s.expected.records]
    found = one(BROKER / "gzip-0", ROOT / cut)
    last = kept[-1].offset
    assert found.a_ranges == [
        OffsetRange(0, 156, 157, "start"),
        OffsetRange(last + 1, whole[-1].offset, whole[-1].offset - last, "end"),
    ]
    assert found.equal_records == len(kept)
    assert one(ROOT / cut, BROKER / "gzip-0").b_ranges == found.a_ranges


def test_a_compacted_copy_lacks_what_the_cleaner_removed(tmp_path):
    """The cleaner's checkpoint is beside the copy, as in a log directory."""
    compacted = kc.log.Partition(BROKER / "compact-gzip-0")
    kept = [(r.offset, r.timestamp, r.key, r.value, r.headers) for r in rows_of(compacted.path)]
    first, last = kept[0][0], kept[-1][0]
    have = {row[0] for row in kept}
    filled = sorted([*kept, *((o, 5, b"k", b"v", []) for o in range(first, last) if o not in have)])
    older = log_of(tmp_path / "compact-gzip-0", filled)
    found = one(older, compacted)
    assert compacted.cleaned_to > first
    assert found.a_only == len(filled) - len(kept)
    assert found.equal_records == len(kept)
    for part in found.a_ranges:
        assert part.cause == ("compacted" if part.first_offset < compacted.cleaned_to else "missing")
    assert {part.cause for part in found.a_ranges} >= {"compacted"}


def test_partitions_of_one_side(tmp_path):
    for name in ("gzip-0", "lz4-0"):
        shutil.copytree(BROKER / name, tmp_path / "a" / name)
    for name in ("lz4-0", "none-0"):
        shutil.copytree(BROKER / name, tmp_path / "b" / name)
    gzip, lz4, none = kc.log.diff(tmp_path / "a", tmp_path / "b")
    assert (gzip.topic, gzip.b, gzip.a_only, gzip.equal) == ("gzip", None, 206, False)
    assert lz4.equal
    assert (none.topic, none.a, none.b_only, none.equal) == ("none", None, 174, False)
    old = ROOT / "logs" / "v0-0.8.2.2" / "gzip-0"
    counted = sum(len(s.expected.records) for s in segments(writer="v0-0.8.2.2") if "/gzip-0/" in s.name)
    found = list(kc.log.diff([kc.log.Partition(old)], []))
    assert [(part.a_only, part.b) for part in found] == [(counted, None)]
    with pytest.raises(ValueError, match="the same partition"):
        list(kc.log.diff([kc.log.Partition(old), kc.log.Partition(BROKER / "gzip-0")], tmp_path / "a"))


def test_damage_is_a_problem_and_no_equality(tmp_path):
    shutil.copytree(BROKER / "zstd-0", tmp_path / "zstd-0")
    batches = sample(f"logs/kraft-4.1.0/zstd-0/{NAME}").expected.batches
    path = tmp_path / "zstd-0" / NAME
    data = bytearray(path.read_bytes())
    data[batches[2]["position"] + 70] ^= 1
    path.write_bytes(data)
    found = one(BROKER / "zstd-0", tmp_path / "zstd-0")
    first, last = batches[2]["baseOffset"], batches[2]["lastOffset"]
    assert [part[:3] for part in found.a_ranges] == [(first, last, last - first + 1)]
    assert [type(problem) for problem in found.problems] == [kc.CrcMismatch]
    both = one(path, path)
    assert (both.a_only, both.changed, both.equal, len(both.problems)) == (0, 0, False, 2)


def test_offsets_that_go_back_are_a_problem(tmp_path):
    rows = [(offset, 5, None, b"v", []) for offset in range(4)]
    log_of(tmp_path / "a-0", rows)
    data = (tmp_path / "a-0" / NAME).read_bytes()
    (tmp_path / "a-0" / NAME).write_bytes(data + data)
    found = one(tmp_path / "a-0", log_of(tmp_path / "b-0", rows))
    assert (found.a_records, found.equal_records, found.equal) == (4, 4, False)
    assert "a base offset of 0 is wrong" in str(found.problems[0])


def test_messages_of_kafka_07(tmp_path):
    """Compressed messages share an offset."""
    source = DIALECTS / "kafka07/segments/broker-0/orders-1"
    found = one(source, source)
    count = sum(len(chunk) for chunk in kc.log.Partition(source).read())
    assert (found.equal, found.equal_records) == (True, count)
    offsets = [o for chunk in kc.log.Partition(source).read() for o in chunk["offset"].tolist()]
    assert len(set(offsets)) < len(offsets)
    shutil.copytree(source, tmp_path / "orders-1")
    (path,) = (tmp_path / "orders-1").glob("*.kafka")
    path.write_bytes(path.read_bytes()[: offsets[-1]])
    shorter = one(source, tmp_path / "orders-1")
    assert shorter.a_only == offsets.count(offsets[-1])
    assert shorter.equal_records == count - shorter.a_only


def test_lists_are_limited_and_counts_are_not(tmp_path):
    a = log_of(tmp_path / "a-0", [(offset, 5, None, b"a", []) for offset in range(0, 100, 2)])
    b = log_of(tmp_path / "b-0", [(offset, 5, None, b"b", []) for offset in range(0, 200, 4)])
    found = one(a, b, limit=3)
    assert (len(found.records), found.changed) == (3, 25)
    assert (len(found.a_ranges), found.a_only, len(found.b_ranges), found.b_only) == (3, 25, 1, 25)
    assert found.b_ranges == [OffsetRange(100, 196, 25, "end")]
    none = one(a, b, limit=0)
    assert (none.records, none.a_ranges, none.a_only, none.equal) == ([], [], 25, False)
    assert compare(kc.log.Partition(a), kc.log.Partition(b), 3).to_dict()["a_ranges"][0]["first_offset"] == 2
