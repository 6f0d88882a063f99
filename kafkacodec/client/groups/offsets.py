"""Committing and fetching a group's offsets: a machine per call, repeated until it succeeds or its time is over.

Sources: KIP-211 (retention), KIP-320 (leader epochs), KIP-447 (stable offsets), KIP-709 (several groups), KIP-848
(member epochs), KIP-1179 (topic ids).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from typing import Any, Final, NamedTuple, TypeAlias

from kafkacodec import messages
from kafkacodec.client.core.backoff import Backoff
from kafkacodec.client.core.calls import Answer, Coordinator, Send, Versions
from kafkacodec.client.core.cluster import Cluster
from kafkacodec.client.groups.membership import GroupMetadata, TopicPartition, in_order, worth_repeating
from kafkacodec.errors import (
    BrokerError,
    DeadlineExceeded,
    UnsupportedVersion,
    error,
)
from kafkacodec.protocol.versions import highest_common

__all__ = ["CommittedOffset", "Member", "OffsetCommit", "OffsetFetch"]

_OFFSET_COMMIT, _OFFSET_FETCH = 8, 9
_TOPIC_IDS_VERSION = 10  # of both: names before it, ids from then on
_GROUPS_VERSION = 8
_STABLE_VERSION = 7
_NULL_TOPICS_VERSION = 2
_LOST_COORDINATOR: Final = frozenset({15, 16})
_UNKNOWN_SERVER_ERROR, _UNKNOWN_TOPIC, _UNKNOWN_MEMBER, _STALE_MEMBER_EPOCH = -1, 3, 25, 113

Member: TypeAlias = "Callable[[], GroupMetadata | None]"
"""The membership's metadata at the time of each attempt; None if there is no membership any more."""


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


class _OffsetCall:
    """A call that is repeated until it succeeds for all partitions, or time is over.

    Attributes:
        done: whether it has ended.
        error: why it failed as a whole, or None.
        errors: why it failed for single partitions.
    """

    def __init__(
        self, cluster: Cluster, member: Member, deadline: float, request_timeout_ms: float, backoff: Backoff | None
    ) -> None:
        self.done = False
        self._pending: tuple[TopicPartition, ...] | None = None  # None: all
        self.error: Exception | None = None
        self.errors: dict[TopicPartition, BrokerError] = {}
        self._cluster = cluster
        self._member = member
        self._deadline = deadline
        self._timeout_ms = request_timeout_ms
        self._backoff = backoff or Backoff()
        self._asking: Send | None = None
        self._failures = 0
        self._next_at = 0.0
        self._last: Exception | None = None
        self._sent = False

    def poll(self, now: float) -> list[Send]:
        """The request, if it is due."""
        if self.done or self._asking is not None:
            return []
        if now >= self._deadline:
            self._end(self._too_late())
            return []
        if now < self._next_at:
            return []
        metadata = self._member()
        if metadata is None:
            self._end(self._last or error(_UNKNOWN_MEMBER)("the consumer is not a member of the group any more"))
            return []
        place = Coordinator("group", metadata.group_id)
        refusal = self._cluster.coordinators.refusal(place)
        if refusal is not None:
            self._end(refusal)
            return []
        timeout_ms = min(self._timeout_ms, self._deadline - now)
        self._asking = Send(place, self._request(metadata), timeout_ms, context=metadata)
        return [self._asking]

    def next_deadline(self) -> float | None:
        """When the request is repeated, or time is over."""
        return None if self.done or self._asking is not None else min(self._next_at, self._deadline)

    def answered(self, send: Send, answer: Answer, now: float) -> None:
        """Take over the results; repeat the request for what may still succeed."""
        if send is not self._asking:
            return
        self._asking = None
        codes = self._read(answer.message, answer.version)
        if isinstance(codes, int):
            if self._retriable(codes, send):
                self._again(error(codes)(), now)
            else:
                self._end(error(codes)())
            return
        again = {}
        for place in codes if self._pending is None else self._pending:
            code = codes.get(place, _UNKNOWN_SERVER_ERROR)  # a partition without an answer has not succeeded
            if code and self._retriable(code, send):
                again[place] = code
            elif code:
                self.errors[place] = error(code)()
        if not again:
            self._end(None)
            return
        if self._pending is not None:
            self._pending = tuple(again)
        self._again(error(next(iter(again.values())))(), now)

    def failed(self, send: Send, error: Exception, now: float) -> None:
        """Repeat it, unless it cannot be sent."""
        if send is not self._asking:
            return
        self._asking = None
        if not worth_repeating(error):
            self._end(error)
            return
        self._sent = self._sent or getattr(error, "sent", True)
        self._cluster.coordinators.lost(_place(send))
        self._again(error, now)

    def _request(self, metadata: GroupMetadata) -> Any:
        raise NotImplementedError

    def _read(self, response: Any, version: int) -> int | dict[TopicPartition, int]:
        """Take over what succeeded; returns the error codes of the partitions, or that of the whole request."""
        raise NotImplementedError

    def _retriable(self, code: int, send: Send) -> bool:
        if code in _LOST_COORDINATOR:
            self._cluster.coordinators.lost(_place(send))
            return True
        if code == _STALE_MEMBER_EPOCH:
            # The epoch has increased meanwhile. The member's partitions are still its own as long as its id is.
            current, used = self._member(), send.context
            return current is not None and current.member_id == used.member_id
        return error(code).retriable and code != _UNKNOWN_TOPIC

    def _again(self, fault: Exception, now: float) -> None:
        self._last = fault
        self._failures += 1
        self._next_at = now + self._backoff.after(self._failures)

    def _end(self, fault: Exception | None) -> None:
        self.error, self.done = fault, True

    def _too_late(self) -> DeadlineExceeded:
        reason = f": {self._last}" if self._last is not None else ""
        fault = DeadlineExceeded(f"{type(self).__name__} did not succeed in time{reason}", sent=self._sent)
        fault.__cause__ = self._last
        return fault

    def _ids_known(self, topics: Iterable[str]) -> bool:
        known = (self._cluster.topics.get(topic) for topic in topics)
        return all(topic is not None and topic.topic_id is not None for topic in known)

    def _id_of(self, topic: str) -> uuid.UUID:
        topic_id = self._cluster.topics[topic].topic_id
        assert topic_id is not None
        return topic_id

    def _name_of(self, entry: Any, version: int) -> str:
        name: str = entry.name if version < _TOPIC_IDS_VERSION else self._cluster.topic_name(entry.topic_id) or ""
        return name

    def _version(self, api_key: int, versions: Versions, topics: Iterable[str] | None) -> int:
        version = highest_common(api_key, versions)
        if version >= _TOPIC_IDS_VERSION and (topics is None or not self._ids_known(topics)):
            names = range(versions[api_key].start, _TOPIC_IDS_VERSION)
            return highest_common(api_key, {api_key: names})
        return version


