"""What the clients that users see have in common."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

if TYPE_CHECKING:
    from kafkacodec.client.driver.thread import LoopThread
    from kafkacodec.client.options import ClientSettings

__all__ = ["BlockingFace", "blocking", "shown"]

P = ParamSpec("P")
R = TypeVar("R")


class BlockingFace:
    """A client that runs one for asyncio in a private loop thread.

    A subclass sets both attributes. Methods made by `blocking` may be called by any thread, and from several at once.
    """

    _thread: LoopThread
    _face: Any

    def __repr__(self) -> str:
        return repr(self._face).replace(".aio", "", 1)

    def close(self) -> None:
        """Close all connections and end the client's thread. Does nothing the second time.

        In a callback in the client's own thread it returns at once, and the client closes then.
        """
        self._thread.end(self._face.close)


def shown(client: object, settings: ClientSettings, *, closed: bool) -> str:
    """What `repr` shows of a client for asyncio: no secrets."""
    group = getattr(settings, "group_id", None)
    of = f"{', '.join(settings.bootstrap_servers)}{'' if group is None else f', group {group!r}'}"
    return f"<kafkacodec.client.aio.{type(client).__name__} of {of}, {'closed' if closed else 'open'}>"


def blocking(method: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]) -> Callable[Concatenate[Any, P], R]:
    """The method of a blocking face that runs this coroutine method of the client for asyncio, and waits for it."""

    @wraps(method)
    def call(self: Any, /, *args: P.args, **options: P.kwargs) -> R:
        found: R = self._thread.run(method(self._face, *args, **options))
        return found

    call.__signature__ = inspect.signature(method)  # type: ignore[attr-defined]
    call.__qualname__ = method.__name__
    return call
