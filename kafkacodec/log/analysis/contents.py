"""The contents of records: sizes, times, and the most frequent keys. Needs pyarrow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkacodec.datatypes import dataclass, field
from kafkacodec.log.analysis.histograms import SizeHistogram, TimeHistogram
from kafkacodec.log.analysis.key_statistics import MAX_KEYS, KeyStatistics, KeyUse
from kafkacodec.records.columns import RecordColumns
from kafkacodec.signatures import suggests_options

__all__ = ["CHUNK_BYTES", "CHUNK_ROWS", "COLUMNS", "RecordStatistics", "record_statistics"]

COLUMNS: Final = ("timestamp", "key", "value")
"""The required columns."""

CHUNK_ROWS: Final = 1 << 16
"""Rows of a chunk, and the bytes of its keys and values, at which counting keys is fastest."""
CHUNK_BYTES: Final = 8 << 20


@dataclass
class RecordStatistics:
    """The contents of a topic's records.

    Sizes count key and value before compression, in bytes, without headers.

    Attributes:
        num_records (int): the number of records.
        key_bytes, value_bytes (int): the bytes of all keys and of all values.
        tombstones (int): the number of records with a key and a null value, which make compaction delete a key.
        null_values (int): the number of records without a value, with a key or not.
        key_sizes, value_sizes (SizeHistogram): of non-null keys and values.
        times (TimeHistogram): records and bytes by time.
        keys (KeyStatistics): records and bytes by key.
    """

    num_records: int = 0
    key_bytes: int = 0
    value_bytes: int = 0
    tombstones: int = 0
    null_values: int = 0
    key_sizes: SizeHistogram = field(default_factory=SizeHistogram)
    value_sizes: SizeHistogram = field(default_factory=SizeHistogram)
    times: TimeHistogram = field(default_factory=TimeHistogram)
    keys: KeyStatistics = field(default_factory=KeyStatistics)

    def add(self, chunk: RecordColumns) -> None:
        """Add the records of a chunk with the columns `COLUMNS`, without keeping the chunk."""
        if not len(chunk):
            return
        rows = pa.record_batch(chunk)
        keys, values = rows.column("key"), rows.column("value")
        key_sizes, value_sizes = _sizes(keys, self.key_sizes), _sizes(values, self.value_sizes)
        sizes = key_sizes + value_sizes
        self.num_records += len(chunk)
        self.key_bytes += int(key_sizes.sum())
        self.value_bytes += int(value_sizes.sum())
        self.null_values += values.null_count
        if values.null_count:
            self.tombstones += pc.sum(pc.and_(keys.is_valid(), values.is_null())).as_py() or 0
        self.times.add(chunk["timestamp"], np.ones(len(chunk), np.int64), sizes)
        self.keys.add(keys, sizes)

    def to_dict(self, *, top: int = 10) -> dict[str, Any]:
        """Numbers, lists and dicts; keys are bytes. `top` is the number of keys in each list of keys."""

        def plain(keys: list[KeyUse]) -> list[dict[str, Any]]:
            return [vars(key) for key in keys]

        return {
            "num_records": self.num_records,
            "key_bytes": self.key_bytes,
            "value_bytes": self.value_bytes,
            "tombstones": self.tombstones,
            "null_values": self.null_values,
            "key_sizes": self.key_sizes.to_dict(),
            "value_sizes": self.value_sizes.to_dict(),
            "times": self.times.to_dict(),
            "keys": {
                "num_keys": self.keys.num_keys,
                "exact": self.keys.exact,
                "records_error": self.keys.records_error,
                "bytes_error": self.keys.bytes_error,
                "keyless_records": self.keys.keyless_records,
                "keyless_bytes": self.keys.keyless_bytes,
                "by_records": plain(self.keys.top(top)),
                "by_bytes": plain(self.keys.top(top, by="bytes")),
            },
        }


@suggests_options
def record_statistics(chunks: Iterable[RecordColumns], *, max_keys: int = MAX_KEYS) -> RecordStatistics:
    """Statistics of the records of one topic, in bounded memory.

    >>> import kafkacodec as kc
    >>> partition = kc.log.Partition("tests/data/kafka/logs/kraft-4.1.0/zstd-0")
    >>> found = kc.log.record_statistics(partition.read(columns=("timestamp", "key", "value")))
    >>> found.num_records == sum(len(chunk) for chunk in partition.read())
    True

    Args:
        chunks: records of one topic, with the columns ``timestamp``, ``key`` and ``value``, as `Partition.read` and
            `kafkacodec.iter_columns` return them.
        max_keys: the number of keys to count exactly; see `KeyStatistics`.

    Raises:
        KeyError: a column is missing.
        As `chunks`.
    """
    found = RecordStatistics(keys=KeyStatistics(max_keys=max_keys))
    for chunk in chunks:
        found.add(chunk)
    return found


def _sizes(column: pa.Array, histogram: SizeHistogram) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The size of each value, 0 for null; those that are not null are added to the histogram."""
    sizes = pc.binary_length(column)
    histogram.add(sizes.drop_null().to_numpy(zero_copy_only=False))
    found: np.ndarray[Any, np.dtype[np.int64]] = pc.fill_null(sizes, 0).to_numpy(zero_copy_only=False).astype(np.int64)
    return found
