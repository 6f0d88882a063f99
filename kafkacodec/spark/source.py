"""The data source `kafkalog`: what Spark calls, each step handed to the module that does it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamReader,
    Filter,
    InputPartition,
)
from pyspark.sql.types import StructType

from kafkacodec.spark.filters import prune
from kafkacodec.spark.options import ReadOptions, parse_columns, parse_read_options
from kafkacodec.spark.planning import Pruning, plan
from kafkacodec.spark.reading import read_ranges
from kafkacodec.spark.schema import check_schema, column_names, spark_schema
from kafkacodec.spark.writing import SegmentsWriter

__all__ = ["KafkaLogDataSource"]


class KafkaLogDataSource(DataSource):
    """Kafka's log segments as a table, with the columns of Spark's own Kafka source.

    ``spark.read.format("kafkalog").option("path", …).load()``; docs/spark.md has the options.
    """

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "kafkalog"

    def schema(self) -> StructType:
        """The schema that the options `columns` and `includeHeaders` ask for."""
        # Spark does not tell here whether a batch or a stream is wanted: the rest is checked by the readers.
        columns, headers = parse_columns(self.options)
        return spark_schema(columns or column_names(headers=headers))

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader that takes Spark's filters in the sessions that hand them down, else a plain one."""
        # Spark refuses a reader that could take filters in a session where they are switched off, and does not tell
        # a data source which of the two it is; but it plans with filters in a module of its own.
        hands_down = "pyspark.sql.worker.data_source_pushdown_filters" in sys.modules
        kind = FilteringReader if hands_down else SegmentReader
        return kind(parse_read_options(self.options), check_schema(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """A reader that follows segments as they grow. Needs Spark 4.2."""
        from kafkacodec.spark.streaming import SegmentStreamReader

        return SegmentStreamReader(parse_read_options(self.options, streaming=True), check_schema(schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """A writer that appends to the partitions of a log directory."""
        return SegmentsWriter(self.options, schema, overwrite)


class SegmentReader(DataSourceReader):
    """Plans on the driver, then decodes in the tasks, which open the files themselves."""

    def __init__(self, options: ReadOptions, names: tuple[str, ...]) -> None:
        self.options = options
        self.names = names
        self.pruning = Pruning()

    def partitions(self) -> list[InputPartition]:
        """One input partition per task, its value the ranges to read; one without any when there is nothing to read."""
        return [InputPartition(ranges) for ranges in plan(self.options, self.pruning) or [()]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of one task's ranges as Arrow batches."""
        options = self.options
        return read_ranges(partition.value, self.names, permissive=options.permissive, gaps=options.gaps)


class FilteringReader(SegmentReader):
    """A reader that leaves out partitions, segments and batches that no record can pass from."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Note what the filters rule out; all are handed back, since whole batches are left out, not records."""
        self.pruning = prune(filters)
        return filters
