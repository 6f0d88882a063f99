"""The schedule of cleaning compacted logs.

It follows `org.apache.kafka.storage.internals.log.LogCleanerManager`: the log with the largest dirty part, if that is
larger than ``min.cleanable.dirty.ratio``, or older than ``max.compaction.lag.ms``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from kafkacodec.log.growing.cleaner import Cleaning, dirt

if TYPE_CHECKING:
    from kafkacodec.broker.topics.partition import Partition
    from kafkacodec.log.growing.directory import GrowingDirectory

__all__ = ["Background", "Compaction"]

_log = logging.getLogger("kafkacodec.broker")


class Background(Protocol):
    """A thread beside the event loop."""

    def run(self, work: Callable[[], Any], then: Callable[[Any, Exception | None], None]) -> None:
        """Do something on the thread, then call `then` in the loop with its result, or the error."""


class Compaction:
    """Cleans one log at a time: long work on the thread, changes of the log in the loop.

    Args:
        directory: knows the ends of the last passes.
        partitions: all, by topic and number.
        background: the thread.
        every_ms: the interval of checks.
    """

    def __init__(
        self, directory: GrowingDirectory, partitions: Mapping[tuple[str, int], Partition], background: Background,
        every_ms: float,
    ) -> None:  # fmt: skip
        self._directory, self._partitions, self._background = directory, partitions, background
        self._every_ms = max(1, every_ms)
        self._next: float | None = None
        self._running: tuple[Partition, Cleaning] | None = None
        self._failed: set[Partition] = set()
        self._stopped = False

    def is_cleaning(self, partition: Partition) -> bool:
        """Whether a pass over this log runs; no segments may be removed meanwhile."""
        return self._running is not None and self._running[0] is partition

    def set_interval(self, every_ms: float) -> None:
        """Look for something to clean as often as this from now on, but not more than once a millisecond."""
        every_ms = max(1, every_ms)
        if self._next is not None:
            self._next += every_ms - self._every_ms
        self._every_ms = every_ms

    def due(self, now: float) -> None:
        """Start a pass if it is time."""
        if self._next is None or now >= self._next:
            if self._next is not None:
                self._begin(self._directory.now())
            self._next = now + self._every_ms

    def next_deadline(self) -> float | None:
        """Return when `due` has something to do."""
        return self._next

    def stop(self) -> None:
        """End the running pass soon, and start no other."""
        self._stopped = True
        if self._running is not None:
            self._running[1].stop()

    def _begin(self, now: int) -> None:
        if self._running is None and not self._stopped:
            partition = self._dirtiest(now)
            if partition is not None:
                self._running = partition, Cleaning(partition.log, self._start(partition), now)
                self._go_on(now)

    def _go_on(self, now: int) -> None:
        if self._running is not None:
            self._background.run(self._running[1].work, lambda found, error: self._worked(now, found, error))

    def _worked(self, now: int, found: bool, error: Exception | None) -> None:
        if self._running is None or self._stopped:
            return
        partition, cleaning = self._running
        deleted = self._partitions.get(partition.key) is not partition
        try:
            if error is not None:
                raise error
            if found and not deleted:
                cleaning.swap()
        except Exception:
            self._running = None
            if not deleted:
                self._failed.add(partition)
                _log.exception("%s-%d cannot be compacted, and will not be tried again", *partition.key)
            self._begin(now)
            return
        if found and not deleted:
            self._go_on(now)
        else:
            self._running = None
            if not deleted:
                self._ended(partition, cleaning)
            self._begin(now)

    def _ended(self, partition: Partition, cleaning: Cleaning) -> None:
        end, before, after = cleaning.result
        try:
            self._directory.note_cleaned(*partition.key, end)
        except OSError:
            _log.exception("the checkpoint of the compacted %s-%d cannot be written", *partition.key)
        _log.info("compacted %s-%d up to offset %d: from %d to %d bytes", *partition.key, end, before, after)

    def _dirtiest(self, now: int) -> Partition | None:
        """The log to clean now."""
        best, found = -1.0, None
        for partition in self._partitions.values():
            if partition.config.is_compacted and partition not in self._failed:
                ratio = self._ratio(partition, now)
                if ratio > best:
                    best, found = ratio, partition
        return found

    def _ratio(self, partition: Partition, now: int) -> float:
        """Return the dirty part of a log, 0 to 1; below 0 if it is too early to clean it."""
        clean_bytes, dirty_bytes, since = dirt(partition.log, self._start(partition), now)
        if not dirty_bytes:
            return -1
        ratio = dirty_bytes / (clean_bytes + dirty_bytes)
        late = 0 <= since < now - partition.config.max_compaction_lag_ms
        return ratio if late or ratio > partition.config.min_cleanable_dirty_ratio else -1

    def _start(self, partition: Partition) -> int:
        """Return the offset at which a pass continues; the log's start, if the checkpoint is outside the log."""
        log = partition.log
        start = self._directory.cleaned.get(partition.key, 0)
        return start if log.start_offset <= start <= log.end_offset else log.start_offset
