"""The servers of a client, and the partitions that they lead."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, Final

from kafkacodec.datatypes import NamedTuple
from kafkacodec.dialects.line.connection import Dialer
from kafkacodec.dialects.line.errors import ErrorCode, RequestRefused
from kafkacodec.dialects.line.exchange import Exchange
from kafkacodec.dialects.line.parsing import Response
from kafkacodec.dialects.line.partitions import by_crc
from kafkacodec.dialects.line.replicas.commands import REPLICA_COMMANDS
from kafkacodec.errors import ClientClosed, ConnectionFailed, DeadlineExceeded, KafkaCodecError

__all__ = ["MAY_PASS", "Servers"]

_LOOK_SECONDS: Final = 1.0  # to wait for servers that do not answer about their partitions
_FRESH_SECONDS: Final = 5.0  # after which to ask again for the leader of a partition without records

MAY_PASS: Final = (ErrorCode.NOT_LEADER, ErrorCode.REPLICATION_TIMEOUT)
"""Errors that may not occur at another server, or later."""


class _Topic(NamedTuple):
    """A topic: the number of its partitions, their known leaders, and the time of the answer."""

    partitions: int
    leaders: dict[int, Dialer]
    asked_at: float


class Servers:
    """Connections to servers. With several, which have the same partitions, requests go to the partition's leader.

    The servers name the leaders (REPLICA_LEADERS); the newest epoch counts. After a refusal or a missing answer, the
    next request asks again.

    Args:
        addresses: host and port of each.
        timeout_ms: the time limit of connecting and of each answer.
    """

    def __init__(self, addresses: list[tuple[str, int]], timeout_ms: int) -> None:
        exchange = partial(Exchange, commands=REPLICA_COMMANDS)
        self._dialers = [Dialer(address, timeout_ms, exchange) for address in addresses]
        self._topics: dict[str, _Topic] = {}
        self._looking = asyncio.Lock()

    @property
    def name(self) -> str:
        """All addresses, for errors."""
        return ",".join(dialer.name for dialer in self._dialers)

    @property
    def are_several(self) -> bool:
        """Whether there is more than one server."""
        return len(self._dialers) > 1

    @property
    def was_used(self) -> bool:
        """Whether it has ever been asked for a connection."""
        return any(dialer.was_used for dialer in self._dialers)

    @property
    def closed(self) -> bool:
        """Whether it opens no more connections."""
        return self._dialers[0].closed

    async def of_key(self, topic: str, key: str) -> Dialer:
        """Return the server for records with a key. Raises ConnectionFailed, ClientClosed, RequestRefused."""
        if not self.are_several:
            return self._dialers[0]
        known = await self._known(topic)
        return await self.of(topic, by_crc(key, known.partitions) if known.partitions else 0)

    async def of(self, topic: str, partition: int) -> Dialer:
        """Return the leader of a partition. Raises ConnectionFailed, ClientClosed, RequestRefused."""
        if not self.are_several:
            return self._dialers[0]
        leader = (await self._known(topic)).leaders.get(partition)
        if leader is None:
            self._topics.pop(topic, None)
            raise ConnectionFailed(f"{self.name}: no server that answers leads {topic}-{partition}", sent=False)
        return leader

    async def ask(self, topic: str, partition: int, command: str, args: dict[str, Any]) -> Response:
        """The response of a partition's leader.

        Raises:
            ConnectionFailed: it is not reached; or, of several servers, it is none or no longer one.
            ClientClosed, DeadlineExceeded, EncodeError: as `Dialer.ask`.
        """
        dialer = await self.of(topic, partition)
        try:
            response: Response = await dialer.ask(command, args)
        except (ConnectionFailed, DeadlineExceeded):
            self.mistaken(topic, dialer)
            raise
        if self.are_several and response.code in MAY_PASS:
            self.mistaken(topic, dialer)
            raise ConnectionFailed(f"{dialer.name}: {response.code}: {response.message}", sent=True)
        return response

    def mistaken(self, topic: str, dialer: Dialer) -> None:
        """Forget a leader that did not act as one; the next request asks again."""
        known = self._topics.get(topic)
        if known is not None and dialer in known.leaders.values():
            del self._topics[topic]

    def idle(self, topic: str) -> None:
        """Note that a partition's leader has no news; others may have deposed it without its knowledge."""
        known = self._topics.get(topic)
        if known is not None and asyncio.get_running_loop().time() - known.asked_at > _FRESH_SECONDS:
            del self._topics[topic]

    def close(self) -> None:
        """Close all connections for good."""
        for dialer in self._dialers:
            dialer.close()

    def close_soon(self) -> None:
        """As `close`, from any thread."""
        for dialer in self._dialers:
            dialer.close_soon()

    async def _known(self, topic: str) -> _Topic:
        known = self._topics.get(topic)
        if known is None:
            async with self._looking:
                known = self._topics.get(topic)
                if known is None:
                    known = self._topics[topic] = await self._look(topic)
        return known

    async def _look(self, topic: str) -> _Topic:
        """Ask all servers which partitions of a topic they lead."""
        loop = asyncio.get_running_loop()
        tasks = {loop.create_task(dialer.demand("REPLICA_LEADERS", {"topic": topic})): dialer
                 for dialer in self._dialers}  # fmt: skip
        try:
            answered, _ = await asyncio.wait(tasks, timeout=_LOOK_SECONDS)
        finally:
            for task in tasks:
                task.cancel()
        newest: dict[int, tuple[int, Dialer]] = {}
        partitions, failure = 0, None
        for task in answered:
            try:
                fields = task.result().fields
            except KafkaCodecError as error:
                failure = error
                continue
            partitions = max(partitions, fields.get("partitions", 0))
            for number, epoch in zip(fields.get("leads", ()), fields.get("epochs", ()), strict=False):
                if number not in newest or epoch > newest[number][0]:
                    newest[number] = epoch, tasks[task]
        if isinstance(failure, RequestRefused | ClientClosed) and not newest:
            raise failure
        return _Topic(partitions, {number: dialer for number, (_, dialer) in newest.items()}, loop.time())
