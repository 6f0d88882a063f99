"""Rows that a producer sends, batch by batch: of a table, or with what is the same for all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from kafkacodec.client.checks import check_topic
from kafkacodec.client.producing._appending import RowRuns
from kafkacodec.client.producing._row_cells import RowCells
from kafkacodec.client.producing.delivery import TableDelivery
from kafkacodec.client.producing.few_rows import FewRows, add, are_few, cells_of, pieces
from kafkacodec.client.producing.outcome import TableOutcome
from kafkacodec.client.producing.queue import REQUEST_BYTES, Queues, TopicQueues
from kafkacodec.client.producing.settings import ProducerSettings
from kafkacodec.errors import DeadlineExceeded

if TYPE_CHECKING:
    from kafkacodec.client.producing.columns import TableBatch, TablePlan

__all__ = ["RowSending", "Rows", "TableSending"]

_SENT_BYTES: Final = 256 << 10  # so that the rows of many topics go out in few requests
_BATCH_COST: Final = 100  # bytes, of a batch's overhead


class Rows:
    """Rows in progress.

    Attributes:
        has_batches: whether batches were queued, which are due at once.
        topics: the topics of the rows.
    """

    topics: list[str]

    def __init__(self, queues: Queues) -> None:
        self._queues = queues
        self._outcome = TableOutcome(queues.loop)
        self._runs = RowRuns(self._outcome)  # of rows in open batches
        self._unsent = 0
        self.has_batches = False

    def missing(self) -> dict[str, int]:
        """Return topics that lack partitions named by rows, with the highest of each."""
        return {}

    def check_partitions(self) -> None:
        """Raise EncodeError if a row names a partition that its topic does not have."""

    @property
    def names_partitions(self) -> bool:
        """Whether rows name partitions, which may not exist."""
        return False

    @property
    def is_ready(self) -> bool:
        """Whether it needs no wait and no check."""
        known = all(self._queues.topic(name) is not None for name in self.topics)
        return known and not self._queues.full and not self.names_partitions

    def batches(self) -> Iterable[TableBatch | FewRows]:
        """The batches of the rows, or rows for open batches; each is to be queued."""
        raise NotImplementedError

    def queue(self, rows: TableBatch | FewRows) -> bool:
        """Queue a batch or rows; returns whether enough is queued that it should be sent."""
        if isinstance(rows, FewRows):
            with self._queues.lock:
                try:
                    return add(rows, self._queues, self._runs)
                except BaseException:
                    self.has_batches = True  # those of the rows before it
                    raise
        self.has_batches = True
        with self._queues.lock:
            batch = self._queues.new_batch(rows.queue, self._outcome, self._outcome.queued)
            batch.data, batch.count, batch.size = rows.data, rows.rows, len(rows.data)
            self._queues.add(batch)
            self._outcome.queued += rows.rows
        self._unsent += len(rows.data) + _BATCH_COST
        enough = self._unsent >= _SENT_BYTES
        self._unsent = 0 if enough else self._unsent
        return enough

    def finish(self) -> TableDelivery:
        """No more batches follow."""
        self._runs.tell()
        self._outcome.finish()
        return TableDelivery(self._outcome)

    def _known(self, topic: str) -> TopicQueues:
        found = self._queues.topic(topic)
        if found is None:
            raise DeadlineExceeded(f"topic {topic!r} is gone")
        return found


class TableSending(Rows):
    """A table in progress."""

    def __init__(self, queues: Queues, settings: ProducerSettings, data: Any, topic: str | None) -> None:
        super().__init__(queues)
        self._settings, self._data, self._topic = settings, data, topic
        self._made: TablePlan | None = None
        self._cells: list[RowCells] | None = None
        if topic is not None and settings.partitioner is None:
            check_topic(topic)
            self._cells = cells_of(data)
            if self._cells is None:
                self._cells = cells_of(self._plan.table)
        self.topics = self._plan.topics if topic is None or self._cells is None else [topic]

    @property
    def _plan(self) -> TablePlan:
        """How the table becomes batches of its own, which takes longer to find out than what to do with a few rows."""
        if self._made is None:
            from kafkacodec.client.producing.columns import TablePlan  # numpy and pyarrow are not needed for records

            self._made = TablePlan(self._data, self._topic, self._settings)
        return self._made

    def missing(self) -> dict[str, int]:
        """Return topics that lack partitions named by rows, with the highest of each."""
        return self._plan.missing(self._known) if self.names_partitions else {}

    def check_partitions(self) -> None:
        """Raise EncodeError if a row names a partition that its topic does not have."""
        if self.names_partitions:
            self._plan.check_partitions(self._known)

    @property
    def names_partitions(self) -> bool:
        """Whether rows name partitions, which may not exist."""
        return self._cells is None and self._plan.names_partitions

    def batches(self) -> Iterable[TableBatch | FewRows]:
        """The batches of the rows, or rows for open batches; each is to be queued."""
        if self._cells is not None:
            topic = self._known(self.topics[0])
            if are_few(self._cells, topic, (self._settings.max_request_size - REQUEST_BYTES) // 2):
                return pieces(self._cells, topic)
        return self._plan.batches(self._known)


class RowSending(Rows):
    """Keys and values with the same headers and, unless it is None, the same partition, however many there are."""

    def __init__(self, queues: Queues, data: Any, topic: str, partition: int | None, headers: Any) -> None:
        super().__init__(queues)
        cells = cells_of(data)
        if cells is None:
            raise TypeError("the rows have more than a key and a value")
        self.topics = [topic]
        self._cells, self._partition, self._headers = cells, partition, headers

    @property
    def names_partitions(self) -> bool:
        """Whether the partition may not exist."""
        return bool(self.missing())

    def missing(self) -> dict[str, int]:
        """Return the topic with the partition, if it lacks it."""
        partition, own = self._partition, self._queues.topic(self.topics[0])
        if partition is None or (own is not None and partition in own.present):
            return {}
        return {self.topics[0]: partition}

    def batches(self) -> Iterable[FewRows]:
        """Rows for open batches; each is to be queued."""
        return pieces(self._cells, self._known(self.topics[0]), self._partition, self._headers)
