"""A producer and a consumer of the line protocol for asyncio."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Final, Literal, Self, TypedDict

from kafkacodec.arguments import limit, one_of
from kafkacodec.client.lifecycle import made_at, warn_of
from kafkacodec.datatypes import NamedTuple
from kafkacodec.dialects.line.errors import RequestRefused
from kafkacodec.dialects.line.membership import Membership
from kafkacodec.dialects.line.parsing import Response
from kafkacodec.dialects.line.servers import MAY_PASS, Servers
from kafkacodec.errors import ClientClosed, ConnectionFailed, DeadlineExceeded, KafkaCodecError
from kafkacodec.faces import names_statements
from kafkacodec.net.addresses import addresses
from kafkacodec.signatures import suggests_options

__all__ = ["Acks", "Consumer", "ConsumerOptions", "Message", "Produced", "Producer", "ProducerOptions"]

Acks = Literal["0", "1", "all"]
"""The condition for an acknowledgement: the leader has the record, or every replica in sync. V1 treats ``"0"`` as
``"1"``.
"""

_ACKS: Final = ("0", "1", "all")
_RETRY_SECONDS: Final = 0.05  # between two tries to deliver a record
_PAUSE_SECONDS: Final = 0.02  # between two requests for records, since no request of the protocol waits


class ProducerOptions(TypedDict, total=False):
    """The keyword options of producers; `Producer` describes them."""

    acks: Acks
    request_timeout_ms: int
    max_in_flight: int
    delivery_timeout_ms: int
    send_again: bool


class ConsumerOptions(TypedDict, total=False):
    """The keyword options of consumers; `Consumer` describes them."""

    consumer_id: str | None
    assignor: Literal["round_robin", "range"] | None
    auto_commit: bool
    heartbeat_interval_ms: int
    request_timeout_ms: int


class Produced(NamedTuple):
    """The place of a record.

    Attributes:
        topic, partition, offset: of the record.
        high_watermark: the partition's high watermark when the server answered.
        again: whether it was sent before without a clear answer, so that it may be stored twice.
    """

    topic: str
    partition: int
    offset: int
    high_watermark: int
    again: bool = False


class Message(NamedTuple):
    """A record as a consumer gets it; the protocol does not transmit its key."""

    topic: str
    partition: int
    offset: int
    value: str


@names_statements
class _Client:
    """Common parts of both clients: one that is garbage-collected without `close` warns and ends its connection."""

    def __init__(self, address: str | Iterable[str], request_timeout_ms: int) -> None:
        self._servers = Servers(addresses(address, "address"), limit("request_timeout_ms", request_timeout_ms, 1))
        self._closed = False
        self._made: tuple[str, int] | None = made_at()  # None inside a blocking client
        self._made_in: tuple[str, int] | None = None  # then the place of its creation

    def __repr__(self) -> str:
        return f"<line.aio.{type(self).__name__}: {self._servers.name}>"

    def __del__(self) -> None:
        servers = getattr(self, "_servers", None)
        if servers is None or self._closed or not servers.was_used:
            return
        servers.close_soon()
        if self._made is not None:
            warn_of(self, self._made)

    async def close(self) -> None:
        """Close the client."""
        raise NotImplementedError

    async def _close_dropped(self) -> None:
        """Close the client although the application has dropped it."""
        await self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class Producer(_Client):
    """Sends records, many at a time, to one server, or to the one of several that leads the record's partition.

    A server cannot recognize a repeated record, since the protocol has no ids. If the fate of a record is unknown,
    because its server was killed or deposed, the producer sends it to another one only with `send_again`, and its
    `Produced` says so; otherwise the delivery fails with an error whose `sent` is true. Repeated records may change
    their order.

    Args:
        address: ``host:port`` of the server; several for servers with the same partitions, separated by commas or as
            a list.
        acks: for all records; `send` can override it.
        request_timeout_ms: the time limit of connecting and of each answer.
        max_in_flight: the maximum number of unanswered records; `send` waits while there are as many.
        delivery_timeout_ms: with several servers, the time limit of a delivery.
        send_again: with several servers, whether to send a record again that may be stored already.

    Raises:
        ValueError, TypeError: an argument is wrong.
    """

    @suggests_options
    def __init__(
        self, address: str | Iterable[str], *, acks: Acks = "1", request_timeout_ms: int = 30_000,
        max_in_flight: int = 1_000, delivery_timeout_ms: int = 120_000, send_again: bool = True,
    ) -> None:  # fmt: skip
        one_of("acks", acks, _ACKS)
        self._acks: Acks = acks
        self._delivery_seconds = limit("delivery_timeout_ms", delivery_timeout_ms, 1) / 1000
        self._send_again = send_again
        super().__init__(address, request_timeout_ms)
        self._room = asyncio.Semaphore(limit("max_in_flight", max_in_flight, 1))
        self._waiting: set[asyncio.Task[Produced]] = set()

    async def send(self, topic: str, key: str, value: str, *, acks: Acks | None = None) -> asyncio.Task[Produced]:
        """Send a record; await the result for its place, or the error.

        Args:
            topic, key, value: of the record; neither key nor value may contain spaces, bars or line ends, and a key no
                colon.
            acks: see `Acks`; None: the producer's.

        Raises:
            ClientClosed: the producer is closed.

        The delivery raises `RequestRefused`, `EncodeError`, `ConnectionFailed` or `DeadlineExceeded`. Except for
        `EncodeError`, their `sent` says whether the record may be stored anyway.
        """
        chosen = self._acks if acks is None else acks
        one_of("acks", chosen, _ACKS)
        if self._closed:
            raise ClientClosed("the producer is closed")
        await self._room.acquire()
        task = asyncio.ensure_future(self._deliver({"topic": topic, "key": key, "value": value, "acks": chosen}))
        self._waiting.add(task)
        task.add_done_callback(self._done)
        return task

    async def flush(self) -> None:
        """Wait for the outcome of all records."""
        while self._waiting:
            await asyncio.wait(self._waiting)

    async def close(self) -> None:
        """Wait for all deliveries, then close the connection."""
        self._closed = True
        await self.flush()
        self._servers.close()

    async def _deliver(self, args: dict[str, Any]) -> Produced:
        """Send a record until its answer is clear."""
        servers, loop = self._servers, asyncio.get_running_loop()
        end, again = loop.time() + self._delivery_seconds, False
        while True:
            try:
                return await self._delivered(args, again)
            except (RequestRefused, ConnectionFailed, DeadlineExceeded) as error:
                again = error.sent = again or error.sent
                passes = not isinstance(error, RequestRefused) or error.code in MAY_PASS
                if not (servers.are_several and passes and loop.time() < end and (self._send_again or not again)):
                    raise
            await asyncio.sleep(_RETRY_SECONDS)

    async def _delivered(self, args: dict[str, Any], again: bool) -> Produced:
        """One try, with the server that leads now."""
        servers, topic = self._servers, args["topic"]
        dialer = await servers.of_key(topic, args["key"])
        try:
            fields = (await dialer.demand("PRODUCE", args)).fields
        except (RequestRefused, ConnectionFailed, DeadlineExceeded):
            servers.mistaken(topic, dialer)
            raise
        return Produced(topic, fields["partition"], fields["offset"], fields["hw"], again)

    def _done(self, task: asyncio.Task[Produced]) -> None:
        self._waiting.discard(task)
        self._room.release()
        if not task.cancelled():
            task.exception()  # nobody may await it


class Consumer(_Client):
    """Reads topics as a member of a group.

    Args:
        address: ``host:port`` of the server; several for servers with the same partitions, separated by commas or as
            a list.
        group: the group's name.
        topics: a topic, or several; as the protocol has it, each has a separate group of this name.
        consumer_id: the member's; None: a new one.
        assignor: ``round_robin`` or ``range``, if it is the first member; None: the group's.
        auto_commit: whether `poll` commits the messages that it returned before, and `close` the last ones.
        heartbeat_interval_ms: the interval of heartbeats; the server removes silent members.
        request_timeout_ms: the time limit of connecting and of each answer.

    Raises:
        ValueError, TypeError: an argument is wrong.
    """

    @suggests_options
    def __init__(
        self, address: str | Iterable[str], group: str, topics: str | Iterable[str], *, consumer_id: str | None = None,
        assignor: Literal["round_robin", "range"] | None = None, auto_commit: bool = True,
        heartbeat_interval_ms: int = 3_000, request_timeout_ms: int = 30_000,
    ) -> None:  # fmt: skip
        super().__init__(address, request_timeout_ms)
        names = dict.fromkeys([topics] if isinstance(topics, str) else topics)
        if not names:
            raise ValueError("topics is empty: pass at least one")
        name = consumer_id or f"consumer-{uuid.uuid4()}"
        self._members = {topic: Membership(group, topic, name, assignor) for topic in names}
        self._auto_commit, self._patience = auto_commit, request_timeout_ms / 1000
        self._beat = limit("heartbeat_interval_ms", heartbeat_interval_ms, 1) / 1000
        self._heart: asyncio.Task[None] | None = None
        self._next = 0  # of its partitions, the one that is read next

    @property
    def assignment(self) -> list[tuple[str, int]]:
        """Topic and number of its partitions, from the last answer."""
        return [(topic, partition) for topic, member in self._members.items() for partition in member.assigned]

    @property
    def generations(self) -> dict[str, int | None]:
        """The generation of each topic's group that it is a member of; None: of none."""
        return {topic: member.generation for topic, member in self._members.items()}

    async def poll(self, timeout: float = 0.0) -> list[Message]:
        """Return records of one of its partitions, in order; none if there are none within `timeout` seconds.

        It joins the group if necessary, and commits the previously returned records (`auto_commit`).

        Raises:
            ClientClosed: it is closed.
            RequestRefused: the server refuses a request.
            ConnectionFailed, DeadlineExceeded: the server cannot be reached within `timeout`.
        """
        if self._closed:
            raise ClientClosed("the consumer is closed")
        loop = asyncio.get_running_loop()
        end = loop.time() + timeout
        while True:
            try:
                found = await self._step()
            except (ConnectionFailed, DeadlineExceeded):
                if loop.time() >= end:
                    raise
                found = []
            if found or loop.time() >= end:
                return found
            await asyncio.sleep(min(_PAUSE_SECONDS, max(end - loop.time(), 0.0)))

    async def commit(self) -> None:
        """Commit returned records, except those of an ended generation, which others read again.

        With several servers it retries for `request_timeout_ms`.

        Raises:
            RequestRefused, ConnectionFailed, DeadlineExceeded: as `poll`.
        """
        loop = asyncio.get_running_loop()
        end = loop.time() + self._patience
        while True:
            try:
                return await self._commit()
            except (ConnectionFailed, DeadlineExceeded):
                if not self._servers.are_several or loop.time() >= end:
                    raise
            await asyncio.sleep(_RETRY_SECONDS)

    async def _commit(self) -> None:
        for member in self._members.values():
            for command, args in member.commits() if member.generation is not None else ():
                response = await self._ask(command, args)
                if member.refused(response):
                    break
                _require(response)
                member.has_committed(args["partition"], args["offset"])

    def seek(self, topic: str, partition: int, offset: int) -> None:
        """Read a partition on from an offset. Raises ValueError: it is none of its partitions."""
        if (topic, partition) not in self.assignment:
            raise ValueError(f"{topic}-{partition} is not among the consumer's partitions: {self.assignment}")
        self._members[topic].positions[partition] = limit("offset", offset)

    async def close(self) -> None:
        """Commit (`auto_commit`), leave the group, and close the connection."""
        if self._closed:
            return
        self._closed = True
        if self._heart is not None:
            self._heart.cancel()
        with contextlib.suppress(KafkaCodecError):  # the session ends without it
            if self._auto_commit:
                await self._commit()
            for member in self._members.values():
                if member.generation is not None:
                    await self._ask(*member.member("LEAVE"))
        self._servers.close()

    async def _step(self) -> list[Message]:
        """Ask each partition once, starting after the partition of the last records."""
        if self._auto_commit:
            await self._commit()
        for member in self._members.values():
            await self._join(member)
            for command, args in member.unknown():
                member.begins(args["partition"], _require(await self._ask(command, args)))
        partitions = self.assignment
        for turn in range(len(partitions)):
            topic, partition = partitions[(self._next + turn) % len(partitions)]
            found = await self._read(self._members[topic], partition)
            if found:
                self._next = (self._next + turn + 1) % len(partitions)
                return found
        return []

    async def _join(self, member: Membership) -> None:
        """Join the newest generation: SYNC says whether JOIN's is still the newest."""
        while member.generation is None:
            member.joined(_require(await self._ask(*member.join())))
            response = await self._ask(*member.member("SYNC"))
            if not member.refused(response):
                member.joined(_require(response))
        if self._heart is None:
            self._heart = asyncio.ensure_future(_live(self._servers, list(self._members.values()), self._beat))

    async def _read(self, member: Membership, partition: int) -> list[Message]:
        topic, position = member.topic, member.positions.get(partition, 0)
        args = {"topic": topic, "partition": partition, "offset": position}
        messages = _require(await self._servers.ask(topic, partition, "CONSUME", args)).fields["messages"]
        if not messages:
            self._servers.idle(topic)
        if not messages or member.positions.get(partition) != position:
            return []  # the group has changed meanwhile
        member.read(partition, messages[-1]["offset"] + 1)
        return [Message(topic, partition, row["offset"], row["value"]) for row in messages]

    async def _ask(self, command: str, args: dict[str, Any]) -> Response:
        """Ask the leader of a topic's partition 0 about the group."""
        return await self._servers.ask(args["topic"], 0, command, args)


async def _live(servers: Servers, members: list[Membership], seconds: float) -> None:
    """Send the heartbeats of members until their client is closed or dropped."""
    while not servers.closed:
        await asyncio.sleep(seconds)
        for member in members:
            if member.generation is not None:
                with contextlib.suppress(KafkaCodecError):  # the next poll meets it
                    command, args = member.member("HEARTBEAT")
                    member.refused(await servers.ask(member.topic, 0, command, args))


def _require(response: Response) -> Response:
    if not response.ok:
        raise RequestRefused(response.code or "", response.message or "")
    return response
