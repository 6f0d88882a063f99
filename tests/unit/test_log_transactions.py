"""Many aborted transactions: their index and the ranges without them, at a cost proportional to their number."""

from __future__ import annotations

import random

import numpy as np
import pytest

import kafkacodec as kc
from kafkacodec.log.partitions.inside import surroundings
from kafkacodec.log.reading.transactions import ABORTED, FINISHED, Transactions
from tests.corpus import ROOT


class Counted(np.ndarray):
    """An array that counts the elements of all arrays made from it."""

    elements = 0

    def __array_finalize__(self, made_of):
        Counted.elements += self.size


def overlapping(count, producers=1000, *, rng=None):
    """Transactions that end one after the other, while later ones are open; some are aborted, some never end."""
    rng = rng or random.Random(count)
    spans = [(producer % producers, 3 * producer, 3 * producer + 5 + rng.randrange(40)) for producer in range(count)]
    ends = {}
    for producer, first, last in spans:
        while last in ends:
            last += 1
        ends[last] = (producer, first, last)
    spans = [ends[last] for last in sorted(ends)]
    aborted = np.array([span for span in spans if rng.random() < 0.8], ABORTED)
    aborted = aborted[np.lexsort((aborted["first_offset"], aborted["producer_id"]))]
    finished = np.array(spans, FINISHED)
    return aborted, finished, {1 << 40: 3 * count, 1 << 41: rng.randrange(3 * count)}


@pytest.mark.parametrize("seed", range(5))
def test_stable_offsets_are_those_of_what_ran_when_the_marker_came(seed):
    """By definition: the first offset of the oldest open transaction, or else the offset after the marker."""
    aborted, finished, open_ones = overlapping(200, rng=random.Random(seed))
    entries = Transactions(aborted, open_ones, finished).index_entries(50, 500)
    assert sorted(entries["last_offset"].tolist()) == entries["last_offset"].tolist()
    assert set(entries["last_offset"].tolist()) == {m for m in aborted["last_offset"].tolist() if 50 <= m < 500}
    for marker, stable in zip(entries["last_offset"].tolist(), entries["last_stable_offset"].tolist(), strict=True):
        running = [first for _, first, last in finished.tolist() if first < marker < last]
        running += [first for first in open_ones.values() if first < marker]
        assert stable == min(running, default=marker + 1)


def work(count, act):
    aborted, finished, open_ones = overlapping(count)
    transactions = Transactions(aborted.view(Counted), open_ones, finished.view(Counted))
    Counted.elements = 0
    act(transactions, count)
    return Counted.elements


def every_range(transactions, count):
    for first in range(0, 3 * count, 300):
        piece = kc.log.SegmentRange("t-0/0.log", "t", 0, 0, 1, first, first + 299)
        inside = transactions.exclude_aborted(piece).aborted
        assert all(last >= first and begin <= first + 299 for _, begin, last in inside)


@pytest.mark.parametrize(
    "act",
    [lambda transactions, count: transactions.index_entries(0, 1 << 50), every_range],
    ids=["index entries", "ranges"],
)
def test_work_grows_as_the_transactions_do(act):
    assert work(4000, act) < 2.5 * work(2000, act)
    assert work(8000, act) < 2.5 * work(4000, act)


def test_ranges_have_the_aborted_transactions_that_reach_into_them():
    aborted, finished, open_ones = overlapping(300, producers=7)
    transactions = Transactions(aborted, open_ones, finished)
    for first, last in ((0, 0), (0, 899), (100, 180), (450, None), (2000, None)):
        piece = kc.log.SegmentRange("t-0/0.log", "t", 0, 0, 1, first, last)
        expected = [a for a in aborted.tolist() if a[2] >= first and (last is None or a[1] <= last)]
        assert list(transactions.exclude_aborted(piece).aborted) == expected


def test_entries_are_those_that_a_broker_wrote():
    source = ROOT / "logs/kraft-4.1.0/txn-0"
    partition = kc.log.Partition(source)
    whole = partition.transactions()
    for segment in partition.segments:
        path = segment.path.removesuffix(".log") + ".txnindex"
        end = surroundings(partition, segment).following or partition.end_offset()
        entries = whole.index_entries(segment.base_offset, end)
        try:
            golden = kc.log.read_transaction_index(path)
        except FileNotFoundError:
            assert len(entries) == 0
            continue
        assert entries.tolist() == golden.entries.tolist()
