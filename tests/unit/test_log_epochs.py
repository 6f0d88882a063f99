"""Leader epochs of batches: which are wrong, decided by those around them."""

from __future__ import annotations

import numpy as np
import pytest

from kafkacodec.log.formats.checkpoints import LeaderEpoch
from kafkacodec.log.order.epochs import EpochRuns, contradiction, judge_epochs


def runs_of(epochs):
    """Batches of ten offsets, each with an epoch."""
    runs = EpochRuns()
    base = np.arange(len(epochs)) * 10
    half = len(epochs) // 2
    for part in (slice(0, half), slice(half, None)):
        runs.add("x.log", np.array(epochs, np.int64)[part], base[part], base[part] + 9, base[part] * 7)
    return runs.runs


@pytest.mark.parametrize(
    ("epochs", "known", "wrong"),
    [
        ([1, 1, 2, 2, 5], [], []),
        ([1, 1, 5, 1, 1], [], [20]),
        ([3, 3, 1, 3], [], [20]),
        ([5, 1, 1, 2], [], [0]),
        ([1, 1, 2, 2, 0], [], [40]),
        ([1, 5, 2, 2], [], [10]),
        ([1, -1, 1], [], []),  # written without an epoch
        ([1, -(1 << 31) + 1, 1], [], [10]),
        ([1, 1, 2, 9, 3, 3, 1, 3], [], [30, 60]),
        # Only the checkpoint shows it.
        ([1, 2, 3, 3], [(1, 0), (3, 20)], [10]),
        ([5, 1], [(1, 0)], [0]),
        ([5, 1], [(5, 0)], [10]),
        # The end of a log may be newer than its checkpoint; an entry of that may be wrong as well.
        ([1, 1, 9], [(1, 0)], []),
        ([1, 2, 3, 3], [(1, 0), (4, 10), (5, 20)], []),
        ([], [(1, 0)], []),
    ],
)
def test_the_fewest_batches_are_wrong(epochs, known, wrong):
    runs = runs_of(epochs)
    right, found = judge_epochs(runs, [LeaderEpoch(*pair) for pair in known])
    assert [one.run.first_offset for one in found] == wrong
    assert all(one.run.position == one.run.first_offset * 7 for one in found)
    assert len(right) + len(found) == len(runs)


def test_a_wrong_epoch_says_what_is_around_it():
    (found,) = judge_epochs(runs_of([1, 9, 2]), [])[1]
    assert found.reason == "leader epoch 9 is wrong: the batches around it have 1 and 2"


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ([(1, 0), (2, 20)], None),
        ([(1, 5), (2, 20)], None),  # older entries were deleted
        ([(1, 0), (2, 10)], (10, 2)),
        ([(1, 0), (3, 20)], (20, 3)),
        ([], None),
    ],
)
def test_the_checkpoint_is_compared(known, expected):
    found = contradiction(runs_of([1, 1, 2, 2]), [LeaderEpoch(*pair) for pair in known])
    assert (found and (found.offset, found.epoch)) == expected


def test_epochs_of_many_batches_are_judged_in_linear_time():
    runs = runs_of([0, 1] * 20_000)
    right, wrong = judge_epochs(runs, [])
    assert len(right) == 20_001
    assert len(wrong) == 19_999
