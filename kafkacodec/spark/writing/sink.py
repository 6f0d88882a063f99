"""The format `kafkalog` as a streaming sink: each micro-batch is written exactly once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from kafkacodec.spark.environment.workers import settle
from kafkacodec.spark.errors import OptionError, without_traceback
from kafkacodec.spark.writing.jobs import Staged, WriteJob, abort_job, publish_job
from kafkacodec.spark.writing.journal import Transaction
from kafkacodec.spark.writing.options import check_schema, parse_write_options

__all__ = ["SegmentsSink"]

_QUERY_ID = "sql.streaming.queryId"


class SegmentsSink(DataSourceStreamArrowWriter):
    """Appends the micro-batches of a query.

    A micro-batch is a transaction: the application is the query, or the option `txnAppId`; the version is the number of
    the micro-batch. When a query is started again, Spark runs its last micro-batch again; if that was written, nothing
    is written.
    """

    @without_traceback()
    def __init__(self, options: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        if overwrite:
            raise OptionError("outputMode: kafkalog only appends; use outputMode('append')")
        self.options = parse_write_options(options, streaming=True)
        check_schema(schema, self.options)
        # Spark makes another object of this class to commit, which knows the directory only from the messages.
        self.job = WriteJob(self.options)

    @without_traceback()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        """Encode a task's records into the staging directory."""
        settle()
        context = TaskContext.get()
        query = context.getLocalProperty(_QUERY_ID) if context is not None else None
        return self.job.run_task(iterator, query=query or "")

    @without_traceback()
    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """On the driver, after all tasks have succeeded: publish the segments, unless this was done before."""
        app_id = self.options.app_id or next((m.query for m in messages if isinstance(m, Staged)), "")
        if not app_id:
            if messages:
                raise OptionError("txnAppId: missing, and Spark does not pass the query to the tasks; set the option")
            return  # without a task, there are no records
        publish_job(self.options, messages, Transaction(app_id, batchId))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Remove the staging directory."""
        abort_job(messages)
