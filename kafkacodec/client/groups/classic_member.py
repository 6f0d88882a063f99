"""The base of a classic membership: state, identity, rejoining and leaving.

`ClassicMembership` has its requests and answers.
"""

from __future__ import annotations

from enum import Enum

from kafkacodec.assignment.assignor import RebalanceProtocol
from kafkacodec.client.core.calls import Place, Prepare, Send
from kafkacodec.client.core.cluster import Cluster
from kafkacodec.client.core.retrying import COORDINATOR_MOVED
from kafkacodec.client.groups import classic_requests as requests
from kafkacodec.client.groups.heartbeats import Heartbeats
from kafkacodec.client.groups.leading import Leadership
from kafkacodec.client.groups.member import GroupMember
from kafkacodec.client.groups.membership import GroupMetadata, GroupSettings, Left
from kafkacodec.client.groups.offered import OfferedAssignors
from kafkacodec.errors import (
    ILLEGAL_GENERATION,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
    error,
)

__all__ = ["BEATING", "IDLE", "ClassicMember", "State"]

_LEAVE_TIMEOUT_MS = 5000


class State(Enum):
    """The state of a member of a classic group."""

    OUT = "out"  # before subscribe, and after leaving or a failure
    PAUSED = "paused"  # left because the application did not call; joins when it does
    PREPARING = "preparing"  # will join: after revocation, a wait, or when the topics are known
    JOINING = "joining"
    ASSIGNING = "assigning"  # the leader waits for metadata of the members' topics
    SYNCING = "syncing"
    STABLE = "stable"
    LEAVING = "leaving"


# States with a generation whose coordinator expects heartbeats.
BEATING = frozenset({State.PREPARING, State.ASSIGNING, State.SYNCING, State.STABLE})
IDLE = frozenset({State.OUT, State.PAUSED})
_WAITING = frozenset({State.JOINING, State.ASSIGNING, State.SYNCING})


class ClassicMember(GroupMember):
    """A member of a classic group."""

    def __init__(self, settings: GroupSettings, cluster: Cluster, assignors: OfferedAssignors) -> None:
        super().__init__(settings, cluster)
        self._assignors = assignors
        self._beats = Heartbeats(settings, self._place)
        self._state = State.OUT
        self._generation, self._member_id = -1, ""
        self._reason = ""  # why to join (again)
        self._leading: Leadership | None = None
        self._asking: Send | None = None  # JoinGroup, SyncGroup or LeaveGroup
        self._parting: list[Send] = []  # a LeaveGroup after a failure
        self._aside = False  # a JoinGroup or SyncGroup may wait at the broker that no longer matters
        self._failures = 0
        self._next_at = 0.0

    @property
    def rebalance_protocol(self) -> RebalanceProtocol:
        """Whether this member gives up everything before it joins again."""
        return self._assignors.protocol

    @property
    def metadata(self) -> GroupMetadata | None:
        """The identity for commits; None without a known generation, and while it joins.

        JoinGroup and SyncGroup wait at the broker for other members, and so do later requests on their connection. A
        member that leaves meanwhile commits at another `place`.
        """
        if self._generation < 0 or not self._member_id or (self._state in _WAITING and not self._aside):
            return None
        return self._identity()

    @property
    def place(self) -> Place:
        """The destination of commits: the coordinator; by its number to get a connection without a waiting request."""
        node = self._cluster.coordinators.node_of(self._place) if self._aside else None
        return self._place if node is None else node

    @property
    def stable(self) -> bool:
        """Whether the member has its assignment and no rebalance is known to be under way."""
        return self._state is State.STABLE and not self._ownership.revoking and not self._reason

    # Joining (again)

    def _prepare(self, reason: str) -> None:
        """Join (again), once the partitions are revoked that cannot be kept."""
        self._state = State.PREPARING
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

    # Losing and leaving

    def _lose(self) -> None:
        """The membership is over, and with it the partitions are gone."""
        self._ownership.lose()
        self._generation, self._aside = -1, False
        self._asking = self._leading = None
        self._beats.forget()

    def _pause(self, now: float) -> list[Send]:
        """The application has not called for too long: others may have its partitions until it does."""
        identity, member = self._identity(), self._member_id and self._settings.group_instance_id is None
        self._step_aside()
        place = self.place
        self._lose()
        self._member_id = ""
        self._state = State.PAUSED
        if not member:
            return []
        reason = "the application did not ask for records within max_poll_interval_ms"
        return [Send(place, requests.leave(identity, reason), _LEAVE_TIMEOUT_MS)]

    def _end(self) -> None:
        """Give up the partitions, then leave."""
        self._step_aside()  # a new assignment comes too late
        if not self._give_up_all():
            return
        self._beats.forget()
        if self._state in IDLE or self._ending or not self._member_id:
            self._left()
        else:
            self._state = State.LEAVING

    def _step_aside(self) -> None:
        """Stop waiting for JoinGroup or SyncGroup."""
        self._aside = self._aside or (self._asking is not None and self._state in _WAITING)
        self._asking = None

    def _leave(self, now: float) -> list[Send]:
        return self._ask(requests.leave(self._identity(), "the consumer is closed"), _LEAVE_TIMEOUT_MS)

    def _left(self) -> None:
        self._lose()
        self._member_id = ""
        self._state = State.OUT
        self._ending = None
        self._topics.set(None)
        self._ownership.events.append(Left())

    # Errors

    def _refused(self, code: int, now: float, *, beat: bool = False) -> None:
        """An error code of JoinGroup or SyncGroup, or of a heartbeat."""
        reason = f"the coordinator answered {error(code).name}"
        if not beat:
            self._note_refusal(code, now)
        if code in COORDINATOR_MOVED:
            self._cluster.coordinators.lost(self._place)
        if code in (UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION):
            self._lose()
            self._member_id = "" if code == UNKNOWN_MEMBER_ID else self._member_id
            self._wait(now, 0 if beat else 1)
            self._prepare(reason)
        elif code == REBALANCE_IN_PROGRESS and self._state is not State.JOINING:
            if self._state is not State.PREPARING:
                self._prepare(self._reason or reason)
        elif code != REBALANCE_IN_PROGRESS and code not in COORDINATOR_MOVED and not error(code).retriable:
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

    def _fail(self, fault: Exception, *, leave: bool = False) -> None:
        """End for good. With `leave`, tell the coordinator, since other members wait for this one."""
        if leave and self._member_id and self._settings.group_instance_id is None:
            request = requests.leave(self._identity(), str(fault))
            self._parting = [Send(self._place, request, _LEAVE_TIMEOUT_MS)]
        self._lose()
        self._member_id = ""
        self._state = State.OUT
        self._tell_failure(fault)

    # Requests

    def _identity(self) -> GroupMetadata:
        settings = self._settings
        return GroupMetadata(settings.group_id, self._generation, self._member_id, settings.group_instance_id)

    def _ask(self, request: Prepare, timeout_ms: float) -> list[Send]:
        self._asking = Send(self.place, request, timeout_ms)
        return [self._asking]
