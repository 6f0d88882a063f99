"""What services of other protocols use of the broker."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from kafkacodec.broker.clock import Clock
    from kafkacodec.broker.options import BrokerConfig
    from kafkacodec.broker.state.catalog import Catalog
    from kafkacodec.broker.topics.topics import Topics
    from kafkacodec.net.service import Effect

__all__ = ["Inside", "OwnTopics", "Registering", "Replication", "Running", "Working"]


class Running(Protocol):
    """What runs a service."""

    @property
    def now(self) -> float:
        """The time of the service, in milliseconds since 1970."""

    def run(self, effect: Effect) -> None:
        """Carry out an effect and those that follow from it."""

    def flush(self, logs: Iterable[Hashable], then: Callable[[Exception | None], None]) -> None:
        """Flush logs to the disk, then call `then` with the error, or None."""


class Registering(Protocol):
    """What makes a listener's address known."""

    async def start(self, address: tuple[str, int]) -> None:
        """Register at a bound address. Raises OSError, ImportError."""

    async def close(self) -> None:
        """End the registration."""


class OwnTopics(Protocol):
    """Topics that are not in the catalog, but logs of a service's own."""

    def has_topic(self, name: str) -> bool:
        """Whether there is a log of a topic."""

    def read(self, topic: str) -> list[tuple[int, bytes]]:
        """What readers see of all partitions: the offset of the first byte, and the bytes, of each segment."""

    def write(self, topic: str, partition: int, payloads: list[bytes], now: float) -> tuple[int, Effect]:
        """Append messages; returns the offset of the first, and what follows. Raises KeyError, EncodeError, OSError."""


class Working(Protocol):
    """What works beside a service, with connections of its own."""

    def begin(self, runner: Running) -> None:
        """Begin: the topics are loaded."""

    async def end(self) -> None:
        """Stop, before connections and logs are closed."""


class Replication(NamedTuple):
    """The brokers that have the same partitions.

    Attributes:
        broker_id: this one, by its place in `addresses`.
        addresses: host and port of each.
        min_in_sync: on how many of them a record must be to count as committed.
    """

    broker_id: int
    addresses: list[tuple[str, int]]
    min_in_sync: int


class Inside(NamedTuple):
    """What services of other protocols use of the broker.

    Attributes:
        path: the data directory.
        broker_id: the broker's.
        config: of the broker.
        clock: the broker's.
        catalog: its topics; records that change it go through `create`.
        topics: their logs.
        was_clean: the data directory was left in good order.
        partitions: of topics that are not in the catalog, by name; 0: as many as is configured.
        create: makes a topic with a number of partitions. Raises BrokerError.
        wake: clients of Kafka that wait for records look again; to be called after an append.
        replication: the brokers with the same partitions; None: this is the only one.
    """

    path: str
    broker_id: int
    config: BrokerConfig
    clock: Clock
    catalog: Catalog
    topics: Topics
    was_clean: bool
    partitions: Mapping[str, int]
    create: Callable[[str, int], None]
    wake: Callable[[], None]
    replication: Replication | None = None
