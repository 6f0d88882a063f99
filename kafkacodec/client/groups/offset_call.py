"""A request about a group's offsets, repeated until it succeeds for all partitions or its deadline has passed."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

from kafkacodec.assignment.partitions import TopicPartition
from kafkacodec.client.core.backoff import Backoff
from kafkacodec.client.core.calls import Answer, Coordinator, Place, Send, Versions
from kafkacodec.client.core.cluster import Cluster
from kafkacodec.client.core.coordinators import MOST_BROKEN
from kafkacodec.client.core.retrying import COORDINATOR_MOVED, worth_repeating
from kafkacodec.client.groups.membership import GroupMetadata
from kafkacodec.errors import (
    REBALANCE_IN_PROGRESS,
    STALE_MEMBER_EPOCH,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    BrokerError,
    DeadlineExceeded,
    RemoteProtocolError,
    error,
)
from kafkacodec.protocol.versions import highest_common

__all__ = ["TOPIC_IDS_VERSION", "UNKNOWN_SERVER_ERROR", "UNKNOWN_TOPIC_OR_PARTITION", "Member", "OffsetCall"]

TOPIC_IDS_VERSION: Final = 10  # of OffsetCommit and OffsetFetch: names before it, ids from then on

Member: TypeAlias = "Callable[[], GroupMetadata | None]"
"""The membership's metadata at the time of each attempt; None if there is no generation to commit under."""


class OffsetCall:
    """A call that is repeated until it succeeds for all partitions or its deadline has passed.

    Attributes:
        done: whether it has ended.
        error: the error of the whole call, or None.
        errors: the errors of single partitions.
    """

    def __init__(
        self,
        cluster: Cluster,
        member: Member,
        deadline: float,
        request_timeout_ms: float,
        backoff: Backoff | None,
        place: Callable[[], Place | None] | None = None,
    ) -> None:
        self.done = False
        self._pending: tuple[TopicPartition, ...] | None = None  # None: all
        self._ids: Mapping[str, uuid.UUID] = {}  # that are not to be taken from the newest metadata
        self.error: Exception | None = None
        self.errors: dict[TopicPartition, BrokerError] = {}
        self._cluster = cluster
        self._member = member
        self._place = place
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
        if not self._still_wanted():
            self._end(None)
            return []
        metadata = self._member()
        if metadata is None:
            self._end(self._last or error(REBALANCE_IN_PROGRESS)("the group is rebalancing: commit again afterwards"))
            return []
        timeout_ms = min(self._timeout_ms, self._deadline - now)
        place = (self._place and self._place()) or Coordinator("group", metadata.group_id)
        self._asking = Send(place, self._request(metadata), timeout_ms, context=metadata)
        return [self._asking]

    def next_deadline(self) -> float | None:
        """Return the time of the next repetition, or the deadline."""
        return None if self.done or self._asking is not None else min(self._next_at, self._deadline)

    def answered(self, send: Send, answer: Answer, now: float) -> None:
        """Take the results; repeat the request for partitions that may still succeed."""
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
            code = codes.get(place, UNKNOWN_SERVER_ERROR)  # a partition without an answer has not succeeded
            if code == UNKNOWN_TOPIC_ID and not self._exists(place.topic):
                self.errors[place] = error(code)("the topic was deleted")
            elif code and self._retriable(code, send):
                again[place] = code
            elif code:
                self.errors[place] = error(code)()
        if not again:
            send.settles = not self.errors
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
        broken = isinstance(error, RemoteProtocolError) and self._failures + 1 >= MOST_BROKEN
        if broken or not worth_repeating(error):
            self._end(error)
            return
        self._sent = self._sent or getattr(error, "sent", True)
        self._cluster.coordinators.lost(_coordinator(send))
        self._again(error, now)

    def _still_wanted(self) -> bool:
        """Drop partitions that are no longer wanted; return whether any are left."""
        return True

    def _request(self, metadata: GroupMetadata) -> Any:
        raise NotImplementedError

    def _read(self, response: Any, version: int) -> int | dict[TopicPartition, int]:
        """Take successes; return the error codes of the partitions, or of the whole request."""
        raise NotImplementedError

    def _retriable(self, code: int, send: Send) -> bool:
        if code in COORDINATOR_MOVED:
            self._cluster.coordinators.lost(_coordinator(send))
            return True
        if code == STALE_MEMBER_EPOCH:
            # The epoch has increased meanwhile. The member's partitions are still its own as long as its id is.
            current, used = self._member(), send.context
            return current is not None and current.member_id == used.member_id
        return error(code).retriable and code != UNKNOWN_TOPIC_OR_PARTITION

    def _again(self, fault: Exception, now: float) -> None:
        if isinstance(fault, BrokerError):
            group = self._member()
            of = "" if group is None else f" of group {group.group_id!r}"
            self._cluster.hindrances.refused(f"{type(self).__name__}{of} is refused", fault.code, now)
        self._last = fault
        self._failures += 1
        self._next_at = now + self._backoff.after(self._failures)

    def _end(self, fault: Exception | None) -> None:
        self.error, self.done = fault, True

    def _too_late(self) -> DeadlineExceeded:
        reason = f": {self._last}" if self._last is not None else ""
        fault = DeadlineExceeded(f"{type(self).__name__} timed out{reason}", sent=self._sent)
        fault.__cause__ = self._last
        return fault

    def _exists(self, topic: str) -> bool:
        """Whether the topic id still exists in the newest metadata."""
        self._cluster.refresh()
        known = self._cluster.topics.get(topic)
        return known is not None and known.error is None and known.topic_id == self._ids.get(topic, known.topic_id)

    def _id_of(self, topic: str) -> uuid.UUID | None:
        return self._ids.get(topic) or self._cluster.topic_id(topic)

    def _name_of(self, entry: Any, version: int) -> str:
        if version < TOPIC_IDS_VERSION:
            name: str = entry.name
            return name
        given = (topic for topic, topic_id in self._ids.items() if topic_id == entry.topic_id)
        return next(given, None) or self._cluster.topic_name(entry.topic_id) or ""

    def _version(self, api_key: int, versions: Versions, topics: Iterable[str] | None) -> int:
        version = highest_common(api_key, versions)
        if version >= TOPIC_IDS_VERSION and (topics is None or None in map(self._id_of, topics)):
            names = range(versions[api_key].start, TOPIC_IDS_VERSION)
            return highest_common(api_key, {api_key: names})
        return version


def _coordinator(send: Send) -> Coordinator:
    return Coordinator("group", send.context.group_id)
