"""Any number of threads returns the result of one thread, for intact and damaged data and every on_error."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

import kafkacodec as kc
from tests.corpus import Sample, blobs, segments
from tests.property.test_damaged_formats import damaged, sound

DAMAGED = blobs("corrupt", "foreign", "cut")
LOGS = [s for s in segments() if 2_000 < s.path.stat().st_size < 60_000][::4]


def outcome(data: bytes, **options: Any) -> tuple[Any, ...]:
    """The complete result of decoding, in a form that can be compared."""
    try:
        table = kc.decode(data, batch_columns=True, include_control=True, **options)
    except kc.DecodeError as error:
        return type(error), error.position, str(error)
    problems = [(p.position, p.base_offset, p.size_in_bytes, str(p.exception)) for p in table.problems]
    return pa.record_batch(table), problems, table.consumed


def assert_threads_change_nothing(data: bytes, threads: int) -> None:
    for on_error in ("raise", "stop", "skip"):
        for verify_crc in (True, False):
            options = {"on_error": on_error, "verify_crc": verify_crc}
            assert outcome(data, threads=threads, **options) == outcome(data, **options)


@pytest.mark.parametrize("sample", DAMAGED[::7], ids=str)
def test_damaged_golden_files(sample: Sample) -> None:
    data = sample.data()
    assert_threads_change_nothing(data[: 1 << 20], 3)


@pytest.mark.parametrize("sample", LOGS, ids=str)
def test_damage_in_golden_logs(sample: Sample) -> None:
    rnd = random.Random(sample.name)
    for _ in range(6):
        assert_threads_change_nothing(damaged(sample.data(), rnd), rnd.randrange(2, 7))


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_damage_in_many_small_batches(magic: int) -> None:
    rnd = random.Random(magic)
    data = sound(magic)
    for _ in range(150):
        assert_threads_change_nothing(damaged(data, rnd), rnd.randrange(2, 9))


def test_a_cut_that_a_damaged_length_leads_to_counts_for_nothing() -> None:
    """A wrong length leads the walk over headers into a batch, where bytes look like headers."""
    inside = kc.encode([(None, b"inside")] * 3)
    batches = [kc.encode([(None, b"x" * 200 + inside * 20)], base_offset=i) for i in range(8)]
    data = bytearray(b"".join(batches))
    at = len(batches[0])
    length = data.index(inside, at) - at - 12
    data[at + 8 : at + 12] = length.to_bytes(4, "big")
    for threads in range(2, 9):
        assert_threads_change_nothing(bytes(data), threads)
    assert len(kc.decode(data, threads=4, on_error="skip")) >= 7
