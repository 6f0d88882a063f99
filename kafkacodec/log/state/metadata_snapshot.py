"""Snapshots of a KRaft cluster's metadata: the records that its log amounts to, in the form of a file (KIP-630)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from kafkacodec import messages
from kafkacodec.datatypes import NamedTuple
from kafkacodec.internal_records import CLUSTER_METADATA
from kafkacodec.log.state.metadata_image import complete_records
from kafkacodec.messages.stored import (
    ControlRecord,
    decode_control_record,
    decode_internal_record,
    encode_control_record,
    encode_metadata_record,
)
from kafkacodec.protocol.terms import CONFIG_RESOURCES
from kafkacodec.records._record_chunks import ListChunk
from kafkacodec.records.decode import iter_records
from kafkacodec.records.encode import EncodePlan, encode

__all__ = ["encode_metadata_snapshot"]

_BATCH_BYTES: Final = 1 << 20
_MOST_BATCH_BYTES: Final = 2**31 - 1
_QUORUM: Final = ("KRAFT_VERSION", "KRAFT_VOTERS")  # what a snapshot repeats of the control records, in this order
_NO_CHANGE: Final = -1  # of a leader's recovery
_NO_LEADER_CHANGE: Final = -2


def encode_metadata_snapshot(pieces: Iterable[bytes], epoch: int) -> bytes | None:
    """The bytes of a ``.checkpoint`` file.

    Args:
        pieces: the batches of the snapshot before, and of the log from its end on.
        epoch: of the last batch.

    Returns:
        None if there is a record of an unknown type, whose changes are unknown.

    Raises:
        DecodeError: a batch or a record cannot be read.
    """
    live, quorum = _Live(), dict[str, tuple[bytes, bytes]]()
    newest = -1

    def decoded() -> Iterator[tuple[int, Any, int]]:
        nonlocal newest
        for data in pieces:
            for record in iter_records(data, include_control=True):
                newest = max(newest, -1 if record.timestamp is None else record.timestamp)
                if record.key is not None:
                    control = decode_control_record(record.key, record.value)
                    if control is not None and control.type in _QUORUM and record.value is not None:
                        quorum[control.type] = bytes(record.key), bytes(record.value)
                elif record.value is not None:
                    found = decode_internal_record(CLUSTER_METADATA, None, record.value)
                    yield record.offset, *((None, 0) if found is None else (found.value, found.version or 0))

    for _, record, version in complete_records(decoded()):
        if record is None or not live.take(record, version):
            return None
    return _encoded(list(live.values()), [quorum[kind] for kind in _QUORUM if kind in quorum], newest, epoch)


def _encoded(values: list[bytes], quorum: list[tuple[bytes, bytes]], newest: int, epoch: int) -> bytes:
    """The file, whose records have the offsets from 0 on."""
    header = messages.SnapshotHeaderRecord(version=0, last_contained_log_timestamp=newest)
    begin = [encode_control_record(ControlRecord("SNAPSHOT_HEADER", 0, header)), *quorum]
    end = [encode_control_record(ControlRecord("SNAPSHOT_FOOTER", 0, messages.SnapshotFooterRecord(version=0)))]
    first, last = len(begin), len(begin) + len(values)
    rows = ((None, value) for value in values)
    records = encode(rows, base_offset=first, batch_bytes=_BATCH_BYTES, partition_leader_epoch=epoch,
                     default_timestamp=newest)  # fmt: skip
    return _control_batch(begin, 0, newest, epoch) + records + _control_batch(end, last, newest, epoch)


def _control_batch(records: Iterable[tuple[bytes, bytes]], offset: int, timestamp: int, epoch: int) -> bytes:
    plan = EncodePlan(base_offset=offset, batch_bytes=_MOST_BATCH_BYTES, partition_leader_epoch=epoch)
    chunk = ListChunk()
    for key, value in records:
        chunk.append_record(None, timestamp, key, value, ())
    return plan.encoder(is_control=True).encode([chunk.finish()])


class _Kept(NamedTuple):
    record: Any
    version: int


class _Live:
    """The records that still count, as the deltas of `org.apache.kafka.image` make them of those that came."""

    def __init__(self) -> None:
        # By type, by what is removed at once, by what another record replaces.
        self._kept: dict[str, dict[Any, dict[Any, _Kept]]] = {kind: {} for kind in _KEYS}

    def take(self, record: Any, version: int) -> bool:
        """The next record; False if its type is unknown."""
        kind = type(record).__name__
        if kind in _CHANGES:
            _CHANGES[kind](self, record, version)
        elif kind in _KEYS:
            group, key = _KEYS[kind](record)
            self._put(kind, group, key, None if _IS_REMOVAL.get(kind, _never)(record) else _Kept(record, version))
        elif kind in _REMOVED:
            removed, key_of = _REMOVED[kind]
            self._put(removed, *key_of(record), None)
        else:
            return kind == "NoOpRecord"
        return True

    def values(self) -> Iterator[bytes]:
        """The values of all records that are left, each topic before its partitions."""
        for kind, groups in self._kept.items():
            for group in groups if kind != "FeatureLevelRecord" else sorted(groups):
                if kind != "PartitionRecord":
                    yield from _values(groups[group])
                if kind == "TopicRecord":
                    yield from _values(self._kept["PartitionRecord"].get(group, {}))

    def _on_producer_ids(self, record: Any, version: int) -> None:
        record.broker_id = record.broker_epoch = -1  # a snapshot does not say who has asked for the last ones
        self._put("ProducerIdsRecord", None, None, _Kept(record, version))

    def _put(self, kind: str, group: Any, key: Any, kept: _Kept | None) -> None:
        if kept is not None:
            self._kept[kind].setdefault(group, {})[key] = kept
        else:
            self._kept[kind].get(group, {}).pop(key, None)

    def _on_remove_topic(self, record: Any, _version: int) -> None:
        gone = self._kept["TopicRecord"].pop(record.topic_id, {})
        self._kept["PartitionRecord"].pop(record.topic_id, None)
        for topic, _ in gone.values():
            self._kept["ConfigRecord"].pop((CONFIG_RESOURCES["topic"], topic.name), None)

    def _on_partition(self, record: Any, version: int) -> None:
        partitions = self._kept["PartitionRecord"].get(record.topic_id, {})
        if record.partition_id not in partitions:
            return
        partition, before = partitions[record.partition_id]
        for name in _OF_PARTITIONS:
            if getattr(record, name) is not None:
                setattr(partition, name, getattr(record, name))
        if record.leader != _NO_LEADER_CHANGE:
            partition.leader = record.leader
            partition.leader_epoch += 1
        if record.leader_recovery_state != _NO_CHANGE:
            partition.leader_recovery_state = record.leader_recovery_state
        partition.partition_epoch += 1
        partitions[record.partition_id] = _Kept(partition, max(before, version))

    def _on_clear_elr(self, record: Any, _version: int) -> None:
        for topic_id, topics in self._kept["TopicRecord"].items():
            if record.topic_name in ("", *(topic.name for topic, _ in topics.values())):
                for partition, _ in self._kept["PartitionRecord"].get(topic_id, {}).values():
                    partition.eligible_leader_replicas = partition.last_known_elr = None

    def _on_fence(self, record: Any, _version: int) -> None:
        for broker, _ in self._kept["RegisterBrokerRecord"].get(None, {}).values():
            if broker.broker_id == record.id:
                broker.fenced = type(record).__name__ == "FenceBrokerRecord"

    def _on_registration_change(self, record: Any, version: int) -> None:
        brokers = self._kept["RegisterBrokerRecord"].get(None, {})
        if record.broker_id not in brokers:
            return
        broker, before = brokers[record.broker_id]
        if record.fenced:
            broker.fenced = record.fenced > 0
        if record.in_controlled_shutdown:
            broker.in_controlled_shutdown = True
        if record.log_dirs:
            broker.log_dirs = record.log_dirs
        if record.cordoned_log_dirs is not None:
            broker.cordoned_log_dirs = record.cordoned_log_dirs
        brokers[record.broker_id] = _Kept(broker, max(before, _OF_REGISTRATIONS[version]))


def _values(records: dict[Any, _Kept]) -> Iterator[bytes]:
    return (encode_metadata_record(record, version) for record, version in records.values())


def _never(_record: Any) -> bool:
    return False


_OF_PARTITIONS: Final = (
    "isr", "replicas", "removing_replicas", "adding_replicas", "directories", "eligible_leader_replicas",
    "last_known_elr",
)  # fmt: skip
_OF_REGISTRATIONS: Final = (0, 1, 3, 4)
"""The version of a registration that has the fields of its change's version."""

