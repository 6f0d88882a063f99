"""Questions that wait for another machine, such as a schema registry, and leave an event loop for a thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Hashable
from typing import ParamSpec, Self, TypeVar

__all__ = ["Question", "answering", "leave_loop"]

P = ParamSpec("P")
T = TypeVar("T")

_here = threading.local()


class Question(BaseException):
    """Ends a call that is to be made again, after `ask` was called with `arguments` in another thread.

    `ask` keeps the answer for it. It is no `Exception`, since functions of the application, through which it goes, may
    handle these.
    """

    def __init__(self, ask: Callable[..., object], arguments: tuple[Hashable, ...]) -> None:
        super().__init__("a question to another machine was asked on an event loop")
        self.ask, self.arguments = ask, arguments


class _OnLoop:
    """What is called in this block, in this thread, must not wait."""

    def __enter__(self) -> Self:
        _here.depth = getattr(_here, "depth", 0) + 1
        return self

    def __exit__(self, *exception: object) -> None:
        _here.depth -= 1


_on_loop = _OnLoop()


def leave_loop(ask: Callable[..., object], *arguments: Hashable) -> None:
    """Raise a `Question` in a call of `answering`; elsewhere, do nothing: the caller may wait."""
    if getattr(_here, "depth", 0):
        raise Question(ask, arguments)


async def answering(call: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
    """The result of a call on an event loop; its questions are asked in threads, and it is made again.

    Raises what the call raises, and what a question does.
    """
    while True:
        try:
            with _on_loop:
                return call(*arguments, **options)
        except Question as question:
            asked = _asked(question.ask, question.arguments)
        problem = await asked
        if problem is not None:
            raise problem


# Questions that are being asked, by loop, function and arguments: each has the future of its error, or of None.
_open: dict[tuple[Hashable, ...], asyncio.Future[Exception | None]] = {}


def _asked(ask: Callable[..., object], arguments: tuple[Hashable, ...]) -> Awaitable[Exception | None]:
    """The error of a question, or None. All who ask the same one on a loop wait for one thread.

    Cancelling the wait does not end the thread. It is none of asyncio's executor, for which the interpreter waits at
    exit.
    """
    loop = asyncio.get_running_loop()
    key = (loop, ask, *arguments)
    known = _open.get(key)
    if known is None:
        known = _open[key] = loop.create_future()

        def run() -> None:
            problem = None
            try:
                ask(*arguments)
            except Exception as error:
                problem = error
            try:
                loop.call_soon_threadsafe(_tell, key, problem)
            except RuntimeError:  # the loop is closed: nothing waits for the answer
                _open.pop(key, None)

        threading.Thread(target=run, name="kafkacodec question", daemon=True).start()
    return asyncio.shield(known)


def _tell(key: tuple[Hashable, ...], problem: Exception | None) -> None:
    known = _open.pop(key)
    if not known.done():
        known.set_result(problem)
