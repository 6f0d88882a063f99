"""The interface of the asyncio clients for blocking clients, beyond their public methods. They use nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafkacodec.client.aio.consumer import Consumer
    from kafkacodec.client.aio.consumer_parts import ConsumerParts, Soon
    from kafkacodec.client.aio.producer import Producer
    from kafkacodec.client.aio.share_consumer import ShareConsumer
    from kafkacodec.client.consuming.positions import Key
    from kafkacodec.client.consuming.subscription import OnPartitions
    from kafkacodec.client.producing.queue import Queues

__all__ = ["ConsumerInside", "ProducerInside", "start_share_consumer"]


class ProducerInside:
    """Of a producer: its queues, which other threads fill, and what these ask its loop for.

    Attributes:
        is_plain: whether records need no function of the application.
        check_transaction, begun_at_once, serialized, make_ready, table, rows: for any thread.
        prepare, room, rolled_back: for the loop's thread.
    """

    def __init__(self, producer: Producer) -> None:
        from kafkacodec.client.producing.serializing import serialized  # consumers do not need it

        self._producer = producer
        self.is_plain = producer._is_plain
        self.check_transaction = producer._check_transaction
        self.begun_at_once = producer._begun_at_once
        self.serialized = partial(serialized, producer._settings)
        self.make_ready = producer._make_ready
        self.table = producer._table
        self.rows = producer._rows
        self.prepare = producer._prepare
        self.room = producer._room
        self.rolled_back = producer._rolled_back

    async def start(self) -> Queues:
        """Use the running event loop from now on. Returns the queues."""
        await self._producer.start()
        self._producer._use_shortcuts()
        return self._producer._queues

    def woken(self) -> Callable[[], None]:
        """What sends due batches, in a callback of the loop. It does not keep the producer alive."""
        assert self._producer._network is not None
        return partial(self._producer._network.poll, self._producer._sender)


class ConsumerInside:
    """The inside of a consumer that another thread reads from.

    Args:
        consumer: not started yet.
        soon: calls a function in the loop's thread.
        ready: called when there may be something to read.
        call: calls a function of the application with partitions.

    Attributes:
        settings: the consumer's.
    """

    def __init__(
        self,
        consumer: Consumer,
        soon: Soon,
        ready: Callable[[], None],
        call: Callable[[OnPartitions, list[Key]], Any],
    ) -> None:
        self._consumer = consumer
        self.settings = consumer._settings
        consumer._soon, consumer._ready, consumer._call = soon, ready, call

    async def start(self) -> ConsumerParts:
        """Use the running event loop from now on. Return the parts of the consumer."""
        return self._consumer._started()

    def commit_later(self, parts: ConsumerParts, offsets: Mapping[Key, Any] | None) -> None:
        """The part of `commit` that does not wait, in the application's thread."""
        group, found, versions = self._consumer._to_commit(parts, offsets)
        group.offsets.commit_later(found, versions, parts.soon)

    def left_by(self, exception: bool) -> None:
        """A ``with`` block has ended; by an exception, or not."""
        self._consumer._interrupted = exception

    def check_something_to_read(self, parts: ConsumerParts) -> None:
        """Raise the errors that reading raises before it waits."""
        self._consumer._check_something_to_read(parts)

    def explain_nothing(self, parts: ConsumerParts) -> None:
        """Raise, or log, why nothing came in time."""
        self._consumer._explain_nothing(parts)


async def start_share_consumer(consumer: ShareConsumer) -> None:
    """Use the running event loop from now on."""
    consumer._started()
