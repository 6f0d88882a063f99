"""The metadata of the cluster: topics, partitions, configurations, features, users, quotas, as records of its log.

A decision makes records. They are appended to ``__cluster_metadata``, then applied, with the method that also loads
the state at the start: `kafkacodec.log` reads the same records in the same way.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from kafkacodec import messages
from kafkacodec.arguments import meant
from kafkacodec.broker.state.access import Access
from kafkacodec.datatypes import NamedTuple, dataclass, field
from kafkacodec.log.state.metadata_image import ClusterMetadata
from kafkacodec.messages.stored import encode_metadata_record
from kafkacodec.protocol.terms import CONFIG_RESOURCES

__all__ = ["FEATURES", "PRODUCER_IDS", "Catalog", "NewPartition", "Topic"]

FEATURES: Final[Mapping[str, tuple[int, int, int]]] = {
    "eligible.leader.replicas.version": (0, 1, 1),
    "group.version": (0, 1, 1),
    "kraft.version": (0, 1, 0),
    "metadata.version": (7, 27, 27),
    "share.version": (0, 2, 1),
    "streams.version": (0, 1, 0),
    "transaction.version": (0, 2, 2),
}
"""The features of Apache Kafka by name: lowest and highest level, and the level of a new directory, as 4.1.0 makes it.

The first streams group raises streams.version, since Apache Kafka 4.1 does not open a directory with level 1; the first
topic for what a share group gives up raises share.version to 2 for the same reason.
"""

PRODUCER_IDS: Final = 1000
"""The number of producer ids to reserve at a time."""

_PARTITION_VERSION: Final = 1  # with directories; read by Kafka 3.7 and later
_REGISTRATION_VERSION: Final = 3
_REGISTRATION_CHANGE_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as the metadata has it.

    Attributes:
        name: the name.
        id: the id.
        partitions: their number.
    """

    name: str
    id: uuid.UUID
    partitions: int


class NewPartition(NamedTuple):
    """A partition that records of the metadata log make; `configs` are those that a new topic is made with."""

    topic: str
    topic_id: uuid.UUID
    number: int
    leader_epoch: int
    configs: Mapping[str, str]


