"""How long single calls take: every one of some thousands, not their mean."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from functools import partial

import kafkacodec as kc
from benchmarks import reading
from benchmarks.cases import Case, record_set
from benchmarks.contest import Contest

CALLS = 2_000
PER_DECADE = 20
FIRST = 1e-7
"""The seconds where the first class begins; each of `PER_DECADE` in a decade is as much longer than the one before."""

Classes = dict[int, int]
"""How many calls took the time of a class, by its number."""


def contests() -> list[Contest]:
    """A fetched batch of 16 KiB, and encoding as many rows, one call each."""
    case = Case("one call, decode a batch of 16 KiB", total_bytes=120 * 120)
    data = record_set(case)
    reading.compare(case, data)
    decoder, encoder = kc.Decoder(), kc.Encoder()
    rows = [(record.key, record.value) for record in kc.iter_records(data)]
    decoding: dict[str, Callable[[], object]] = {
        "Decoder.decode": partial(decoder.decode, data),
        "Decoder.iter_records": lambda: [*decoder.iter_records(data)],
        "aiokafka": partial(reading.aiokafka, data),
        "kafka-python": partial(reading.kafka_python, data),
    }
    encoding: dict[str, Callable[[], object]] = {
        "Encoder.encode": partial(encoder.encode, rows),
        "aiokafka": partial(record_set, case, [(-1, key or b"", value or b"") for key, value in rows]),
    }
    return [
        Contest(case.name, "calls", 1, decoding),
        Contest("one call, encode a batch of 16 KiB", "calls", 1, encoding),
    ]


def measure(contest: Contest) -> dict[str, Classes]:
    """The classes of each competitor's calls, by processor time, in turns."""
    seconds: dict[str, list[float]] = {name: [] for name in contest.competitors}
    for _ in range(CALLS):
        for name, call in contest.competitors.items():
            start = time.thread_time_ns()
            call()
            seconds[name].append((time.thread_time_ns() - start) / 1e9)
    return {name: classes(found) for name, found in seconds.items()}


def classes(seconds: Iterable[float]) -> Classes:
    """How many of these times are in each class."""
    found: Classes = {}
    for time_taken in seconds:
        number = max(0, math.floor(math.log10(max(time_taken, FIRST) / FIRST) * PER_DECADE))
        found[number] = found.get(number, 0) + 1
    return found


def begins(number: int) -> float:
    """The least time of a class, in seconds."""
    return FIRST * 10 ** (number / PER_DECADE)


def quantile(found: Classes, share: float) -> float:
    """The seconds, to the end of a class, within which this share of the calls ended."""
    left = share * sum(found.values())
    for number in sorted(found):
        left -= found[number]
        if left <= 0:
            return begins(number + 1)
    raise ValueError("no calls")
