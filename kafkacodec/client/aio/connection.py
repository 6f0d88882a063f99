"""Any message to any broker, for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from operator import index
from typing import TYPE_CHECKING, Any, Self, Unpack

from kafkacodec.arguments import is_integer
from kafkacodec.client.checks import seconds
from kafkacodec.client.core.calls import ANY, Anywhere, Coordinator, Place, Prepare
from kafkacodec.client.core.foreign_options import instead_of
from kafkacodec.client.core.relay import Relay, Reply
from kafkacodec.client.driver.network import Network
from kafkacodec.client.lifecycle import AsyncClient, shown
from kafkacodec.client.options import ClientOptions, ClientSettings, option_defaults
from kafkacodec.client.security.config_words import from_config
from kafkacodec.errors import ClientClosed
from kafkacodec.signatures import shows_options

if TYPE_CHECKING:
    from kafkacodec.messages import Message

__all__ = ["KafkaConnection"]


class KafkaConnection(AsyncClient):
    """Sends any messages of `kafkacodec.messages` to brokers, and returns the answers as they come.

    It connects, negotiates versions, authenticates, finds brokers, the controller and coordinators, and has one
    connection per broker. It does not retry: an error is a reply, and so is a response with error codes. An
    asynchronous context manager.

    Args:
        bootstrap_servers: ``host:port`` of some brokers, in one text with commas or as a list.
        **options: `kafkacodec.client.ClientSettings` describes them.

    Raises:
        TypeError, ValueError: an option is unknown or has a wrong value.
    """

    @shows_options(ClientOptions, ClientSettings, instead_of)
    def __init__(self, bootstrap_servers: str | Iterable[str], **options: Unpack[ClientOptions]) -> None:
        self._settings = ClientSettings(bootstrap_servers=bootstrap_servers, **options)
        self._begin()
        self._relay = Relay()
        self._arrived = asyncio.Event()
        self._error: Exception | None = None

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """A connection from options with dotted names, such as ``{"bootstrap.servers": "localhost:9092"}``."""
        return from_config(cls, config, option_defaults(ClientSettings))

    def __repr__(self) -> str:
        return shown(self, self._settings, closed=self._error is not None)

    async def poll(
        self, timeout: float | None = 0.0, *requests: Message | Prepare | tuple[Place, Message | Prepare]
    ) -> list[Reply]:
        """Send requests, and return the replies that came since the last call, to these or to earlier ones.

        Args:
            timeout: the seconds to wait for a first reply; 0 does not wait, None waits as long as one is due. It does
                not end the requests, which have ``request_timeout_ms`` from now on.
            *requests: messages for any broker, or pairs of a place and a message. A place is the id of a broker,
                `kafkacodec.client.ANY`, `CONTROLLER` or a `Coordinator`. A message is sent in the broker's highest
                version; for another, pass a function of the broker's versions that returns message and version.

        Returns:
            Replies in the order in which they came, which need not be that of requests to different brokers. None if
            the time is up, or nothing is due.

        Raises:
            TypeError, ValueError: a request is neither a message nor a pair, or the timeout is wrong: none is sent.
            ClientClosed: the connection is closed.
        """
        limit = seconds("timeout", timeout)
        addressed = [_addressed(request) for request in requests]
        network = self._started()
        for place, message in addressed:
            self._relay.add(place, message)
        if addressed:
            network.wake()
        await self._wait(limit)
        if self._error is not None:
            raise self._error
        return self._relay.take()

    @property
    def pending(self) -> int:
        """The number of requests whose reply `poll` has not returned yet."""
        return self._relay.pending

    async def close(self) -> None:
        """Close all connections. Waiting requests get no reply."""
        network = self._network
        if network is not None and not network.closed:
            network.check()
        self._error = ClientClosed("the connection is closed")
        self._arrived.set()
        if network is not None:
            await network.close()

    async def __aenter__(self) -> Self:
        self._started()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    def metrics(self) -> dict[str, float]:
        """Return the connection's metrics by name; `kafkacodec.client.METRICS` describes them."""
        return {} if self._network is None else self._network.metrics.snapshot()

    async def _wait(self, timeout: float | None) -> None:
        if timeout == 0:
            await asyncio.sleep(0)
            return
        with suppress(TimeoutError), self._hold:
            async with asyncio.timeout(timeout):
                while self._relay.pending and not self._relay.has_replies and self._error is None:
                    self._arrived.clear()
                    await self._arrived.wait()

    def _started(self) -> Network:
        if self._error is not None:
            raise self._error
        if self._network is None:
            self._network = Network(self._settings)
            self._network.add(
                self._relay, self._hold.calling(KafkaConnection._changed), self._hold.calling(KafkaConnection._broke)
            )
        self._network.check()
        return self._network

    def _changed(self) -> None:
        if self._relay.has_replies:
            self._arrived.set()

    def _broke(self, error: Exception) -> None:
        self._error = self._error or error
        self._arrived.set()


def _addressed(request: Any) -> tuple[Place, Any]:
    place, message = request if isinstance(request, tuple) and len(request) == 2 else (ANY, request)
    if isinstance(message, type) or not (callable(message) or hasattr(message, "api_key")):
        raise TypeError(f"a request must be a message, or a pair of a place and a message, not {request!r}")
    if is_integer(place):
        place = index(place)  # type: ignore[arg-type]
    elif not isinstance(place, (Anywhere, Coordinator)):
        raise TypeError(f"a place must be the id of a broker, ANY, CONTROLLER or a Coordinator, not {place!r}")
    return place, message
