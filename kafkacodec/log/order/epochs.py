"""Detection of wrong leader epochs, which no checksum covers. These functions decide; they read no files.

Epochs never decrease from batch to batch. A batch that contradicts this is wrong, not the many around it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from kafkacodec.datatypes import NamedTuple
from kafkacodec.log.formats.checkpoints import LeaderEpoch
from kafkacodec.log.order.chains import longest_chain
from kafkacodec.log.order.placement import Ints

NO_EPOCH = -1
"""The epoch of batches that were written without one."""


class EpochRun(NamedTuple):
    """Consecutive batches of the same leader epoch.

    Attributes:
        epoch: the epoch.
        first_offset, last_offset: of the batches.
        batches: their number.
        path, position: where the first one is.
    """

    epoch: int
    first_offset: int
    last_offset: int
    batches: int
    path: str
    position: int


class EpochRuns:
    """The leader epochs of batches, in the order of the log. Batches without one are left out.

    Attributes:
        runs (list[EpochRun]): those so far.
    """

    def __init__(self) -> None:
        self.runs: list[EpochRun] = []

    def add(self, path: str, epoch: Ints, base: Ints, last: Ints, position: Ints) -> None:
        """Add batches; all arrays have an element for each."""
        rows = np.flatnonzero(epoch != NO_EPOCH)
        cuts = np.flatnonzero(np.diff(epoch[rows], prepend=NO_EPOCH))
        ends = np.append(cuts[1:], len(rows))[: len(cuts)]
        for first, end in zip(cuts.tolist(), ends.tolist(), strict=True):
            at = int(rows[first])
            offsets = int(base[at]), int(last[rows[end - 1]])
            found = EpochRun(int(epoch[at]), *offsets, end - first, path, int(position[at]))
            if self.runs and self.runs[-1].epoch == found.epoch:
                before = self.runs.pop()
                found = before._replace(last_offset=found.last_offset, batches=before.batches + found.batches)
            self.runs.append(found)


class WrongEpoch(NamedTuple):
    """A run of batches with a wrong leader epoch, and the epochs of the right ones before and after it; None: none."""

    run: EpochRun
    before: int | None
    after: int | None

    @property
    def reason(self) -> str:
        """The fault."""
        around = [str(epoch) for epoch in dict.fromkeys((self.before, self.after)) if epoch is not None]
        return f"leader epoch {self.run.epoch} is wrong: the batches around it have {' and '.join(around) or 'others'}"


def judge_epochs(runs: Sequence[EpochRun], known: Sequence[LeaderEpoch]) -> tuple[list[EpochRun], list[WrongEpoch]]:
    """The runs with right leader epochs, and those with wrong ones.

    Right are the most batches whose epochs do not decrease; of several choices, those that agree with the checkpoint.

    Args:
        runs: the batches of a log or a part of it.
        known: the log's checkpoint; empty: none.
    """
    valid = [i for i, run in enumerate(runs) if run.epoch >= 0]
    if any(runs[b].epoch < runs[a].epoch for a, b in pairwise(valid)):
        epochs = [2 * runs[i].epoch for i in valid]
        # More batches first, then agreement.
        worth = [4 * len(valid) * (runs[i].batches - 1) + _agrees(runs[i], known) for i in valid]
        chain = longest_chain([epoch + 1 for epoch in epochs], epochs, list(range(len(valid))), worth)
        valid = [valid[row] for row in chain]
    chosen = [runs[i] for i in valid]
    numbers = {epoch.epoch for epoch in known}
    right = {i for k, i in enumerate(valid) if not _stray(chosen, k, known, numbers)}
    wrong, before, after = [], None, [runs[i].epoch for i in sorted(right, reverse=True)]
    for i, run in enumerate(runs):
        if i in right:
            before = after.pop()
        else:
            wrong.append(WrongEpoch(run, before, after[-1] if after else None))
    return [runs[i] for i in sorted(right)], wrong


def told_by(known: Sequence[LeaderEpoch], wrong: Sequence[WrongEpoch]) -> list[EpochRun]:
    """Batches with wrong epochs, with those of the checkpoint, where these fit between the batches around them."""
    found = []
    for run, before, after in wrong:
        term = _term(run, known)
        if term is not None and (before or 0) <= term.epoch and (after is None or term.epoch <= after):
            found.append(run._replace(epoch=term.epoch))
    return found


class Contradiction(NamedTuple):
    """Batches whose leader epoch is not that of the checkpoint for an offset on."""

    run: EpochRun
    offset: int
    epoch: int

    @property
    def reason(self) -> str:
        """The fault."""
        return f"leader epoch {self.run.epoch}, but the checkpoint has {self.epoch}"


def contradiction(runs: Sequence[EpochRun], known: Sequence[LeaderEpoch]) -> Contradiction | None:
    """The first difference between batches with right epochs and the checkpoint; more may have the same cause."""
    for run in runs:
        first = _term(run, known)
        begin, end = (bisect_right(known, offset, key=_start_of) for offset in (run.first_offset, run.last_offset))
        inside = [(start, epoch) for epoch, start in known[begin:end]]
        for offset, epoch in [*([] if first is None else [(run.first_offset, first.epoch)]), *inside]:
            if epoch != run.epoch:
                return Contradiction(run, offset, epoch)
    return None


def _start_of(epoch: LeaderEpoch) -> int:
    return epoch.start_offset


def _term(run: EpochRun, known: Sequence[LeaderEpoch]) -> LeaderEpoch | None:
    """The checkpoint's entry for the first offset of a run."""
    at = bisect_right(known, run.first_offset, key=_start_of)
    return known[at - 1] if at else None


def _agrees(run: EpochRun, known: Sequence[LeaderEpoch]) -> bool:
    term = _term(run, known)
    return term is not None and term.epoch == run.epoch


def _stray(runs: Sequence[EpochRun], k: int, known: Sequence[LeaderEpoch], numbers: set[int]) -> bool:
    """Whether a batch has an epoch that is not among the checkpoint's `numbers`, between batches that agree with it.

    At the end of a log the epoch may be newer than the checkpoint.
    """
    run = runs[k]
    term = _term(run, known)
    if run.batches > 1 or term is None or term.start_offset == run.first_offset or k + 1 == len(runs):
        return False
    if run.epoch in numbers:
        return False
    return (k == 0 or _agrees(runs[k - 1], known)) and _agrees(runs[k + 1], known)
