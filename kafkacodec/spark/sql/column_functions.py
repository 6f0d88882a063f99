"""Functions of columns: Kafka's partitioner and messages, batch headers, checksums, Confluent's framing."""

from __future__ import annotations

import base64
import json
import math
from operator import index
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, functions as F

from kafkacodec.arguments import is_integer, suggestion
from kafkacodec.errors import DecodeError, LimitExceeded
from kafkacodec.messages import message_class, message_names
from kafkacodec.records.columns import BatchHeaders
from kafkacodec.records.headers import scan
from kafkacodec.records.partition import partition
from kafkacodec.records.plan import DEFAULT_MAX_TOTAL_BYTES
from kafkacodec.spark.environment.versions import require_spark
from kafkacodec.spark.errors import OptionError, without_traceback
from kafkacodec.spark.headers import HEADER, arrow_type, header_columns, spark_column
from kafkacodec.spark.schema import RECORD_COLUMNS, arrow_schema
from kafkacodec.spark.sql.blobs import Explosion
from kafkacodec.spark.sql.checks import require_bytes
from kafkacodec.spark.times import beyond_spark, far_text

if TYPE_CHECKING:
    from kafkacodec.messages import Message

__all__ = [
    "UDFS",
    "batch_headers",
    "crc_ok",
    "decode_message",
    "decode_records",
    "kafka_partition",
    "split_confluent",
]

_HEADERS = pa.list_(pa.struct(HEADER))
_RECORDS = arrow_type(pa.list_(pa.struct(arrow_schema(RECORD_COLUMNS))))


def split_confluent(column: Column | str) -> Column:
    """Split values in Confluent's framing into a struct of ``schema_id`` (int) and ``payload`` (binary).

    A value without the framing becomes the payload, with a null id; a null value is null in both. It is an expression
    of Spark's own functions: no Python runs.

    Args:
        column: a binary or string column.
    """
    value = (F.col(column) if isinstance(column, str) else column).cast("binary")
    framed = (F.octet_length(value) >= 5) & (F.substring(value, 1, 1) == F.lit(b"\0"))
    unsigned = F.conv(F.hex(F.substring(value, 2, 4)), 16, 10).cast("bigint")
    # Ids are signed in the wire format; a plain cast of 2^31 or more is an error in ANSI mode.
    schema_id = F.when(framed, F.shiftright(F.shiftleft(unsigned, 32), 32).cast("int"))
    payload = F.when(framed, F.substring(value, 6, 0x7FFFFFFF)).otherwise(value)
    return F.struct(schema_id.alias("schema_id"), payload.alias("payload"))


def kafka_partition(key: Column | str, num_partitions: Column | int) -> Column:
    """The partition (int) that Kafka's default partitioner gives a key; null for a null key. Needs Spark 4.1.

    Args:
        key: a binary or string column, or one of int or bigint, as Kafka's serializers write them.
        num_partitions: the number of partitions of the topic.

    Raises:
        OptionError: `num_partitions` is not positive.
        KafkaCodecError: Spark is older.
    """
    if isinstance(num_partitions, bool) or is_integer(num_partitions):
        _positive(num_partitions)
        num_partitions = F.lit(index(num_partitions))
    return _udf("kafka_partition")(key, num_partitions)


def _positive(num_partitions: object) -> None:
    if not is_integer(num_partitions) or num_partitions < 1:  # type: ignore[operator]
        raise OptionError(f"num_partitions: {num_partitions!r} is not a positive number")


def crc_ok(column: Column | str) -> Column:
    """Whether the checksums of all batches in a blob of record batches are right (boolean). Needs Spark 4.1.

    False also if a batch does not begin where one must. Null if all whole batches are right but bytes follow that are
    not one, so that nothing is known of them: the end of a response that was cut off, or a damaged length. Null also
    for an empty blob and for a null one. The records are not read.

    Raises:
        KafkaCodecError: Spark is older.
    """
    return _udf("crc_ok")(column)


def batch_headers(column: Column | str) -> Column:
    """The headers of a blob's batches: an array of structs with the columns of `kafkacodec.scan`. Needs Spark 4.1.

    Use ``inline`` to have a row for each batch. Null for a null blob. Numbers are int or bigint, times timestamps. The
    job fails at a blob in which a batch does not begin where one must, or has a time that Spark cannot hold. Bytes at
    the end that are not a whole batch are left out; ``crc_ok`` is null for such a blob.

    Raises:
        KafkaCodecError: Spark is older.
    """
    return _udf("batch_headers")(column)


def decode_records(column: Column | str) -> Column:
    """The records of a blob of record batches: an array of structs with the columns of ``kafkalog``. Needs Spark 4.1.

    They have ``key``, ``value``, ``offset``, ``timestamp``, ``timestampType`` and ``headers``. Use ``inline`` to have a
    row for each record; `decode_batches` gives rows directly, can skip damage, and needs less memory. Null for a null
    blob. The job fails at damage and at times that Spark cannot hold; bytes at the end that are not a whole batch are
    left out, see `crc_ok`.

    Raises:
        KafkaCodecError: Spark is older.
    """
    return _udf("decode_records")(column)


def decode_message(column: Column | str, name: str | Column, version: int | Column) -> Column:
    """Bodies of requests, responses or stored data as JSON (string). Needs Spark 4.1.

    Names of fields are those of `kafkacodec.messages`; bytes are base64, ids in the usual form of UUIDs, and numbers
    that JSON lacks are text. Null for a null body. The job fails at a body that cannot be decoded.

    Args:
        column: the bodies, without size and header.
        name: the class in `kafkacodec.messages`, such as ``MetadataResponse``.
        version: the version of the API.

    Raises:
        OptionError: there is no such class or version.
        KafkaCodecError: Spark is older.
    """
    if isinstance(name, str):
        if isinstance(version, int) or is_integer(version):
            _versioned(name, version)
        name = F.lit(name)
    return _udf("decode_message")(column, name, F.lit(index(version)) if is_integer(version) else version)


