"""The format `kafkabroker` as a target of batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from kafkacodec.spark.environment.workers import settle
from kafkacodec.spark.errors import OptionError, without_traceback
from kafkacodec.spark.live import micro_batches
from kafkacodec.spark.live.producing import Sent, send, send_in_transaction, sent_messages, task_number
from kafkacodec.spark.live.reaching import check_reachable
from kafkacodec.spark.live.topics import require_topics
from kafkacodec.spark.live.write_options import parse_sink_options

__all__ = ["BrokerWriter"]


class BrokerWriter(DataSourceArrowWriter):
    """Sends the rows of a data frame: each at least once, or those of all tasks in transactions."""

    @without_traceback()
    def __init__(self, options: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        if overwrite:
            raise OptionError("mode: kafkabroker only appends; use mode('append')")
        self.options = parse_sink_options(options, schema)
        check_reachable(self.options.producer)
        if self.options.topic is not None:
            require_topics(self.options, [self.options.topic])

    @without_traceback()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> Sent:
        """Send a task's rows."""
        settle()
        kind = send if self.options.transactional_id_prefix is None else send_in_transaction
        return kind(iterator, self.options, task_number())

    @without_traceback()
    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """On the driver, after all tasks have succeeded: commit their transactions."""
        micro_batches.end(self.options, sent_messages(messages), commit=True)

    @without_traceback()
    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Abort the transactions of all tasks, including failed and killed ones."""
        micro_batches.end(self.options, sent_messages(messages), commit=False)
