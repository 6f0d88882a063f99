"""The columns of the formats: the names and types of Spark's own Kafka source, and those of files alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from kafkacodec.arguments import columns_hint
from kafkacodec.datatypes import NamedTuple
from kafkacodec.spark.errors import OptionError

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

__all__ = [
    "COLUMNS",
    "LOG_COLUMNS",
    "METADATA",
    "METADATA_FIELDS",
    "RECORD_COLUMNS",
    "Column",
    "arrow_schema",
    "check_schema",
    "column_names",
    "core_columns",
    "spark_schema",
]


class Column(NamedTuple):
    """A column's type in Arrow, and the decoder's column that it is made from."""

    arrow: pa.DataType
    core: str

    @property
    def spark(self) -> DataType:
        """Its type in Spark. Exports without Spark do without its types."""
        from pyspark.sql.pandas.types import from_arrow_type

        found: DataType = from_arrow_type(self.arrow)
        return found


# Spark requires exactly these Arrow types of a Python data source: no large or view types, microseconds, UTC.
COLUMNS = {
    "key": Column(pa.binary(), "key"),
    "value": Column(pa.binary(), "value"),
    "topic": Column(pa.string(), "topic"),
    "partition": Column(pa.int32(), "partition"),
    "offset": Column(pa.int64(), "offset"),
    "timestamp": Column(pa.timestamp("us", tz="UTC"), "timestamp"),
    "timestampType": Column(pa.int32(), "timestamp_type"),
    "headers": Column(
        pa.list_(pa.field("element", pa.struct([("key", pa.string()), ("value", pa.binary())]))), "headers"
    ),
}

METADATA = "_metadata"
"""The column that says where in the files a record is, and who wrote it."""

METADATA_FIELDS = {
    "file": ("path", pa.string()),
    "batch_position": ("batch_position", pa.int64()),
    "producer_id": ("producer_id", pa.int64()),
    "producer_epoch": ("producer_epoch", pa.int32()),
    "leader_epoch": ("partition_leader_epoch", pa.int32()),
}
"""Its fields: the decoder's column that each is made from, and its type. The path is not from the decoder."""

LOG_COLUMNS = COLUMNS | {
    METADATA: Column(pa.struct([(name, kind) for name, (_, kind) in METADATA_FIELDS.items()]), METADATA)
}
"""The columns of files: also those that a live broker does not have."""

RECORD_COLUMNS = ("key", "value", "offset", "timestamp", "timestampType", "headers")
"""The columns of records without a place in a topic."""


def column_names(*, headers: bool) -> tuple[str, ...]:
    """The columns that are read by default."""
    return tuple(name for name in COLUMNS if headers or name != "headers")


def spark_schema(names: Sequence[str]) -> StructType:
    """The Spark schema of these columns, in this order."""
    from pyspark.sql.types import StructField, StructType

    return StructType([StructField(name, LOG_COLUMNS[name].spark) for name in names])


def arrow_schema(names: Sequence[str]) -> pa.Schema:
    """The Arrow schema that Spark expects for these columns."""
    return pa.schema([(name, LOG_COLUMNS[name].arrow) for name in names])


def core_columns(names: Sequence[str]) -> list[str]:
    """The decoder's columns for these columns; the offset if there are none, and with times, which it is told with."""
    found = [COLUMNS[name].core for name in names if name != METADATA]
    if "timestamp" in found and "offset" not in found:
        found.append("offset")
    if METADATA in names:
        found += [core for core, _ in METADATA_FIELDS.values() if core != "path"]
    return found or ["offset"]


def check_schema(schema: StructType, known: Mapping[str, Column] = LOG_COLUMNS) -> tuple[str, ...]:
    """The column names of a user's schema, after checking their types.

    Raises:
        OptionError: a column is unknown or has another type; the message names it.
    """
    for field in schema.fields:
        if field.name not in known:
            raise OptionError(f"schema: unknown column {field.name!r}; {columns_hint(field.name, known)}")
        given, expected = field.dataType, known[field.name].spark
        if given != expected or not field.nullable:
            raise OptionError(
                f"schema: column {field.name!r} must be {expected.simpleString()} and nullable, "
                f"not {given.simpleString()}{'' if field.nullable else ' not null'}"
            )
    return tuple(schema.fieldNames())
