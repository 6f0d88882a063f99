"""Statistics of records, compared with the records that Kafka's reader lists, and with plain counting."""

import random
from collections import Counter

import numpy as np
import pytest

import kafkacodec as kc
from kafkacodec.log.analysis.histograms import MAX_BUCKETS, NO_TIME, SizeHistogram, TimeHistogram
from tests.corpus import ROOT, Digest, segments

pa = pytest.importorskip("pyarrow")

from kafkacodec.log.analysis.key_statistics import KeyStatistics  # noqa: E402

COLUMNS = ("timestamp", "key", "value")
TOPICS = [
    "kraft-4.1.0/zstd-0",
    "kraft-4.1.0/txn-0",
    "v2-0.11.0.3/lz4-0",
    "v1-0.10.2.2/broker-gzip-0",
    "v0-0.8.2.2/mixed-0",
]


def size(value):
    return 0 if value is None else value.size if isinstance(value, Digest) else len(value)


def bits(value):
    return value.bit_length()


@pytest.mark.parametrize("place", TOPICS)
def test_statistics_are_those_of_the_sidecar_records(place):
    partition = kc.log.Partition(ROOT / "logs" / place)
    files = [s for s in segments() if s.path.parent == ROOT / "logs" / place]
    start = partition.log_start_offset
    rows = [r for s in files for r in s.expected.records if not r.is_control and r.offset >= start]
    assert rows
    found = kc.log.record_statistics(partition.read(columns=COLUMNS))
    assert found.num_records == len(rows)
    assert found.key_bytes == sum(size(r.key) for r in rows)
    assert found.value_bytes == sum(size(r.value) for r in rows)
    assert found.tombstones == sum(r.value is None and r.key is not None for r in rows)
    assert found.null_values == sum(r.value is None for r in rows)
    sizes = Counter(bits(size(r.value)) for r in rows if r.value is not None)
    assert dict(enumerate(found.value_sizes.counts)) == {i: sizes[i] for i in range(64)}
    keys, sizes = Counter(r.key for r in rows), Counter()
    for r in rows:
        sizes[r.key] += size(r.key) + size(r.value)
    assert (found.keys.keyless_records, found.keys.keyless_bytes) == (keys.pop(None, 0), sizes.pop(None, 0))
    assert (found.keys.num_keys, found.keys.exact) == (len(keys), True)
    every = found.keys.top(10**6)
    assert {k.key: (k.records, k.size_in_bytes) for k in every} == {k: (keys[k], sizes[k]) for k in keys}
    assert [k.records for k in every] == sorted(keys.values(), reverse=True)
    assert [k.size_in_bytes for k in found.keys.top(3, by="bytes")] == sorted(sizes.values(), reverse=True)[:3]
    times = Counter(r.timestamp for r in rows)
    assert found.times.without_time == times.pop(None, 0)
    assert dict(zip(found.times.starts.tolist(), found.times.records.tolist(), strict=True)) == times


def test_nothing_to_count():
    found = kc.log.record_statistics([])
    plain = found.to_dict()
    assert (plain["num_records"], plain["keys"]["by_records"], plain["times"]["starts"]) == (0, [], [])
    assert plain["value_sizes"] == {"count": 0, "total": 0, "smallest": None, "largest": None, "buckets": []}


@pytest.mark.parametrize("by", ["records", "bytes"])
def test_hot_keys_among_more_keys_than_fit(by):
    rng = random.Random(5)
    keys = [b"hot-%d" % i for i in range(5) for _ in range(4000 * (i + 1))] + [b"cold-%d" % i for i in range(40_000)]
    rng.shuffle(keys)
    sizes = np.array([rng.randrange(1, 9) for _ in keys], np.int64)
    true = Counter(keys) if by == "records" else Counter()
    if by == "bytes":
        for key, count in zip(keys, sizes.tolist(), strict=True):
            true[key] += count
    found = KeyStatistics(max_keys=1000)
    for start in range(0, len(keys), 5000):
        found.add(pa.array(keys[start : start + 5000], pa.binary()), sizes[start : start + 5000])
        found.num_keys  # noqa: B018  # merges, which otherwise waits for more rows
    assert not found.exact
    assert 1000 < found.num_keys <= len(true)
    assert len(found.top(10**6)) <= 1000
    error = found.records_error if by == "records" else found.bytes_error
    # Each time keys are dropped, the error is subtracted from more than half of max_keys counters.
    assert 0 < error <= sum(true.values()) / 500
    top = found.top(5, by=by)
    assert [k.key for k in top] == [b"hot-%d" % i for i in (4, 3, 2, 1, 0)]
    for use in found.top(1000, by=by):
        count = use.records if by == "records" else use.size_in_bytes
        assert count <= true[use.key] <= count + error


