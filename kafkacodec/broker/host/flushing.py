"""Flushing logs to the disk, on one thread, all waiting requests at once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeAlias

__all__ = ["Flusher", "Flushes"]

Then: TypeAlias = Callable[[Exception | None], None]


class Flushes(Protocol):
    """Flushes logs."""

    def flushing(self, log: Any) -> Any:
        """Return the work that makes a log's current contents durable; another thread calls its `sync()`. Raises
        OSError.
        """

    def flushed(self, log: Any, flushing: Any) -> None:
        """Note that the work is done."""


class Flusher:
    """Flushes logs in groups: requests that arrive during a flush share the next one, once for each log.

    Args:
        loop: the loop that gets the outcomes.
        store: has the logs.

    Attributes:
        asked: the number of waiting requests for each log.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, store: Flushes) -> None:
        self._loop, self._store = loop, store
        self._thread: ThreadPoolExecutor | None = None
        self._waiting: list[tuple[tuple[Hashable, ...], Then]] = []
        self.asked: Counter[Hashable] = Counter()
        self._running = False
        self._idle: asyncio.Future[None] | None = None

    def flush(self, logs: Iterable[Hashable], then: Then) -> None:
        """Flush logs, then call `then` in the loop with the error, or None."""
        names = tuple(logs)
        self.asked.update(names)
        self._waiting.append((names, then))
        if not self._running:
            self._begin()

    async def close(self) -> None:
        """Wait for the requested flushes, and end the thread."""
        if self._running:
            self._idle = self._loop.create_future()
            await self._idle
        if self._thread is not None:
            self._thread.shutdown(wait=True)

    def _begin(self) -> None:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "kafkacodec-broker-disk")
        self._running = True
        group, self._waiting = self._waiting, []
        flushings: dict[Hashable, Any] = {}
        failed: dict[Hashable, Exception] = {}
        for log in dict.fromkeys(log for names, _ in group for log in names):
            try:
                flushings[log] = self._store.flushing(log)
            except Exception as error:
                failed[log] = error
        done = self._thread.submit(_sync_all, flushings, failed)
        done.add_done_callback(lambda _: self._loop.call_soon_threadsafe(self._flushed, group, flushings, failed))

    def _flushed(
        self, group: list[tuple[tuple[Hashable, ...], Then]], flushings: dict[Hashable, Any],
        failed: dict[Hashable, Exception],
    ) -> None:  # fmt: skip
        for log, flushing in flushings.items():
            if log not in failed:
                self._store.flushed(log, flushing)
        for logs, _ in group:
            self.asked -= Counter(logs)
        for logs, then in group:
            then(next((failed[log] for log in logs if log in failed), None))
        if self._waiting:
            self._begin()
        else:
            self._running = False
            if self._idle is not None:
                self._idle.set_result(None)


def _sync_all(flushings: dict[Hashable, Any], failed: dict[Hashable, Exception]) -> None:
    """Sync logs, and note failures. Runs in the thread."""
    for log, flushing in flushings.items():
        try:
            flushing.sync()
        except Exception as error:
            failed[log] = error
