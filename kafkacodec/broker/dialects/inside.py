"""What services of other protocols use of the broker."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from kafkacodec.datatypes import NamedTuple

if TYPE_CHECKING:
    from kafkacodec.broker.clock import Clock
    from kafkacodec.broker.options import BrokerConfig
    from kafkacodec.broker.state.catalog import Catalog
    from kafkacodec.broker.topics.topics import Topics
    from kafkacodec.net.service import Effect

__all__ = ["Inside", "OwnTopics", "Registering", "Replication", "Running", "Working"]


class Running(Protocol):
    """Runs a service."""

    @property
    def now(self) -> float:
        """The time of the service, in milliseconds since 1970."""

    def run(self, effect: Effect) -> None:
        """Execute an effect and those that follow from it."""

    def flush(self, logs: Iterable[Hashable], then: Callable[[Exception | None], None]) -> None:
        """Flush logs to the disk, then call `then` with the error, or None."""


class Registering(Protocol):
    """Announces a listener's address."""

    async def start(self, address: tuple[str, int]) -> None:
        """Register at a bound address. Raises OSError, ImportError."""

    async def close(self) -> None:
        """End the registration."""


class OwnTopics(Protocol):
    """Topics outside the catalog, with logs of the service."""

    def has_topic(self, name: str) -> bool:
        """Whether a topic has a log."""

    def read(self, topic: str) -> list[tuple[int, bytes]]:
        """Return the visible bytes of all partitions: the offset of the first byte, and the bytes, of each segment."""

    def write(self, topic: str, partition: int, payloads: list[bytes], now: float) -> tuple[int, Effect]:
        """Append messages; return the offset of the first, and the effect. Raises KeyError, EncodeError, OSError."""


class Working(Protocol):
    """Background work of a service, with its own connections."""

    def begin(self, runner: Running) -> None:
        """Start, once the topics are loaded."""

    async def end(self) -> None:
        """Stop, before connections and logs are closed."""


class Replication(NamedTuple):
    """The brokers with the same partitions.

    Attributes:
        broker_id: this broker's place in `addresses`.
        addresses: host and port of each.
        min_in_sync: the number of brokers that must have a record before it is committed.
    """

    broker_id: int
    addresses: list[tuple[str, int]]
    min_in_sync: int


class Inside(NamedTuple):
    """The part of the broker that services of other protocols use.

    Attributes:
        path: the data directory.
        broker_id: the broker's.
        config: of the broker.
        clock: the broker's.
        catalog: its topics; `create` changes it.
        topics: their logs.
        was_clean: whether the last broker stopped cleanly.
        partitions: of topics outside the catalog, by name; 0: as many as configured.
        create: creates a topic with a number of partitions. Raises BrokerError.
        wake: wakes Kafka clients that wait for records; call it after an append.
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