@dataclass
class Catalog:
    """The state of the cluster, from the records of the metadata log.

    Args:
        node_id: the broker whose data directory it is.
        directory_id: of its data directory.
        changed: called for each applied record.

    Attributes:
        metadata: topics, configurations, access control, brokers, features.
        next_producer_id: the first unreserved producer id.
        scram: by user and mechanism: the record with salt, keys and iterations.
        tokens: delegation tokens by id.
        access: the access control entries.
        quotas: by entity (pairs of type and name): value by key.
    """

    node_id: int
    directory_id: uuid.UUID
    changed: Callable[[Any], None] = lambda record: None
    metadata: ClusterMetadata = field(default_factory=ClusterMetadata)
    next_producer_id: int = 0
    scram: dict[tuple[str, int], Any] = field(default_factory=dict)
    quotas: dict[tuple[tuple[str, str | None], ...], dict[str, float]] = field(default_factory=dict)
    tokens: dict[str, Any] = field(default_factory=dict)
    access: Access = field(default_factory=Access)
    _ids: dict[uuid.UUID, str] = field(default_factory=dict)
    _asked: dict[str, Topic] = field(default_factory=dict)  # what `topic` has found since the last change

    # Loading

    def partitions_made(self, records: Iterable[Any]) -> list[NewPartition]:
        """The partitions that records would make."""
        names: dict[uuid.UUID, str] = {}
        configs: dict[str, dict[str, str]] = {}
        found = []
        for record in records:
            if isinstance(record, messages.TopicRecord):
                names[record.topic_id] = record.name
                configs[record.name] = {}
            elif isinstance(record, messages.ConfigRecord) and record.resource_name in configs:
                configs[record.resource_name][record.name] = record.value or ""
            elif isinstance(record, messages.PartitionRecord):
                key = record.topic_id, record.partition_id
                name = names.get(record.topic_id) or self._ids[record.topic_id]
                found.append(NewPartition(name, *key, record.leader_epoch, configs.get(name, {})))
        return found

    def apply(self, record: Any) -> None:
        """Apply a record."""
        self._asked.clear()
        self.metadata.apply(record)
        change = _CHANGES.get(type(record).__name__)
        if change is not None:
            change(self, record)
        self.changed(record)

    # Questions

    def topic(self, name: str) -> Topic | None:
        """A topic by its name."""
        asked = self._asked.get(name)
        if asked is None and (found := self.metadata.topics.get(name)) is not None:
            asked = self._asked[name] = Topic(name, found["topic_id"], len(found["partitions"]))
        return asked

    def known(self, name: str) -> Topic:
        """A topic by its name. Raises KeyError, which names a similar one."""
        if (found := self.topic(name)) is None:
            hint = meant(name, self.names())
            raise KeyError(f"there is no topic {name!r}{hint and '; '}{hint}")
        return found

    def topic_of(self, topic_id: uuid.UUID) -> Topic | None:
        """A topic by its id."""
        name = self._ids.get(topic_id)
        return None if name is None else self.topic(name)

    def names(self) -> list[str]:
        """The names of all topics."""
        return list(self.metadata.topics)

    def configs(self, kind: str, name: str) -> dict[str, str]:
        """Return the settings of a resource: ``topic``, ``broker``, ``group`` or ``client-metrics``."""
        return self.metadata.configs.get(f"{kind}:{name}", {})

    def of_broker(self, broker: int) -> dict[str, str]:
        """What was set for all brokers, and for one of them, which comes first."""
        return self.configs("broker", "") | self.configs("broker", str(broker))

    def configured(self, kind: str) -> list[str]:
        """Return the names of resources of a kind with settings."""
        found = [key.partition(":") for key in self.metadata.configs]
        return [name for of, _, name in found if of == kind]

    def partition(self, topic: str, number: int) -> dict[str, Any] | None:
        """Leader, epochs and replicas of a partition."""
        found = self.metadata.topics.get(topic)
        partition: dict[str, Any] | None = None if found is None else found["partitions"].get(number)
        return partition

    def leader_epochs(self, topic: str) -> list[tuple[int, int]]:
        """The partitions of a topic with their leader epochs, in order."""
        partitions = self.metadata.topics[topic]["partitions"]
        return [(number, partitions[number]["leader_epoch"]) for number in sorted(partitions)]

    # Decisions

    @property
    def epoch(self) -> int:
        """The epoch of this broker's registration; -1 if there is none."""
        found = self.metadata.brokers.get(self.node_id)
        return -1 if found is None else int(found["epoch"])

    def first_records(self) -> list[bytes]:
        """The records of a new directory: features."""
        records = []
        for name, (_, _, level) in FEATURES.items():
            if level:
                records.append(self.feature(name, level))
        records.append(self.config("broker", "", "min.insync.replicas", "1"))  # as a new cluster has it
        return records

    def feature(self, name: str, level: int) -> bytes:
        """Return the record of a feature's level."""
        return _stored(messages.FeatureLevelRecord(name=name, feature_level=level), 0)

    def registered(self, broker: int, incarnation: uuid.UUID, end_points: Sequence[tuple[str, str, int]]) -> bytes:
        """Return the record that registers a broker."""
        made = messages.RegisterBrokerRecord(
            broker_id=broker, incarnation_id=incarnation, broker_epoch=0, fenced=False, rack=None,
            log_dirs=[self._directory_of(broker)],
        )  # fmt: skip
        point = messages.RegisterBrokerRecord.BrokerEndpoint
        made.end_points = [point(name=name, host=host, port=port) for name, host, port in end_points]
        return _stored(made, _REGISTRATION_VERSION)

    def unregistered(self, broker: int) -> bytes:
        """Return the record that unregisters a broker."""
        epoch = self.metadata.brokers[broker]["epoch"]
        return _stored(messages.UnregisterBrokerRecord(broker_id=broker, broker_epoch=epoch), 0)

    def fenced(self, broker: int, *, fenced: bool) -> bytes:
        """Return the record that fences or unfences a broker."""
        epoch = self.metadata.brokers.get(broker, {}).get("epoch", 0)
        change = 1 if fenced else -1
        return _stored(
            messages.BrokerRegistrationChangeRecord(broker_id=broker, broker_epoch=epoch, fenced=change),
            _REGISTRATION_CHANGE_VERSION,
        )

    def new_topic(
        self, name: str, topic_id: uuid.UUID, replicas: Sequence[Sequence[int]], configs: Mapping[str, str],
        away: Collection[int] = (),
    ) -> list[bytes]:  # fmt: skip
        """Return the records that create a topic; `replicas` has the brokers of each partition, `away` the stopped
        brokers.

        As in Apache Kafka, its configurations come before its partitions, so that logs open with them.
        """
        records = [_stored(messages.TopicRecord(name=name, topic_id=topic_id), 0)]
        records += [self.config("topic", name, key, value) for key, value in configs.items()]
        return records + self.new_partitions(topic_id, 0, replicas, away)

    def new_partitions(
        self, topic_id: uuid.UUID, first: int, replicas: Sequence[Sequence[int]], away: Collection[int] = ()
    ) -> list[bytes]:
        """Return the records that add partitions, numbered from `first` on; the first running broker leads."""
        records = []
        for number, brokers in enumerate(replicas, first):
            isr = [broker for broker in brokers if broker not in away]
            record = messages.PartitionRecord(
                partition_id=number, topic_id=topic_id, replicas=list(brokers), isr=isr, leader=isr[0],
                leader_epoch=0, partition_epoch=0, directories=[self._directory_of(broker) for broker in brokers],
            )  # fmt: skip
            records.append(_stored(record, _PARTITION_VERSION))
        return records

    def changed_partition(
        self, topic_id: uuid.UUID, number: int, *, leader: int | None = None, isr: Sequence[int] | None = None,
        replicas: Sequence[int] | None = None,
    ) -> bytes:  # fmt: skip
        """Return the record that changes some fields of a partition; the leader epoch rises with each leader."""
        record = messages.PartitionChangeRecord(partition_id=number, topic_id=topic_id)
        if leader is not None:
            record.leader = leader
        if isr is not None:
            record.isr = list(isr)
        if replicas is not None:
            record.replicas = list(replicas)
            record.directories = [self._directory_of(broker) for broker in replicas]
        return _stored(record, _PARTITION_VERSION)

    def _directory_of(self, broker: int) -> uuid.UUID:
        """Return the id of a broker's data directory; ids of pretended brokers derive from the first."""
        return self.directory_id if broker == self.node_id else uuid.uuid5(self.directory_id, str(broker))

    def removed_topic(self, topic_id: uuid.UUID) -> list[bytes]:
        """Return the records that delete a topic."""
        return [_stored(messages.RemoveTopicRecord(topic_id=topic_id), 0)]

    def config(self, kind: str, name: str, key: str, value: str | None) -> bytes:
        """Return the record that sets or removes a configuration."""
        number = CONFIG_RESOURCES[kind.replace("-", "_")]
        record = messages.ConfigRecord(resource_type=number, resource_name=name, name=key, value=value)
        return _stored(record, 0)

    def reserved_producer_ids(self, end: int) -> bytes:
        """Return the record that reserves producer ids below `end`."""
        return _stored(messages.ProducerIdsRecord(broker_id=self.node_id, broker_epoch=0, next_producer_id=end), 0)

    def scram_user(self, record: Any) -> bytes:
        """Return the record that sets or removes a user's credential."""
        return _stored(record, 0)

    def quota(self, record: Any) -> bytes:
        """Return the record that sets or removes a quota."""
        return _stored(record, 0)

    def acl(self, record: Any) -> bytes:
        """Return the record that creates or removes an access control entry."""
        return _stored(record, 0)

    def token(self, record: Any) -> bytes:
        """Return the record that creates, changes or removes a delegation token."""
        return _stored(record, 0)

    # Changes

    def _on_token(self, record: Any) -> None:
        self.tokens[record.token_id] = record

    def _on_remove_token(self, record: Any) -> None:
        self.tokens.pop(record.token_id, None)

    def _on_acl(self, record: Any) -> None:
        self.access.add(record)

    def _on_remove_acl(self, record: Any) -> None:
        self.access.remove(record.id)

    def _on_topic(self, record: Any) -> None:
        self._ids[record.topic_id] = record.name

    def _on_remove_topic(self, record: Any) -> None:
        self._ids.pop(record.topic_id, None)

    def _on_producer_ids(self, record: Any) -> None:
        self.next_producer_id = record.next_producer_id

    def _on_scram(self, record: Any) -> None:
        self.scram[record.name, record.mechanism] = record

    def _on_remove_scram(self, record: Any) -> None:
        self.scram.pop((record.name, record.mechanism), None)

    def _on_quota(self, record: Any) -> None:
        entity = tuple(sorted((part.entity_type, part.entity_name) for part in record.entity))
        values = self.quotas.setdefault(entity, {})
        if record.remove:
            values.pop(record.key, None)
        else:
            values[record.key] = record.value
        if not values:
            del self.quotas[entity]


def _stored(record: Any, version: int) -> bytes:
    return encode_metadata_record(record, version)


_CHANGES: dict[str, Callable[[Catalog, Any], None]] = {
    "AccessControlEntryRecord": Catalog._on_acl,
    "DelegationTokenRecord": Catalog._on_token,
    "RemoveDelegationTokenRecord": Catalog._on_remove_token,
    "RemoveAccessControlEntryRecord": Catalog._on_remove_acl,
    "TopicRecord": Catalog._on_topic,
    "RemoveTopicRecord": Catalog._on_remove_topic,
    "ProducerIdsRecord": Catalog._on_producer_ids,
    "UserScramCredentialRecord": Catalog._on_scram,
    "RemoveUserScramCredentialRecord": Catalog._on_remove_scram,
    "ClientQuotaRecord": Catalog._on_quota,
}
