"""Offsets that damage took, as `verify` and `statistics` count them, compared with the batches Kafka's reader found."""

import shutil
from collections import defaultdict

import pytest

import kafkacodec as kc
from tests.corpus import log_directories, segments

DIRECTORIES = pytest.mark.parametrize("directory", log_directories(), ids=lambda path: path.name)


def partitions(directory):
    """Partition directory -> its segments with their sidecars, in order."""
    found = defaultdict(list)
    for item in sorted(segments(writer=directory.name), key=lambda item: item.name):
        if item.path.suffix == ".log" and item.expected.batches:
            found[item.path.parent].append(item)
    return found


def base_offset(item):
    return int(item.path.stem)


def num_records(item, i):
    """The number of records in a segment's batch; a compressed set of magic 0 or 1 has none in its header."""
    ends = [base_offset(item) - 1, *(batch["lastOffset"] for batch in item.expected.batches)]
    return sum(ends[:-1][i] < record.offset <= ends[1:][i] for record in item.expected.records)


def damaged(original, tmp_path, item, batch):
    """A copy of a partition, beside the checkpoints of its broker, in which the last byte of a batch is another."""
    copy = tmp_path / original.name
    for path in original.parent.iterdir():
        if path.is_file():
            shutil.copy(path, tmp_path)
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(original, copy)
    data = bytearray(item.data())
    data[batch["position"] + batch["sizeInBytes"] - 1] ^= 0x55
    (copy / item.path.name).write_bytes(data)
    (found,) = kc.log.discover(copy)
    return found


def counts(partition):
    """The damaged bytes and missing offsets of both."""
    report = partition.verify()
    (statistics,) = kc.log.statistics(partition, records=True)
    assert not report.ok
    assert statistics.damaged
    assert statistics.num_records == report.num_records
    return (report.damaged_bytes, report.missing_offsets), (statistics.damaged_bytes, statistics.missing_offsets)


def is_contiguous(item):
    """Whether every offset of a segment has a record, so that what a batch held is known from its neighbours."""
    offsets = [record.offset for record in item.expected.records]
    return offsets == list(range(base_offset(item), item.expected.batches[-1]["lastOffset"] + 1))


@DIRECTORIES
def test_a_damaged_batch_among_others(directory, tmp_path):
    exact = 0
    for original, items in partitions(directory).items():
        item = max(items, key=lambda item: len(item.expected.batches))
        batches = item.expected.batches
        if len(batches) < 3:
            continue
        i = len(batches) // 2
        before, lost, after = batches[i - 1 : i + 2]
        count = num_records(item, i)
        by_verify, by_statistics = counts(damaged(original, tmp_path, item, lost))
        assert by_verify == by_statistics
        assert by_verify[0] == lost["sizeInBytes"]
        assert count <= by_verify[1]
        if is_contiguous(item):
            exact += 1
            assert by_verify[1] == lost["lastOffset"] - before["lastOffset"] == count
        elif after["magic"] >= 2:
            assert by_verify[1] <= after["baseOffset"] - before["lastOffset"] - 1
    assert exact > 0


@DIRECTORIES
def test_a_damaged_batch_at_the_end_of_a_segment(directory, tmp_path):
    """The next segment shows where it ended, also in a compacted topic, whose gaps are not losses otherwise."""
    for original, items in partitions(directory).items():
        if len(items) < 2:
            continue
        item, following = items[0], items[1]
        lost = item.expected.batches[-1]
        by_verify, by_statistics = counts(damaged(original, tmp_path, item, lost))
        assert by_verify == by_statistics
        count = num_records(item, -1)
        assert count <= by_verify[1] <= base_offset(following) - base_offset(item)
        if is_contiguous(item):
            assert by_verify[1] == count


def test_headers_show_what_is_missing_before_a_compressed_set(tmp_path):
    """The first offset of a set of magic 0 or 1 is in its records alone."""
    tried = 0
    for item in segments(magics=(0, 1)):
        batches = item.expected.batches
        if item.path.suffix != ".log" or len(batches) < 3 or not is_contiguous(item):
            continue
        if batches[2]["magic"] >= 2 or batches[2]["codec"] == "none":
            continue
        data = bytearray(item.data())
        position = batches[1]["position"]
        data[position + 8 : position + 12] = b"\xff\xff\xff\xff"  # a negative length
        copy = tmp_path / str(tried) / item.path.name
        copy.parent.mkdir()
        copy.write_bytes(data)
        (found,) = kc.log.statistics(copy)
        assert found.missing_offsets == num_records(item, 1) > 0
        tried += 1
    assert tried > 10
