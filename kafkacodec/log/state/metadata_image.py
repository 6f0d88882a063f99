"""A KRaft cluster's metadata as the records of its metadata log build it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from kafkacodec.datatypes import dataclass, field
from kafkacodec.errors import CorruptRecord
from kafkacodec.protocol.terms import CONFIGURED
from kafkacodec.shown import counted, repr_of

__all__ = ["ClusterMetadata", "complete_records"]

R = TypeVar("R", bound=tuple[Any, ...])

# The leader of a PartitionChangeRecord that does not change it.
_NO_LEADER_CHANGE = -2


def complete_records(records: Iterable[R]) -> Iterator[R]:
    """The records that count. Those of a metadata transaction count when it ends, and not if it is aborted (KIP-868).

    Args:
        records: offsets and records, and what else there is of them, in the order of the log.
    """
    held: list[R] | None = None
    for row in records:
        name = type(row[1]).__name__
        if name == "BeginTransactionRecord":
            held = []
        elif name in ("EndTransactionRecord", "AbortTransactionRecord"):
            if name == "EndTransactionRecord":
                yield from held or ()
            held = None
        elif held is not None:
            held.append(row)
        else:
            yield row


@dataclass(repr=False)
class ClusterMetadata:
    """The state that the records build, as plain values for JSON (uuids are `uuid.UUID`).

    Attributes:
        offset: the offset after the last record.
        topics: by name: ``topic_id`` and ``partitions`` by number (``replicas``, ``isr``, ``leader``,
            ``leader_epoch``, ``partition_epoch``).
        configs: ``"topic:orders"`` -> name -> value.
        acls: the access control entries, by id.
        brokers: by id: ``epoch``, ``rack``, ``fenced``, ``endpoints``.
        features: name -> level.
    """

    offset: int = 0
    topics: dict[str, dict[str, Any]] = field(default_factory=dict)
    configs: dict[str, dict[str, str]] = field(default_factory=dict)
    acls: dict[uuid.UUID, dict[str, Any]] = field(default_factory=dict)
    brokers: dict[int, dict[str, Any]] = field(default_factory=dict)
    features: dict[str, int] = field(default_factory=dict)
    _names: dict[uuid.UUID, str] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __repr__(self) -> str:
        return repr_of(
            self,
            f"offset {self.offset}",
            counted(len(self.topics), "topic"),
            counted(len(self.brokers), "broker"),
            counted(len(self.configs), "configured resource"),
            counted(len(self.acls), "ACL"),
            counted(len(self.features), "feature"),
        )

    def apply(self, record: Any) -> None:
        """Apply one metadata record; records of types that do not change this state are ignored.

        Raises:
            CorruptRecord: the topic's name or id exists already; a controller would not load such a record either.
        """
        change = _CHANGES.get(type(record).__name__)
        if change is not None:
            change(self, record)

    def _partitions(self, topic_id: uuid.UUID) -> dict[int, dict[str, Any]]:
        """The partitions of a topic; for an unknown topic, a dict that is discarded."""
        name = self._names.get(topic_id)
        partitions: dict[int, dict[str, Any]] = self.topics[name]["partitions"] if name is not None else {}
        return partitions

    def _on_topic(self, record: Any) -> None:
        if record.name in self.topics or record.topic_id in self._names:
            raise CorruptRecord(f"duplicate topic {record.name!r} or topic id {record.topic_id}")
        self.topics[record.name] = {"topic_id": record.topic_id, "partitions": {}}
        self._names[record.topic_id] = record.name

    def _on_remove_topic(self, record: Any) -> None:
        name = self._names.pop(record.topic_id, None)
        if name is not None:
            del self.topics[name]
            self.configs.pop(f"topic:{name}", None)

    def _on_partition(self, record: Any) -> None:
        self._partitions(record.topic_id)[record.partition_id] = {
            "replicas": record.replicas,
            "isr": record.isr,
            "leader": record.leader,
            "leader_epoch": record.leader_epoch,
            "partition_epoch": record.partition_epoch,
        }

    def _on_partition_change(self, record: Any) -> None:
        partition = self._partitions(record.topic_id).get(record.partition_id)
        if partition is None:
            return
        if record.isr is not None:
            partition["isr"] = record.isr
        if record.replicas is not None:
            partition["replicas"] = record.replicas
        if record.leader != _NO_LEADER_CHANGE:
            partition["leader"] = record.leader
            partition["leader_epoch"] += 1
        partition["partition_epoch"] += 1

    def _on_config(self, record: Any) -> None:
        kind = CONFIGURED.get(record.resource_type, str(record.resource_type))
        resource = f"{kind}:{record.resource_name}"
        configs = self.configs.setdefault(resource, {})
        if record.value is not None:
            configs[record.name] = record.value
        else:
            configs.pop(record.name, None)
        if not configs:
            del self.configs[resource]

    def _on_access_control_entry(self, record: Any) -> None:
        entry = record.to_dict()
        self.acls[entry.pop("id")] = entry

    def _on_remove_access_control_entry(self, record: Any) -> None:
        self.acls.pop(record.id, None)

    def _on_register_broker(self, record: Any) -> None:
        self.brokers[record.broker_id] = {
            "epoch": record.broker_epoch,
            "rack": record.rack,
            "fenced": record.fenced,
            "endpoints": [f"{point.name}://{point.host}:{point.port}" for point in record.end_points],
        }

    def _on_unregister_broker(self, record: Any) -> None:
        self.brokers.pop(record.broker_id, None)

    def _on_fence_broker(self, record: Any) -> None:
        self._set_fenced(record.id, True)

    def _on_unfence_broker(self, record: Any) -> None:
        self._set_fenced(record.id, False)

    def _on_broker_registration_change(self, record: Any) -> None:
        if record.fenced:
            self._set_fenced(record.broker_id, record.fenced > 0)

    def _set_fenced(self, broker: int, fenced: bool) -> None:
        if broker in self.brokers:
            self.brokers[broker]["fenced"] = fenced

    def _on_feature_level(self, record: Any) -> None:
        if record.feature_level:
            self.features[record.name] = record.feature_level
        else:
            self.features.pop(record.name, None)


_CHANGES: dict[str, Callable[[ClusterMetadata, Any], None]] = {
    "TopicRecord": ClusterMetadata._on_topic,
    "RemoveTopicRecord": ClusterMetadata._on_remove_topic,
    "PartitionRecord": ClusterMetadata._on_partition,
    "PartitionChangeRecord": ClusterMetadata._on_partition_change,
    "ConfigRecord": ClusterMetadata._on_config,
    "AccessControlEntryRecord": ClusterMetadata._on_access_control_entry,
    "RemoveAccessControlEntryRecord": ClusterMetadata._on_remove_access_control_entry,
    "RegisterBrokerRecord": ClusterMetadata._on_register_broker,
    "UnregisterBrokerRecord": ClusterMetadata._on_unregister_broker,
    "FenceBrokerRecord": ClusterMetadata._on_fence_broker,
    "UnfenceBrokerRecord": ClusterMetadata._on_unfence_broker,
    "BrokerRegistrationChangeRecord": ClusterMetadata._on_broker_registration_change,
    "FeatureLevelRecord": ClusterMetadata._on_feature_level,
}
"""The change that a record makes, by the name of its class; other records make none."""
