"""The contents of cluster metadata: broker addresses, topics and partitions."""

from __future__ import annotations

import uuid
from typing import Any

from kafkacodec.datatypes import NamedTuple, dataclass, field, replace
from kafkacodec.errors import INVALID_REPLICATION_FACTOR, BrokerError, error

__all__ = ["BrokerAddress", "Partition", "Topic", "alike", "newer"]


class BrokerAddress(NamedTuple):
    """The address of a broker. `node` is negative for a bootstrap address."""

    node: int
    host: str
    port: int
    rack: str | None = None


@dataclass(eq=False, slots=True)
class Partition:
    """A partition according to the newest metadata.

    `leader` is None while there is none; `leader_epoch` is -1 if the broker did not report it; `error` is why the
    broker could not describe the partition.
    """

    number: int
    leader: int | None
    leader_epoch: int = -1
    replicas: list[int] = field(default_factory=list)
    isr: list[int] = field(default_factory=list)
    offline: list[int] = field(default_factory=list)
    error: type[BrokerError] | None = None


@dataclass(eq=False, slots=True)
class Topic:
    """A topic according to the newest metadata. `error` is why it is unusable; `topic_id` is None before Kafka 2.8."""

    name: str
    topic_id: uuid.UUID | None = None
    internal: bool = False
    partitions: dict[int, Partition] = field(default_factory=dict)
    error: type[BrokerError] | None = None

    @property
    def refusal(self) -> type[BrokerError] | None:
        """The error, unless it is temporary."""
        # Too few replicas to create a topic is temporary too: brokers may not have registered yet.
        may_pass = self.error is None or self.error.retriable or self.error.code == INVALID_REPLICATION_FACTOR
        return None if may_pass else self.error


def alike(old: Topic | None, new: Topic) -> bool:
    """Whether nothing changed that a client waits for: the topic's id and error, its partitions and their leaders."""
    if old is None or old.topic_id != new.topic_id or old.error is not new.error:
        return False
    if old.partitions.keys() != new.partitions.keys():
        return False
    pairs = ((partition, new.partitions[number]) for number, partition in old.partitions.items())
    return all(a.leader == b.leader and a.leader_epoch == b.leader_epoch for a, b in pairs)


def newer(known: Partition | None, entry: Any) -> Partition:
    """The newer of the known partition and that of a response, by leader epoch: brokers may lag behind."""
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
