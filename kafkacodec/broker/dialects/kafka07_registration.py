"""A broker of Kafka 0.7 in ZooKeeper: its address, and the numbers of partitions of its topics."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from kafkacodec.dialects.zookeeper import BrokerNode, TopicNode
from kafkacodec.errors import EncodeError, KafkaCodecError
from kafkacodec.net.addresses import EVERYWHERE
from kafkacodec.net.zookeeper import NodeExists, ZooKeeper

if TYPE_CHECKING:
    from kafkacodec.dialects.kafka07.settings import BrokerSettings

__all__ = ["Registration"]

_log = logging.getLogger("kafkacodec.broker")
_PAUSE_SECONDS: Final = 1.0  # before what could not be registered is tried again


class Registration:
    """The nodes of a broker, which exist while it runs; after a lost session it creates them again.

    Args:
        settings: the address of ZooKeeper, and how long a session lasts without a sign of life.
        broker_id: the broker's.
        partitions: returns the number of partitions of a topic.
        topics: the existing topics.
    """

    def __init__(
        self, settings: BrokerSettings, broker_id: int, partitions: Callable[[str], int], topics: Iterable[str]
    ) -> None:
        self._settings, self._id, self._partitions = settings, broker_id, partitions
        self._topics = dict.fromkeys(sorted(topics))
        self._zookeeper: ZooKeeper | None = None
        self._address = ("", 0)
        self._waiting: dict[str, None] = {}  # topics that are not registered yet
        self._task: asyncio.Task[None] | None = None
        self._losses = self._registered_after = 0  # of sessions, and those before it was registered last

    @property
    def session(self) -> tuple[int, bytes] | None:
        """The id and the password of the session in ZooKeeper."""
        return None if self._zookeeper is None else self._zookeeper.session

    async def start(self, address: tuple[str, int]) -> None:
        """Register the broker at an address, and its topics.

        Raises:
            OSError: ZooKeeper is not reached; or another broker has this id, or has had it until just now.
            ImportError: kazoo is not installed.
        """
        host = self._settings.host or address[0]
        self._address = (_own_address() if host in EVERYWHERE else host, address[1])
        self._zookeeper = zookeeper = ZooKeeper(
            self._settings.zookeeper,
            session_timeout_ms=self._settings.session_timeout_ms,
            connection_timeout_ms=self._settings.connection_timeout_ms,
        )
        zookeeper.renewed = self._begin_anew
        await zookeeper.start()
        try:
            await self._register_broker(zookeeper)
        except NodeExists as error:
            reason = f"broker {self._id} is in ZooKeeper already ({error}): it runs, or its session ends soon"
            raise OSError(errno.EADDRINUSE, reason) from None
        except EncodeError as error:
            raise OSError(errno.EINVAL, f"hostname: {error}") from None
        self._waiting = dict(self._topics)
        await self._register_topics(zookeeper)

    def topic(self, name: str) -> None:
        """Register a new topic, soon."""
        self._topics[name] = self._waiting[name] = None
        self._begin()

    async def close(self) -> None:
        """End the session: all nodes go at once."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        if self._zookeeper is not None:
            await self._zookeeper.close()

    def _begin_anew(self) -> None:
        _log.info("the ZooKeeper session was lost; registering broker %d again", self._id)
        self._losses += 1
        self._waiting = dict(self._topics)
        self._begin()

    def _begin(self) -> None:
        if self._zookeeper is not None and (self._task is None or self._task.done()):
            self._task = asyncio.ensure_future(self._register(self._zookeeper))

    async def _register(self, zookeeper: ZooKeeper) -> None:
        """Register missing nodes; retry until it succeeds."""
        while self._losses != self._registered_after or self._waiting:
            try:
                losses = self._losses
                if losses != self._registered_after:
                    await self._register_broker(zookeeper)
                    self._registered_after = losses
                await self._register_topics(zookeeper)
            except (NodeExists, KafkaCodecError) as error:
                _log.warning("broker %d cannot be registered in ZooKeeper now: %s", self._id, error)
                await asyncio.sleep(_PAUSE_SECONDS)

    async def _register_broker(self, zookeeper: ZooKeeper) -> None:
        host, port = self._address
        node = BrokerNode(self._id, f"{host}-{time.time_ns() // 1_000_000}", host, port)
        await zookeeper.create(node.path, node.data)

    async def _register_topics(self, zookeeper: ZooKeeper) -> None:
        waiting = self._waiting  # others take its place if the session is lost meanwhile
        while waiting:
            name = next(iter(waiting))
            node = TopicNode(name, self._id, self._partitions(name))
            await zookeeper.create(node.path, node.data)
            waiting.pop(name, None)


def _own_address() -> str:
    """The address of this machine. Raises OSError: its name has none."""
    name = socket.gethostname()
    try:
        return socket.gethostbyname(name)
    except OSError as error:
        reason = f"the name of this machine, {name}, has no address: set hostname in config for clients to connect to"
        raise OSError(errno.EADDRNOTAVAIL, f"{reason} ({error.strerror})") from None
