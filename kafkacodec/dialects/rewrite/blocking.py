"""Clients of the rewrite without threads: their event loop runs only during their calls."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, TypeVar

from kafkacodec.client.lifecycle import Closing, warn_of
from kafkacodec.dialects.rewrite import aio
from kafkacodec.dialects.rewrite.aio import MessageAndOffset
from kafkacodec.dialects.rewrite.rpcs import Rpc
from kafkacodec.errors import ClientClosed
from kafkacodec.net.loop import new_loop
from kafkacodec.signatures import suggests_options

__all__ = ["Consumer", "KafkaConnection"]

T = TypeVar("T")


class _InCalls(Closing):
    """A client of asyncio with an event loop that runs in its calls only; a context manager. It is for one thread."""

    def _begin(self, make: Callable[[], Any]) -> None:
        self._face = make()
        self._made, self._face._made = self._face._made, None
        self._loop = new_loop()

    def __repr__(self) -> str:
        return repr(self._face).replace("aio.", "", 1)

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
        """The number of pending calls."""
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
        """The generation of the group, from the last heartbeat; 0 for none."""
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
