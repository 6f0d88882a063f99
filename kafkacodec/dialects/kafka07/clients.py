"""Common parts of the clients of Kafka 0.7."""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

from kafkacodec.client.lifecycle import made_at, warn_of
from kafkacodec.faces import names_statements

__all__ = ["Client", "Engine"]


class Engine(ABC):
    """Does the work of a client, without a reference to the client, which may be garbage-collected."""

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        self.closed = False

    @abstractmethod
    async def close(self) -> None:
        """End it; twice does nothing."""

    def close_soon(self) -> None:
        """As `close`, from any thread, if it was used."""
        if self.loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self.loop.call_soon_threadsafe(lambda: _closing.append(asyncio.ensure_future(self._close())))

    async def _close(self) -> None:
        try:
            await self.close()
        finally:
            _closing.remove(asyncio.current_task())


_closing: list[asyncio.Task[None] | None] = []  # tasks need a reference


@names_statements
class Client:
    """The base class of clients for asyncio. A client that is garbage-collected without `close` warns and ends its
    engine.

    Args:
        engine: does the work.
        name: its servers, for `repr`.
    """

    def __init__(self, engine: Engine, name: str) -> None:
        self._engine, self._name = engine, name
        self._made: tuple[str, int] | None = made_at()  # None inside a blocking client
        self._made_in: tuple[str, int] | None = None  # then the place of its creation

    def __repr__(self) -> str:
        return f"<kafka07.aio.{type(self).__name__}: {self._name}>"

    def __del__(self) -> None:
        engine = getattr(self, "_engine", None)
        if engine is None or engine.closed or engine.loop is None:
            return
        engine.close_soon()
        if self._made is not None:
            warn_of(self, self._made)

    async def close(self) -> None:
        """Close the client. Closing twice does nothing."""
        await self._engine.close()

    async def _close_dropped(self) -> None:
        """Close the client although the application has dropped it."""
        await self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