_KEYS: Final[dict[str, Callable[[Any], tuple[Any, Any]]]] = {
    # That of metadata.version is first: it tells how the others are read.
    "FeatureLevelRecord": lambda r: (r.name != "metadata.version", r.name),
    "RegisterBrokerRecord": lambda r: (None, r.broker_id),
    "RegisterControllerRecord": lambda r: (None, r.controller_id),
    "TopicRecord": lambda r: (r.topic_id, None),
    "PartitionRecord": lambda r: (r.topic_id, r.partition_id),
    "ConfigRecord": lambda r: ((r.resource_type, r.resource_name), r.name),
    "ClientQuotaRecord": lambda r: (tuple((e.entity_type, e.entity_name) for e in r.entity), r.key),
    "ProducerIdsRecord": lambda r: (None, None),
    "AccessControlEntryRecord": lambda r: (None, r.id),
    "UserScramCredentialRecord": lambda r: (None, (r.name, r.mechanism)),
    "DelegationTokenRecord": lambda r: (None, r.token_id),
    "ZkMigrationStateRecord": lambda r: (None, None),
}
"""By type: what is removed at once, and in that what a newer record replaces. In the order of a snapshot."""

_IS_REMOVAL: Final[dict[str, Callable[[Any], bool]]] = {
    "ConfigRecord": lambda r: r.value is None,
    "ClientQuotaRecord": lambda r: bool(r.remove),
    "FeatureLevelRecord": lambda r: r.feature_level == 0,
}
_REMOVED: Final[dict[str, tuple[str, Callable[[Any], tuple[Any, Any]]]]] = {
    "RemoveAccessControlEntryRecord": ("AccessControlEntryRecord", lambda r: (None, r.id)),
    "RemoveUserScramCredentialRecord": ("UserScramCredentialRecord", lambda r: (None, (r.name, r.mechanism))),
    "RemoveDelegationTokenRecord": ("DelegationTokenRecord", lambda r: (None, r.token_id)),
    "UnregisterBrokerRecord": ("RegisterBrokerRecord", lambda r: (None, r.broker_id)),
    "UnregisterControllerRecord": ("RegisterControllerRecord", lambda r: (None, r.controller_id)),
}
_CHANGES: Final[dict[str, Callable[[_Live, Any, int], None]]] = {
    "RemoveTopicRecord": _Live._on_remove_topic,
    "PartitionChangeRecord": _Live._on_partition,
    "ClearElrRecord": _Live._on_clear_elr,
    "ProducerIdsRecord": _Live._on_producer_ids,
    "FenceBrokerRecord": _Live._on_fence,
    "UnfenceBrokerRecord": _Live._on_fence,
    "BrokerRegistrationChangeRecord": _Live._on_registration_change,
}
