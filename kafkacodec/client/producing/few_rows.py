"""Rows of small tables, which go into the open batches of their partitions like records of `send`.

So tables with a few rows for each partition are gathered: a batch for each of them would cost more than its rows.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from kafkacodec.client.producing._appending import RowRuns
from kafkacodec.client.producing._row_cells import RowCells, row_cells
from kafkacodec.client.producing.queue import Queues, TopicQueues
from kafkacodec.errors import EncodeError

__all__ = ["FewRows", "add", "are_few", "cells_of", "pieces"]

_FEW: Final = 256  # rows: the minimum cost of the encoder of whole tables is as much
_FEW_OF_PARTITION: Final = 16  # rows: likewise, with what it takes to send a batch of them alone
_PIECE: Final = 2048  # rows that are added under one lock
_MOST_PARTS: Final = 16  # of a table


class FewRows(NamedTuple):
    """Rows `start` to `end` of some that follow `before` others of the same table.

    `partition` and `headers` are those of each row; without a partition, the key chooses one as in `send`.
    """

    topic: TopicQueues
    rows: RowCells
    start: int
    end: int
    before: int
    partition: int | None = None
    headers: Any = ()

    @property
    def topic_name(self) -> str:
        """Their topic."""
        return self.topic.name


def cells_of(data: Any) -> list[RowCells] | None:
    """The rows of a table, part by part; None if they have more than a key and a value of bytes or text, or are known
    to be many, or may be asked for only once."""
    pa = sys.modules.get("pyarrow")
    if pa is not None and isinstance(data, pa.Table):
        parts = data.to_batches()
        if not 0 < len(parts) <= _MOST_PARTS:
            return None
    elif hasattr(data, "__arrow_c_array__"):
        parts = [data]
    else:
        return None
    found = []
    for part in parts:
        cells = row_cells(part)
        if cells is None:
            return None
        found.append(cells)
    return found


def are_few(parts: list[RowCells], topic: TopicQueues, most: int) -> bool:
    """Whether rows are better added one by one than encoded as a table: if they are few for a batch.

    A row of more than `most` bytes may be allowed where it is compressed, and so is left to the encoder of tables.
    """
    # Rows without a key go to one partition until its batch is full.
    partitions = len(topic.numbers) if any(part.has_keys for part in parts) else 1
    if sum(map(len, parts)) > max(_FEW, _FEW_OF_PARTITION * partitions):
        return False
    size = sum(part.size for part in parts)
    return size <= topic.batch_limit * partitions and (size <= most or max(part.largest for part in parts) <= most)


def pieces(
    parts: list[RowCells], topic: TopicQueues, partition: int | None = None, headers: Any = ()
) -> Iterator[FewRows]:
    """All rows, so many at a time as are added under one lock."""
    before = 0
    for part in parts:
        for start in range(0, len(part), _PIECE):
            end = min(start + _PIECE, len(part))
            yield FewRows(topic, part, start, end, before, partition, headers)
        before += len(part)


def add(few: FewRows, queues: Queues, runs: RowRuns) -> bool:
    """Add rows to the open batches of their partitions; returns whether the driver must be woken. Under their lock.

    `runs` learns where they are.

    Raises:
        EncodeError: a row is too large; `path` names it. Those before it are queued.
    """
    topic, rows, at, end, before, partition, headers = few
    now, woken = int(time.time() * 1000), False
    direct = partition is not None or queues.hashes
    try:
        while True:
            if direct:
                at = queues.add_rows(topic, rows, at, end, partition, headers, now, runs)
            if at == end:
                return woken
            key, value = rows.pair(at)
            made, due = queues.append(topic, partition, key, value, headers, now)
            runs.add(made)
            woken, at = woken or due, at + 1
    except EncodeError as error:
        raise EncodeError(
            error.reason, path=f"records[{before + at}]{(error.path and f'.{error.path}') or ''}"
        ) from None
