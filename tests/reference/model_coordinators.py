"""Coordinators of one group, classic and KIP-848, after the KIPs and the states of Kafka's coordinator.

`handle` takes a request under a token; responses are put into `ready` by token, some of them much later: JoinGroup
waits for the other members, SyncGroup for the leader.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from kafkacodec import messages
from kafkacodec.errors import FENCED_MEMBER_EPOCH, MEMBER_ID_REQUIRED, REBALANCE_IN_PROGRESS, UNKNOWN_MEMBER_ID


@dataclass
class _Member:
    protocols: dict[str, bytes] = field(default_factory=dict)
    instance: str | None = None
    joining: int | None = None  # the token of a JoinGroup that waits
    syncing: int | None = None
    assignment: bytes = b""


class ClassicCoordinator:
    """JoinGroup, SyncGroup, Heartbeat and LeaveGroup of a classic group."""

    def __init__(self) -> None:
        self.ready: dict[int, Any] = {}
        self.members: dict[str, _Member] = {}
        self.generation = 0
        self.state = "Empty"
        self.leader = ""
        self._protocol = ""
        self._promised: set[str] = set()
        self._numbers = count(1)

    def handle(self, message: Any, token: int) -> None:
        """Take a request."""
        handlers: dict[str, Callable[[Any, int], Any]] = {
            "JoinGroupRequest": self._join,
            "SyncGroupRequest": self._sync,
            "HeartbeatRequest": self._heartbeat,
            "LeaveGroupRequest": self._leave,
        }
        response = handlers[type(message).__name__](message, token)
        if response is not None:
            self.ready[token] = response

    def knows(self, member_id: str) -> bool:
        """Whether it is a member."""
        return member_id in self.members

    def join_without_end(self) -> None:
        """A member makes the group rebalance, and never joins itself."""
        self.members["late"] = _Member()
        self._rebalance()

    def expire(self, member_id: str) -> None:
        """No heartbeat, or no JoinGroup, came from a member in time."""
        gone = self.members.pop(member_id, None)
        if gone is not None:
            if gone.joining is not None:
                self.ready[gone.joining] = messages.JoinGroupResponse(error_code=UNKNOWN_MEMBER_ID)
            if gone.syncing is not None:
                self.ready[gone.syncing] = messages.SyncGroupResponse(error_code=UNKNOWN_MEMBER_ID)
            self._rebalance()

    def _join(self, request: Any, token: int) -> Any:
        response = messages.JoinGroupResponse
        if not request.member_id:
            member_id = f"member-{next(self._numbers)}"
            self._promised.add(member_id)
            return response(error_code=MEMBER_ID_REQUIRED, member_id=member_id)
        known = self.members.get(request.member_id)
        if known is None and request.member_id not in self._promised:
            return response(error_code=UNKNOWN_MEMBER_ID)
        self._promised.discard(request.member_id)
        protocols = {entry.name: bytes(entry.metadata) for entry in request.protocols}
        follows = known is not None and request.member_id != self.leader
        if follows and self.state == "Stable" and known.protocols == protocols:
            return self._joined(request.member_id)
        member = self.members.setdefault(request.member_id, _Member())
        member.protocols, member.joining = protocols, token
        if self.state != "Preparing":
            self._rebalance()
        self._complete()
        return None

    def _rebalance(self) -> None:
        self.state = "Preparing"
        for member in self.members.values():
            if member.syncing is not None:
                self.ready[member.syncing] = messages.SyncGroupResponse(error_code=REBALANCE_IN_PROGRESS)
                member.syncing = None
        self._complete()

    def _complete(self) -> None:
        """All members have joined: a new generation."""
        if not self.members:
            self.state = "Empty"
        if self.state != "Preparing" or any(member.joining is None for member in self.members.values()):
            return
        self.generation += 1
        self.state = "Completing"
        if self.leader not in self.members:
            self.leader = next(iter(self.members))
        common = set.intersection(*(set(member.protocols) for member in self.members.values()))
        self._protocol = next(name for name in self.members[self.leader].protocols if name in common)
        for member_id, member in self.members.items():
            member.assignment = b""
            assert member.joining is not None
            self.ready[member.joining] = self._joined(member_id)
            member.joining = None

    def _joined(self, member_id: str) -> Any:
        response = messages.JoinGroupResponse
        entries = [
            response.JoinGroupResponseMember(member_id=name, metadata=member.protocols[self._protocol])
            for name, member in self.members.items()
        ]
        return response(
            generation_id=self.generation,
            protocol_type="consumer",
            protocol_name=self._protocol,
            leader=self.leader,
            member_id=member_id,
            members=entries if member_id == self.leader else [],
        )

    def _refusal(self, member_id: str, generation: int) -> int:
        if member_id not in self.members:
            return 25
        return 22 if generation != self.generation else 0

    def _sync(self, request: Any, token: int) -> Any:
        response = messages.SyncGroupResponse
        code = self._refusal(request.member_id, request.generation_id)
        if code or self.state == "Preparing":
            return response(error_code=code or 27)
        if self.state == "Stable":
            return response(assignment=self.members[request.member_id].assignment)
        self.members[request.member_id].syncing = token
        if request.member_id == self.leader:
            for entry in request.assignments:
                self.members[entry.member_id].assignment = bytes(entry.assignment)
            self.state = "Stable"
            for member in self.members.values():
                if member.syncing is not None:
                    self.ready[member.syncing] = response(assignment=member.assignment)
                    member.syncing = None
        return None

    def _heartbeat(self, request: Any, token: int) -> Any:
        code = self._refusal(request.member_id, request.generation_id)
        return messages.HeartbeatResponse(error_code=code or (27 if self.state == "Preparing" else 0))

    def _leave(self, request: Any, token: int) -> Any:
        for entry in request.members:
            self.expire(entry.member_id)
        return messages.LeaveGroupResponse()


@dataclass
class _Reconciled:
    epoch: int = 0
    previous: int = -1
    topics: list[str] = field(default_factory=list)
    assigned: set[tuple[uuid.UUID, int]] = field(default_factory=set)
    revoking: set[tuple[uuid.UUID, int]] = field(default_factory=set)


class ModernCoordinator:
    """ConsumerGroupHeartbeat of a KIP-848 group. `topics` has the id and the number of partitions of each topic."""

    def __init__(self, topics: dict[str, tuple[uuid.UUID, int]]) -> None:
        self.ready: dict[int, Any] = {}
        self.topics = topics
        self.members: dict[str, _Reconciled] = {}
        self.epoch = 0

    def knows(self, member_id: str) -> bool:
        """Whether it is a member."""
        return member_id in self.members

    def expire(self, member_id: str) -> None:
        """No heartbeat came from a member in time."""
        if self.members.pop(member_id, None) is not None:
            self.epoch += 1

    def changed(self) -> None:
        """A topic has more partitions."""
        self.epoch += 1

    def handle(self, message: Any, token: int) -> None:
        """Take a request."""
        self.ready[token] = self._heartbeat(message)

    def _heartbeat(self, request: Any) -> Any:
        response = messages.ConsumerGroupHeartbeatResponse
        if request.member_epoch < 0:
            self.expire(request.member_id)
            return response(member_id=request.member_id, member_epoch=request.member_epoch)
        member = self.members.get(request.member_id)
        if request.member_epoch == 0:
            member = self.members[request.member_id] = _Reconciled()
            self.epoch += 1
        elif member is None:
            return response(error_code=UNKNOWN_MEMBER_ID)
        elif request.member_epoch != member.epoch:
            owned = _places(request.topic_partitions)
            if request.member_epoch != member.previous or owned is None or not owned <= member.assigned:
                return response(error_code=FENCED_MEMBER_EPOCH)
        if request.subscribed_topic_names is not None and member.topics != request.subscribed_topic_names:
            member.topics = list(request.subscribed_topic_names)
            self.epoch += 1
        before = set(member.assigned)
        self._reconcile(request.member_id, member, _places(request.topic_partitions))
        full = request.subscribed_topic_names is not None
        found = response(member_id=request.member_id, member_epoch=member.epoch, heartbeat_interval_ms=500)
        if full or member.assigned != before:
            entry = response.TopicPartitions
            ids = sorted({topic for topic, _ in member.assigned}, key=str)
            found.assignment = response.Assignment(
                topic_partitions=[
                    entry(topic_id=i, partitions=sorted(n for topic, n in member.assigned if topic == i)) for i in ids
                ]
            )
        return found

    def _reconcile(self, member_id: str, member: _Reconciled, owned: set[tuple[uuid.UUID, int]] | None) -> None:
        target = self._targets()[member_id]
        if owned is not None and owned <= member.assigned:
            member.revoking = set()
        if not member.revoking and member.assigned - target:
            member.revoking = member.assigned - target
            member.assigned &= target
        if not member.revoking:
            if member.epoch != self.epoch:
                member.previous, member.epoch = member.epoch, self.epoch
            others = [m for name, m in self.members.items() if name != member_id]
            taken = set().union(*(m.assigned | m.revoking for m in others)) if others else set()
            member.assigned |= target - taken

    def _targets(self) -> dict[str, set[tuple[uuid.UUID, int]]]:
        targets: dict[str, set[tuple[uuid.UUID, int]]] = {name: set() for name in self.members}
        for topic, (topic_id, partitions) in sorted(self.topics.items()):
            wanting = [name for name, member in self.members.items() if topic in member.topics]
            for number in range(partitions if wanting else 0):
                targets[wanting[number % len(wanting)]].add((topic_id, number))
        return targets


def _places(owned: Any) -> set[tuple[uuid.UUID, int]] | None:
    return None if owned is None else {(topic.topic_id, number) for topic in owned for number in topic.partitions}
