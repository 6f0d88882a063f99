"""Injected faults: their arguments and their handle."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from kafkacodec import errors
from kafkacodec.arguments import is_number, limit, suggestion
from kafkacodec.broker.kafka.apis import TABLE
from kafkacodec.broker.kafka.faults import Rule
from kafkacodec.faces import names_statements
from kafkacodec.messages import APIS
from kafkacodec.shown import counted, repr_of

if TYPE_CHECKING:
    from kafkacodec.broker.kafka.request import Request

__all__ = ["AsyncInjection", "Injection", "new_rule"]


def new_rule(
    api: str, error: str | int | None, times: int | None, delay: float, drop: bool, close: bool, after: bool,
    when: Callable[[Request], bool] | None,
) -> Rule:  # fmt: skip
    """Make a rule from the arguments of `Broker.inject`. Raises ValueError."""
    named = {APIS[key].name: key for key in TABLE}
    if not isinstance(api, str):
        raise TypeError(f"api must be a name, such as 'Produce', not {api!r}")
    if not is_number(delay):
        raise TypeError(f"delay must be seconds, not {delay!r}")
    if api not in named:
        raise ValueError(f"api is {api!r}, which this broker does not serve: {suggestion(api, named, 'they')}")
    fates = (error is not None) + drop + close
    if fates > 1:
        raise ValueError("error, drop and close exclude one another")
    if not fates and not delay > 0:
        raise ValueError(f"inject({api!r}) has no effect: pass error, delay, drop or close")
    if drop and delay:
        raise ValueError("drop never answers, so delay has no effect: leave it out")
    if after and not fates:
        raise ValueError("after needs error, drop or close")
    if not delay >= 0:
        raise ValueError(f"delay is {delay}; it must not be negative")
    return Rule(
        named[api], None if error is None else _code(error), delay * 1000, drop, close, after,
        None if times is None else limit("times", times, 1), when,
    )  # fmt: skip


def _code(error: str | int) -> int:
    known = {cls.name: code for code, cls in errors.CODES.items() if code}
    code = known.get(error) if isinstance(error, str) else error
    if code is None:
        raise ValueError(f"error is {error!r}, which is not an error of Kafka: {suggestion(str(error), known, 'they')}")
    if code not in known.values():
        raise ValueError(f"error is {error}, which is not an error code of Kafka")
    return code


def _raise_failure(rule: Rule) -> None:
    if rule.failure is not None:
        raise rule.failure


@names_statements
class Injection:
    """An injected fault. As a context manager, it removes the rule at its end.

    Attributes:
        met (int): the number of requests that matched.
    """

    def __init__(self, rule: Rule, remove: Callable[[], None]) -> None:
        self.met = 0
        self._rule, self._remove = rule, remove
        self._changed = threading.Condition()
        rule.noticed = self._notice

    def __repr__(self) -> str:
        return repr_of(self, f"{counted(self.met, 'request')} met")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()
        if error is None:
            _raise_failure(self._rule)

    def remove(self) -> None:
        """Let it concern no further request. What it has dropped stays unanswered. Removing twice does nothing."""
        self._remove()

    def wait(self, times: int = 1, timeout: float | None = 60) -> None:
        """Wait until it has concerned so many requests.

        Args:
            times: how many, counted from the beginning.
            timeout: the limit in seconds; None for none.

        Raises:
            TimeoutError: it has not.
            Exception: what the function `when` has raised; so does the end of a ``with`` block.
        """
        with self._changed:
            over = self._changed.wait_for(lambda: self.met >= times or self._rule.failure is not None, timeout)
        _raise_failure(self._rule)
        if not over:
            raise TimeoutError(f"{self.met} of {times} requests came within {timeout} s")

    def _notice(self) -> None:
        with self._changed:
            self.met += self._rule.failure is None
            self._changed.notify_all()


@names_statements
class AsyncInjection:
    """As `Injection`, in an event loop. As an asynchronous context it is removed at the end.

    Attributes:
        met (int): the number of requests that matched.
    """

    def __init__(self, rule: Rule, remove: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self.met = 0
        self._rule, self._remove = rule, remove
        self._waiting: list[asyncio.Future[None]] = []
        rule.noticed = self._notice

    def __repr__(self) -> str:
        return repr_of(self, f"{counted(self.met, 'request')} met")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.remove()
        if error is None:
            _raise_failure(self._rule)

    async def remove(self) -> None:
        """As `Injection.remove`."""
        await self._remove()

    async def wait(self, times: int = 1, timeout: float | None = 60) -> None:
        """As `Injection.wait`."""
        async with asyncio.timeout(timeout):
            while self.met < times and self._rule.failure is None:
                future = asyncio.get_running_loop().create_future()
                self._waiting.append(future)
                await future
        _raise_failure(self._rule)

    def _notice(self) -> None:
        self.met += self._rule.failure is None
        for future in self._waiting:
            if not future.done():
                future.set_result(None)
        self._waiting.clear()
