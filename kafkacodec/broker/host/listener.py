"""Listeners: the sessions of an address."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from kafkacodec.broker.host.sessions import Session
from kafkacodec.net.addresses import address_text
from kafkacodec.net.tls import fault_of_client

if TYPE_CHECKING:
    from kafkacodec.broker.host.arrivals import Arrivals
    from kafkacodec.broker.host.limits import Limits, Load
    from kafkacodec.broker.host.runner import Runner
    from kafkacodec.net.service import Codec

__all__ = ["Listener"]

_AT_ONCE: Final = 32  # accepted before anything else is done
_QUEUED: Final = 1024  # by the system
_PAUSE_SECONDS: Final = 1.0  # before the system is asked again for a connection that it could not give

_ADVICE: Final = {
    errno.EADDRINUSE: "; another process listens there: choose another port, or port 0 for a free one",
    errno.EADDRNOTAVAIL: "; it is not an address of this machine",
}


class Listener:
    """One address with its service.

    It accepts connections itself: asyncio's server neither counts those in a TLS handshake nor says why one failed.

    Args:
        runner: runs the service.
        codec: makes the codec of a connection.
        limits, load: of the host.
        loop: the event loop.
        arrivals: limits the rates of new connections.

    Attributes:
        name: its name for the service, such as its URL.
        address: the bound host and port.
        time: the loop's, in seconds.
        receive: passes a request to the service.
    """

    def __init__(
        self, name: str, runner: Runner, codec: Callable[[], Codec], limits: Limits, load: Load,
        loop: asyncio.AbstractEventLoop, arrivals: Arrivals | None = None,
    ) -> None:  # fmt: skip
        self.name, self.codec, self.limits = name, codec, limits
        self.address = ("", 0)
        self._runner, self.load, self._loop = runner, load, loop
        self.time, self.receive = loop.time, runner.receive
        self._sockets: list[socket.socket] = []
        self._tls: ssl.SSLContext | None = None
        self._opening: set[asyncio.Task[None]] = set()
        self._arrivals = arrivals
        self._held: set[socket.socket] = set()  # accepted, and not served yet, or never

    async def start(self, host: str, port: int, tls: ssl.SSLContext | None) -> None:
        """Start accepting, at all addresses of a host with one port. Raises OSError: an address cannot be bound."""
        self._tls = tls
        try:
            found = await self._loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        except socket.gaierror as error:  # it does not name the host
            reason = f"the host {host} has no address: {error.strerror}"
            raise OSError(errno.EADDRNOTAVAIL, reason, self.name) from None
        try:
            port = self._bind([(family, address) for family, _, _, _, address in dict.fromkeys(found)])
        except OSError as error:
            self.stop()
            reason = os.strerror(error.errno or 0).lower() + _ADVICE.get(error.errno or 0, "")
            raise OSError(error.errno, f"cannot listen at {address_text((host, port))}: {reason}") from None
        self.address = (host, port)
        for sock in self._sockets:
            sock.listen(_QUEUED)
            self._resume_accepting(sock)

    def _bind(self, addresses: list[tuple[int, Any]]) -> int:
        """Bind sockets; return their port. An address that the machine lacks is left out if it has another."""
        port, missing = int(addresses[0][1][1]), OSError(errno.EADDRNOTAVAIL, "")
        for family, address in addresses:
            sock = socket.socket(family, socket.SOCK_STREAM)
            self._sockets.append(sock)
            sock.setblocking(False)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            try:
                sock.bind((address[0], port, *address[2:]))
            except OSError as error:
                if error.errno != errno.EADDRNOTAVAIL:
                    raise
                self._sockets.pop().close()
                missing = error
            else:
                port = int(sock.getsockname()[1])
        if not self._sockets:
            raise missing
        return port

    def pause(self) -> None:
        """Stop accepting."""
        for sock in self._sockets:
            self._loop.remove_reader(sock)

    def stop(self) -> None:
        """Close the address, and connections that are not open yet."""
        self.pause()
        for sock in self._sockets:
            sock.close()
        self._sockets.clear()
        for sock in self._held:
            sock.close()
        self._held.clear()
        for task in self._opening:
            task.cancel()

    def add(self, session: Session) -> None:
        """Note that a session is open."""
        self.load.opening.discard(session)
        self.load.sessions.add(session)

    def remove(self, session: Session) -> None:
        """Forget a session, and tell the service."""
        self.load.sessions.discard(session)
        self.load.stopped.pop(session, None)
        self._runner.disconnected(session)

    def paused(self, session: Session) -> None:
        """Note that a session does not read."""
        if self.load.is_full or session.lacks_memory:
            self.load.stopped[session] = None

    def relieved(self) -> None:
        """Resume sessions that stopped reading because of others."""
        self._loop.call_soon(self._resume)

    def _resume(self) -> None:
        stopped = list(self.load.stopped)
        self.load.stopped.clear()
        for session in stopped:
            session.resume()

    # Accepting

    def _accept(self, listening: socket.socket) -> None:
        """Accept the connections that wait, at most `_AT_ONCE`."""
        for _ in range(_AT_ONCE):
            try:
                sock, address = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:  # the process may not open more files
                self._loop.remove_reader(listening)
                self._loop.call_later(_PAUSE_SECONDS, self._resume_accepting, listening)
                self.load.notes.say(f"{self.name}: a connection could not be accepted: {error}")
                return
            wait = self._arrivals.wait(self._loop.time() * 1000) if self._arrivals is not None else 0
            if wait:
                self._held.add(sock)
                self._loop.remove_reader(listening)
                self._loop.call_later(wait / 1000, self._go_on, listening, sock, address)
                return
            self._serve(sock, address)

    def _go_on(self, listening: socket.socket, sock: socket.socket, address: tuple[str, int]) -> None:
        """Serve a connection that had to wait, and accept others again."""
        if sock in self._held:
            self._held.discard(sock)
            self._serve(sock, address)
        self._resume_accepting(listening)

    def _serve(self, sock: socket.socket, address: tuple[str, int]) -> None:
        """Begin a session, unless there are too many connections or they arrive too fast."""
        peer = f"{address[0]}:{address[1]}"
        if self.load.connections + len(self._held) >= self.limits.max_connections:
            sock.close()
            self.load.notes.say(
                f"connection refused: there are already {self.limits.max_connections} connections", peer
            )
            return
        wait = self._arrivals.refusal(str(address[0]), self._loop.time() * 1000) if self._arrivals is not None else 0
        if wait:
            self._held.add(sock)
            self._loop.call_later(wait / 1000, self._drop, sock)
            self.load.notes.say("connection refused: more arrive from its address than the quota allows", peer)
            return
        session = Session(self)
        self.load.opening.add(session)
        task = self._loop.create_task(self._open(session, sock, peer))
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    def _drop(self, sock: socket.socket) -> None:
        sock.close()
        self._held.discard(sock)

    def _resume_accepting(self, listening: socket.socket) -> None:
        if listening in self._sockets:
            self._loop.add_reader(listening, self._accept, listening)

    async def _open(self, session: Session, sock: socket.socket, peer: str) -> None:
        """Begin a session on an accepted socket."""
        try:
            await self._loop.connect_accepted_socket(lambda: session, sock, ssl=self._tls)
        except OSError as error:
            reason = fault_of_client(error)
            if reason is not None:
                self.load.notes.say(f"{self.name}: {reason}; closing its connection", peer)
        finally:
            self.load.opening.discard(session)