class OffsetCommit(_OffsetCall):
    """Commits offsets.

    When it is `done`, `error` is why it failed as a whole, and `errors` has the partitions that the coordinator
    refused. RebalanceInProgressError (27) and IllegalGenerationError (22) mean that the group was rebalanced meanwhile:
    what the consumer has after that may be committed again.

    Args:
        cluster: the cluster.
        offsets: the next offset to read of each partition.
        member: gives the metadata to commit under; `Membership.metadata`, or ``GroupMetadata(group_id)`` without
            membership.
        deadline: the time at which it gives up.
        request_timeout_ms: how long one answer may take.
        backoff: the wait before the next attempt.
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
    ) -> None:
        super().__init__(cluster, member, deadline, request_timeout_ms, backoff)
        self._offsets = {TopicPartition(*place): offset for place, offset in offsets.items()}
        self._pending = in_order(offsets)
        self.done = not offsets

    def _request(self, metadata: GroupMetadata) -> Any:
        places = self._pending or ()

        def prepare(versions: Versions) -> tuple[Any, int]:
            version = self._version(_OFFSET_COMMIT, versions, {place.topic for place in places})
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
            if version >= _TOPIC_IDS_VERSION:
                topic.topic_id = self._id_of(name)
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


class OffsetFetch(_OffsetCall):
    """Fetches committed offsets.

    When it is `done` and `error` is None, `offsets` has the offset of each partition, or None where there is none.

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
            version = self._version(_OFFSET_FETCH, versions, topics)
            return self._message(metadata, version), version

        return prepare

    def _message(self, metadata: GroupMetadata, version: int) -> Any:
        kind = messages.OffsetFetchRequest
        request = kind(require_stable=self._require_stable and version >= _STABLE_VERSION)
        entry: Any = kind.OffsetFetchRequestTopics if version >= _GROUPS_VERSION else kind.OffsetFetchRequestTopic
        topics: Any = []
        for name, places in groupby(self._pending or (), lambda place: place.topic):
            topic = entry(name=name, partition_indexes=[place.partition for place in places])
            if version >= _TOPIC_IDS_VERSION:
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
                return _UNKNOWN_SERVER_ERROR
            response = response.groups[0]
        if response.error_code:
            code: int = response.error_code
            return code
        codes = {}
        for topic in response.topics:
            name = self._name_of(topic, version)
            for partition in topic.partitions:
                place, code = TopicPartition(name, partition.partition_index), partition.error_code
                if code == _UNKNOWN_TOPIC and version == 0:  # ZooKeeper has no offset
                    code = 0
                codes[place] = code
                if not code:
                    self.offsets[place] = _committed(partition)
        return codes


def _committed(partition: Any) -> CommittedOffset | None:
    if partition.committed_offset < 0:
        return None
    return CommittedOffset(partition.committed_offset, partition.committed_leader_epoch, partition.metadata or "")


def _place(send: Send) -> Coordinator:
    assert isinstance(send.to, Coordinator)
    return send.to
