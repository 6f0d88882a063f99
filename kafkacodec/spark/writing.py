"""Writing data frames as Kafka's log segments: tasks sort records by partition and encode them, the driver publishes.

`kafkacodec.spark.staging` moves the tasks' files into the log.
"""

from __future__ import annotations

import errno
import os
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

import kafkacodec as kc
from kafkacodec.errors import EncodeError
from kafkacodec.log import LogWriter
from kafkacodec.log.writer import DEFAULT_SEGMENT_BYTES, check_topic
from kafkacodec.records.compression import CODECS
from kafkacodec.records.encode import DEFAULT_BATCH_BYTES, BatchOptions, EncodePlan
from kafkacodec.spark import staging
from kafkacodec.spark.errors import OptionError
from kafkacodec.spark.options import (
    TopicPartition,
    local_path,
    one_of,
    positive,
    refuse_unknown,
    take,
    whole_number,
)

__all__ = ["SegmentsWriter"]

# Column -> the Spark types that it may have.
_COLUMNS = {
    "key": ("binary", "string"),
    "value": ("binary", "string"),
    "headers": ("array<struct<key:string,value:binary>>",),
    "timestamp": ("timestamp",),
    "topic": ("string",),
    "partition": ("int",),
}
# Other columns of the reader, ignored: records get new offsets and create time.
_PASSED_OVER = ("offset", "timestampType")
_OPTIONS = ("path", "topic", "numPartitions", "codec", "level", "batchBytes", "segmentBytes")

# Records of a partition are encoded when this many rows or bytes are collected: as many as stay in the cache.
_ROWS, _BYTES = 8192, 1 << 19

_TOPIC_STEP = 1 << 32
# Numbers of one byte are sorted and counted fastest; few topics have more partitions.
_FEW = 255


@dataclass(frozen=True)
class WriteOptions:
    """The writer's options, checked."""

    path: str
    topic: str | None
    num_partitions: int
    segment_bytes: int
    batches: BatchOptions


def parse_write_options(options: Mapping[str, str]) -> WriteOptions:
    """Check the options of ``df.write``.

    Raises:
        OptionError: an option is unknown or malformed.
    """
    given = refuse_unknown(options, _OPTIONS)
    if not given.get("path", "").strip():
        raise OptionError("path: missing; give the log directory to write to")
    return WriteOptions(
        path=os.path.abspath(local_path(given["path"])),
        topic=take(given, "topic", _topic, None),
        num_partitions=take(given, "numPartitions", positive, 1),
        segment_bytes=take(given, "segmentBytes", positive, DEFAULT_SEGMENT_BYTES),
        batches=_batch_options(given),
    )


def _batch_options(given: Mapping[str, str]) -> BatchOptions:
    codec = take(given, "codec", one_of(*CODECS), "none")
    level = take(given, "level", whole_number, None)
    batch_bytes = take(given, "batchBytes", positive, DEFAULT_BATCH_BYTES)
    with _refused_as("level"):
        EncodePlan(codec=codec, level=level)
    with _refused_as("batchBytes"):
        EncodePlan(batch_bytes=batch_bytes)
    return {"codec": codec, "level": level, "batch_bytes": batch_bytes}


@contextmanager
def _refused_as(option: str) -> Iterator[None]:
    """Raise ValueError as an OptionError that names this option."""
    try:
        yield
    except ValueError as error:
        raise OptionError(f"{option}: {error}") from None


def _topic(name: str, value: str) -> str:
    with _refused_as(name):
        check_topic(value)
    return value


@dataclass(frozen=True)
class Staged(WriterCommitMessage):
    """A finished task's number and directory."""

    task: int
    directory: str


