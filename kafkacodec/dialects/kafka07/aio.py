"""A producer, a consumer in a group, and a simple consumer of Kafka 0.7, for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, get_args

from kafkacodec.arguments import limit, one_of
from kafkacodec.datatypes import NamedTuple
from kafkacodec.dialects.kafka07.clients import Client, Engine
from kafkacodec.dialects.kafka07.driver import larger_fetch, read_fetch
from kafkacodec.dialects.kafka07.exchange import dialer
from kafkacodec.dialects.kafka07.group import Group, GroupOptions, consumer_name
from kafkacodec.dialects.kafka07.message_set import Codec
from kafkacodec.dialects.kafka07.outbox import Outbox
from kafkacodec.dialects.kafka07.positions import Place
from kafkacodec.dialects.kafka07.sending import Sender, SenderOptions, Sent, broker_list
from kafkacodec.dialects.kafka07.wire import EARLIEST, LATEST, FetchRequest, MultiFetchRequest, OffsetsRequest
from kafkacodec.dialects.zookeeper import Blacklist, Static, Subscription, Whitelist
from kafkacodec.errors import BrokerError, ClientClosed, Truncated
from kafkacodec.net.addresses import addresses
from kafkacodec.signatures import suggests_options

if TYPE_CHECKING:
    from kafkacodec.dialects.connection import Dialer
    from kafkacodec.dialects.kafka07.fetching import Reset
    from kafkacodec.dialects.kafka07.wire import FetchResponse, MultiFetchResponse, OffsetsResponse
    from kafkacodec.records.columns import RecordColumns

__all__ = ["Codec", "Consumer", "Message", "Place", "Producer", "Sent", "SimpleConsumer"]

_CODECS: Final = get_args(Codec)
_RESETS: Final = ("smallest", "largest", "none")
_MOST_PARTS: Final = 32_767  # the count of a request is an int16


class Message(NamedTuple):
    """A message as a consumer gets it.

    Attributes:
        topic, broker, partition: of the message.
        offset: of the message; messages in a container have the container's.
        value: its payload.
    """

    topic: str
    broker: int
    partition: int
    offset: int
    value: bytes


class Producer(Client):
    """Sends messages to the brokers registered in ZooKeeper, or to a list of brokers.

    Brokers do not answer: a message counts as sent when it has left. A broker that refuses one closes the connection,
    and the producer logs that.

    Args:
        zookeeper: ``host:port,...`` of ZooKeeper, optionally with a path at the end.
        brokers: instead of it, ``ID:HOST:PORT,...``: each message goes to any of them, which chooses the partition;
            keys have no effect.
        compression_type: of containers; each message set is one. ``"none"``: without containers.
        linger_ms: how long a message waits for others to the same broker.
        batch_messages, batch_bytes: the numbers of messages and bytes to a broker at which they are sent. They are one
            request with a message set, or a container, for each partition.
        max_message_size: the largest payload that the brokers accept, in bytes; for a container, after compression.
        max_queued: the maximum number of waiting messages; `send` waits while there are as many.
        connect_timeout_ms: the time limit of connecting to a broker and to ZooKeeper, and of what ZooKeeper is asked.
        reconnect_interval: the number of requests after which it reconnects.
        session_timeout_ms: of the session in ZooKeeper.

    Raises:
        ValueError, TypeError: an argument is wrong.
        ImportError: `zookeeper` needs kazoo (the extra ``zookeeper``); raised by the first `send`.
    """

    _engine: Sender

    @suggests_options
    def __init__(
        self, zookeeper: str | None = None, *, brokers: str | Iterable[str] = (), compression_type: Codec = "none",
        linger_ms: float = 5, batch_messages: int = 200, batch_bytes: int = 1 << 20,
        max_message_size: int = 1_000_000, max_queued: int = 10_000, connect_timeout_ms: int = 5_000,
        reconnect_interval: int = 30_000, session_timeout_ms: int = 6_000,
    ) -> None:  # fmt: skip
        if (zookeeper is None) == (not brokers):
            raise ValueError("pass zookeeper or brokers")
        one_of("compression_type", compression_type, _CODECS)
        outbox = Outbox(
            codec=compression_type,
            max_messages=_up_to("batch_messages", batch_messages, _MOST_PARTS),
            max_bytes=limit("batch_bytes", batch_bytes, 1),
            max_message_size=limit("max_message_size", max_message_size),
            linger_ms=_positive("linger_ms", linger_ms),
        )
        options = SenderOptions(
            zookeeper=zookeeper,
            brokers=broker_list(brokers) if brokers else {},
            max_queued=limit("max_queued", max_queued, 1),
            connect_timeout_ms=limit("connect_timeout_ms", connect_timeout_ms, 1),
            reconnect_interval=limit("reconnect_interval", reconnect_interval, 1),
            session_timeout_ms=limit("session_timeout_ms", session_timeout_ms, 1),
        )
        super().__init__(Sender(options, outbox), zookeeper or ", ".join(map(str, options.brokers)))

    async def send(self, topic: str, value: bytes, *, key: str | None = None) -> asyncio.Future[Sent]:
        """Send a message; await the result for the broker that it went to, or the error.

        Args:
            topic, value: of the message.
            key: chooses the partition by its Java hash, as in 0.7's own producer. It is not sent. None: any partition.

        Raises:
            ClientClosed: the producer is closed.
            EncodeError: the topic's name is invalid; the message is too large; the key belongs to no partition.
            BrokerError: no broker is registered, or not the one of the key's partition.
            ConnectionFailed, DeadlineExceeded: ZooKeeper cannot be reached.

        The future raises `ConnectionFailed` or `DeadlineExceeded` if the broker cannot be reached, `EncodeError` if the
        message is too large after compression.
        """
        return await self._engine.send(topic, value, key)

    async def flush(self) -> None:
        """Send everything now, and wait for the outcome."""
        await self._engine.flush()


class _Asking(Engine):
    """The engine of a simple consumer."""

    def __init__(self, server: Dialer) -> None:
        super().__init__()
        self.server = server

    async def close(self) -> None:
        self.closed = True
        self.server.close()


class SimpleConsumer(Client):
    """Asks one broker for messages and offsets.

    Args:
        server: ``host:port`` of the broker.
        request_timeout_ms: the time limit of connecting and of each answer.

    Raises:
        ValueError, TypeError: an argument is wrong.

    Its methods raise ClientClosed, ConnectionFailed and DeadlineExceeded.
    """

    _engine: _Asking

    @suggests_options
    def __init__(self, server: str, *, request_timeout_ms: int = 30_000) -> None:
        found = addresses(server, "server")
        if len(found) != 1:
            raise ValueError(f"server must be one host:port, not {len(found)}")
        super().__init__(_Asking(dialer(found[0], limit("request_timeout_ms", request_timeout_ms, 1))), server)

    async def fetch(
        self, topic: str, partition: int, offset: int, *, max_size: int = 1 << 20, max_message_size: int = 64 << 20
    ) -> RecordColumns:
        """Return the messages from an offset on, with the columns of `kafkacodec.dialects.kafka07.decode`.

        Args:
            topic, partition: of the messages.
            offset: of an outermost message, or the end.
            max_size: the number of bytes to ask for; more if the first message is larger.
            max_message_size: the limit of that.

        Raises:
            BrokerError: the broker answers with an error.
            LimitExceeded: the first message is larger than `max_message_size`.
            DecodeError: the messages are damaged, or none starts at the offset.
        """
        request = FetchRequest(topic, partition, offset, limit("max_size", max_size))
        while True:
            response: FetchResponse = await self._ask(request)
            try:
                return read_fetch(request, response)
            except Truncated:
                larger = larger_fetch(request, response.message_set, limit=max_message_size)
                if larger is None:
                    raise
                request = larger

    async def multifetch(self, requests: Sequence[FetchRequest]) -> list[FetchResponse]:
        """Return the broker's answers to several requests, in their order."""
        response: MultiFetchResponse = await self._ask(MultiFetchRequest(requests))
        return list(response.responses)

    async def offsets(self, topic: str, partition: int, time: int, max_offsets: int) -> list[int]:
        """At most `max_offsets` starts of segments last written at or before a time in ms, the largest first.

        The time -1 is the end of the log and all starts before it, -2 the first start. A broker that refuses the topic
        or the partition closes the connection: ConnectionFailed.
        """
        response: OffsetsResponse = await self._ask(OffsetsRequest(topic, partition, time, max_offsets))
        return list(response.offsets or ())

    async def earliest(self, topic: str, partition: int) -> int:
        """The first offset of a partition."""
        return await self._offset(topic, partition, EARLIEST)

    async def latest(self, topic: str, partition: int) -> int:
        """The end of a partition."""
        return await self._offset(topic, partition, LATEST)

    async def _offset(self, topic: str, partition: int, time: int) -> int:
        found = await self.offsets(topic, partition, time, 1)
        if not found:
            raise BrokerError(f"{topic}-{partition}: the broker has no offset")
        return found[0]

    async def _ask(self, request: FetchRequest | MultiFetchRequest | OffsetsRequest) -> Any:
        if self._engine.closed:
            raise ClientClosed("the consumer is closed")
        self._engine.loop = asyncio.get_running_loop()
        return await self._engine.server.ask(request)


