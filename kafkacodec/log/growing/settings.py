"""Settings of a growing log."""

from __future__ import annotations

import time

from kafkacodec.datatypes import dataclass

__all__ = ["DAY_MS", "LogConfig", "now_ms"]

DAY_MS = 24 * 60 * 60 * 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class LogConfig:
    """The configuration of a topic that its log uses, with a broker's names and defaults.

    Attributes:
        segment_bytes (int): a segment ends before it would be larger than this.
        segment_ms (int): a segment ends before a batch that is this much later than its first one.
        segment_index_bytes (int): the largest size of an index file.
        index_interval_bytes (int): an index entry is added after this number of bytes.
        retention_bytes (int): delete the oldest segments while the log is larger than this without them; -1: no limit.
        retention_ms (int): delete segments whose records are older than this; -1: no limit.
        delete (bool): `cleanup.policy` has ``delete``: both limits apply.
        file_delete_delay_ms (int): how long a deleted segment's files stay under another name.
        compact (bool): `cleanup.policy` has ``compact``: the cleaner keeps the newest record of each key.
        min_compaction_lag_ms (int): segments with younger records are not cleaned.
        delete_retention_ms (int): how long tombstones and markers stay after they were first cleaned.
        producer_id_expiration_ms (int): producers are forgotten when they have not written for this long.
    """

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * DAY_MS
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    retention_bytes: int = -1
    retention_ms: int = 7 * DAY_MS
    delete: bool = True
    file_delete_delay_ms: int = 60_000
    compact: bool = False
    min_compaction_lag_ms: int = 0
    delete_retention_ms: int = DAY_MS
    producer_id_expiration_ms: int = DAY_MS


def now_ms() -> int:
    """The time, in ms since 1970."""
    return time.time_ns() // 1_000_000
