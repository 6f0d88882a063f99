"""Opening connections: TCP, TLS, the versions of the broker, SASL, all within one time limit."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kafkacodec.client.core.metadata import BrokerAddress
from kafkacodec.client.core.opening import FIRST_WAY, Opening, Way
from kafkacodec.client.driver.dialing import Dialer
from kafkacodec.client.driver.link import Link
from kafkacodec.client.options import ClientSettings
from kafkacodec.errors import ConnectionFailed, KafkaCodecError, RemoteProtocolError
from kafkacodec.lazy import imported_later
from kafkacodec.net.frames import Frame, FrameBuffers
from kafkacodec.net.tls import client_context, handshake_error

if TYPE_CHECKING:
    from kafkacodec.client.security import config_words
    from kafkacodec.net import sasl
    from kafkacodec.protocol.connection import ResponseReceived
else:
    config_words = imported_later("kafkacodec.client.security.config_words")
    sasl = imported_later("kafkacodec.net.sasl")

__all__ = ["Connector"]


class Connector:
    """Opens the connections of one client, and renews their authentication before sessions expire.

    Args:
        settings: the client's.
        clock: the time in ms.

    Raises:
        ValueError: a file named by the TLS options is unusable.
        ModuleNotFoundError: the SASL mechanism needs a package that is not installed.
    """

    def __init__(self, settings: ClientSettings, clock: Callable[[], float]) -> None:
        self._settings = settings
        self._clock = clock
        self._buffers = FrameBuffers()
        self._tls = client_context(settings)
        self._ways: dict[tuple[str, int], Way] = {}
        self._doubtful: dict[tuple[str, int], str] = {}  # the address of the last connection that failed to open
        self._renewals: set[asyncio.Task[None]] = set()
        if settings.sasl_mechanism is not None:
            sasl.SaslExchange(settings, "localhost")  # raises if it cannot be made

    async def connect(
        self,
        address: BrokerAddress,
        *,
        accepted: Callable[[], None],
        answered: Callable[[ResponseReceived, Frame], None],
        ended: Callable[[Link, Exception], None],
        resumed: Callable[[], None],
    ) -> Link:
        """Open a connection and make it ready for requests.

        Args:
            address: the broker.
            accepted: called when somebody at the address accepts the connection, before anything is sent.
            answered: called with each response and its frame.
            ended: called when the connection ends after it was ready.
            resumed: called when it accepts requests again, after a renewal or once its output is sent.

        Raises:
            ConnectionFailed: the broker is unreachable, closed the connection or took too long.
            AuthenticationFailed: TLS or SASL failed.
            RemoteProtocolError: the peer is not a Kafka broker, or violates the protocol.
        """
        name = f"broker {address.host}:{address.port}"
        limit_ms = self._settings.socket_connection_setup_timeout_ms
        place = (address.host, address.port)
        dialer = Dialer(*place, limit_ms, self._doubtful.pop(place, None), accepted)
        try:
            async with asyncio.timeout(limit_ms / 1000):
                return await self._in_some_way(
                    name, address, lambda opening: self._open(address, dialer, opening, answered, ended, resumed)
                )
        except TimeoutError:
            self._doubt(place, dialer)
            what = "no connection" if dialer.connected is None else "connected, but no answer"
            raise ConnectionFailed(f"{name}: {what} within {limit_ms} ms{dialer}") from None
        except Exception as error:
            self._doubt(place, dialer)
            self._word(error)
            raise

    def _word(self, error: Exception) -> None:
        """Let an error name options as the user does."""
        if self._settings.words and isinstance(error, (ConnectionFailed, RemoteProtocolError)):
            error.args = (config_words.renamed(str(error), self._settings.words),)

    def _doubt(self, place: tuple[str, int], dialer: Dialer) -> None:
        """Try other addresses of the host first next time."""
        if dialer.connected is not None:
            self._doubtful[place] = dialer.connected

    async def _in_some_way(self, name: str, address: BrokerAddress, connect: Callable[[Opening], Any]) -> Link:
        """Connect in the way that last succeeded, or try one way after another."""
        place = (address.host, address.port)
        way = self._ways.get(place, FIRST_WAY)
        while True:
            opening = Opening(self._settings, name, await self._exchange(name, address.host), way)
            try:
                link: Link = await connect(opening)
            except ConnectionFailed:
                if opening.next_way is None:
                    if way.certain:
                        self._ways[place] = way.again()
                    raise
                way = opening.next_way
                continue
            self._ways[place] = opening.way
            return link

    async def _open(
        self,
        address: BrokerAddress,
        dialer: Dialer,
        opening: Opening,
        answered: Any,
        ended: Any,
        resumed: Callable[[], None],
    ) -> Link:
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[None] = loop.create_future()
        early: list[Exception] = []  # why it ended before this coroutine resumed
        name = opening.name

        def opened() -> None:
            if outcome.done():
                resumed()
            else:
                outcome.set_result(None)

        def over(reason: Exception) -> None:
            if not outcome.done():
                outcome.set_exception(reason)
            elif not outcome.cancelled() and outcome.exception() is None:
                self._ways[address.host, address.port] = opening.way.again()
                early.append(reason)
                self._word(reason)
                ended(link, reason)

        link = Link(
            name,
            opening,
            self._buffers,
            self._settings.receive_message_max_bytes,
            clock=self._clock,
            opened=opened,
            answered=answered,
            ended=over,
            expiring=lambda: self._renew(link, address.host),
            drained=resumed,
        )
        try:
            await self._dial(name, address.host, dialer, link)
            await outcome
            if early:
                raise early[0]
        except BaseException as error:
            link.close(error if isinstance(error, KafkaCodecError) else ConnectionFailed(f"{name}: given up"))
            with contextlib.suppress(BaseException):
                outcome.exception()  # keeps the loop from reporting it as never retrieved
            raise
        return link

    async def _dial(self, name: str, host: str, dialer: Dialer, link: Link) -> None:
        tls: Any = {"ssl": self._tls, "server_hostname": host} if self._tls is not None else {}
        try:
            connected = await dialer.connect()
        except OSError as error:
            raise _dialing_error(name, error, tries=str(dialer)) from error
        except (UnicodeError, ValueError, LookupError) as error:  # not a possible host or port
            raise ConnectionFailed(f"{name}: {error}") from error
        try:
            await asyncio.get_running_loop().create_connection(lambda: link, sock=connected, **tls)
        except OSError as error:
            raise _dialing_error(name, error, tls=bool(tls)) from error
        except (UnicodeError, ValueError) as error:  # TLS rejects the name
            raise ConnectionFailed(f"{name}: {error}") from error

    # SASL

    async def _exchange(self, name: str, host: str) -> sasl.SaslExchange | None:
        if self._settings.sasl_mechanism is None:
            return None
        exchange = sasl.SaslExchange(self._settings, host)
        if exchange.needs_token and self._settings.sasl_oauth_token_provider is not None:
            try:
                exchange.token(await sasl.provided(self._settings.sasl_oauth_token_provider))
            except ConnectionFailed as error:
                raise type(error)(f"{name}: {error}") from error.__cause__
        return exchange

    def _renew(self, link: Link, host: str) -> None:
        """Renew the authentication of a connection, in a task, since getting a token may take time."""
        task = asyncio.get_running_loop().create_task(self._renewed(link, host))
        self._renewals.add(task)
        task.add_done_callback(self._renewals.discard)

    async def _renewed(self, link: Link, host: str) -> None:
        try:
            exchange = await self._exchange(link.name, host)
        except Exception as error:  # the broker would close it anyway
            link.close(error if isinstance(error, KafkaCodecError) else ConnectionFailed(f"{link.name}: {error}"))
            return
        if exchange is not None:
            link.renew(exchange, self._settings.socket_connection_setup_timeout_ms)

    def close(self) -> list[asyncio.Task[None]]:
        """Stop renewing. Returns the tasks that end."""
        for task in self._renewals:
            task.cancel()
        return list(self._renewals)


def _dialing_error(name: str, error: OSError, *, tries: str = "", tls: bool = False) -> ConnectionFailed:
    found = handshake_error(error) if tls else None
    if found is not None:
        found.args = (f"{name}: {found}",)
        return found
    if tries:
        return ConnectionFailed(f"{name}: no connection{tries}")
    of_system = error.errno and not isinstance(error, socket.gaierror)  # asyncio replaces the system's text
    reason = os.strerror(error.errno or 0) if of_system else error.strerror or str(error)
    return ConnectionFailed(f"{name}: {reason.lower()}")
