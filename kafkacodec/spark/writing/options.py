"""Options and columns of the writer: allowed values, and contradictions. All are checked before a job starts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import cast

from pyspark.sql.types import StructType

from kafkacodec.arguments import columns_hint
from kafkacodec.datatypes import dataclass
from kafkacodec.log.formats.layout import check_topic
from kafkacodec.log.writing.writer import DEFAULT_SEGMENT_BYTES
from kafkacodec.records.compression import CODECS, Codec
from kafkacodec.records.encode import DEFAULT_BATCH_BYTES, BatchOptions, EncodePlan
from kafkacodec.spark.errors import OptionError
from kafkacodec.spark.foreign import warn_foreign
from kafkacodec.spark.option_values import one_of, positive, refuse_type, refuse_unknown, take, whole_number
from kafkacodec.spark.reading.options import local_path
from kafkacodec.spark.writing.journal import MAX_ID, Transaction

__all__ = ["WriteOptions", "check_schema", "parse_write_options"]

# Column -> the Spark types that it may have.
_COLUMNS = {
    "key": ("binary", "string"),
    "value": ("binary", "string"),
    "headers": ("array<struct<key:string,value:binary>>",),
    "timestamp": ("timestamp",),
    "topic": ("string",),
    "partition": ("int",),
}
# Other columns of the reader, ignored: records get new offsets and create time.
_PASSED_OVER = ("offset", "timestampType")
_COMMON = ("path", "topic", "numPartitions", "codec", "level", "batchBytes", "segmentBytes", "txnAppId")
_OPTIONS = (*_COMMON, "txnVersion")
# Spark gives the sink its own options of a query too.
_STREAM_OPTIONS = (*_COMMON, "checkpointLocation", "queryName")


@dataclass(frozen=True)
class WriteOptions:
    """The writer's options, checked.

    Attributes:
        app_id: `txnAppId`.
        version: `txnVersion`; None for a stream, which numbers its micro-batches.
    """

    path: str
    topic: str | None
    num_partitions: int
    segment_bytes: int
    batches: BatchOptions
    app_id: str | None = None
    version: int | None = None

    @property
    def transaction(self) -> Transaction | None:
        """What identifies the write of a batch job, if it is to be done at most once."""
        if self.app_id is None or self.version is None:
            return None
        return Transaction(self.app_id, self.version)


def parse_write_options(options: Mapping[str, str], *, streaming: bool = False) -> WriteOptions:
    """Check the options of ``df.write`` or ``df.writeStream``.

    Raises:
        OptionError: an option is unknown, malformed or needs another one.
    """
    if streaming and any(name.lower() == "txnversion" for name in options):
        raise OptionError("txnVersion: a stream numbers its micro-batches itself; remove the option")
    given = refuse_unknown(options, _STREAM_OPTIONS if streaming else _OPTIONS)
    warn_foreign(options)
    if not given.get("path", "").strip():
        raise OptionError("path: missing; pass the log directory to write to")
    if not streaming and ("txnAppId" in given) != ("txnVersion" in given):
        there, missing = ("txnAppId", "txnVersion")[:: 1 if "txnAppId" in given else -1]
        raise OptionError(f"{there}: requires {missing}; set both or neither")
    return WriteOptions(
        path=os.path.abspath(local_path(given["path"])),
        topic=take(given, "topic", _topic, None),
        num_partitions=take(given, "numPartitions", positive, 1),
        segment_bytes=take(given, "segmentBytes", positive, DEFAULT_SEGMENT_BYTES),
        batches=_batch_options(given),
        app_id=take(given, "txnAppId", _app_id, None),
        version=take(given, "txnVersion", _version, None),
    )


def _app_id(name: str, value: str) -> str:
    if not value.strip() or len(value) > MAX_ID:
        raise OptionError(f"{name}: expected 1 to {MAX_ID} characters, not {len(value)}")
    return value


def _version(name: str, value: str) -> int:
    number = whole_number(name, value)
    if not 0 <= number < 1 << 63:
        raise OptionError(f"{name}: {value!r} is not a number from 0 to 2^63 - 1")
    return number


def _batch_options(given: Mapping[str, str]) -> BatchOptions:
    codec = cast(Codec, take(given, "codec", one_of(*CODECS), "none"))
    level = take(given, "level", whole_number, None)
    batch_bytes = take(given, "batchBytes", positive, DEFAULT_BATCH_BYTES)
    with _refused_as("level"):
        EncodePlan(codec=codec, level=level)
    with _refused_as("batchBytes"):
        EncodePlan(batch_bytes=batch_bytes)
    return {"codec": codec, "level": level, "batch_bytes": batch_bytes}


@contextmanager
def _refused_as(option: str) -> Iterator[None]:
    """Raise ValueError as an OptionError that names this option."""
    try:
        yield
    except ValueError as error:
        raise OptionError(f"{option}: {error}") from None


def _topic(name: str, value: str) -> str:
    with _refused_as(name):
        check_topic(value)
    return value


def check_schema(schema: StructType, options: WriteOptions) -> None:
    """Check the columns of the data frame.

    Raises:
        OptionError: a column is unknown, missing or has another type.
    """
    for column in schema.fields:
        if column.name in _PASSED_OVER:
            continue
        if column.name not in _COLUMNS:
            raise OptionError(f"column {column.name!r}: unknown column; {columns_hint(column.name, _COLUMNS)}")
        refuse_type(column.name, column.dataType, _COLUMNS[column.name])
    names = schema.fieldNames()
    if "value" not in names:
        raise OptionError(f"column 'value': missing; {columns_hint('value', names)}")
    if "topic" not in names and options.topic is None:
        raise OptionError("topic: missing; set the option topic or add a column topic")
