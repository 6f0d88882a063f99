"""The tasks of a write: they send Arrow batches and wait until brokers have acknowledged all of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from kafkacodec.client import PreparedTransaction, Producer
from kafkacodec.client.producing.settings import ProducerSettings
from kafkacodec.datatypes import dataclass, replace
from kafkacodec.errors import DeadlineExceeded, EncodeError
from kafkacodec.spark.errors import OptionError
from kafkacodec.spark.live.client_options import named_options
from kafkacodec.spark.live.connections import borrowed
from kafkacodec.spark.live.topics import require_topics
from kafkacodec.spark.live.write_options import SinkOptions

if TYPE_CHECKING:
    from kafkacodec.client import TableDelivery

__all__ = ["Sent", "send", "send_in_transaction", "sent_messages", "task_number", "transactional_id"]

_PENDING_TABLES = 16  # whose deliveries are looked at later: what is not acknowledged is limited by buffer_memory
_LOOK_SECONDS = 5.0  # after which a task that waits for acknowledgements asks whether its topics are still there
_MAX_TRANSACTION_MS = 900_000  # what brokers allow unless they are told otherwise: `transaction.max.timeout.ms`


@dataclass(frozen=True)
class Sent(WriterCommitMessage):
    """A finished task.

    Attributes:
        task: its number.
        records: how many were sent.
        topic: one of the topics; None without a record.
        query: Spark's id of the query, if it is one that writes in transactions.
        prepared: its transaction, that waits for its end.
        repeated: the micro-batch was written before, so nothing was sent.
    """

    task: int
    records: int
    topic: str | None
    query: str | None = None
    prepared: PreparedTransaction | None = None
    repeated: bool = False


def send(batches: Iterable[pa.RecordBatch], options: SinkOptions, task: int) -> Sent:
    """Send a task's rows, each at least once.

    Raises:
        OptionError: the cluster does not have a topic.
        EncodeError: a row cannot be sent.
        BrokerError, DeadlineExceeded, ClientClosed: rows were not acknowledged.
    """
    with _explained(), borrowed(Producer, options.producer) as producer:
        producer.forget_topics()  # of earlier tasks: they may have other partitions by now
        return _send_all(producer, batches, options, task)


def send_in_transaction(batches: Iterable[pa.RecordBatch], options: SinkOptions, task: int) -> Sent:
    """Send a task's rows in a transaction, which stays open for the driver to commit. Raises as `send`."""
    settings = {"transaction_timeout_ms": _MAX_TRANSACTION_MS, **options.producer}
    with _explained(), Producer(**settings, transactional_id=transactional_id(options, task)) as producer:
        producer.begin_transaction()
        sent = _send_all(producer, batches, options, task)
        return replace(sent, prepared=producer.prepare_transaction())


def transactional_id(options: SinkOptions, task: int) -> str:
    """That of a task's producer: a later attempt ends what an earlier one has left open."""
    return f"{options.transactional_id_prefix}-{task}"


@contextmanager
def _explained() -> Iterator[None]:
    """Name options as Spark's user does; and say how to do without a partition that the topic does not have."""
    try:
        yield
    except EncodeError as error:
        error.reason = named_options(error.reason, ProducerSettings)
        if (error.path or "").endswith("partition"):
            error.advised("without the column partition, the key chooses")
        raise


def _send_all(producer: Producer, batches: Iterable[pa.RecordBatch], options: SinkOptions, task: int) -> Sent:
    pending: list[TableDelivery] = []
    records, topic = 0, options.topic
    known: set[str] = set()
    for batch in batches:
        new = _topics(batch, options.topic) - known
        if new:
            require_topics(options, new)
            known |= new
        for table in _tables(batch.select(options.columns)):
            pending.append(producer.send_columns(table, topic=options.topic))
            records += table.num_rows
            topic = topic or table.column("topic")[0].as_py()
        if len(pending) >= _PENDING_TABLES:
            pending = [delivery for delivery in pending if not _is_known(delivery)]
    _flush(producer, options, known)
    for delivery in pending:
        delivery.result()
    return Sent(task, records, topic if records else None)


def _flush(producer: Producer, options: SinkOptions, topics: Collection[str]) -> None:
    """Wait for what was sent. Raises OptionError if topics were deleted meanwhile: a producer waits for new ones."""
    while True:
        try:
            producer.flush(timeout=_LOOK_SECONDS)
            return
        except DeadlineExceeded:
            try:
                require_topics(options, topics)
            except OptionError:
                producer.close(timeout=0)
                raise


def _is_known(delivery: TableDelivery) -> bool:
    """Whether all rows are acknowledged. Raises why one will not be."""
    if not delivery.done():
        return False
    delivery.result()
    return True


def _topics(batch: pa.RecordBatch, topic: str | None) -> set[str]:
    """The topics of the rows."""
    if not batch.num_rows:
        return set()
    if topic is not None:
        return {topic}
    column = batch.column("topic")
    if column.null_count:
        raise EncodeError("a row has no topic: its column topic is null, and the option topic is not set")
    return set(column.unique().to_pylist())


def _tables(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The rows with a partition, and those for which the producer chooses one."""
    if not batch.num_rows:
        return
    if "partition" not in batch.schema.names:
        yield batch
        return
    place = batch.column("partition")
    if place.null_count < len(place) and place.null_count:
        yield batch.filter(place.is_valid())
    if place.null_count:
        yield batch.filter(place.is_null()).drop_columns(["partition"])
    else:
        yield batch


def task_number() -> int:
    """The number of the current task."""
    context = TaskContext.get()
    return context.partitionId() if context is not None else 0


def sent_messages(messages: Iterable[WriterCommitMessage | None]) -> list[Sent]:
    """The results of a job's tasks, in their order."""
    return sorted((message for message in messages if isinstance(message, Sent)), key=lambda sent: sent.task)
