"""One flipped bit in a file beside the segments costs no record, and is told once.

The short form takes seconds; KAFKACODEC_LONG=1 flips several thousand bits (make proofs).
"""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from functools import cache
from itertools import islice

import pytest

import kafkacodec as kc
from kafkacodec.log.partitions.inside import verify_files
from tests.corpus import ROOT
from tests.flips import SideFlip, batches, copy_of, counted, side_files, side_flips

pytestmark = pytest.mark.filterwarnings("ignore::kafkacodec.errors.CheckpointWarning")  # of files damaged at random

LONG = bool(os.environ.get("KAFKACODEC_LONG"))

INDEXES = (".index", ".timeindex", ".txnindex")

# What these say decides whether missing offsets are a loss: a wrong one may make one of compaction.
EVIDENCE = (".index", ".timeindex", "cleaner-offset-checkpoint", "recovery-point-offset-checkpoint")


def some(kind, short=6, long=400):
    return list(islice(side_flips(random.Random(kind), kind), long if LONG else short))


def read(partition, **options):
    """The records that a reader gives, by offset, and its problems."""
    chunks = list(kc.log.Partition(partition).read(columns=("offset",), on_error="skip", **options))
    return [offset for c in chunks for offset in c["offset"].tolist()], [p for c in chunks for p in c.problems]


def everything(partition):
    return [
        read(partition, include_control=True),
        read(partition, isolation_level="read_committed"),
    ]


def findings(directory):
    return Counter((f.level, f.kind) for f in kc.log.LogDirectory(directory).verify().findings)


@cache
def before(source, directory):
    """What is read and found without a flip."""
    partition = copy_of(source, directory)
    try:
        return everything(partition), findings(directory)
    finally:
        shutil.rmtree(directory)


@pytest.mark.parametrize("kind", side_files())
def test_a_flip_costs_no_record(kind, tmp_path):
    seen = Counter()
    for flip in some(kind):
        records, found = before(flip.source, tmp_path / "source")
        partition = flip.copy(tmp_path / "source")
        report = kc.log.recover(partition.parent, tmp_path / "saved")
        saved = batches(tmp_path / "saved" / partition.name)
        assert Counter(saved) == counted(flip.source), flip
        assert report.num_batches == len(saved), flip
        for (offsets, problems), (expected, known) in zip(everything(partition), records, strict=True):
            assert offsets == expected, flip
            more = len(problems) - len(known)
            assert not more or (kind in EVIDENCE and isinstance(problems[-1].exception, kc.MissingOffsets)), flip
        more = findings(partition.parent) - found
        gaps = more.pop(("error", "gap"), 0)
        assert not gaps or kind in EVIDENCE, flip
        assert more.total() <= 1, (flip, more)
        assert not any(level == "error" for level, _ in more), (flip, more)
        seen["told" if more or gaps else "not seen"] += 1
        shutil.rmtree(tmp_path / "source")
        shutil.rmtree(tmp_path / "saved")
    print(kind, dict(seen))


def test_a_wrong_epoch_of_the_checkpoint_is_told_once(tmp_path):
    """Each segment told it."""
    source = ROOT / "logs/v2-0.11.0.3/compact-txn-0"
    partition = SideFlip(source, "compact-txn-0/leader-epoch-checkpoint", 35).copy(tmp_path)
    before, after = (kc.log.Partition(path).verify().counts for path in (source, partition))
    assert after - before == Counter([("warning", "leader-epoch")])


