"""Membership of a classic group: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

Members join, the coordinator chooses one of them as leader and sends it all subscriptions, the leader assigns, and
SyncGroup brings each member its part. When the group changes, heartbeats are answered with REBALANCE_IN_PROGRESS and
all join again: eager members after giving up everything, cooperative ones with what they have. Sources: KIP-62
(heartbeats beside reading), KIP-345 (static members), KIP-394 (member ids), KIP-429 (cooperative), KIP-800 (reasons),
KIP-814 (the leader's restart).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Final

from kafkacodec.client.core.calls import Answer, Prepare, Send
from kafkacodec.client.core.cluster import Cluster
from kafkacodec.client.groups import classic_requests as requests
from kafkacodec.client.groups.assignor import Assignor, RebalanceProtocol
from kafkacodec.client.groups.assignors import RangeAssignor
from kafkacodec.client.groups.heartbeats import Heartbeats
from kafkacodec.client.groups.leading import Leadership, partitions_of
from kafkacodec.client.groups.member import GroupMember
from kafkacodec.client.groups.membership import (
    GroupMetadata,
    GroupSettings,
    Left,
    Subscription,
    worth_repeating,
)
from kafkacodec.client.groups.offered import OfferedAssignors
from kafkacodec.client.groups.sticky import CooperativeStickyAssignor
from kafkacodec.errors import DecodeError, LocalProtocolError, RemoteProtocolError, error

__all__ = ["ClassicMembership"]

_ILLEGAL_GENERATION, _UNKNOWN_MEMBER, _REBALANCE, _MEMBER_ID_REQUIRED = 22, 25, 27, 79
_LOST_COORDINATOR: Final = frozenset({15, 16})
_JOIN_EXTRA_MS = 5000  # the answer to JoinGroup may take the rebalance timeout, and this for the network (as in Java)
_LEAVE_TIMEOUT_MS = 5000


class _State(Enum):
    OUT = "out"  # before subscribe, and after leaving or a failure
    PAUSED = "paused"  # left because the application did not call; joins when it does
    PREPARING = "preparing"  # will join: after revocation, a wait, or when the topics are known
    JOINING = "joining"
    ASSIGNING = "assigning"  # the leader waits for metadata of the members' topics
    SYNCING = "syncing"
    STABLE = "stable"
    LEAVING = "leaving"


# States with a generation whose coordinator expects heartbeats.
_BEATING = frozenset({_State.PREPARING, _State.ASSIGNING, _State.SYNCING, _State.STABLE})
_IDLE = frozenset({_State.OUT, _State.PAUSED})
_WAITING = frozenset({_State.JOINING, _State.ASSIGNING, _State.SYNCING})


class ClassicMembership(GroupMember):
    """A member of a classic group; see `Membership` for its methods.

    Args:
        settings: the group and the timeouts.
        cluster: the cluster's metadata.
        assignors: what this member offers, the preferred one first; the coordinator chooses one that all members
            have. If all of them support cooperative rebalances, the member keeps its partitions while it rejoins.
            Default: range, then cooperative-sticky, as in Kafka's consumer.

    Raises:
        ValueError: no assignors, or two of the same name.
    """

    def __init__(self, settings: GroupSettings, cluster: Cluster, assignors: Sequence[Assignor] | None = None) -> None:
        chosen = (RangeAssignor(), CooperativeStickyAssignor()) if assignors is None else tuple(assignors)
        self._assignors = OfferedAssignors(chosen)
        super().__init__(settings, cluster)
        self._beats = Heartbeats(settings, self._place)
        self._state = _State.OUT
        self._generation, self._member_id = -1, ""
        self._reason = ""  # why to join (again)
        self._joined: frozenset[str] = frozenset()  # the topics of the last JoinGroup
        self._protocol = ""
        self._leading: Leadership | None = None
        self._watched = -1
        self._asking: Send | None = None  # JoinGroup, SyncGroup or LeaveGroup
        self._failures = 0
        self._next_at = self._assign_by = 0.0

    # For the consumer

    @property
    def rebalance_protocol(self) -> RebalanceProtocol:
        """Whether this member gives up everything before it joins again."""
        return self._assignors.protocol

    @property
    def metadata(self) -> GroupMetadata | None:
        """Under what to commit; None while this is no member in a known generation, and while it joins.

        JoinGroup and SyncGroup wait at the broker for other members, and what follows on their connection waits too.
        """
        if self._generation < 0 or not self._member_id or self._state in _WAITING:
            return None
        return self._identity()

    @property
    def stable(self) -> bool:
        """Whether the member has its assignment and no rebalance is known to be under way."""
        return self._state is _State.STABLE and not self._ownership.revoking and not self._reason

    def subscribe(self, subscription: Subscription, now: float) -> None:
        """Join the group, or change the subscription.

        Raises:
            LocalProtocolError: an expression for the broker, or the member is leaving.
        """
        if subscription.broker_pattern is not None:
            raise LocalProtocolError("the broker evaluates expressions only for groups of the protocol 'consumer'")
        self._require_staying()
        self._topics.set(subscription)
        self._watched = -1
        if self._state is _State.OUT:
            self._interval.polled(now)
            self._prepare("the consumer starts")

    def polled(self, now: float, *, waiting: bool = False) -> None:
        """The application asks for records; see `Membership.polled`."""
        self._interval.polled(now, waiting)
        if self._state is _State.PAUSED:
            self._prepare("the application asks for records again")

    def revoked(self, now: float) -> None:
        """The partitions of the last `Revoke` are not read any more, and their offsets are committed."""
        if self._ownership.revoking and self._ownership.revoked():
            self._assigned()
            self._prepare("partitions were revoked, and others may have them now")

    def rejoin(self, reason: str, now: float) -> None:
        """Ask for a rebalance."""
        self._reason = reason

    # A machine

    def poll(self, now: float) -> list[Send]:
        """The requests that are due."""
        if self._state not in _IDLE and self._ending is None and self._interval.over(now):
            return self._pause(now)
        if self._ending is not None and self._state is not _State.LEAVING:
            self._end()
        elif self._state is _State.STABLE and not self._ownership.revoking:
            self._watch()
        step = _STEPS.get(self._state)
        sends = [] if step is None or self._ownership.revoking or self._asking is not None else step(self, now)
        if self._state in _BEATING and self._generation >= 0:
            sends += self._beats.poll(self._identity(), now)
        return sends

    def next_deadline(self) -> float | None:
        """When the next request is due, or the application has not called for too long."""
        due = []
        if self._state not in _IDLE and self._interval.deadline is not None and self._ending is None:
            due.append(self._interval.deadline)
        if self._state is _State.PREPARING and not self._ownership.revoking and self._topics.names() is not None:
            due.append(self._next_at)
        if self._state is _State.ASSIGNING:
            due.append(self._assign_by)
        if self._state in _BEATING and self._generation >= 0 and self._beats.deadline is not None:
            due.append(self._beats.deadline)
        return min(due, default=None)

    def answered(self, send: Send, answer: Answer, now: float) -> None:
        """Take over a response."""
        if self._beats.ended(send):
            if answer.message.error_code:
                self._refused(answer.message.error_code, now, beat=True)
        elif send is self._asking:
            self._asking = None
            if self._state is _State.LEAVING:
                self._left()
            elif self._state is _State.JOINING:
                self._join_answered(answer.message, now)
            else:
                self._sync_answered(answer.message, now)

    def failed(self, send: Send, error: Exception, now: float) -> None:
        """Repeat a heartbeat; join again after the failure of another request."""
        beat = self._beats.ended(send)
        if not beat and send is not self._asking:
            return
        if not beat and self._state is _State.LEAVING:
            self._left()
            return
        if not worth_repeating(error):
            self._fail(error)
            return
        self._cluster.coordinators.lost(self._place)
        if beat:
            self._beats.again(now)
            return
        self._wait(now, 1)
        self._prepare(self._reason or str(error))

    # Joining

    def _prepare(self, reason: str) -> None:
        """Join (again), once the partitions are revoked that cannot be kept."""
        self._state = _State.PREPARING
        self._reason = reason
        self._asking = None
        self._leading = None
        if self._ownership.revoking:
            return
        owned = self._ownership.owned
        names = self._topics.names() or frozenset()
        cooperative = self.rebalance_protocol == "cooperative"
        kept = {place for place in owned if place.topic in names} if cooperative else set()
        self._ownership.revoke(owned - kept)

    def _join(self, now: float) -> list[Send]:
        names = self._topics.names()
        if names is None or now < self._next_at:
            return []
        self._state = _State.JOINING
        self._joined, reason, self._reason = names, self._reason, ""
        self._beats.forget()
        protocols = self._assignors.subscriptions(names, self.partitions, self._settings.client_rack)
        timeout_ms = max(self._settings.max_poll_interval_ms + _JOIN_EXTRA_MS, self._settings.request_timeout_ms)
        return self._ask(requests.join(self._settings, self._member_id, protocols, reason), timeout_ms)

    def _join_answered(self, joined: Any, now: float) -> None:
        code = joined.error_code
        if code == _MEMBER_ID_REQUIRED and not self._member_id and joined.member_id:
            self._member_id = joined.member_id
            self._state = _State.PREPARING
        elif code:
            self._refused(code, now)
        elif joined.protocol_name not in self._assignors:
            self._fail(
                RemoteProtocolError(f"group {self._settings.group_id!r}: unknown assignor {joined.protocol_name!r}")
            )
        else:
            self._generation, self._member_id = joined.generation_id, joined.member_id
            self._protocol = joined.protocol_name
            self._failures = 0
            self._beats.joined(now)
            self._state = _State.SYNCING
            if joined.leader == joined.member_id:
                self._lead(joined, now)

    def _lead(self, joined: Any, now: float) -> None:
        """Find out about the topics of all members; assign when they are known."""
        try:
            self._leading = Leadership(joined.members, self._topics)
        except DecodeError as error:
            self._fail(error)
            return
        if not joined.skip_assignment:
            self._state = _State.ASSIGNING
            self._assign_by = now + min(self._settings.request_timeout_ms, self._settings.max_poll_interval_ms / 2)

    def _assign(self, now: float) -> list[Send]:
        assert self._leading is not None
        if now < self._assign_by and not self._leading.known:
            return []
        try:
            assigned = self._leading.assign(self._assignors[self._protocol])
        except Exception as error:  # an application's assignor may raise anything
            self._fail(error)
            return []
        self._state = _State.SYNCING
        return self._sync(now, assigned)

    def _sync(self, now: float, assigned: dict[str, bytes] | None = None) -> list[Send]:
        timeout_ms = max(self._settings.max_poll_interval_ms + _JOIN_EXTRA_MS, self._settings.request_timeout_ms)
        return self._ask(requests.sync(self._identity(), self._protocol, assigned or {}), timeout_ms)

    def _sync_answered(self, synced: Any, now: float) -> None:
        if synced.error_code:
            self._refused(synced.error_code, now)
            return
        try:
            target = partitions_of(synced.assignment)
        except DecodeError as error:
            self._fail(error.within(f"assignment in group {self._settings.group_id!r}"))
            return
        self._state = _State.STABLE
        if any(place.topic not in self._joined for place in target):
            target = {place for place in target if place.topic in self._joined}
            self._reason = "the assignment has topics outside of the subscription"
            self._next_at = now + self._settings.backoff.first_ms
        self._ownership.reach(target)
        if not self._ownership.revoking:
            self._assigned()

    def _assigned(self) -> None:
        self._assignors.assigned(self._generation, self.partitions)

    def _watch(self) -> None:
        """Join again if the subscription, or the partitions that were assigned, are not what they were."""
        if self._watched != self._cluster.generation:
            self._watched = self._cluster.generation
            if self._topics.names() != self._joined:
                self._reason = "the subscribed topics changed"
            elif self._leading is not None and self._leading.outdated():
                self._reason = "the number of partitions changed"
        if self._reason:
            self._prepare(self._reason)

    # Losing and leaving

    def _lose(self) -> None:
        """The membership is over, and with it the partitions are gone."""
        self._ownership.lose()
        self._generation = -1
        self._asking = self._leading = None
        self._beats.forget()

    def _pause(self, now: float) -> list[Send]:
        """The application has not called for too long: others may have its partitions until it does."""
        identity, member = self._identity(), self._member_id and self._settings.group_instance_id is None
        self._lose()
        self._member_id = ""
        self._state = _State.PAUSED
        if not member:
            return []
        reason = "the application did not ask for records within max_poll_interval_ms"
        return [Send(self._place, requests.leave(identity, reason), _LEAVE_TIMEOUT_MS)]

    def _end(self) -> None:
        """Give up the partitions, then leave."""
        self._asking = None  # a new assignment comes too late
        if not self._give_up_all():
            return
        self._beats.forget()
        if self._state in _IDLE or self._ending or not self._member_id:
            self._left()
        else:
            self._state = _State.LEAVING

    def _leave(self, now: float) -> list[Send]:
        return self._ask(requests.leave(self._identity(), "the consumer is closed"), _LEAVE_TIMEOUT_MS)

    def _left(self) -> None:
        self._lose()
        self._member_id = ""
        self._state = _State.OUT
        self._ending = None
        self._topics.set(None)
        self._ownership.events.append(Left())

    # Errors

    def _refused(self, code: int, now: float, *, beat: bool = False) -> None:
        """An error code of JoinGroup or SyncGroup, or of a heartbeat."""
        reason = f"the coordinator answered {error(code).name}"
        if code in _LOST_COORDINATOR:
            self._cluster.coordinators.lost(self._place)
        if code in (_UNKNOWN_MEMBER, _ILLEGAL_GENERATION):
            self._lose()
            self._member_id = "" if code == _UNKNOWN_MEMBER else self._member_id
            self._wait(now, 0 if beat else 1)
            self._prepare(reason)
        elif code == _REBALANCE and self._state is not _State.JOINING:
            if self._state is not _State.PREPARING:
                self._prepare(self._reason or reason)
        elif code != _REBALANCE and code not in _LOST_COORDINATOR and not error(code).retriable:
            self._fail(error(code)(f"group {self._settings.group_id!r}: {error(code).name}"))
        elif beat:
            self._beats.again(now)
        else:
            self._wait(now, 1)
            self._prepare(self._reason or reason)

    def _wait(self, now: float, failures: int) -> None:
        """Join no earlier than after a wait that grows with the failures in a row."""
        self._failures += failures
        self._next_at = now + self._settings.backoff.after(self._failures)

    def _fail(self, fault: Exception) -> None:
        self._lose()
        self._member_id = ""
        self._state = _State.OUT
        self._tell_failure(fault)

    # Requests

    def _identity(self) -> GroupMetadata:
        settings = self._settings
        return GroupMetadata(settings.group_id, self._generation, self._member_id, settings.group_instance_id)

    def _ask(self, request: Prepare, timeout_ms: float) -> list[Send]:
        self._asking = Send(self._place, request, timeout_ms)
        return [self._asking]


_STEPS: dict[_State, Callable[[ClassicMembership, float], list[Send]]] = {
    _State.PREPARING: ClassicMembership._join,
    _State.ASSIGNING: ClassicMembership._assign,
    _State.SYNCING: ClassicMembership._sync,
    _State.LEAVING: ClassicMembership._leave,
}
