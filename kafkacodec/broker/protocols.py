"""What answers at listeners of other protocols than Kafka's: one service for each, over the same topics."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from kafkacodec.broker.host.runner import Runner

if TYPE_CHECKING:
    from kafkacodec.broker.dialects.inside import Inside
    from kafkacodec.broker.topics.topics import Topics
    from kafkacodec.net.service import Codec, Service

__all__ = ["Dialects"]


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

    def answering(self, protocol: str) -> tuple[Runner, Callable[[], Codec]]:
        """What runs the service of a protocol, and what makes the codec of a connection. Raises OSError."""
        if protocol not in self._begun:
            service, codec = _BEGINNINGS[protocol](self._inside)
            self._begun[protocol] = Runner(service, self._topics, self._loop), codec
        return self._begun[protocol]


def _line(inside: Inside) -> tuple[Service, Callable[[], Codec]]:
    from kafkacodec.broker.dialects.line import LineCodec, LineService

    return LineService(inside), LineCodec


_BEGINNINGS: dict[str, Callable[[Inside], tuple[Service, Callable[[], Codec]]]] = {"line": _line}
