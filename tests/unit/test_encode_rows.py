"""A column of blobs from records with a column `row`: the inverse of decode_batches."""

from __future__ import annotations

import gc
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import kafkacodec as kc
from tests.corpus import blobs
from tests.examples import examples
from tests.reference import records as reference

SOUND = [s for s in blobs("fetch", "builder", magics={2}) if s.error is None and s.expected.records][:60]
BLOBS = [s.data() for s in SOUND]


def table(rows: list[int | None], **columns: Any) -> pa.Table:
    values = [b"%d" % i for i in range(len(rows))]
    return pa.table({"row": pa.array(rows, pa.int64()), "value": pa.array(values, pa.binary()), **columns})


def blobs_of(column: Any) -> list[bytes | None]:
    array = pa.array(column)
    array.validate(full=True)
    assert array.type == pa.large_binary()
    assert len(array) == len(column)
    return array.to_pylist()


def records_of(decoded: kc.RecordColumns) -> pa.Table:
    """The values of a record's columns; the timestamp type belongs to a batch."""
    return pa.table(decoded).drop_columns("timestamp_type")


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_blobs_of_kafka_come_back_with_the_same_records(codec: str) -> None:
    column: list[bytes | None] = [b"", *BLOBS[:7], None, b"", *BLOBS[7:], b""]
    decoded = kc.decode_batches(pa.array(column, pa.binary()))
    again = kc.encode_rows(decoded, codec=codec, num_rows=len(column))
    made = blobs_of(again)
    assert len(made) == len(column)
    assert [bool(blob) for blob in made] == [blob is not None and len(kc.decode(blob)) > 0 for blob in column]
    assert records_of(kc.decode_batches(again)) == records_of(decoded)
    for blob in made:
        assert kc.scan(blob or b"").consumed == len(blob or b"")


def test_each_blob_is_what_encode_makes_of_its_records() -> None:
    decoded = pa.table(kc.decode_batches(pa.array(BLOBS)))
    options: Any = {"batch_bytes": 300, "producer_id": 5, "producer_epoch": 1, "base_sequence": 7}
    rows = decoded["row"].to_numpy()
    expected = [kc.encode(decoded.filter(pa.array(rows == i)), **options) for i in range(len(BLOBS))]
    assert blobs_of(kc.encode_rows(decoded, num_rows=len(BLOBS), **options)) == expected
    chunked = decoded.to_batches(max_chunksize=7)
    assert blobs_of(kc.encode_rows(chunked, num_rows=len(BLOBS), **options)) == expected


def test_an_independent_reader_finds_the_records() -> None:
    (first, second, third) = blobs_of(kc.encode_rows(table([0, 0, 2]), base_offset=10))
    assert second == b""
    for blob, offsets, values in ((first, [10, 11], [b"0", b"1"]), (third, [10], [b"2"])):
        ((batch, found),) = reference.read(blob)
        assert [(record[0], record[4]) for record in found] == list(zip(offsets, values, strict=True))
        assert batch.base_offset == 10


def test_message_sets_of_old_brokers() -> None:
    made = kc.encode_rows(table([1, 1, 3]), magic=1, codec="gzip", num_rows=5)
    decoded = kc.decode_batches(made, columns=["value"])
    assert decoded["row"].tolist() == [1, 1, 3]
    assert pa.table(decoded)["value"].to_pylist() == [b"0", b"1", b"2"]
    assert [bool(blob) for blob in blobs_of(made)] == [False, True, False, True, False]


def test_no_records_at_all() -> None:
    assert blobs_of(kc.encode_rows(table([]))) == []
    assert blobs_of(kc.encode_rows(table([]), num_rows=3)) == [b"", b"", b""]
    assert blobs_of(kc.encode_rows([], num_rows=2)) == [b"", b""]


