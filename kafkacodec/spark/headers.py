"""Headers of batches, and other Arrow columns, in the types that Spark has."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from kafkacodec.records.columns import BatchHeaders
from kafkacodec.spark.times import TIME, microseconds

__all__ = ["HEADER", "TIME", "arrow_type", "header_columns", "spark_column"]

HEADER = {
    "position": pa.int64(),
    "size_in_bytes": pa.int64(),
    "base_offset": pa.int64(),
    "last_offset": pa.int64(),
    "magic": pa.int32(),
    "codec": pa.string(),
    "timestamp_type": pa.int32(),
    "base_timestamp": TIME,
    "max_timestamp": TIME,
    "count": pa.int32(),
    "producer_id": pa.int64(),
    "producer_epoch": pa.int32(),
    "base_sequence": pa.int32(),
    "partition_leader_epoch": pa.int32(),
    "is_transactional": pa.bool_(),
    "is_control": pa.bool_(),
    "delete_horizon_ms": pa.int64(),
    "crc": pa.int64(),
    "crc_ok": pa.bool_(),
}
"""The columns of `kafkacodec.scan` and their types here."""


def header_columns(headers: Sequence[BatchHeaders], names: Sequence[str] = tuple(HEADER)) -> list[pa.Array]:
    """These columns of all headers, one after another."""
    tables = [pa.record_batch(part) for part in headers]
    found = pa.Table.from_batches(tables, tables[0].schema) if tables else None
    kinds = ((name, HEADER[name]) for name in names)
    return [pa.array([], kind) if found is None else spark_column(found[name], kind) for name, kind in kinds]


def spark_column(column: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    """A column in another type; timestamps that Spark cannot hold are null."""
    whole = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    return microseconds(whole) if kind == TIME and whole.type != TIME else whole.cast(kind)


def arrow_type(kind: pa.DataType) -> pa.DataType:
    """The Arrow type that Spark expects for a type: times in microseconds, and its name for elements of lists."""
    if pa.types.is_timestamp(kind):
        return TIME
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", arrow_type(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, arrow_type(field.type)) for field in kind])
    return kind
