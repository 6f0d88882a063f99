"""A table that a producer sends, batch by batch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from kafkacodec.client.checks import check_topic
from kafkacodec.client.producing._appending import FewRows
from kafkacodec.client.producing._delivery import TableDelivery
from kafkacodec.client.producing._row_cells import RowCells, parts_of
from kafkacodec.client.producing.outcome import TableOutcome
from kafkacodec.client.producing.queue import Queues, TopicQueues
from kafkacodec.client.producing.settings import ProducerSettings
from kafkacodec.errors import DeadlineExceeded

if TYPE_CHECKING:
    from kafkacodec.client.producing.columns import TableBatch, TablePlan

__all__ = ["TableSending"]

_SENT_BYTES: Final = 256 << 10  # so that the rows of many topics go out in few requests
_BATCH_COST: Final = 100  # bytes, of a batch's overhead


class TableSending:
    """A table in progress.

    Attributes:
        topics: the topics of the rows.
        has_batches: whether batches were queued, which are due at once.
    """

    topics: list[str]

    def __init__(self, queues: Queues, settings: ProducerSettings, data: Any, topic: str | None) -> None:
        self._queues, self._settings, self._data, self._topic = queues, settings, data, topic
        self._outcome = TableOutcome(queues.loop)
        self._unsent = 0
        self.has_batches = False
        self._made: TablePlan | None = None
        self._parts: list[RowCells] | None = None
        if topic is not None and settings.partitioner is None:
            check_topic(topic)
            self._parts = parts_of(data)
            if self._parts is None:
                self._parts = parts_of(self._plan.table)
        self.topics = self._plan.topics if topic is None or self._parts is None else [topic]

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
        return self._parts is None and self._plan.names_partitions

    @property
    def is_ready(self) -> bool:
        """Whether it needs no wait and no check."""
        known = all(self._queues.topic(name) is not None for name in self.topics)
        return known and not self._queues.full and not self.names_partitions

    def few_rows(self) -> FewRows | None:
        """The rows, if they are to be added to open batches one by one."""
        if self._parts is None or not self._queues.are_few(self._known(self.topics[0]), self._parts):
            return None
        return FewRows(self._queues, self.topics[0], self._parts)

    def batches(self) -> Iterable[TableBatch]:
        """The batches of the rows; each is to be queued."""
        return self._plan.batches(self._known)

    def queue(self, batch: TableBatch) -> bool:
        """Queue a batch; returns whether enough is queued that it should be sent."""
        self.has_batches = True
        with self._queues.lock:
            made = self._queues.new_batch(batch.queue, self._outcome, self._outcome.queued)
            made.data, made.count, made.size = batch.data, batch.rows, batch.size
            self._queues.add(made)
            self._outcome.queued += batch.rows
        self._unsent += len(batch.data) + _BATCH_COST
        enough = self._unsent >= _SENT_BYTES
        self._unsent = 0 if enough else self._unsent
        return enough

    def finish(self) -> TableDelivery:
        """No more batches follow."""
        self._outcome.finish()
        return TableDelivery(self._outcome)

    def _known(self, topic: str) -> TopicQueues:
        found = self._queues.topic(topic)
        if found is None:
            raise DeadlineExceeded(f"topic {topic!r} is gone")
        return found
