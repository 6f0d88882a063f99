"""Writing data frames as Kafka's log segments: tasks encode records into a staging directory, the driver publishes."""

from __future__ import annotations

import errno
import logging
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from kafkacodec.datatypes import dataclass
from kafkacodec.spark.environment.workers import settle
from kafkacodec.spark.errors import without_traceback
from kafkacodec.spark.writing import owner, recovery, staging
from kafkacodec.spark.writing.journal import Transaction
from kafkacodec.spark.writing.options import WriteOptions, check_schema, parse_write_options
from kafkacodec.spark.writing.publish import StagedTask, publish
from kafkacodec.spark.writing.tasks import TaskWriter

__all__ = ["SegmentsWriter", "Staged", "WriteJob", "abort_job", "publish_job"]

logger = logging.getLogger("kafkacodec.spark")


@dataclass(frozen=True)
class Staged(WriterCommitMessage):
    """A finished task: its number, directory and number of records, and the streaming query that it belongs to."""

    task: int
    directory: str
    records: int
    query: str = ""


class WriteJob:
    """A job or a micro-batch, as the driver hands it to the tasks."""

    def __init__(self, options: WriteOptions) -> None:
        self.options = options
        self.staging = staging.new_directory(options.path)
        self.driver = owner.driver()
        self.now = int(time.time() * 1000)
        recovery.refuse_broker(options.path)
        with suppress(BlockingIOError):  # a job is publishing
            recovery.roll_back(options.path, wait=0)
        with suppress(OSError):  # what killed jobs have left may fill the disk that this one needs
            staging.sweep(options.path)

    def run_task(self, iterator: Iterator[pa.RecordBatch], *, query: str = "") -> Staged:
        """Encode a task's records into the staging directory."""
        context = TaskContext.get()
        task = context.partitionId() if context is not None else 0
        directory = staging.new_task(self.staging, staging.Owner(self.driver, query), task)
        writer = TaskWriter(self.options, directory, self.now, task)
        for batch in iterator:
            writer.add(batch)
        return Staged(task, directory, writer.finish(), query)


def publish_job(
    options: WriteOptions, messages: Iterable[WriterCommitMessage | None], transaction: Transaction | None
) -> None:
    """On the driver, after all tasks have succeeded: assign offsets and publish the segments.

    Only what these messages name is published: other attempts of the same tasks may have written too.
    """
    done = sorted((m for m in messages if isinstance(m, Staged)), key=lambda message: message.task)
    directories = {os.path.dirname(message.directory) for message in done}
    with ExitStack() as stack:
        for directory in directories:
            stack.enter_context(staging.in_use(directory))
        tasks = [StagedTask(message.directory, message.records) for message in done]
        written = publish(options.path, tasks, segment_bytes=options.segment_bytes, transaction=transaction)
    if not written and transaction is not None:
        _log_repetition(options, transaction)
    for directory in directories:
        staging.remove(directory)
    staging.sweep(options.path, query=next((m.query for m in done if m.query), None))


def _log_repetition(options: WriteOptions, transaction: Transaction) -> None:
    reason = "was written before and is not written again"
    logger.warning("%s: version %d of %r %s", options.path, transaction.version, transaction.app_id, reason)


def abort_job(messages: Iterable[WriterCommitMessage | None]) -> None:
    """Remove the staging directory that the messages name; without any, a later job does."""
    for directory in {os.path.dirname(m.directory) for m in messages if isinstance(m, Staged)}:
        staging.remove(directory, may_be_written=True)


class SegmentsWriter(DataSourceArrowWriter):
    """Appends a data frame to the partitions of a log directory."""

    @without_traceback()
    def __init__(self, options: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        self.options = parse_write_options(options)
        check_schema(schema, self.options)
        if overwrite and os.path.isdir(self.options.path) and os.listdir(self.options.path):
            raise FileExistsError(errno.EEXIST, "the directory is not empty; use mode('append')", self.options.path)
        self.job = WriteJob(self.options)
        self.again = recovery.read_state(self.options.path).has(self.options.transaction)

    @without_traceback()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        """Encode a task's records into the staging directory; if the job was written before, only read them."""
        settle()
        if self.again:
            for _ in iterator:
                pass
            return Staged(0, os.path.join(self.job.staging, "none"), 0)
        return self.job.run_task(iterator)

    @without_traceback()
    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """On the driver, after all tasks have succeeded: publish the segments."""
        if self.again and self.options.transaction is not None:
            _log_repetition(self.options, self.options.transaction)
        else:
            publish_job(self.options, messages, self.options.transaction)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Remove the staging directory."""
        staging.remove(self.job.staging, may_be_written=True)
