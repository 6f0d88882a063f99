"""What metadata says of a cluster: where brokers listen, and the topics with their partitions."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from kafkacodec.errors import INVALID_REPLICATION_FACTOR, BrokerError, error

__all__ = ["BrokerAddress", "Partition", "Topic", "newer"]


class BrokerAddress(NamedTuple):
    """Where a broker listens. `node` is negative for an address of the bootstrap list."""

    node: int
    host: str
    port: int
    rack: str | None = None


@dataclass(slots=True)
class Partition:
    """A partition by the newest metadata.

    `leader` is None while there is none; `leader_epoch` is -1 where the broker does not tell it; `error` is why the
    broker could not describe it.
    """

    number: int
    leader: int | None
    leader_epoch: int = -1
    replicas: list[int] = field(default_factory=list)
    isr: list[int] = field(default_factory=list)
    offline: list[int] = field(default_factory=list)
    error: type[BrokerError] | None = None


@dataclass(slots=True)
class Topic:
    """A topic by the newest metadata. `error` is why it cannot be used; `topic_id` is None before Kafka 2.8."""

    name: str
    topic_id: uuid.UUID | None = None
    internal: bool = False
    partitions: dict[int, Partition] = field(default_factory=dict)
    error: type[BrokerError] | None = None

    @property
    def refusal(self) -> type[BrokerError] | None:
        """The error, unless it may pass by itself."""
        # A broker has too few replicas to create a topic also while others, or itself, are not registered yet.
        may_pass = self.error is None or self.error.retriable or self.error.code == INVALID_REPLICATION_FACTOR
        return None if may_pass else self.error


def newer(known: Partition | None, entry: Any) -> Partition:
    """The partition of a response, unless the known leader has a later epoch: brokers learn of leaders at times."""
    found = Partition(
        entry.partition_index,
        entry.leader_id if entry.leader_id >= 0 else None,
        entry.leader_epoch,
        list(entry.replica_nodes),
        list(entry.isr_nodes),
        list(entry.offline_replicas),
        error(entry.error_code) if entry.error_code else None,
    )
    if known is not None and found.leader_epoch >= 0 and known.leader_epoch > found.leader_epoch:
        return replace(found, leader=known.leader, leader_epoch=known.leader_epoch, error=known.error)
    return found
