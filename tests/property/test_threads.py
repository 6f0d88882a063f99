"""Any number of threads returns the result of one thread, for intact and damaged data and every on_error."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import kafkacodec as kc
from kafkacodec.records.parallel import runs
from tests.corpus import Sample, blobs, segments
from tests.examples import examples, some
from tests.property.test_damaged_formats import damaged, sound

DAMAGED = blobs("corrupt", "foreign", "cut")
LOGS = [s for s in segments() if 2_000 < s.path.stat().st_size < 60_000][::4]


def short_runs() -> Iterator[int]:
    """Twice, with runs of a batch or a few, so that small files have many."""
    with pytest.MonkeyPatch.context() as patch:
        for size in (120, 900):
            patch.setattr(runs, "FIRST_RUN", size)
            patch.setattr(runs, "SHORTEST_RUN", size)
            yield size


def outcome(data: bytes, **options: Any) -> tuple[Any, ...]:
    """The complete result of decoding, in a form that can be compared."""
    try:
        table = kc.decode(data, batch_columns=True, include_control=True, **options)
    except kc.DecodeError as error:
        return type(error), error.position, str(error)
    return pa.record_batch(table), problems_of(table), table.consumed


def problems_of(table: kc.RecordColumns) -> list[tuple[Any, ...]]:
    return [(p.position, p.base_offset, p.size_in_bytes, str(p.exception)) for p in table.problems]


def outcome_in_chunks(data: bytes, max_rows: int, **options: Any) -> tuple[Any, ...]:
    """The same of chunks: their rows and problems one after another, and what the last one says."""
    tables, problems, consumed, error = [], [], [], None
    # Chunks of a row are many, and a test of where chunks end; larger ones have all columns.
    options |= {"columns": ("offset", "value")} if max_rows == 1 else {"batch_columns": True}
    try:
        for chunk in kc.iter_columns(data, max_rows=max_rows, include_control=True, **options):
            assert len(chunk) <= max_rows
            tables.append(pa.record_batch(chunk))
            problems += problems_of(chunk)
            consumed.append(chunk.consumed)
    except kc.DecodeError as fault:
        error = type(fault), fault.position, str(fault)
    assert consumed == sorted(consumed)
    rows = pa.Table.from_batches(tables).combine_chunks() if tables else None
    # What chunks before an error say of `consumed` depends on where they end.
    return rows, problems, consumed[-1] if error is None else None, error


def assert_threads_change_nothing(data: bytes, threads: int) -> None:
    whole: list[dict[str, Any]] = [
        {"on_error": on_error, "verify_crc": verify_crc}
        for on_error in ("raise", "stop", "skip")
        for verify_crc in (True, False)
    ]
    pieces = [(max_rows, on_error) for on_error in ("raise", "stop", "skip") for max_rows in (1, 7, 8192)]
    expected = [outcome(data, **options) for options in whole]
    expected_pieces = [outcome_in_chunks(data, max_rows, on_error=on_error) for max_rows, on_error in pieces]
    for size in short_runs():
        for options, alone in zip(whole, expected, strict=True):
            assert outcome(data, threads=threads, **options) == alone, (size, options)
        for (max_rows, on_error), alone in zip(pieces, expected_pieces, strict=True):
            found = outcome_in_chunks(data, max_rows, on_error=on_error, threads=threads)
            assert found == alone, (size, max_rows, on_error)


@pytest.mark.parametrize("sample", some(DAMAGED[::7]), ids=str)
def test_damaged_golden_files(sample: Sample) -> None:
    data = sample.data()
    assert_threads_change_nothing(data[: 1 << 17], 3)


@pytest.mark.parametrize("sample", some(LOGS), ids=str)
def test_damage_in_golden_logs(sample: Sample) -> None:
    rnd = random.Random(sample.name)
    assert_threads_change_nothing(sample.data(), 5)
    for _ in range(3):
        assert_threads_change_nothing(damaged(sample.data(), rnd), rnd.randrange(2, 7))


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_damage_in_many_small_batches(magic: int) -> None:
    rnd = random.Random(magic)
    data = sound(magic)
    for _ in range(examples(30)):
        assert_threads_change_nothing(damaged(data, rnd), rnd.randrange(2, 9))


@pytest.mark.parametrize("span", [(3, None), (None, 40), (11, 12), (0, 0), (10**9, None)])
@pytest.mark.parametrize("magic", [0, 2])
def test_offsets_between_bounds(magic: int, span: tuple[int | None, int | None]) -> None:
    options = {"start_offset": span[0], "end_offset": span[1]}
    data = sound(magic)
    expected = outcome_in_chunks(data, 5, **options), outcome(data, **options)
    for size in short_runs():
        found = outcome_in_chunks(data, 5, threads=3, **options), outcome(data, threads=3, **options)
        assert found == expected, size


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
