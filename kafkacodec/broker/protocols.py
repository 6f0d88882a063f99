"""Listeners of other protocols: one service for each, over the same topics."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from kafkacodec.broker.host.limits import MAX_BYTES
from kafkacodec.broker.host.runner import Runner, Store
from kafkacodec.datatypes import NamedTuple
from kafkacodec.errors import EncodeError
from kafkacodec.net.frames import FrameBuffers
from kafkacodec.net.service import Service
from kafkacodec.records.decode import decode

if TYPE_CHECKING:
    from kafkacodec.broker.dialects.inside import Inside, OwnTopics, Registering, Replication, Working
    from kafkacodec.broker.listening import Url
    from kafkacodec.broker.topics.topics import Topics
    from kafkacodec.net.service import Codec
    from kafkacodec.records.columns import RecordColumns

__all__ = ["Dialect", "Dialects"]

_KEPT_BYTES: Final = 16 << 20
_RECEIVED_BYTES: Final = 1 << 16


class Dialect(Service, Protocol):
    """A service of another protocol."""

    def close(self, *, keeps: bool) -> None:
        """Close its files, and sync them if the directory is kept. Raises OSError."""


class _Begun(NamedTuple):
    """A service with its codec, its store, its registration and its background work.

    Attributes:
        topics: its topics outside the catalog, if it has any.
    """

    service: Dialect
    codec: Callable[[], Codec]
    store: Store | None = None
    registration: Registering | None = None
    worker: Working | None = None
    topics: OwnTopics | None = None


class Owner(NamedTuple):
    """Topics of a service's own, for the broker's handle; what runs it, and its logs."""

    topics: OwnTopics
    runner: Runner
    store: Store

    def read(self, topic: str) -> Callable[[], RecordColumns]:
        """Return a function that decodes the visible messages of a topic. Raises KeyError."""
        from kafkacodec.dialects.kafka07.message_set import decode_log

        if not self.topics.has_topic(topic):
            raise KeyError(f"there is no topic {topic!r}")
        return partial(decode_log, self.topics.read(topic))

    async def append(self, topic: str, number: int, data: bytes) -> int:
        """Append the values of batches, since messages have only values. Raises KeyError, EncodeError, OSError."""
        payloads = []
        for record in decode(data, columns=None):
            if record.key is not None or record.headers or record.value is None:
                raise EncodeError(f"topic {topic!r}: a message of Kafka 0.7 has a value, and neither key nor headers")
            payloads.append(bytes(record.value))
        offset, effect = self.topics.write(topic, number, payloads, self.runner.now)
        self.runner.run(effect)
        log = (topic, number)
        if self.store.must_flush(log):
            done = asyncio.get_running_loop().create_future()
            self.runner.flush([log], lambda error: done.set_exception(error) if error else done.set_result(None))
            await done
        return offset


class Dialects:
    """The services of a broker's other protocols; the first listener of each starts it.

    Args:
        inside: the part of the broker that they use.
        topics: the store of their appends.
        loop: the event loop.
        keeps: whether the data directory is used again.
    """

    def __init__(self, inside: Inside, topics: Topics, loop: asyncio.AbstractEventLoop, *, keeps: bool) -> None:
        self._inside, self._topics, self._loop, self._keeps = inside, topics, loop, keeps
        self._begun: dict[str, tuple[_Begun, Runner]] = {}

    def answering(self, protocol: str) -> tuple[Runner, Callable[[], Codec]]:
        """Return the runner of a protocol's service, and a function that makes codecs. Raises OSError."""
        if protocol not in self._begun:
            begun = _BEGINNINGS[protocol](self._inside)
            self._begun[protocol] = begun, Runner(begun.service, begun.store or self._topics, self._loop)
        begun, runner = self._begun[protocol]
        return runner, begun.codec

    async def start(self, urls: Sequence[Url], addresses: Sequence[tuple[str, int]]) -> None:
        """Register services that need it, with the first of their bound addresses. Raises OSError, ImportError."""
        for protocol, (begun, _) in self._begun.items():
            if begun.registration is not None:
                number = next(i for i, url in enumerate(urls) if url.protocol == protocol)
                await begun.registration.start(addresses[number])

    def has_topic(self, name: str) -> bool:
        """Whether one of them has a topic outside the catalog."""
        return any(begun.topics is not None and begun.topics.has_topic(name) for begun, _ in self._begun.values())

    def tick(self) -> None:
        """Do what is due after the clock moved forward."""
        for begun, runner in self._begun.values():
            runner.run(begun.service.tick(runner.now))

    def owner(self, topic: str, urls: Sequence[Url]) -> Owner | None:
        """Whose a topic is, or would be, that is not in the catalog."""
        for begun, runner in self._begun.values():
            if begun.topics is not None and (begun.topics.has_topic(topic) or len({url.protocol for url in urls}) == 1):
                return Owner(begun.topics, runner, begun.store or self._topics)
        return None

    async def close(self) -> None:
        """End registrations and close files, and sync them if the directory is kept. Raises OSError."""
        for begun, _ in self._begun.values():
            if begun.registration is not None:
                await begun.registration.close()
            begun.service.close(keeps=self._keeps)

    def begin(self) -> None:
        """Start background work, once the topics are loaded."""
        for begun, runner in self._begun.values():
            if begun.worker is not None:
                begun.worker.begin(runner)

    async def end(self) -> None:
        """Stop background work, before connections and logs close."""
        for begun, _ in self._begun.values():
            if begun.worker is not None:
                await begun.worker.end()


