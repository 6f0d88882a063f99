"""Membership through one repeated request: the common part of KIP-848 consumer groups and KIP-932 share groups.

A member makes its own id and sends heartbeats with its epoch, 0 to join. The answers have the next epoch, the interval
of heartbeats, and the assignment by topic ids whenever it changes.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from enum import Enum
from typing import Any

from kafkacodec import messages
from kafkacodec.assignment.partitions import TopicPartition
from kafkacodec.client.core.calls import ANY, Answer, Place, Prepare, Send, Versions
from kafkacodec.client.core.cluster import Cluster
from kafkacodec.client.core.retrying import COORDINATOR_MOVED, worth_repeating
from kafkacodec.client.groups.member import GroupMember
from kafkacodec.client.groups.membership import GroupMetadata, GroupSettings, Left
from kafkacodec.client.groups.topics import Subscription
from kafkacodec.errors import FENCED_MEMBER_EPOCH, UNKNOWN_MEMBER_ID, error
from kafkacodec.messages.keys import METADATA
from kafkacodec.protocol.versions import highest_common

__all__ = ["EpochMembership"]

_TOPIC_IDS_VERSION = 12
_JOIN_EPOCH, _LEAVE_EPOCH, _REMAIN_EPOCH = 0, -1, -2
_LEAVE_TIMEOUT_MS = 5000


class _State(Enum):
    OUT = "out"  # before subscribe, and after leaving or a failure
    PAUSED = "paused"  # left because the application did not call; joins when it does
    JOINING = "joining"
    MEMBER = "member"
    LEAVING = "leaving"


_ALIVE = frozenset({_State.JOINING, _State.MEMBER})


class EpochMembership(GroupMember):
    """A member that sends heartbeats with its epoch; `ModernMembership` and `ShareMembership` add their fields."""

    def __init__(self, settings: GroupSettings, cluster: Cluster) -> None:
        super().__init__(settings, cluster)
        self._state = _State.OUT
        self._member_id = str(uuid.uuid4())
        self._epoch = _JOIN_EPOCH
        self._subscription = Subscription(["-"])
        self._target: dict[uuid.UUID, list[int]] | None = None  # the newest assignment, while its names are unknown
        self._ids: dict[str, uuid.UUID] = {}  # of all topics assigned so far
        self._named: dict[uuid.UUID, str] = {}  # topics requested from brokers
        self._sent: dict[str, Any] = {}  # the fields of the last answered heartbeat
        self._asking: Send | None = None
        self._naming: Send | None = None
        self._failures = 0
        self._interval_ms = 0.0
        self._next_at = self._name_at = 0.0
        self._assignments = 0  # the number of adopted assignments
        self._urgent = False  # a change to report before the next heartbeat is due

    # For the consumer

    @property
    def metadata(self) -> GroupMetadata | None:
        """The identity for commits; None while this is not a member."""
        if self._epoch <= 0:
            return None
        settings = self._settings
        return GroupMetadata(settings.group_id, self._epoch, self._member_id, settings.group_instance_id)

    @property
    def place(self) -> Place:
        """The destination of commits: the coordinator."""
        return self._place

    @property
    def stable(self) -> bool:
        """Whether the member has its assignment, as far as it knows."""
        return self._state is _State.MEMBER and not self._ownership.revoking and self._target is None

    def subscribe(self, subscription: Subscription, now: float) -> None:
        """Join the group, or change the subscription. Raises LocalProtocolError while the member is leaving."""
        self._require_staying()
        self._subscription = subscription
        self._topics.set(subscription)
        self._urgent = True
        if self._state is _State.OUT:
            self._interval.polled(now)
            self._join()

    def polled(self, now: float, *, waiting: bool = False) -> None:
        """The application asks for records; see `Membership.polled`."""
        self._interval.polled(now, waiting)
        if self._state is _State.PAUSED:
            self._join()

    def revoked(self, now: float) -> None:
        """Confirm the last `Revoke`: its partitions are no longer read, and their offsets are committed."""
        if self._ownership.revoking and self._ownership.revoked():
            self._reached()

    def rejoin(self, reason: str, now: float) -> None:
        """Do nothing: the coordinator assigns when something changes."""

    # A machine

    def poll(self, now: float) -> list[Send]:
        """The requests that are due."""
        sends: list[Send] = []
        if self._state in _ALIVE and self._ending is None and self._interval.over(now):
            return self._pause()
        if self._ending is not None and self._state is not _State.LEAVING:
            sends += self._end()
        elif self._state is _State.MEMBER and self._target is not None and not self._ownership.revoking:
            sends += self._reconcile(now)
        if self._state in _ALIVE and self._asking is None and now >= self._due():
            names = self._topics.names()
            if names is not None:
                sends.append(self._heartbeat(names))
        return sends

    def next_deadline(self) -> float | None:
        """When the next request is due, or the application has not called for too long."""
        due = []
        if self._state in _ALIVE:
            if self._interval.deadline is not None and self._ending is None:
                due.append(self._interval.deadline)
            if self._asking is None and self._topics.names() is not None:
                due.append(self._due())
            if self._target is not None and self._naming is None and not self._ownership.revoking:
                due.append(self._name_at)
        return min(due, default=None)

    def answered(self, send: Send, answer: Answer, now: float) -> None:
        """Take over a response."""
        if send is self._naming:
            self._naming = None
            self._named.update({topic.topic_id: topic.name for topic in answer.message.topics if topic.name})
            return
        if send is not self._asking:
            return
        self._asking = None
        found = answer.message
        if self._state is _State.LEAVING:
            self._left()
        elif found.error_code:
            self._refused(found, now)
        else:
            self._failures = 0
            self._state = _State.MEMBER
            self._sent = send.context
            self._member_id = found.member_id or self._member_id
            self._epoch = found.member_epoch
            self._interval_ms = max(found.heartbeat_interval_ms, 1)
            self._next_at = now + self._interval_ms
            if found.assignment is not None:
                self._target = {topic.topic_id: topic.partitions for topic in found.assignment.topic_partitions}

    def failed(self, send: Send, error: Exception, now: float) -> None:
        """Repeat the request, with everything in it: the coordinator may have got it or not."""
        if send is self._naming:
            self._naming = None
            return
        if send is not self._asking:
            return
        self._asking = None
        if self._state is _State.LEAVING:
            self._left()
        elif not worth_repeating(error):
            self._fail(error)
        else:
            self._cluster.coordinators.lost(self._place)
            self._again(now)
            self._tell_broken(error, self._failures)

    # Heartbeats and assignments

    def _fields(self, names: frozenset[str]) -> dict[str, Any]:
        """Return the fields of the member's state that the coordinator does not know."""
        raise NotImplementedError

    def _request(self, fields: Mapping[str, Any], epoch: int) -> Prepare:
        """A heartbeat."""
        raise NotImplementedError

    def _reach(self, target: set[TopicPartition]) -> None:
        """Take over an assignment."""
        raise NotImplementedError

    # Steps

    def _due(self) -> float:
        return 0.0 if self._urgent and not self._failures else self._next_at

    def _join(self) -> None:
        self._state = _State.JOINING
        self._epoch = _JOIN_EPOCH
        self._sent = {}
        self._urgent = True

    def _heartbeat(self, names: frozenset[str]) -> Send:
        fields = self._fields(names)
        changed = {name: value for name, value in fields.items() if name not in self._sent or self._sent[name] != value}
        self._urgent = False
        self._asking = Send(
            self._place, self._request(changed, self._epoch), self._settings.request_timeout_ms, context=fields
        )
        return self._asking

    def _reconcile(self, now: float) -> list[Send]:
        """Adopt the assignment when the names of all its topics are known."""
        assert self._target is not None
        names = {topic: self._cluster.topic_name(topic) or self._named.get(topic) for topic in self._target}
        unknown = [topic for topic, name in names.items() if name is None]
        if not unknown:
            found = {name: topic for topic, name in names.items() if name is not None}
            target = {TopicPartition(name, number) for name, topic in found.items() for number in self._target[topic]}
            self._target = None
            self._ownership.lose_some(
                place
                for place in self._ownership.owned
                if found.get(place.topic, self._ids[place.topic]) != self._ids[place.topic]
            )  # of topics that were deleted and created again
            self._ids.update(found)
            self._topics.want_others(found)
            self._reach(target)
            if not self._ownership.revoking:
                self._reached()
            return []
        if self._naming is not None or now < self._name_at:
            return []
        self._name_at = now + self._settings.backoff.most_ms
        self._naming = Send(ANY, _names_request(unknown))
        return [self._naming]

    def _reached(self) -> None:
        """Confirm the assignment soon, even if it did not change: the coordinator waits for that."""
        self._assignments += 1
        self._urgent = True

    def _pause(self) -> list[Send]:
        """The application has not called for too long: others may have its partitions until it does."""
        request = self._request({}, self._leaving_epoch(remain=True))
        joined = self._epoch > 0
        self._lose()
        self._state = _State.PAUSED
        return [Send(self._place, request, _LEAVE_TIMEOUT_MS)] if joined else []

    def _end(self) -> list[Send]:
        """Give up the partitions, then leave."""
        if not self._give_up_all():
            return []
        remain = bool(self._ending)
        if self._state not in _ALIVE or (remain and self._settings.group_instance_id is None):
            self._left()
            return []
        self._state = _State.LEAVING
        self._asking = Send(self._place, self._request({}, self._leaving_epoch(remain)), _LEAVE_TIMEOUT_MS)
        return [self._asking]

    def _leaving_epoch(self, remain: bool) -> int:
        """A static member that says -2 keeps its partitions for its restart."""
        return _REMAIN_EPOCH if remain and self._settings.group_instance_id is not None else _LEAVE_EPOCH

    def _left(self) -> None:
        self._lose()
        self._state = _State.OUT
        self._ending = None
        self._topics.set(None)
        self._ownership.events.append(Left())

    def _lose(self) -> None:
        """The membership is over, and with it the partitions are gone."""
        self._ownership.lose()
        self._epoch = _JOIN_EPOCH
        self._target = self._asking = self._naming = None
        self._sent = {}
        self._named = {}

    def _refused(self, found: Any, now: float) -> None:
        code = found.error_code
        if self._state is _State.JOINING:
            self._note_refusal(code, now)
        if code in (UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH):
            joining = self._state is _State.JOINING
            self._lose()
            self._join()
            if joining:
                self._again(now)
        elif code in COORDINATOR_MOVED or error(code).retriable:
            if code in COORDINATOR_MOVED:
                self._cluster.coordinators.lost(self._place)
            self._again(now)
        else:
            reason = found.error_message or error(code).name
            self._fail(error(code)(f"group {self._settings.group_id!r}: {reason}"))

    def _again(self, now: float) -> None:
        self._sent = {}
        self._failures += 1
        self._next_at = now + self._settings.backoff.after(self._failures)

    def _fail(self, fault: Exception) -> None:
        self._lose()
        self._state = _State.OUT
        self._tell_failure(fault)


def _names_request(topics: list[uuid.UUID]) -> Prepare:
    """A Metadata request by topic ids."""
    kind = messages.MetadataRequest

    def prepare(versions: Versions) -> tuple[Any, int]:
        entries = [kind.MetadataRequestTopic(topic_id=topic, name=None) for topic in topics]
        version = highest_common(METADATA, versions)
        return kind(topics=entries, allow_auto_topic_creation=False), version

    return prepare
