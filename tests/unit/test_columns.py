"""The Arrow and numpy interfaces: no copies, no leaks, no dangling pointers."""

from __future__ import annotations

import gc
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import kafkacodec as kc
from tests.corpus import Sample, segments


@pytest.fixture(scope="module")
def log() -> Sample:
    return next(s for s in segments(magics={2}) if len(s.expected.records) > 100)


class Foreign:
    """Returns capsules, like an object of another library."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.inner.__arrow_c_stream__(requested_schema)


def address(array: np.ndarray[Any, Any]) -> int:
    return array.__array_interface__["data"][0]


def test_pyarrow_takes_the_memory_as_it_is(log: Sample) -> None:
    columns = kc.decode(log.data())
    for table in (pa.record_batch(columns), pa.table(Foreign(columns)).to_batches()[0], columns.to_pyarrow()):
        assert table.column("offset").buffers()[1].address == address(columns["offset"])
        for name in ("key", "value"):
            _, offsets, data = table.column(name).buffers()
            parts = columns.buffers(name)
            assert offsets.address == address(parts["offsets"])
            assert data.address == address(parts["data"])
        table.validate(full=True)


def test_polars_takes_the_memory_as_it_is(log: Sample) -> None:
    columns = kc.decode(log.data(), columns=["offset", "value"])
    frame = pl.DataFrame(columns)
    assert address(frame["offset"].to_numpy(allow_copy=False)) == address(columns["offset"])
    assert frame["value"].to_list() == pa.table(columns).column("value").to_pylist()


def test_duckdb_reads_the_stream(log: Sample) -> None:
    columns = Foreign(kc.decode(log.data()))
    assert columns is not None
    (row,) = duckdb.sql('select count(*), min("offset"), sum(octet_length(value)) from columns').fetchall()
    records = log.expected.records
    values = [r.value for r in records]
    assert row == (
        len(records),
        records[0].offset,
        sum(v.size if not isinstance(v, bytes) else len(v) for v in values if v),
    )


def test_pandas(log: Sample) -> None:
    frame = kc.decode(log.data(), columns=["offset", "timestamp"]).to_pandas()
    assert frame["offset"].tolist() == [r.offset for r in log.expected.records]
    assert str(frame["timestamp"].dtype) == "datetime64[ms, UTC]"


def test_types_are_the_promised_ones(log: Sample) -> None:
    schema = pa.schema(kc.decode(log.data(), batch_columns=True).schema)
    ms = pa.timestamp("ms", "UTC")
    headers = pa.list_(pa.field("item", pa.struct([("key", pa.string()), ("value", pa.binary())])))
    assert list(zip(schema.names, schema.types, strict=True)) == [
        ("offset", pa.int64()),
        ("timestamp", ms),
        ("timestamp_type", pa.int8()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", headers),
        ("partition_leader_epoch", pa.int32()),
        ("producer_id", pa.int64()),
        ("producer_epoch", pa.int16()),
        ("sequence", pa.int32()),
        ("is_transactional", pa.bool_()),
        ("is_control", pa.bool_()),
        ("magic", pa.int8()),
        ("codec", pa.string()),
        ("batch_offset", pa.int64()),
        ("batch_position", pa.int64()),
    ]
    assert [f.type for f in kc.decode(log.data()).schema][-2:] == ["binary", "list<struct<key: string, value: binary>>"]
    assert kc.scan(log.data()).schema.names[:3] == ["position", "size_in_bytes", "base_offset"]


def test_numpy_views_outlive_their_table(log: Sample) -> None:
    offsets = kc.decode(log.data())["offset"]
    data = kc.decode(log.data()).buffers("value")["data"]
    gc.collect()
    churn = [kc.decode(log.data()) for _ in range(20)]
    assert offsets.tolist() == [r.offset for r in log.expected.records]
    assert len(churn) == 20
    assert data is not None
    assert not offsets.flags.writeable
    assert not data.flags.writeable


def test_numpy_types(log: Sample) -> None:
    columns = kc.decode(log.data(), batch_columns=True)
    assert columns["timestamp"].dtype == "datetime64[ms]"
    assert columns["is_control"].dtype == np.bool_
    assert columns["magic"].tolist() == [2] * len(columns)
    assert columns.nbytes > 0
    headers = columns.buffers("headers")
    counts = [len(record.headers) for record in log.expected.records]
    assert np.diff(headers["offsets"]).tolist() == counts
    keys = headers["items"]["key"]
    joined = "".join(key for record in log.expected.records for key, _ in record.headers)
    assert bytes(keys["data"]) == joined.encode()
    assert len(headers["items"]["value"]["offsets"]) == sum(counts) + 1
    with pytest.raises(KeyError):
        columns["nothing"]


def test_every_buffer_is_given_back(log: Sample) -> None:
    data = log.data()
    kc.decode(data)
    gc.collect()
    before = kc.memory_in_use().live

    def use() -> None:
        columns = kc.decode(data, batch_columns=True)
        columns.__arrow_c_array__()  # capsules that nobody takes
        columns.__arrow_c_stream__()
        columns.__arrow_c_schema__()
        batch = pa.record_batch(columns)
        child = batch.column("headers").flatten()
        view = columns["offset"]
        del columns, batch
        assert len(view) > 0
        assert child is not None
        for chunk in kc.iter_columns(data, max_rows=16):
            pa.table(chunk)
            break
        kc.decode(data, threads=2)
        next(kc.iter_records(data))

    for _ in range(5):
        use()
    gc.collect()
    assert kc.memory_in_use().live == before


def test_a_stream_can_be_asked_for_twice(log: Sample) -> None:
    columns = kc.decode(log.data())
    assert pa.table(columns).equals(pa.table(columns))


@pytest.fixture(params=["copy", "view"])
def table(request: pytest.FixtureRequest, log: Sample) -> Any:
    return kc.decode(log.data(), include_control=True, layout=request.param)


def test_iteration_and_row_numbers_give_records(log: Sample, table: Any) -> None:
    wanted = [(r.offset, r.timestamp, r.key, tuple(r.headers)) for r in log.expected.records]
    assert [(r.offset, r.timestamp, r.key, r.headers) for r in table] == wanted
    rows = [table[row] for row in range(len(table))]
    assert all(type(row) is kc.Record for row in rows)
    assert rows == table.records() == list(table)
    assert table[-1] == rows[-1]
    for row in (len(table), -len(table) - 1):
        with pytest.raises(IndexError):
            table[row]


def test_iteration_over_other_columns_gives_named_tuples(log: Sample) -> None:
    table = kc.decode(log.data(), include_control=True, columns=["offset", "key"])
    assert [(row.offset, row.key) for row in table] == [(r.offset, r.key) for r in log.expected.records]
    assert table[1]._fields == ("offset", "key")
    headers = kc.scan(log.data())
    assert [(h.base_offset, h.is_control, h.delete_horizon_ms) for h in headers] == [
        (b["baseOffset"], b["isControl"], None) for b in log.expected.batches
    ]


@pytest.mark.parametrize(
    "part", [slice(3), slice(5, 5), slice(7, None), slice(-4, -1), slice(9, 2), slice(10**9), slice(8, 2, -3)]
)
def test_slices_are_tables_of_copies(log: Sample, table: Any, part: slice) -> None:
    cut = table[part]
    assert type(cut) is kc.RecordColumns
    assert list(cut) == list(table)[part]
    pa.record_batch(cut).validate(full=True)
    assert pa.record_batch(cut).to_pylist() == pa.record_batch(table).to_pylist()[part]


def test_a_slice_lives_longer_than_its_table(log: Sample) -> None:
    for layout in ("copy", "view"):
        cut = kc.decode(bytes(log.data()), include_control=True, layout=layout).head(7)
        gc.collect()
        assert [r.key for r in cut] == [r.key for r in log.expected.records[:7]]
    assert [r.offset for r in kc.decode(log.data()).head()] == [r.offset for r in log.expected.records[:5]]


def test_columns_of_bytes_are_arrays_of_objects(log: Sample, table: Any) -> None:
    records = log.expected.records
    assert table["key"].dtype == object
    assert table["key"].tolist() == [r.key for r in records]
    assert table["headers"].tolist() == [tuple(r.headers) for r in records]


def test_wrong_keys(table: Any) -> None:
    with pytest.raises(TypeError, match="expected a column name, a row number or a slice, not float"):
        table[0.5]
    with pytest.raises(KeyError):
        table["no such column"]
    with pytest.raises(ValueError, match="n is -1"):
        table.head(-1)


def test_empty_tables_have_all_faces() -> None:
    table = kc.decode(b"")
    assert (list(table), list(table.head()), len(table[1:]), table["key"].tolist()) == ([], [], 0, [])
    assert "0 rows" in table._repr_html_()


def test_one_row_is_not_rows() -> None:
    table = kc.decode(kc.encode([(b"k", b"v")] * 1200))
    assert (repr(table[:1])[:22], repr(table)[:27]) == ("<RecordColumns: 1 row ", "<RecordColumns: 1,200 rows ")
    assert "RecordColumns: 1 row<" in table[:1]._repr_html_()


def test_html_is_escaped_and_short() -> None:
    hostile = b"<script>alert('\xe2\x80\xae\x1b[31m')</script>"
    data = kc.encode([(hostile, b"x" * 10_000), ("Grüße".encode() * 100, None), (b"\xff", b"a\nb")] * 20)
    shown = kc.decode(data)._repr_html_()
    assert "60 rows, the first 10 of which are" in shown
    assert "<script" not in shown
    assert hostile.hex() in shown
    assert "x" * 99 + "…" in shown
    assert "x" * 100 not in shown
    assert '<td style="text-align:left">null</td>' in shown
    assert "a\\nb" in shown
    assert '<th style="text-align:right">offset</th>' in shown
    assert '<td style="text-align:right">0</td>' in shown
    assert shown.count("<th ") == shown.count('<th style="text-align:left">') + 2 == 6  # offset and timestamp_type
    assert "Grüße" in shown
    headers = pa.table({"value": [b"v"], "headers": [[{"key": "<b>", "value": b"1"}, {"key": "n", "value": None}]]})
    assert "&lt;b&gt;=1, n=null" in kc.decode(kc.encode(headers))._repr_html_()


def test_polars_and_arrow_by_name(log: Sample) -> None:
    table = kc.decode(log.data(), include_control=True)
    assert table.to_polars()["offset"].to_list() == [r.offset for r in log.expected.records]
    assert table.to_arrow().equals(pa.table(table))


def test_repr_tells_the_shape(log: Sample) -> None:
    assert repr(kc.decode(log.data(), columns=["offset"])).startswith(
        f"<RecordColumns: {len(log.expected.records):,} rows (offset)"
    )
