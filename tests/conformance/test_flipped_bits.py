"""One flipped bit in a log costs at most the batch that has it, and what is said of it is true.

The short form takes seconds; KAFKACODEC_LONG=1 flips several thousand bits (make proofs).
"""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from itertools import islice
from pathlib import Path

import pytest

import kafkacodec as kc
from kafkacodec.log.order.sets import are_sets
from tests.corpus import ROOT
from tests.flips import CHECKED, UNCHECKED, Flip, batches, copy_of, counted, flips, partitions, stretches

LONG = bool(os.environ.get("KAFKACODEC_LONG"))


def some(fields, field, short, long=2000):
    rng = random.Random(field)
    return list(islice(flips(rng, fields, field), long if LONG else short))


@pytest.mark.parametrize(
    ("fields", "field"),
    [*((UNCHECKED, name) for name in UNCHECKED[True]), *((CHECKED, name) for name in CHECKED[True])],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_recover_loses_at_most_the_batch(fields, field, tmp_path):
    seen = Counter()
    for flip in some(fields, field, 40 if field == "base offset" else 4):
        partition = flip.copy(tmp_path / "source")
        report = kc.log.recover(partition.parent, tmp_path / "saved")
        saved = batches(tmp_path / "saved" / partition.name)
        before, after = counted(flip.source), Counter(saved)
        lost, more = before - after, after - before
        assert report.num_batches == len(saved), flip
        if field == "base offset" and more and lost.total() == 2:  # it fits, and the one beside it may be wrong as well
            seen["cost another"] += 1
            lost = lost & Counter([flip.batch])
        assert not lost or lost == Counter([flip.batch]), flip
        if lost and not more:
            assert not report.ok, flip
        seen["lost" if lost and not more else "kept as it is" if more else "restored"] += 1
        shutil.rmtree(tmp_path / "source")
        shutil.rmtree(tmp_path / "saved")
    print(field, dict(seen))
    if field == "base offset":
        assert seen["restored"] > sum(seen.values()) / 2
        assert seen["cost another"] * 100 <= seen.total()


def test_an_index_that_names_only_the_wrong_batch_does_not_show_a_wrong_name(tmp_path):
    """The name of its segment was taken for wrong, and 16 batches after it for out of order."""
    source = ROOT / "logs/kraft-3.9.1/compact-txn-0"
    flip = Flip(source, "00000000000000000520.log", 3, 580, 78, "base offset", 6, 7)
    partition = flip.copy(tmp_path / "source")
    kc.log.recover(partition.parent, tmp_path / "saved")
    assert counted(source) - Counter(batches(tmp_path / "saved" / partition.name)) <= Counter([flip.batch])


def test_the_only_batch_of_a_segment_is_wrong_and_not_the_segments_name(tmp_path):
    """Its time index has the right offset, which is one bit off; another name would not make it so."""
    source = ROOT / "logs/kraft-4.1.0/compact-gzip-0"
    flip = Flip(source, "00000000000000000134.log", 0, 0, 202, "base offset", 3, 1)
    partition = flip.copy(tmp_path / "source")
    offsets, (problem,), _ = read(partition, on_error="skip")
    assert offsets == [offset for offset in read(source)[0] if not 194 <= offset <= 200]
    assert (problem.position, problem.size_in_bytes) == (0, 202)
    assert [f.kind for f in kc.log.Partition(partition).verify().findings] == ["offset-order"]
    kc.log.recover(partition.parent, tmp_path / "saved")
    assert counted(source) - Counter(batches(tmp_path / "saved" / partition.name)) == Counter([flip.batch])


@pytest.mark.parametrize(
    ("source", "row", "position", "size", "byte", "bit", "span"),
    [
        ("kraft-4.1.0/append-lz4-0", 2, 9147, 3602, 7, 2, (72, 92)),
        ("kraft-3.9.1/compact-txn-0", 26, 2106, 81, 6, 0, (399, 628)),
        ("v1-0.10.2.2/v0-lz4-0", 2, 2205, 614, 7, 4, (23, 93)),
        ("v1-0.10.2.2/append-lz4-0", 6, 13680, 1503, 0, 7, (14, 134)),
    ],
)
def test_a_span_that_begins_in_a_batch_with_a_wrong_offset_says_what_it_lacks(
    tmp_path, source, row, position, size, byte, bit, span
):
    """The batch seemed to be before the span."""
    flip = Flip(ROOT / "logs" / source, "0" * 20 + ".log", row, position, size, "base offset", byte, bit)
    partition = flip.copy(tmp_path / "source")
    start, end = span
    _, problems, _ = read(partition, on_error="skip", start_offset=start, end_offset=end)
    assert [problem.position for problem in problems] == [position]


@pytest.mark.parametrize(
    ("source", "segment", "row", "position", "size", "byte", "bit"),
    [
        ("v2-2.8.2/v0-none-0", 0, 60, 19600, 210, 4, 3),
        ("v1-0.10.2.2/compact-none-0", 196, 0, 0, 36, 5, 2),  # its only batch, of which the right offset is unknown
    ],
)
def test_a_wrong_last_offset_of_an_old_segment_is_one_error(tmp_path, source, segment, row, position, size, byte, bit):
    """The next segment seemed to overlap it."""
    flip = Flip(ROOT / "logs" / source, f"{segment:020}.log", row, position, size, "base offset", byte, bit)
    found = kc.log.Partition(flip.copy(tmp_path)).verify().findings
    assert [(f.level, f.kind, f.position) for f in found] == [("error", "offset-order", position)]


def test_the_only_batch_of_a_log_has_the_epoch_of_the_checkpoint(tmp_path):
    flip = Flip(ROOT / "logs/kraft-4.1.0/big-none-0", "0" * 20 + ".log", 0, 0, 18082, "leader epoch", 12, 7)
    partition = flip.copy(tmp_path / "source")
    report = kc.log.recover(partition.parent, tmp_path / "saved")
    # The note is about the other topics that the checkpoints name.
    assert report.counts == Counter([("warning", "leader-epoch"), ("note", "absent")])
    assert kc.log.read_leader_epochs(tmp_path / "saved" / partition.name / "leader-epoch-checkpoint") == [(0, 0)]


def test_a_wrong_length_that_ends_in_zeros_costs_one_batch(tmp_path):
    """The zeros after the last batch of a preallocated file looked like the end of the log after any length."""
    source = ROOT / "logs/kraft-4.1.0-live/preallocated-0"
    flip = Flip(source, "00000000000000000153.log", 19, 11950, 168, "length", 10, 6)
    partition = flip.copy(tmp_path / "source")
    (problem,) = read(partition, on_error="skip")[1]
    assert (problem.position, problem.size_in_bytes) == (11950, 168)
    kc.log.recover(partition.parent, tmp_path / "saved")
    assert counted(source) - Counter(batches(tmp_path / "saved" / partition.name)) == Counter([flip.batch])


def read(partition, **options):
    """The offsets that a reader gives, its problems, and its error."""
    offsets, problems = [], []
    try:
        for chunk in kc.log.Partition(partition).read(include_control=True, columns=("offset",), **options):
            offsets += chunk["offset"].tolist()
            problems += chunk.problems
    except kc.DecodeError as error:
        return offsets, problems, error
    return offsets, problems, None


def test_readers_treat_a_wrong_offset_as_damage(tmp_path):
    """Flips that leave a batch between its neighbours, in a gap or at the end of the log, show in no order."""
    seen = Counter()
    for flip in some(UNCHECKED, "base offset", 40):
        everything = read(flip.source)[0]
        partition = flip.copy(tmp_path / "source")
        offsets, problems, error = read(partition, on_error="skip")
        assert error is None, flip
        threaded = read(partition, on_error="skip", threads=3)
        assert (threaded[0], list(map(str, threaded[1]))) == (offsets, list(map(str, problems))), flip
        until, _, error = read(partition)
        stopped, few, none = read(partition, on_error="stop")
        counted = kc.log.Partition(partition).count(include_control=True, on_error="skip", problems=[])
        assert counted == len(offsets), flip
        if problems:
            assert isinstance(error, kc.CorruptRecord | kc.MissingOffsets), flip
            assert len(few) == 1, flip
            assert none is None, flip
            assert until == stopped == offsets[: len(until)], flip
            # At most the batch, or one beside it that is as likely to be wrong; a batch may have no records.
            seen["beside it"] += not set(offsets) <= set(everything)
            assert len(everything) - len(offsets) <= 2 * largest(flip), flip
            seen["damage"] += 1
            parts_agree(partition, offsets, set(everything) - set(offsets), flip)
        else:
            assert error is None, flip
            assert len(offsets) == len(everything), flip
            assert offsets == sorted(set(offsets)), flip
            seen["in a gap"] += 1
        shutil.rmtree(tmp_path / "source")
    print(dict(seen))
    assert seen["damage"] > 4 * seen["in a gap"]
    assert seen["beside it"] * 100 <= seen["damage"]


def largest(flip):
    """The most records of a batch in the segment."""
    offsets = kc.decode(
        (flip.source / flip.segment).read_bytes(), include_control=True, batch_columns=True, columns=("offset",)
    )
    return max(Counter(offsets["batch_position"].tolist()).values(), default=0)


def sets_of_magic_1():
    """Flips of the low bits of every compressed set of magic 1, whose header has its last offset only."""
    for source in partitions():
        for segment in kc.log.Partition(source).segments:
            headers = segment.scan()
            for row in are_sets(headers).nonzero()[0].tolist():
                position, size = int(headers["position"][row]), int(headers["size_in_bytes"][row])
                for bit in range(7):
                    yield Flip(source, Path(segment.path).name, row, position, size, "base offset", 7, bit)


def test_sets_that_only_their_contents_show_to_be_misplaced(tmp_path):
    """Those that stayed between the last offsets of their neighbours overlapped one of these, unseen by readers."""
    seen = Counter()
    every = list(sets_of_magic_1())
    for flip in random.Random(1).sample(every, 1000 if LONG else 30):
        everything = read(flip.source)[0]
        partition = flip.copy(tmp_path / "source")
        offsets, problems, _ = read(partition, on_error="skip")
        report = kc.log.Partition(partition).verify()
        assert report.clean is not bool(problems), flip
        assert offsets == sorted(set(offsets)), flip
        # Not for a gap at the end, nor where a set beside it is as likely to be wrong.
        told = any(isinstance(problem.exception, kc.CorruptRecord) for problem in problems)
        if told and set(offsets) <= set(everything):
            parts_agree(partition, offsets, set(everything) - set(offsets), flip)
        saved = kc.log.recover(partition.parent, tmp_path / "saved")
        after = Counter(batches(tmp_path / "saved" / partition.name))
        lost, more = counted(flip.source) - after, after - counted(flip.source)
        assert lost.total() <= 1 + more.total(), flip
        assert not lost or more or not saved.ok, flip
        recovered = kc.log.Partition(tmp_path / "saved" / partition.name)
        assert saved.num_records == recovered.count(include_control=True), flip
        seen["kept" if more else "lost" if lost else "restored"] += 1
        shutil.rmtree(tmp_path / "source")
        shutil.rmtree(tmp_path / "saved")
    print(dict(seen))
    assert seen["restored"] * 10 > 8 * seen.total()


def parts_agree(partition, offsets, lost, flip):
    """A span of the log, read from an index or in ranges, has the same records, and says what it lacks."""
    rng = random.Random(str(flip))
    for _ in range(2):
        start, end = sorted(rng.sample(range(max(offsets, default=0) + 3), 2))
        expected = [offset for offset in offsets if start <= offset < end]
        found, problems, _ = read(partition, on_error="skip", start_offset=start, end_offset=end)
        assert found == expected, (flip, start, end)
        assert problems or not any(start <= offset < end for offset in lost), (flip, start, end)
        pieces = kc.log.Partition(partition).ranges(start_offset=start, end_offset=end, max_bytes=900)
        chunks = [c for p in pieces for c in p.read(include_control=True, columns=("offset",), on_error="skip")]
        assert [offset for chunk in chunks for offset in chunk["offset"].tolist()] == expected, (flip, start, end)


def test_verify_has_one_error_for_a_wrong_offset(tmp_path):
    for flip in some(UNCHECKED, "base offset", 40):
        partition = flip.copy(tmp_path / "source")
        before = kc.log.Partition(flip.source).verify()
        after = kc.log.Partition(partition).verify()
        errors = [finding for finding in after.findings if finding.level == "error"]
        assert len(errors) <= 1, (flip, [str(finding) for finding in after.findings])
        warnings = [str(f) for f in after.findings if f.level == "warning"]
        assert len(warnings) - before.counts.total() <= 2, (flip, warnings)
        shutil.rmtree(tmp_path / "source")


def test_a_wrong_leader_epoch_is_told_once_and_left_out_of_the_checkpoint(tmp_path):
    """The epoch of a log's last batch may be newer than the checkpoint: it is told, and kept."""
    seen = Counter()
    for flip in some(UNCHECKED, "leader epoch", 20):
        partition = flip.copy(tmp_path / "source")
        findings = [kc.log.Partition(path).verify().counts for path in (flip.source, partition)]
        assert (findings[1] - findings[0]) == Counter([("warning", "leader-epoch")]), flip
        report = kc.log.recover(partition.parent, tmp_path / "saved")
        kc.log.recover(copy_of(flip.source, tmp_path / "unharmed").parent, tmp_path / "expected")
        assert report.counts["warning", "leader-epoch"] >= 1, flip
        found, expected = (
            kc.log.read_leader_epochs(tmp_path / name / partition.name / "leader-epoch-checkpoint")
            for name in ("saved", "expected")
        )
        last = flip.batch == batches(flip.source)[-1]
        assert found == expected or (last and found[:-1] in (expected, expected[:-1])), flip
        seen["last" if last else "between"] += 1
        for path in tmp_path.iterdir():
            shutil.rmtree(path)
    print(dict(seen))


@pytest.mark.parametrize("to", [153, 0, 361 ^ 8, 1 << 40])
def test_recover_finds_the_place_of_a_renamed_segment(tmp_path, to):
    """A lower name puts it before segments that its batches follow."""
    source = ROOT / "logs/kraft-4.1.0/compact-tombstones-0"
    partition = copy_of(source, tmp_path / "source")
    last = max(path for path in partition.glob("*.log") if path.stat().st_size)
    if not (partition / f"{to:020}.log").exists():
        last.rename(partition / f"{to:020}.log")
    report = kc.log.recover(partition.parent, tmp_path / "saved")
    saved = batches(tmp_path / "saved" / partition.name)
    assert Counter(saved) == counted(source)
    assert report.num_batches == len(saved)


def last_batches():
    """The last batch of every partition, if its log is known to end with it."""
    for source in partitions():
        named, found = kc.log.Partition(source), stretches(source)
        segments = [Path(segment.path).name for segment in named.segments]
        filled = [name for name in segments if found[name]]
        if filled[-1:] == segments[-1:] and found[filled[-1]][-1][2] >= 2:
            last = named.segments[-1].scan()
            if named.recovery_point == int(last["last_offset"][-1]) + 1:
                yield source, filled[-1], len(last) - 1, *found[filled[-1]][-1][:2], int(last["base_offset"][-1])


@pytest.mark.slow
def test_a_last_batch_that_is_raised_is_seen_by_all(tmp_path):
    """With nothing after it, it was in order: only `recover` compared it with the recovery point."""
    seen = 0
    for source, segment, row, position, size, base in last_batches():
        bit = next(bit for bit in range(3, 31) if not base >> bit & 1)
        flip = Flip(source, segment, row, position, size, "base offset", 7 - bit // 8, bit % 8)
        partition = flip.copy(tmp_path / "source")
        everything = read(source)[0]
        offsets, problems, _ = read(partition, on_error="skip")
        assert [problem.position for problem in problems] == [position], flip
        assert offsets == [offset for offset in everything if offset < base], flip
        assert isinstance(read(partition)[2], kc.CorruptRecord), flip
        opened = kc.log.Partition(partition)
        assert opened.count(include_control=True, on_error="skip", problems=[]) == len(offsets), flip
        assert opened.end_offset() == kc.log.Partition(source).end_offset(), flip
        parts_agree(partition, offsets, set(everything) - set(offsets), flip)
        found = [finding.kind for finding in opened.verify().findings if finding.level == "error"]
        assert found == ["offset-order"], flip
        report = kc.log.recover(partition.parent, tmp_path / "saved")
        assert Counter(finding.kind for finding in report.findings)["offset-order"] == 1, flip
        assert counted(source) == Counter(batches(tmp_path / "saved" / partition.name)), flip
        shutil.rmtree(tmp_path / "source")
        shutil.rmtree(tmp_path / "saved")
        seen += 1
    assert seen > 5
