"""Every kind of column that `kc.values.decode` takes: the package's own, numpy's, pandas', polars' and Arrow's."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import kafkacodec as kc

SCHEMAS = {1: '"long"'}
VALUES = [b"\0\0\0\0\1\x02", None, b"\0\0\0\0\1\x00"]  # the last byte of a value may be 0
WANT = [1, None, 0]
FULL = [VALUES[0], VALUES[2]]
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
PAYLOADS = [b"\x02", None, b"\x00"]
OWN_HEADERS = [(("a", None), ("__value_schema_id", b"\0\0\0\0\1")), (), [("__value_schema_id", b"\0\0\0\0\1")]]


def objects(values):
    found = np.empty(len(values), object)
    found[:] = values
    return found


def records(layout="copy"):
    data = kc.encode(pa.table({"key": VALUES, "value": VALUES, "headers": pa.array([[], [], []], HEADERS)}))
    return next(iter(kc.iter_columns(data, layout=layout)))


COLUMNS = {
    "of decode": lambda: records()["value"],
    "keys of decode": lambda: records()["key"],
    "of decode, as views": lambda: records("view")["value"],
    "of decode, as Arrow": lambda: pa.record_batch(records("view"))["value"],
    "list": lambda: VALUES,
    "tuple": lambda: tuple(VALUES),
    "list of buffers": lambda: [bytearray(VALUES[0]), None, memoryview(VALUES[2])],
    "numpy": lambda: objects(VALUES),
    "numpy with NaN": lambda: objects([VALUES[0], float("nan"), VALUES[2]]),
    "numpy with NaT": lambda: objects([VALUES[0], pd.NA, VALUES[2]]),
    "numpy with a mask": lambda: np.ma.MaskedArray(objects([VALUES[0], b"x", VALUES[2]]), [0, 1, 0]),
    "numpy, every second": lambda: objects([VALUES[0], b"x", None, b"x", VALUES[2]])[::2],
    "pandas": lambda: pd.Series(VALUES),
    "pandas, Arrow": lambda: pd.Series(VALUES, dtype=pd.ArrowDtype(pa.binary())),
    "pandas' array": lambda: pd.array(VALUES, dtype=pd.ArrowDtype(pa.binary())),
    "polars": lambda: pl.Series(VALUES),
    "polars, in chunks": lambda: pl.Series(VALUES[:1]).append(pl.Series(VALUES[1:])),
    "binary": lambda: pa.array(VALUES),
    "large_binary": lambda: pa.array(VALUES, pa.large_binary()),
    "binary_view": lambda: pa.array(VALUES, pa.binary_view()),
    "fixed_size_binary": lambda: pa.array(VALUES, pa.binary(6)),
    "a part": lambda: pa.array([b"x", *VALUES, b"x"])[1:4],
    "dictionary": lambda: pa.array(VALUES).dictionary_encode(),
    "dictionary of views": lambda: pa.DictionaryArray.from_arrays(
        pa.array([0, None, 1], pa.int8()), pa.array(FULL, pa.binary_view())
    ),
    "dictionary with null": lambda: pa.DictionaryArray.from_arrays(pa.array([1, 0, 2]), pa.array([None, *FULL])),
    "chunks": lambda: pa.chunked_array([pa.array(VALUES[:2]), pa.array(VALUES[2:])]),
    "chunks with their own dictionaries": lambda: pa.chunked_array(
        [pa.array(VALUES[:2]).dictionary_encode(), pa.array(VALUES[2:]).dictionary_encode()]
    ),
    "runs": lambda: pc.run_end_encode(pa.array(VALUES)),
    "extension": lambda: pa.ExtensionArray.from_storage(pa.opaque(pa.binary(), "t", "v"), pa.array(VALUES)),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_columns(name):
    column = COLUMNS[name]()
    assert kc.values.decode(column, SCHEMAS).values.to_pylist() == WANT
    assert kc.values.ValueDecoder(SCHEMAS).keys(column) == [kc.values.SchemaKey("id", 1)]


def test_fixed_values_of_numpy():
    column = np.frombuffer(b"".join(FULL), "V6")
    assert kc.values.decode(column, SCHEMAS).values.to_pylist() == [1, 0]


EMPTY = {
    "list": [],
    "numpy": np.array([], object),
    "chunks": pa.chunked_array([], pa.binary()),
    "dictionary": pa.chunked_array([], pa.dictionary(pa.int32(), pa.binary())),
    "polars": pl.Series([], dtype=pl.Binary),
}


@pytest.mark.parametrize("name", EMPTY)
def test_columns_without_rows(name):
    assert len(kc.values.decode(EMPTY[name], SCHEMAS)) == 0


TEXT = {
    "numpy": np.array(['{"a": 1}']),
    "numpy, objects": objects(['{"a": 1}']),
    "numpy, strings": np.array(['{"a": 1}'], np.dtypes.StringDType()),
    "pandas": pd.Series(['{"a": 1}']),
    "polars": pl.Series(['{"a": 1}']),
    "categories": pl.Series(['{"a": 1}']).cast(pl.Categorical),
    "string_view": pa.array(['{"a": 1}'], pa.string_view()),
}


@pytest.mark.parametrize("name", TEXT)
def test_text(name):
    assert kc.values.infer_json([TEXT[name]]).text == '{"type": "object", "properties": {"a": {"type": "integer"}}}'


HEADER_COLUMNS = {
    "numpy": lambda: objects(OWN_HEADERS),
    "list": lambda: OWN_HEADERS,
    "pandas": lambda: pd.Series(OWN_HEADERS),
    "Arrow": lambda: pa.array(OWN_HEADERS, HEADERS),
    "large lists": lambda: pa.array(OWN_HEADERS, pa.large_list(HEADERS.value_type)),
    "polars": lambda: pl.DataFrame(pa.table({"h": pa.array(OWN_HEADERS, HEADERS)}))["h"],
    "of decode": lambda: kc.decode(kc.encode(pa.table({"value": PAYLOADS, "headers": pa.array(OWN_HEADERS, HEADERS)})))[
        "headers"
    ],
}


@pytest.mark.parametrize("name", HEADER_COLUMNS)
def test_headers(name):
    found = kc.values.decode(PAYLOADS, SCHEMAS, headers=HEADER_COLUMNS[name]())
    assert found.values.to_pylist() == WANT


NOT_COLUMNS = {
    "text": ("abc", "values: expected an Arrow or numpy column or a list, not str"),
    "bytes": (b"abc", "not bytes"),
    "generator": ((value for value in VALUES), "not generator"),
    "nothing": (None, "not NoneType"),
    "table": (pa.table({"value": VALUES}), "expected a column of bytes or text, not struct"),
    "numbers": (np.array([1, 2]), "Expected bytes, got a 'int' object"),
    "Arrow numbers": (pa.array([1, 2]), "not int64"),
    "matrix": (np.array([[b"a"]], object), "one dimension, not 2"),
    "cut bytes": (np.array(FULL), "numpy cuts zero bytes off the end of values of type S; use an array of objects"),
}


@pytest.mark.parametrize("name", NOT_COLUMNS)
def test_other_things(name):
    column, reason = NOT_COLUMNS[name]
    with pytest.raises(TypeError, match=reason):
        kc.values.decode(column, SCHEMAS)


@pytest.mark.parametrize("headers", [pa.array([1, 2, 3]), np.array([1, 2, 3]), pa.array([["a"]] * 3)])
def test_other_headers(headers):
    with pytest.raises(TypeError):
        kc.values.decode(PAYLOADS, SCHEMAS, headers=headers)


def test_decoded_values_become_tables() -> None:
    found = kc.values.decode(
        [b'{"a": 1}', None], kc.values.Schema('{"properties": {"a": {"type": "integer"}}}', "json")
    )
    assert found.to_arrow().column_names == ["value", "schema_id", "schema_uuid", "error"]
    assert found.to_arrow()["value"].to_pylist() == [{"a": 1}, None]
    assert found.to_polars()["value"].to_list() == [{"a": 1}, None]
    assert found.to_pandas()["value"].tolist() == [{"a": 1}, None]
