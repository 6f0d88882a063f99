"""Kafka's default partitioner for columns of keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from kafkacodec.arguments import one_of, require_int
from kafkacodec.arrow._reader import ArrowReader
from kafkacodec.errors import EncodeError
from kafkacodec.records._partitioner import arrow_partitions, list_partitions, murmur2
from kafkacodec.signatures import suggests_options

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["murmur2", "partition"]


@suggests_options
def partition(
    keys: Any,
    num_partitions: int,
    *,
    null_keys: Literal["error", "round_robin", "random"] = "error",
    first_partition: int = 0,
    seed: int | None = None,
) -> npt.NDArray[np.int32]:
    """The partition of each key by Kafka's default partitioner: ``toPositive(murmur2(key)) % num_partitions``.

    To keep rows together by something other than the key, pass that column: with ``kc.partition(table["user_id"], 12)``
    all rows of a user are in one partition.

    Args:
        keys: a column with the Arrow interface (pyarrow array or chunked array, polars series, ...) of binary or string
            in any layout that `encode` accepts, or of int64 or int32; or a list of bytes, str and None. Strings are
            hashed as UTF-8, integers as encoded by Kafka's LongSerializer and IntegerSerializer.
        num_partitions: number of partitions of the topic.
        null_keys: the partition of rows without a key. Kafka's client fills one partition at a time ("sticky"), which
            depends on its state. "error" raises; "round_robin" assigns partitions in turn; "random" picks a
            random partition for each row.
        first_partition: where "round_robin" starts: after a column with n null keys, the next one starts at
            ``(first_partition + n) % num_partitions``.
        seed: makes "random" repeatable.

    Returns:
        int32 array, one partition for each key.

    Raises:
        EncodeError: a key is null and ``null_keys="error"``, or is not bytes, str or None, or the Arrow array is
            inconsistent; `path` names the row.
        TypeError: `keys` is neither a list nor an Arrow column of a supported type, or an argument has a wrong type.
        ValueError: an argument is wrong, or the Arrow data is damaged or was already consumed.
    """
    require_int("num_partitions", num_partitions, 1, 2**31 - 1)
    one_of("null_keys", null_keys, ("error", "round_robin", "random"))
    require_int("first_partition", first_partition, 0, num_partitions - 1)
    result, num_nulls = _partitions(keys, num_partitions)
    if not num_nulls:
        return result
    (nulls,) = np.nonzero(result < 0)
    if null_keys == "error":
        raise EncodeError("null key; set null_keys to assign such rows", path=f"keys[{nulls[0]}]")
    if null_keys == "round_robin":
        result[nulls] = (first_partition + np.arange(len(nulls))) % num_partitions
    else:
        result[nulls] = np.random.default_rng(seed).integers(0, num_partitions, len(nulls), np.int32)
    return result


def _partitions(keys: Any, num_partitions: int) -> tuple[npt.NDArray[np.int32], int]:
    """The partitions, -1 for null keys, and the number of null keys."""
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
