"""Which batches have a wrong base offset, and what the right one is: every single-bit flip of some logs."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate

import numpy as np
import pytest

from kafkacodec.log.order.placement import NONE, Batches, Bounds, judge


def batches(base, span, **more):
    """Adjoining batches of 100 bytes, without index entries and producers."""
    base, span = np.array(base, np.int64), np.array(span, np.int64)
    nothing = np.full(len(base), NONE, np.int64)
    columns = dict.fromkeys(("producer", "producer_epoch", "sequence", "indexed", "timed"), nothing)
    columns |= {name: np.array(values, np.int64) for name, values in more.items()}
    position = np.arange(len(base)) * 100
    known = np.ones(len(base), np.bool_)
    return Batches(base, base + span - 1, base, known, position, np.full(len(base), 100), **columns)


def flips(base):
    for row in range(len(base)):
        for bit in range(63):
            wrong = list(base)
            wrong[row] ^= 1 << bit
            yield row, wrong


def verdicts(base, span, bounds, **more):
    """The results for every flipped bit, as sets of rows and of verdicts."""
    end = 100 * len(base)
    assert not judge(batches(base, span, **more), bounds, end).wrong.any()
    found = set()
    for row, wrong in flips(base):
        result = judge(batches(wrong, span, **more), bounds, end).base.tolist()
        if result == list(base):
            found.add("restored")
        elif result == [*base[:row], NONE, *base[row + 1 :]]:
            found.add("left out")
        else:
            found.add(f"{wrong} -> {result}")
    return found


@pytest.mark.parametrize("span", [[6] * 6, [1] * 9, [1, 5, 2, 2, 9, 1], [3], [2, 7]], ids=str)
@pytest.mark.parametrize("first", [0, 1000])
def test_a_log_without_gaps_is_restored(span, first):
    base = [first + before for before in accumulate([0, *span[:-1]])]
    assert verdicts(base, span, Bounds(first, first + sum(span))) == {"restored"}
    assert verdicts(base, span, Bounds(first, None, first + sum(span))) == {"restored"}


def test_one_batch_of_a_log_with_gaps_is_left_out():
    """With room on both sides, order does not always show which of two batches is wrong."""
    base, span = [100, 140, 141, 190], [10, 1, 25, 10]
    for row, wrong in flips(base):
        result = judge(batches(wrong, span), Bounds(100, 200), 400).base.tolist()
        off = [i for i in range(len(base)) if result[i] != base[i]]
        assert set(off) <= {row - 1, row, row + 1}
        assert result.count(NONE) <= 1
        assert len(off) <= 1 or abs(wrong[row] - base[row]) < 64


def kept_in_a_gap(base, span, end):
    """Flips that no order shows: the batch stays between its neighbours."""
    for row, wrong in flips(base):
        least = base[row - 1] + span[row - 1] if row else base[0]
        most = base[row + 1] if row + 1 < len(base) else end
        if least <= wrong[row] <= most - span[row]:
            yield f"{wrong} -> {wrong}"


def test_an_index_names_batches_in_gaps():
    base, span = [100, 120, 150, 190], [10, 10, 20, 5]
    last = [b + s - 1 for b, s in zip(base, span, strict=True)]
    found = verdicts(base, span, Bounds(100, 300), indexed=last)
    assert found <= {"restored", *kept_in_a_gap(base, span, 300)}
    assert "restored" in found


def test_sequences_of_a_producer_name_batches_next_to_damage():
    base, span = [100, 110, 120, 130], [10] * 4
    sequence = [base[i] - 70 for i in range(4)]
    one = batches([100, 110 ^ 1 << 20, 120, 130], span, producer=[7] * 4, producer_epoch=[0] * 4, sequence=sequence)
    far = replace(one, position=np.array([0, 100, 300, 400]))
    assert judge(far, Bounds(100)).base.tolist() == base
    assert judge(replace(far, producer=np.array([7, 7, 8, 8])), Bounds(100)).base.tolist() == [100, NONE, 120, 130]


def test_a_batch_in_a_gap_that_its_producers_sequences_exclude_is_left_out():
    """Nothing else contradicts it, since compaction left the gap: it was kept at the wrong offset."""
    base, span = [0, 10, 40, 60, 70], [10] * 5
    sequence = [0, 10, 35, 55, 65]
    more = {"producer": [7] * 5, "producer_epoch": [0] * 5, "sequence": sequence}
    bounds = Bounds(0, 80)
    assert not judge(batches(base, span, **more), bounds, 500).wrong.any()
    # Up to five other records were between them.
    for wrong, found in ((18, NONE), (26, NONE), (14, 14)):
        result = judge(batches([0, wrong, 40, 60, 70], span, **more), bounds, 500)
        assert result.base.tolist() == [0, found, 40, 60, 70]
    for sequences in ({}, more | {"producer": [7, 8, 7, 7, 7]}):
        assert not judge(batches([0, 18, 40, 60, 70], span, **sequences), bounds, 500).wrong.any()


@pytest.mark.parametrize("name", [101, 104, 356, 100 ^ 1 << 40])
def test_a_wrong_name_of_the_segment_costs_no_batch(name):
    result = judge(batches([100, 106, 112, 118], [6] * 4), Bounds(name, 124), 400)
    assert not result.wrong.any()
    assert result.bounds == Bounds(None, 124)


@pytest.mark.parametrize("name", [123, 120, 60])
def test_a_wrong_name_of_the_next_segment_costs_no_batch(name):
    result = judge(batches([100, 106, 112, 118], [6] * 4), Bounds(100, name), 400)
    assert not result.wrong.any()
    assert result.bounds == Bounds(100, None)


def test_batches_in_the_wrong_order_are_not_renumbered():
    swapped = judge(batches([0, 1, 2, 4, 3, 5], [1] * 6), Bounds(0, 6), 600).base.tolist()
    assert swapped in ([0, 1, 2, 4, NONE, 5], [0, 1, 2, NONE, 3, 5])
    repeated = judge(batches([0, 1, 2, 1, 2, 3, 4], [1] * 7), Bounds(0, 5), 700).base.tolist()
    assert repeated == [0, 1, 2, NONE, NONE, 3, 4]


def test_a_batch_exchanged_with_the_last_one_is_not_renumbered():
    """Between the last right offset and the next segment there is the room that its written one needs."""
    base, span = [60, 67, 70, 86, 78, 85, 77], [7, 3, 7, 1, 7, 1, 1]
    for room in (Bounds(60, 87), Bounds(60, None, 87)):
        found = judge(batches(base, span), room, 700)
        assert found.base.tolist() == [60, 67, 70, NONE, 78, 85, NONE]


def test_many_wrong_offsets_take_linear_time():
    base = np.arange(200_000)[::-1]
    result = judge(batches(base, np.ones(len(base))), Bounds(0, 200_000), 0)
    assert np.count_nonzero(result.base != NONE) == 1


def test_next_to_damage_no_index_moves_a_batch():
    """A time index may name a lost batch by a timestamp that another one has, too."""
    three = batches([0, 25, 40], [10, 10, 10], timed=[9, 19, 49])
    damaged = replace(three, position=np.array([0, 200, 300]))
    assert not judge(damaged, Bounds(0), 400).wrong.any()