def test_only_rare_keys_leave_nothing_to_list():
    found = KeyStatistics(max_keys=10)
    for i in range(100):
        found.add(pa.array([b"%d" % i], pa.binary()), np.array([5]))
        found.num_keys  # noqa: B018
    assert (found.num_keys, found.exact) == (11, False)
    for by in ("records", "bytes"):
        for use in found.top(100, by=by):
            assert 0 < use.records <= 1
            assert 0 < use.size_in_bytes <= 5


def test_large_keys_are_bounded_by_their_bytes():
    found = KeyStatistics(max_key_bytes=100_000)
    for i in range(300):
        keys = pa.array([bytes([i % 256, i // 256]) * 1000, b"hot"], pa.binary())
        found.add(keys, np.ones(2, np.int64))
        found.num_keys  # noqa: B018
    assert len(found.top(1000)) < 100
    assert found.top(1)[0].key == b"hot"


def test_times_are_joined_to_wider_buckets_exactly():
    rng = np.random.default_rng(3)
    times = rng.integers(1_700_000_000_000, 1_700_000_000_000 + 40 * 86_400_000, 3 * MAX_BUCKETS)
    sizes = rng.integers(0, 1000, len(times))
    found = TimeHistogram()
    for part in np.array_split(np.arange(len(times)), 7):
        found.add(times[part], np.ones(len(part), np.int64), sizes[part])
    assert len(found.starts) <= MAX_BUCKETS
    shown = found.between(50)
    assert shown.width == 86_400_000
    days = Counter((times // 86_400_000).tolist())
    starts, records, _ = shown.filled()
    assert {s // 86_400_000: r for s, r in zip(starts.tolist(), records.tolist(), strict=True)} == days
    assert int(shown.size_in_bytes.sum()) == int(sizes.sum())


def test_extreme_times_cost_no_resolution():
    times = np.array([NO_TIME, -1, 0, 5, 5, 7000, (1 << 63) - 1, NO_TIME + 1], np.int64)
    found = TimeHistogram()
    found.add(times, np.ones(8, np.int64), np.arange(8))
    assert (found.without_time, found.bytes_without_time, found.width) == (2, 1, 1)
    assert found.starts.tolist() == [NO_TIME + 1, 0, 5, 7000, (1 << 63) - 1]
    assert found.records.tolist() == [1, 1, 2, 1, 1]
    few = found.between(10)
    assert int(few.records.sum()) == 6
    assert len(few.filled()[0]) <= 11


def test_a_few_wrong_times_are_left_out_of_a_plot():
    found = TimeHistogram()
    good = np.arange(1_700_000_000_000, 1_700_000_100_000, 10)
    found.add(good, np.ones(len(good), np.int64), np.ones(len(good), np.int64))
    assert found.without_outliers() == (found, 0)
    near, far = [good[0] - 50_000, good[-1] + 60_000], [3, 1 << 60, NO_TIME + 1, (1 << 63) - 1]
    found.add(np.array(near + far), np.ones(6, np.int64), np.ones(6, np.int64))
    shown, outside = found.without_outliers()
    assert outside == len(far)
    assert shown.starts.tolist() == [near[0], *good.tolist(), near[1]]


def test_merged_histograms_are_those_of_all():
    one, two, both = TimeHistogram(), TimeHistogram(), TimeHistogram()
    for part, times in ((one, [1, 2, 2000]), (two, [2, 90_000])):
        for histogram in (part, both):
            histogram.add(np.array(times), np.ones(len(times), np.int64), np.array(times))
    two = two.between(2)
    one.merge(two)
    assert one.to_dict() == both.between(2).to_dict()
    sizes, others = SizeHistogram(), SizeHistogram()
    sizes.add(np.array([0, 1, 2, 3]))
    others.add(np.array([4, 1023]))
    sizes.merge(others)
    assert sizes.buckets()[:4] == [(0, 1, 1), (1, 2, 1), (2, 4, 2), (4, 8, 1)]
    assert (sizes.count, sizes.total, sizes.smallest, sizes.largest) == (6, 1033, 0, 1023)
