"""Batches from Arrow tables, without a Python object per record. Needs pyarrow."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from kafkacodec.arguments import require_int
from kafkacodec.client.checks import check_topic
from kafkacodec.client.producing.queue import (
    READABLE_BY,
    READABLE_BYTES,
    REQUEST_BYTES,
    PartitionQueue,
    TopicQueues,
)
from kafkacodec.client.producing.settings import ProducerSettings
from kafkacodec.datatypes import NamedTuple
from kafkacodec.errors import EncodeError, LimitExceeded
from kafkacodec.lazy import import_extra, pyarrow_table
from kafkacodec.protocol.partition_rows import column_without_nulls, groups_of_batch
from kafkacodec.records._record_chunks import refuse_unknown_columns
from kafkacodec.records.decode import decode
from kafkacodec.records.encode import EncodePlan, iter_writable
from kafkacodec.records.partition import partition

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["TableBatch", "TablePlan"]

_CHUNK_ROWS = 1 << 17  # encoded at a time: enough to fill batches of many partitions
_COLUMNS = ("timestamp", "key", "value", "headers")

_Rows: TypeAlias = "slice | npt.NDArray[np.int64]"
"""Rows of a table: from one to another, or the numbers of some."""


class TableBatch(NamedTuple):
    """An encoded batch of table rows for one partition; `size` is that before compression, in bytes."""

    queue: PartitionQueue
    data: bytearray | memoryview
    rows: int
    size: int

    @property
    def topic_name(self) -> str:
        """Its topic."""
        return self.queue.topic


class TablePlan:
    """A table to send: record batch by record batch, each divided by topic and partition.

    Args:
        data: an object with the Arrow interface.
        topic: the topic of all rows; None if the table has a topic column.

    Raises:
        TypeError, ValueError: `data` is not a table, or `topic` is not a valid topic.
        EncodeError: a column is missing, unknown or of the wrong type.
        ImportError: pyarrow is not installed.
    """

    def __init__(self, data: Any, topic: str | None, settings: ProducerSettings) -> None:
        if not (hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")):
            raise TypeError(f"data must be an Arrow table, not {type(data).__name__}")
        self._pa = import_extra("pyarrow")
        self._table = pyarrow_table(data)
        self._settings = settings
        names = self._table.column_names
        for name in (*_COLUMNS, "topic", "partition") if len({*names}) < len(names) else ():
            if names.count(name) > 1:
                raise EncodeError(f"the table has several columns {name!r}", path=f"records.{name}")
        refuse_unknown_columns(names, (*_COLUMNS, "topic", "partition"))
        if "key" not in names and "value" not in names:
            raise EncodeError("the table has neither a column key nor a column value", path="records")
        if topic is not None:
            check_topic(topic)
            self._topics, self._topic_numbers = [topic], None
        else:
            self._topics, self._topic_numbers = self._topics_of(self._table)
        self._partition_numbers = self._partitions_given() if "partition" in names else None
        self._most = settings.max_request_size - REQUEST_BYTES
        self._plans: dict[int, EncodePlan] = {}  # by the size of batches
        self._now = int(time.time() * 1000)  # of rows without a timestamp

    @property
    def topics(self) -> list[str]:
        """The topics of the rows."""
        return self._topics

    @property
    def names_partitions(self) -> bool:
        """Whether rows name their partitions."""
        return self._partition_numbers is not None

    def missing(self, queues_of: Callable[[str], TopicQueues]) -> dict[str, int]:
        """The topics that lack partitions named by rows, with the highest such partition."""
        return {name: top for name, top in self._highest.items() if top not in queues_of(name).present}

    @cached_property
    def _highest(self) -> dict[str, int]:
        """The highest partition named by rows, by topic."""
        numbers, topics = self._partition_numbers, self._topic_numbers
        if numbers is None or not len(numbers):
            return {}
        if topics is None:
            return {self._topics[0]: int(numbers.max())}
        found = np.full(len(self._topics), -1, np.int32)
        np.maximum.at(found, topics, numbers)
        return dict(zip(self._topics, found.tolist(), strict=True))

    def check_partitions(self, queues_of: Callable[[str], TopicQueues]) -> None:
        """Raise EncodeError if a row names a partition that its topic does not have; `path` names the row."""
        numbers = self._partition_numbers
        if numbers is None or not len(numbers) or (not self.missing(queues_of) and numbers.min() >= 0):
            return
        tops = np.array([queues_of(name).numbers[-1] for name in self._topics])
        wrong = (numbers < 0) | (numbers > (tops[0] if self._topic_numbers is None else tops[self._topic_numbers]))
        for row in np.flatnonzero(wrong)[:1].tolist():
            name = self._topics[0 if self._topic_numbers is None else self._topic_numbers[row]]
            raise _no_partition(name, numbers[row], row)

    def _partitions_given(self) -> npt.NDArray[np.int32]:
        found: npt.NDArray[np.int32] = column_without_nulls(self._table, "partition", self._pa.int32()).to_numpy()
        return found

    @staticmethod
    def _topics_of(table: Any) -> tuple[list[str], npt.NDArray[np.int64]]:
        if "topic" not in table.column_names:
            raise EncodeError("the table has no column topic: name the topic", path="records.topic")
        pa = import_extra("pyarrow")
        encoded = column_without_nulls(table, "topic", pa.large_string()).combine_chunks().dictionary_encode()
        topics: list[str] = encoded.dictionary.to_pylist()
        for name in topics:
            check_topic(name)
        return topics, encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)

    @property
    def table(self) -> Any:
        """The table as pyarrow's."""
        return self._table

    def batches(self, queues_of: Callable[[str], TopicQueues]) -> Iterator[TableBatch]:
        """The batches of all rows. `queues_of` returns the queues of a topic; it is called again for each record batch.

        Raises EncodeError for a row that cannot be sent, after the batches before it; `path` names the row.
        """
        chosen = self._table.select([name for name in _COLUMNS if name in self._table.column_names])
        start = 0
        for batch in chosen.to_batches(max_chunksize=_CHUNK_ROWS):
            rows = slice(start, start + batch.num_rows)
            topics = None if self._topic_numbers is None else self._topic_numbers[rows]
            for number, own, part in _divided(batch, topics):
                queues = queues_of(self._topics[number])
                yield from self._of_topic(part, rows if topics is None else own + start, queues)
            start += batch.num_rows

    def _of_topic(self, batch: Any, rows: _Rows, queues: TopicQueues) -> Iterator[TableBatch]:
        explicit = self._partition_numbers
        numbers = self._partitions(batch, queues) if explicit is None else explicit[rows]
        for number, own, part in _divided(batch, numbers):
            queue = queues.queues.get(number) if number in queues.present else None
            if queue is None:
                raise _no_partition(queues.name, number, _numbers_of(rows)[own][0])
            at = 0
            try:
                for data, count, size in iter_writable(part, self._encoding(queues)):
                    if count == 1 and len(data) > self._most:  # several rows can be divided later
                        raise EncodeError(self._too_large(len(data)), path=f"records[{at}]")
                    if count == 1 and self._settings.codec and part.nbytes > READABLE_BYTES:
                        self._check_readable(data, at)
                    yield TableBatch(queue, data, count, size)
                    at += count
            except EncodeError as error:
                raise EncodeError(error.reason, path=_path_in_table(error.path, _numbers_of(rows)[own])) from None

    def _too_large(self, size: int) -> str:
        compressed = "" if self._settings.codec == 0 else ", compressed"
        return f"the row takes {size} bytes{compressed}, {self._most} are allowed by max_request_size"

    @staticmethod
    def _check_readable(data: bytearray | memoryview, at: int) -> None:
        """Refuse a row that consumers would refuse to decompress, however small it is compressed."""
        try:
            decode(data, columns=["offset"], max_decompressed_bytes=READABLE_BYTES)
        except LimitExceeded:
            reason = f"the row takes more than the {READABLE_BYTES} bytes that are allowed by {READABLE_BY}"
            raise EncodeError(reason, path=f"records[{at}]") from None

    def _encoding(self, queues: TopicQueues) -> EncodePlan:
        settings, limit = self._settings, queues.table_limit
        if limit not in self._plans:
            self._plans[limit] = EncodePlan(
                codec=settings.compression_type or "none",
                level=settings.compression_level,
                batch_bytes=limit,
                default_timestamp=self._now,
            )
        return self._plans[limit]

    def _partitions(self, batch: Any, queues: TopicQueues) -> npt.NDArray[np.int32] | None:
        """The partition of each row; None if all go to the only one."""
        if self._settings.partitioner is not None:
            return self._chosen(batch, queues)
        if len(queues.numbers) == 1 and queues.numbers[0] == 0:
            return None
        if "key" not in batch.schema.names:
            return np.full(batch.num_rows, queues.choose_sticky().number, np.int32)
        keys = batch.column("key")
        found = partition(keys, len(queues.numbers), null_keys="round_robin") if not keys.null_count else None
        if found is None:
            found = np.full(batch.num_rows, queues.choose_sticky().number, np.int32)
            present = keys.is_valid()
            found[present.to_numpy(zero_copy_only=False)] = partition(keys.filter(present), len(queues.numbers))
        return found

    def _chosen(self, batch: Any, queues: TopicQueues) -> npt.NDArray[np.int32]:
        """The partition of each row by the producer's partitioner."""
        keys = batch.column("key").to_pylist() if "key" in batch.schema.names else [None] * batch.num_rows
        choose = self._settings.partitioner
        assert choose is not None
        found = [choose(key, queues.numbers, queues.available) for key in keys]
        for number in found:
            require_int("the partitioner's result", number, 0, 2**31 - 1)
        return np.array(found, np.int32)


def _numbers_of(rows: _Rows) -> npt.NDArray[np.int64]:
    return np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows


def _no_partition(topic: str, number: int, row: int) -> EncodeError:
    return EncodeError(f"topic {topic!r} has no partition {number}", path=f"records[{row}].partition")


def _divided(batch: Any, numbers: npt.NDArray[Any] | None) -> Iterator[Any]:
    if numbers is None:
        return iter([(0, slice(None), batch)])
    return groups_of_batch(batch, numbers)


def _path_in_table(path: str | None, rows: npt.NDArray[np.int64]) -> str | None:
    """The path of an error about some rows, with row numbers of the whole table."""
    found = re.match(r"records\[(\d+)\]", path or "")
    return f"records[{rows[int(found[1])]}]{(path or '')[found.end() :]}" if found else path
