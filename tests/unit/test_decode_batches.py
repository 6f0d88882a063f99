"""A column of record sets, one per row."""

from __future__ import annotations

import polars as pl
import pyarrow as pa
import pytest

import kafkacodec as kc
from tests.corpus import blobs, rows

SOUND = [s for s in blobs("fetch", "builder", magics={2}) if s.error is None and s.expected.records][:40]
BLOBS = [s.data() for s in SOUND]


def expected(blobs: list[bytes | None]) -> list[tuple[object, ...]]:
    return [
        (*row, i)
        for i, blob in enumerate(blobs)
        if blob is not None
        for row in rows(kc.decode(blob, include_control=True))
    ]


def got(result: kc.RecordColumns) -> list[tuple[object, ...]]:
    return [(*row, i) for row, i in zip(rows(result), result["row"].tolist(), strict=True)]


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary_view()], ids=str)
def test_records_name_their_row(kind: pa.DataType) -> None:
    column: list[bytes | None] = [None, *BLOBS[:5], b"", None, *BLOBS[5:]]
    result = kc.decode_batches(pa.array(column, kind), include_control=True)
    assert got(result) == expected(column)
    assert result.schema.names[-1] == "row"
    assert result.consumed == sum(kc.decode(b).consumed for b in BLOBS)


def test_chunked_sliced_and_foreign_columns() -> None:
    chunked = pa.chunked_array([pa.array(BLOBS[:3]), pa.array([], pa.binary()), pa.array([b"", *BLOBS[3:]]).slice(1)])
    assert got(kc.decode_batches(chunked, include_control=True)) == expected([*BLOBS])
    assert got(kc.decode_batches(pl.Series(BLOBS), include_control=True)) == expected([*BLOBS])


def test_more_rows_than_a_block_holds() -> None:
    column = pa.array(BLOBS[:2] * 400)
    result = kc.decode_batches(column, columns=["offset"])
    assert result.column_names == ["offset", "row"]
    counts = [len(kc.decode(b)) for b in BLOBS[:2]] * 400
    assert result["row"].tolist() == [i for i, n in enumerate(counts) for _ in range(n)]


def test_faults_name_the_row() -> None:
    damaged = bytearray(BLOBS[1])
    damaged[40] ^= 1
    column = pa.array([BLOBS[0], bytes(damaged), BLOBS[2]])
    with pytest.raises(kc.CrcMismatch, match="row 1: batch at offset"):
        kc.decode_batches(column)
    for on_error in ("stop", "skip"):
        result = kc.decode_batches(column, on_error=on_error, include_control=True)  # type: ignore[arg-type]
        assert {0, 2} <= {*result["row"].tolist()}
        (problem,) = result.problems
        assert problem.position == 0
        assert str(problem.exception).startswith("row 1: ")


@pytest.mark.parametrize(
    "column", [pa.array([1, 2]), pa.table({"value": BLOBS[:1]}), pa.array([[b""]])], ids=["int", "table", "list"]
)
def test_other_types_are_refused(column: object) -> None:
    with pytest.raises(TypeError):
        kc.decode_batches(column)
    with pytest.raises(TypeError, match="Arrow interface"):
        kc.decode_batches(BLOBS)
