"""A segment whose file has a wrong name: no batch is lost, readers tell it, and it is one finding.

The short form takes seconds; KAFKACODEC_LONG=1 tries many names for each segment of the corpus (make proofs).
"""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from functools import cache

import pytest

import kafkacodec as kc
from tests.corpus import ROOT
from tests.examples import some
from tests.flips import batches, copy_of, counted, partitions, stretches

LONG = bool(os.environ.get("KAFKACODEC_LONG"))


def renamed(source, base, to, directory, *, indexes):
    """A copy of a partition with the number in the name of a segment, and of its indexes, replaced."""
    copied = copy_of(source, directory)
    for path in copied.glob(f"{base:020}.*"):
        if path.suffix == ".log" or (indexes and path.suffix.endswith("index")):
            path.rename(copied / f"{to:020}{path.suffix}")
    return copied


@cache
def cases():
    """For each segment: below, above and among the others, one bit off, and next to other names."""
    found = []
    for source in partitions():
        bases = sorted(int(path.stem) for path in source.glob("*.log"))
        for base in bases:
            rng = random.Random(f"{source.name} {base}")
            names = {base ^ 1 << bit for bit in (0, 3, 8, 40)} | {17, base // 2, base + 1, base + 100}
            names |= {other + more for other in bases for more in (-1, 1)}
            wrong = sorted(name for name in names if name >= 0 and name not in bases)
            found += [(source, base, to) for to in rng.sample(wrong, len(wrong) if LONG else 1)]
    return found if LONG else some(random.Random(0).sample(found, 60))


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


@cache
def intact(source):
    """The offsets that a reader gives of a partition whose names are right."""
    return read(source, on_error="skip")[0]


@cache
def findings(source):
    return kc.log.Partition(source).verify().counts


@cache
def largest(source):
    """The most records of a batch."""
    found = [0]
    for chunk in kc.log.Partition(source).read(
        include_control=True, batch_columns=True, columns=("offset",), on_error="skip", gaps="accept"
    ):
        found += Counter(chunk["batch_position"].tolist()).values()
    return max(found)


@pytest.mark.parametrize("indexes", [False, True], ids=["log", "log and indexes"])
def test_no_batch_is_lost(indexes, tmp_path):
    seen = Counter()
    for source, base, to in cases():
        case = f"{source.parent.name}/{source.name}: {base} is now {to}"
        partition = renamed(source, base, to, tmp_path / "source", indexes=indexes)
        report = kc.log.recover(partition.parent, tmp_path / "saved")
        saved = batches(tmp_path / "saved" / partition.name)
        lost = counted(source) - Counter(saved)
        assert report.num_batches == len(saved), case
        assert not Counter(saved) - counted(source), case
        # One batch that is alone against a name may have the wrong offset: a single bit explains that as well.
        assert lost.total() <= 1, case
        assert not lost or not report.ok, case
        expected = intact(source)
        offsets, problems, error = read(partition, on_error="skip")
        assert error is None, case
        assert problems or offsets == expected, case
        assert set(offsets) <= set(expected), case
        # Readers look at one file and the names beside it.
        assert len(expected) - len(offsets) <= largest(source), case
        until, _, error = read(partition)
        stopped, few, none = read(partition, on_error="stop")
        assert none is None, case
        assert (error is not None, len(few)) == (bool(problems), min(len(problems), 1)), case
        assert until == stopped == offsets[: len(until)], case
        seen["lost" if lost else "saved"] += 1
        for path in tmp_path.iterdir():
            shutil.rmtree(path)
    print(dict(seen))
    assert seen["lost"] * 50 <= seen.total()


@pytest.mark.slow  # its share is one of all cases: of every fifth it is another
@pytest.mark.parametrize("indexes", [False, True], ids=["log", "log and indexes"])
def test_a_wrong_name_is_one_finding(indexes, tmp_path):
    seen = Counter()
    for source, base, to in cases():
        case = f"{source.parent.name}/{source.name}: {base} is now {to}"
        partition = renamed(source, base, to, tmp_path / "source", indexes=indexes)
        found = kc.log.Partition(partition).verify().counts - findings(source)
        more = Counter({kind: count for kind, count in found.items() if kind[0] != "note"})
        empty = not stretches(source)[f"{base:020}.log"]
        # A file without batches leaves a gap. A name in a gap before the batches only contradicts the indexes.
        contradicts = ("error", "offset-order") in more and not empty
        assert len(more) <= 2, (case, more)
        assert not contradicts or more.total() <= 1 + indexes, (case, more)
        seen[more.total()] += 1
        shutil.rmtree(tmp_path / "source")
    print(dict(seen))
    assert seen[0] + seen[1] > seen.total() * 3 / 4


@pytest.mark.parametrize(
    ("name", "base", "to"),
    [
        ("upgraded/up-compact-0", 273, 17),  # below its batches, among those of the segment before it
        ("kraft-3.9.1/compact-empty-0", 37, 318),  # one batch, which no single bit explains
        ("kraft-4.1.0/compact-zstd-0", 208, 1),  # one batch; its indexes have the right name
        ("v1-0.10.2.2/compact-v0-snappy-0", 146, 303),  # without a batch, among those of another segment
    ],
)
def test_recover_finds_the_place(name, base, to, tmp_path):
    source = ROOT / "logs" / name
    partition = renamed(source, base, to, tmp_path / "source", indexes=False)
    report = kc.log.recover(partition.parent, tmp_path / "saved")
    saved = batches(tmp_path / "saved" / partition.name)
    assert saved == batches(source)
    assert report.num_batches == len(saved)
    assert kc.log.Partition(partition).verify().counts["error", "offset-order"] == 1
