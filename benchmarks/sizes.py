"""Rates by size, over four decades: of values, beside the limits of the machine, and of record sets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import kafkacodec as kc
from benchmarks import reading
from benchmarks.cases import Case, record_set
from benchmarks.contest import Contest
from benchmarks.limits import limits

VALUE_BYTES = (10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)
SET_RECORDS = (1, 10, 100, 1_000, 10_000)
CASES = [Case(f"values of {size:,} bytes", value_bytes=size, total_bytes=24_000_000) for size in VALUE_BYTES]
_RECORDS_PER_ROUND = 20_000


def value_contest(case: Case, data: bytes) -> Contest:
    """Readers of one record set in bytes per second; a copy of it, and checksums of its bytes in blocks of 16 KiB."""
    reading.compare(case, data)
    competitors: dict[str, Callable[[], object]] = {
        "iter_columns": partial(reading.iter_columns, data),
        "iter_columns, views": partial(reading.iter_views, data),
        "iter_records": partial(reading.iter_records, data),
        "aiokafka": partial(reading.aiokafka, data),
        **limits(data),
    }
    return Contest(case.name, "bytes", len(data), competitors)


def set_contests() -> Iterator[Contest]:
    """Record sets of one batch or more, read one at a time."""
    decoder = kc.Decoder()
    for count in SET_RECORDS:
        case = Case(f"sets of {count:,} records", total_bytes=120 * count)
        data = record_set(case)
        reading.compare(case, data)
        repeats = _RECORDS_PER_ROUND // count
        calls: dict[str, Callable[[], object]] = {
            "Decoder.decode": partial(decoder.decode, data),
            "Decoder.iter_records": partial(_listed, decoder, data),
            "aiokafka": partial(reading.aiokafka, data),
            "kafka-python": partial(reading.kafka_python, data),
        }
        competitors = {name: partial(_repeat, call, repeats) for name, call in calls.items()}
        yield Contest(case.name, "records", count * repeats, competitors)


def _repeat(call: Callable[[], object], times: int) -> None:
    for _ in range(times):
        call()


def _listed(decoder: kc.Decoder, data: bytes) -> list[kc.Record]:
    return [*decoder.iter_records(data)]
