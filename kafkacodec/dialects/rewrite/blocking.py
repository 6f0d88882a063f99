"""Clients of the rewrite without threads of their own, whose event loop runs in their calls only; and a producer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

from kafkacodec.client.blocking.producer import Producer as Sender
from kafkacodec.client.checks import seconds
from kafkacodec.client.lifecycle import warn_of
from kafkacodec.client.producing.delivery import Delivery
from kafkacodec.dialects.rewrite import aio
from kafkacodec.dialects.rewrite.aio import MessageAndOffset
from kafkacodec.dialects.rewrite.rpcs import Rpc
from kafkacodec.errors import ClientClosed, KafkaCodecError
from kafkacodec.net.loop import new_loop
from kafkacodec.signatures import suggests_options

__all__ = ["Consumer", "KafkaConnection", "KafkaMessage", "Producer", "SendResponse"]

T = TypeVar("T")


class _InCalls:
    """A client of asyncio with an event loop that runs in its calls only; a context manager. It is for one thread."""

    def _begin(self, make: Callable[[], Any]) -> None:
        self._face = make()
        self._made, self._face._made = self._face._made, None
        self._loop = new_loop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        loop = getattr(self, "_loop", None)
        if loop is not None and not loop.is_closed():
            warn_of(self, self._made)
            loop.close()

    def close(self) -> None:
        """Close all connections. Closing twice does nothing."""
        if not self._loop.is_closed():
            try:
                self._run(self._face.close())
                self._run(self._loop.shutdown_asyncgens())
            finally:
                self._loop.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        if self._loop.is_closed():
            work.close()
            raise ClientClosed("the client is closed")
        return self._loop.run_until_complete(work)


class KafkaConnection(_InCalls):
    """As `kafkacodec.dialects.rewrite.aio.KafkaConnection`, without asyncio: sockets are served in `poll` only.

    with rewrite.KafkaConnection("localhost:9096") as connection:
        replies = connection.poll(1.0, rewrite.ListGroups(correlation_id=1))
    """

    @suggests_options
    def __init__(self, bootstrap: str | Iterable[str], *, request_timeout_ms: int = 30_000) -> None:
        self._begin(lambda: aio.KafkaConnection(bootstrap, request_timeout_ms=request_timeout_ms))

    @property
    def pending(self) -> int:
        """How many calls wait for their replies."""
        found: int = self._face.pending
        return found

    def poll(self, timeout: float = 0.0, *requests: Rpc) -> list[Any]:
        """As `kafkacodec.dialects.rewrite.aio.KafkaConnection.poll`."""
        return self._run(self._face.poll(timeout, *requests))


class Consumer(_InCalls):
    """As `kafkacodec.dialects.rewrite.aio.Consumer`, without asyncio and without threads.

    with rewrite.Consumer({"bootstrap.servers": "localhost:9092", "rewrite.servers": "localhost:9096",
                           "group.id": "billing"}) as consumer:
        consumer.add_topic("orders")
        for message in consumer.poll(1.0):
            print(message.offset, message.message)
    """

    def __init__(self, config: Mapping[str, Any], **options: Any) -> None:
        self._begin(lambda: aio.Consumer(config, **options))

    @property
    def assignment(self) -> list[tuple[str, int]]:
        """Topic and number of the partitions that it reads now."""
        found: list[tuple[str, int]] = self._face.assignment
        return found

    @property
    def generation(self) -> int:
        """The generation of the group, as the last heartbeat told it; 0 for none."""
        found: int = self._face.generation
        return found

    @property
    def last_error(self) -> Exception | None:
        """Why the servers of the groups could not be asked, or did not take a commit; None: all is well."""
        found: Exception | None = self._face.last_error
        return found

    def add_topic(self, topic: str, partition: int | None = None) -> None:
        """As `kafkacodec.dialects.rewrite.aio.Consumer.add_topic`."""
        self._face.add_topic(topic, partition)

    def poll(self, timeout: float = 0.0) -> list[MessageAndOffset]:
        """As `kafkacodec.dialects.rewrite.aio.Consumer.poll`."""
        return self._run(self._face.poll(timeout))

    def commit(self, topic: str | None = None, partition: int | None = None) -> None:
        """As `kafkacodec.dialects.rewrite.aio.Consumer.commit`."""
        self._run(self._face.commit(topic, partition))

    def rewind_offsets(self, offsets: Mapping[tuple[str, int], int]) -> None:
        """As `kafkacodec.dialects.rewrite.aio.Consumer.rewind_offsets`."""
        self._run(self._face.rewind_offsets(offsets))


class KafkaMessage(NamedTuple):
    """A message to be sent.

    Attributes:
        topic: where it goes.
        key, message: bytes, text (as UTF-8) or None; or what the producer's serializers take.
    """

    topic: str
    key: Any
    message: Any


class SendResponse:
    """What becomes of messages that were sent together."""

    def __init__(self, outcomes: Sequence[Delivery | KafkaCodecError]) -> None:
        self._outcomes = list(outcomes)
        self._lock = threading.Lock()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until all are known to be delivered or not; False if that took longer than `timeout` seconds."""
        left = seconds("timeout", timeout)
        end = None if left is None else time.monotonic() + left
        for delivery in self._deliveries:
            try:
                delivery.result(None if end is None else max(end - time.monotonic(), 0.0))
            except TimeoutError:
                if not delivery.done():
                    return False
            except KafkaCodecError:
                continue
        return True

    def get_offset(self) -> int | None:
        """The offset of the last message, once it is known; None if it was not delivered."""
        self.wait()
        last = self._outcomes[-1]
        return last.offset if isinstance(last, Delivery) else None

    def get_offsets(self) -> list[int | None]:
        """The offset of each message, as `get_offset`."""
        self.wait()
        return [one.offset if isinstance(one, Delivery) else None for one in self._outcomes]

    def get_error(self) -> Exception | None:
        """Why a message was not delivered, the first such error; None if all were. Waits until it is known."""
        self.wait()
        errors = (one.error if isinstance(one, Delivery) else one for one in self._outcomes)
        return next((error for error in errors if error is not None), None)

    def on_completion(self, function: Callable[[], object]) -> None:
        """Call a function once all are known to be delivered or not, in the producer's thread, or here if they are."""
        deliveries = self._deliveries
        left = len(deliveries) or 1

        def done(_: object = None) -> None:
            nonlocal left
            with self._lock:
                left -= 1
                is_last = left == 0
            if is_last:
                function()

        if not deliveries:
            done()
        for delivery in deliveries:
            delivery.add_done_callback(done)

    @property
    def _deliveries(self) -> list[Delivery]:
        return [one for one in self._outcomes if isinstance(one, Delivery)]