def _versioned(name: str, version: int) -> type[Message]:
    names = message_names()
    if name not in names:
        raise OptionError(f"name: {name!r} is no message; {suggestion(name, names, 'messages')}")
    found = message_class(name)
    if not is_integer(version):
        raise OptionError(f"version: expected a number, not {version!r}")
    if version not in found.valid_versions:
        known = found.valid_versions
        raise OptionError(f"version: {name} has the versions {known.start} to {known.stop - 1}, not {version}")
    return found


def _udf(name: str) -> Any:
    """One of `UDFS` as Spark's function."""
    require_spark(f"kafkacodec.spark.{name}", (4, 1))
    from pyspark.sql.functions import arrow_udf
    from pyspark.sql.pandas.types import from_arrow_type

    function, kind = UDFS[name]
    return arrow_udf(function, from_arrow_type(kind))


@without_traceback()
def _partitions(keys: pa.Array, counts: pa.Array) -> pa.Array:
    require_bytes("key", keys, (pa.int32(), pa.int64()))
    result = pa.nulls(len(keys), pa.int32())
    for count in counts.unique().drop_null().to_pylist():
        _positive(count)
        wanted = pc.and_(pc.fill_null(pc.equal(counts, count), False), keys.is_valid())
        found = pa.array(partition(keys.filter(wanted), count))
        result = pc.replace_with_mask(result, wanted, found)
    return result


@without_traceback()
def _checksums(blobs: pa.Array) -> pa.Array:
    return pa.array([None if blob is None else _all_right(blob) for blob in _buffers(blobs)], pa.bool_())


def _all_right(blob: pa.Buffer) -> bool | None:
    try:
        found = scan(blob, columns=["crc_ok"])
    except DecodeError:
        return False
    if not found["crc_ok"].all():
        return False
    return True if len(found) and found.consumed == blob.size else None


@without_traceback()
def _headers(blobs: pa.Array) -> pa.Array:
    offsets: list[int | None] = []
    found, end = [], 0
    for blob in _buffers(blobs):
        offsets.append(None if blob is None else end)
        if blob is not None:
            found.append(scan(blob))
            end += len(found[-1])
            _refuse_far_times(found[-1])
    structs = pa.StructArray.from_arrays(header_columns(found), fields=list(_HEADERS.value_type))
    return pa.ListArray.from_arrays(pa.array([*offsets, end], pa.int32()), structs, type=_HEADERS)


def _refuse_far_times(headers: BatchHeaders) -> None:
    """Raises LimitExceeded: a batch has times that Spark cannot hold."""
    columns = pa.record_batch(headers)
    for name in ("base_timestamp", "max_timestamp"):
        for row in beyond_spark(columns.column(name))[:1].tolist():
            what = f"the batch at offset {int(headers['base_offset'][row])}: {name}"
            raise LimitExceeded(far_text(what, columns.column(name), row))


@without_traceback()
def _records(blobs: pa.Array) -> pa.Array:
    require_bytes("column", blobs)
    explosion = Explosion(
        column="blob",
        columns=RECORD_COLUMNS,
        keep=("row",),
        on_error="raise",
        problems=False,
        max_total_bytes=DEFAULT_MAX_TOTAL_BYTES,
    )
    rows = pa.RecordBatch.from_arrays([blobs, pa.array(np.arange(len(blobs)))], ["blob", "row"])
    parts = list(explosion.explode([rows]))
    found = pa.Table.from_batches(parts) if parts else None
    counts = np.bincount(found["row"].to_numpy(), minlength=len(blobs)) if found else np.zeros(len(blobs), np.int64)
    offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
    fields = list(_RECORDS.value_type)
    columns = [spark_column(found[field.name], field.type) if found else pa.array([], field.type) for field in fields]
    structs = pa.StructArray.from_arrays(columns, fields=fields)
    return pa.ListArray.from_arrays(offsets, structs, type=_RECORDS, mask=blobs.is_null())


@without_traceback()
def _messages(bodies: pa.Array, names: pa.Array, versions: pa.Array) -> pa.Array:
    rows = zip(_buffers(bodies), names.to_pylist(), versions.to_pylist(), strict=True)
    return pa.array([None if any(part is None for part in row) else _as_json(*row) for row in rows], pa.string())


def _as_json(body: pa.Buffer, name: str, version: int) -> str:
    return json.dumps(_plain(_versioned(name, version).decode(body, version).to_dict()), ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, UUID) or (isinstance(value, float) and not math.isfinite(value)):
        return str(value)
    return value


def _buffers(blobs: pa.Array) -> Any:
    require_bytes("column", blobs)
    return (value.as_buffer() if value.is_valid else None for value in blobs)


UDFS: dict[str, tuple[Any, pa.DataType]] = {
    "batch_headers": (_headers, _HEADERS),
    "crc_ok": (_checksums, pa.bool_()),
    "decode_message": (_messages, pa.string()),
    "decode_records": (_records, _RECORDS),
    "kafka_partition": (_partitions, pa.int32()),
}
"""Arrow functions and the types of their results, by the names that SQL knows them by."""

for _name, (_function, _) in UDFS.items():
    _function.__name__ = _name  # Spark calls columns so
