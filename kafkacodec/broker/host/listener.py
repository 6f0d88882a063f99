"""Listeners: the sessions of an address, and what all of them have in flight."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kafkacodec.broker.host.sessions import Call, Session

if TYPE_CHECKING:
    from kafkacodec.broker.host.limits import Limits
    from kafkacodec.broker.host.runner import Runner
    from kafkacodec.net.service import Codec

__all__ = ["Listener", "Load"]


@dataclass
class Load:
    """What all listeners of a host have in flight.

    Attributes:
        sessions: the open sessions.
        nbytes: bytes of requests that wait for their answers.
        stopped: sessions that may have stopped reading because of others.
        requests: how many were begun since the start.
        received, sent: bytes since the start.
    """

    sessions: set[Session] = field(default_factory=set)
    nbytes: int = 0
    stopped: set[Session] = field(default_factory=set)
    requests: int = 0
    received: int = 0
    sent: int = 0


class Listener:
    """One address, with the service that answers there.

    Args:
        runner: runs the service.
        codec: makes the codec of a connection.
        limits: of the host.
        load: of the host.
        loop: the event loop.

    Attributes:
        name: what the service calls it, such as its URL.
        address: the bound host and port.
    """

    def __init__(
        self, name: str, runner: Runner, codec: Callable[[], Codec], limits: Limits, load: Load,
        loop: asyncio.AbstractEventLoop,
    ) -> None:  # fmt: skip
        self.name, self.codec, self.limits = name, codec, limits
        self.address = ("", 0)
        self._runner, self._load, self._loop = runner, load, loop
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int, tls: ssl.SSLContext | None) -> None:
        """Begin to accept. Raises OSError: the address cannot be bound."""
        self._server = await self._loop.create_server(lambda: Session(self), host, port, ssl=tls, backlog=1024)
        bound = self._server.sockets[0].getsockname()
        self.address = (host, int(bound[1]))

    def stop(self) -> None:
        """Accept no more."""
        if self._server is not None:
            self._server.close()

    def now(self) -> float:
        """The time of the loop, in milliseconds."""
        return self._loop.time() * 1000

    def receive(self, call: Call) -> None:
        """Give a request to the service."""
        self._runner.receive(call)

    def add(self, session: Session) -> bool:
        """Take a session; False if there are too many."""
        if len(self._load.sessions) >= self.limits.max_connections:
            return False
        self._load.sessions.add(session)
        return True

    def remove(self, session: Session) -> None:
        """Forget a session, and tell the service."""
        self._load.sessions.discard(session)
        self._load.stopped.discard(session)
        self._runner.disconnected(session)

    @property
    def loaded(self) -> bool:
        """Whether as much is in flight as may be."""
        return self._load.nbytes >= self.limits.max_bytes_in_flight

    def took(self, nbytes: int) -> None:
        """Count the memory of a request that begins."""
        self._load.nbytes += nbytes
        self._load.requests += 1

    def moved(self, received: int, sent: int) -> None:
        """Count the bytes of a connection."""
        self._load.received += received
        self._load.sent += sent

    def freed(self, nbytes: int) -> None:
        """Count off the memory of a request that was answered; others may go on."""
        before = self.loaded
        self._load.nbytes -= nbytes
        if before and not self.loaded:
            self._loop.call_soon(self._resume)

    def paused(self, session: Session) -> None:
        """Note that a session reads nothing."""
        if self.loaded:
            self._load.stopped.add(session)

    def _resume(self) -> None:
        stopped = list(self._load.stopped)
        self._load.stopped.clear()
        for session in stopped:
            session.resume()