class Producer:
    """Sends messages to Kafka's brokers, by the producer of `kafkacodec.client`; a context manager.

    with rewrite.Producer({"bootstrap.servers": "localhost:9092"}) as producer:
        response = producer.send(rewrite.KafkaMessage("orders", b"key", b"message"))
        print(response.get_offset(), response.get_error())

    Args:
        config: as of `kafkacodec.client.Producer.from_config`, such as ``acks`` and ``compression.type``.
        **options: of `kafkacodec.client.ProducerSettings`, by keyword: serializers, for instance.

    Raises:
        ValueError, TypeError: a name or value is wrong.
    """

    def __init__(self, config: Mapping[str, Any], **options: Any) -> None:
        self._sender = Sender.from_config(config, **options)

    def send(self, *messages: KafkaMessage) -> SendResponse:
        """Send messages; they are collected to batches. Waits only for the first message of a topic, or for memory.

        A message that cannot be sent has its error in what is returned.

        Raises:
            ValueError: no message.
            ClientClosed: the producer is closed.
        """
        if not messages:
            raise ValueError("send() needs a message")
        outcomes: list[Delivery | KafkaCodecError] = []
        for message in messages:
            try:
                outcomes.append(self._sender.send(message.topic, message.message, key=message.key))
            except KafkaCodecError as error:
                outcomes.append(error)
        return SendResponse(outcomes)

    def flush(self, timeout: float | None = None) -> None:
        """Wait until all are known to be delivered or not. Raises DeadlineExceeded."""
        self._sender.flush(timeout)

    def close(self) -> None:
        """Send what waits, and close all connections."""
        self._sender.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
