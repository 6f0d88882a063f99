"""Functions of the application that a loop thread waits for, called in the thread that uses the client."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from kafkacodec.errors import ClientClosed
from kafkacodec.net.loop import LoopThread

__all__ = ["CallbackThread"]

T = TypeVar("T")


class CallbackThread(LoopThread):
    """A loop thread whose coroutines may wait for functions that run in the user's thread.

    `run` and `end` call them while they wait. The user's thread calls `serve` at other times, when `event` is set.

    Attributes:
        event: set when there is something to do for the user's thread; others may set it too. The thread that reads
            clears it, and no other one.
        wanted: whether there may be such functions; otherwise waiting is simple.
    """

    def __init__(self, name: str) -> None:
        self.event = threading.Event()
        self.wanted = False
        self._calls: deque[tuple[Callable[[Any], object], Any, asyncio.Future[None]]] = deque()
        self._serving: list[int] = []  # the threads that call functions now
        self._running: list[threading.Event] = []  # of the threads that wait
        super().__init__(name)

    def ready(self) -> None:
        """Wake the user's thread, which clears `event` and then checks for work."""
        if not self.event.is_set():
            self.event.set()

    def call(self, function: Callable[[Any], object], argument: Any) -> asyncio.Future[None]:
        """Have a function called. For the loop's thread."""
        done: asyncio.Future[None] = self.loop.create_future()
        self._calls.append((function, argument, done))
        for event in (self.event, *self._running):
            event.set()
        return done

    def serve(self) -> None:
        """Call the waiting functions. Exceptions go to the coroutine, KeyboardInterrupt to the caller."""
        while True:
            try:
                function, argument, done = self._calls.popleft()
            except IndexError:  # another thread may have taken the last one
                return
            problem: Exception | None = None
            self._serving.append(threading.get_ident())
            try:
                function(argument)
            except Exception as error:
                problem = error
            finally:
                self._serving.remove(threading.get_ident())
                self._tell(done, problem)

    def _tell(self, done: asyncio.Future[None], problem: Exception | None) -> None:
        try:
            self.soon(_end, done, problem)
        except ClientClosed:  # the function has closed the client: nobody else gets its exception
            if problem is not None:
                raise problem from None

    def end(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """As `LoopThread.end`; but a function that is called while others end it, and wait for the function, does not
        wait for them."""
        if self._ending is None or threading.get_ident() not in self._serving:
            super().end(last)

    def _result(self, future: concurrent.futures.Future[T], timeout: float | None) -> T:
        """Wait for the loop; meanwhile call the functions that the loop waits for."""
        if not self.wanted or timeout is not None:
            return super()._result(future, timeout)
        event = threading.Event()
        future.add_done_callback(lambda future: event.set())
        self._running.append(event)
        try:
            while not future.done():
                event.clear()
                self.serve()
                if not future.done():
                    event.wait()
        finally:
            self._running.remove(event)
        return future.result()


def _end(done: asyncio.Future[None], problem: Exception | None) -> None:
    if done.done():
        return
    if problem is None:
        done.set_result(None)
    else:
        done.set_exception(problem)
