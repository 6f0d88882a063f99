"""Clients of the rewrite for asyncio: a connection for single calls, and a consumer, whose work happens in `poll`."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Self

from kafkacodec.arguments import limit
from kafkacodec.client.checks import seconds
from kafkacodec.client.lifecycle import made_at, warn_of
from kafkacodec.datatypes import NamedTuple
from kafkacodec.dialects.rewrite.config import ConsumerConfig
from kafkacodec.dialects.rewrite.consuming import Consuming
from kafkacodec.dialects.rewrite.groups import Partition
from kafkacodec.dialects.rewrite.rpcs import ANSWERS, ErrorCode, Rpc, refusal
from kafkacodec.dialects.rewrite.servers import Servers, ended
from kafkacodec.errors import ClientClosed, EncodeError, KafkaCodecError
from kafkacodec.faces import names_statements
from kafkacodec.net.addresses import addresses
from kafkacodec.signatures import suggests_options

__all__ = ["Consumer", "KafkaConnection", "MessageAndOffset"]


class MessageAndOffset(NamedTuple):
    """A message as a consumer gets it.

    Attributes:
        topic, partition, offset: of the message.
        key, message: bytes, or the results of the deserializers; None for null.
    """

    topic: str
    partition: int
    offset: int
    key: Any
    message: Any


def _places(servers: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{host}:{port}" for host, port in servers)


@names_statements
class _Client:
    """Common parts of both clients: one that is garbage-collected without `close` warns."""

    _closed = False
    _made: tuple[str, int] | None = None
    _about: str

    def __repr__(self) -> str:
        return f"<rewrite.aio.{type(self).__name__}: {self._about}, {'closed' if self._closed else 'open'}>"

    def __del__(self) -> None:
        if not self._closed and self._made is not None:
            warn_of(self, self._made)

    async def close(self) -> None:
        """Close all connections."""
        raise NotImplementedError

    def _check(self) -> None:
        if self._closed:
            raise ClientClosed("the client is closed")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class KafkaConnection(_Client):
    """Calls to the servers of the groups, many at a time, each to the right server.

    ListGroups, CreateGroup and DeleteGroup go to any server, calls for one group to its controller, which the
    connection finds, and heartbeats to the server at which their client has registered on this connection.

    Args:
        bootstrap: ``host:port`` of some servers, in one text with commas or as a list.
        request_timeout_ms: the time limit of connecting and of a reply. Registrations and rewinds wait for other
            members, and take as long as these.

    Raises:
        ValueError, TypeError: an argument is wrong.
    """

    @suggests_options
    def __init__(self, bootstrap: str | Iterable[str], *, request_timeout_ms: int = 30_000) -> None:
        servers = addresses(bootstrap, "bootstrap")
        self._about = _places(servers)
        self._servers = Servers(servers, limit("request_timeout_ms", request_timeout_ms, 1))
        self._waiting: set[asyncio.Task[None]] = set()
        self._found: deque[Rpc] = deque()
        self._arrived = asyncio.Event()
        self._made = made_at()

    @property
    def pending(self) -> int:
        """The number of pending calls."""
        return len(self._waiting)

    async def poll(self, timeout: float = 0.0, *requests: Rpc) -> list[Any]:
        """Send calls, and return the replies that have come: also those to earlier calls, in the order of arrival.

        A reply has the correlation id of its call. If a server cannot be reached, the connection makes a reply with the
        error code `CONTROLLER_UNREACHABLE`.

        Args:
            timeout: the seconds to wait for the first reply.
            requests: calls, such as `Heartbeat`.

        Raises:
            EncodeError: not a call, or an invalid value; nothing is sent.
            ClientClosed: the connection is closed.
        """
        left = seconds("timeout", timeout)
        self._check()
        for call in requests:
            if type(call) not in ANSWERS:
                raise EncodeError(f"{type(call).__name__} is not a call")
            call.encode()
        for call in requests:
            task = asyncio.get_running_loop().create_task(self._answered(call))
            self._waiting.add(task)
            task.add_done_callback(self._waiting.discard)
        await asyncio.sleep(0)
        if not self._found and self._waiting:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._arrived.wait()
        self._arrived.clear()
        found = list(self._found)
        self._found.clear()
        return found

    async def close(self) -> None:
        """Close all connections; calls that wait get no reply, and members that have registered leave."""
        self._closed = True
        await ended(self._waiting)
        self._servers.close()

    async def _answered(self, call: Rpc) -> None:
        try:
            reply = await self._servers.ask(call)
        except KafkaCodecError:
            reply = refusal(call, ErrorCode.CONTROLLER_UNREACHABLE)
        self._found.append(reply)
        self._arrived.set()


class Consumer(_Client):
    """Reads topics as a member of a group, or given partitions; all work happens in `poll`.

        consumer = rewrite.aio.Consumer({
            "bootstrap.servers": "localhost:9092", "rewrite.servers": "localhost:9096", "group.id": "billing",
        })
        consumer.add_topic("orders")
        while True:
            for message in await consumer.poll(1.0):
                ...

    Call `poll` within the session timeout of the group: heartbeats leave three times in it, and only `poll`, `commit`
    and `rewind_offsets` send them. It creates a missing group with the added topics.

    Args:
        config: ``bootstrap.servers`` (brokers with the records) and ``rewrite.servers`` (any servers of the groups);
            ``group.id``; ``client.id``, unique among members (by default a new one); ``session.timeout.ms`` of a new
            group (30,000); ``enable.auto.commit`` (True), ``auto.commit.interval.ms`` (5,000); ``request.timeout.ms``
            (30,000). Others as for `kafkacodec.client.Consumer.from_config`, such as ``auto.offset.reset``.
        **options: of `kafkacodec.client.ConsumerSettings`, by keyword: deserializers, for instance.

    Raises:
        ValueError, TypeError: a name or value is wrong.
    """

    def __init__(self, config: Mapping[str, Any], **options: Any) -> None:
        settings = ConsumerConfig.parse(config)
        self._about = f"{_places(settings.servers)}, group {settings.group!r}"
        self._work = Consuming(settings, options)
        self._made = made_at()

    @property
    def assignment(self) -> list[tuple[str, int]]:
        """Topic and number of the partitions that it reads now."""
        return [tuple(partition) for partition in self._work.assignment]  # type: ignore[misc]

    @property
    def generation(self) -> int:
        """The generation of the group, from the last heartbeat; 0 for none."""
        return self._work.generation

    @property
    def last_error(self) -> Exception | None:
        """Why the servers of the groups could not be asked, or did not take a commit; None: all is well."""
        return self._work.last_error

    def add_topic(self, topic: str, partition: int | None = None) -> None:
        """Read a topic: the partitions that the group assigns, or only this one.

        Raises:
            ValueError: the topic is read in the other way already; or the group assigns, and there is no ``group.id``.
            LocalProtocolError: a topic for the group after the first `poll`.
        """
        self._check()
        self._work.add(topic, None if partition is None else limit("partition", partition))

    async def poll(self, timeout: float = 0.0) -> list[MessageAndOffset]:
        """Return messages that are there, or come within `timeout` seconds.

        Previously returned messages count as processed: with ``enable.auto.commit`` it commits them at intervals, and
            before other members get its partitions.

        Raises:
            GroupError: the group refuses the member, which tries again at the next call.
            LocalProtocolError: the group lacks added topics.
            KafkaCodecError: from the brokers, as `kafkacodec.client.Consumer` does.
        """
        self._check()
        records = await self._work.poll(seconds("timeout", timeout) or 0.0)
        return [MessageAndOffset(r.topic, r.partition, r.offset, r.key, r.value) for r in records]

    async def commit(self, topic: str | None = None, partition: int | None = None) -> None:
        """Commit messages that `poll` has returned: all, or of a topic, or of one partition.

        Raises:
            GroupError: an offset was refused, for instance because another member owns the partition by now.
            ConnectionFailed, DeadlineExceeded: the controller cannot be reached.
        """
        self._check()
        await self._work.commit(topic, partition)

    async def rewind_offsets(self, offsets: Mapping[tuple[str, int], int]) -> None:
        """Move the group to other offsets, also in partitions of other members.

        Args:
            offsets: by topic and number of the partition.

        Raises:
            GroupError: an offset was refused; the others were set.
            LocalProtocolError: the partition was not added, and neither was a topic of the group.
            DeadlineExceeded: no answer within ``request.timeout.ms`` and a session timeout.
        """
        self._check()
        await self._work.rewind({Partition(*place): offset for place, offset in offsets.items()})

    async def close(self) -> None:
        """Commit returned messages if ``enable.auto.commit``, leave the group, and close all connections."""
        if not self._closed:
            self._closed = True
            await self._work.close()
