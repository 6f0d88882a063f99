"""A connection to a server of one of the dialects, in the running event loop."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from typing import Any, Protocol

from kafkacodec.errors import ClientClosed, ConnectionFailed, DeadlineExceeded, KafkaCodecError
from kafkacodec.net.addresses import address_text

__all__ = ["Connection", "Dialer", "Exchange"]


class Exchange(Protocol):
    """The pending requests of a connection, without I/O."""

    @property
    def pending(self) -> int:
        """The number of pending requests."""

    @property
    def request(self) -> Callable[..., bytes]:
        """Makes the bytes of a request; its `waiter` comes back with the response. Raises EncodeError."""

    def received(self, data: bytes) -> list[tuple[Any, Any]]:
        """Return the responses that are now complete, each with the waiter of its request.

        Raises:
            KafkaCodecError: the connection is unusable; `events` are the earlier responses.
        """

    def give_up(self) -> list[Any]:
        """Return the waiters of all requests without a response."""


class Connection(asyncio.Protocol):
    """One connection. Requests from one turn of the loop leave together.

    Args:
        name: the server's, for errors.
        exchange: its requests.
    """

    def __init__(self, name: str, exchange: Exchange) -> None:
        self.name, self._exchange = name, exchange
        self._loop = asyncio.get_running_loop()
        self._transport: Any = None
        self._out: list[bytes] = []
        self._writable = asyncio.Event()
        self._writable.set()
        self._ended = asyncio.Event()
        self._reason: Exception | None = None

    @property
    def is_open(self) -> bool:
        """Whether it accepts requests."""
        return self._reason is None

    @property
    def pending(self) -> int:
        """The number of pending requests."""
        return self._exchange.pending

    def ask(self, *request: Any) -> asyncio.Future[Any]:
        """Send a request. Raises EncodeError, ConnectionFailed."""
        self._check()
        waiter: asyncio.Future[Any] = self._loop.create_future()
        self._send(self._exchange.request(*request, waiter=waiter))
        return waiter

    def tell(self, data: bytes) -> None:
        """Send a request without a response. Raises ConnectionFailed."""
        self._check()
        self._send(data)

    async def writable(self) -> None:
        """Wait until the server has taken most written bytes."""
        await self._writable.wait()

    def close(self, reason: str = "the connection was closed") -> None:
        """Close it at once; requests that wait get ConnectionFailed."""
        self._end(ConnectionFailed(f"{self.name}: {reason}", sent=True))

    async def finish(self, seconds: float) -> None:
        """Close it after the server has taken all written bytes, or after a while."""
        if self._reason is None and self._transport is not None:
            self._flush()
            self._transport.close()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._ended.wait()
        self.close()

    # Called by the loop

    def connection_made(self, transport: Any) -> None:
        """It is connected."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Take received bytes."""
        try:
            found = self._exchange.received(data)
        except KafkaCodecError as error:
            self._answer(getattr(error, "events", ()))
            self._end(error)
            return
        self._answer(found)

    def connection_lost(self, exc: Exception | None) -> None:
        """It has ended."""
        self._ended.set()
        self._end(ConnectionFailed(f"{self.name}: {exc or 'the server closed the connection'}", sent=True))

    def pause_writing(self) -> None:
        """Stop writing: the server takes no more for now."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """It does again."""
        self._writable.set()

    def _check(self) -> None:
        if self._reason is not None:
            raise ConnectionFailed(f"{self.name}: {self._reason}", sent=False)

    def _send(self, data: bytes) -> None:
        if not self._out:
            self._loop.call_soon(self._flush)
        self._out.append(data)

    def _flush(self) -> None:
        out, self._out = self._out, []
        if self._reason is None and out:
            self._transport.write(b"".join(out))

    def _answer(self, found: Any) -> None:
        for waiter, response in found:
            if not waiter.done():
                waiter.set_result(response)

    def _end(self, reason: Exception) -> None:
        if self._reason is not None:
            return
        self._reason = reason
        self._writable.set()
        if self._transport is not None:
            self._transport.abort()
        for waiter in self._exchange.give_up():
            if not waiter.done():
                waiter.set_exception(reason)
                waiter.exception()  # somebody may not wait any longer


class Dialer:
    """The connection to a server. The first request opens it; after its end, the next request opens another.

    Args:
        address: host and port.
        timeout_ms: the time limit of connecting and of each answer.
        exchange: makes the state of a connection.

    Attributes:
        closed: whether it opens no more connections.
    """

    def __init__(self, address: tuple[str, int], timeout_ms: float, exchange: Callable[[], Exchange]) -> None:
        self._address, self._timeout, self._exchange = address, timeout_ms / 1000, exchange
        self._name = address_text(address)
        self._connection: Connection | None = None
        self._connecting = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.closed = False

    @property
    def name(self) -> str:
        """The server's, for errors."""
        return self._name

    @property
    def was_used(self) -> bool:
        """Whether it has ever been asked for a connection."""
        return self._loop is not None

    async def connected(self) -> Connection:
        """An open connection. Raises ClientClosed, ConnectionFailed, DeadlineExceeded."""
        async with self._connecting:
            if not self.closed and (self._connection is None or not self._connection.is_open):
                self._connection = await self._connect()
            if self.closed or self._connection is None:  # it may have been closed meanwhile
                self.close()
                raise ClientClosed("the client is closed")
            return self._connection

    async def ask(self, *request: Any) -> Any:
        """The response to a request, whether it succeeded or not. Raises as `connected` and `Connection.ask`."""
        connection = await self.connected()
        try:
            async with asyncio.timeout(self._timeout):
                return await connection.ask(*request)
        except TimeoutError:
            raise DeadlineExceeded(f"{self._name}: no answer to {_named(request[0])} in time", sent=True) from None

    def close(self) -> None:
        """Close the connection for good."""
        self.closed = True
        if self._connection is not None:
            self._connection.close("the client was closed")

    def close_soon(self) -> None:
        """As `close`, from any thread."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended, and the connection with it
                self._loop.call_soon_threadsafe(self.close)

    async def _connect(self) -> Connection:
        host, port = self._address
        self._loop = loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._timeout):
                _, made = await loop.create_connection(lambda: Connection(self._name, self._exchange()), host, port)
        except TimeoutError:
            raise DeadlineExceeded(f"{self._name}: not connected in time", sent=False) from None
        except OSError as error:
            code = error.errno or 0
            # asyncio's own text repeats the address.
            reason = os.strerror(code).lower() if code > 0 else error.strerror or str(error)
            raise ConnectionFailed(f"{self._name}: {reason}", sent=False) from error
        return made


def _named(request: object) -> str:
    """The name of a request: a text, or an object of a class for it."""
    return request if isinstance(request, str) else type(request).__name__
