"""The engine of a consumer in a group: ZooKeeper, a connection to each broker, fetched messages."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import time
import uuid
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from kafkacodec.datatypes import NamedTuple
from kafkacodec.dialects.kafka07.clients import Engine
from kafkacodec.dialects.kafka07.exchange import dialer
from kafkacodec.dialects.kafka07.fetching import Begun, Chunk, Failed, Fetches, Reset
from kafkacodec.dialects.kafka07.nodes import offset_node, read_offsets, read_registry
from kafkacodec.dialects.kafka07.positions import Place, Positions
from kafkacodec.dialects.kafka07.rebalance import (
    Claim,
    Member,
    Read,
    ReadOffsets,
    Release,
    Start,
    Step,
    Stop,
    Wait,
    rebalance,
)
from kafkacodec.dialects.zookeeper import Static, Subscription
from kafkacodec.errors import BrokerError, ClientClosed, ConnectionFailed, KafkaCodecError
from kafkacodec.net.zookeeper import NodeExists, ZooKeeper

if TYPE_CHECKING:
    from kafkacodec.dialects.zookeeper import Registry

__all__ = ["Group", "GroupOptions", "consumer_name"]

_log = logging.getLogger("kafkacodec.client")
_PAUSE_SECONDS: Final = 1.0  # before a broker or ZooKeeper that failed is tried again


class GroupOptions(NamedTuple):
    """The options of a consumer; see `kafkacodec.dialects.kafka07.aio.Consumer`."""

    zookeeper: str
    group: str
    consumer_id: str
    subscription: Subscription
    auto_offset_reset: Reset
    auto_commit: bool
    auto_commit_interval_ms: float
    fetch_size: int
    max_fetch_size: int
    fetch_backoff_ms: float
    rebalance_retries: int
    rebalance_backoff_ms: float
    request_timeout_ms: float
    session_timeout_ms: int
    connection_timeout_ms: int


def consumer_name() -> str:
    """A new name for a consumer, as clients of 0.7 make it: host, time in ms and 8 hex digits."""
    return f"{socket.gethostname()}-{time.time_ns() // 1_000_000}-{uuid.uuid4().hex[:8]}"


class Group(Engine):
    """The engine of a consumer.

    Args:
        options: of the consumer.
    """

    def __init__(self, options: GroupOptions) -> None:
        super().__init__()
        self._options = options
        self._member = Member(options.group, f"{options.group}_{options.consumer_id}", options.subscription)
        self._positions = Positions()
        self._starting = asyncio.Lock()
        self._committing = asyncio.Lock()
        self._due = asyncio.Event()  # something has changed: a rebalance
        self._moved = asyncio.Event()  # something was fetched, or has failed
        self._taken = asyncio.Event()  # something was handed out
        self._losses = self._joined_after = 0  # of sessions, and those before it joined last
        self._registry: Registry | None = None
        self._chunks: deque[Chunk] = deque()
        self._failed: deque[KafkaCodecError] = deque()  # what partitions cannot be read on for
        self._fetching: list[asyncio.Task[None]] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._zookeeper: ZooKeeper

    @property
    def consumer_id(self) -> str:
        """The id of the member."""
        return self._member.consumer_id

    @property
    def owned(self) -> list[Place]:
        """The partitions that it owns."""
        return [Place(node.topic, node.broker_id, node.partition) for node in self._member.owned]

    @property
    def session(self) -> tuple[int, bytes] | None:
        """The id and the password of the session in ZooKeeper."""
        return self._zookeeper.session if self.loop is not None else None

    async def start(self) -> None:
        """Join the group. Raises BrokerError: it got no share; KafkaCodecError: ZooKeeper cannot be reached."""
        async with self._starting:
            self._check()
            if self.loop is not None:
                return
            options = self._options
            self._zookeeper = zookeeper = ZooKeeper(
                options.zookeeper,
                session_timeout_ms=options.session_timeout_ms,
                connection_timeout_ms=options.connection_timeout_ms,
            )
            zookeeper.changed = lambda path: self._due.set()
            zookeeper.renewed = self._begin_anew
            try:
                await zookeeper.start()
                await self._register()
                await self._rebalance()
            except BaseException:
                await self._stop_fetching()
                await zookeeper.close()
                raise
            self.loop = asyncio.get_running_loop()
            self._tasks = [asyncio.ensure_future(self._live())]
            if options.auto_commit:
                self._tasks.append(asyncio.ensure_future(self._commit_at_times()))

    async def take(self, timeout: float) -> Chunk | None:
        """Return the next messages of a partition, and count the previous ones as consumed. Raises errors of
        partitions.
        """
        await self.start()
        self._positions.consume()
        loop = asyncio.get_running_loop()
        end = loop.time() + timeout
        while True:
            self._check()
            if self._chunks:
                chunk = self._chunks.popleft()
                self._positions.hand_out(chunk.place, chunk.following)
                self._taken.set()
                return chunk
            if self._failed:
                raise self._failed.popleft()
            self._moved.clear()
            try:
                async with asyncio.timeout_at(end):
                    await self._moved.wait()
            except TimeoutError:
                return None

    async def commit(self, *, handed_out: bool = True) -> None:
        """Commit consumed and returned messages. Raises ConnectionFailed."""
        if handed_out:
            self._positions.consume()
        async with self._committing:
            for place, offset in self._positions.to_commit().items():
                await self._write_offset(place, offset)

    async def close(self) -> None:
        """Commit returned messages, if it commits automatically, and leave the group."""
        if self.closed:
            return
        self.closed = True
        self._moved.set()
        if self.loop is None:
            return
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._stop_fetching()
        if self._options.auto_commit:
            with contextlib.suppress(KafkaCodecError):
                await self.commit()
        await self._zookeeper.close()

    def _check(self) -> None:
        if self.closed:
            raise ClientClosed("the consumer is closed")

    # Membership

    def _begin_anew(self) -> None:
        _log.info("the ZooKeeper session of %s was lost; joining again", self.consumer_id)
        self._losses += 1
        self._member.owned = ()
        self._due.set()

    async def _register(self) -> None:
        try:
            await self._zookeeper.create(self._member.node.path, self._member.node.data)
        except NodeExists as error:
            raise BrokerError(f"consumer {self.consumer_id!r} already exists: {error}") from None

    async def _live(self) -> None:
        """Rebalance whenever something has changed."""
        while True:
            await self._due.wait()
            self._due.clear()
            try:
                losses = self._losses
                if losses != self._joined_after:
                    await self._register()
                    self._joined_after = losses
                await self._rebalance()
            except KafkaCodecError as error:
                _log.warning("%s; trying again", error)
                self._due.set()
                await asyncio.sleep(_PAUSE_SECONDS)

    async def _rebalance(self) -> None:
        """Execute the steps of a rebalance. Raises BrokerError."""
        options = self._options
        steps = rebalance(self._member, retries=options.rebalance_retries, backoff_ms=options.rebalance_backoff_ms)
        try:
            step = next(steps)
            while True:
                try:
                    answer = await self._carry_out(step)
                except KafkaCodecError as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(answer)
        except StopIteration:
            return

    async def _carry_out(self, step: Step) -> Any:
        match step:
            case Read():
                return await self._read()
            case ReadOffsets(places):
                return await read_offsets(self._zookeeper, self._options.group, places)
            case Stop():
                await self._stop_fetching()
                if self._options.auto_commit:
                    with contextlib.suppress(ConnectionFailed):
                        await self.commit(handed_out=False)
            case Release(nodes):
                for node in nodes:
                    await self._zookeeper.delete(node.path)
            case Claim(node):
                try:
                    await self._zookeeper.create(node.path, node.data)
                except NodeExists:
                    return False
                return True
            case Start(offsets):
                self._start_fetching(offsets)
            case Wait(milliseconds, reason):
                _log.info("%s: %s", self.consumer_id, reason)
                await asyncio.sleep(milliseconds / 1000)
        return None

    async def _read(self) -> Registry:
        subscription = self._options.subscription
        topics = sorted(subscription.topics) if isinstance(subscription, Static) else None
        self._registry = found = await read_registry(self._zookeeper, topics=topics, group=self._options.group)
        return found

    # Offsets

    async def _write_offset(self, place: Place, offset: int) -> None:
        node = offset_node(self._options.group, place, offset)
        await self._zookeeper.write(node.path, node.data)
        self._positions.committed(place, offset)

    async def _commit_at_times(self) -> None:
        while True:
            await asyncio.sleep(self._options.auto_commit_interval_ms / 1000)
            try:
                await self.commit(handed_out=False)
            except KafkaCodecError as error:
                _log.warning("%s cannot commit now: %s", self.consumer_id, error)

    # Fetching

    def _start_fetching(self, offsets: Mapping[Place, int | None]) -> None:
        self._positions.assign(offsets)
        self._failed.clear()
        brokers: dict[int, list[Place]] = {}
        for place in offsets:
            brokers.setdefault(place.broker, []).append(place)
        registered = {} if self._registry is None else self._registry.brokers
        for broker, places in brokers.items():
            node = registered.get(broker)
            if node is None:  # it is awaited: its return is a change
                _log.warning("%s: broker %d is not registered; its partitions are not read", self.consumer_id, broker)
            else:
                self._fetching.append(asyncio.ensure_future(self._fetch((node.host, node.port), places)))

    async def _stop_fetching(self) -> None:
        fetching, self._fetching = self._fetching, []
        for task in fetching:
            task.cancel()
        await asyncio.gather(*fetching, return_exceptions=True)
        self._chunks.clear()

    async def _fetch(self, address: tuple[str, int], places: list[Place]) -> None:
        """Fetch the partitions of a broker as long as it is registered."""
        while True:
            fetches = Fetches(
                places,
                self._positions.next_offset,
                reset=self._options.auto_offset_reset,
                fetch_size=self._options.fetch_size,
                max_fetch_size=self._options.max_fetch_size,
            )
            server = dialer(address, self._options.request_timeout_ms)
            try:
                while True:
                    await self._round(fetches, server)
            except KafkaCodecError as error:
                _log.info("%s: %s", self.consumer_id, error)
                await asyncio.sleep(_PAUSE_SECONDS)
            finally:
                server.close()

    async def _round(self, fetches: Fetches, server: Any) -> None:
        """One request and its answer; a pause if there was nothing."""
        self._taken.clear()
        request = fetches.next([chunk.place for chunk in self._chunks])
        if request is None:
            await self._taken.wait()
            return
        found = fetches.answered(request, await server.ask(request))
        for one in found:
            match one:
                case Chunk():
                    self._keep(one)
                case Begun(place, offset, again):
                    self._positions.begin(place, offset)
                    if again:
                        await self._write_offset(place, offset)
                case Failed(_, error):
                    self._failed.append(error)
        self._moved.set()
        if fetches.is_idle:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._options.fetch_backoff_ms / 1000):
                    await self._taken.wait()

    def _keep(self, chunk: Chunk) -> None:
        if len(chunk.columns):
            self._chunks.append(chunk)
        else:  # a container of nothing
            self._positions.begin(chunk.place, chunk.following)
