"""Records and bytes by key, in bounded memory. Needs pyarrow.

Up to `MAX_KEYS` keys all are counted exactly. With more, the rarest ones are dropped as in the algorithm of Misra and
Gries (J. Misra, D. Gries, "Finding repeated elements", 1982; merged as in P. K. Agarwal et al., "Mergeable summaries",
2012): a count is then too small by at most a known number, and a key that is not in the table has at most that many.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kafkacodec.datatypes import dataclass
from kafkacodec.named_rows import NamedRows
from kafkacodec.shown import counted, repr_of
from kafkacodec.signatures import suggests_options

__all__ = ["KeyStatistics", "KeyUse"]

MAX_KEYS: Final = 200_000
"""The number of keys to count exactly."""

MAX_KEY_BYTES: Final = 64 << 20
"""The same as bytes of all keys."""

_PENDING_ROWS: Final = 1 << 19
_PENDING_BYTES: Final = 16 << 20


@dataclass(frozen=True)
class KeyUse:
    """The use of a key.

    Attributes:
        key (bytes): the key.
        records (int): the number of its records; up to `KeyStatistics.records_error` more if that is not 0.
        size_in_bytes (int): the bytes of their keys and values; likewise `KeyStatistics.bytes_error`.
    """

    key: bytes
    records: int
    size_in_bytes: int


class KeyStatistics:
    """Counts records and their bytes by key.

    Args:
        max_keys: the number of keys to count exactly; with more keys memory stays the same.
        max_key_bytes: likewise, the bytes of all keys.

    Attributes:
        keyless_records, keyless_bytes (int): those of records without a key.
        records_error, bytes_error (int): the largest error of a count, or of its bytes; 0: all are exact.
    """

    @suggests_options
    def __init__(self, *, max_keys: int = MAX_KEYS, max_key_bytes: int = MAX_KEY_BYTES) -> None:
        self.max_keys = max_keys
        self.max_key_bytes = max_key_bytes
        self.keyless_records = self.keyless_bytes = 0
        self.records_error = self.bytes_error = 0
        self._table: pa.Table = _SCHEMA.empty_table()
        self._pending: list[pa.Table] = []
        self._pending_rows = self._pending_bytes = self._most_keys = 0

    def __repr__(self) -> str:
        return repr_of(self, counted(self.num_keys, "key"), "exact" if self.exact else "counts are estimates")

    def add(self, keys: pa.Array, sizes: npt.NDArray[np.int64]) -> None:
        """Add records.

        Args:
            keys: a binary column, null for records without a key. It is not kept.
            sizes: the bytes of each record.
        """
        if keys.null_count:
            valid = keys.is_valid().to_numpy(zero_copy_only=False)
            self.keyless_records += keys.null_count
            self.keyless_bytes += int(sizes[~valid].sum())
            keys, sizes = keys.drop_null(), sizes[valid]
        if not len(keys):
            return
        rows = pa.table([keys, pa.array(np.ones(len(keys), np.int64)), pa.array(sizes)], schema=_SCHEMA)
        part = _grouped(rows)
        self._pending.append(part)
        self._pending_rows += part.num_rows
        self._pending_bytes += part.column("key").nbytes
        if self._pending_rows >= _PENDING_ROWS or self._pending_bytes >= _PENDING_BYTES:
            self._merge()

    @property
    def num_keys(self) -> int:
        """The number of different keys; if the counts are not exact, there are more."""
        self._merge()
        return self._most_keys

    @property
    def exact(self) -> bool:
        """Whether every key was counted."""
        self._merge()
        return not (self.records_error or self.bytes_error)

    def top(self, count: int, *, by: Literal["records", "bytes"] = "records") -> NamedRows[KeyUse]:
        """The keys with the most records, or with ``by="bytes"`` with the most bytes.

        Equal ones are ordered by the key. If the counts are not exact, keys that may have none are left out.
        """
        self._merge()
        order = [(by, "descending"), ("key", "ascending")]
        found = self._table if self.exact else self._table.filter(pc.field(by) > 0)
        rows = found.take(pc.select_k_unstable(found, k=count, sort_keys=order))
        columns = (rows.column(name).to_pylist() for name in _SCHEMA.names)
        return NamedRows((KeyUse(*row) for row in zip(*columns, strict=True)), KeyUse)

    def _merge(self) -> None:
        if not self._pending:
            return
        self._table = _grouped(pa.concat_tables([self._table, *self._pending]))
        self._pending, self._pending_rows, self._pending_bytes = [], 0, 0
        self._most_keys = max(self._most_keys, self._table.num_rows)
        if self._table.num_rows > self.max_keys or _key_bytes(self._table) > self.max_key_bytes:
            self._drop_rarest()

    def _drop_rarest(self) -> None:
        """Subtract the largest counts that are dropped from all, and keep what remains."""
        sizes = pc.binary_length(self._table.column("key")).to_numpy().astype(np.int64)
        columns = {}
        for name in ("records", "bytes"):
            values = self._table.column(name).to_numpy()
            order = np.argsort(-values, kind="stable")
            kept = int(np.searchsorted(np.cumsum(sizes[order]), self.max_key_bytes // 2, side="right"))
            dropped = order[min(kept, self.max_keys // 2) :]
            error = int(values[dropped].max(initial=0))
            columns[name] = np.maximum(values - error, 0)
            setattr(self, f"{name}_error", getattr(self, f"{name}_error") + error)
        kept_rows = np.flatnonzero((columns["records"] > 0) | (columns["bytes"] > 0))
        keys = self._table.column("key").take(pa.array(kept_rows))
        self._table = pa.table(
            [keys, *(pa.array(columns[name][kept_rows]) for name in ("records", "bytes"))], schema=_SCHEMA
        )


# large_binary would be five times as slow: Arrow's fast grouping does not support it.
_SCHEMA = pa.schema({"key": pa.binary(), "records": pa.int64(), "bytes": pa.int64()})


def _grouped(rows: pa.Table) -> pa.Table:
    sums: Any = rows.group_by("key", use_threads=False).aggregate([("records", "sum"), ("bytes", "sum")])
    return pa.table([sums.column("key"), sums.column("records_sum"), sums.column("bytes_sum")], schema=_SCHEMA)


def _key_bytes(table: pa.Table) -> int:
    return int(pc.sum(pc.binary_length(table.column("key"))).as_py() or 0)
