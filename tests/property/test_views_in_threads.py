"""Views made by several threads have the content, problems and errors of copies made by one, in memory and in files."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import kafkacodec as kc
from kafkacodec.records.parallel import runs
from tests.corpus import Sample, blobs, copied
from tests.examples import examples
from tests.property.test_column_choice import OLD, V2, damaged_batch, damaged_messages
from tests.property.test_damaged_formats import damaged, sound
from tests.property.test_record_damage import damaged_segments

DAMAGED = [s for s in blobs("corrupt", "foreign", "cut") if "bomb" not in s.name]  # tests/limits has those
COMPLETE: dict[str, Any] = {"batch_columns": True, "include_control": True}

Outcome = tuple[Any, ...]
"""The rows as a pyarrow table with copied values, the problems, `consumed`, and the error that ended reading."""


@pytest.fixture(autouse=True)
def short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of a batch or a few, so that small data has many."""
    monkeypatch.setattr(runs, "FIRST_RUN", 150)
    monkeypatch.setattr(runs, "SHORTEST_RUN", 150)


def problems_of(table: kc.RecordColumns) -> list[Any]:
    return [(p.position, p.base_offset, p.size_in_bytes, type(p.exception), str(p.exception)) for p in table.problems]


def decoded(data: bytes, **options: Any) -> Outcome:
    try:
        table = kc.decode(data, **COMPLETE, **options)
    except kc.DecodeError as error:
        return type(error), error.position, str(error)
    # The threads and their decoders are gone: the table alone keeps what its views point into.
    return copied(table), problems_of(table), table.consumed


def in_chunks(chunks: Any) -> Outcome:
    """All chunks exist at once; their values are read after the last one."""
    tables, error = [], None
    try:
        tables.extend(chunks)
    except kc.DecodeError as fault:
        error = type(fault), fault.position, str(fault)
    rows = pa.concat_tables(map(copied, tables)).combine_chunks() if tables else None
    consumed = tables[-1].consumed if error is None else None
    return rows, [problem for table in tables for problem in problems_of(table)], consumed, error


def assert_views_agree(data: bytes, threads: int, max_rows: int) -> None:
    for on_error in ("skip", "stop", "raise"):
        for verify_crc in (True, False):
            options: dict[str, Any] = {"on_error": on_error, "verify_crc": verify_crc}
            assert decoded(data, layout="view", threads=threads, **options) == decoded(data, **options)
        options = {"on_error": on_error, "max_rows": max_rows, **COMPLETE}
        views = in_chunks(kc.iter_columns(data, layout="view", threads=threads, **options))
        assert views == in_chunks(kc.iter_columns(data, **options))


THREADS = st.integers(2, 4)
ROWS = st.sampled_from([1, 7, 8192])


@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(damaged_segments(), THREADS, ROWS)
def test_damaged_segments(data: bytes, threads: int, max_rows: int) -> None:
    assert_views_agree(data, threads, max_rows)


@pytest.mark.parametrize("sample", DAMAGED[3::7], ids=str)
def test_damaged_golden_files(sample: Sample) -> None:
    rnd = random.Random(sample.name)
    assert_views_agree(sample.data()[: 1 << 17], rnd.randrange(2, 5), 7)


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_damage_in_many_small_batches(magic: int) -> None:
    rnd = random.Random(magic)
    data = sound(magic)
    for _ in range(examples(60)):
        assert_views_agree(damaged(data, rnd), rnd.randrange(2, 5), rnd.choice([1, 7, 8192]))


@pytest.mark.parametrize("sample", [*V2, *OLD][::2], ids=str)
def test_damage_with_right_checksums(sample: Sample) -> None:
    """Records before the damage of a compressed batch are kept: their views point into what one thread decompressed."""
    rnd = random.Random(sample.name)
    damage = damaged_batch if sample in V2 else damaged_messages
    for _ in range(examples(10)):
        data = damage(sample, rnd) + sample.data()[:2000] + damage(sample, rnd)
        assert_views_agree(data, rnd.randrange(2, 5), rnd.choice([3, 8192]))


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_segments(magic: int, mapped: bool, tmp_path: Path) -> None:
    """Views into a copy that each chunk has of its part of the file, or into the mapped file."""
    rnd = random.Random(magic)
    path = tmp_path / "00000000000000000000.log"
    segment = kc.log.Segment(path)
    for _ in range(examples(40)):
        path.write_bytes(damaged(sound(magic), rnd))
        for on_error in ("skip", "stop", "raise"):
            options: dict[str, Any] = {"on_error": on_error, "max_rows": rnd.choice([1, 7, 8192]), **COMPLETE}
            threads = rnd.randrange(2, 5)
            views = in_chunks(segment.read(layout="view", mapped=mapped, threads=threads, **options))
            assert views == in_chunks(segment.read(**options))
