"""A table that a producer sends, batch by batch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from kafkacodec.client.producing._appending import RowRuns
from kafkacodec.client.producing.delivery import TableDelivery
from kafkacodec.client.producing.few_rows import FewRows, add
from kafkacodec.client.producing.outcome import TableOutcome
from kafkacodec.client.producing.queue import Queues, TopicQueues
from kafkacodec.client.producing.settings import ProducerSettings
from kafkacodec.errors import DeadlineExceeded

if TYPE_CHECKING:
    from kafkacodec.client.producing.columns import TableBatch

__all__ = ["TableSending"]

_SENT_BYTES: Final = 256 << 10  # so that the rows of many topics go out in few requests
_BATCH_COST: Final = 100  # bytes, of a batch's overhead


class TableSending:
    """A table in progress.

    Attributes:
        has_batches: whether batches were queued, which are due at once.
    """

    def __init__(self, queues: Queues, settings: ProducerSettings, data: Any, topic: str | None) -> None:
        from kafkacodec.client.producing.columns import TablePlan  # numpy and Arrow are not needed for records

        self._plan = TablePlan(data, topic, settings)
        self._queues = queues
        self._outcome = TableOutcome(queues.loop)
        self._runs = RowRuns(self._outcome)  # of a small table
        self._unsent = 0
        self.has_batches = False

    @property
    def topics(self) -> list[str]:
        """The topics of the rows."""
        return self._plan.topics

    def missing(self) -> dict[str, int]:
        """Return topics that lack partitions named by rows, with the highest of each."""
        return self._plan.missing(self._known)

    def check_partitions(self) -> None:
        """Raise EncodeError if a row names a partition that its topic does not have."""
        self._plan.check_partitions(self._known)

    @property
    def is_ready(self) -> bool:
        """Whether it needs no wait and no check."""
        known = all(self._queues.topic(name) is not None for name in self.topics)
        return known and not self._queues.full and not self._plan.names_partitions

    def batches(self) -> Iterable[TableBatch | FewRows]:
        """The batches of the rows, or rows for open batches; each is to be queued."""
        few = self._plan.few(self._known)
        return self._plan.batches(self._known) if few is None else few

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
