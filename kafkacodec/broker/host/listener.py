"""Listeners: the sessions of an address."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kafkacodec.broker.host.sessions import Call, Session

if TYPE_CHECKING:
    from kafkacodec.broker.host.limits import Limits, Load
    from kafkacodec.broker.host.runner import Runner
    from kafkacodec.net.service import Codec

__all__ = ["Listener"]

_AT_ONCE: Final = 32  # accepted before any of them is refused: each takes one of the files of the process
_QUEUED: Final = 1024  # by the system


class Listener:
    """One address with its service.

    Args:
        runner: runs the service.
        codec: makes the codec of a connection.
        limits, load: of the host.
        loop: the event loop.

    Attributes:
        name: its name for the service, such as its URL.
        address: the bound host and port.
    """

    def __init__(
        self, name: str, runner: Runner, codec: Callable[[], Codec], limits: Limits, load: Load,
        loop: asyncio.AbstractEventLoop,
    ) -> None:  # fmt: skip
        self.name, self.codec, self.limits = name, codec, limits
        self.address = ("", 0)
        self._runner, self.load, self._loop = runner, load, loop
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int, tls: ssl.SSLContext | None) -> None:
        """Start accepting. Raises OSError: the address cannot be bound."""
        try:
            self._server = server = await self._loop.create_server(
                lambda: Session(self), host, port, ssl=tls, backlog=_AT_ONCE
            )
        except socket.gaierror as error:  # it does not name the host
            reason = f"the host {host} has no address: {error.strerror}"
            raise OSError(errno.EADDRNOTAVAIL, reason, self.name) from None
        for sock in server.sockets:  # asyncio's own queue would be as long as what it accepts at once
            with socket.socket(fileno=os.dup(sock.fileno())) as same:
                same.listen(_QUEUED)
        bound = self._server.sockets[0].getsockname()
        self.address = (host, int(bound[1]))

    def pause(self) -> None:
        """Stop accepting. asyncio loses a connection that it has accepted if the server closes in the same turn."""
        for sock in self._server.sockets if self._server is not None else ():
            self._loop.remove_reader(sock.fileno())

    def stop(self) -> None:
        """Close the address."""
        if self._server is not None:
            self._server.close()

    def now(self) -> float:
        """Return the time of the loop, in milliseconds."""
        return self._loop.time() * 1000

    def receive(self, call: Call) -> None:
        """Pass a request to the service."""
        self._runner.receive(call)

    def add(self, session: Session) -> bool:
        """Add a session; False if there are too many."""
        if len(self.load.sessions) >= self.limits.max_connections:
            return False
        self.load.sessions.add(session)
        return True

    def remove(self, session: Session) -> None:
        """Forget a session, and tell the service."""
        self.load.sessions.discard(session)
        self.load.stopped.discard(session)
        self._runner.disconnected(session)

    def paused(self, session: Session) -> None:
        """Note that a session has stopped reading."""
        if self.load.is_full:
            self.load.stopped.add(session)

    def relieved(self) -> None:
        """Resume sessions that stopped reading because of others."""
        self._loop.call_soon(self._resume)

    def _resume(self) -> None:
        stopped = list(self.load.stopped)
        self.load.stopped.clear()
        for session in stopped:
            session.resume()
