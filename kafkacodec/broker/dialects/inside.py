"""What services of other protocols use of the broker."""

from __future__ import annotations

from collections.abc import Callable
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
        config: of the broker.
        catalog: its topics; records that change it go through `create`.
        topics: their logs.
        create: makes a topic with a number of partitions. Raises BrokerError.
        wake: clients of Kafka that wait for records look again; to be called after an append.
    """

    path: str
    config: BrokerConfig
    catalog: Catalog
    topics: Topics
    create: Callable[[str, int], None]
    wake: Callable[[], None]
