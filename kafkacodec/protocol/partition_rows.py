"""The rows of an Arrow table by topic and partition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kafkacodec.datatypes import NamedTuple
from kafkacodec.errors import EncodeError
from kafkacodec.lazy import import_extra
from kafkacodec.records._record_chunks import refuse_unknown_columns

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["PartitionRows", "RowGroup", "column_without_nulls", "groups_of_batch", "rows_by_partition"]


class PartitionRows(NamedTuple):
    """The rows of a partition: their numbers in the table, and Arrow batches of them."""

    topic: str
    partition: int
    rows: npt.NDArray[np.int64]
    chunks: list[Any]


class RowGroup(NamedTuple):
    """A group of rows of a record batch: the number of the group, the row numbers, and a batch of the rows."""

    number: int
    rows: npt.NDArray[np.int64]
    batch: Any


def rows_by_partition(records: Any, names: Sequence[str]) -> list[PartitionRows]:
    """The rows of each partition, with the columns of `names` that exist; the table needs key or value, or both.

    Topics are in the order of their first rows, partitions by number.

    Raises:
        EncodeError: a column is missing, unknown or of the wrong type; a topic or partition is null, or a partition
            negative.
        TypeError: `records` is not an Arrow table.
    """
    if not (hasattr(records, "__arrow_c_stream__") or hasattr(records, "__arrow_c_array__")):
        raise TypeError(f"records must be an Arrow table, not {type(records).__name__}")
    table = import_extra("pyarrow").table(records)
    topics, topic_numbers = _topics(table)
    keys, numbers = np.unique(topic_numbers << 32 | _partitions(table), return_inverse=True)
    numbers = numbers.reshape(-1)
    refuse_unknown_columns(table.column_names, (*names, "topic", "partition"))
    columns = [name for name in names if name in table.column_names]
    if not {"key", "value"} & {*columns}:
        raise EncodeError("the table has neither a column key nor a column value", path="records")
    chunks = _chunks_of_groups(table.select(columns), numbers, len(keys))
    rows = np.split(np.argsort(numbers, kind="stable"), np.cumsum(np.bincount(numbers, minlength=len(keys)))[:-1])
    # Without rows, np.split returns one empty array.
    return [
        PartitionRows(topics[key >> 32], key & 0xFFFFFFFF, own, parts)
        for key, own, parts in zip(keys.tolist(), rows, chunks, strict=False)
    ]


def _topics(table: Any) -> tuple[list[str], npt.NDArray[np.int64]]:
    """The topics in the order of their first rows, and the number of each row's topic."""
    pa = import_extra("pyarrow")
    encoded = column_without_nulls(table, "topic", pa.large_string()).combine_chunks().dictionary_encode()
    return encoded.dictionary.to_pylist(), encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)


def _partitions(table: Any) -> npt.NDArray[np.int64]:
    partitions: npt.NDArray[np.int64]
    partitions = column_without_nulls(table, "partition", import_extra("pyarrow").int32()).to_numpy().astype(np.int64)
    (negative,) = np.nonzero(partitions < 0)
    if len(negative):
        raise EncodeError("a partition is negative", path=f"records[{negative[0]}].partition")
    return partitions


def column_without_nulls(table: Any, name: str, kind: Any) -> Any:
    """A column without nulls, as another type."""
    pa = import_extra("pyarrow")
    if table.column_names.count(name) != 1:
        raise EncodeError(f"the table needs one column {name!r}", path=f"records.{name}")
    column = table.column(name)
    if column.null_count:
        row = column.is_null().index(True).as_py()
        raise EncodeError(f"{name} is null", path=f"records[{row}].{name}")
    shown = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_integer(kind) != pa.types.is_integer(shown):
        raise EncodeError(f"the column must have the type {kind}, not {column.type}", path=f"records.{name}")
    try:
        return column.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise EncodeError(f"the column cannot be read as {kind}: {error}", path=f"records.{name}") from None


def _chunks_of_groups(table: Any, numbers: npt.NDArray[np.int64], count: int) -> list[list[Any]]:
    """The rows of each group in Arrow batches; a batch of the table is copied if its groups are mixed."""
    chunks: list[list[Any]] = [[] for _ in range(count)]
    start = 0
    for batch in table.to_batches():
        for group in groups_of_batch(batch, numbers[start : start + batch.num_rows]):
            chunks[group.number].append(group.batch)
        start += batch.num_rows
    return chunks


def groups_of_batch(batch: Any, numbers: npt.NDArray[Any]) -> Iterator[RowGroup]:
    """The rows of a record batch by group number, in their order; the batch is copied if groups are mixed.

    Needs pyarrow.
    """
    order = np.arange(len(numbers))
    if (numbers[1:] < numbers[:-1]).any():
        order = np.argsort(numbers, kind="stable")
        numbers, batch = numbers[order], batch.take(import_extra("pyarrow").array(order))
    (changes,) = np.nonzero(numbers[1:] != numbers[:-1])
    firsts = [0, *(changes + 1).tolist()] if len(numbers) else []
    for first, end in zip(firsts, [*firsts[1:], len(numbers)], strict=False):
        yield RowGroup(int(numbers[first]), order[first:end], batch.slice(first, end - first))
