"""The options of reading a log."""

from __future__ import annotations

from kafkacodec.arguments import IsolationLevel
from kafkacodec.log.order.continuity import Gaps
from kafkacodec.moments import Moment
from kafkacodec.records.plan import DecodeOptions
from kafkacodec.signatures import describes_also

__all__ = ["ReadOptions"]


@describes_also(DecodeOptions)
class ReadOptions(DecodeOptions, total=False):
    """The keyword options that `Partition.read` and `LogDirectory.read` share.

    Keys:
        start_timestamp: start at the first record at or after this time (milliseconds or a datetime).
        end_timestamp: end before the first record at or after this time.
        isolation_level: ``"read_committed"`` leaves out aborted and open transactions; by default nothing is left out.
        gaps: ``"error"`` takes offsets missing between segments for damage, ``"accept"`` does not.
        max_rows: rows of a chunk at most.
        max_bytes: bytes of keys, values and headers after which a chunk ends. Default: 512 KiB, or 4 MiB for views.
        mapped: views point into the mapped file, not into a copy of a part of it.
        threads: how many threads share the work; None: one per processor.
    """

    start_timestamp: Moment | None
    end_timestamp: Moment | None
    isolation_level: IsolationLevel
    gaps: Gaps
    max_rows: int
    max_bytes: int | None
    mapped: bool
    threads: int | None
