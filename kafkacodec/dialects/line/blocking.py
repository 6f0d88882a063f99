"""A producer and a consumer of the line protocol for threads."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING, Unpack

from kafkacodec.dialects.line import aio
from kafkacodec.dialects.threads import ThreadClient, copy_outcome
from kafkacodec.signatures import shows_options

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kafkacodec.dialects.line.aio import Acks, Message, Produced

__all__ = ["Consumer", "Producer"]


class Producer(ThreadClient):
    """As `kafkacodec.dialects.line.aio.Producer`, for threads.

    with line.Producer("127.0.0.1:9094") as producer:
        delivery = producer.send("orders", "user1", "created")
        print(delivery.result().offset)
    """

    @shows_options(aio.ProducerOptions, aio.Producer)
    def __init__(self, address: str | Iterable[str], **options: Unpack[aio.ProducerOptions]) -> None:
        face = aio.Producer(address, **options)
        self._begin(face, "kafkacodec line producer")

    def send(self, topic: str, key: str, value: str, *, acks: Acks | None = None) -> Future[Produced]:
        """Send a record; the future has its place, or the error. Waits only while too many are in flight.

        It has the arguments and errors of `kafkacodec.dialects.line.aio.Producer.send`.
        """
        delivery: Future[Produced] = Future()
        delivery.set_running_or_notify_cancel()  # it cannot be cancelled

        async def begin() -> None:
            task = await self._face.send(topic, key, value, acks=acks)
            task.add_done_callback(lambda task: copy_outcome(task, delivery))

        self._thread.run(begin)
        return delivery

    def flush(self) -> None:
        """Wait for the outcome of all records."""
        self._thread.run(self._face.flush)


class Consumer(ThreadClient):
    """As `kafkacodec.dialects.line.aio.Consumer`, for threads; it sends heartbeats between calls.

    with line.Consumer("127.0.0.1:9094", "billing", "orders") as consumer:
        for message in consumer.poll(timeout=5):
            print(message.offset, message.value)
    """

    @shows_options(aio.ConsumerOptions, aio.Consumer)
    def __init__(
        self, address: str | Iterable[str], group: str, topics: str | Iterable[str],
        **options: Unpack[aio.ConsumerOptions],
    ) -> None:  # fmt: skip
        face = aio.Consumer(address, group, topics, **options)
        self._begin(face, "kafkacodec line consumer")

    @property
    def assignment(self) -> list[tuple[str, int]]:
        """Topic and number of its partitions, from the last answer."""
        found: list[tuple[str, int]] = self._face.assignment
        return found

    @property
    def generations(self) -> dict[str, int | None]:
        """The generation of each topic's group that it is a member of; None: of none."""
        found: dict[str, int | None] = self._face.generations
        return found

    def poll(self, timeout: float = 0.0) -> list[Message]:
        """As `kafkacodec.dialects.line.aio.Consumer.poll`."""
        found: list[Message] = self._thread.run(lambda: self._face.poll(timeout))
        return found

    def commit(self) -> None:
        """As `kafkacodec.dialects.line.aio.Consumer.commit`."""
        self._thread.run(self._face.commit)

    def seek(self, topic: str, partition: int, offset: int) -> None:
        """As `kafkacodec.dialects.line.aio.Consumer.seek`."""

        async def seek() -> None:
            self._face.seek(topic, partition, offset)

        self._thread.run(seek)
