"""The part of the admin client for asyncio that finds topics and offsets, without the modules of the other parts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Final, Self, Unpack

from kafkacodec.client.admin.job import Job
from kafkacodec.client.admin.offsets import OffsetOperations
from kafkacodec.client.admin.topics import TopicOperations
from kafkacodec.client.core.cluster import Cluster
from kafkacodec.client.core.foreign_options import instead_of
from kafkacodec.client.driver.network import Network
from kafkacodec.client.lifecycle import AsyncClient, shown
from kafkacodec.client.options import ClientOptions, ClientSettings, option_defaults
from kafkacodec.client.security.config_words import from_config
from kafkacodec.datatypes import dataclass
from kafkacodec.errors import ClientClosed
from kafkacodec.signatures import shows_options

__all__ = ["AdminSettings", "TopicAdmin"]

_TOPICS_KEPT_S: Final = 5.0  # without calls; so calls in a row do not each wait for metadata


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class AdminSettings(ClientSettings):
    """The checked options of an admin client: those of all clients."""


class TopicAdmin(TopicOperations, OffsetOperations, AsyncClient):
    """An `Admin` with the calls on topics and offsets alone, for commands that look them up before they do their work.

    Args:
        bootstrap_servers, **options: as those of `Admin`.

    Raises:
        TypeError, ValueError: an option is unknown or has a wrong value.
    """

    @shows_options(ClientOptions, AdminSettings, instead_of)
    def __init__(self, bootstrap_servers: str | Iterable[str], **options: Unpack[ClientOptions]) -> None:
        self._settings = AdminSettings(bootstrap_servers=bootstrap_servers, **options)
        self._begin()
        self._closed = False
        self._running = 0
        self._topics: set[str] = set()  # whose metadata calls needed
        self._idle: asyncio.TimerHandle | None = None

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """A client from options with dotted names, such as ``{"bootstrap.servers": "localhost:9092"}``."""
        return from_config(cls, config, option_defaults(AdminSettings))

    def __repr__(self) -> str:
        return shown(self, self._settings, closed=self._closed)

    async def close(self) -> None:
        """Close all connections. Waiting calls end with ClientClosed.

        A second call waits for the first, or does nothing.
        """
        if self._network is not None and not self._network.closed:
            self._network.check()
        self._closed = True
        if self._idle is not None:
            self._idle.cancel()
        if self._network is not None:
            await self._network.close()

    async def __aenter__(self) -> Self:
        self._started()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    def metrics(self) -> dict[str, float]:
        """Return the client's metrics by name; `kafkacodec.client.METRICS` describes them."""
        return {} if self._network is None else self._network.metrics.snapshot()

    def _started(self) -> Network:
        if self._closed:
            raise ClientClosed("the client is closed")
        if self._network is None:
            self._network = Network(self._settings)
        self._network.check()
        return self._network

    @property
    def _cluster(self) -> Cluster:
        return self._started().cluster

    def _now(self) -> float:
        return self._started().now()

    async def _run(self, job: Job[Any, Any]) -> None:
        if job.done:
            return
        network = self._started()
        self._running += 1
        try:
            await network.run(job, lambda: job.done, job.deadline - network.now())
        finally:
            self._running -= 1
            job.release()
            self._topics |= job.topics
            if self._idle is not None:
                self._idle.cancel()
            if self._topics and not self._closed:
                self._idle = network.loop.call_later(
                    _TOPICS_KEPT_S, self._hold.calling(TopicAdmin._forget_topics), network.cluster
                )

    def _forget_topics(self, cluster: Cluster) -> None:
        """Keep no metadata for finished calls, so that the client does not ask for deleted topics again and again.

        A running call does this when it ends.
        """
        if not self._running:
            cluster.unwant(self._topics)
            self._topics.clear()
