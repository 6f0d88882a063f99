"""Reading in two threads and in one, by the wall clock: processor time does not show what threads save."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import kafkacodec as kc
from benchmarks.cases import Case
from benchmarks.contest import Contest
from benchmarks.limits import in_threads

TIMES = 4
"""How often the record set of a case is repeated: starting threads takes about half a millisecond."""

ALONE = "copy or library alone"
COMPARED = ("none", "none, 1 KiB values", "lz4", "zstd", "snappy", "gzip")


def contest(case: Case, data: bytes) -> Contest:
    """Chunks and one table, from one thread and from two; the copy or the decompression alone likewise."""
    repeated = data * TIMES
    competitors: dict[str, Callable[[], object]] = {}
    for threads in (1, 2):
        competitors[f"iter_columns, threads={threads}"] = partial(_iter_columns, repeated, threads)
        competitors[f"decode, threads={threads}"] = partial(_decode, repeated, threads)
        alone = in_threads(case.codec, repeated, threads)
        if alone is not None:
            competitors[f"{ALONE}, threads={threads}"] = alone
    return Contest(f"threads, {case.name}", "records", case.num_records * TIMES, competitors)


def _iter_columns(data: bytes, threads: int) -> int:
    return sum(map(len, kc.iter_columns(data, threads=threads)))


def _decode(data: bytes, threads: int) -> int:
    return len(kc.decode(data, threads=threads))
