"""Functions of the application that a loop thread waits for, called in the thread that uses the client."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from kafkacodec.errors import ClientClosed
from kafkacodec.net.loop import LoopCall, LoopThread

__all__ = ["CallbackThread"]

T = TypeVar("T")


class _Alarm:
    """Wakes one thread, at less cost than an Event. It goes off at once if it was set before the wait."""

    def __init__(self) -> None:
        self._unset = threading.Lock()
        self._unset.acquire()

    def set(self) -> None:
        """Wake the thread. For any other one."""
        if self._unset.locked():
            with suppress(RuntimeError):  # another thread has set it at this moment
                self._unset.release()

    def wait(self) -> None:
        """Wait until it is set; afterwards it is not."""
        self._unset.acquire()


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
        self._waiting: list[_Alarm] = []  # of the threads that wait
        super().__init__(name)

    def ready(self) -> None:
        """Wake the user's thread, which clears `event` and then checks for work."""
        if not self.event.is_set():
            self.event.set()

    def call(self, function: Callable[[Any], object], argument: Any) -> asyncio.Future[None]:
        """Have a function called. For the loop's thread."""
        done: asyncio.Future[None] = self.loop.create_future()
        self._calls.append((function, argument, done))
        self.event.set()
        for alarm in self._waiting:
            alarm.set()
        return done

    def serve(self) -> None:
        """Call the waiting functions. Exceptions go to the coroutine, KeyboardInterrupt to the caller."""
        while self._calls:
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

    def _result(self, call: LoopCall[T], timeout: float | None) -> T:
        """Wait for the loop; meanwhile call the functions that the loop waits for."""
        if not self.wanted or timeout is not None:
            return super()._result(call, timeout)
        alarm = _Alarm()
        call.told = alarm.set
        self._waiting.append(alarm)
        try:
            while not call.done:
                self.serve()
                if not call.done:
                    alarm.wait()
        finally:
            self._waiting.remove(alarm)
        return call.result(None)


def _end(done: asyncio.Future[None], problem: Exception | None) -> None:
    if done.done():
        return
    if problem is None:
        done.set_result(None)
    else:
        done.set_exception(problem)
