"""The requests of members of classic groups."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from kafkacodec import messages
from kafkacodec.broker.state.classic import joined_error
from kafkacodec.broker.state.consumers.calls import ConsumerCalls
from kafkacodec.broker.state.consumers.group import ConsumerGroup
from kafkacodec.broker.state.consumers.member import ConsumerMember
from kafkacodec.broker.state.groups import AnyGroup, Groups
from kafkacodec.broker.state.machine import Client, Handler
from kafkacodec.broker.state.sharing.group import ShareGroup
from kafkacodec.broker.state.streams.group import StreamsGroup
from kafkacodec.errors import (
    FENCED_INSTANCE_ID,
    INCONSISTENT_GROUP_PROTOCOL,
    INVALID_GROUP_ID,
    INVALID_SESSION_TIMEOUT,
    NONE,
    UNKNOWN_MEMBER_ID,
)
from kafkacodec.messages import keys

__all__ = ["ClassicCalls"]

_CONVERTIBLE = ConsumerGroup, StreamsGroup
"""Kinds of groups that become classic ones when they are empty."""

_OTHERS = ShareGroup, StreamsGroup
"""Kinds of groups without members of the classic protocol."""


def _is_other(group: AnyGroup | None) -> bool:
    """Whether members of the classic protocol cannot join a group, even if it is empty."""
    return isinstance(group, ShareGroup) or (isinstance(group, StreamsGroup) and not group.idle)


class ClassicCalls:
    """JoinGroup, SyncGroup, Heartbeat and LeaveGroup.

    Args:
        groups: all groups.
        consumers: the calls of the consumer protocol.
    """

    def __init__(self, groups: Groups, consumers: ConsumerCalls) -> None:
        self._groups, self._remove, self._mixed = groups, consumers.remove, consumers.mixed
        self.handlers: dict[int, Handler] = {
            keys.JOIN_GROUP: self._join,
            keys.SYNC_GROUP: self._sync,
            keys.HEARTBEAT: self._heartbeat,
            keys.LEAVE_GROUP: self._leave,
        }

    def _join(self, request: Any, version: int, client: Client, to: Any) -> None:
        if version == 0:  # there was one time-out
            request.rebalance_timeout_ms = request.session_timeout_ms
        self._groups.run(request.group_id, partial(self._join_now, request, version, client, to))

    def _join_now(self, request: Any, version: int, client: Client, to: Any) -> None:
        options = self._groups.options
        group = self._groups.find(request.group_id)
        code = NONE
        if not request.group_id:
            code = INVALID_GROUP_ID
        elif not (
            options.group_min_session_timeout_ms <= request.session_timeout_ms <= options.group_max_session_timeout_ms
        ):
            code = INVALID_SESSION_TIMEOUT
        elif request.member_id and (group is None or (isinstance(group, _CONVERTIBLE) and group.idle)):
            code = UNKNOWN_MEMBER_ID
        elif not request.protocol_type or not request.protocols or _is_other(group):
            code = INCONSISTENT_GROUP_PROTOCOL

        def join(failed: int) -> None:
            if failed:
                member_id = "" if _is_other(group) else request.member_id
                self._groups.reply(to, joined_error(failed, member_id, version))
            else:
                self._groups.classic(request.group_id).join(request, version, client, to)

        if not code and isinstance(group, ConsumerGroup) and group.members:
            self._mixed.join(group, request, version, client, to)
        elif not code and isinstance(group, _CONVERTIBLE):  # an empty one becomes classic
            group.room.write(group.tombstones(), join)
        else:
            join(code)

    def _sync(self, request: Any, version: int, client: Client, to: Any) -> None:
        def job() -> None:
            group = self._groups.find(request.group_id)
            code = NONE
            if version >= 5 and (request.protocol_type is None or request.protocol_name is None):
                code = INCONSISTENT_GROUP_PROTOCOL
            elif not request.group_id:
                code = INVALID_GROUP_ID
            elif group is None or isinstance(group, _OTHERS):
                code = UNKNOWN_MEMBER_ID
            if code or group is None or isinstance(group, _OTHERS):
                self._groups.reply(to, messages.SyncGroupResponse(error_code=code))
            elif isinstance(group, ConsumerGroup):
                self._mixed.sync(group, request, to)
            else:
                group.sync(request, to)

        self._groups.run(request.group_id, job)

    def _heartbeat(self, request: Any, version: int, client: Client, to: Any) -> None:
        def job() -> None:
            group = self._groups.find(request.group_id)
            if group is None or isinstance(group, _OTHERS):
                code = UNKNOWN_MEMBER_ID if request.group_id else INVALID_GROUP_ID
            elif isinstance(group, ConsumerGroup):
                code = self._mixed.heartbeat(group, request)
            else:
                code = group.heartbeat(request.member_id, request.group_instance_id, request.generation_id)
            self._groups.reply(to, messages.HeartbeatResponse(error_code=code))

        self._groups.run(request.group_id, job)

    def _leave(self, request: Any, version: int, client: Client, to: Any) -> None:
        leaving: list[tuple[str, str | None]] = [(request.member_id, None)]
        if version > 2:
            leaving = [(member.member_id, member.group_instance_id) for member in request.members]

        def answer(codes: list[int]) -> None:
            response = messages.LeaveGroupResponse
            if version < 3:
                self._groups.reply(to, response(error_code=codes[0]))
                return
            rows = [
                response.MemberResponse(member_id=member, group_instance_id=instance, error_code=code)
                for (member, instance), code in zip(leaving, codes, strict=True)
            ]
            self._groups.reply(to, response(members=rows))

        def job() -> None:
            group = self._groups.find(request.group_id)
            if not request.group_id:
                self._groups.reply(to, messages.LeaveGroupResponse(error_code=INVALID_GROUP_ID))
            elif isinstance(group, ConsumerGroup):
                self._leave_consumers(group, leaving, answer)
            elif group is None or isinstance(group, _OTHERS):
                answer([UNKNOWN_MEMBER_ID] * len(leaving))
            else:
                codes = [group.leave(member_id, instance) for member_id, instance in leaving]
                group.settle(left=NONE in codes)
                answer(codes)

        self._groups.run(request.group_id, job)

    def _leave_consumers(
        self, group: ConsumerGroup, leaving: list[tuple[str, str | None]], answer: Callable[[list[int]], None]
    ) -> None:
        """Members of the newer protocol leave with this call as well."""
        gone: dict[str, ConsumerMember] = {}
        codes: list[int] = []
        for member_id, instance in leaving:
            member = group.members.get(member_id) if instance is None else group.static(instance)
            if member is None or member.id in gone:
                codes.append(UNKNOWN_MEMBER_ID)
            elif member_id and member.id != member_id:
                codes.append(FENCED_INSTANCE_ID)
            else:
                gone[member.id] = member
                codes.append(NONE)

        def written(failed: int) -> None:
            answer([failed or code for code in codes])

        if gone:
            self._remove(group, list(gone.values()), written)
        else:
            written(NONE)