@pytest.mark.parametrize("kind", INDEXES)
def test_a_look_up_finds_the_same(kind, tmp_path):
    """Spans of offsets and times, whole and in ranges, committed and not."""
    for flip in some(kind):
        rng = random.Random(str(flip))
        offsets = everything(flip.source)[0][0]
        partition = flip.copy(tmp_path / "source")
        for _ in range(3):
            start, end = sorted(rng.randrange(offsets[0], offsets[-1] + 3) for _ in range(2))
            span = {"start_offset": start, "end_offset": end}
            expected = [offset for offset in offsets if start <= offset < end]
            assert read(partition, include_control=True, **span)[0] == expected, (flip, span)
            pieces = kc.log.Partition(partition).ranges(**span, max_bytes=900)
            chunks = [c for p in pieces for c in p.read(include_control=True, columns=("offset",), on_error="skip")]
            assert [offset for c in chunks for offset in c["offset"].tolist()] == expected, (flip, span)
            committed = [read(path, isolation_level="read_committed", **span)[0] for path in (partition, flip.source)]
            assert committed[0] == committed[1], (flip, span)
        for time in rng.sample(times(flip.source), min(2, len(times(flip.source)))):
            found = [read(path, start_timestamp=time)[0] for path in (partition, flip.source)]
            assert found[0] == found[1], (flip, time)
        shutil.rmtree(tmp_path / "source")


@cache
def times(source):
    chunks = kc.log.Partition(source).read(columns=("timestamp",), on_error="skip")
    found = {time for c in chunks for time in c["timestamp"].astype("int64").tolist()}
    return sorted(time for time in found if time >= 0)


def test_an_index_of_compressed_sets_is_checked_by_their_messages(tmp_path):
    """Their headers have the last offset only: an entry that names a smaller one than the first looked right."""
    source = ROOT / "logs/v2-0.11.0.3/v0-gzip-0"
    partition = copy_of(source, tmp_path)
    path = partition / "00000000000000000000.index"
    data = bytearray(path.read_bytes())
    data[11] ^= 1 << 4
    path.write_bytes(data)
    everything, found = (read(p, start_offset=0)[0] for p in (source, partition))
    assert found == everything
    assert read(partition, start_offset=107, end_offset=122)[0] == [o for o in everything if 107 <= o < 122]


def test_an_index_entry_past_the_next_segment_is_no_evidence_of_a_loss(tmp_path):
    source = ROOT / "logs/v1-0.10.2.2/compact-lz4-0"
    partition = copy_of(source, tmp_path)
    path = partition / "00000000000000000165.timeindex"
    data = bytearray(path.read_bytes())
    data[10] ^= 1 << 7
    path.write_bytes(data)
    assert read(partition)[1] == read(source)[1] == []
    assert kc.log.Partition(partition).verify().missing_offsets == 0


@pytest.mark.parametrize(
    ("position", "text"),
    [
        (25, "the entry for the transaction aborted at offset 58 has the offset 59"),
        (9, "the transaction aborted at offset 58 is that of producer 17, not 16"),
        (17, "the transaction aborted at offset 58 begins at offset 0, not 1"),
    ],
)
def test_a_wrong_entry_of_a_transaction_index_is_one_finding(tmp_path, position, text):
    partition = copy_of(ROOT / "logs/kraft-4.1.0/txn-0", tmp_path)
    path = partition / "00000000000000000050.txnindex"
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)
    found = [str(f) for f in verify_files(kc.log.Partition(partition), []).findings if f.kind == "transaction-index"]
    assert len(found) == 1
    assert found[0].endswith(text)


def test_a_wrong_offset_in_a_transaction_index_is_told_once_after_compaction(tmp_path):
    """The transaction's first batches are gone: the entry begins before them."""
    source = ROOT / "logs/kraft-4.1.0/compact-txn-0"
    partition = copy_of(source, tmp_path)
    path = partition / "00000000000000000838.txnindex"
    data = bytearray(path.read_bytes())
    data[21] ^= 1 << 6
    path.write_bytes(data)
    found = verify_files(kc.log.Partition(partition), []).findings
    known = verify_files(kc.log.Partition(source), []).findings
    (more,) = [str(f) for f in found if f.text not in {f.text for f in known}]
    assert "the entry for the transaction aborted at offset 858 has the offset" in more
