"""Rows of small tables, which go into the open batches of their partitions like records of `send`.

So tables with a few rows for each partition are gathered: a batch for each of them would cost more than its rows.
"""

from __future__ import annotations

import time
from functools import cache
from typing import Any, Final, NamedTuple

from kafkacodec.client.producing._appending import RowRuns
from kafkacodec.client.producing.queue import Queues, TopicQueues
from kafkacodec.errors import EncodeError
from kafkacodec.lazy import import_extra

__all__ = ["FewRows", "add", "rows_of"]

_FEW: Final = 256  # rows: the minimum cost of the encoder of whole tables is as much
_FEW_OF_PARTITION: Final = 16  # rows: likewise, with what it takes to send a batch of them alone
_PIECE: Final = 2048  # rows that become Python objects, and are added under one lock, at a time
_COLUMNS: Final = frozenset({"key", "value"})
_OTHERS: Final = frozenset({"timestamp", "headers", "topic", "partition"})


class FewRows(NamedTuple):
    """Some rows of a table, from `first` on; `keys` is None if they have none."""

    topic: TopicQueues
    keys: list[Any] | None
    values: list[Any]
    first: int

    @property
    def topic_name(self) -> str:
        """Their topic."""
        return self.topic.name


def rows_of(table: Any, names: list[str], topic: TopicQueues, most: int) -> list[FewRows] | None:
    """The rows of a table with columns of these names, in pieces; None if they are not better added one by one.

    They are if they are few for a batch, and have a key and a value of bytes or text only. A row of more than `most`
    bytes may be allowed where it is compressed, and so is left to the encoder of tables.
    """
    count = table.num_rows
    # Rows without a key go to one partition until its batch is full.
    partitions = len(topic.numbers) if "key" in names else 1
    if not 0 < count <= max(_FEW, _FEW_OF_PARTITION * partitions) or not _OTHERS.isdisjoint(names):
        return None
    columns = {name: column for name, column in zip(names, table.columns, strict=True) if name in _COLUMNS}
    kinds = _kinds()
    for column in columns.values():
        if column.type not in kinds:
            return None
    pieces = [] if count <= _PIECE else [table.slice(first, _PIECE) for first in range(0, count, _PIECE)]
    if not _is_small(table, min(most, topic.batch_limit * partitions)):
        sizes = [piece.nbytes for piece in pieces or [table]]
        if max(sizes) > most or sum(sizes) > topic.batch_limit * partitions:
            return None
    if not pieces:
        return [_few(topic, columns, count, 0)]
    return [
        _few(topic, {name: piece.column(name) for name in columns}, piece.num_rows, at * _PIECE)
        for at, piece in enumerate(pieces)
    ]


@cache
def _kinds() -> frozenset[Any]:
    pa = import_extra("pyarrow")
    return frozenset({pa.binary(), pa.string(), pa.large_binary(), pa.large_string()})


def _is_small(table: Any, most: int) -> bool:
    """Whether all buffers of a table, which it may share with others, have at most so many bytes: quick to see."""
    size: int = table.get_total_buffer_size()
    return size <= most


def _few(topic: TopicQueues, columns: dict[str, Any], count: int, first: int) -> FewRows:
    keys = columns["key"].to_pylist() if "key" in columns else None
    return FewRows(topic, keys, columns["value"].to_pylist() if "value" in columns else [None] * count, first)


def add(part: FewRows, queues: Queues, runs: RowRuns) -> bool:
    """Add rows to the open batches of their partitions; returns whether the driver must be woken. Under their lock.

    `runs` learns where they are.

    Raises:
        EncodeError: a row is too large; `path` names it. Those before it are queued.
    """
    topic, keys, values, first = part
    now, woken, at = int(time.time() * 1000), False, 0
    try:
        while (at := queues.add_rows(topic, keys, values, at, now, runs)) < len(values):
            made, due = queues.append(topic, None, None if keys is None else keys[at], values[at], (), now)
            runs.add(made)
            woken, at = woken or due, at + 1
    except EncodeError as error:
        raise EncodeError(
            error.reason, path=f"records[{first + at}]{(error.path and f'.{error.path}') or ''}"
        ) from None
    return woken
