"""The data source `kafkabroker`: the classes that Spark calls. Other modules do the work."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.types import StructType

from kafkacodec.spark.environment.versions import require_spark
from kafkacodec.spark.environment.workers import settle
from kafkacodec.spark.errors import without_traceback
from kafkacodec.spark.kafkalog import STREAM_READS
from kafkacodec.spark.live.planning import plan_batch
from kafkacodec.spark.live.read_options import BrokerReadOptions, parse_broker_options, wanted_columns
from kafkacodec.spark.live.reading import read_task
from kafkacodec.spark.reading.planning import Pruning
from kafkacodec.spark.refusing import or_refusing
from kafkacodec.spark.schema import COLUMNS, check_schema, column_names, spark_schema

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceStreamArrowWriter, Filter

__all__ = ["KafkaBrokerDataSource"]


class KafkaBrokerDataSource(DataSource):
    """Topics of live brokers as tables and streams, with the columns and options of Spark's own Kafka source.

    ``spark.read.format("kafkabroker").option("kafka.bootstrap.servers", …).option("subscribe", …).load()``;
    docs/spark-broker.md has the options.
    """

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "kafkabroker"

    @without_traceback()
    def schema(self) -> StructType:
        """The schema that the options `columns` and `includeHeaders` ask for."""
        columns, headers = wanted_columns(self.options)
        return spark_schema(columns or column_names(headers=headers))

    @without_traceback()
    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader that accepts Spark's filters, in sessions that push them down; else a plain one."""
        # As in kafkacodec.spark.kafkalog.
        hands_down = "pyspark.sql.worker.data_source_pushdown_filters" in sys.modules
        kind = FilteringBrokerReader if hands_down else BrokerReader
        return kind(parse_broker_options(self.options, streaming=False), check_schema(schema, COLUMNS))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """A reader of micro-batches. Needs Spark 4.2."""
        return or_refusing(partial(self._stream_reader, schema))

    def _stream_reader(self, schema: StructType) -> DataSourceStreamReader:
        require_spark(f"reading streams of {self.name()}", STREAM_READS)
        from kafkacodec.spark.live.streaming import BrokerStreamReader

        return BrokerStreamReader(parse_broker_options(self.options, streaming=True), check_schema(schema, COLUMNS))

    @without_traceback()
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """A writer that sends rows to topics."""
        from kafkacodec.spark.live.writing import BrokerWriter

        return BrokerWriter(self.options, schema, overwrite)

    @without_traceback()
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
        """A sink that sends micro-batches to topics. Needs Spark 4.1."""
        require_spark(f"writing streams to {self.name()}", (4, 1))
        from kafkacodec.spark.live.sink import BrokerSink

        return BrokerSink(self.options, schema, overwrite)


class BrokerReader(DataSourceReader):
    """Asks for offsets on the driver; the tasks fetch their ranges themselves."""

    def __init__(self, options: BrokerReadOptions, names: tuple[str, ...]) -> None:
        self.options = options
        self.names = names
        self.pruning = Pruning()

    @without_traceback()
    def partitions(self) -> list[InputPartition]:
        """An input partition per task; one without a range if there is nothing to read."""
        return [InputPartition(task) for task in plan_batch(self.options, self.pruning) or [()]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of one task as Arrow batches."""
        settle()
        return read_task(partition.value, self.names, self.options)


class FilteringBrokerReader(BrokerReader):
    """A reader that leaves out partitions and offsets that the filters exclude."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Record what the filters exclude. Returns all of them, since they exclude ranges, not single records."""
        from kafkacodec.spark.reading.filters import prune  # Spark 4.0 has no filters, and never calls this

        self.pruning = prune(filters)
        return filters
