"""Statistics of partitions, compared with what Kafka's reader found in the same files."""

import shutil
from collections import Counter, defaultdict
from pathlib import Path

import pytest

import kafkacodec as kc
from kafkacodec.log.analysis import batch_rows
from kafkacodec.log.analysis.batch_totals import MAX_PRODUCERS
from kafkacodec.log.analysis.partition_statistics import partition_statistics
from tests import hostile_trees
from tests.corpus import ROOT, log_directories, sample, segments
from tests.dialect_vectors import ROOT as DIALECTS

BROKER = ROOT / "logs" / "kraft-4.1.0"
DIRECTORIES = pytest.mark.parametrize("directory", log_directories(), ids=lambda path: path.name)


def batches_by_partition(directory):
    """The sidecar's batches and records of every partition, in the order of the log."""
    found = defaultdict(lambda: ([], []))
    for item in sorted(segments(writer=directory.name), key=lambda s: s.name):
        if item.path.suffix == ".log":
            batches, records = found[str(item.path.parent)]
            batches += item.expected.batches
            records += item.expected.records
    return found


def is_set(batch):
    """Whether the header lacks the first offset and the number of records: a compressed set of magic 0 or 1."""
    return batch["magic"] < 2 and batch["codec"] != "none"


@DIRECTORIES
def test_headers_add_up(directory):
    found = {s.path: s for s in kc.log.statistics(directory)}
    expected = batches_by_partition(directory)
    assert expected.keys() <= found.keys()
    for path, (batches, records) in expected.items():
        mine = found[path]
        times = [b["maxTimestamp"] for b in batches if b["maxTimestamp"] != -1 and not b["isControl"]]
        first = next((record.timestamp for record in records if not record.is_control), None)
        sizes = [b["sizeInBytes"] for b in batches]
        known = not any(map(is_set, batches))
        assert (mine.num_batches, mine.batch_bytes) == (len(batches), sum(sizes))
        assert mine.num_records == (len(records) if known else None)
        assert mine.first_offset == (None if is_set(batches[0]) else batches[0]["baseOffset"])
        assert mine.last_offset == batches[-1]["lastOffset"]
        assert mine.last_timestamp == max(times, default=None)
        assert mine.first_timestamp in (None, first)
        assert mine.formats == Counter(f"v{b['magic']}/{b['codec']}" for b in batches)
        assert sum(mine.codec_bytes.values()) == sum(sizes)
        assert (mine.smallest_batch, mine.largest_batch) == (min(sizes), max(sizes))
        assert [n for n, count in enumerate(mine.batch_sizes) for _ in range(count)] == sorted(
            size.bit_length() - 1 for size in sizes
        )
        assert mine.transactional_batches == sum(b["isTransactional"] for b in batches)
        assert mine.control_batches == sum(b["isControl"] for b in batches)
        assert mine.control_records == sum(record.is_control for record in records)
        assert mine.producers == {b["producerId"] for b in batches} - {-1}
        assert (mine.problems, mine.damaged, mine.invalid_headers, mine.missing_offsets) == ([], False, 0, 0)
        assert mine.tombstones is mine.compression_ratio is mine.crc_failures is None
        if known:
            assert mine.absent_offsets == batches[-1]["lastOffset"] - batches[0]["baseOffset"] + 1 - len(records)


def test_the_first_time_is_known_for_most_new_batches():
    """So that the comparison above is not always with None."""
    found = kc.log.statistics(BROKER)
    assert sum(s.first_timestamp is not None for s in found if s.num_batches) > 0.9 * len(found)


@DIRECTORIES
def test_records_add_up(directory):
    found = {s.path: s for s in kc.log.statistics(directory, records=True)}
    for path, (_, records) in batches_by_partition(directory).items():
        mine = found[path]
        data = [record for record in records if not record.is_control]
        assert mine.num_records == len(records)
        assert (mine.first_offset, mine.last_offset) == (records[0].offset, records[-1].offset)
        assert mine.tombstones == sum(record.value is None and record.key is not None for record in data)
        assert mine.num_keys == sum(record.key is not None for record in data)
        assert mine.key_bytes == sum(len(record.key or b"") for record in data)
        assert mine.value_bytes == sum(value_size(record.value) for record in data)
        times = [record.timestamp for record in data if record.timestamp is not None]
        assert mine.last_timestamp == max(times, default=None)
        assert not mine.damaged


