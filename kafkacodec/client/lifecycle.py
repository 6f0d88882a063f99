"""The base classes of the public clients: above all, closing clients that are dropped without `close`."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import warnings
import weakref
from collections.abc import Callable, Coroutine
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Concatenate, NoReturn, ParamSpec, Self, TypeVar

from kafkacodec.errors import ClientClosed
from kafkacodec.faces import names_statements
from kafkacodec.signatures import misuse

if TYPE_CHECKING:
    from types import FrameType

    from kafkacodec.client.driver.network import Network
    from kafkacodec.client.options import ClientSettings
    from kafkacodec.net.loop import LoopThread

__all__ = ["AsyncClient", "BlockingClient", "Closing", "Hold", "blocking", "owned", "shown"]

_log = logging.getLogger("kafkacodec.client")

P = ParamSpec("P")
R = TypeVar("R")


class Hold:
    """A network's weak reference to its client, so that a dropped client ends, unless a call waits in it.

    Also a context manager around such waits, since nothing else may refer to the waiting task.
    """

    def __init__(self, client: object) -> None:
        self._weak = weakref.ref(client)
        self._waiting: list[object] = []

    def calling(self, method: Callable[Concatenate[Any, P], R]) -> Callable[P, R | None]:
        """A function that calls a method of the client, or does nothing once the client is gone."""

        @wraps(method)
        def call(*arguments: P.args, **options: P.kwargs) -> R | None:
            client = self._waiting[0] if self._waiting else self._weak()
            return None if client is None else method(client, *arguments, **options)

        return call

    def keep(self, client: object) -> None:
        """Keep the client alive until both are collected together."""
        self._waiting.append(client)

    def __enter__(self) -> None:
        self._waiting.append(self._weak() or self._waiting[0])

    def __exit__(self, *exception: object) -> None:
        self._waiting.pop()


class Closing:
    """A context manager that closes itself."""

    def close(self) -> None:
        """Close it."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class _Uncopied:
    """Refuses copies: a client has a thread or event loop and sockets, which a dropped copy would close."""

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(f"this {type(self).__name__} cannot be copied or pickled: make another one")


class AsyncClient(_Uncopied):
    """The base class of asyncio clients. One dropped without `close` warns, and closes while its event loop runs.

    A subclass sets `_network` and defines `close`.
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        names_statements(cls)

    _network: Network | None
    _made: tuple[str, int] | None = None  # file and line; None inside a blocking client
    _made_in: tuple[str, int] | None = None  # the place where that was

    def _begin(self) -> None:
        self._network = None
        self._made = made_at()
        self._hold = Hold(self)

    def __del__(self) -> None:
        network = getattr(self, "_network", None)
        if network is None or network.closed or not network.is_own_process:
            return
        try:
            self._lose(network)
        finally:
            # From now on the object is referenced again, until it is closed.
            if self._made is not None and not sys.is_finalizing():
                with contextlib.suppress(RuntimeError):  # the loop is closed
                    network.loop.call_soon_threadsafe(_close_dropped, self)

    def _lose(self, network: Network) -> None:
        """Warn about the consequences of dropping the client."""
        if self._made is not None:
            warn_of(self, self._made)

    async def close(self) -> None:
        """Close the client."""
        raise NotImplementedError

    def _abort(self, network: Network) -> None:
        """Close the client at once, as the event loop ends."""
        network.abort()

    async def _close_dropped(self) -> None:
        """Close the client although the application has dropped it."""
        self._hold.keep(self)
        await self.close()


_closing: set[asyncio.Task[None]] = set()


def _close_dropped(client: AsyncClient) -> None:
    client._hold.keep(client)  # weak references to it may be cleared already
    network = client._network
    assert network is not None
    if network.stopped:
        client._abort(network)
        return
    task = network.start(client._close_dropped())
    _closing.add(task)
    task.add_done_callback(lambda task: _closed(client, task))


def _closed(client: AsyncClient, task: asyncio.Task[None]) -> None:
    _closing.discard(task)
    network = client._network
    if network is not None and not network.closed:  # the task was cancelled before it started
        client._abort(network)
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("a client without close() could not be closed properly", exc_info=error)


class BlockingClient(_Uncopied, Closing):
    """The base class of blocking clients, which run an asyncio client in a private loop thread.

    A subclass sets both attributes. Methods made by `blocking` may be called from any thread, and from several at
    once. A client dropped without `close` warns, and closes in its thread.
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        names_statements(cls)

    _thread: LoopThread
    _face: Any

    def __repr__(self) -> str:
        return repr(self._face).replace("aio.", "", 1)

    def __del__(self) -> None:
        thread = getattr(self, "_thread", None)
        if thread is None or thread.ends:
            return
        try:
            warn_of(self, self._face._made_in)
        finally:
            if not sys.is_finalizing():
                with contextlib.suppress(ClientClosed):
                    thread.soon(thread.end, self._face._close_dropped)

    def close(self) -> None:
        """Close all connections and end the client's thread. Closing twice does nothing.

        In a callback in the client's own thread, it returns at once and the client closes afterwards.
        """
        self._thread.end(self._face.close)


F = TypeVar("F", bound=AsyncClient)


def owned(client: F) -> F:
    """Mark an asyncio client as run and closed by a blocking one."""
    client._made_in, client._made = client._made, None
    return client


def made_at() -> tuple[str, int]:
    """The file and line of the application's current call of this package."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and str(frame.f_globals.get("__name__")).startswith("kafkacodec."):
        frame = frame.f_back
    return ("<unknown>", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)


def warn_of(client: object, made: tuple[str, int] | None) -> None:
    """Warn about a dropped client, naming the line that created it."""
    file, line = made or ("<unknown>", 0)
    text = f"{client!r} was not closed; it was created at {file}:{line}"
    warnings.warn_explicit(text, ResourceWarning, file, line, source=client)


def shown(client: object, settings: ClientSettings, *, closed: bool) -> str:
    """The `repr` of an asyncio client, without secrets."""
    group = getattr(settings, "group_id", None)
    of = f"{', '.join(settings.bootstrap_servers)}{'' if group is None else f', group {group!r}'}"
    return f"<aio.{type(client).__name__}: {of}, {'closed' if closed else 'open'}>"


def blocking(method: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]) -> Callable[Concatenate[Any, P], R]:
    """The blocking version of a coroutine method: runs it in the client's loop and waits for it."""

    @wraps(method)
    def call(self: Any, /, *args: P.args, **options: P.kwargs) -> R:
        try:
            found: R = self._thread.run(partial(method, self._face, *args, **options))
        except TypeError:
            wrong = misuse(method, (self._face, *args), options)
            if wrong is not None:
                raise TypeError(wrong) from None
            raise
        return found

    call.__qualname__ = method.__name__
    return call
