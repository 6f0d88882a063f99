"""How many examples and cases the tests try: as many as they say, or a part of them for `make quick`."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from typing import TypeVar

QUICK = bool(os.environ.get("KAFKACODEC_QUICK"))
Case = TypeVar("Case")


def examples(count: int) -> int:
    """Of Hypothesis: a tenth."""
    return max(1, count // 10) if QUICK else count


def some(cases: Sequence[Case]) -> Sequence[Case]:
    """Of a list of cases that take long: every fifth."""
    return cases[::5] if QUICK else cases


def left_out(names: Sequence[str]) -> set[int]:
    """The indices of tests that `make quick` leaves out: of those with many cases all but every tenth, or five."""
    cases: defaultdict[str, list[int]] = defaultdict(list)
    for index, name in enumerate(names):
        cases[name.partition("[")[0]].append(index)
    return {
        index
        for indices in cases.values()
        for number, index in enumerate(indices)
        if number % min(10, 1 + (len(indices) - 1) // 5)
    }
