"""Opening connections: TCP, TLS, the versions of the broker, SASL, all within one time limit."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from kafkacodec.client.core.cluster import BrokerAddress
from kafkacodec.client.core.opening import Opening
from kafkacodec.client.driver.frames import Frame, FrameBuffers
from kafkacodec.client.driver.link import Link
from kafkacodec.client.options import ClientSettings
from kafkacodec.errors import ConnectionFailed, KafkaCodecError

if TYPE_CHECKING:
    from kafkacodec.protocol.connection import ResponseReceived

__all__ = ["Connector"]


class Connector:
    """Opens the connections of one client."""

    def __init__(self, settings: ClientSettings, clock: Callable[[], float]) -> None:
        self._settings = settings
        self._clock = clock
        self._buffers = FrameBuffers()

    async def connect(
        self,
        address: BrokerAddress,
        *,
        answered: Callable[[ResponseReceived, Frame], None],
        ended: Callable[[Link, Exception], None],
    ) -> Link:
        """A connection that is ready for requests.

        Args:
            address: the broker.
            answered: called with each response and its frame.
            ended: called when the connection ends after it was ready.

        Raises:
            ConnectionFailed: the broker cannot be reached, closed the connection or took too long.
            AuthenticationFailed: TLS or SASL was refused.
            RemoteProtocolError: what answers is not a Kafka broker, or breaks the protocol.
        """
        name = f"broker {address.host}:{address.port}"
        limit_ms = self._settings.socket_connection_setup_timeout_ms
        try:
            async with asyncio.timeout(limit_ms / 1000):
                return await self._open(name, address, answered, ended)
        except TimeoutError:
            raise ConnectionFailed(f"{name}: no connection within {limit_ms} ms") from None

    async def _open(self, name: str, address: BrokerAddress, answered: Any, ended: Any) -> Link:
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[None] = loop.create_future()

        def opened() -> None:
            if not outcome.done():
                outcome.set_result(None)

        def over(reason: Exception) -> None:
            if not outcome.done():
                outcome.set_exception(reason)
            elif not outcome.cancelled() and outcome.exception() is None:
                ended(link, reason)

        link = Link(
            name,
            Opening(self._settings, name),
            self._buffers,
            self._settings.receive_message_max_bytes,
            clock=self._clock,
            opened=opened,
            answered=answered,
            ended=over,
        )
        try:
            await self._dial(name, address, link)
            await outcome
        except BaseException as error:
            link.close(error if isinstance(error, KafkaCodecError) else ConnectionFailed(f"{name}: given up"))
            with contextlib.suppress(BaseException):
                outcome.exception()  # so that the loop does not report it as unread
            raise
        return link

    async def _dial(self, name: str, address: BrokerAddress, link: Link) -> None:
        tls: Any = {"ssl": self._tls, "server_hostname": address.host} if self._tls is not None else {}
        loop = asyncio.get_running_loop()
        try:
            await loop.create_connection(lambda: link, address.host, address.port, **tls)
        except OSError as error:
            reason = os.strerror(error.errno).lower() if error.errno else error
            raise ConnectionFailed(f"{name}: {reason}") from error

    @cached_property
    def _tls(self) -> Any:
        return None
