"""Which partition a key belongs to: Kafka's default partitioner over whole columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from kafkacodec.arrow._reader import ArrowReader
from kafkacodec.errors import EncodeError
from kafkacodec.records._partitioner import arrow_partitions, list_partitions, murmur2
from kafkacodec.records.arguments import one_of, require_int

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["murmur2", "partition"]


def partition(
    keys: Any,
    num_partitions: int,
    *,
    null_keys: Literal["error", "round_robin", "random"] = "error",
    seed: int | None = None,
) -> npt.NDArray[np.int32]:
    """The partition that Kafka's default partitioner gives every key: ``toPositive(murmur2(key)) % num_partitions``.

    For semantic partitioning hash another column than the key, say ``kc.partition(table["user_id"], 12)``: all rows of
    one user then share a partition, whatever their keys are.

    Args:
        keys: a column with the Arrow interface (pyarrow array or chunked array, polars series, ...), of bytes or text
            in any layout that `encode` takes, or a list of bytes, text and None. Text is hashed as UTF-8; int64 and
            int32 in the bytes that Kafka's LongSerializer and IntegerSerializer make of them.
        num_partitions: how many partitions the topic has.
        null_keys: what becomes of rows without a key. Kafka's own client spreads them over the partitions that have
            room ("sticky"), which only a client can know. "error" refuses them; "round_robin" deals them out in turn
            from partition 0 on; "random" draws a partition for each.
        seed: makes "random" repeatable.

    Returns:
        int32 array, one partition for every key.

    Raises:
        EncodeError: a key that is null and must not be, or that is neither bytes, text nor an integer; `path` names
            its row.
        TypeError: `keys` is neither a list nor an Arrow column of such a type; an argument is of another type.
        ValueError: an argument is wrong, or the Arrow data is damaged or used up.
    """
    require_int("num_partitions", num_partitions, 1, 2**31 - 1)
    one_of("null_keys", null_keys, ("error", "round_robin", "random"))
    result, num_nulls = _partitions(keys, num_partitions)
    if not num_nulls:
        return result
    (nulls,) = np.nonzero(result < 0)
    if null_keys == "error":
        raise EncodeError("null key; set null_keys to assign such rows", path=f"keys[{nulls[0]}]")
    if null_keys == "round_robin":
        result[nulls] = np.arange(len(nulls)) % num_partitions
    else:
        result[nulls] = np.random.default_rng(seed).integers(0, num_partitions, len(nulls), np.int32)
    return result


def _partitions(keys: Any, num_partitions: int) -> tuple[npt.NDArray[np.int32], int]:
    """With -1 for null keys, and how many of those there are."""
    if isinstance(keys, (list, tuple)):
        result = np.empty(len(keys), np.int32)
        return result, list_partitions(list(keys), num_partitions, result)
    arrays = list(ArrowReader(keys))
    result = np.empty(sum(map(len, arrays)), np.int32)
    row = num_nulls = 0
    for array in arrays:
        num_nulls += arrow_partitions(array, num_partitions, result[row : row + len(array)], row)
        row += len(array)
    return result, num_nulls
