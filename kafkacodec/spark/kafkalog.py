"""The data source `kafkalog`: the classes that Spark calls. Other modules do the work."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.types import StructType

from kafkacodec.datatypes import replace
from kafkacodec.log.storage.access import ENVIRONMENT, S3Access
from kafkacodec.spark.environment.versions import require_spark
from kafkacodec.spark.environment.workers import settle
from kafkacodec.spark.errors import without_traceback
from kafkacodec.spark.reading.options import ReadOptions, parse_columns, parse_read_options
from kafkacodec.spark.reading.planning import Pruning, plan, refuse_without_batches
from kafkacodec.spark.reading.tasks import read_ranges
from kafkacodec.spark.refusing import or_refusing
from kafkacodec.spark.schema import check_schema, column_names, spark_schema

# What only some calls need is imported by them: Spark starts several processes per query, each of which imports this.
if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceStreamArrowWriter, Filter

__all__ = ["STREAM_READS", "KafkaLogDataSource"]

STREAM_READS = (4, 2)
"""The first Spark whose streams of Python data sources have read limits and ``availableNow``."""


class KafkaLogDataSource(DataSource):
    """Kafka's log segments as a table, with the columns of Spark's own Kafka source.

    ``spark.read.format("kafkalog").option("path", …).load()``; docs/spark.md has the options.
    """

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "kafkalog"

    access: ClassVar[S3Access] = ENVIRONMENT
    """How S3 is reached as far as options do not say; `kafkacodec.spark.register` makes a class with that of Hadoop."""

    @without_traceback()
    def schema(self) -> StructType:
        """The schema that the options `columns` and `includeHeaders` ask for."""
        if not self._shows_records():
            from kafkacodec.spark.reading.views import view_schema

            return view_schema(self.options)
        # It is not known here whether this is a batch or a stream: the readers check the other options.
        columns, headers = parse_columns(self.options)
        return spark_schema(columns or column_names(headers=headers))

    @without_traceback()
    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of a view; of records, one that accepts Spark's filters in sessions that push them down."""
        if not self._shows_records():
            from kafkacodec.spark.reading.views import ViewReader

            return ViewReader(self.options, schema, self.access)
        # Spark rejects a reader that accepts filters if the session does not push them down, and a data source cannot
        # read that setting; but Spark plans with filters in a separate worker module.
        hands_down = "pyspark.sql.worker.data_source_pushdown_filters" in sys.modules
        kind = FilteringReader if hands_down else SegmentReader
        return kind(self._read_options(), check_schema(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """A reader that follows growing segments. Needs Spark 4.2."""
        return or_refusing(partial(self._stream_reader, schema))

    def _stream_reader(self, schema: StructType) -> DataSourceStreamReader:
        require_spark(f"reading streams of {self.name()}", STREAM_READS)
        if not self._shows_records():
            from kafkacodec.spark.reading.views import refuse_stream

            refuse_stream(self.options)
        from kafkacodec.spark.reading.streaming import SegmentStreamReader

        return SegmentStreamReader(self._read_options(streaming=True), check_schema(schema))

    def _shows_records(self) -> bool:
        if all(name.lower() != "view" for name in self.options):
            return True
        from kafkacodec.spark.reading.views import shows_records

        return shows_records(self.options)

    def _read_options(self, *, streaming: bool = False) -> ReadOptions:
        options = parse_read_options(self.options, streaming=streaming)
        return replace(options, access=options.access.over(self.access))

    @without_traceback()
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
        """A sink that appends micro-batches to the partitions of a log directory. Needs Spark 4.1."""
        require_spark("writing streams to kafkalog", (4, 1))
        from kafkacodec.spark.writing.sink import SegmentsSink

        return SegmentsSink(self.options, schema, overwrite)

    @without_traceback()
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """A writer that appends to the partitions of a log directory."""
        from kafkacodec.spark.writing.jobs import SegmentsWriter

        return SegmentsWriter(self.options, schema, overwrite)


class SegmentReader(DataSourceReader):
    """Plans on the driver, then decodes in the tasks, which open the files themselves."""

    def __init__(self, options: ReadOptions, names: tuple[str, ...]) -> None:
        self.options = options
        self.names = names
        self.pruning = Pruning()

    @without_traceback()
    def partitions(self) -> list[InputPartition]:
        """An input partition per task, with the ranges to read; one without ranges if there is nothing to read."""
        tasks = plan(self.options, self.pruning)
        refuse_without_batches(tasks, self.names)
        return [InputPartition(ranges) for ranges in tasks or [()]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of one task's ranges as Arrow batches."""
        settle()
        options = self.options
        return read_ranges(
            partition.value,
            self.names,
            permissive=options.permissive,
            gaps=options.gaps,
            fail_on_data_loss=options.fail_on_data_loss,
            access=options.access,
        )


class FilteringReader(SegmentReader):
    """A reader that skips partitions, segments and batches that the filters exclude."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Record what the filters exclude. Returns all of them, since batches are skipped, not single records."""
        from kafkacodec.spark.reading.filters import prune  # Spark 4.0 has no filters, and never calls this

        self.pruning = prune(filters)
        return filters
