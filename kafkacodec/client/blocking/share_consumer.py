"""The blocking share consumer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Self, Unpack

from kafkacodec.client.aio import share_consumer as aio
from kafkacodec.client.aio.inside import start_share_consumer
from kafkacodec.client.consuming.positions import Key
from kafkacodec.client.core.foreign_names import knows
from kafkacodec.client.core.foreign_options import instead_of
from kafkacodec.client.lifecycle import BlockingClient, blocking, owned
from kafkacodec.client.security.config_words import from_config
from kafkacodec.client.sharing.deliveries import ShareRecord
from kafkacodec.client.sharing.settings import ShareConsumerOptions, ShareConsumerSettings
from kafkacodec.net.loop import LoopThread
from kafkacodec.signatures import shows_options

__all__ = ["ShareConsumer"]


@knows("ShareConsumer")
class ShareConsumer(BlockingClient):
    """Reads topics together with other members of a share group: each record goes to one of them, as in a queue.

    Needs Kafka 4.2, or 4.1 with share groups enabled. The consumer holds a record for some time (30 s by default at the
    broker), in which it accepts, releases or rejects the record. The broker delivers unacknowledged records again. Use
    it from one thread at a time. A context manager, and an iterable over records that never ends::

        with ShareConsumer("jobs", bootstrap_servers="localhost:9092", group_id="workers") as consumer:
            for record in consumer:
                ...

    Args:
        topics: to read; `subscribe` does it later.
        bootstrap_servers, **options: `kafkacodec.client.ShareConsumerSettings` describes them.

    Raises:
        TypeError, ValueError: an option is unknown or has a wrong value.
    """

    _face: aio.ShareConsumer

    @shows_options(ShareConsumerOptions, ShareConsumerSettings, instead_of)
    def __init__(
        self,
        *topics: str,
        bootstrap_servers: str | Iterable[str],
        group_id: str,
        **options: Unpack[ShareConsumerOptions],
    ) -> None:
        self._face = owned(
            aio.ShareConsumer(*topics, bootstrap_servers=bootstrap_servers, group_id=group_id, **options)
        )
        self._thread = LoopThread("kafkacodec share consumer")
        try:
            self._thread.run(partial(start_share_consumer, self._face))
        except BaseException:
            self._thread.close()
            raise

    @classmethod
    def from_config(cls, config: Mapping[str, Any], *topics: str, **options: Any) -> Self:
        """Make a share consumer with the dotted option names of Java, such as ``bootstrap.servers``.

        Pass `options` by keyword, as to the class: deserializers, for instance.

        Raises:
            TypeError: a name is unknown; the error has the nearest known one.
            ValueError: a value is wrong.
        """
        return from_config(cls, config, aio.DEFAULTS, topics, options)

    subscribe = blocking(aio.ShareConsumer.subscribe)
    getmany = blocking(aio.ShareConsumer.getmany)
    commit = blocking(aio.ShareConsumer.commit)

    def __iter__(self) -> Iterator[ShareRecord]:
        while True:
            yield from self.getmany(None, 1)

    def acknowledge(self, record: ShareRecord, kind: str = "accept") -> None:
        """Acknowledge a record."""

        async def acknowledge() -> None:
            self._face.acknowledge(record, kind)

        self._thread.run(acknowledge)

    acknowledge.__doc__ = aio.ShareConsumer.acknowledge.__doc__

    def assignment(self) -> list[Key]:
        """The current partitions, as (topic, number). Other members may read them too."""
        return self._face.assignment()

    def metrics(self) -> dict[str, float]:
        """Return the client's metrics by name; `kafkacodec.client.METRICS` describes them."""
        return self._face.metrics()
