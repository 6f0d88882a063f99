"""Many aborted transactions: their index and the ranges without them, at a cost proportional to their number."""

from __future__ import annotations

import gzip
import random

import numpy as np
import pytest

import kafkacodec as kc
from kafkacodec.log.partitions.inside import surroundings
from kafkacodec.log.reading.transactions import ABORTED, FINISHED, Transactions, scan_transactions
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


# --- many small transactions ----------------------------------------------------------------------------------------


def interleaved(directory, count, rng):
    """A log of transactions of several producers, one open at the end; the offset and value of what was committed."""
    directory.mkdir()
    batches, pending, committed = [], {}, []
    offset = 0
    for _ in range(count):
        producer = rng.randrange(5)
        if producer in pending and rng.random() < 0.6:
            kind = rng.choice(["commit", "abort"])
            batches.append(kc.control_batch(kind, offset=offset, producer_id=producer, producer_epoch=0, timestamp=1))
            rows = pending.pop(producer)
            committed += rows if kind == "commit" else []
            offset += 1
        else:
            value = b"%d" % offset
            pending.setdefault(producer, []).append((offset, value))
            batches.append(kc.encode([(None, value)], base_offset=offset, producer_id=producer, is_transactional=True))
            offset += 1
    stable = min((rows[0][0] for rows in pending.values()), default=offset)
    (directory / f"{0:020d}.log").write_bytes(b"".join(batches))
    return sorted(row for row in committed if row[0] < stable)


def rows_of(chunks):
    return [(row.offset, row.value) for chunk in chunks for row in chunk]


@pytest.mark.parametrize("seed", range(6))
def test_committed_records_of_interleaved_transactions(seed, tmp_path):
    """What was written to the log decides, for the whole of it, for its first rows, and between any two offsets."""
    rng = random.Random(seed)
    expected = interleaved(tmp_path / "t-0", 1500, rng)
    partition = kc.log.Partition(tmp_path / "t-0")
    how = {"isolation_level": "read_committed"}
    assert rows_of(partition.read(**how)) == expected
    for n in (1, 5, 200, len(expected) + 1):
        assert rows_of([partition.head(n, **how)]) == expected[:n]
        assert rows_of([partition.head(n, start_offset=300, **how)]) == [row for row in expected if row[0] >= 300][:n]
    for _ in range(30):
        first = rng.randrange(1500)
        last = first + rng.randrange(200)
        read = rows_of(partition.read(start_offset=first, end_offset=last, **how))
        assert read == [row for row in expected if first <= row[0] < last]


def test_committed_transactions_can_be_left_out(tmp_path):
    """What a reader of committed records needs: those that were aborted and those that are open."""
    interleaved(tmp_path / "t-0", 400, random.Random(1))
    partition = kc.log.Partition(tmp_path / "t-0")
    for first, end in ((None, None), (100, 200)):
        whole = partition.transactions(first, end)
        found = scan_transactions(partition.path, partition.segments, first, end, committed=False)
        assert found.aborted.tolist() == whole.aborted.tolist() != []
        assert found.open == whole.open
        assert [str(problem) for problem in found.problems] == [str(problem) for problem in whole.problems]
        assert sorted(found.finished.tolist()) == whole.aborted.tolist()
        assert len(whole.finished) > len(found.finished)


def test_the_first_committed_records_need_few_headers(tmp_path, monkeypatch):
    from kafkacodec.log.reading.transactions import TransactionTracker

    directory = tmp_path / "t-0"
    directory.mkdir()
    batches = []
    for offset in range(0, 40_000, 2):
        batches.append(kc.encode([(None, b"v")], base_offset=offset, producer_id=1, is_transactional=True))
        batches.append(kc.control_batch("commit", offset=offset + 1, producer_id=1, producer_epoch=0, timestamp=1))
    (directory / f"{0:020d}.log").write_bytes(b"".join(batches))
    seen = []
    feed = TransactionTracker.feed

    def counting(self, headers, *rest, **options):
        seen.append(len(headers))
        feed(self, headers, *rest, **options)

    monkeypatch.setattr(TransactionTracker, "feed", counting)
    found = kc.log.Partition(directory).head(3, isolation_level="read_committed")
    assert rows_of([found]) == [(0, b"v"), (2, b"v"), (4, b"v")]
    assert sum(seen) <= 400


