"""The task of a write: it sorts records by partition and encodes them into segments in its own directory."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import suppress

import numpy as np
import pyarrow as pa

from kafkacodec.datatypes import dataclass, field
from kafkacodec.errors import EncodeError
from kafkacodec.log import LogWriter
from kafkacodec.log.formats.layout import check_topic
from kafkacodec.records.encode import encode
from kafkacodec.records.partition import partition
from kafkacodec.spark.reading.options import TopicPartition
from kafkacodec.spark.writing.options import WriteOptions
from kafkacodec.spark.writing.staging import is_there

__all__ = ["TaskWriter"]

# Records of a partition are encoded when this many rows or bytes are collected: as many as stay in the cache.
_ROWS, _BYTES = 8192, 1 << 19
# What waits is copied when it was cut from batches of this many bytes.
_HELD = 64 << 20

_TOPIC_STEP = 1 << 32
# Numbers of one byte are sorted and counted fastest; few topics have more partitions.
_FEW = 255


@dataclass
class _Waiting:
    """Records of a partition that are not yet encoded."""

    batches: list[pa.RecordBatch] = field(default_factory=list)
    rows: int = 0
    bytes: int = 0


class TaskWriter:
    """Sorts records by partition and encodes them in runs. Needs about half a MiB of memory per partition, and 64 MiB.

    Args:
        options: of the write.
        directory: the task's staging directory, which exists.
        now: the timestamp of records that have none, in ms.
        task: the task's number.
    """

    def __init__(self, options: WriteOptions, directory: str, now: int, task: int) -> None:
        self.options = options
        self.directory = directory
        self.now = now
        self.turn = task  # so that small tasks do not all start with the same partition
        self.logs: dict[TopicPartition, LogWriter] = {}
        self.waiting: dict[TopicPartition, _Waiting] = {}
        self._held, self._most_held = 0, _HELD
        self.records = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Add records; writes those of partitions that have enough."""
        for target, rows in self._by_partition(batch):
            waiting = self.waiting.setdefault(target, _Waiting())
            waiting.batches.append(rows)
            waiting.rows += rows.num_rows
            waiting.bytes += rows.nbytes
            if waiting.rows >= _ROWS or waiting.bytes >= _BYTES:
                self._encode(target)
        self._held += batch.nbytes
        if self._held > self._most_held:
            self._copy_waiting()

    def finish(self) -> int:
        """Write the remaining records; returns the number of all."""
        for target in list(self.waiting):
            self._encode(target)
        for log in self.logs.values():
            log.commit()
        return self.records

    def _copy_waiting(self) -> None:
        """Copy what waits, for a slice keeps the whole batch that it was cut from."""
        for waiting in self.waiting.values():
            rows = pa.Table.from_batches(waiting.batches).take(pa.array(np.arange(waiting.rows)))
            waiting.batches = rows.combine_chunks().to_batches()
        self._held = sum(waiting.bytes for waiting in self.waiting.values())
        self._most_held = max(_HELD, 2 * self._held)

    def _encode(self, target: TopicPartition) -> None:
        log = self.logs.get(target)
        if log is None:
            log = self.logs[target] = self._new_log(target)
        encoded = encode(
            pa.Table.from_batches(self.waiting.pop(target).batches),
            base_offset=log.next_offset,
            partition_leader_epoch=log.leader_epoch,
            **self.options.batches,
        )
        self.records += log.write_batches(encoded, verify_crc=False)

    def _new_log(self, target: TopicPartition) -> LogWriter:
        if is_there(self.directory):
            # The driver syncs the files when it publishes.
            log = LogWriter(self.directory, *target, segment_bytes=self.options.segment_bytes, sync=False)
            if is_there(self.directory):
                return log
            log.withdraw()  # it has made the directory again
            with suppress(OSError):
                os.rmdir(os.path.dirname(self.directory))
        reason = "the staging directory was removed, since the job has ended or failed"
        raise FileNotFoundError(errno.ENOENT, reason, self.directory)

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
                numbers = partition(keys, self.options.num_partitions, null_keys="round_robin")
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