class Consumer(Client):
    """Reads topics as a member of a group, which ZooKeeper keeps as for 0.7's own consumers.

    Args:
        zookeeper: ``host:port,...`` of ZooKeeper, optionally with a path at the end.
        topics: names; or the number of threads by name: a member with more threads gets more partitions.
        group: the group's name.
        whitelist, blacklist: instead of `topics`, a regular expression in Java's syntax: all topics that match it, or
            that do not (the extra ``patterns``).
        consumer_id: the last part of the member's id; None: a new one.
        auto_offset_reset: the start without a committed offset, or if an offset is no longer in the log:
            ``"smallest"``, ``"largest"``; ``"none"``: smallest without a committed offset, otherwise an error.
        auto_commit: whether it commits consumed messages at intervals, at rebalances and at `close`.
        auto_commit_interval_ms: the interval.
        fetch_size: the number of bytes of a partition to ask for at once.
        max_fetch_size: the limit of that, if a message is larger.
        fetch_backoff_ms: the pause after an answer without messages.
        rebalance_retries: the number of tries of a rebalance, before the first `poll` raises BrokerError.
        rebalance_backoff_ms: the pause between two.
        request_timeout_ms: the time limit of connecting to a broker and of each answer.
        session_timeout_ms: after this time without a sign of life the group removes the member.
        connection_timeout_ms: the time limit of the first connection to ZooKeeper.

    Raises:
        ValueError, TypeError: an argument is wrong.
    """

    _engine: Group

    @suggests_options
    def __init__(
        self, zookeeper: str, topics: str | Iterable[str] | Mapping[str, int] = (), *, group: str,
        whitelist: str | None = None, blacklist: str | None = None, consumer_id: str | None = None,
        auto_offset_reset: Reset = "smallest", auto_commit: bool = True, auto_commit_interval_ms: int = 10_000,
        fetch_size: int = 1 << 20, max_fetch_size: int = 64 << 20, fetch_backoff_ms: int = 1_000,
        rebalance_retries: int = 4, rebalance_backoff_ms: int = 2_000, request_timeout_ms: int = 30_000,
        session_timeout_ms: int = 6_000, connection_timeout_ms: int = 6_000,
    ) -> None:  # fmt: skip
        one_of("auto_offset_reset", auto_offset_reset, _RESETS)
        options = GroupOptions(
            zookeeper=zookeeper,
            group=group,
            consumer_id=consumer_id or consumer_name(),
            subscription=_subscription(topics, whitelist, blacklist),
            auto_offset_reset=auto_offset_reset,
            auto_commit=auto_commit,
            auto_commit_interval_ms=limit("auto_commit_interval_ms", auto_commit_interval_ms, 1),
            fetch_size=limit("fetch_size", fetch_size, 1),
            max_fetch_size=limit("max_fetch_size", max_fetch_size, fetch_size),
            fetch_backoff_ms=limit("fetch_backoff_ms", fetch_backoff_ms, 1),
            rebalance_retries=limit("rebalance_retries", rebalance_retries, 1),
            rebalance_backoff_ms=limit("rebalance_backoff_ms", rebalance_backoff_ms),
            request_timeout_ms=limit("request_timeout_ms", request_timeout_ms, 1),
            session_timeout_ms=limit("session_timeout_ms", session_timeout_ms, 1),
            connection_timeout_ms=limit("connection_timeout_ms", connection_timeout_ms, 1),
        )
        super().__init__(Group(options), f"{zookeeper}, group {group!r}")

    @property
    def consumer_id(self) -> str:
        """The id of the member."""
        return self._engine.consumer_id

    @property
    def assignment(self) -> list[Place]:
        """The partitions that it owns."""
        return self._engine.owned

    async def poll(self, timeout: float = 0.0) -> list[Message]:
        """Return messages of one partition, in order; none if there are none within `timeout` seconds.

        The first call joins the group. The messages of the previous call then count as consumed, and can be committed.

        Raises:
            ClientClosed: it is closed.
            BrokerError: it gets no share of the partitions; or a broker answers with an error.
            DecodeError: the messages of a partition are damaged; reading it stops until the next rebalance.
            LimitExceeded: a message is larger than `max_fetch_size`; reading the partition stops likewise.
            ConnectionFailed, DeadlineExceeded: ZooKeeper cannot be reached.
        """
        chunk = await self._engine.take(timeout)
        if chunk is None:
            return []
        place, columns = chunk.place, chunk.columns
        return [Message(*place, int(record.offset), bytes(record.value or b"")) for record in columns]

    async def commit(self) -> None:
        """Commit the returned messages. Raises ConnectionFailed."""
        await self._engine.commit()


def _subscription(
    topics: str | Iterable[str] | Mapping[str, int], whitelist: str | None, blacklist: str | None
) -> Subscription:
    given = [topics] if isinstance(topics, str) else topics
    counts = dict(given) if isinstance(given, Mapping) else dict.fromkeys(given, 1)
    if bool(counts) + (whitelist is not None) + (blacklist is not None) != 1:
        raise ValueError("pass topics, a whitelist or a blacklist")
    if whitelist is not None:
        return Whitelist(_cleaned(whitelist), 1)
    if blacklist is not None:
        return Blacklist(_cleaned(blacklist), 1)
    for topic, count in counts.items():
        limit(f"topics[{topic!r}]", count, 1)
    return Static(counts)


def _cleaned(pattern: str) -> str:
    """A pattern as clients of 0.7 store it."""
    return pattern.strip().replace(",", "|").replace(" ", "").strip("\"'")


def _up_to(name: str, value: int, most: int) -> int:
    if limit(name, value, 1) > most:
        raise ValueError(f"{name} is {value}; it can be {most}")
    return value


def _positive(name: str, value: float) -> float:
    if not 0 <= value < float("inf"):
        raise ValueError(f"{name} is {value}; it must not be negative")
    return value
