"""Topics as administrators see them: to be created, listed and described."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence

from kafkacodec.arguments import config_texts, require_int, require_text
from kafkacodec.client.checks import mapping
from kafkacodec.datatypes import NamedTuple, dataclass, field
from kafkacodec.signatures import suggests_arguments

__all__ = [
    "CreatedTopic",
    "NewPartitions",
    "NewTopic",
    "PartitionDescription",
    "TopicDescription",
    "TopicListing",
]

_INT32_MAX = 2**31 - 1


@suggests_arguments
@dataclass(frozen=True)
class NewTopic:
    """A topic to create.

    Args:
        name: its name.
        num_partitions: -1 for the broker's default (Kafka 2.4 and later).
        replication_factor: -1 for the broker's default (Kafka 2.4 and later).
        replica_assignments: the brokers of each partition, the preferred leader first; the two numbers must then be -1.
        configs: configurations that differ from the broker's defaults: text, or a number or bool.

    Raises:
        TypeError, ValueError: an argument has a wrong type, or a number is out of range.
    """

    name: str
    num_partitions: int = -1
    replication_factor: int = -1
    replica_assignments: Mapping[int, Sequence[int]] = field(default_factory=dict)
    configs: Mapping[str, str | float | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_text("the name of a topic", self.name)
        for name in ("num_partitions", "replication_factor"):
            require_int(name, getattr(self, name), -_INT32_MAX - 1, _INT32_MAX)
        for number, brokers in mapping("replica_assignments", self.replica_assignments).items():
            require_int("a partition in replica_assignments", number, 0, _INT32_MAX)
            if isinstance(brokers, (str, bytes)) or not isinstance(brokers, Iterable):
                raise TypeError(f"replica_assignments must have a list of brokers by partition, not {brokers!r}")
        config_texts("configs", self.configs)


class CreatedTopic(NamedTuple):
    """A created topic. Values that older brokers do not report are None, -1 or empty.

    ``configs`` is its whole configuration; sensitive values are None.
    """

    name: str
    topic_id: uuid.UUID | None
    num_partitions: int
    replication_factor: int
    configs: dict[str, str | None]


class TopicListing(NamedTuple):
    """A topic of a cluster. `topic_id` is None before Kafka 2.8."""

    name: str
    topic_id: uuid.UUID | None
    internal: bool
    num_partitions: int


class PartitionDescription(NamedTuple):
    """A partition. `leader` is None while there is none; `leader_epoch` is -1 before Kafka 2.1."""

    partition: int
    leader: int | None
    leader_epoch: int
    replicas: list[int]
    isr: list[int]
    offline: list[int]


class TopicDescription(NamedTuple):
    """A topic with its partitions. `authorized_operations` is None unless requested."""

    name: str
    topic_id: uuid.UUID | None
    internal: bool
    partitions: list[PartitionDescription]
    authorized_operations: frozenset[str] | None


@suggests_arguments
@dataclass(frozen=True)
class NewPartitions:
    """The new number of partitions of a topic, and the brokers for the new ones.

    Args:
        total: the total number of partitions, including the present ones.
        assignments: the brokers for each new partition; None lets the controller choose.
    """

    total: int
    assignments: Sequence[Sequence[int]] | None = None

    def __post_init__(self) -> None:
        require_int("total", self.total, -_INT32_MAX - 1, _INT32_MAX)
