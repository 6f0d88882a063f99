"""Functions of the application that a loop thread waits for, called in the thread that uses the client."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from kafkacodec.client.driver.thread import LoopThread

__all__ = ["CallbackThread"]

T = TypeVar("T")


class CallbackThread(LoopThread):
    """A loop thread whose coroutines may wait for functions that run in the user's thread.

    `run` calls them while it waits. The user's thread calls `serve` at other times, when `event` is set.

    Attributes:
        event: set when there is something to do for the user's thread; others may set it too. The thread that reads
            clears it, and no other one.
        wanted: whether there may be such functions; else `run` waits in the simplest way.
    """

    def __init__(self, name: str) -> None:
        self.event = threading.Event()
        self.wanted = False
        self._calls: deque[tuple[Callable[[Any], object], Any, asyncio.Future[None]]] = deque()
        self._running: list[threading.Event] = []  # of the threads in `run`
        super().__init__(name)

    def call(self, function: Callable[[Any], object], argument: Any) -> asyncio.Future[None]:
        """Have a function called. For the loop's thread."""
        done: asyncio.Future[None] = self.loop.create_future()
        self._calls.append((function, argument, done))
        for event in (self.event, *self._running):
            event.set()
        return done

    def serve(self) -> None:
        """Call the functions that wait for it. Exceptions go to the coroutine, KeyboardInterrupt to the caller."""
        while self._calls:
            function, argument, done = self._calls.popleft()
            problem: Exception | None = None
            try:
                function(argument)
            except Exception as error:
                problem = error
            finally:
                self.soon(_end, done, problem)

    def run(self, coroutine: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
        """As `LoopThread.run`; meanwhile it calls the functions that the loop waits for."""
        if not self.wanted or timeout is not None:
            return super().run(coroutine, timeout)
        event = threading.Event()
        try:
            task = super().run(self._begin(coroutine, event))
        except Exception:  # it was not begun
            coroutine.close()
            raise
        self._running.append(event)
        try:
            while not task.done():
                event.clear()
                self.serve()
                if not task.done():
                    event.wait()
        except BaseException:
            self.soon(task.cancel)
            raise
        finally:
            self._running.remove(event)
        return super().run(_result(task))

    async def _begin(self, coroutine: Coroutine[Any, Any, T], event: threading.Event) -> asyncio.Task[T]:
        task = asyncio.create_task(coroutine)
        task.add_done_callback(lambda task: event.set())
        return task


async def _result(task: asyncio.Task[T]) -> T:
    return await task


def _end(done: asyncio.Future[None], problem: Exception | None) -> None:
    if done.done():
        return
    if problem is None:
        done.set_result(None)
    else:
        done.set_exception(problem)
