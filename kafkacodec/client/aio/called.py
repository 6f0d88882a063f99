"""A function of the application that a group calls and waits for. It may close its consumer, which then cannot wait for
it.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

__all__ = ["Called"]

_log = logging.getLogger("kafkacodec.client")
_running: ContextVar[Called | None] = ContextVar("kafkacodec_called", default=None)


class Called:
    """One call. Made in the event loop.

    Args:
        function: a function or coroutine function with one argument.
        owner: its caller.
    """

    def __init__(self, function: Callable[[Any], Any], owner: object) -> None:
        self._function, self._owner = function, owner
        self._left: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @staticmethod
    def here(owner: object) -> Called | None:
        """Return the call of this owner that the running code belongs to, in any thread or task; None outside."""
        found = _running.get()
        return found if found is not None and found._owner is owner else None

    def leave(self) -> None:
        """Stop waiting for it. For the loop's thread."""
        if not self._left.done():
            self._left.set_result(None)

    def __call__(self, argument: Any) -> Any:
        """Call the function, in the thread that it is to run in."""
        token = _running.set(self)
        try:
            return self._function(argument)
        finally:
            _running.reset(token)

    async def over(self, begin: Callable[[Callable[[Any], Any], Any], Any], argument: Any) -> None:
        """Wait for its end, or until its consumer leaves it.

        Args:
            begin: calls this object with `argument`; may return an awaitable.
            argument: the function's.

        Raises:
            The function's exception; RuntimeError for CancelledError and similar ones.
        """
        token = _running.set(self)
        try:
            result = begin(self, argument)
            if not inspect.isawaitable(result):
                return
            work: asyncio.Future[Any] = asyncio.ensure_future(result)  # a task has this context
        except (Exception, SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            raise self._explained(error) from error
        finally:
            _running.reset(token)
        await self._wait(work)

    async def _wait(self, work: asyncio.Future[Any]) -> None:
        try:
            await asyncio.wait({work, self._left}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            work.cancel()
            raise
        if not work.done():
            work.add_done_callback(_log_failure)
            return
        error = asyncio.CancelledError() if work.cancelled() else work.exception()
        if isinstance(error, (SystemExit, KeyboardInterrupt)):
            return  # the task has raised it in the loop
        if error is not None:
            raise error if isinstance(error, Exception) else self._explained(error) from error

    def _explained(self, error: BaseException) -> RuntimeError:
        return RuntimeError(
            f"{getattr(self._function, '__name__', 'a callback')} raised {type(error).__name__}: {error}"
        )


def _log_failure(work: asyncio.Future[Any]) -> None:
    if not work.cancelled() and (error := work.exception()) is not None:
        _log.error("a callback failed after its consumer had left the group", exc_info=error)