def test_polars_and_lifetime() -> None:
    frame = pl.DataFrame({"row": [0, 1, 1], "value": [b"a", b"b", b"c"]})
    series = pl.Series(kc.encode_rows(frame))
    del frame
    gc.collect()
    assert [len(kc.decode(blob)) for blob in series] == [1, 2]


@given(
    st.lists(st.tuples(st.integers(0, 600), st.binary(max_size=40)), max_size=700),
    st.integers(1, 400),
    st.sampled_from(["none", "lz4"]),
)
@settings(deadline=None, max_examples=examples(40))
def test_any_rows_in_any_chunks(records: list[tuple[int, bytes]], chunk: int, codec: str) -> None:
    records.sort(key=lambda record: record[0])
    columns = pa.table(
        {
            "row": pa.array([row for row, _ in records], pa.int32()),
            "value": pa.array([value for _, value in records], pa.binary()),
        }
    )
    made = kc.encode_rows(columns.to_batches(max_chunksize=chunk), codec=codec, num_rows=601, batch_bytes=200)
    assert len(made) == 601
    decoded = kc.decode_batches(made)
    assert decoded["row"].tolist() == columns["row"].to_pylist()
    assert pa.table(decoded)["value"].to_pylist() == columns["value"].to_pylist()
    firsts = [i for i, (row, _) in enumerate(records) if i == 0 or records[i - 1][0] != row]
    assert all(decoded["offset"][i] == 0 for i in firsts)


@pytest.mark.parametrize(
    ("records", "options", "words"),
    [
        (table([1, 0]), {}, r"records\[1\]\.row: rows must not be negative or decrease: got 0, limit 1"),
        (table([-1]), {}, r"records\[0\]\.row: rows must not be negative"),
        (table([0, None]), {}, r"records\[1\]\.row: null"),
        (table([0, 3]), {"num_rows": 3}, r"records\[1\]\.row: row 3"),
        (table([1 << 40]), {}, "would exceed max_total_bytes"),
        (table([0, 1]), {"max_total_bytes": 100}, "would exceed max_total_bytes"),
        (pa.table({"value": [b"a"]}), {}, r"records\.row: missing column"),
        (pa.table({"value": [b"a"], "row": ["0"]}), {}, r"records\.row: the column is neither int32 nor int64"),
        (
            pa.table({"value": [b"a"], "row": pa.array([0], pa.timestamp("ms"))}),
            {},
            r"records\.row: the column is neither int32 nor int64",
        ),
        (pa.table([[b"a"], [0], [0]], names=["value", "row", "row"]), {}, r"records\.row: duplicate column name"),
        (table([0, 0], offset=pa.array([5, 5])), {}, r"records\[1\]: offsets must increase"),
    ],
)
def test_refused(records: pa.Table, options: Any, words: str) -> None:
    with pytest.raises(kc.EncodeError, match=words):
        kc.encode_rows(records, **options)


def test_rows_at_fault_are_counted_over_all_chunks() -> None:
    rows = [*range(600), 7]
    with pytest.raises(kc.EncodeError, match=r"^records\[600\]\.row: "):
        kc.encode_rows(table(rows).to_batches(max_chunksize=100))
    times = pa.array([0] * 599 + [1 << 62], pa.timestamp("s"))
    late = table(list(range(600)), timestamp=times).to_batches(max_chunksize=100)
    with pytest.raises(kc.EncodeError, match=r"^records\[599\]: a time"):
        kc.encode_rows(late)


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError, match="num_rows"):
        kc.encode_rows(table([0]), num_rows=1.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="num_rows"):
        kc.encode_rows(table([0]), num_rows=-1)
    with pytest.raises(TypeError):
        kc.encode_rows([(b"key", b"value")])
    with pytest.raises(TypeError):
        kc.encode_rows(5)
    with pytest.raises(TypeError, match="unknown option 'threads'"):
        kc.encode_rows(table([0]), threads=2)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="codec"):
        kc.encode_rows(table([0]), codec="brotli")