@pytest.mark.parametrize(
    ("key", "value", "kind"),
    [
        (b"\0\0\0\0", b"\0\0\0\0\0\7", "abort"),
        (b"\0\0\0\1", b"\0\0\0\0\0\7", "commit"),
        (b"\0\0\0\0", None, "abort"),
        (b"\0\0\0\0more", b"\0\1\0\0\0\7more", "abort"),
        (b"\0\0\0", b"\0\0\0\0\0\7", None),
        (None, b"\0\0\0\0\0\7", None),
    ],
)
def test_markers_of_other_sizes(key, value, kind):
    """The type is the second number of the key (KIP-98); without it, a control record says nothing."""
    from kafkacodec.log.reading.markers import MARKERS, markers_in
    from kafkacodec.records._record_chunks import ListChunk
    from kafkacodec.records.encode import EncodePlan

    def control(offset, key, value):
        chunk = ListChunk()
        chunk.append_record(None, 5, key, value, ())
        plan = EncodePlan(base_offset=offset, producer_id=1, is_transactional=True)
        return plan.encoder(is_control=True).encode([chunk.finish()])

    usual = kc.control_batch("abort", offset=7, producer_id=1, producer_epoch=0, coordinator_epoch=3, timestamp=9)
    data = kc.encode([(b"k", b"v")]) + control(3, key, value) + usual
    expected = [] if kind is None else [(3, {"abort": 0, "commit": 1}[kind], 7 if value else 0, 5)]
    assert markers_in(data).tolist() == [*expected, (7, 0, 3, 9)]
    assert markers_in(data).dtype == MARKERS
    damaged = bytearray(usual)
    damaged[-1] ^= 1
    assert markers_in(bytes(damaged) + usual).tolist() == [(7, 0, 3, 9)]


def test_transactions_whose_markers_are_compressed_or_damaged(tmp_path):
    """A compressed marker is decompressed; one that cannot be read is a problem, and a commit as far as is known."""

    def compressed(batch):
        """The same batch of magic 2 with its records compressed by gzip."""
        records = gzip.compress(batch[61:])
        size = len(records) + 49
        checked = bytes([0, batch[22] | 1]) + batch[23:61] + records
        return batch[:8] + size.to_bytes(4, "big") + batch[12:17] + kc.crc32c(checked).to_bytes(4, "big") + checked

    def marker(offset, kind):
        return kc.control_batch(kind, offset=offset, producer_id=1, producer_epoch=0, timestamp=1)

    def record(offset):
        return kc.encode([(None, b"%d" % offset)], base_offset=offset, producer_id=1, is_transactional=True)

    damaged = bytearray(marker(5, "abort"))
    damaged[-1] ^= 1
    batches = [record(0), compressed(marker(1, "abort")), record(2), compressed(marker(3, "commit"))]
    batches += [record(4), bytes(damaged), record(6), marker(7, "abort")]
    (tmp_path / "t-0").mkdir()
    path = tmp_path / "t-0" / f"{0:020d}.log"
    path.write_bytes(b"".join(batches))
    found = kc.log.Partition(tmp_path / "t-0").transactions()
    assert found.aborted.tolist() == [(1, 0, 1), (1, 6, 7)]
    assert found.finished.tolist() == [(1, 0, 1), (1, 2, 3), (1, 4, 5), (1, 6, 7)]
    assert [str(p.reason) for p in found.problems if "marker" in p.reason] == ["the marker at offset 5 cannot be read"]
    assert [p.path for p in found.problems if "marker" in p.reason] == [str(path)]


def test_batches_out_of_order_are_followed_in_the_order_of_their_offsets(tmp_path):
    """So that a marker ends what was written before it, wherever damage has put it."""
    batches = [kc.encode([(None, b"v")], base_offset=offset, producer_id=1, is_transactional=True) for offset in (0, 2)]
    markers = [
        kc.control_batch(kind, offset=offset, producer_id=1, producer_epoch=0, timestamp=1)
        for kind, offset in (("commit", 1), ("abort", 3))
    ]
    (tmp_path / "t-0").mkdir()
    data = b"".join([batches[0], markers[1], batches[1], markers[0]])
    (tmp_path / "t-0" / f"{0:020d}.log").write_bytes(data)
    found = kc.log.Partition(tmp_path / "t-0").transactions()
    assert found.finished.tolist() == [(1, 0, 1), (1, 2, 3)]
    assert found.aborted.tolist() == [(1, 2, 3)]
    assert found.open == {}
