"""The options of reading a log."""

from __future__ import annotations

from kafkacodec.arguments import IsolationLevel
from kafkacodec.log.order.continuity import Gaps
from kafkacodec.moments import Moment
from kafkacodec.records.plan import DecodeOptions

__all__ = ["ReadOptions"]


class ReadOptions(DecodeOptions, total=False):
    """The keyword options that `Partition.read` and `LogDirectory.read` share."""

    start_timestamp: Moment | None
    end_timestamp: Moment | None
    isolation_level: IsolationLevel
    gaps: Gaps
    max_rows: int
    max_bytes: int | None
    mapped: bool
    threads: int | None
