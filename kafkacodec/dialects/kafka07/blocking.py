"""A producer, a consumer in a group, and a simple consumer of Kafka 0.7, for threads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Unpack

from kafkacodec.dialects.kafka07 import aio
from kafkacodec.dialects.kafka07.options import ConsumerOptions, ProducerOptions
from kafkacodec.dialects.threads import ThreadClient, copy_outcome
from kafkacodec.signatures import shows_options, suggests_options

if TYPE_CHECKING:
    from kafkacodec.dialects.kafka07.aio import Message, Place, Sent
    from kafkacodec.dialects.kafka07.wire import FetchRequest, FetchResponse
    from kafkacodec.records.columns import RecordColumns

__all__ = ["Consumer", "Producer", "SimpleConsumer"]


class Producer(ThreadClient):
    """As `kafkacodec.dialects.kafka07.aio.Producer`, for threads.

    with kafka07.Producer("127.0.0.1:2181") as producer:
        producer.send("orders", b"created", key="user1")
    """

    @shows_options(ProducerOptions, aio.Producer)
    def __init__(self, zookeeper: str | None = None, **options: Unpack[ProducerOptions]) -> None:
        face = aio.Producer(zookeeper, **options)
        self._begin(face, "kafkacodec 0.7 producer")

    def send(self, topic: str, value: bytes, *, key: str | None = None) -> Future[Sent]:
        """Send a message; the future has the broker that it went to, or the error.

        It has the arguments and errors of `kafkacodec.dialects.kafka07.aio.Producer.send`.
        """
        delivery: Future[Sent] = Future()
        delivery.set_running_or_notify_cancel()  # it cannot be cancelled

        async def begin() -> None:
            sent = await self._face.send(topic, value, key=key)
            sent.add_done_callback(lambda sent: copy_outcome(sent, delivery))

        self._thread.run(begin)
        return delivery

    def flush(self) -> None:
        """Send everything now, and wait for the outcome."""
        self._thread.run(self._face.flush)


class SimpleConsumer(ThreadClient):
    """As `kafkacodec.dialects.kafka07.aio.SimpleConsumer`, for threads.

    with kafka07.SimpleConsumer("127.0.0.1:9092") as consumer:
        columns = consumer.fetch("orders", 0, consumer.earliest("orders", 0))
    """

    @suggests_options
    def __init__(self, server: str, *, request_timeout_ms: int = 30_000) -> None:
        self._begin(aio.SimpleConsumer(server, request_timeout_ms=request_timeout_ms), "kafkacodec 0.7 consumer")

    @suggests_options
    def fetch(
        self, topic: str, partition: int, offset: int, *, max_size: int = 1 << 20, max_message_size: int = 64 << 20
    ) -> RecordColumns:
        """As `kafkacodec.dialects.kafka07.aio.SimpleConsumer.fetch`."""
        found: RecordColumns = self._thread.run(
            lambda: self._face.fetch(topic, partition, offset, max_size=max_size, max_message_size=max_message_size)
        )
        return found

    def multifetch(self, requests: Sequence[FetchRequest]) -> list[FetchResponse]:
        """As `kafkacodec.dialects.kafka07.aio.SimpleConsumer.multifetch`."""
        found: list[FetchResponse] = self._thread.run(lambda: self._face.multifetch(requests))
        return found

    def offsets(self, topic: str, partition: int, time: int, max_offsets: int) -> list[int]:
        """As `kafkacodec.dialects.kafka07.aio.SimpleConsumer.offsets`."""
        found: list[int] = self._thread.run(lambda: self._face.offsets(topic, partition, time, max_offsets))
        return found

    def earliest(self, topic: str, partition: int) -> int:
        """The first offset of a partition."""
        found: int = self._thread.run(lambda: self._face.earliest(topic, partition))
        return found

    def latest(self, topic: str, partition: int) -> int:
        """The end of a partition."""
        found: int = self._thread.run(lambda: self._face.latest(topic, partition))
        return found


class Consumer(ThreadClient):
    """As `kafkacodec.dialects.kafka07.aio.Consumer`, for threads; it stays a member between calls.

    with kafka07.Consumer("127.0.0.1:2181", "orders", group="billing") as consumer:
        for message in consumer.poll(timeout=5):
            print(message.value)
    """

    @shows_options(ConsumerOptions, aio.Consumer)
    def __init__(
        self, zookeeper: str, topics: str | Iterable[str] | Mapping[str, int] = (), *, group: str,
        **options: Unpack[ConsumerOptions],
    ) -> None:  # fmt: skip
        face = aio.Consumer(zookeeper, topics, group=group, **options)
        self._begin(face, "kafkacodec 0.7 group")

    @property
    def consumer_id(self) -> str:
        """The id of the member."""
        found: str = self._face.consumer_id
        return found

    @property
    def assignment(self) -> list[Place]:
        """The partitions that it owns."""
        found: list[Place] = self._face.assignment
        return found

    def poll(self, timeout: float = 0.0) -> list[Message]:
        """As `kafkacodec.dialects.kafka07.aio.Consumer.poll`."""
        found: list[Message] = self._thread.run(lambda: self._face.poll(timeout))
        return found

    def commit(self) -> None:
        """As `kafkacodec.dialects.kafka07.aio.Consumer.commit`."""
        self._thread.run(self._face.commit)
