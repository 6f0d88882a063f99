"""The input of kc.encode: column types of Arrow, Python records, chunks, other libraries."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import kafkacodec as kc
from kafkacodec.records.encode import EncodePlan, iter_writable
from tests.decoded import keys_and_values, rows

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
VALUES = [b"", b"a", None, b"twelve bytes", b"thirteen byte", b"x" * 1000, None, b"last"]


@pytest.mark.parametrize(
    "kind",
    [pa.binary(), pa.large_binary(), pa.binary_view(), pa.string(), pa.large_string(), pa.string_view()],
    ids=str,
)
def test_bytes_and_text_in_all_their_layouts(kind: pa.DataType) -> None:
    text = "string" in str(kind)
    column = pa.array([v.decode() if text and v is not None else v for v in VALUES], kind)
    data = kc.encode(pa.table({"key": column, "value": column}))
    assert keys_and_values(data) == [(v, v) for v in VALUES]


def test_fixed_size_binary() -> None:
    column = pa.array([b"abcd", None, b"efgh"], pa.binary(4))
    assert keys_and_values(kc.encode(pa.table({"value": column}))) == [(None, b"abcd"), (None, None), (None, b"efgh")]


@pytest.mark.parametrize("words", [pa.binary(), pa.large_binary(), pa.string_view(), pa.binary(20)], ids=str)
@pytest.mark.parametrize("number", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64"])
def test_dictionaries(number: str, words: pa.DataType) -> None:
    numbers = pa.array([2, 0, None, 1, 3, 2], number)
    texts = [b"a word of twenty ...", b"and another of these", b"third of all of them", None]
    column = pa.DictionaryArray.from_arrays(numbers, pa.array(texts, pa.binary(20)).cast(pa.binary()).cast(words))
    expected = [texts[2], texts[0], None, texts[1], None, texts[2]]
    assert keys_and_values(kc.encode(pa.table({"value": column}))) == [(None, v) for v in expected]
    assert keys_and_values(kc.encode(pa.table({"value": column.slice(3)}))) == [(None, v) for v in expected[3:]]


def test_a_dictionary_that_lacks_a_word() -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), pa.array(["a"]), safe=False)
    with pytest.raises(kc.EncodeError, match=r"records\[1\]: invalid dictionary index: got 1, limit 1"):
        kc.encode(pa.record_batch({"value": column}))


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary_view()], ids=str)
def test_slices_and_chunks_give_the_same_bytes_as_one_column(kind: pa.DataType) -> None:
    values = [None if i % 5 == 0 else b"%d" % i * (i % 40) for i in range(1000)]
    column = pa.array([b"cut off", *values, b"cut off too"], kind)
    sliced = pa.chunked_array([column.slice(1, 333), column.slice(334, 0), column.slice(334, 667)])
    whole = pa.array(values, kind)
    options: dict[str, Any] = {"batch_bytes": 2000, "base_offset": 7}
    assert kc.encode(pa.table({"value": sliced}), **options) == kc.encode(pa.table({"value": whole}), **options)


def test_a_sliced_record_batch() -> None:
    batch = pa.record_batch(
        {
            "key": pa.array([b"a", None, b"c", b"d"]),
            "timestamp": pa.array([1, 2, None, 4], pa.timestamp("ms")),
            "headers": pa.array([[], [{"key": "h", "value": b"1"}], None, [{"key": "i", "value": None}]], HEADERS),
        }
    )
    struct = pa.array(batch.to_struct_array().to_pylist(), batch.to_struct_array().type)
    expected = [(0, 2, None, None, [("h", b"1")]), (1, None, b"c", None, []), (2, 4, b"d", None, [("i", None)])]
    assert rows(kc.encode(batch.slice(1))) == expected
    assert rows(kc.encode(pa.RecordBatch.from_struct_array(struct.slice(1)))) == expected


@pytest.mark.parametrize(
    ("column", "milliseconds"),
    [
        (pa.array([5, None], pa.int64()), [5, None]),
        (pa.array([5, None], pa.timestamp("s")), [5000, None]),
        (pa.array([5, None], pa.timestamp("ms", "UTC")), [5, None]),
        (pa.array([5999, -1001, None], pa.timestamp("us", "Europe/Zurich")), [5, -2, None]),
        (pa.array([-1_000_001, 1_999_999], pa.timestamp("ns")), [-2, 1]),
        (pa.array([1], pa.date32()), [86_400_000]),
        (pa.array([datetime.date(1970, 1, 3)], pa.date64()), [2 * 86_400_000]),
    ],
    ids=lambda x: str(x.type) if isinstance(x, pa.Array) else "",
)
def test_timestamps_of_every_unit_become_milliseconds(column: pa.Array, milliseconds: list[int | None]) -> None:
    data = kc.encode(pa.table({"value": pa.nulls(len(column), pa.binary()), "timestamp": column}))
    assert [r.timestamp for r in kc.iter_records(data)] == milliseconds


@pytest.mark.parametrize("as_map", [False, True], ids=["list", "map"])
@pytest.mark.parametrize("large", [False, True], ids=["small", "large"])
def test_headers(as_map: bool, large: bool) -> None:
    rows: list[Any] = [[("a", b"1"), ("b", None)], [], None, [("ü", b"")], [("x", b"y" * 300)] * 200]
    pair = pa.struct([("key", pa.string()), ("value", pa.binary())])
    if as_map:
        kind = pa.map_(pa.string(), pa.large_binary() if large else pa.binary())
        column = pa.array(rows, kind)
    else:
        kind = pa.large_list(pair) if large else pa.list_(pair)
        column = pa.array([r and [{"key": k, "value": v} for k, v in r] for r in rows], kind)
    data = kc.encode(pa.table({"headers": column, "value": pa.nulls(5)}))
    assert [list(r.headers) for r in kc.iter_records(data)] == [r or [] for r in rows]


def test_python_records() -> None:
    records = [
        kc.Record(5, 1000, 0, b"k", b"v", [("h", b"x"), ("i", None)]),
        kc.Record(8, None, 0, None, "text", []),
        (9, 1002, 0, memoryview(b"mk"), bytearray(b"ba"), None),
    ]
    assert rows(kc.encode(records, base_offset=77)) == [
        (5, 1000, b"k", b"v", [("h", b"x"), ("i", None)]),
        (8, None, None, b"text", []),
        (9, 1002, b"mk", b"ba", []),
    ]


def test_python_records_across_blocks_equal_columns() -> None:
    n = 10_000
    pairs = [(b"%d" % i, None if i % 3 else b"v" * (i % 50)) for i in range(n)]
    table = pa.table({"key": pa.array([p[0] for p in pairs]), "value": pa.array([p[1] for p in pairs], pa.binary())})
    assert kc.encode(iter(pairs)) == kc.encode(table)


def test_decoded_columns_can_be_encoded_as_they_are() -> None:
    data = kc.encode([(b"%d" % i, b"v" * i) for i in range(300)], base_offset=11)
    assert kc.encode(kc.decode(data)) == data


def test_chunks_one_after_the_other_equal_the_whole() -> None:
    data = kc.encode([(None, b"%d" % n) for n in range(100)])
    chunks = list(kc.iter_columns(data, max_rows=7))
    assert len(chunks) > 1
    assert kc.encode(kc.iter_columns(data, max_rows=7)) == data
    assert b"".join(batch.data for batch in kc.iter_encoded(iter(chunks))) == data
    with pytest.raises(TypeError, match="tuple has no Arrow interface"):
        kc.encode([chunks[0], (b"a", b"b")])


def test_other_libraries_frames() -> None:
    import pandas as pd
    import polars as pl

    expected = kc.encode([(b"a", b"1"), (b"b", None)])
    frame = pl.DataFrame({"key": [b"a", b"b"], "value": [b"1", None]})
    assert kc.encode(frame) == expected
    assert kc.encode(frame.with_columns(pl.col("key").cast(pl.String))) == expected
    assert kc.encode(pd.DataFrame({"key": [b"a", b"b"], "value": [b"1", None]})) == expected
    indexed = pd.DataFrame({"key": [b"a", b"b"], "value": [b"1", None]}, index=[7, 3])
    assert pa.table(indexed).column_names == ["key", "value", "__index_level_0__"]
    assert kc.encode(indexed) == expected


def test_columns_that_readers_of_records_write_are_left_out() -> None:
    records = kc.decode(kc.encode([(b"a", b"1")]), batch_columns=True)
    more = ["topic", "partition", "timestampType", "next_offset", "row"]
    typed = [f"{part}_{name}" for part in ("key", "value") for name in ("schema_id", "error")]
    table = pa.table(records)
    for name in (*more, *typed):
        table = table.append_column(name, pa.nulls(1))
    assert kc.encode(table) == kc.encode([(b"a", b"1")])


def test_everything_imported_is_released() -> None:
    before = pa.total_allocated_bytes()
    table = pa.table({"value": pa.array([b"x" * 100] * 10_000)})
    for _ in range(5):
        kc.encode(table)
        kc.encode(table.to_batches()[0])
    with pytest.raises(kc.EncodeError):
        kc.encode(pa.table({"value": table["value"], "offset": pa.array(np.zeros(10_000, np.int64))}))
    assert pa.total_allocated_bytes() > before
    del table
    assert pa.total_allocated_bytes() <= before


@pytest.mark.parametrize("codec", ["none", "lz4"])
@pytest.mark.parametrize("batch_bytes", [100, 5_000, 60_000, 1_000_000])
def test_batches_that_can_be_changed_share_no_memory(codec, batch_bytes):
    """Some are given away with the memory that they were written into, some are copied out of it."""
    rows = pa.table({"value": [b"%d" % n * (n % 97) for n in range(3_000)]})
    expected = [
        batch.data for batch in kc.iter_encoded(rows, codec=codec, batch_bytes=batch_bytes, default_timestamp=5)
    ]
    found = list(iter_writable(rows, EncodePlan(codec=codec, batch_bytes=batch_bytes, default_timestamp=5)))
    assert [bytes(data) for data, *_ in found] == expected
    assert sum(count for _, count, _ in found) == len(rows)
    plain = kc.iter_encoded(rows, batch_bytes=batch_bytes, default_timestamp=5)
    assert [size for *_, size in found] == [len(batch.data) for batch in plain]
    for data, *_ in found[::2]:
        memoryview(data)[:] = bytes(len(data))
    assert [bytes(data) for data, *_ in found[1::2]] == expected[1::2]
