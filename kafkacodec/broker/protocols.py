"""What answers at listeners of other protocols than Kafka's: one service for each, over the same topics."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from kafkacodec.broker.host.runner import Runner, Store
from kafkacodec.net.frames import FrameBuffers
from kafkacodec.net.service import Service

if TYPE_CHECKING:
    from kafkacodec.broker.dialects.inside import Inside
    from kafkacodec.broker.topics.topics import Topics
    from kafkacodec.net.service import Codec

__all__ = ["Dialect", "Dialects"]

_KEPT_BYTES: Final = 16 << 20


class Dialects:
    """The services of a broker's other protocols, each begun by its first listener.

    Args:
        inside: what they use of the broker.
        topics: where what they append goes.
        loop: the event loop.
    """

    def __init__(self, inside: Inside, topics: Topics, loop: asyncio.AbstractEventLoop) -> None:
        self._inside, self._topics, self._loop = inside, topics, loop
        self._begun: dict[str, tuple[Runner, Callable[[], Codec]]] = {}
        self._services: list[Dialect] = []

    def answering(self, protocol: str) -> tuple[Runner, Callable[[], Codec]]:
        """What runs the service of a protocol, and what makes the codec of a connection. Raises OSError."""
        if protocol not in self._begun:
            service, codec, store = _BEGINNINGS[protocol](self._inside)
            self._services.append(service)
            self._begun[protocol] = Runner(service, store or self._topics, self._loop), codec
        return self._begun[protocol]

    def has_topic(self, name: str) -> bool:
        """Whether one of them has a topic that is not in the catalog."""
        return any(service.has_topic(name) for service in self._services)

    def close(self, *, keeps: bool) -> None:
        """Let go of their files; what they have is on the disk then, if the directory is kept. Raises OSError."""
        for service in self._services:
            service.close(keeps=keeps)


class Dialect(Service, Protocol):
    """A service of another protocol."""

    def has_topic(self, name: str) -> bool:
        """Whether it has a topic that is not in the catalog."""

    def close(self, *, keeps: bool) -> None:
        """Let go of its files; what it has is on the disk then, if the directory is kept. Raises OSError."""


_Beginning: TypeAlias = "tuple[Dialect, Callable[[], Codec], Store | None]"
"""A service, what makes the codec of a connection, and what its effects write to; None: the topics."""


def _line(inside: Inside) -> _Beginning:
    from kafkacodec.broker.dialects.line import LineCodec, LineService

    return LineService(inside), LineCodec, None


def _kafka07(inside: Inside) -> _Beginning:
    from kafkacodec.broker.dialects.kafka07 import Kafka07Codec, Kafka07Service
    from kafkacodec.dialects.kafka07.settings import BrokerSettings

    settings = BrokerSettings.parse(inside.config.kafka07)
    service = Kafka07Service(inside, settings)
    buffers = FrameBuffers(_KEPT_BYTES)
    return service, lambda: Kafka07Codec(buffers, settings.max_request_bytes), service.logs


_BEGINNINGS: dict[str, Callable[[Inside], _Beginning]] = {"kafka07": _kafka07, "line": _line}
