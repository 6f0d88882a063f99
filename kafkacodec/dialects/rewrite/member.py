"""The consumer side of the proposal's membership protocol, without I/O: replies and a clock go in, calls come out.

A `GroupMember` finds its controller by ListGroups, registers, and sends heartbeats. When the group changes, it returns
`Stop`; the host stops fetching, commits and calls `stopped`; then the member finds its controller and registers
again::

    member = GroupMember("client-1", "billing", "consumer-1")
    actions = member.start(now)             # [Send(None, ListGroups(...))]: to any server
    ...
    actions = member.receive(answer, now)   # Send, Assigned, Stop, ...
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, TypeAlias

from kafkacodec.datatypes import dataclass
from kafkacodec.dialects.rewrite.controller import Broker
from kafkacodec.dialects.rewrite.groups import Partition
from kafkacodec.dialects.rewrite.rpcs import (
    ErrorCode,
    Heartbeat,
    HeartbeatResponse,
    ListGroups,
    ListGroupsResponse,
    RegisterConsumer,
    RegisterConsumerResponse,
    RewindConsumer,
    RewindConsumerResponse,
    Rpc,
)
from kafkacodec.errors import LocalProtocolError, RemoteProtocolError
from kafkacodec.shown import repr_of
from kafkacodec.signatures import suggests_options

__all__ = ["Action", "Assigned", "Failed", "GroupMember", "MemberState", "Rewound", "Send", "Stop"]

# Heartbeats per session timeout: two may be lost.
_HEARTBEATS_PER_SESSION = 3
# The longest wait for the other members, even if a server reports a longer session timeout (as in Kafka).
_LONGEST_CHANGE_MS = 1_800_000


class MemberState(Enum):
    """The state of a member."""

    IDLE = "idle"
    DISCOVERING = "discovering"
    REGISTERING = "registering"
    CONSUMING = "consuming"
    STOPPING = "stopping"
    REWINDING = "rewinding"


# States in which a reply is due, and those in which heartbeats are sent.
_WAITING = (MemberState.DISCOVERING, MemberState.REGISTERING, MemberState.REWINDING)
_HEARTBEATING = (MemberState.CONSUMING, MemberState.REWINDING)


@dataclass(frozen=True, slots=True)
class Send:
    """Send a call to this controller, or to any server if `broker` is None."""

    broker: Broker | None
    call: Rpc


@dataclass(frozen=True, slots=True)
class Assigned:
    """Consume these partitions, each from its offset; -1 means as the consumer is configured."""

    partitions: Mapping[Partition, int]


@dataclass(frozen=True, slots=True)
class Stop:
    """Stop fetching, commit, then call `GroupMember.stopped`. `error_code` is None if no reply came in time."""

    error_code: int | None


@dataclass(frozen=True, slots=True)
class Rewound:
    """Continue from these offsets; partitions that could not be rewound have an error code.

    Partitions that the member does not own continue at their owners.
    """

    offsets: Mapping[Partition, int]
    errors: Mapping[Partition, int]


@dataclass(frozen=True, slots=True)
class Failed:
    """The group does not exist or refuses the member. The member is idle and may start again."""

    error_code: int


Action: TypeAlias = Send | Assigned | Stop | Rewound | Failed


@dataclass(slots=True)
class _Asked:
    answer: type[Rpc]
    at: int


class GroupMember:
    """One consumer of one group.

    Times are in milliseconds of a monotonic clock; all calls must use the same clock.

    Args:
        client_id: must be unique, since heartbeats have no other name.
        group: the group to join.
        consumer_id: the member's name in the group.
        request_timeout_ms: the time limit of a reply. Registrations and rewinds, which wait for the other members, may
            take a session timeout longer.
    """

    @suggests_options
    def __init__(self, client_id: str, group: str, consumer_id: str, *, request_timeout_ms: int = 30_000) -> None:
        self.client_id = client_id
        self.group = group
        self.consumer_id = consumer_id
        self.state = MemberState.IDLE
        self.controller: Broker | None = None
        self.generation = 0
        self.partitions: dict[Partition, int] = {}
        self._request_timeout_ms = request_timeout_ms
        self._session_timeout = 0
        self._now = 0
        self._correlation_id = 0
        self._asked: dict[int, _Asked] = {}
        self._heartbeat_at = 0
        self._heard_at = 0
        self._answer_by = 0  # while discovering, registering or rewinding

    def __repr__(self) -> str:
        return repr_of(self, self.consumer_id, f"group {self.group!r}", self.state.name.lower())

    def start(self, now: int) -> list[Action]:
        """Find the controller. Raises LocalProtocolError if the member is not idle."""
        self._require(now, MemberState.IDLE)
        return self._discover(now)

    def stopped(self, now: int) -> list[Action]:
        """Fetching has stopped and offsets are committed. Raises LocalProtocolError without a `Stop` before."""
        self._require(now, MemberState.STOPPING)
        return self._discover(now)

    def rewind(self, offsets: Mapping[Partition, int], now: int) -> list[Action]:
        """Request other offsets; the host must have stopped fetching. `Rewound` or `Stop` follows.

        Raises:
            LocalProtocolError: the member is not consuming.
        """
        self._require(now, MemberState.CONSUMING)
        entry = RewindConsumer.PartitionOffset
        entries = [entry(topic=p.topic, partition=p.partition, offset=offset) for p, offset in offsets.items()]
        self.state = MemberState.REWINDING
        self._answer_by = now + self._longest_change()
        return [self._send(now, RewindConsumer, RewindConsumerResponse, consumer_group=self.group, new_offsets=entries)]

    def disconnected(self, now: int) -> list[Action]:
        """The connection to the controller, or to the server asked for it, was lost."""
        self._set_clock(now)
        if self.state in _HEARTBEATING:
            return self._stop(None)
        return self._discover(now) if self.state in _WAITING else []

    def unanswered(self, call: Rpc, now: int) -> list[Action]:
        """A call will get no reply: as `disconnected`, unless the call is from before the member stopped."""
        self._set_clock(now)
        return self.disconnected(now) if getattr(call, "correlation_id", -1) in self._asked else []

    def tick(self, now: int) -> list[Action]:
        """Advance the clock.

        Sends a heartbeat if one is due. Stops if no heartbeat was answered for a session timeout, or if a rewind is not
        answered. If the reply to another call does not come in time, looks for the controller again.
        """
        self._set_clock(now)
        if self.state in _WAITING and now >= self._answer_by:
            return self._stop(None) if self.state is MemberState.REWINDING else self._discover(now)
        if self.state not in _HEARTBEATING:
            return []
        if now - self._heard_at > self._session_timeout:
            return self._stop(None)
        if now < self._heartbeat_at:
            return []
        self._heartbeat_at = now + max(self._session_timeout // _HEARTBEATS_PER_SESSION, 1)
        return [self._send(now, Heartbeat, HeartbeatResponse, session_timeout=self._session_timeout)]

    def next_deadline(self) -> int | None:
        """Return when `tick` is needed next; None if nothing is pending."""
        deadlines = [self._answer_by] if self.state in _WAITING else []
        if self.state in _HEARTBEATING:
            deadlines += [self._heartbeat_at, self._heard_at + self._session_timeout + 1]
        return min(deadlines, default=None)

    def receive(self, answer: Rpc, now: int) -> list[Action]:
        """Take a reply and return the actions.

        Replies to calls from before the member stopped are ignored.

        Raises:
            RemoteProtocolError: a reply to no call or of another kind than the call, or an invalid session timeout;
                nothing has changed.
        """
        correlation_id: int = getattr(answer, "correlation_id", -1)
        asked = self._asked.get(correlation_id)
        if asked is None:
            if type(answer) in _ANSWERS and 0 < correlation_id <= self._correlation_id:
                return []
            raise RemoteProtocolError(f"unexpected {type(answer).__name__} with correlation id {correlation_id}")
        if type(answer) is not asked.answer:
            raise RemoteProtocolError(
                f"expected {asked.answer.__name__} with correlation id {correlation_id}, got {type(answer).__name__}"
            )
        self._set_clock(now)
        actions = _ANSWERS[type(answer)](self, answer, asked)
        self._asked.pop(correlation_id, None)
        return actions

    def _listed(self, answer: Any, _: _Asked) -> list[Action]:
        info = next((info for info in answer.groups_info if info.group_name == self.group), None)
        if info is None:
            return self._fail(answer.error_code or ErrorCode.UNKNOWN_GROUP)
        if info.session_timeout < 1:
            raise RemoteProtocolError(f"invalid session timeout {info.session_timeout} of group {self.group!r}")
        broker = info.controller_broker
        self.controller = Broker(broker.broker_id, broker.host, broker.port)
        self._session_timeout = info.session_timeout
        self.state = MemberState.REGISTERING
        self._answer_by = self._now + self._longest_change()
        names = {"consumer_group": self.group, "consumer_id": self.consumer_id}
        return [self._send(self._now, RegisterConsumer, RegisterConsumerResponse, **names)]

    def _registered(self, answer: Any, _: _Asked) -> list[Action]:
        if answer.error_code:
            return self._fail(answer.error_code)
        self.partitions = {Partition(p.topic, p.partition): p.offset for p in answer.partitions_to_own}
        self.state = MemberState.CONSUMING
        self._heartbeat_at = self._heard_at = self._now
        return [Assigned(dict(self.partitions))]

    def _heartbeat_answered(self, answer: Any, asked: _Asked) -> list[Action]:
        if answer.error_code:
            return self._stop(answer.error_code)
        self.generation = answer.controller_generation
        self._heard_at = max(self._heard_at, asked.at)
        return []

    def _rewound(self, answer: Any, _: _Asked) -> list[Action]:
        results = {Partition(p.topic, p.partition): p for p in answer.actual_offsets}
        offsets = {partition: p.offset for partition, p in results.items() if not p.error_code}
        errors = {partition: p.error_code for partition, p in results.items() if p.error_code}
        self.partitions.update({p: o for p, o in offsets.items() if p in self.partitions})
        self.state = MemberState.CONSUMING
        return [Rewound(offsets, errors)]

    def _discover(self, now: int) -> list[Action]:
        self._asked.clear()
        self.controller = None
        self.state = MemberState.DISCOVERING
        self._answer_by = now + self._request_timeout_ms
        return [self._send(now, ListGroups, ListGroupsResponse, consumer_groups=[self.group])]

    def _longest_change(self) -> int:
        """The timeout of a reply that waits for the other members, which may take a session timeout."""
        return min(self._session_timeout, _LONGEST_CHANGE_MS) + self._request_timeout_ms

    def _stop(self, error_code: int | None) -> list[Action]:
        self._asked.clear()
        self.partitions = {}
        self.generation = 0
        self.state = MemberState.STOPPING
        return [Stop(error_code)]

    def _fail(self, error_code: int) -> list[Action]:
        self._asked.clear()
        self.state = MemberState.IDLE
        return [Failed(error_code)]

    def _send(self, now: int, call: Any, answer: Any, **fields: Any) -> Send:
        self._correlation_id += 1
        self._asked[self._correlation_id] = _Asked(answer, now)
        return Send(self.controller, call(correlation_id=self._correlation_id, client_id=self.client_id, **fields))

    def _require(self, now: int, state: MemberState) -> None:
        if self.state is not state:
            raise LocalProtocolError(f"the member is {self.state.value}, not {state.value}")
        self._set_clock(now)

    def _set_clock(self, now: int) -> None:
        if now < self._now:
            raise LocalProtocolError(f"the clock went back from {self._now} to {now}")
        self._now = now


_ANSWERS: dict[type[Rpc], Callable[[GroupMember, Any, _Asked], list[Action]]] = {
    ListGroupsResponse: GroupMember._listed,
    RegisterConsumerResponse: GroupMember._registered,
    HeartbeatResponse: GroupMember._heartbeat_answered,
    RewindConsumerResponse: GroupMember._rewound,
}
