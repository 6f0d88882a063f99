"""The part of the blocking admin client that finds topics and offsets, without the modules of the other parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Self, Unpack

from kafkacodec.client.aio import topic_admin as aio
from kafkacodec.client.core.foreign_options import instead_of
from kafkacodec.client.lifecycle import BlockingClient, blocking, owned
from kafkacodec.client.options import ClientOptions, option_defaults
from kafkacodec.client.security.config_words import from_config
from kafkacodec.net.loop import LoopThread
from kafkacodec.signatures import shows_options

__all__ = ["TopicAdmin"]


class TopicAdmin(BlockingClient):
    """An `Admin` with the calls on topics and offsets alone, for commands that look them up before they do their work.

    Args:
        bootstrap_servers, **options: as those of `Admin`.

    Raises:
        TypeError, ValueError: an option is unknown or has a wrong value.
    """

    _kind: type[aio.TopicAdmin] = aio.TopicAdmin

    @shows_options(ClientOptions, aio.AdminSettings, instead_of)
    def __init__(self, bootstrap_servers: str | Iterable[str], **options: Unpack[ClientOptions]) -> None:
        self._face = owned(self._kind(bootstrap_servers, **options))
        self._thread = LoopThread("kafkacodec admin client")

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """A client from options with dotted names, such as ``{"bootstrap.servers": "localhost:9092"}``."""
        return from_config(cls, config, option_defaults(aio.AdminSettings))

    def metrics(self) -> dict[str, float]:
        """Return the client's metrics by name; `kafkacodec.client.METRICS` describes them."""
        found: dict[str, float] = self._face.metrics()
        return found

    create_topics = blocking(aio.TopicAdmin.create_topics)
    delete_topics = blocking(aio.TopicAdmin.delete_topics)
    list_topics = blocking(aio.TopicAdmin.list_topics)
    describe_topics = blocking(aio.TopicAdmin.describe_topics)
    create_partitions = blocking(aio.TopicAdmin.create_partitions)
    delete_records = blocking(aio.TopicAdmin.delete_records)

    list_offsets = blocking(aio.TopicAdmin.list_offsets)
    list_group_offsets = blocking(aio.TopicAdmin.list_group_offsets)
    alter_group_offsets = blocking(aio.TopicAdmin.alter_group_offsets)
    delete_group_offsets = blocking(aio.TopicAdmin.delete_group_offsets)
