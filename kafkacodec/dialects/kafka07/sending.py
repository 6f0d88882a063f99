"""The engine of a producer: brokers from ZooKeeper, a connection to each, messages that leave together."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from kafkacodec.chance import RANDOM
from kafkacodec.datatypes import NamedTuple
from kafkacodec.dialects.connection import Connection, Dialer
from kafkacodec.dialects.kafka07.choosing import Target, choose
from kafkacodec.dialects.kafka07.clients import Engine
from kafkacodec.dialects.kafka07.exchange import dialer
from kafkacodec.dialects.kafka07.nodes import read_registry
from kafkacodec.dialects.kafka07.outbox import Dispatch, Outbox
from kafkacodec.dialects.kafka07.wire import RANDOM_PARTITION, check_topic
from kafkacodec.errors import BrokerError, ClientClosed, ConnectionFailed, DeadlineExceeded, KafkaCodecError
from kafkacodec.net.timers import DeadlineTimer
from kafkacodec.net.zookeeper import ZooKeeper

if TYPE_CHECKING:
    from kafkacodec.dialects.zookeeper import Registry

__all__ = ["Sender", "SenderOptions", "Sent"]

_log = logging.getLogger("kafkacodec.client")
_MORE_TRIES: Final = 3  # to find a partition on a broker that is there
_FIRST_PAUSE_MS: Final = 1.0
_CLOSING_SECONDS: Final = 30.0
_AGAIN_SECONDS: Final = 0.05  # before ZooKeeper is asked again


class Sent(NamedTuple):
    """The destination of a message; the protocol does not say whether the broker accepted it.

    Attributes:
        topic: its topic.
        broker: the broker's id.
        partition: -1 if the broker chose it.
    """

    topic: str
    broker: int
    partition: int


class SenderOptions(NamedTuple):
    """The options of a producer; see `kafkacodec.dialects.kafka07.aio.Producer`."""

    zookeeper: str | None
    brokers: Mapping[int, tuple[str, int]]
    max_queued: int
    connect_timeout_ms: float
    reconnect_interval: int
    session_timeout_ms: int


class Sender(Engine):
    """The engine of a producer.

    Args:
        options: of the producer.
        outbox: keeps messages until they are due.
        draw: a number below another, for messages without a key.
    """

    def __init__(self, options: SenderOptions, outbox: Outbox, draw: Callable[[int], int] = RANDOM.randrange) -> None:
        super().__init__()
        self._options, self._outbox, self._draw = options, outbox, draw
        self._room = asyncio.Semaphore(options.max_queued)
        self._starting = asyncio.Lock()
        self._zookeeper: ZooKeeper | None = None
        self._registry: Registry | None = None
        self._changes = 0
        self._topics: set[str] = set()
        self._links: dict[int, _Link] = {}
        self._sending: set[asyncio.Task[None]] = set()
        self._waiting: set[asyncio.Future[Sent]] = set()

    async def send(self, topic: str, value: bytes, key: str | None) -> asyncio.Future[Sent]:
        """Take a message; the future has its destination, or the error."""
        self._check()
        await self._start()
        check_topic(topic)
        target = await self._target(topic, key)
        await self._room.acquire()
        try:
            self._check()
            delivery: asyncio.Future[Sent] = self._loop.create_future()
            enough = self._outbox.add(target, topic, value, (delivery, Sent(topic, *target)), self._now)
        except BaseException:
            self._room.release()
            raise
        self._waiting.add(delivery)
        delivery.add_done_callback(self._done)
        if enough:
            self._send_due()
        else:
            self._set_timer()
        return delivery

    async def flush(self) -> None:
        """Send everything, and wait for the outcome."""
        self._send_due(everything=True)
        while self._waiting:
            await asyncio.wait(self._waiting)

    async def close(self) -> None:
        """Send everything, then close all connections."""
        if self.closed:
            return
        self.closed = True
        if self.loop is None:
            return
        await self.flush()
        self._timer.cancel()
        await asyncio.gather(*(link.finish() for link in self._links.values()))
        if self._zookeeper is not None:
            await self._zookeeper.close()

    @property
    def _now(self) -> float:
        return self._loop.time() * 1000

    def _check(self) -> None:
        if self.closed:
            raise ClientClosed("the producer is closed")

    async def _start(self) -> None:
        async with self._starting:
            if self.loop is not None:
                return
            self._loop = asyncio.get_running_loop()
            self._timer = DeadlineTimer(self._loop, self._send_due)
            if self._options.zookeeper is not None:
                zookeeper = ZooKeeper(
                    self._options.zookeeper,
                    session_timeout_ms=self._options.session_timeout_ms,
                    connection_timeout_ms=int(self._options.connect_timeout_ms),
                )
                zookeeper.changed = lambda path: self._forget()
                zookeeper.renewed = self._forget
                try:
                    await zookeeper.start()
                except KafkaCodecError:
                    await zookeeper.close()
                    raise
                self._zookeeper = zookeeper
            self.loop = self._loop

    # Brokers

    def _forget(self) -> None:
        """Something has changed: ZooKeeper is read before the next message."""
        self._registry = None
        self._changes += 1

    async def _target(self, topic: str, key: str | None) -> Target:
        if self._zookeeper is None:
            brokers = sorted(self._options.brokers)
            return Target(brokers[self._draw(len(brokers))], RANDOM_PARTITION)
        for _ in range(1 + _MORE_TRIES):
            registry = self._registry
            if topic not in self._topics or registry is None:
                self._topics.add(topic)
                changes = self._changes
                registry = await self._read(self._zookeeper)
                self._registry = registry if changes == self._changes else None
            target = choose(registry, topic, key, self._draw)
            if target is not None:
                node = registry.brokers[target.broker]
                self._link(target.broker, (node.host, node.port))
                return target
            self._forget()
        raise BrokerError(f"topic {topic!r}: the broker of the partition is not registered")

    async def _read(self, zookeeper: ZooKeeper) -> Registry:
        """The brokers and topics; what a lost connection ends is asked again, as long as connecting may take."""
        limit = self._options.connect_timeout_ms / 1000
        try:
            async with asyncio.timeout(limit):
                while True:
                    with suppress(ConnectionFailed):
                        return await read_registry(zookeeper, topics=self._topics)
                    await asyncio.sleep(_AGAIN_SECONDS)
        except TimeoutError:
            reason = f"ZooKeeper at {self._options.zookeeper} has not answered within {limit:g} s"
            raise DeadlineExceeded(reason, sent=False) from None

    def _link(self, broker: int, address: tuple[str, int]) -> _Link:
        link = self._links.get(broker)
        if link is None or link.address != address:
            link = self._links[broker] = _Link(address, self._options)
        return link

    # Sending

    def _send_due(self, *, everything: bool = False) -> None:
        if self.loop is None:
            return
        for dispatch in self._outbox.take(self._now, everything=everything):
            for (delivery, _), error in dispatch.refused:
                delivery.set_exception(error)
            if dispatch.waiters:
                task = asyncio.ensure_future(self._dispatch(dispatch))
                self._sending.add(task)
                task.add_done_callback(self._sending.discard)
        self._set_timer()

    async def _dispatch(self, dispatch: Dispatch) -> None:
        link = self._links.get(dispatch.broker) or self._link(dispatch.broker, self._options.brokers[dispatch.broker])
        try:
            await link.send(dispatch.frame)
        except KafkaCodecError as error:
            for delivery, _ in dispatch.waiters:
                delivery.set_exception(error)
        else:
            for delivery, sent in dispatch.waiters:
                delivery.set_result(sent)

    def _set_timer(self) -> None:
        deadline = self._outbox.next_deadline()
        if deadline is not None:
            self._timer.set(deadline)

    def _done(self, delivery: asyncio.Future[Sent]) -> None:
        self._waiting.discard(delivery)
        self._room.release()
        if not delivery.cancelled():
            delivery.exception()  # nobody may await it


class _Link:
    """The connection to a broker. Requests leave in order; after a number of requests it reconnects."""

    def __init__(self, address: tuple[str, int], options: SenderOptions) -> None:
        self.address, self._options = address, options
        self._dialer: Dialer = dialer(address, options.connect_timeout_ms)
        self._turn = asyncio.Lock()
        self._connection: Connection | None = None
        self._requests = 0

    async def send(self, frame: bytes) -> None:
        """Write a request. Raises ConnectionFailed, DeadlineExceeded."""
        async with self._turn:
            connection = self._connection
            if connection is not None and not connection.is_open:
                _log.warning("%s has closed the connection: it may have refused a message", self._dialer.name)
            if connection is not None and self._requests >= self._options.reconnect_interval:
                await connection.finish(_CLOSING_SECONDS)
            if connection is None or not connection.is_open:
                connection = self._connection = await self._connected()
                self._requests = 0
            self._requests += 1
            connection.tell(frame)
            await asyncio.sleep(0)  # it is written
            await connection.writable()

    async def finish(self) -> None:
        """Close the connection after the broker has taken all written bytes."""
        async with self._turn:
            if self._connection is not None:
                await self._connection.finish(_CLOSING_SECONDS)
            self._dialer.close()

    async def _connected(self) -> Connection:
        """A connection; it is tried again, after ever longer pauses, until the time for connecting is over."""
        loop = asyncio.get_running_loop()
        end = loop.time() + self._options.connect_timeout_ms / 1000
        pause = _FIRST_PAUSE_MS / 1000
        while True:
            try:
                return await self._dialer.connected()
            except ConnectionFailed:
                if loop.time() + pause > end:
                    raise
            await asyncio.sleep(pause)
            pause *= 10


def broker_list(brokers: str | Iterable[str]) -> dict[int, tuple[str, int]]:
    """Brokers from ``ID:HOST:PORT,...``. Raises ValueError."""
    found: dict[int, tuple[str, int]] = {}
    for text in brokers.split(",") if isinstance(brokers, str) else brokers:
        number, _, rest = text.strip().partition(":")
        host, _, port = rest.rpartition(":")
        if not (number.isascii() and number.isdigit() and host and port.isascii() and port.isdigit()):
            raise ValueError(f"brokers: {text!r} is not ID:HOST:PORT")
        found[int(number)] = host.strip("[]"), int(port)
    if not found:
        raise ValueError("brokers is empty: pass ID:HOST:PORT of at least one")
    return found
