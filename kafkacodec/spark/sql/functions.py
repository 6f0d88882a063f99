"""Functions for data frames: explode columns of raw blobs into records; and the functions of columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import BinaryType, StructType

from kafkacodec.arguments import columns_hint, limit
from kafkacodec.records.plan import DEFAULT_MAX_TOTAL_BYTES
from kafkacodec.signatures import suggests_options
from kafkacodec.spark.errors import OptionError
from kafkacodec.spark.schema import RECORD_COLUMNS, spark_schema
from kafkacodec.spark.sql.blobs import PROBLEMS, Explosion
from kafkacodec.spark.sql.column_functions import (
    batch_headers,
    crc_ok,
    decode_message,
    decode_records,
    kafka_partition,
    split_confluent,
)
from kafkacodec.spark.sql.register import register_functions

__all__ = [
    "batch_headers",
    "crc_ok",
    "decode_batches",
    "decode_message",
    "decode_records",
    "kafka_partition",
    "register_functions",
    "split_confluent",
]


@suggests_options
def decode_batches(
    df: DataFrame,
    column: str = "value",
    *,
    columns: Sequence[str] = RECORD_COLUMNS,
    keep: Sequence[str] = (),
    mode: str = "FAILFAST",
    problems: bool = False,
    max_total_bytes: int = DEFAULT_MAX_TOTAL_BYTES,
) -> DataFrame:
    """Explode a column of raw record sets (one blob of batches per row) into a row per record.

    Args:
        df: the data frame. Rows whose blob is null or empty have no records.
        column: the binary column of blobs, such as record sets from fetch responses or parts of segments.
        columns: the columns to build, of ``key``, ``value``, ``offset``, ``timestamp``, ``timestampType``,
            ``headers``, with the types of the format ``kafkalog``. Other columns are not decoded.
        keep: columns of `df` to keep, before the others; their names must differ from `columns`.
        mode: ``FAILFAST`` fails the job at the first damaged blob, ``PERMISSIVE`` skips damage, and logs it
            unless `problems` is true.
        problems: with ``PERMISSIVE``, add a last column ``problems``, which is null for records, and a row for each
            damaged blob: its kept columns, no record, and an array of structs, in the order of the blob, of
            ``position`` and ``size`` (bigint, the bytes of the blob that were left out), ``baseOffset`` (bigint, of the
            batch there; null if its header is not reliable) and ``message`` (string).
        max_total_bytes: a task's memory limit, in bytes, for the records of about 1 MiB of blobs or of one larger blob.
            Exceeding it fails the job in either mode.

    Raises:
        OptionError: an argument is wrong; the message starts with its name.
    """
    _check(df, column, columns, keep, mode)
    _check_problems(problems, mode, keep)
    try:
        limit("max_total_bytes", max_total_bytes)
    except (TypeError, ValueError) as error:
        raise OptionError(str(error)) from None
    explosion = Explosion(
        column=column,
        columns=tuple(columns),
        keep=tuple(keep),
        on_error="skip" if mode.upper() == "PERMISSIVE" else "raise",
        problems=problems,
        max_total_bytes=max_total_bytes,
    )

    def explode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return explosion.explode(batches)

    damage = [PROBLEMS] if problems else []
    schema = StructType([*(df.schema[name] for name in keep), *spark_schema(columns).fields, *damage])
    return df.select(column, *[name for name in keep if name != column]).mapInArrow(explode, schema)


def _check(df: DataFrame, column: str, columns: Sequence[str], keep: Sequence[str], mode: str) -> None:
    for argument, names in {"columns": columns, "keep": keep, "column": [column]}.items():
        if isinstance(names, str):
            raise OptionError(f"{argument}: expected a list of names, such as [{names!r}], not one text")
        for name in names:
            if not isinstance(name, str):
                raise OptionError(f"{argument}: expected the name of a column, not {type(name).__name__}")
    for argument, names in {"column": [column], "keep": keep}.items():
        for name in names:
            if name not in df.columns:
                raise OptionError(f"{argument}: unknown column {name!r}; {columns_hint(name, df.columns)}")
    if not isinstance(df.schema[column].dataType, BinaryType):
        raise OptionError(f"column: {column!r} is {df.schema[column].dataType.simpleString()}, not binary")
    for name in columns:
        if name not in RECORD_COLUMNS:
            raise OptionError(f"columns: unknown column {name!r}; {columns_hint(name, RECORD_COLUMNS)}")
        if name in keep:
            raise OptionError(f"keep: {name!r} is also one of columns; rename it first")
    if not columns:
        raise OptionError("columns: no column given")
    if mode.upper() not in ("FAILFAST", "PERMISSIVE"):
        raise OptionError(f"mode: expected FAILFAST or PERMISSIVE, not {mode!r}")


def _check_problems(problems: bool, mode: str, keep: Sequence[str]) -> None:
    if not isinstance(problems, bool):
        raise OptionError(f"problems: expected True or False, not {problems!r}")
    if problems and mode.upper() != "PERMISSIVE":
        raise OptionError("problems: needs mode='PERMISSIVE'; FAILFAST fails at the first problem")
    if problems and PROBLEMS.name in keep:
        raise OptionError(f"keep: {PROBLEMS.name!r} is also the column of problems; rename it first")
