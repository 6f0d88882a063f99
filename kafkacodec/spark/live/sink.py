"""The format `kafkabroker` as a streaming sink: rows at least once, or each micro-batch once, in transactions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from kafkacodec.datatypes import replace
from kafkacodec.spark.environment.workers import settle
from kafkacodec.spark.errors import OptionError, without_traceback
from kafkacodec.spark.live import micro_batches
from kafkacodec.spark.live.micro_batches import MicroBatch
from kafkacodec.spark.live.producing import Sent, send, send_in_transaction, sent_messages, task_number
from kafkacodec.spark.live.reaching import check_reachable
from kafkacodec.spark.live.topics import require_topics
from kafkacodec.spark.live.write_options import parse_sink_options

__all__ = ["BrokerSink"]

_BATCH_ID = "streaming.sql.batchId"
_QUERY_ID = "sql.streaming.queryId"


class BrokerSink(DataSourceStreamArrowWriter):
    """Sends micro-batches: rows at least once, or each micro-batch once, in transactions."""

    @without_traceback()
    def __init__(self, options: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        if overwrite:
            raise OptionError("outputMode: complete is not possible; use outputMode('append') or 'update'")
        self.options = parse_sink_options(options, schema, streaming=True)
        check_reachable(self.options.producer)
        if self.options.topic is not None:
            require_topics(self.options, [self.options.topic])

    @without_traceback()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> Sent:
        """Send a task's rows, unless their micro-batch was written before."""
        settle()
        if self.options.transactional_id_prefix is None:
            return send(iterator, self.options, task_number())
        micro_batch = _micro_batch()
        if micro_batches.is_decided(self.options, micro_batch):
            for _ in iterator:
                pass
            return Sent(task_number(), 0, None, micro_batch.query, repeated=True)
        sent = send_in_transaction(iterator, self.options, task_number())
        return replace(sent, query=micro_batch.query)

    @without_traceback()
    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """On the driver, after all tasks have succeeded: commit their transactions."""
        if self.options.transactional_id_prefix is not None:
            sent = sent_messages(messages)
            micro_batches.commit(self.options, sent, _of(sent, batchId))

    @without_traceback()
    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Abort the transactions of all tasks, including failed and killed ones."""
        if self.options.transactional_id_prefix is not None:
            micro_batches.abort(self.options, _of(sent_messages(messages), batchId))


def _of(sent: list[Sent], number: int) -> MicroBatch:
    """The micro-batch of tasks."""
    return MicroBatch(sent[0].query if sent else None, number)


def _micro_batch() -> MicroBatch:
    """That of this task."""
    context = TaskContext.get()
    query, number = (context.getLocalProperty(name) if context is not None else None for name in (_QUERY_ID, _BATCH_ID))
    if query is None or number is None:
        raise OptionError(
            "transactionalIdPrefix: Spark does not pass the query and the number of the micro-batch to tasks"
        )
    return MicroBatch(query, int(number))
