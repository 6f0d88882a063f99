"""Which rows of an input go to which partition, for `kafkacodec encode`. Needs pyarrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

import click
import numpy as np
import pyarrow as pa

import kafkacodec
from kafkacodec.cli.console import note
from kafkacodec.errors import EncodeError

__all__ = ["ByColumn", "ByKey", "ToOne", "Topics"]

Part = tuple[int, pa.RecordBatch, Sequence[int] | None]
"""A partition's number, its rows, and their numbers in the batch; None: it has all."""


class Topics:
    """The topics that rows were of, by their column topic."""

    def __init__(self) -> None:
        self._found: set[str] = set()

    def look(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows without that column."""
        if "topic" not in batch.schema.names:
            return batch
        self._found.update(str(name) for name in batch.column("topic").unique().drop_null().to_pylist())
        return batch.drop_columns("topic")

    def warn(self) -> None:
        """Print a warning if there are several."""
        if len(self._found) > 1:
            shown = " and ".join(sorted(self._found)[:2])
            note(f"kafkacodec: warning: the rows are of {len(self._found):,} topics, such as {shown}; all go to one")


class ToOne:
    """All rows go to one partition.

    Args:
        number: which; None: 0, if the rows have a column partition with one number at most.
    """

    def __init__(self, number: int | None) -> None:
        self._found: set[int] | None = set() if number is None else None
        self.numbers = [number or 0]

    def __call__(self, batch: pa.RecordBatch) -> Iterator[Part]:
        """The rows of a batch, as they are.

        Raises:
            click.UsageError: they are of several partitions, which nobody asked to put into one.
        """
        column = _column(batch)
        if self._found is not None and column is not None and pa.types.is_integer(column.type):
            self._found.update(column.unique().drop_null().to_pylist())
            if len(self._found) > 1:
                shown = " and ".join(map(str, sorted(self._found)[:2]))
                raise click.UsageError(
                    f"the rows are of several partitions, such as {shown}: --keep-partitions writes each to its own, "
                    "--partition N all to one, --partitions N spreads them by key"
                )
        yield self.numbers[0], batch if column is None else batch.drop_columns("partition"), None


class ByColumn:
    """Each row goes to the partition that its column partition names."""

    def __init__(self) -> None:
        self.numbers: list[int] = []

    def __call__(self, batch: pa.RecordBatch) -> Iterator[Part]:
        """The rows of each partition, in their order.

        Raises:
            EncodeError: a cell is not the number of a partition.
        """
        column = _column(batch)
        assert column is not None
        if not pa.types.is_integer(column.type):
            raise EncodeError("the column is not of integers", path="records.partition")
        rows = batch.drop_columns("partition")
        for row, number in enumerate(column.to_pylist()):
            if number is None or not 0 <= number < 2**31:
                reason = "null" if number is None else str(number)
                raise EncodeError(f"{reason} is not the number of a partition", path=f"records[{row}].partition")
        numbers = column.to_numpy(zero_copy_only=False)
        for number in np.unique(numbers).tolist():
            yield _taken(number, rows, np.flatnonzero(numbers == number))


class ByKey:
    """Rows go to the partition of their key, as Kafka's producer sends them; those without a key in turn."""

    def __init__(self, count: int) -> None:
        self.numbers = list(range(count))
        self._next = 0

    def __call__(self, batch: pa.RecordBatch) -> Iterator[Part]:
        """The rows of each partition, in their order."""
        count = len(self.numbers)
        if count == 1:
            yield 0, batch, None
            return
        keys = batch.column("key") if "key" in batch.schema.names else pa.nulls(batch.num_rows, pa.binary())
        places = kafkacodec.partition(keys, count, null_keys="round_robin", first_partition=self._next)
        self._next = (self._next + keys.null_count) % count
        for number in self.numbers:
            yield _taken(number, batch, np.flatnonzero(places == number))


def _column(batch: pa.RecordBatch) -> pa.Array | None:
    return batch.column("partition") if "partition" in batch.schema.names else None


def _taken(number: int, batch: pa.RecordBatch, rows: np.ndarray) -> Part:
    return number, batch.take(pa.array(rows)), cast("Sequence[int]", rows)
