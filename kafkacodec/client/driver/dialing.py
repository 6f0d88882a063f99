"""Connecting a socket to a host with several addresses, some of which may not answer (RFC 8305)."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from kafkacodec.datatypes import NamedTuple

__all__ = ["Dialer"]

_NEXT_ADDRESS_SECONDS: Final = 0.25
_NUMERIC: Final = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV


class _Address(NamedTuple):
    family: int
    kind: int
    protocol: int
    sockaddr: Any

    @property
    def text(self) -> str:
        return str(self.sockaddr[0])


class Dialer:
    """Connects to the first address of a host that answers.

    Addresses are tried in the resolver's order; the next attempt starts as soon as one fails or has not answered for a
    quarter of a second. asyncio's own implementation can leave sockets open when cancelled, and uvloop has none.

    Args:
        host: a name or an address.
        port: from 0 to 65535.
        limit_ms: the caller's time limit; all attempts start within half of it.
        doubtful: the address to try last, because it accepted the last connection but did not answer as a broker.
        accepted: called with each connection that a peer accepts.

    Attributes:
        connected: the address of the connected socket; None before that.
    """

    def __init__(
        self,
        host: str,
        port: int,
        limit_ms: float,
        doubtful: str | None = None,
        accepted: Callable[[], None] = lambda: None,
    ) -> None:
        self.connected: str | None = None
        self._accepted = accepted
        self._host, self._port, self._limit_ms, self._doubtful = host, port, limit_ms, doubtful
        self._found: dict[str, str] = {}  # the outcome for each address

    def __str__(self) -> str:
        """The outcome for each address in parentheses, if the host has more than one."""
        found = ", ".join(f"{address}: {outcome}" for address, outcome in self._found.items())
        return f" ({found})" if len(self._found) > 1 else ""

    async def connect(self) -> socket.socket:
        """Return a connected, non-blocking socket, which the caller closes.

        Raises:
            OSError: no address accepts a connection; gaierror: the name has none.
            UnicodeError, ValueError: the host or port is impossible.
        """
        self._found.clear()
        addresses = await self._addresses()
        delay = min(_NEXT_ADDRESS_SECONDS, self._limit_ms / 2000 / max(1, len(addresses)))
        self._found = dict.fromkeys((address.text for address in addresses), "not tried")
        left, running = deque(addresses), set[asyncio.Task[socket.socket]]()
        last: Exception = OSError("the name has no address")
        try:
            while left or running:
                if left:
                    running.add(asyncio.create_task(self._attempt(left.popleft())))
                done, _ = await asyncio.wait(
                    running, timeout=delay if left else None, return_when=asyncio.FIRST_COMPLETED
                )
                for task in done:
                    problem = task.exception()
                    running.discard(task)
                    if problem is None:
                        return task.result()
                    if not isinstance(problem, OSError):
                        raise problem
                    last = problem
            raise last
        finally:
            for task in running:  # a cancelled task closes its socket itself
                if not task.cancel() and not task.cancelled() and task.exception() is None:
                    task.result().close()

    async def _addresses(self) -> list[_Address]:
        if not 0 <= self._port <= 65535:  # a resolver would use the lower 16 bits
            raise ValueError(f"port {self._port} is not from 0 to 65535")
        # A literal address needs no resolver thread, nor, as bytes, the tables of international names.
        host = self._host.encode() if self._host.isascii() else self._host
        try:
            found = socket.getaddrinfo(host, self._port, type=socket.SOCK_STREAM, flags=_NUMERIC)
        except socket.gaierror:
            found = await _resolved(self._host, self._port)
        unique = dict.fromkeys(_Address(family, kind, protocol, at) for family, kind, protocol, _, at in found)
        return sorted(unique, key=lambda address: address.text == self._doubtful)

    async def _attempt(self, address: _Address) -> socket.socket:
        self._found[address.text] = "no answer"
        try:
            made = socket.socket(address.family, address.kind, address.protocol)
            try:
                made.setblocking(False)
                await _connected(made, address.sockaddr)
            except BaseException:
                made.close()
                raise
        except OSError as error:
            self._found[address.text] = os.strerror(error.errno).lower() if error.errno else str(error)
            raise
        self._found[address.text] = "connected, but no answer"
        self.connected = address.text
        self._accepted()
        return made


# Not asyncio's or uvloop's resolver: at exit the interpreter waits for asyncio's resolver threads, however long they
# take, and a process forked from one with libuv threads crashes at exit.


async def _resolved(host: str, port: int) -> Any:
    """The addresses found by the system's resolver."""
    loop = asyncio.get_running_loop()
    known: asyncio.Future[Any] = loop.create_future()

    def tell(found: Any, problem: Exception | None) -> None:
        if known.done():
            return
        if problem is None:
            known.set_result(found)
        else:
            known.set_exception(problem)

    def resolve() -> None:
        found, problem = None, None
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except Exception as error:
            problem = error
        with contextlib.suppress(RuntimeError):  # the loop is closed: nothing waits for the result
            loop.call_soon_threadsafe(tell, found, problem)

    threading.Thread(target=resolve, name=f"resolve {host}", daemon=True).start()
    return await known


async def _connected(made: socket.socket, sockaddr: Any) -> None:
    code = made.connect_ex(sockaddr)
    if code in (errno.EINPROGRESS, errno.EINTR):
        loop = asyncio.get_running_loop()
        writable: asyncio.Future[None] = loop.create_future()

        def now_writable() -> None:
            if not writable.done():
                writable.set_result(None)

        loop.add_writer(made, now_writable)
        try:
            await writable
        finally:
            loop.remove_writer(made)
        code = made.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if code:
        raise OSError(code, os.strerror(code))
