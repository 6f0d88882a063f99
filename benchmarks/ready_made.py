"""A Python data source that decodes nothing: one Arrow batch again and again, with the columns of Kafka's records.

What it takes is what Spark itself needs for as many rows of the same shape, so no source can be faster.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from benchmarks.cases import FIRST_TIMESTAMP, values
from kafkacodec.spark.environment.workers import settle

__all__ = ["NAME", "VALUE_BYTES", "ReadyMade", "options", "rows"]

NAME = "ready-made Arrow batches"
VALUE_BYTES = 100
_ROWS = 8192


def options(partitions: int, records: int) -> dict[str, str]:
    """The options of the source `readymade` for so many partitions with so many records each."""
    return {"partitions": str(partitions), "records": str(records)}


def rows(spark: SparkSession, partitions: int, records: int) -> DataFrame:
    """The rows of so many partitions with so many records each, of values of `VALUE_BYTES`."""
    spark.dataSource.register(ReadyMade)
    return spark.read.format("readymade").options(**options(partitions, records)).load()


class ReadyMade(DataSource):
    """The data source."""

    @classmethod
    def name(cls) -> str:
        return "readymade"

    def schema(self) -> str:
        return (
            "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
            "timestampType int"
        )

    def reader(self, schema: StructType) -> DataSourceReader:
        return ReadyMadeReader(self.options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return ReadyMadeStream(self.options)


class ReadyMadeReader(DataSourceReader):
    """The rows of a batch job."""

    def __init__(self, given: dict[str, str]) -> None:
        self.count, self.records = int(given["partitions"]), int(given["records"])

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(i) for i in range(self.count)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _batches(self.records)


class ReadyMadeStream(DataSourceStreamReader):
    """The same rows in one micro-batch."""

    def __init__(self, given: dict[str, str]) -> None:
        self.count, self.records = int(given["partitions"]), int(given["records"])

    def initialOffset(self) -> dict[str, int]:
        return {"runs": 0}

    def latestOffset(self) -> dict[str, int]:
        return {"runs": 1}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return [InputPartition(i) for i in range(self.count) if start != end]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _batches(self.records)


def _batches(records: int) -> Iterator[pa.RecordBatch]:
    settle()  # as our sources do: the searches for garbage would make this one the slower
    batch = _batch()
    whole, rest = divmod(records, _ROWS)
    for _ in range(whole):
        yield batch
    yield batch.slice(0, rest)


def _batch() -> pa.RecordBatch:
    bodies = values(VALUE_BYTES)
    times = pa.array([1000 * (FIRST_TIMESTAMP + i) for i in range(_ROWS)], pa.timestamp("us", "UTC"))
    columns = {
        "key": pa.array([b"key-%06d" % i for i in range(_ROWS)], pa.binary()),
        "value": pa.array([bodies[i % len(bodies)] for i in range(_ROWS)], pa.binary()),
        "topic": pa.array(["bench"] * _ROWS),
        "partition": pa.array([0] * _ROWS, pa.int32()),
        "offset": pa.array(range(_ROWS), pa.int64()),
        "timestamp": times,
        "timestampType": pa.array([0] * _ROWS, pa.int32()),
    }
    return pa.RecordBatch.from_pydict(columns)
