"""What services of other protocols use of the broker."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from kafkacodec.broker.options import BrokerConfig
    from kafkacodec.broker.state.catalog import Catalog
    from kafkacodec.broker.topics.topics import Topics

__all__ = ["Inside"]


class Inside(NamedTuple):
    """What services of other protocols use of the broker.

    Attributes:
        path: the data directory.
        broker_id: the broker's.
        config: of the broker.
        catalog: its topics; records that change it go through `create`.
        topics: their logs.
        was_clean: the data directory was left in good order.
        partitions: of topics that are not in the catalog, by name; 0: as many as is configured.
        create: makes a topic with a number of partitions. Raises BrokerError.
        wake: clients of Kafka that wait for records look again; to be called after an append.
    """

    path: str
    broker_id: int
    config: BrokerConfig
    catalog: Catalog
    topics: Topics
    was_clean: bool
    partitions: Mapping[str, int]
    create: Callable[[str, int], None]
    wake: Callable[[], None]
