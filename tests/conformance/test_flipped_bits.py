"""One flipped bit in a log costs at most the batch that has it, and what is said of it is true.

The short form takes seconds; KAFKACODEC_LONG=1 flips several thousand bits (make proofs).
"""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from itertools import islice

import pytest

import kafkacodec as kc
from tests.flips import CHECKED, UNCHECKED, batches, counted, flips

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
        assert not lost or lost == Counter([flip.batch]), flip
        if lost and not more:
            assert not report.ok, flip
        seen["lost" if lost and not more else "kept as it is" if more else "restored"] += 1
        shutil.rmtree(tmp_path / "source")
        shutil.rmtree(tmp_path / "saved")
    print(field, dict(seen))
    if field == "base offset":
        assert seen["restored"] > sum(seen.values()) / 2
