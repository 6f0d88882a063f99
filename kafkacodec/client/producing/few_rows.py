"""Rows of small tables, which go into the open batches of their partitions like records of `send`.

So tables with a few rows for each partition are gathered: a batch for each of them would cost more than its rows.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from kafkacodec.client.producing.outcome import Outcome, Part, TableOutcome
from kafkacodec.client.producing.queue import PartitionQueue, Queues, TopicQueues
from kafkacodec.errors import EncodeError
from kafkacodec.lazy import import_extra

__all__ = ["FewRows", "add", "are_few", "rows_of"]

_FEW: Final = 256  # rows: the minimum cost of the encoder of whole tables is as much
_FEW_OF_PARTITION: Final = 2
_COLUMNS: Final = ("key", "value")


class FewRows(NamedTuple):
    """Rows of a table for one partition."""

    topic: TopicQueues
    queue: PartitionQueue
    keys: list[Any]
    values: list[Any]
    rows: list[int]


def are_few(table: Any, topic: TopicQueues, most: int) -> bool:
    """Whether rows are better added one by one: they are few, and have a key and a value of bytes or text only.

    A row of more than `most` bytes may be allowed where it is compressed, and so is left to the encoder of tables.
    """
    names = table.column_names
    if not 0 < table.num_rows <= max(_FEW, _FEW_OF_PARTITION * len(topic.numbers) if "key" in names else 0):
        return False
    if not {"timestamp", "headers", "topic", "partition"}.isdisjoint(names):
        return False
    if table.nbytes > min(topic.batch_limit, most):
        return False
    pa = import_extra("pyarrow")
    kinds = (pa.binary(), pa.string(), pa.large_binary(), pa.large_string())
    return all(table.column(name).type in kinds for name in ("key", "value") if name in names)


def rows_of(table: Any, topic: TopicQueues, queues: Queues) -> list[FewRows]:
    """The rows of such a table by partition."""
    nothing = [None] * table.num_rows
    keys, values = (table.column(name).to_pylist() if name in table.column_names else nothing for name in _COLUMNS)
    found: dict[PartitionQueue, FewRows] = {}
    for row, (key, value) in enumerate(zip(keys, values, strict=True)):
        queue = queues.choose(topic, None, key) or topic.choose_sticky()
        part = found.get(queue)
        if part is None:
            part = found[queue] = FewRows(topic, queue, [], [], [])
        part.keys.append(key)
        part.values.append(value)
        part.rows.append(row)
    return list(found.values())


def add(part: FewRows, queues: Queues, outcome: TableOutcome) -> bool:
    """Add rows to the open batch of their partition; returns whether the driver must be woken. Under the queues' lock.

    Raises:
        EncodeError: a row is too large; `path` names it. Those before it are queued.
    """
    now, woken, run = int(time.time() * 1000), False, None
    runs: list[_Run] = []
    for key, value, row in zip(part.keys, part.values, part.rows, strict=True):
        batch = part.queue.open
        try:
            made = None if batch is None else queues.put(part.topic, batch, key, value, (), now)
            if made is None:
                made, due = queues.append(part.topic, part.queue.number, key, value, (), now)
                woken = woken or due
        except EncodeError as error:
            raise EncodeError(error.reason, path=f"records[{row}]{(error.path and f'.{error.path}') or ''}") from None
        if run is None or made._outcome is not run.outcome:
            run = _Run(made._outcome, made._index, made._index, outcome, outcome.queued)
            runs.append(run)
        run.end = made._index + 1
        outcome.queued += 1
    for run in runs:
        run.known()
    return woken


@dataclass(slots=True)
class _Run:
    """Consecutive records of a batch that are rows of a table, which gets their outcome.

    Attributes:
        outcome: the batch's.
        first, end: the records that are not known yet.
        table: the table's outcome.
        row: the place of the first of them among all rows.
    """

    outcome: Outcome
    first: int
    end: int
    table: TableOutcome
    row: int

    def known(self) -> None:
        """Pass known outcomes to the table, and wait for more."""
        while self.first < self.end:
            if not self.outcome.when(self.first, self.known):
                return
            part = self.outcome.find(self.first)
            assert part is not None
            count = min(self.end, part.end) - self.first
            offset = part.offset + self.first - part.first if part.offset >= 0 else -1
            self.table.resolve(
                Part(self.row + count, self.row, part.topic, part.partition, offset, part.time, part.error)
            )
            self.first += count
            self.row += count
