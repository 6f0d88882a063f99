"""Threads that make calls, and the results of the calls."""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

__all__ = ["Job", "Workers"]

T = TypeVar("T")


class Workers:
    """Threads that make calls, including the thread that takes the results.

    Args:
        threads: their number, including the caller's. Threads are started when there are calls for them.
    """

    def __init__(self, threads: int) -> None:
        self._process = os.getpid()
        self._jobs: SimpleQueue[Job[Any] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._most = threads - 1
        weakref.finalize(self, self._jobs.put, None).atexit = False  # where `close` was interrupted
        _open_workers.add(self)

    def start(self, call: Callable[[], T]) -> Job[T]:
        """Queue a call for the next idle thread."""
        job = Job(call)
        self._jobs.put(job)
        if len(self._threads) < self._most:
            thread = threading.Thread(target=_work, args=(self._jobs,), name="kafkacodec", daemon=True)
            try:
                thread.start()
                self._threads.append(thread)
            except RuntimeError:  # no more threads can be started: the others make the calls
                self._most = len(self._threads)
        return job

    def result(self, wanted: Job[T], others: Iterator[Job[T]]) -> T:
        """The result of a job. Until it is done, this thread runs jobs that no other thread has started.

        Raises:
            RuntimeError: this process is a fork of the one that has the threads.
        """
        if os.getpid() != self._process:
            raise RuntimeError("a forked process has no threads of this iterator: create it after the fork")
        if not wanted.run():
            while not wanted.done and any(job.run() for job in others):
                pass
        return wanted.result()

    def close(self) -> None:
        """End the threads and wait for them. Calls that were not started are dropped."""
        if os.getpid() != self._process:
            return
        self._most = 0
        with suppress(Empty):
            while True:
                self._jobs.get_nowait()
        self._jobs.put(None)
        # The garbage collector may call this in any thread; a thread cannot wait for itself.
        if threading.current_thread() not in self._threads:
            for thread in self._threads:
                thread.join()


class Job(Generic[T]):
    """A call that the first available thread makes."""

    __slots__ = ("_call", "_claim", "_done", "_error", "_value")

    def __init__(self, call: Callable[[], T]) -> None:
        self._call: Callable[[], T] | None = call
        self._claim = threading.Lock()
        self._done = threading.Lock()
        self._done.acquire()
        self._error: BaseException | None = None

    def run(self) -> bool:
        """Make the call, unless another thread has started it."""
        if not self._claim.acquire(blocking=False):
            return False
        call, self._call = self._call, None
        assert call is not None
        try:
            self._value = call()
        except BaseException as error:
            self._error = error
            if not isinstance(error, Exception):
                raise
        finally:
            self._done.release()
        return True

    @property
    def done(self) -> bool:
        """Whether `result` returns without waiting."""
        return not self._done.locked()

    def result(self) -> T:
        """Wait for the call; return its result or raise its exception. Must be called only once."""
        self._done.acquire()
        error, self._error = self._error, None
        if error is not None:
            try:
                raise error
            finally:
                del error
        return self._value


def _work(jobs: SimpleQueue[Job[Any] | None]) -> None:
    while (job := jobs.get()) is not None:
        job.run()
        del job  # and with it the buffers that it reads from
    jobs.put(None)  # for the next thread, which `close` may not know of if it was interrupted


_open_workers: weakref.WeakSet[Workers] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """Ends the threads of iterators that still exist when the interpreter exits."""
    for workers in list(_open_workers):
        workers.close()