def _line(inside: Inside) -> _Begun:
    if inside.replication is not None:
        return _replicated_line(inside, inside.replication)
    from kafkacodec.broker.dialects.line import LineCodec, LineService

    service = LineService(inside)
    return _Begun(service, partial(LineCodec, _shared_memory()), service.store)


def _replicated_line(inside: Inside, among: Replication) -> _Begun:
    from kafkacodec.broker.dialects.replicas.driver import Replicator
    from kafkacodec.broker.dialects.replicas.service import ReplicaCodec, ReplicaService

    count = len(among.addresses)
    service = ReplicaService(inside, among.broker_id, count, among.min_in_sync)
    replicator = Replicator(service, among.addresses, among.broker_id, count - among.min_in_sync + 1)
    return _Begun(service, partial(ReplicaCodec, _shared_memory()), service.store, worker=replicator)


def _shared_memory() -> memoryview:
    """Return memory in which all connections of a protocol receive."""
    return memoryview(bytearray(_RECEIVED_BYTES))


def _kafka07(inside: Inside) -> _Begun:
    from kafkacodec.broker.dialects.kafka07 import Kafka07Codec, Kafka07Service
    from kafkacodec.dialects.kafka07.settings import BrokerSettings

    settings = BrokerSettings.parse(inside.config.kafka07)
    service = Kafka07Service(inside, settings)
    buffers = FrameBuffers(_KEPT_BYTES, MAX_BYTES)
    registration = None
    if settings.zookeeper:
        from kafkacodec.broker.dialects.kafka07_registration import Registration

        registration = Registration(settings, inside.broker_id, service.partitions, service.logs.topics())
        service.new_topic = registration.topic
    return _Begun(
        service, lambda: Kafka07Codec(buffers, settings.max_request_bytes), service.logs, registration, topics=service
    )


def _rewrite(inside: Inside) -> _Begun:
    from kafkacodec.broker.dialects.rewrite import RewriteCodec, RewriteService
    from kafkacodec.broker.dialects.rewrite_peers import Peers
    from kafkacodec.dialects.rewrite.settings import ServerSettings

    settings = ServerSettings.parse(inside.config.rewrite)
    if settings.servers and inside.broker_id not in settings.servers:
        raise ValueError(f"config rewrite.servers: none of the servers has the id of this one, {inside.broker_id}")
    service = RewriteService(inside, settings)
    peers = Peers(service, settings.servers, inside.broker_id)
    return _Begun(service, partial(RewriteCodec, FrameBuffers(0, MAX_BYTES)), service.store, peers, peers)


_BEGINNINGS: dict[str, Callable[[Inside], _Begun]] = {"kafka07": _kafka07, "line": _line, "rewrite": _rewrite}
