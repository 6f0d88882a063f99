"""The checked arguments of a broker, for its handles in threads and event loops."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

from kafkacodec.arguments import limit, one_of, path_texts, require_int
from kafkacodec.broker.clock import Clock
from kafkacodec.broker.dialects.inside import Replication
from kafkacodec.broker.listening import listener_urls
from kafkacodec.broker.options import SHARED, STANDARD_AUTHORIZER, BrokerConfig
from kafkacodec.broker.security import Security, Tokens
from kafkacodec.broker.serving import Serving
from kafkacodec.log.growing.identity import known_node
from kafkacodec.net.addresses import address_text
from kafkacodec.temporary import temporary_directory

if TYPE_CHECKING:
    import ssl

__all__ = ["ClockKind", "Data", "FlushKind", "Opening", "Release"]

ClockKind: TypeAlias = Literal["running", "manual"]
"""Kinds of a broker's clock: it follows the host, or only `advance` moves it."""

FlushKind: TypeAlias = Literal["system", "always"]
"""Where acknowledged records are: with the operating system, or on the disk."""

_log = logging.getLogger("kafkacodec.broker")
_FIRST: Final = 1  # the id of the broker of a new directory
_FACTOR: Final = 3  # of topics of several brokers, as of the internal ones

Release: TypeAlias = Literal["4", "3.9"]
"""The release of Apache Kafka whose clients the broker serves: 3.9 also serves clients of 0.8 to 0.11."""

Data: TypeAlias = str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | None
"""A data directory, or several read-only ones."""

_FROZEN: Final = {"auto.create.topics.enable": False, "offsets.retention.minutes": (1 << 31) - 1}


_AUTHORIZER: Final = "authorizer.class.name"


