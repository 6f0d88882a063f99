"""The columns of the format `kafkalog`: the names and types of Spark's own Kafka source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from kafkacodec.spark.errors import OptionError

__all__ = ["COLUMNS", "RECORD_COLUMNS", "arrow_schema", "check_schema", "column_names", "core_columns", "spark_schema"]


class Column(NamedTuple):
    """A column's type in Spark and in Arrow, and the decoder's column that it is made from."""

    spark: DataType
    arrow: pa.DataType
    core: str


# Spark requires exactly these Arrow types of a Python data source: no large or view types, microseconds, UTC.
COLUMNS = {
    "key": Column(BinaryType(), pa.binary(), "key"),
    "value": Column(BinaryType(), pa.binary(), "value"),
    "topic": Column(StringType(), pa.string(), "topic"),
    "partition": Column(IntegerType(), pa.int32(), "partition"),
    "offset": Column(LongType(), pa.int64(), "offset"),
    "timestamp": Column(TimestampType(), pa.timestamp("us", tz="UTC"), "timestamp"),
    "timestampType": Column(IntegerType(), pa.int32(), "timestamp_type"),
    "headers": Column(
        ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())])),
        pa.list_(pa.field("element", pa.struct([("key", pa.string()), ("value", pa.binary())]))),
        "headers",
    ),
}

RECORD_COLUMNS = ("key", "value", "offset", "timestamp", "timestampType", "headers")
"""The columns of records without a place in a topic."""


def column_names(*, headers: bool) -> tuple[str, ...]:
    """The columns that are read by default."""
    return tuple(name for name in COLUMNS if headers or name != "headers")


def spark_schema(names: Sequence[str]) -> StructType:
    """The Spark schema of these columns, in this order."""
    return StructType([StructField(name, COLUMNS[name].spark) for name in names])


def arrow_schema(names: Sequence[str]) -> pa.Schema:
    """The Arrow schema that Spark expects for these columns."""
    return pa.schema([(name, COLUMNS[name].arrow) for name in names])


def core_columns(names: Sequence[str]) -> list[str]:
    """The decoder's columns for these columns; the offset if there are none."""
    return [COLUMNS[name].core for name in names] or ["offset"]


def check_schema(schema: StructType) -> tuple[str, ...]:
    """The column names of a user's schema, after checking their types.

    Raises:
        OptionError: a column is unknown or has another type; the message names it.
    """
    for field in schema.fields:
        if field.name not in COLUMNS:
            raise OptionError(f"schema: unknown column {field.name!r}; columns are {', '.join(COLUMNS)}")
        given, expected = field.dataType, COLUMNS[field.name].spark
        if given != expected or not field.nullable:
            raise OptionError(
                f"schema: column {field.name!r} must be {expected.simpleString()} and nullable, "
                f"not {given.simpleString()}{'' if field.nullable else ' not null'}"
            )
    return tuple(schema.fieldNames())
