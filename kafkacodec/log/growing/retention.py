"""Retention of segments of a growing log: by the log's start, its size, and the time of its records."""

from __future__ import annotations

import os
from collections.abc import Sequence

from kafkacodec.log.growing.disk import Disk
from kafkacodec.log.growing.segment import GrowingSegment
from kafkacodec.log.growing.settings import LogConfig

__all__ = ["SetAside", "num_expired"]


class SetAside:
    """Former files of a log, for later removal.

    Args:
        disk: removes them.
    """

    def __init__(self, disk: Disk) -> None:
        self._disk, self._files = disk, list[tuple[int, str]]()

    def add(self, due: int, paths: Sequence[str]) -> None:
        """Files to be removed at a time, in ms since 1970."""
        self._files += [(due, path) for path in paths]

    def purge(self, now: int | None) -> None:
        """Remove due files; all if the time is None. Raises OSError; the others stay listed."""
        while self._files and (now is None or self._files[0][0] <= now):
            self._disk.remove(self._files[0][1])
            del self._files[0]


def num_expired(segments: Sequence[GrowingSegment], start_offset: int, config: LogConfig, now: int) -> int:
    """Return the number of oldest segments to delete
    (`org.apache.kafka.storage.internals.log.UnifiedLog.deleteOldSegments`), never an empty segment at the end.

    Args:
        segments: all.
        start_offset: records before it count as deleted.
        config: the limits.
        now: the time in ms since 1970.
    """
    count = _before(segments, start_offset)
    if not config.delete:
        return count
    if config.retention_bytes >= 0:
        count = max(count, _over_size(segments[count:], config.retention_bytes) + count)
    if config.retention_ms >= 0:
        while count < len(segments) and _may_go(segments, count):
            segment = segments[count]
            newest = segment.max_timestamp if segment.max_timestamp >= 0 else _changed(segment.path)
            if now - newest <= config.retention_ms:
                break
            count += 1
    return count


def _before(segments: Sequence[GrowingSegment], start_offset: int) -> int:
    """Return the number of segments whose successor starts at or before the start of the log."""
    count = 0
    while count + 1 < len(segments) and segments[count + 1].base_offset <= start_offset:
        count += 1
    return count


def _over_size(segments: Sequence[GrowingSegment], most: int) -> int:
    """Return the number of segments beyond the size limit."""
    surplus, count = sum(segment.size for segment in segments) - most, 0
    while count < len(segments) and _may_go(segments, count) and surplus >= segments[count].size:
        surplus -= segments[count].size
        count += 1
    return count


def _may_go(segments: Sequence[GrowingSegment], i: int) -> bool:
    return i + 1 < len(segments) or segments[i].size > 0


def _changed(path: str) -> int:
    """Return the time of a file's last write, in ms since 1970: the time of a segment without timestamps."""
    return os.stat(path).st_mtime_ns // 1_000_000
