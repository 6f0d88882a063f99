"""The functions of this package in SQL."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

from kafkacodec.errors import KafkaCodecError
from kafkacodec.records.plan import DEFAULT_MAX_TOTAL_BYTES
from kafkacodec.spark.environment.versions import require_spark
from kafkacodec.spark.errors import without_traceback
from kafkacodec.spark.schema import RECORD_COLUMNS, spark_schema
from kafkacodec.spark.sql.blobs import Explosion
from kafkacodec.spark.sql.column_functions import UDFS

__all__ = ["register_functions"]

# The SQL counterpart of `column_functions.split_confluent`, which cannot be registered: Spark has no function objects
# made of expressions.
_SPLIT_CONFLUENT = """
CREATE OR REPLACE TEMPORARY FUNCTION split_confluent(value BINARY)
RETURNS STRUCT<schema_id: INT, payload: BINARY>
RETURN named_struct(
  'schema_id', CASE WHEN octet_length(value) >= 5 AND substring(value, 1, 1) = X'00'
    THEN CAST(shiftright(shiftleft(CAST(conv(hex(substring(value, 2, 4)), 16, 10) AS BIGINT), 32), 32) AS INT) END,
  'payload', CASE WHEN octet_length(value) >= 5 AND substring(value, 1, 1) = X'00'
    THEN substring(value, 6) ELSE value END)
"""


def register_functions(spark: SparkSession) -> None:
    """Make the functions of this package known to a session's SQL. Needs Spark 4.1.

    They are ``split_confluent(value)``, ``kafka_partition(key, num_partitions)``, ``crc_ok(blob)``,
    ``batch_headers(blob)``, ``decode_records(blob)``, ``decode_message(body, name, version)``, and the table function
    ``kafka_records(TABLE(SELECT blob FROM …))``, which gives a row for each record of a table with one binary column of
    record batches, and fails the job at damage.

    Raises:
        KafkaCodecError: Spark is older.
    """
    require_spark("kafkacodec.spark.register_functions", (4, 1))
    from pyspark.sql.functions import arrow_udf, arrow_udtf
    from pyspark.sql.pandas.types import from_arrow_type

    for name, (function, kind) in UDFS.items():
        spark.udf.register(name, arrow_udf(function, from_arrow_type(kind)))
    spark.udtf.register("kafka_records", arrow_udtf(_KafkaRecords, returnType=spark_schema(RECORD_COLUMNS)))
    spark.sql(_SPLIT_CONFLUENT)


class _KafkaRecords:
    """The table function `kafka_records`."""

    def eval(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The records of a batch of rows with one blob each."""
        if batch.num_columns != 1 or not pa.types.is_binary(batch.schema.types[0]):
            given = ", ".join(f"{field.name} {field.type}" for field in batch.schema)
            with without_traceback():
                raise KafkaCodecError(f"kafka_records: the table must have one binary column, not {given}")
        explosion = Explosion(
            column=batch.schema.names[0],
            columns=RECORD_COLUMNS,
            keep=(),
            on_error="raise",
            problems=False,
            max_total_bytes=DEFAULT_MAX_TOTAL_BYTES,
        )
        yield from explosion.explode([batch])
