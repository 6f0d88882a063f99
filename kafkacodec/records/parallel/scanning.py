"""Checksums of batches in several threads."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from kafkacodec.arrow._columns import append, fits
from kafkacodec.errors import LimitExceeded
from kafkacodec.records.columns import BatchHeaders
from kafkacodec.records.parallel.workers import Workers

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["ScanResult", "scan_in_threads"]

ScanResult = tuple[BatchHeaders, int, int, Exception | None, bool]
"""What `_decoder.scan` returns."""

LEAST_SCANNED = 64
"""Number of batches below which one thread computes their checksums."""


def scan_in_threads(
    read: Callable[[int, int | None, int], ScanResult],
    positions: npt.NDArray[np.int64],
    end: int | None,
    most: int,
    threads: int,
) -> ScanResult | None:
    """The result of a scan, from threads that each read a part of the batches.

    Args:
        read: scans from a position to another, at most so many batches.
        positions: of all batches, as a scan without checksums found them.
        end: where the data ends; None for the end of the buffer.
        most: the maximum number of batches.
        threads: the number of threads, including the caller's.

    Returns:
        None if one thread has to scan: there are few batches, a limit was reached, or the data has changed.
    """
    if len(positions) < LEAST_SCANNED:
        return None
    bounds = [len(positions) * i // threads for i in range(threads)]
    starts = [int(positions[i]) for i in sorted(set(bounds))]
    lasts = sorted(set(bounds))[-1]
    with closing(Workers(threads)) as workers:
        calls = [partial(read, first, stop, most) for first, stop in pairwise(starts)]
        jobs = [workers.start(call) for call in [*calls, partial(read, starts[-1], end, most - lasts)]]
        results = [workers.result(job, iter(jobs)) for job in jobs]
    whole = results[0][0]
    for (_, position, *_, fault, _), stop in zip(results, starts[1:], strict=False):
        if position != stop or fault is not None:
            return None
    for part, *_ in results[1:]:
        if not fits(whole, part, 0):
            return None
        try:
            append(whole, part)
        except LimitExceeded:
            return None
    return None if results[-1][4] else (whole, *results[-1][1:])