def value_size(value):
    return 0 if value is None else value.size if hasattr(value, "sha256") else len(value)


@pytest.mark.parametrize("topic", ["gzip", "lz4", "zstd", "snappy", "none"])
def test_size_without_compression_is_that_of_the_format(topic):
    """Record by record as KIP-98 lays them out, from what Kafka's reader found."""
    (mine,) = kc.log.statistics(BROKER / f"{topic}-0", records=True)
    batches, records = batches_by_partition(BROKER)[str(BROKER / f"{topic}-0")]
    first = 0
    size = 0
    for batch in batches:
        size += 61
        for record in records[first : first + batch["count"]]:
            fields = [record.key, record.value, *(part for k, v in record.headers for part in (k.encode(), v))]
            body = 1 + sum(map(field_size, fields)) + varint(len(record.headers))
            body += varint(record.timestamp - batch["baseTimestamp"]) + varint(record.offset - batch["baseOffset"])
            size += varint(body) + body
        first += batch["count"]
    assert mine.uncompressed_bytes == size
    assert mine.compression_ratio == size / sum(batch["sizeInBytes"] for batch in batches)


def field_size(value):
    return varint(-1) if value is None else varint(value_size(value)) + value_size(value)


def varint(number):
    zigzag = number << 1 if number >= 0 else (-number << 1) - 1
    return max(1, -(-zigzag.bit_length() // 7))


@DIRECTORIES
def test_aborted_transactions_are_those_with_a_marker(directory):
    found = {s.path: s for s in kc.log.statistics(directory)}
    for path, (_, records) in batches_by_partition(directory).items():
        markers = [r for r in records if r.is_control and int.from_bytes(r.key[2:4], "big") == 0]
        assert found[path].aborted_transactions == len(markers)


def test_open_transactions_are_counted():
    assert kc.log.statistics(BROKER / "txn-open-0")[0].open_transactions > 0
    assert kc.log.statistics(BROKER / "txn-0")[0].open_transactions == 0
    assert kc.log.statistics(BROKER / "txn-0")[0].aborted_transactions > 0


def test_topics_sum_up_their_partitions():
    partitions = kc.log.statistics(BROKER)
    topics = kc.log.per_topic(partitions)
    assert [t.topic for t in topics] == kc.log.LogDirectory(BROKER).topics
    several = next(t for t in topics if t.topic == "partitions")
    parts = [p for p in partitions if p.topic == "partitions"]
    assert (several.num_partitions, len(parts)) == (3, 3)
    assert (several.partition, several.first_offset, several.last_offset) == (None, None, None)
    assert several.num_records == sum(p.num_records for p in parts)
    assert several.num_offsets == sum(p.num_offsets for p in parts)
    assert several.first_timestamp == min(p.first_timestamp or 0 for p in parts) > 0
    assert several.last_timestamp == max(p.last_timestamp or 0 for p in parts)
    assert several.batch_sizes == [sum(counts) for counts in zip(*(p.batch_sizes for p in parts), strict=True)]
    everything = kc.log.merge_statistics(partitions)
    assert everything.num_partitions == len(partitions)
    assert everything.size_in_bytes == sum(p.size_in_bytes for p in partitions)
    assert kc.log.merge_statistics([]).num_partitions == 0


def test_torn_and_unused_tails_are_no_damage():
    path = "logs/truncated/kraft-4.1.0/gzip-0/00000000000000000157.log"
    (mine,) = kc.log.statistics(ROOT / path)
    assert mine.trailing_bytes == sample(path).expected.trailing_bytes > 0
    assert not mine.damaged
    (live,) = kc.log.statistics(ROOT / "logs" / "kraft-4.1.0-live")
    unused = sum(item.expected.trailing_bytes for item in segments(writer="kraft-4.1.0-live"))
    assert (live.trailing_bytes, live.damaged) == (unused, False)
    assert unused > 0


def test_damage_is_counted_and_reading_goes_on(tmp_path):
    name = "logs/kraft-4.1.0/zstd-0/00000000000000000000.log"
    batches = sample(name).expected.batches
    data = bytearray(sample(name).data())
    lost = batches[3]
    data[lost["position"] + 8 : lost["position"] + 12] = b"\xff\xff\xff\xff"  # a negative length
    path = tmp_path / "zstd-0" / "00000000000000000000.log"
    path.parent.mkdir()
    path.write_bytes(data)
    for records in (False, True):
        (mine,) = kc.log.statistics(path, records=records)
        assert mine.num_batches == len(batches) - 1
        assert mine.damaged_bytes == lost["sizeInBytes"]
        assert mine.missing_offsets == lost["count"]
        assert mine.num_records == sum(b["count"] for b in batches) - lost["count"]
        assert (len(mine.problems), mine.problems[0].position) == (1, lost["position"] + 8)
        assert str(path) in str(mine.problems[0])
        assert mine.damaged


def test_a_wrong_checksum_is_found_if_asked_for(tmp_path):
    name = "logs/kraft-4.1.0/zstd-0/00000000000000000000.log"
    batches = sample(name).expected.batches
    data = bytearray(sample(name).data())
    data[batches[2]["position"] + 80] ^= 1
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(data)
    assert kc.log.statistics(path)[0].crc_failures is None
    (mine,) = kc.log.statistics(path, verify_crc=True)
    assert (mine.crc_failures, mine.damaged, mine.num_batches) == (1, True, len(batches))
    (mine,) = kc.log.statistics(path, records=True)
    assert mine.damaged_bytes == batches[2]["sizeInBytes"]
    assert mine.num_records == sum(b["count"] for b in batches) - batches[2]["count"]
    assert mine.compression_ratio is None


def test_a_batch_with_a_wrong_offset_is_damage(tmp_path):
    """It was counted, while readers leave it out."""
    name = "logs/kraft-4.1.0/zstd-0/00000000000000000000.log"
    batches = sample(name).expected.batches
    data = bytearray(sample(name).data())
    at = batches[2]["position"]
    data[at : at + 8] = (5 << 40).to_bytes(8, "big")  # the base offset, which no checksum covers
    path = tmp_path / "zstd-0" / "00000000000000000000.log"
    path.parent.mkdir()
    path.write_bytes(data)
    for records in (False, True):
        (mine,) = kc.log.statistics(path, records=records)
        assert ["a base offset of" in str(problem) for problem in mine.problems] == [True]
        assert (mine.damaged_bytes, mine.invalid_headers) == (batches[2]["sizeInBytes"], 0)
        assert mine.num_records == sum(batch["count"] for batch in batches) - batches[2]["count"]
        assert mine.missing_offsets == mine.absent_offsets == batches[2]["count"]


def test_a_missing_segment_is_missing_offsets(tmp_path):
    directory = BROKER / "txn-0"
    copy = tmp_path / "txn-0"
    shutil.copytree(directory, copy)
    first, second, *_ = sorted(copy.glob("*.log"))
    third = sorted(copy.glob("*.log"))[2]
    second.unlink()
    (mine,) = kc.log.statistics(copy)
    (error,) = mine.problems
    assert isinstance(error, kc.MissingOffsets)
    assert mine.missing_offsets == int(third.stem) - int(second.stem) == mine.absent_offsets
    assert mine.gaps == 1
    assert error.path == str(first)


def test_what_is_no_segment_is_an_error_unless_it_has_the_name_of_one(tmp_path):
    path, named = tmp_path / "a.log", tmp_path / f"{0:020d}.log"
    for place in (path, named):
        place.write_bytes(b"not a log at all, but long enough to be one")
    with pytest.raises(kc.CorruptRecord, match="not a log segment"):
        kc.log.statistics(path)
    (mine,) = kc.log.statistics(named)
    assert mine.num_batches == 0
    assert mine.damaged
    path.write_bytes(b"")
    (mine,) = kc.log.statistics(path)
    assert (mine.num_records, mine.damaged, mine.first_offset, mine.absent_offsets) == (0, False, None, 0)


def test_messages_of_kafka_07_are_counted():
    for mine in kc.log.statistics(DIALECTS / "kafka07/segments/broker-0", records=True):
        chunks = [c for p in kc.log.discover(mine.path) for c in p.read()]
        assert mine.num_records == sum(map(len, chunks))
        assert mine.first_offset == min(int(path.stem) for path in Path(mine.path).glob("*.kafka"))
        assert (mine.num_offsets, mine.uncompressed_bytes, mine.damaged) == (None, None, False)
    headers = kc.log.statistics(DIALECTS / "kafka07/segments/broker-0")
    for mine in headers:
        assert (mine.num_records is None) == any(not name.endswith("/none") for name in mine.formats)
        assert mine.batch_bytes + mine.trailing_bytes == mine.size_in_bytes
    damaged = DIALECTS / "kafka07/segments/damaged/bad-crc-in-the-middle"
    assert kc.log.merge_statistics(kc.log.statistics(damaged, records=True)).damaged_bytes > 0


def test_producers_are_counted_up_to_a_limit(tmp_path):
    path = tmp_path / "00000000000000000000.log"
    rows = [(None, b"")]
    count = MAX_PRODUCERS + 5
    path.write_bytes(
        b"".join(kc.encode(rows, base_offset=i, producer_id=i, producer_epoch=0, base_sequence=0) for i in range(count))
    )
    (mine,) = kc.log.statistics(path)
    assert (len(mine.producers), mine.more_producers, mine.num_batches) == (MAX_PRODUCERS, True, count)
    assert mine.to_dict()["num_producers"] == MAX_PRODUCERS


def test_a_range_of_offsets_in_a_segment():
    segment = kc.log.Segment(BROKER / "none-0" / "00000000000000000000.log")
    expected = sample("logs/kraft-4.1.0/none-0/00000000000000000000.log").expected.batches
    inside = [b for b in expected if b["lastOffset"] >= 10 and b["baseOffset"] < 40]
    mine = kc.log.segment_statistics(segment, start_offset=10, end_offset=40)
    assert (mine.num_batches, mine.first_offset, mine.last_offset) == (
        len(inside),
        inside[0]["baseOffset"],
        inside[-1]["lastOffset"],
    )
    assert mine.gaps == mine.invalid_headers == 0


@pytest.mark.slow
def test_pieces_of_any_size_add_up_to_the_same(tmp_path, monkeypatch):
    """Most batches are larger than the smallest pieces; damage, torn tails and unused space are inside and at ends."""
    trees = [*log_directories(), ROOT / "logs/truncated/kraft-4.1.0", *(t for _, t in hostile_trees.damaged(tmp_path))]
    whole = [[s.to_dict() for s in kc.log.statistics(tree, verify_crc=True)] for tree in trees]
    for window in (1, 100, 5000):
        monkeypatch.setattr(batch_rows, "_WINDOW", window)
        pieces = [[s.to_dict() for s in kc.log.statistics(tree, verify_crc=True)] for tree in trees]
        assert pieces == whole, window


def test_segments_that_a_broker_deletes_meanwhile_do_not_count(tmp_path):
    copy = tmp_path / "txn-0"
    shutil.copytree(BROKER / "txn-0", copy)
    partition = kc.log.Partition(copy)
    first, second, *rest = [Path(segment.path) for segment in partition.segments]  # listed before they are deleted
    first.unlink()
    second.unlink()
    mine = partition_statistics(partition)
    expected = [
        b
        for item in segments(writer="kraft-4.1.0")
        for b in item.expected.batches
        if item.path.name in names(rest) and item.path.parent.name == "txn-0"
    ]
    assert (mine.num_segments, mine.num_batches) == (len(rest), len(expected))
    assert (mine.damaged, mine.first_offset) == (False, int(rest[0].stem))
    shutil.rmtree(copy)
    with pytest.raises(FileNotFoundError):
        partition_statistics(kc.log.Partition(copy))


def names(paths):
    return {path.name for path in paths}
