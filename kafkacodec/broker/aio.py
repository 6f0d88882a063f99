"""A broker in the running event loop: `serve` and its handle, for asyncio.

While a program computes without awaiting, a broker in its loop answers nobody. `kafkacodec.broker.serve` has its own
thread, and answers meanwhile.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from kafkacodec.broker.arguments import new_topic, written_batches
from kafkacodec.broker.injecting import AsyncInjection, new_rule
from kafkacodec.broker.opening import ClockKind, Data, FlushKind, Opening, Release
from kafkacodec.faces import names_statements
from kafkacodec.net.loop import LoopEnd
from kafkacodec.records.columns import RecordColumns
from kafkacodec.shown import repr_of
from kafkacodec.signatures import suggests_options

if TYPE_CHECKING:
    import ssl

    from kafkacodec.broker.kafka.request import Request
    from kafkacodec.broker.security import Tokens
    from kafkacodec.broker.statistics import Statistics

__all__ = ["Broker", "serve"]


@suggests_options
def serve(
    data: Data = None,
    *,
    listen: str | Iterable[str] = ("kafka://127.0.0.1:0",),
    topics: Mapping[str, int] | Iterable[str] = (),
    config: Mapping[str, Any] | None = None,
    flush: FlushKind = "system",
    node_id: int | None = None,
    tls: ssl.SSLContext | None = None,
    users: Mapping[str, str] | None = None,
    tokens: Tokens = None,
    authorizer: bool = False,
    clock: ClockKind = "running",
    brokers: int = 1,
    release: Release = "4",
    read_only: bool = False,
    replicas: Iterable[str] = (),
) -> Broker:
    """A Kafka broker in the running event loop: ``async with serve() as kafka``.

    It has the arguments and errors of `kafkacodec.broker.serve`, but starts, and raises OSError, at ``async with``.
    """
    return Broker(
        Opening(
            data,
            listen=listen,
            topics=topics,
            config=config,
            flush=flush,
            node_id=node_id,
            tls=tls,
            clock=clock,
            brokers=brokers,
            release=release,
            users=users,
            tokens=tokens,
            read_only=read_only,
            authorizer=authorizer,
            replicas=replicas,
        )
    )


@names_statements
class Broker:
    """A broker in an event loop, with the methods of `kafkacodec.broker.Broker` as coroutines.

    It stops at the end of its loop at the latest.

    Attributes:
        bootstrap_servers (str): host and port of the first ``kafka`` listener; of each broker if there are several.
        listeners (list[str]): the bound URLs, in the order of `listen`, broker after broker.
        data (str): the data directory.
    """

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._stack = ExitStack()
        self._runs = False
        self.data = self.bootstrap_servers = ""
        self.listeners: list[str] = []

    def __repr__(self) -> str:
        return repr_of(self, ", ".join(self.listeners) or "not started", self.data)

    async def __aenter__(self) -> Self:
        try:
            self._serving = self._opening.serving(self._stack)
            await self._opening.start(self._serving)
        except BaseException:
            self._stack.close()
            raise
        self._runs = True
        self._loop_end = LoopEnd(self.stop)
        self.data = os.path.abspath(self._serving.path)
        self.listeners = self._opening.listeners(self._serving)
        self.bootstrap_servers = self._opening.bootstrap_servers(self.listeners)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def stop(self) -> None:
        """As `kafkacodec.broker.Broker.stop`."""
        if self._runs:
            self._runs = False
            self._loop_end.cancel()
            with self._stack:
                await self._serving.stop()

    async def create_topic(self, name: str, partitions: int = 1, config: Mapping[str, Any] | None = None) -> None:
        """As `kafkacodec.broker.Broker.create_topic`."""
        await self._serving.create_topic(*new_topic(name, partitions, config))

    async def records(self, topic: str) -> RecordColumns:
        """As `kafkacodec.broker.Broker.records`."""
        return await asyncio.to_thread(await self._serving.read(topic))

    async def write(self, topic: str, table: Any, *, partition: int = 0) -> int:
        """As `kafkacodec.broker.Broker.write`."""
        data = await asyncio.to_thread(written_batches, topic, table, partition, self._serving.clock.now())
        return await self._serving.append(topic, partition, data)

    async def statistics(self) -> Statistics:
        """As `kafkacodec.broker.Broker.statistics`."""
        return await self._serving.statistics()

    async def leader(self, topic: str, partition: int = 0) -> int:
        """As `kafkacodec.broker.Broker.leader`."""
        return await self._serving.leader(topic, partition)

    async def move_leader(self, topic: str, partition: int, to: int) -> None:
        """As `kafkacodec.broker.Broker.move_leader`."""
        await self._serving.move_leader(topic, partition, to)

    async def stop_broker(self, broker: int) -> None:
        """As `kafkacodec.broker.Broker.stop_broker`."""
        await self._serving.stop_broker(broker)

    async def start_broker(self, broker: int) -> None:
        """As `kafkacodec.broker.Broker.start_broker`."""
        await self._serving.start_broker(broker)

    async def inject(
        self, api: str, error: str | int | None = None, *, times: int | None = 1, delay: float = 0.0,
        drop: bool = False, close: bool = False, after: bool = False, when: Callable[[Request], bool] | None = None,
    ) -> AsyncInjection:  # fmt: skip
        """As `kafkacodec.broker.Broker.inject`; the handle is an asynchronous context."""
        rule = new_rule(api, error, times, delay, drop, close, after, when)
        injection = AsyncInjection(rule, lambda: self._serving.remove(rule))
        await self._serving.inject(rule)
        return injection

    async def pause(self) -> None:
        """As `kafkacodec.broker.Broker.pause`."""
        await self._serving.pause()

    async def resume(self) -> None:
        """As `kafkacodec.broker.Broker.resume`."""
        await self._serving.resume()

    async def advance(self, seconds: float) -> None:
        """As `kafkacodec.broker.Broker.advance`."""
        await self._serving.advance(seconds)
