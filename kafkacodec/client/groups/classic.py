"""Membership of a classic group: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

Members join, the coordinator chooses one of them as leader and sends it all subscriptions, the leader assigns, and
SyncGroup brings each member its part. When the group changes, heartbeats are answered with REBALANCE_IN_PROGRESS and
all join again: eager members after giving up everything, cooperative ones with what they have. Sources: KIP-62
(heartbeats beside reading), KIP-345 (static members), KIP-394 (member ids), KIP-429 (cooperative), KIP-800 (reasons),
KIP-814 (the leader's restart).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kafkacodec.assignment.assignor import Assignor
from kafkacodec.assignment.assignors import RangeAssignor
from kafkacodec.assignment.sticky import CooperativeStickyAssignor
from kafkacodec.client.core.calls import Answer, Send
from kafkacodec.client.core.cluster import Cluster
from kafkacodec.client.core.retrying import worth_repeating
from kafkacodec.client.groups import classic_requests as requests
from kafkacodec.client.groups.classic_member import BEATING, IDLE, ClassicMember, State
from kafkacodec.client.groups.leading import Leadership, partitions_of
from kafkacodec.client.groups.membership import GroupSettings
from kafkacodec.client.groups.offered import OfferedAssignors
from kafkacodec.client.groups.topics import Subscription
from kafkacodec.errors import MEMBER_ID_REQUIRED, DecodeError, LocalProtocolError, RemoteProtocolError

__all__ = ["ClassicMembership"]

_JOIN_EXTRA_MS = 5000  # the answer to JoinGroup may take the rebalance timeout, and this for the network (as in Java)


class ClassicMembership(ClassicMember):
    """A member of a classic group; see `Membership` for its methods.

    Args:
        settings: the group and the timeouts.
        cluster: the cluster's metadata.
        assignors: offered by this member, the preferred one first; the coordinator chooses one that all members have.
            If all of them support cooperative rebalances, the member keeps its partitions while it rejoins. Default:
            range, then cooperative-sticky, as in Kafka's consumer.

    Raises:
        ValueError: no assignors, or two of the same name.
    """

    def __init__(self, settings: GroupSettings, cluster: Cluster, assignors: Sequence[Assignor] | None = None) -> None:
        chosen = (RangeAssignor(), CooperativeStickyAssignor()) if assignors is None else tuple(assignors)
        super().__init__(settings, cluster, OfferedAssignors(chosen))
        self._joined: frozenset[str] = frozenset()  # the topics of the last JoinGroup
        self._protocol = ""
        self._watched = -1
        self._assign_by = 0.0

    # For the consumer

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
        if self._state is State.OUT:
            self._interval.polled(now)
            self._prepare("the consumer starts")

    def polled(self, now: float, *, waiting: bool = False) -> None:
        """The application asks for records; see `Membership.polled`."""
        self._interval.polled(now, waiting)
        if self._state is State.PAUSED:
            self._prepare("the application asks for records again")

    def revoked(self, now: float) -> None:
        """Confirm the last `Revoke`: its partitions are no longer read, and their offsets are committed."""
        if self._ownership.revoking and self._ownership.revoked():
            self._assigned()
            self._prepare("partitions were revoked, and others may have them now")

    def rejoin(self, reason: str, now: float) -> None:
        """Ask for a rebalance."""
        self._reason = reason

    # A machine

    def poll(self, now: float) -> list[Send]:
        """The requests that are due."""
        if self._state not in IDLE and self._ending is None and self._interval.over(now):
            return self._pause(now)
        if self._ending is not None and self._state is not State.LEAVING:
            self._end()
        elif self._state is State.STABLE and not self._ownership.revoking:
            self._watch()
        step = _STEPS.get(self._state)
        sends = [] if step is None or self._ownership.revoking or self._asking is not None else step(self, now)
        if self._state in BEATING and self._generation >= 0:
            sends += self._beats.poll(self._identity(), now)
        parting, self._parting = self._parting, []
        return sends + parting

    def next_deadline(self) -> float | None:
        """When the next request is due, or the application has not called for too long."""
        due = []
        if self._state not in IDLE and self._interval.deadline is not None and self._ending is None:
            due.append(self._interval.deadline)
        if self._state is State.PREPARING and not self._ownership.revoking and self._topics.names() is not None:
            due.append(self._next_at)
        if self._state is State.ASSIGNING:
            due.append(self._assign_by)
        if self._state in BEATING and self._generation >= 0 and self._beats.deadline is not None:
            due.append(self._beats.deadline)
        return min(due, default=None)

    def answered(self, send: Send, answer: Answer, now: float) -> None:
        """Take over a response."""
        if self._beats.ended(send):
            if answer.message.error_code:
                self._refused(answer.message.error_code, now, beat=True)
        elif send is self._asking:
            self._asking = None
            if self._state is State.LEAVING:
                self._left()
            elif self._state is State.JOINING:
                self._join_answered(answer.message, now)
            else:
                self._sync_answered(answer.message, now)

    def failed(self, send: Send, error: Exception, now: float) -> None:
        """Repeat a heartbeat; join again after the failure of another request."""
        beat = self._beats.ended(send)
        if not beat and send is not self._asking:
            return
        if not beat and self._state is State.LEAVING:
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
        self._tell_broken(error, self._failures)
        self._prepare(self._reason or str(error))

    # Joining

    def _join(self, now: float) -> list[Send]:
        names = self._topics.names()
        if names is None or now < self._next_at:
            return []
        self._state = State.JOINING
        self._joined, reason, self._reason = names, self._reason, ""
        self._beats.forget()
        protocols = self._assignors.subscriptions(names, self.partitions, self._settings.client_rack)
        timeout_ms = max(self._settings.max_poll_interval_ms + _JOIN_EXTRA_MS, self._settings.request_timeout_ms)
        return self._ask(requests.join(self._settings, self._member_id, protocols, reason), timeout_ms)

    def _join_answered(self, joined: Any, now: float) -> None:
        code = joined.error_code
        if code == MEMBER_ID_REQUIRED and not self._member_id and joined.member_id:
            self._member_id = joined.member_id
            self._state = State.PREPARING
        elif code:
            self._refused(code, now)
        elif joined.protocol_name not in self._assignors:
            self._member_id = joined.member_id
            unknown = f"group {self._settings.group_id!r}: unknown assignor {joined.protocol_name!r}"
            self._fail(RemoteProtocolError(unknown), leave=True)
        else:
            self._generation, self._member_id = joined.generation_id, joined.member_id
            self._protocol = joined.protocol_name
            self._beats.joined(now)
            self._state = State.SYNCING
            if joined.leader == joined.member_id:
                self._lead(joined, now)

    def _lead(self, joined: Any, now: float) -> None:
        """Find out about the topics of all members; assign when they are known."""
        try:
            self._leading = Leadership(joined.members, self._topics)
        except DecodeError as error:
            self._fail(error, leave=True)
            return
        if not joined.skip_assignment:
            self._state = State.ASSIGNING
            self._assign_by = now + min(self._settings.request_timeout_ms, self._settings.max_poll_interval_ms / 2)

    def _assign(self, now: float) -> list[Send]:
        assert self._leading is not None
        if now < self._assign_by and not self._leading.known:
            return []
        try:
            assigned = self._leading.assign(self._assignors[self._protocol])
        except Exception as error:  # an application's assignor may raise anything
            self._fail(error, leave=True)
            return []
        self._state = State.SYNCING
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
            self._fail(error.within(f"assignment in group {self._settings.group_id!r}"), leave=True)
            return
        self._state, self._failures = State.STABLE, 0
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
        """Join again if the subscription, or the assigned topics' partitions, have changed."""
        if self._watched != self._cluster.generation:
            self._watched = self._cluster.generation
            if self._topics.names() != self._joined:
                self._reason = "the subscribed topics changed"
            elif self._leading is not None and self._leading.outdated():
                self._reason = "the number of partitions changed"
        if self._reason:
            self._prepare(self._reason)


_STEPS: dict[State, Callable[[ClassicMembership, float], list[Send]]] = {
    State.PREPARING: ClassicMembership._join,
    State.ASSIGNING: ClassicMembership._assign,
    State.SYNCING: ClassicMembership._sync,
    State.LEAVING: ClassicMembership._leave,
}
