"""Long work on a thread beside the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

__all__ = ["Background"]


class Background:
    """Does one piece of work after the other on a thread, which starts at first use.

    Args:
        loop: the loop that gets the outcomes.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._thread: ThreadPoolExecutor | None = None
        self._closed = False

    def run(self, work: Callable[[], Any], then: Callable[[Any, Exception | None], None]) -> None:
        """Do something on the thread, then call `then` in the loop with its result, or the error."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "kafkacodec-broker-background")

        def done(future: Future[Any]) -> None:
            if not self._closed:
                self._loop.call_soon_threadsafe(self._done, future, then)

        self._thread.submit(work).add_done_callback(done)

    def close(self) -> None:
        """Wait for the running work, and end the thread; its outcome is dropped."""
        self._closed = True
        if self._thread is not None:
            self._thread.shutdown(wait=True, cancel_futures=True)

    def _done(self, future: Future[Any], then: Callable[[Any, Exception | None], None]) -> None:
        if self._closed:
            return
        error = future.exception()
        if error is None:
            then(future.result(), None)
        elif isinstance(error, Exception):
            then(None, error)
