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
    with pytest.raises(TypeError, match="binary"):
        columns["key"]
    with pytest.raises(TypeError, match="Arrow"):
        columns.buffers("headers")
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


def test_rows_are_neither_indexed_nor_iterated(log: Sample) -> None:
    table = kc.decode(log.data())
    with pytest.raises(TypeError, match="expected a column name"):
        table[0]  # type: ignore[index]
    with pytest.raises(TypeError, match="not iterable"):
        iter(table)  # type: ignore[call-overload]


def test_repr_tells_the_shape(log: Sample) -> None:
    assert repr(kc.decode(log.data(), columns=["offset"])).startswith(
        f"<RecordColumns: {len(log.expected.records)} rows (offset)"
    )