class Opening:
    """The arguments of `kafkacodec.broker.serve`, checked. Raises TypeError, ValueError."""

    def __init__(
        self, data: Data, *, listen: str | Iterable[str], topics: Mapping[str, int] | Iterable[str],
        config: Mapping[str, Any] | None, flush: FlushKind, node_id: int | None, tls: ssl.SSLContext | None,
        clock: str, brokers: int, release: str, users: Mapping[str, str] | None, tokens: Tokens, read_only: bool,
        authorizer: bool, replicas: Iterable[str],
    ) -> None:  # fmt: skip
        one_of("clock", clock, get_args(ClockKind))
        one_of("release", release, get_args(Release))
        limit("brokers", brokers, 1)
        if node_id is not None:
            require_int("node_id", node_id, 0, (1 << 31) - 1)
        paths = _paths(data)
        if read_only and (not paths or topics or brokers > 1):
            raise ValueError("read_only serves existing data as one broker: pass data, and neither topics nor brokers")
        if len(paths) > 1 and not read_only:
            raise ValueError("several directories in data need read_only")
        self._frozen = paths if read_only else []
        self._serves_old = release == "3.9" or read_only
        self._data, self._clock = paths[0] if paths else None, clock
        self._security = Security(tls, _users(users), tokens)
        self._node_id, self._brokers = node_id, brokers
        factor = {"default.replication.factor": min(_FACTOR, brokers)}
        settings = {**(factor if brokers > 1 else {}), **({_AUTHORIZER: STANDARD_AUTHORIZER} if authorizer else {})}
        given = {**settings, **(config or {})}
        self._config = BrokerConfig({**given, **_FROZEN} if read_only else given, flush)
        if self._config.text(_AUTHORIZER) not in ("", STANDARD_AUTHORIZER):
            raise ValueError(f"config {_AUTHORIZER}: this broker has only {STANDARD_AUTHORIZER}")
        if not 1 <= self._config.number("default.replication.factor") <= brokers:
            raise ValueError(f"config default.replication.factor: the number of brokers is {brokers}")
        self._urls = listener_urls(listen)
        for url in self._urls:
            self._security.check(url)
            if url.protocol != "kafka" and (read_only or brokers > 1):
                raise ValueError(f"listen: {url.scheme}:// needs a single broker that is not read-only")
        self._check_settings({url.protocol for url in self._urls})
        self._only_kafka07 = all(url.protocol == "kafka07" for url in self._urls)
        self._replication = self._replicated(list(replicas))
        self._topics = _topics(topics)

    def serving(self, stack: ExitStack) -> Serving:
        """Make the broker without starting it; the stack removes a temporary directory at its end."""
        data = self._data
        path = data if data is not None else stack.enter_context(temporary_directory("kafka-"))
        clock = Clock(time.time() * 1000 if self._clock == "manual" else None)
        first = self._node_id if self._node_id is not None else known_node(path)
        first = _FIRST if first is None else first
        return Serving(
            path,
            self._config,
            range(first, first + self._brokers),
            clock,
            keeps=data is not None and not self._frozen,
            serves_old=self._serves_old,
            frozen=self._frozen,
            partitions=self._topics if self._only_kafka07 else None,
            replication=self._replication,
        )

    def _check_settings(self, protocols: set[str]) -> None:
        """Refuse settings of a protocol that no listener has."""
        for protocol, given in (("kafka07", self._config.kafka07), ("rewrite", self._config.rewrite)):
            unused = [name for name in given if name not in SHARED] if protocol not in protocols else []
            if unused:
                raise ValueError(f"config {unused[0]} has no effect without a {protocol}:// listener: leave it out")

    def _replicated(self, replicas: list[str]) -> Replication | None:
        """Check the brokers of the line protocol with the same partitions."""
        if not replicas:
            return None
        urls = listener_urls(replicas, "replicas", ("line",))
        if any(url.scheme != "line" for url in self._urls):
            raise ValueError("replicas need the line protocol: with them, listen takes only line:// URLs")
        twice = next((url for url in urls if urls.count(url) > 1), None)
        if twice is not None:
            raise ValueError(f"replicas has {twice.text()} twice: each broker has a place of its own")
        if len(urls) < 2 or self._node_id is None or not 0 <= self._node_id < len(urls):
            raise ValueError("replicas needs two or more URLs, and node_id is this broker's place among them, from 0")
        if self._data is None:
            raise ValueError("replicas need data, a directory that stays")
        in_sync = self._config.topic_defaults.get("min.insync.replicas", str(len(urls) // 2 + 1))
        if int(in_sync) > len(urls):
            raise ValueError(f"config min.insync.replicas={in_sync}: the number of brokers is {len(urls)}")
        return Replication(self._node_id, [(url.host, url.port) for url in urls], int(in_sync))

    async def start(self, serving: Serving) -> None:
        """Start it in the running loop. Raises OSError."""
        await serving.start(self._urls, {} if self._only_kafka07 else self._topics, self._security)
        among = self._replication
        if among is not None and among.addresses[among.broker_id][1] not in [port for _, port in serving.addresses]:
            place = f"{among.broker_id} of replicas, {address_text(among.addresses[among.broker_id])}"
            listeners = ", ".join(self.listeners(serving))
            _log.warning("others look for this broker at place %s, but it listens at %s", place, listeners)

    def listeners(self, serving: Serving) -> list[str]:
        """Return the bound URLs of a started broker, broker after broker."""
        urls = self._urls * self._brokers
        return [url.text(address) for url, address in zip(urls, serving.addresses, strict=True)]

    def bootstrap_servers(self, listeners: list[str]) -> str:
        """Host and port of the first listener for Kafka's clients of each broker; empty if there is none."""
        first = next((number for number, url in enumerate(self._urls) if url.protocol == "kafka"), None)
        of_kafka = [] if first is None else listeners[first :: len(self._urls)]
        return ",".join(listener.partition("://")[2] for listener in of_kafka)


def _topics(topics: Mapping[str, int] | Iterable[str]) -> dict[str, int]:
    """The number of partitions by name; 0 for the default."""
    if isinstance(topics, (str, bytes)):  # whose letters would be topics
        raise TypeError(f"topics must be a list of names or partitions by name, not {topics!r:.80}")
    if not isinstance(topics, Mapping):
        topics = list(topics)
        for name in topics:
            if not isinstance(name, str):
                raise TypeError(f"topics must be names, or partitions by name as in {{'orders': 3}}, not {name!r:.80}")
        return dict.fromkeys(topics, 0)
    return {name: limit(f"topics: the partitions of {name!r}", number, 1) for name, number in topics.items()}


def _users(users: Mapping[str, str] | None) -> dict[str, str]:
    """Passwords by name."""
    if users is not None and not isinstance(users, Mapping):  # not shown: it may have passwords
        raise TypeError(f"users must be passwords by name, as in {{'alice': 'secret'}}, not a {type(users).__name__}")
    return dict(users or {})


def _paths(data: Data) -> list[str]:
    if data is None:
        return []
    return path_texts(data, "data")
