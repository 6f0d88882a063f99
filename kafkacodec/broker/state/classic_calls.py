"""The requests of members of classic groups."""

from __future__ import annotations

from typing import Any

from kafkacodec import messages
from kafkacodec.broker.state.classic import joined_error
from kafkacodec.broker.state.group import Groups
from kafkacodec.broker.state.machine import Client, Handler
from kafkacodec.errors import (
    INCONSISTENT_GROUP_PROTOCOL,
    INVALID_GROUP_ID,
    INVALID_SESSION_TIMEOUT,
    NONE,
    UNKNOWN_MEMBER_ID,
)
from kafkacodec.messages import keys

__all__ = ["ClassicCalls"]


class ClassicCalls:
    """JoinGroup, SyncGroup, Heartbeat and LeaveGroup."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups
        self.handlers: dict[int, Handler] = {
            keys.JOIN_GROUP: self._join,
            keys.SYNC_GROUP: self._sync,
            keys.HEARTBEAT: self._heartbeat,
            keys.LEAVE_GROUP: self._leave,
        }

    def _join(self, request: Any, version: int, client: Client, to: Any) -> None:
        def job() -> None:
            group = self._groups.find(request.group_id)
            code = NONE
            if not request.group_id:
                code = INVALID_GROUP_ID
            elif not shortest <= request.session_timeout_ms <= longest:
                code = INVALID_SESSION_TIMEOUT
            elif group is None and request.member_id:
                code = UNKNOWN_MEMBER_ID
            elif not request.protocol_type or not request.protocols:
                code = INCONSISTENT_GROUP_PROTOCOL
            if code:
                self._groups.reply(to, joined_error(code, request.member_id, version))
            else:
                self._groups.classic(request.group_id).join(request, version, client, to)

        shortest = self._groups.options.group_min_session_timeout_ms
        longest = self._groups.options.group_max_session_timeout_ms
        self._groups.run(request.group_id, job)

    def _sync(self, request: Any, version: int, client: Client, to: Any) -> None:
        def job() -> None:
            group = self._groups.find(request.group_id)
            code = NONE
            if version >= 5 and (request.protocol_type is None or request.protocol_name is None):
                code = INCONSISTENT_GROUP_PROTOCOL
            elif not request.group_id:
                code = INVALID_GROUP_ID
            elif group is None:
                code = UNKNOWN_MEMBER_ID
            if code or group is None:
                self._groups.reply(to, messages.SyncGroupResponse(error_code=code))
            else:
                group.sync(request, to)

        self._groups.run(request.group_id, job)

    def _heartbeat(self, request: Any, version: int, client: Client, to: Any) -> None:
        def job() -> None:
            group = self._groups.find(request.group_id)
            if group is None:
                code = UNKNOWN_MEMBER_ID if request.group_id else INVALID_GROUP_ID
            else:
                code = group.heartbeat(request.member_id, request.group_instance_id, request.generation_id)
            self._groups.reply(to, messages.HeartbeatResponse(error_code=code))

        self._groups.run(request.group_id, job)

    def _leave(self, request: Any, version: int, client: Client, to: Any) -> None:
        def job() -> None:
            group = self._groups.find(request.group_id)
            if not request.group_id:
                self._groups.reply(to, response(error_code=INVALID_GROUP_ID))
                return
            rows = []
            before = len(group.members) if group is not None else 0
            for member_id, instance in leaving:
                code = UNKNOWN_MEMBER_ID if group is None else group.leave(member_id, instance)
                rows.append(response.MemberResponse(member_id=member_id, group_instance_id=instance, error_code=code))
            if group is not None:
                group.settle(left=len(group.members) < before)
            answer = response(members=rows) if version > 2 else response(error_code=rows[0].error_code)
            self._groups.reply(to, answer)

        response = messages.LeaveGroupResponse
        leaving = [(request.member_id, None)]
        if version > 2:
            leaving = [(member.member_id, member.group_instance_id) for member in request.members]
        self._groups.run(request.group_id, job)
