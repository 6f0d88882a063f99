"""Committing and fetching a group's offsets: a machine per call, repeated until it succeeds or its time is over.

Sources: KIP-211 (retention), KIP-320 (leader epochs), KIP-447 (stable offsets), KIP-709 (several groups), KIP-848
(member epochs), KIP-1179 (topic ids).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from typing import Any

from kafkacodec import messages
from kafkacodec.assignment.partitions import TopicPartition, in_order
from kafkacodec.client.core.backoff import Backoff
from kafkacodec.client.core.calls import Place, Versions
from kafkacodec.client.core.cluster import Cluster
from kafkacodec.client.groups.membership import GroupMetadata
from kafkacodec.client.groups.offset_call import (
    TOPIC_IDS_VERSION,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_OR_PARTITION,
    Member,
    OffsetCall,
)
from kafkacodec.datatypes import NamedTuple
from kafkacodec.errors import BrokerError, UnsupportedVersion
from kafkacodec.messages.keys import OFFSET_COMMIT, OFFSET_FETCH

__all__ = ["CommittedOffset", "Member", "OffsetCommit", "OffsetFetch"]

_GROUPS_VERSION = 8
_STABLE_VERSION = 7
_NULL_TOPICS_VERSION = 2


class CommittedOffset(NamedTuple):
    """An offset of a group: the next one to read.

    Attributes:
        offset: the offset.
        leader_epoch: of the record before it; -1 if unknown.
        metadata: the application's text.
    """

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


class OffsetCommit(OffsetCall):
    """Commits offsets.

    When it is `done`, `error` is the error of the whole call, `errors` has the refused partitions, and `left_out` those
    of `leave_out`. RebalanceInProgressError (27) and IllegalGenerationError (22) mean that the group was rebalanced
    meanwhile: the consumer may commit its remaining partitions again.

    Args:
        cluster: the cluster.
        offsets: the next offset to read of each partition.
        member: returns the metadata for commits; `Membership.metadata`, or ``GroupMetadata(group_id)`` without
            membership.
        deadline: the time at which it gives up.
        request_timeout_ms: the time limit of one answer.
        backoff: the wait before the next attempt.
        topic_ids: the known ids of the offsets' topics: offsets are not committed for a newer topic of the same name
            (Kafka 4.1). By default, ids come from the newest metadata.
        place: the destination of commits, if it is not the coordinator; `Membership.place`.
    """

    def __init__(
        self,
        cluster: Cluster,
        offsets: Mapping[TopicPartition, CommittedOffset],
        member: Member,
        *,
        deadline: float,
        request_timeout_ms: float = 30_000,
        backoff: Backoff | None = None,
        topic_ids: Mapping[str, uuid.UUID] | None = None,
        place: Callable[[], Place | None] | None = None,
    ) -> None:
        super().__init__(cluster, member, deadline, request_timeout_ms, backoff, place)
        self._ids = topic_ids or {}
        self._offsets = {TopicPartition(*place): offset for place, offset in offsets.items()}
        self._pending = in_order(offsets)
        self.done = not offsets
        self.left_out: dict[TopicPartition, BrokerError | None] = {}

    def leave_out(self, partitions: Iterable[TopicPartition], fault: BrokerError | None = None) -> None:
        """Do not send the offsets of these partitions (again). They end with `fault`; without one, a later commit has
        them.
        """
        for place in partitions:
            if place in self._offsets:
                self.left_out.setdefault(place, fault)

    def _still_wanted(self) -> bool:
        pending = self._pending or ()
        self.errors |= {place: fault for place in pending if (fault := self.left_out.get(place)) is not None}
        self._pending = tuple(place for place in pending if place not in self.left_out)
        return bool(self._pending)

    def _request(self, metadata: GroupMetadata) -> Any:
        places = self._pending or ()

        def prepare(versions: Versions) -> tuple[Any, int]:
            version = self._version(OFFSET_COMMIT, versions, {place.topic for place in places})
            return self._message(metadata, places, version), version

        return prepare

    def _message(self, metadata: GroupMetadata, places: Iterable[TopicPartition], version: int) -> Any:
        kind = messages.OffsetCommitRequest
        request = kind(group_id=metadata.group_id, generation_id_or_member_epoch=metadata.generation)
        request.member_id = metadata.member_id
        if version >= 7:
            request.group_instance_id = metadata.group_instance_id
        for name, numbers in groupby(places, lambda place: place.topic):
            topic = kind.OffsetCommitRequestTopic(name=name)
            if version >= TOPIC_IDS_VERSION and (topic_id := self._id_of(name)) is not None:
                topic.topic_id = topic_id
            for place in numbers:
                offset, epoch, text = self._offsets[place]
                topic.partitions.append(
                    kind.OffsetCommitRequestPartition(
                        partition_index=place.partition,
                        committed_offset=offset,
                        committed_leader_epoch=epoch,
                        committed_metadata=text,
                    )
                )
            request.topics.append(topic)
        return request

    def _read(self, response: Any, version: int) -> int | dict[TopicPartition, int]:
        return {
            TopicPartition(self._name_of(topic, version), partition.partition_index): partition.error_code
            for topic in response.topics
            for partition in topic.partitions
        }


class OffsetFetch(OffsetCall):
    """Fetches committed offsets.

    When it is `done` and `error` is None, `offsets` has the offset of each partition, or None without one.

    Args:
        cluster: the cluster.
        partitions: which; None: all of the group (on brokers since 0.10.2).
        member: as for `OffsetCommit`.
        deadline, request_timeout_ms, backoff: as for `OffsetCommit`.
        require_stable: wait for transactions that have written offsets to end (KIP-447); for ``read_committed``.
    """

    def __init__(
        self,
        cluster: Cluster,
        partitions: Iterable[TopicPartition] | None,
        member: Member,
        *,
        deadline: float,
        request_timeout_ms: float = 30_000,
        backoff: Backoff | None = None,
        require_stable: bool = False,
    ) -> None:
        super().__init__(cluster, member, deadline, request_timeout_ms, backoff)
        self.offsets: dict[TopicPartition, CommittedOffset | None] = {}
        self._require_stable = require_stable
        self._pending = None if partitions is None else in_order(partitions)
        self.done = partitions is not None and not self._pending

    def _request(self, metadata: GroupMetadata) -> Any:
        def prepare(versions: Versions) -> tuple[Any, int]:
            topics = None if self._pending is None else {place.topic for place in self._pending}
            version = self._version(OFFSET_FETCH, versions, topics)
            return self._message(metadata, version), version

        return prepare

    def _message(self, metadata: GroupMetadata, version: int) -> Any:
        kind = messages.OffsetFetchRequest
        request = kind(require_stable=self._require_stable and version >= _STABLE_VERSION)
        entry: Any = kind.OffsetFetchRequestTopics if version >= _GROUPS_VERSION else kind.OffsetFetchRequestTopic
        topics: Any = []
        for name, places in groupby(self._pending or (), lambda place: place.topic):
            topic = entry(name=name, partition_indexes=[place.partition for place in places])
            if version >= TOPIC_IDS_VERSION:
                topic.topic_id = self._id_of(name)
            topics.append(topic)
        if self._pending is None:
            if version < _NULL_TOPICS_VERSION:
                raise UnsupportedVersion("the broker cannot fetch the offsets of all partitions of a group")
            topics = None
        if version < _GROUPS_VERSION:
            request.group_id, request.topics = metadata.group_id, topics
        else:
            request.groups = [kind.OffsetFetchRequestGroup(group_id=metadata.group_id, topics=topics)]
        return request

    def _read(self, response: Any, version: int) -> int | dict[TopicPartition, int]:
        if version >= _GROUPS_VERSION:
            if not response.groups:
                return UNKNOWN_SERVER_ERROR
            response = response.groups[0]
        if response.error_code:
            code: int = response.error_code
            return code
        codes = {}
        for topic in response.topics:
            name = self._name_of(topic, version)
            for partition in topic.partitions:
                place, code = TopicPartition(name, partition.partition_index), partition.error_code
                if code == UNKNOWN_TOPIC_OR_PARTITION and version == 0:  # ZooKeeper has no offset
                    code = 0
                codes[place] = code
                if not code:
                    self.offsets[place] = _committed(partition)
        return codes


def _committed(partition: Any) -> CommittedOffset | None:
    if partition.committed_offset < 0:
        return None
    return CommittedOffset(partition.committed_offset, partition.committed_leader_epoch, partition.metadata or "")
