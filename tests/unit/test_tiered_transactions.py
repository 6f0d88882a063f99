"""Transactions and times in tiered storage where uploads of several leaders have the same offsets."""

import pytest

import kafkacodec as kc
from tests.tiered_uploads import TOPIC, records, snapshot, upload


@pytest.fixture
def directory(tmp_path):
    found = tmp_path / TOPIC / "0"
    found.mkdir(parents=True)
    return found


def marker(kind, offset, producer, epoch):
    return kc.control_batch(kind, offset=offset, producer_id=producer, producer_epoch=0, partition_leader_epoch=epoch)


def committed(path, **options):
    return [
        offset
        for chunk in kc.log.Partition(path).read(isolation_level="read_committed", **options)
        for offset in chunk["offset"].tolist()
    ]


@pytest.mark.parametrize("fate", ["abort", "open"])
@pytest.mark.parametrize("start", [None, 20, 110])
def test_transactions_of_a_truncated_end_do_not_count(directory, tmp_path, fate, start):
    """The first leader's log has offsets from 60 on that were lost with it; the second one's has others."""
    before = [records(0, 20, 0), records(20, 10, 0, producer=1), records(30, 10, 0)]
    both = [records(40, 20, 0)]
    lost = [marker("abort", 60, 1, 0), records(61, 39, 0)] if fate == "abort" else [records(60, 40, 0, producer=2)]
    kept = [marker("commit", 60, 1, 1), records(61, 89, 1)]
    open_from = 60 if fate == "open" else -1
    upload(directory, "A", {0: 0}, [*before, *both, *lost], {0: 0}, snapshot(2, open_from))
    upload(directory, "B", {0: 40, 1: 60}, [*both, *kept], {0: 0, 1: 60}, snapshot(1, -1))
    expected = [offset for offset in range(start or 0, 150) if offset != 60]
    options = {} if start is None else {"start_offset": start}
    assert committed(directory, **options) == expected
    assert kc.log.Partition(directory).last_stable_offset() == 150
    [found] = kc.log.statistics(directory)
    assert (found.aborted_transactions, found.open_transactions) == (0, 0)
    assert [finding for finding in kc.log.Partition(directory).verify().findings if finding.level != "note"] == []
    assert kc.log.recover(directory, tmp_path / "log").ok
    assert committed(tmp_path / "log" / "t-0", **options) == expected


def test_a_time_is_not_looked_up_in_a_truncated_end(directory):
    def at(first, count, time, epoch):
        rows = [kc.Record(offset, time + offset, 0, b"k", b"v", []) for offset in range(first, first + count)]
        return kc.encode(rows, base_offset=first, partition_leader_epoch=epoch)

    both = [at(40, 20, 0, 0)]
    upload(directory, "A", {0: 0}, [at(0, 40, 0, 0), *both, at(60, 40, 500, 0)], {0: 0})
    upload(directory, "B", {0: 40, 1: 60}, [*both, at(60, 90, 1000, 1)], {0: 0, 1: 60})
    partition = kc.log.Partition(directory)
    assert partition.offset_of_timestamp(570) == 60
    assert partition.offset_of_timestamp(50) == 50
    assert next(chunk["offset"][0] for chunk in partition.read(start_timestamp=570)) == 60