class SegmentsWriter(DataSourceArrowWriter):
    """Appends a data frame to the partitions of a log directory."""

    def __init__(self, options: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        self.options = parse_write_options(options)
        _check_schema(schema, self.options)
        if overwrite and os.path.isdir(self.options.path) and os.listdir(self.options.path):
            raise FileExistsError(errno.EEXIST, "the directory is not empty; use mode('append')", self.options.path)
        self.staging = staging.new_directory(self.options.path)
        self.now = int(time.time() * 1000)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        """Encode a task's records into the staging directory."""
        context = TaskContext.get()
        task = context.partitionId() if context is not None else 0
        directory = os.path.join(self.staging, f"{task}.{secrets.token_hex(8)}")
        writer = _TaskWriter(self.options, directory, self.now, task)
        for batch in iterator:
            writer.add(batch)
        writer.finish()
        return Staged(task, directory)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """On the driver, after all tasks have succeeded: assign offsets and publish the segments."""
        staged = sorted((m for m in messages if isinstance(m, Staged)), key=lambda message: message.task)
        staging.publish(self.options.path, [message.directory for message in staged])
        staging.remove(self.staging)
        staging.remove_abandoned(self.options.path)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Remove the staging directory."""
        staging.remove(self.staging, may_be_written=True)


def _check_schema(schema: StructType, options: WriteOptions) -> None:
    for column in schema.fields:
        if column.name in _PASSED_OVER:
            continue
        if column.name not in _COLUMNS:
            raise OptionError(f"column {column.name!r}: unknown column; columns are {', '.join(_COLUMNS)}")
        if column.dataType.simpleString() not in _COLUMNS[column.name]:
            expected = " or ".join(_COLUMNS[column.name])
            raise OptionError(f"column {column.name!r}: must be {expected}, not {column.dataType.simpleString()}")
    names = schema.fieldNames()
    if "value" not in names:
        raise OptionError("column 'value': missing")
    if "topic" not in names and options.topic is None:
        raise OptionError("topic: missing; give the option topic or a column topic")


@dataclass
class _Waiting:
    """Records of a partition that are not yet encoded."""

    batches: list[pa.RecordBatch] = field(default_factory=list)
    rows: int = 0
    bytes: float = 0.0


class _TaskWriter:
    """Sorts records by partition and encodes them in runs. Needs about half a MiB of memory per partition."""

    def __init__(self, options: WriteOptions, directory: str, now: int, task: int) -> None:
        self.options = options
        self.turn = task  # so that small tasks do not all start with the same partition
        self.directory = directory
        self.now = now
        self.logs: dict[TopicPartition, LogWriter] = {}
        self.waiting: dict[TopicPartition, _Waiting] = {}

    def add(self, batch: pa.RecordBatch) -> None:
        """Add records; writes those of partitions that have enough."""
        row_bytes = batch.nbytes / max(1, batch.num_rows)
        for target, rows in self._by_partition(batch):
            waiting = self.waiting.setdefault(target, _Waiting())
            waiting.batches.append(rows)
            waiting.rows += rows.num_rows
            waiting.bytes += rows.num_rows * row_bytes
            if waiting.rows >= _ROWS or waiting.bytes >= _BYTES:
                self._encode(target)

    def finish(self) -> None:
        """Write the remaining records."""
        for target in list(self.waiting):
            self._encode(target)
        for log in self.logs.values():
            log.commit()

    def _encode(self, target: TopicPartition) -> None:
        log = self.logs.get(target)
        if log is None:
            # The driver syncs the files when it publishes.
            log = self.logs[target] = LogWriter(
                self.directory, *target, segment_bytes=self.options.segment_bytes, sync=False
            )
        encoded = kc.encode(
            pa.Table.from_batches(self.waiting.pop(target).batches),
            base_offset=log.next_offset,
            partition_leader_epoch=log.leader_epoch,
            **self.options.batches,
        )
        log.write_batches(encoded, verify_crc=False)

    def _by_partition(self, batch: pa.RecordBatch) -> Iterator[tuple[TopicPartition, pa.RecordBatch]]:
        import pyarrow.compute as pc  # slow to import, and only tasks need it

        if batch.num_rows == 0:
            return
        names, topics = self._topics(batch)
        numbers = self._numbers(batch)
        records = self._records(batch)
        targets, codes = _codes(topics, numbers)
        counts = np.bincount(codes, minlength=len(targets))
        if np.count_nonzero(counts) > 1:
            order = np.argsort(codes, kind="stable").astype(np.uint32)
            records = pc.take(records, pa.array(order), boundscheck=False)
        start = 0
        for i in np.flatnonzero(counts).tolist():
            topic, number = divmod(int(targets[i]), _TOPIC_STEP)
            yield (names[topic], number), records.slice(start, int(counts[i]))
            start += int(counts[i])

    def _topics(self, batch: pa.RecordBatch) -> tuple[list[str], np.ndarray]:
        """The topics' names, and each row's index into them."""
        if self.options.topic is not None:
            return [self.options.topic], np.zeros(batch.num_rows, np.int32)
        import pyarrow.compute as pc

        column = batch.column("topic")
        if column.null_count:
            raise EncodeError("the topic is null", path=f"row {_first(column.is_null())}")
        encoded = column.dictionary_encode()
        names = encoded.dictionary.to_pylist()
        for name in names:
            try:
                check_topic(name)
            except ValueError as error:
                raise EncodeError(str(error), path=f"row {_first(pc.equal(column, name))}") from None
        return names, encoded.indices.to_numpy()

    def _numbers(self, batch: pa.RecordBatch) -> np.ndarray:
        """Each row's partition: the column's, or if that is null or missing, the one that Kafka's producer chooses."""
        given = batch.column("partition") if "partition" in batch.schema.names else None
        if given is None or given.null_count:
            if "key" in batch.schema.names:
                keys = batch.column("key")
                numbers = kc.partition(keys, self.options.num_partitions, null_keys="round_robin")
                if keys.null_count:
                    numbers[keys.is_null().to_numpy(zero_copy_only=False)] = self._in_turn(keys.null_count)
            else:
                numbers = self._in_turn(batch.num_rows)
            if given is None:
                return numbers
            import pyarrow.compute as pc

            given = pc.coalesce(given, pa.array(numbers))
        numbers = np.asarray(given)
        if numbers.min() < 0:
            row = int(np.argmax(numbers < 0))
            raise EncodeError(f"negative partition {numbers[row]}", path=f"row {row}")
        return numbers

    def _in_turn(self, count: int) -> np.ndarray:
        """Partitions for records without a key, continuing where the last batch ended."""
        numbers = (np.arange(count, dtype=np.int64) + self.turn) % self.options.num_partitions
        self.turn += count
        return numbers.astype(np.int32)

    def _records(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The columns to encode. Without a timestamp column, records get the time when the job started."""
        names = [name for name in ("key", "value", "headers", "timestamp") if name in batch.schema.names]
        records = batch.select(names)
        if "timestamp" not in names:
            now = pa.repeat(pa.scalar(self.now, pa.int64()), batch.num_rows)
            records = pa.RecordBatch.from_arrays([*records.columns, now], names=[*names, "timestamp"])
        return records


def _codes(topics: np.ndarray, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct pairs of topic and partition as topic * 2^32 + partition, and each row's index into them."""
    if not topics.any() and numbers.max() <= _FEW:
        return np.arange(_FEW + 1), numbers.astype(np.uint8)
    targets, codes = np.unique(topics.astype(np.int64) * _TOPIC_STEP + numbers, return_inverse=True)
    return targets, codes.astype(np.min_scalar_type(len(targets)))


def _first(mask: pa.BooleanArray) -> int:
    return int(np.argmax(mask.to_numpy(zero_copy_only=False)))
