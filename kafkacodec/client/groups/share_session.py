"""A share session (KIP-932): the reading and acknowledging of a member at one broker.

Requests of a session have an epoch: 0 starts a session with all its partitions, later ones have only changes, and -1
ends it. Fetches and acknowledgements share the epochs, so only one is in flight. When the session is lost, the broker
delivers its unacknowledged records to others.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Any, Final, TypeAlias

from kafkacodec import messages
from kafkacodec.assignment.partitions import TopicPartition
from kafkacodec.client.core.calls import Prepare, Versions
from kafkacodec.client.groups.membership import GroupMetadata
from kafkacodec.datatypes import NamedTuple, dataclass, field
from kafkacodec.errors import UnsupportedVersion
from kafkacodec.messages.keys import SHARE_ACKNOWLEDGE, SHARE_FETCH
from kafkacodec.protocol.versions import highest_common

__all__ = ["AcknowledgeType", "Acquired", "Run", "ShareLimits", "ShareSession", "packed"]

_RENEWING_VERSION: Final = 2  # of ShareAcknowledge
_LIMITED_VERSION: Final = 1  # of ShareFetch: before it the limit is in bytes per partition
_NEW, _LAST_EPOCH, _FINAL = 0, 2**31 - 1, -1

_Entry: TypeAlias = tuple[TopicPartition, uuid.UUID]


class AcknowledgeType(IntEnum):
    """The acknowledgement of an acquired record: done, delivered to another member, never delivered again, or kept
    longer.
    """

    GAP = 0  # there is no record at the offset
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4  # its time starts again (KIP-1222)


class Acquired(NamedTuple):
    """Offsets `first` to `last` were given to this member; for the n-th time, as `delivery_count` says."""

    first: int
    last: int
    delivery_count: int


class Run(NamedTuple):
    """Offsets `first` to `last`, acknowledged alike."""

    first: int
    last: int
    type: AcknowledgeType


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareLimits:
    """How much a fetch of a share group may bring, and how long it may wait.

    Args:
        max_wait_ms: how long the broker waits for `min_bytes`.
        min_bytes, max_bytes: of records in a response.
        max_records: acquired by a fetch; an answer may have more, to end a batch.
        batch_size: the number of acquired records that the broker may group.
        partition_max_bytes: for brokers whose ShareFetch has only this limit (Kafka 4.0).
    """

    max_wait_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 52_428_800
    max_records: int = 500
    batch_size: int = 500
    partition_max_bytes: int = 1_048_576


def packed(types: Mapping[int, AcknowledgeType]) -> list[Run]:
    """Acknowledgements by offset as runs of consecutive offsets of one type, in order."""
    runs: list[Run] = []
    for offset, kind in sorted(types.items()):
        if runs and runs[-1].last == offset - 1 and runs[-1].type == kind:
            runs[-1] = runs[-1]._replace(last=offset)
        else:
            runs.append(Run(offset, offset, kind))
    return runs


@dataclass(eq=False)
class ShareSession:
    """The session with one broker.

    Attributes:
        epoch: of the next request.
        partitions: of the session, as the broker knows it, with the ids of their topics.
        ids: of the topics of all partitions ever in the session, the newest one of each name.
        names: of all topics ever in the session.
        acknowledging: the acknowledgements that wait for the next request, by partition.
        sent: those in the request under way.
        sent_ids: the ids of their topics.
        closing: whether the request in flight is the last one.
    """

    epoch: int = _NEW
    partitions: dict[TopicPartition, uuid.UUID] = field(default_factory=dict)
    ids: dict[TopicPartition, uuid.UUID] = field(default_factory=dict)
    names: dict[uuid.UUID, str] = field(default_factory=dict)
    acknowledging: dict[TopicPartition, list[Run]] = field(default_factory=dict)
    sent: dict[TopicPartition, list[Run]] = field(default_factory=dict)
    sent_ids: dict[TopicPartition, uuid.UUID] = field(default_factory=dict)
    closing: bool = False

    def acknowledge(self, place: TopicPartition, runs: Iterable[Run]) -> None:
        """Add acknowledgements to the next request."""
        self.acknowledging.setdefault(place, []).extend(runs)

    def fetch(self, member: GroupMetadata, wanted: Mapping[TopicPartition, uuid.UUID], limits: ShareLimits) -> Prepare:
        """A fetch from these partitions, by the ids of their topics, with the acknowledgements that wait."""
        kind = messages.ShareFetchRequest
        self._send_what_waits()
        added = wanted.items() - self.partitions.items()
        # The broker adds each partition that a fetch names, if only to acknowledge, before it forgets others.
        forgotten = (self.partitions.items() | self.sent_ids.items()) - wanted.items()
        request = kind(
            group_id=member.group_id,
            member_id=member.member_id,
            share_session_epoch=self.epoch,
            max_wait_ms=limits.max_wait_ms,
            min_bytes=limits.min_bytes,
            max_bytes=limits.max_bytes,
        )
        request.topics = self._topics(kind.FetchTopic, kind.FetchPartition, kind.AcknowledgementBatch, added)
        request.forgotten_topics_data = [
            kind.ForgottenTopic(topic_id=topic_id, partitions=[place.partition for place in places])
            for topic_id, places in _by_id(forgotten).items()
        ]
        self.partitions = dict(wanted)
        self.ids |= wanted
        self.names |= {topic_id: place.topic for place, topic_id in wanted.items()}

        def prepare(versions: Versions) -> tuple[Any, int]:
            version = highest_common(SHARE_FETCH, versions)
            limited = version >= _LIMITED_VERSION
            request.max_records = limits.max_records if limited else 0
            request.batch_size = limits.batch_size if limited else 0
            for topic in request.topics:
                for partition in topic.partitions:
                    partition.partition_max_bytes = 0 if limited else limits.partition_max_bytes
            return request, version

        return prepare

    def acknowledgement(self, member: GroupMetadata, *, close: bool = False) -> Prepare:
        """Return a request with only waiting acknowledgements; with `close` the session ends."""
        kind = messages.ShareAcknowledgeRequest
        self.closing = close
        self._send_what_waits()
        request = kind(
            group_id=member.group_id,
            member_id=member.member_id,
            share_session_epoch=_FINAL if close else self.epoch,
        )
        request.topics = self._topics(kind.AcknowledgeTopic, kind.AcknowledgePartition, kind.AcknowledgementBatch, ())
        request.is_renew_ack = any(run.type == AcknowledgeType.RENEW for runs in self.sent.values() for run in runs)

        def prepare(versions: Versions) -> tuple[Any, int]:
            version = highest_common(SHARE_ACKNOWLEDGE, versions)
            if request.is_renew_ack and version < _RENEWING_VERSION:
                raise UnsupportedVersion("the broker cannot renew the time of a record: that needs Kafka 4.2")
            return request, version

        return prepare

    def succeeded(self) -> dict[TopicPartition, list[Run]]:
        """Note an answer without an error of the session; return its acknowledgements."""
        sent, self.sent = self.sent, {}
        self.epoch = 1 if self.epoch == _LAST_EPOCH else self.epoch + 1
        return sent

    def lost(self) -> dict[TopicPartition, list[Run]]:
        """End the session; return acknowledgements that can no longer be sent."""
        unsaid = self.sent
        for place, runs in self.acknowledging.items():
            unsaid.setdefault(place, []).extend(runs)
        self.sent, self.acknowledging = {}, {}
        self.epoch = _NEW
        self.partitions, self.ids, self.names = {}, {}, {}
        return unsaid

    def _send_what_waits(self) -> None:
        """Mark waiting acknowledgements as sent."""
        self.sent, self.acknowledging = self.acknowledging, {}
        self.sent_ids = {place: self.ids[place] for place in self.sent}

    def _topics(self, topic: Any, partition: Any, batch: Any, places: Iterable[_Entry]) -> list[Any]:
        """The entries of `places`, and of the partitions with acknowledgements."""
        return [
            topic(
                topic_id=topic_id,
                partitions=[
                    partition(
                        partition_index=place.partition,
                        acknowledgement_batches=[
                            batch(first_offset=run.first, last_offset=run.last, acknowledge_types=[run.type])
                            for run in sorted(self._runs(place, topic_id))
                        ],
                    )
                    for place in entries
                ],
            )
            for topic_id, entries in _by_id({*places, *self.sent_ids.items()}).items()
        ]

    def _runs(self, place: TopicPartition, topic_id: uuid.UUID) -> list[Run]:
        return self.sent[place] if self.sent_ids.get(place) == topic_id else []


def _by_id(entries: Iterable[_Entry]) -> dict[uuid.UUID, list[TopicPartition]]:
    """Partitions by the id of their topic."""
    found: dict[uuid.UUID, list[TopicPartition]] = {}
    for place, topic_id in sorted(entries, key=lambda entry: (entry[0], entry[1].int)):
        found.setdefault(topic_id, []).append(place)
    return found
