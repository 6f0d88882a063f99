"""Calls of a store's client, in threads that do not delay the end of the process or Ctrl-C.

A client may wait minutes for a server that does not answer, and does not notice signals while it waits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

__all__ = ["Callers", "result_of"]

T = TypeVar("T")


def result_of(call: Callable[[], T], timeout: float | None = None) -> T:
    """The result of a call. Raises TimeoutError after a number of seconds, and then abandons the thread."""
    answer: Future[T] = Future()
    threading.Thread(target=_make, args=(call, answer), name="kafkacodec-call", daemon=True).start()
    try:
        return answer.result(timeout)
    finally:
        del answer  # its error refers to this frame


class Callers:
    """A few threads that make calls in the order in which they were asked for.

    Args:
        threads: their number.
    """

    def __init__(self, threads: int) -> None:
        self._calls: SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = SimpleQueue()
        for _ in range(threads):
            threading.Thread(target=self._work, name="kafkacodec-objects", daemon=True).start()

    def ask(self, call: Callable[[], T]) -> Future[T]:
        """Make a call as soon as a thread is free."""
        answer: Future[T] = Future()
        self._calls.put((call, answer))
        return answer

    def _work(self) -> None:
        while True:
            _make(*self._calls.get())


def _make(call: Callable[[], T], answer: Future[T]) -> None:
    if not answer.set_running_or_notify_cancel():
        return
    try:
        answer.set_result(call())
    except BaseException as error:
        answer.set_exception(error)
        del answer, call  # the error refers to this frame
