"""Starting and stopping listeners, in a fixed order."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Collection
from typing import TYPE_CHECKING

from kafkacodec.broker.host.limits import Limits, Load
from kafkacodec.broker.host.listener import Listener
from kafkacodec.net.notes import Notes

if TYPE_CHECKING:
    from kafkacodec.broker.host.arrivals import Arrivals
    from kafkacodec.broker.host.runner import Runner
    from kafkacodec.broker.host.sessions import Session
    from kafkacodec.net.service import Codec

__all__ = ["Host"]

_TURNS = 3  # of the loop, from accepting a connection to its session
_CLOSING_SECONDS = 0.01
"""How long a stop waits for clients to take their answers."""


class Host:
    """Listeners with common limits, in one event loop.

    Args:
        loop: the running event loop.
        limits: see `Limits`.

    Attributes:
        listeners: in the order of their start.
        closing: awaited at the end of `stop`.
        arrivals: limits the rates of new connections at listeners that start later.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.listeners: list[Listener] = []
        self.closing: list[Callable[[], Awaitable[None]]] = []
        self.arrivals: Arrivals | None = None
        self._loop = loop
        self._load = Load(self.limits.max_bytes_in_flight, Notes(loop.time))
        self._runners: dict[int, Runner] = {}
        self._idle: asyncio.Handle | None = None

    def traffic(self) -> tuple[int, int, int, int]:
        """Return the open connections; requests, bytes received and bytes sent since the start."""
        load = self._load
        return len(load.sessions), load.requests, load.received, load.sent

    async def listen(
        self, name: str, runner: Runner, codec: Callable[[], Codec], host: str, port: int,
        tls: ssl.SSLContext | None = None,
    ) -> Listener:  # fmt: skip
        """Accept connections at an address; port 0 takes a free one. Raises OSError."""
        listener = Listener(name, runner, codec, self.limits, self._load, self._loop, self.arrivals)
        await listener.start(host, port, tls)
        self.listeners.append(listener)
        self._runners[id(runner)] = runner
        if self._idle is None:
            self._set_idle()
        return listener

    async def end(self, listeners: Collection[Listener]) -> None:
        """Stop some listeners: accept no more connections, finish writing, close their connections."""
        for listener in listeners:
            listener.pause()
        for _ in range(_TURNS):  # received requests are answered, and just accepted connections have a session
            await asyncio.sleep(0)
        for listener in listeners:
            listener.stop()
        for session in self._sessions_of(listeners):
            session.close()
        end = self._loop.time() + _CLOSING_SECONDS
        while self._sessions_of(listeners) and self._loop.time() < end:
            await asyncio.sleep(0.0005)
        for session in self._sessions_of(listeners):
            session.abort()
        for _ in range(_TURNS):  # sockets are closed in the loop
            await asyncio.sleep(0)
        self.listeners = [listener for listener in self.listeners if listener not in listeners]

    async def stop(self) -> None:
        """Stop: accept no more connections, finish writing, close connections, flush, close."""
        if self._idle is not None:
            self._idle.cancel()
        await self.end(self.listeners)
        for runner in self._runners.values():
            await runner.close()
        for close in self.closing:
            await close()

    def _sessions_of(self, listeners: Collection[Listener]) -> list[Session]:
        return [session for session in self._load.sessions if session.listener in listeners]

    def _set_idle(self) -> None:
        self._idle = self._loop.call_later(self.limits.max_idle_ms / 4000, self._close_idle)

    def _close_idle(self) -> None:
        latest = self._loop.time() - self.limits.max_idle_ms / 1000
        for session in list(self._load.sessions):
            if session.last < latest and not session.waits:
                session.expire()
        self._set_idle()
