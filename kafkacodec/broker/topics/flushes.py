"""Flushes that no request waits for: with ``flush.ms``, and of rolled segments."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from kafkacodec.net.timers import Alarm

if TYPE_CHECKING:
    from kafkacodec.broker.topics.compaction import Background
    from kafkacodec.broker.topics.partition import Flush as Flushed, Partition
    from kafkacodec.log.growing.directory import GrowingDirectory

__all__ = ["Flush", "RolledFlushes", "TimedFlushes"]

_log = logging.getLogger("kafkacodec.broker")
_LEAST_MS: Final = 10
_NEVER: Final = (1 << 63) - 1

Flush: TypeAlias = Callable[[Iterable[tuple[str, int]], Callable[[Exception | None], None]], None]
"""Flushes logs by topic and number, then passes the error, or None."""


class TimedFlushes:
    """Flushes each log with ``flush.ms`` at that interval, if it has unflushed records.

    Args:
        alarm: gets the deadlines.
    """

    def __init__(self, alarm: Alarm) -> None:
        self._alarm = alarm
        self.flush: Flush | None = None
        self._last: dict[Partition, float] = {}
        self._next: float | None = None

    def watch(self, partition: Partition) -> None:
        """Take a partition, or its new configuration."""
        if partition.config.flush_ms == _NEVER:
            self._last.pop(partition, None)
        else:
            self._last.setdefault(partition, 0.0)
            self._next = 0.0
            self._alarm.ring()

    def forget(self, partition: Partition) -> None:
        """The partition is deleted."""
        self._last.pop(partition, None)

    def due(self, now: float) -> None:
        """Flush the logs that are due."""
        if self._next is None or now < self._next:
            return
        for partition, last in self._last.items():
            if now >= last + _period(partition):
                self._last[partition] = now
                if self.flush is not None and partition.log.recovery_point < partition.log.end_offset:
                    self.flush([partition.key], partial(_told, partition))
        self._next = min((last + _period(partition) for partition, last in self._last.items()), default=None)

    def next_deadline(self) -> float | None:
        """Return when `due` has something to do."""
        return self._next


class RolledFlushes:
    """Flushes rolled segments on the thread beside the requests, so that a start after a crash reads only the others.

    Args:
        directory: keeps the flushed end of each log.
        partitions: all, by topic and number.
        background: the thread.
    """

    def __init__(
        self, directory: GrowingDirectory, partitions: Mapping[tuple[str, int], Partition], background: Background
    ) -> None:
        self._directory, self._partitions, self._background = directory, partitions, background
        self._running: set[Partition] = set()

    def appended(self, partition: Partition) -> None:
        """Note an append to a partition with rolled segments that are not flushed."""
        if partition in self._running or partition.failed:
            return
        try:
            flush = partition.flushing()
        except OSError as error:
            _told(partition, error)
            return
        self._running.add(partition)
        self._background.run(flush.sync, lambda _, error: self._done(flush, error))

    def _done(self, flush: Flushed, error: Exception | None) -> None:
        partition = flush.partition
        self._running.discard(partition)
        try:
            if error is not None:
                raise error
            if self._partitions.get(partition.key) is partition:
                partition.flushed(flush)
                self._directory.note_flushed(*partition.key)
                if partition.log.has_sealed_unflushed:  # more was rolled meanwhile
                    self.appended(partition)
        except Exception as failure:
            _told(partition, failure)


def _period(partition: Partition) -> int:
    return max(partition.config.flush_ms, _LEAST_MS)


def _told(partition: Partition, error: Exception | None) -> None:
    if error is not None:
        _log.error("%s-%d cannot be flushed", *partition.key, exc_info=error)
