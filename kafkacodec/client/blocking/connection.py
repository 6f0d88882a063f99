"""Any message to any broker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Self, Unpack

from kafkacodec.client.aio import connection as aio
from kafkacodec.client.core.foreign_options import instead_of
from kafkacodec.client.lifecycle import BlockingClient, blocking, owned
from kafkacodec.client.options import ClientOptions, ClientSettings, option_defaults
from kafkacodec.client.security.config_words import from_config
from kafkacodec.net.loop import LoopThread
from kafkacodec.signatures import shows_options

__all__ = ["KafkaConnection"]


class KafkaConnection(BlockingClient):
    """Sends any messages of `kafkacodec.messages` to brokers, and returns the answers as they come.

    It connects, negotiates versions, authenticates, finds brokers, the controller and coordinators, and has one
    connection per broker. It does not retry: an error is a reply, and so is a response with error codes. A context
    manager. For one thread.

    Args:
        bootstrap_servers: ``host:port`` of some brokers, in one text with commas or as a list.
        **options: `kafkacodec.client.ClientSettings` describes them.

    Raises:
        TypeError, ValueError: an option is unknown or has a wrong value.
    """

    @shows_options(ClientOptions, ClientSettings, instead_of)
    def __init__(self, bootstrap_servers: str | Iterable[str], **options: Unpack[ClientOptions]) -> None:
        self._face = owned(aio.KafkaConnection(bootstrap_servers, **options))
        self._thread = LoopThread("kafkacodec connection")

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """A connection from options with dotted names, such as ``{"bootstrap.servers": "localhost:9092"}``."""
        return from_config(cls, config, option_defaults(ClientSettings))

    @property
    def pending(self) -> int:
        """The number of requests whose reply `poll` has not returned yet."""
        found: int = self._face.pending
        return found

    def metrics(self) -> dict[str, float]:
        """Return the connection's metrics by name; `kafkacodec.client.METRICS` describes them."""
        found: dict[str, float] = self._face.metrics()
        return found

    poll = blocking(aio.KafkaConnection.poll)
