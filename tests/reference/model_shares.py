"""A broker that leads one partition of a share group, after KIP-932 and the states of Kafka's SharePartition."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import kafkacodec as kc
from kafkacodec import messages
from kafkacodec.errors import INVALID_RECORD_STATE, INVALID_SHARE_SESSION_EPOCH, SHARE_SESSION_NOT_FOUND

__all__ = ["LOCK_MS", "TOPIC_ID", "ShareBroker"]

LOCK_MS = 5000.0
TOPIC_ID = uuid.UUID(int=7)
GAP, ACCEPT, RELEASE, REJECT = range(4)


@dataclass
class Kept:
    """An offset: its value, None if there is no record; who has it and until when; how often it was given; its end."""

    value: bytes | None
    owner: str | None = None
    until: float = 0.0
    count: int = 0
    end: int | None = None


class ShareBroker:
    """Takes ShareFetch and ShareAcknowledge for a partition.

    Args:
        partition: its number.
        ended: called with member, partition, offset, delivery count and type when a record is accepted or rejected.
    """

    def __init__(self, partition: int, ended: Callable[[str, int, int, int, int], None]) -> None:
        self.partition, self._ended = partition, ended
        self.offsets: list[Kept] = []
        self._sessions: dict[str, int] = {}

    def append(self, value: bytes | None) -> None:
        """A record, or an offset that compaction has left empty."""
        self.offsets.append(Kept(value))

    def forget(self, member: str) -> None:
        """The session of a member is over, and others get what it has."""
        self._sessions.pop(member, None)
        for kept in self.offsets:
            if kept.owner == member:
                kept.owner = None

    def expire(self, now: float) -> None:
        """Take back what was not acknowledged in time."""
        for kept in self.offsets:
            if kept.owner is not None and kept.until <= now:
                kept.owner = None

    def handle(self, request: Any, now: float) -> Any:
        """The response to a request."""
        self.expire(now)
        fetching = isinstance(request, messages.ShareFetchRequest)
        kind: Any = messages.ShareFetchResponse if fetching else messages.ShareAcknowledgeResponse
        member, epoch = request.member_id, request.share_session_epoch
        if epoch == 0 and fetching:
            self._sessions[member] = 0
        elif member not in self._sessions:
            return kind(error_code=SHARE_SESSION_NOT_FOUND)
        elif epoch not in (self._sessions[member], -1):
            return kind(error_code=INVALID_SHARE_SESSION_EPOCH)
        self._sessions[member] += 1
        runs = [run for topic in request.topics for part in topic.partitions for run in part.acknowledgement_batches]
        code = self._acknowledge(member, runs)
        if epoch == -1:
            self.forget(member)
        if not fetching:
            return kind(responses=self._topics(kind.ShareAcknowledgeTopicResponse, kind.PartitionData, error_code=code))
        acquired = self._acquire(member, now, request.max_records)
        entries = [
            kind.AcquiredRecords(first_offset=offset, last_offset=offset, delivery_count=self.offsets[offset].count)
            for offset in acquired
        ]
        fields = {"acknowledge_error_code": code, "records": self._read(acquired), "acquired_records": entries}
        return kind(responses=self._topics(kind.ShareFetchableTopicResponse, kind.PartitionData, **fields))

    def _topics(self, topic: Any, partition: Any, **fields: Any) -> list[Any]:
        return [topic(topic_id=TOPIC_ID, partitions=[partition(partition_index=self.partition, **fields)])]

    def _acknowledge(self, member: str, runs: list[Any]) -> int:
        """All of it, or nothing."""
        types = {}
        for run in runs:
            (kind,) = run.acknowledge_types
            for offset in range(run.first_offset, run.last_offset + 1):
                assert offset not in types, "acknowledged twice in a request"
                types[offset] = kind
        assert list(types) == sorted(types)
        if any(self.offsets[offset].owner != member for offset in types):
            return INVALID_RECORD_STATE
        for offset, kind in types.items():
            kept = self.offsets[offset]
            assert (kind == GAP) == (kept.value is None)
            kept.owner = None
            if kind != RELEASE:
                kept.end = kind
            if kind in (ACCEPT, REJECT):
                self._ended(member, self.partition, offset, kept.count, kind)
        return 0

    def _acquire(self, member: str, now: float, most: int) -> list[int]:
        found = [n for n, kept in enumerate(self.offsets) if kept.owner is None and kept.end is None][:most]
        for offset in found:
            kept = self.offsets[offset]
            kept.owner, kept.until, kept.count = member, now + LOCK_MS, kept.count + 1
        return found

    def _read(self, acquired: list[int]) -> bytes:
        """The batches from the first to the last of these offsets, those of others among them."""
        between = range(acquired[0], acquired[-1] + 1) if acquired else ()
        values = ((offset, self.offsets[offset].value) for offset in between)
        return b"".join(kc.encode([(None, value)], base_offset=offset) for offset, value in values if value is not None)
