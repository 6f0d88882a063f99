"""The members of a classic group, and the record that keeps them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any

from kafkacodec import messages
from kafkacodec.broker.state.java import in_java_order
from kafkacodec.broker.state.machine import Client, Room
from kafkacodec.broker.state.options import GroupOptions
from kafkacodec.datatypes import NamedTuple, dataclass, field
from kafkacodec.errors import (
    FENCED_INSTANCE_ID,
    ILLEGAL_GENERATION,
    NON_EMPTY_GROUP,
    NONE,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
    DecodeError,
)
from kafkacodec.messages.consumer_protocol import decode_subscription
from kafkacodec.messages.stored import StoredRecord

__all__ = ["COMPLETING", "EMPTY", "PREPARING", "STABLE", "ClassicMember", "ClassicMembers", "Waiting"]

EMPTY, PREPARING, COMPLETING, STABLE = "Empty", "PreparingRebalance", "CompletingRebalance", "Stable"

_VALUE_VERSION = 3


class Waiting(NamedTuple):
    """A JoinGroup that waits for its answer.

    Attributes:
        to: what is returned with the answer.
        version: of the request.
    """

    to: Any
    version: int


@dataclass(slots=True)
class ClassicMember:
    """A member; `joining` and `syncing` are its requests that wait for an answer."""

    id: str
    instance: str | None
    client: Client
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: dict[str, bytes]
    assignment: bytes = b""
    joining: Waiting | None = None
    syncing: Any = None
    new: bool = False


@dataclass(slots=True)
class ClassicMembers:
    """The members of a classic group, their descriptions and records."""

    kind = "classic"

    room: Room
    options: GroupOptions
    new_id: Callable[[], uuid.UUID]
    state: str = EMPTY
    generation: int = 0
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str | None = None
    members: dict[str, ClassicMember] = field(default_factory=dict)
    static: dict[str, str] = field(default_factory=dict)  # member ids by instance
    promised: set[str] = field(default_factory=set)  # ids given out and not used yet
    unsynced: set[str] = field(default_factory=set)
    since: int = -1  # time of the last change of state
    topics: set[str] | None = None  # that members subscribe to; None if unknown

    @property
    def name(self) -> str:
        """The id of the group."""
        return self.room.key

    def refusal(self, member_id: str, instance: str | None) -> int:
        """Return the error if this is not a member; 0 if it is one."""
        if instance is not None:
            known = self.static.get(instance)
            if known is None:
                return UNKNOWN_MEMBER_ID
            if known != member_id:
                return FENCED_INSTANCE_ID
        return NONE if member_id in self.members else UNKNOWN_MEMBER_ID

    def common(self) -> set[str]:
        """Return the protocols that all members offer."""
        offers = [member.protocols.keys() for member in self.members.values()]
        return set(offers[0]).intersection(*offers[1:]) if offers else set()

    def elected(self) -> str | None:
        """Return the protocol with the most votes: a member votes for the first of its list that all offer.

        Of several with as many votes, it is the first in a HashMap of Java.
        """
        common = self.common()
        votes: dict[str, int] = {}
        for member in self.members.values():
            choice = next((name for name in member.protocols if name in common), None)
            if choice is not None:
                votes[choice] = votes.get(choice, 0) + 1
        return max(in_java_order(votes), key=votes.__getitem__) if votes else None

    def subscribed(self) -> set[str] | None:
        """Return the topics that members of a group of consumers subscribe to; None if unknown."""
        if self.protocol_type != "consumer":
            return None
        found: set[str] = set()
        for member in self.members.values():
            try:
                found.update(decode_subscription(member.protocols.get(self.protocol or "", b"")).topics)
            except DecodeError:
                return None
        return found

    # Committed offsets

    def commit_refusal(self, request: Any, version: int, *, transactional: bool) -> int:
        """Why the group does not take a commit; 0 if it does."""
        member_id, generation = request.member_id, request.generation_id_or_member_epoch
        simple = generation < 0 and not member_id and request.group_instance_id is None
        if simple and (self.state == EMPTY or transactional):
            return NONE
        if generation < 0 and self.state == EMPTY:
            return NONE
        code = self.refusal(member_id, request.group_instance_id)
        if code:
            return code
        if generation != self.generation:
            return ILLEGAL_GENERATION
        return REBALANCE_IN_PROGRESS if self.state == COMPLETING else NONE

    def fetch_refusal(self, member_id: str | None, epoch: int) -> int:
        """Return the error for a fetch of offsets: none in classic groups."""
        return NONE

    def delete_refusal(self) -> int:
        """Return the error for a deletion of offsets; 0 if topics without a subscriber are allowed."""
        return NON_EMPTY_GROUP if self.members and self.protocol_type != "consumer" else NONE

    def subscribes(self) -> Callable[[str], bool]:
        """Whether members use the offsets of a topic; true if unknown."""
        return lambda topic: bool(self.members) and (self.topics is None or topic in self.topics)

    @property
    def idle(self) -> bool:
        """Whether the group has no members, and none is joining."""
        return self.state == EMPTY and not self.promised

    def retention_start(self) -> Callable[[str], int | None]:
        """Return the start of a topic's retention: -1 for the time of each commit, None while in use."""
        if self.state == EMPTY:
            start = self.since if self.protocol_type else -1
            return lambda topic: start
        if self.protocol_type == "consumer" and self.state == STABLE and self.topics is not None:
            uses = self.subscribes()
            return lambda topic: None if uses(topic) else -1
        return lambda topic: None

    # Records

    def record(self, assignments: Mapping[str, bytes] | None = None) -> StoredRecord:
        """Return the record of the group, with these assignments instead of the current ones."""
        given = {m.id: m.assignment for m in self.members.values()} if assignments is None else assignments
        entry = messages.GroupMetadataValue.MemberMetadata
        value = messages.GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol=self.protocol,
            leader=self.leader,
            current_state_timestamp=self.since,
            members=[
                entry(
                    member_id=m.id,
                    group_instance_id=m.instance,
                    client_id=m.client.id,
                    client_host=m.client.host,
                    rebalance_timeout=m.rebalance_timeout_ms,
                    session_timeout=m.session_timeout_ms,
                    subscription=m.protocols.get(self.protocol or "", b""),
                    assignment=given[m.id],
                )
                for m in self.members.values()
            ],
        )
        return StoredRecord(messages.GroupMetadataKey(group=self.name), value, _VALUE_VERSION)

    def tombstones(self) -> list[StoredRecord]:
        """Return the records that remove the group."""
        return [StoredRecord(messages.GroupMetadataKey(group=self.name), None, None)]

    def restore(self, value: Any) -> None:
        """Apply a record of the group: after a write, or at the start with the state of the members."""
        for entry in value.members:
            member = self.members.get(entry.member_id)
            if member is None:
                timeout = entry.rebalance_timeout if entry.rebalance_timeout >= 0 else entry.session_timeout
                member = ClassicMember(
                    entry.member_id,
                    entry.group_instance_id,
                    Client(entry.client_id, entry.client_host),
                    timeout,
                    entry.session_timeout,
                    {value.protocol or "": bytes(entry.subscription)},
                )
                self.members[member.id] = member
            member.assignment = bytes(entry.assignment)
        for gone in self.members.keys() - {entry.member_id for entry in value.members}:
            del self.members[gone]
        self.static = {m.instance: m.id for m in self.members.values() if m.instance is not None}
        self.protocol_type = value.protocol_type or None
        self.protocol, self.leader, self.generation = value.protocol, value.leader, value.generation
        self.state, self.since = STABLE if self.members else EMPTY, value.current_state_timestamp
        self.topics = self.subscribed()

    # Descriptions

    def described(self) -> Any:
        """The entry of DescribeGroups."""
        group = messages.DescribeGroupsResponse.DescribedGroup
        stable = self.state == STABLE
        name = self.protocol or ""
        return group(
            group_id=self.name,
            group_state=self.state,
            protocol_type=self.protocol_type or "",
            protocol_data=name if stable else "",
            members=[
                messages.DescribeGroupsResponse.DescribedGroupMember(
                    member_id=m.id,
                    group_instance_id=m.instance,
                    client_id=m.client.id,
                    client_host=m.client.host,
                    member_metadata=m.protocols.get(name, b"") if stable else b"",
                    member_assignment=m.assignment,
                )
                for m in self.members.values()
            ],
        )
