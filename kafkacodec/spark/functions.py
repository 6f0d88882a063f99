"""DataFrame functions: explode columns of raw blobs into records, remove Confluent's framing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import arrow_udf
from pyspark.sql.types import BinaryType, StructType

import kafkacodec as kc
from kafkacodec.records.arguments import limit
from kafkacodec.records.decode import DEFAULT_MAX_TOTAL_BYTES, OnError
from kafkacodec.spark.errors import OptionError
from kafkacodec.spark.reading import ROWS, Shaper, log_problems
from kafkacodec.spark.schema import spark_schema

__all__ = ["decode_batches", "split_confluent"]

RECORD_COLUMNS = ("key", "value", "offset", "timestamp", "timestampType", "headers")

# Blobs are decoded in groups of about this many bytes, whose records fit one or a few Arrow batches.
_BLOB_BYTES = 1 << 20


def decode_batches(
    df: DataFrame,
    column: str = "value",
    *,
    columns: Sequence[str] = RECORD_COLUMNS,
    keep: Sequence[str] = (),
    mode: str = "FAILFAST",
    max_total_bytes: int = DEFAULT_MAX_TOTAL_BYTES,
) -> DataFrame:
    """Explode a column of raw record sets (one blob of batches per row) into a row per record.

    Args:
        df: the data frame. Rows whose blob is null or empty have no records.
        column: the binary column of blobs, such as record sets from fetch responses or parts of segments.
        columns: the columns to build, of ``key``, ``value``, ``offset``, ``timestamp``, ``timestampType``,
            ``headers``, with the types of the format ``kafkalog``. Other columns are not decoded.
        keep: columns of `df` to keep, before the others; their names must differ from `columns`.
        mode: ``FAILFAST`` fails the job at the first damaged blob, ``PERMISSIVE`` logs and skips damage.
        max_total_bytes: a task's memory limit, in bytes, for the records of about 1 MiB of blobs or of one larger blob.
            Exceeding it fails the job in either mode.

    Raises:
        OptionError: an argument is wrong; the message starts with its name.
    """
    _check(df, column, columns, keep, mode)
    try:
        limit("max_total_bytes", max_total_bytes)
    except (TypeError, ValueError) as error:
        raise OptionError(str(error)) from None
    kept = StructType([df.schema[name] for name in keep])
    schema = StructType([*kept.fields, *spark_schema(columns).fields])
    on_error: OnError = "skip" if mode.upper() == "PERMISSIVE" else "raise"

    def explode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        shaper = Shaper(columns)
        for batch in batches:
            blobs = batch.column(column)
            for start, stop in _groups(blobs):
                chunk = kc.decode_batches(
                    blobs[start:stop],
                    columns=shaper.core_columns,
                    on_error=on_error,
                    max_total_bytes=max_total_bytes,
                )
                log_problems(f"column {column}", chunk)
                yield from _with_kept(shaper.shape(chunk), batch, keep, chunk["row"] + start)

    return df.select(column, *[name for name in keep if name != column]).mapInArrow(explode, schema)


def split_confluent(column: Column | str) -> Column:
    """Split values in Confluent's framing into a struct of ``schema_id`` (int) and ``payload`` (binary).

    A value without the framing becomes the payload, with a null id; a null value is null in both.
    """
    return arrow_udf(_split_confluent, "schema_id int, payload binary")(column)


def _split_confluent(values: pa.Array) -> pa.Array:
    split = kc.split_confluent(values)
    payloads = pa.array(split.payloads).cast(pa.binary())
    return pa.StructArray.from_arrays([pa.array(split.schema_ids), payloads], names=["schema_id", "payload"])


def _check(df: DataFrame, column: str, columns: Sequence[str], keep: Sequence[str], mode: str) -> None:
    for argument, names in {"column": [column], "keep": keep}.items():
        for name in names:
            if name not in df.columns:
                raise OptionError(f"{argument}: unknown column {name!r}; columns are {', '.join(df.columns)}")
    if not isinstance(df.schema[column].dataType, BinaryType):
        raise OptionError(f"column: {column!r} is {df.schema[column].dataType.simpleString()}, not binary")
    for name in columns:
        if name not in RECORD_COLUMNS:
            raise OptionError(f"columns: unknown column {name!r}; columns are {', '.join(RECORD_COLUMNS)}")
        if name in keep:
            raise OptionError(f"keep: {name!r} is also one of columns; rename it first")
    if not columns:
        raise OptionError("columns: no column given")
    if mode.upper() not in ("FAILFAST", "PERMISSIVE"):
        raise OptionError(f"mode: expected FAILFAST or PERMISSIVE, not {mode!r}")


def _groups(blobs: pa.Array) -> Iterator[tuple[int, int]]:
    """Runs of rows whose blobs total about `_BLOB_BYTES`; a larger blob is a run by itself."""
    lengths = np.asarray(pc.fill_null(pc.binary_length(blobs), 0))
    ends = np.cumsum(lengths, dtype=np.int64)
    start = 0
    while start < len(ends):
        before = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + _BLOB_BYTES, side="right")))
        yield start, stop
        start = stop


def _with_kept(
    records: pa.RecordBatch, source: pa.RecordBatch, keep: Sequence[str], rows: np.ndarray
) -> Iterator[pa.RecordBatch]:
    """The records after the kept columns of their source rows, in batches of `ROWS`."""
    names = [*keep, *records.schema.names]
    for start in range(0, records.num_rows, ROWS):
        part = records.slice(start, ROWS)
        indices = pa.array(rows[start : start + ROWS])
        kept = [source.column(name).take(indices) for name in keep]
        yield pa.RecordBatch.from_arrays([*kept, *part.columns], names=names)
