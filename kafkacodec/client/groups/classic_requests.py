"""The requests of a member of a classic group, for the versions of its coordinator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from kafkacodec import messages
from kafkacodec.client.core.calls import Prepare, Versions
from kafkacodec.client.groups.membership import GroupMetadata, GroupSettings
from kafkacodec.errors import UnsupportedVersion
from kafkacodec.messages.keys import HEARTBEAT, JOIN_GROUP, LEAVE_GROUP, SYNC_GROUP
from kafkacodec.protocol.versions import highest_common

__all__ = ["heartbeat", "join", "leave", "sync"]

PROTOCOL_TYPE: Final = "consumer"
# The first versions with static members.
_STATIC: Final = {JOIN_GROUP: 5, HEARTBEAT: 3, LEAVE_GROUP: 3, SYNC_GROUP: 3}
_MOST_SESSION_MS_IN_0_9: Final = 30_000  # group.max.session.timeout.ms there; version 0 of JoinGroup


def join(settings: GroupSettings, member_id: str, protocols: Mapping[str, bytes], reason: str) -> Prepare:
    """JoinGroup with the subscription for each assignor. Kafka 0.9 gets the longest session timeout that it takes."""
    kind = messages.JoinGroupRequest
    entry = kind.JoinGroupRequestProtocol
    request = kind(
        group_id=settings.group_id,
        session_timeout_ms=int(settings.session_timeout_ms),
        rebalance_timeout_ms=int(settings.max_poll_interval_ms),
        member_id=member_id,
        group_instance_id=settings.group_instance_id,
        protocol_type=PROTOCOL_TYPE,
        protocols=[entry(name=name, metadata=metadata) for name, metadata in protocols.items()],
        reason=reason[:255],
    )

    def made(version: int) -> Any:
        if version == 0:
            request.session_timeout_ms = min(request.session_timeout_ms, _MOST_SESSION_MS_IN_0_9)
        return request

    return _prepare(JOIN_GROUP, settings.group_instance_id, made)


def sync(member: GroupMetadata, protocol: str, assignments: Mapping[str, bytes]) -> Prepare:
    """SyncGroup; only the leader has assignments."""
    kind = messages.SyncGroupRequest
    entry = kind.SyncGroupRequestAssignment
    request = kind(
        group_id=member.group_id,
        generation_id=member.generation,
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=protocol,
        assignments=[entry(member_id=name, assignment=assignment) for name, assignment in assignments.items()],
    )
    return _prepare(SYNC_GROUP, member.group_instance_id, lambda _: request)


def heartbeat(member: GroupMetadata) -> Prepare:
    """Heartbeat."""
    request = messages.HeartbeatRequest(
        group_id=member.group_id,
        generation_id=member.generation,
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
    )
    return _prepare(HEARTBEAT, member.group_instance_id, lambda _: request)


def leave(member: GroupMetadata, reason: str) -> Prepare:
    """LeaveGroup of one member."""
    kind = messages.LeaveGroupRequest

    def request(version: int) -> Any:
        if version < _STATIC[LEAVE_GROUP]:
            return kind(group_id=member.group_id, member_id=member.member_id)
        entry = kind.MemberIdentity(member_id=member.member_id, reason=reason[:255])
        entry.group_instance_id = member.group_instance_id
        return kind(group_id=member.group_id, members=[entry])

    return _prepare(LEAVE_GROUP, member.group_instance_id, request)


def _prepare(api_key: int, instance: str | None, request: Callable[[int], Any]) -> Prepare:
    def prepare(versions: Versions) -> tuple[Any, int]:
        version = highest_common(api_key, versions)
        if instance is not None and version < _STATIC[api_key]:
            raise UnsupportedVersion("the broker has no static members: leave group_instance_id out")
        return request(version), version

    return prepare
