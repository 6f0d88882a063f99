"""The requests of share groups: ShareGroupHeartbeat and ShareGroupDescribe (KIP-932)."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import partial
from typing import Any

from kafkacodec import messages
from kafkacodec.broker.state.groups import Groups
from kafkacodec.broker.state.heartbeats import HeartbeatCalls
from kafkacodec.broker.state.machine import Client, Handler, Room
from kafkacodec.broker.state.sharing.group import ShareGroup, ShareMember
from kafkacodec.broker.state.sharing.starts import ShareStarts
from kafkacodec.datatypes import replace
from kafkacodec.errors import (
    FENCED_MEMBER_EPOCH,
    GROUP_ID_NOT_FOUND,
    GROUP_MAX_SIZE_REACHED,
    INVALID_GROUP_ID,
    INVALID_REQUEST,
    NONE,
    UNKNOWN_MEMBER_ID,
    UNSUPPORTED_VERSION,
    error,
)
from kafkacodec.messages import keys

__all__ = ["LONGEST_ID", "ShareCalls"]

LONGEST_ID = 36
"""The most characters in the id of a member: those of a UUID."""

_LEAVES = -1


class ShareCalls(HeartbeatCalls[ShareGroup, ShareMember]):
    """The requests.

    Args:
        groups: all groups.
        starts: the states of their partitions.
        enabled: whether the cluster's features have share groups.
    """

    session = "share.session.timeout.ms"

    def __init__(self, groups: Groups, starts: ShareStarts, enabled: Callable[[], bool]) -> None:
        super().__init__(groups, ShareGroup, lambda group, members: group.left(*members))
        self._starts, self._enabled = starts, enabled
        self.handlers: dict[int, Handler] = {
            keys.SHARE_GROUP_HEARTBEAT: self._heartbeat,
            keys.SHARE_GROUP_DESCRIBE: self._describe,
        }

    def start(self) -> None:
        """Expect a sign of life from every member, and continue pending work, after loading."""
        super().start()
        for group in list(self._groups.groups.values()):
            if isinstance(group, ShareGroup) and group.deleting:
                self._starts.delete_of(group, group.deleting, lambda codes: None)

    # ShareGroupHeartbeat

    def _heartbeat(self, request: Any, version: int, client: Client, to: Any) -> None:
        code = _invalid(request) if self._enabled() else UNSUPPORTED_VERSION
        if code:
            self._refuse(to, code, said=0 < len(request.member_id) <= LONGEST_ID and code == INVALID_REQUEST)
        else:
            self._groups.run(request.group_id, partial(self._heartbeat_now, request, client, to))

    def _refuse(self, to: Any, code: int, *, said: bool = True) -> None:
        text = f"the heartbeat is refused: {error(code).__name__}" if said else None
        self._groups.reply(to, messages.ShareGroupHeartbeatResponse(error_code=code, error_message=text))

    def _heartbeat_now(self, request: Any, client: Client, to: Any) -> None:
        found = self._groups.find(request.group_id)
        if found is None and request.member_epoch == 0:
            found = ShareGroup(Room(self._groups, request.group_id), self._groups.topics)
        if not isinstance(found, ShareGroup):
            self._refuse(to, GROUP_ID_NOT_FOUND)
            return
        member = found.members.get(request.member_id)
        code = self._member_refusal(found, member, request.member_epoch)
        if code:
            self._refuse(to, code)
        elif request.member_epoch == _LEAVES:
            self._leave(found, member, to)
        else:
            self._go_on(found, _told(member or ShareMember(request.member_id), request, client), request, to)

    def _member_refusal(self, group: ShareGroup, member: ShareMember | None, epoch: int) -> int:
        if member is None:
            if epoch:
                return UNKNOWN_MEMBER_ID
            full = len(group.members) >= self._groups.options.group_share_max_size
            return GROUP_MAX_SIZE_REACHED if full else NONE
        known = epoch in (0, _LEAVES, member.epoch, member.previous_epoch)
        return NONE if known else FENCED_MEMBER_EPOCH

    def _go_on(self, group: ShareGroup, told: ShareMember, request: Any, to: Any) -> None:
        had = told.assigned
        member, records = group.joined(told, self._groups.setting(group.name, "share.assignment.interval.ms"))

        def written(code: int) -> None:
            if code:
                self._refuse(to, code)
                return
            self._watch(group, member)
            full = request.member_epoch == 0 or request.subscribed_topic_names is not None
            self._groups.reply(to, self._answer(group.name, member, full or member.assigned != had))
            now = self._groups.find(group.name)
            if isinstance(now, ShareGroup):
                self._starts.initialize(now)

        group.room.write(records, written)

    def _answer(self, group: str, member: ShareMember, with_assignment: bool) -> Any:
        response = messages.ShareGroupHeartbeatResponse
        answer = response(
            member_id=member.id, member_epoch=member.epoch,
            heartbeat_interval_ms=self._groups.setting(group, "share.heartbeat.interval.ms"),
        )  # fmt: skip
        if with_assignment:
            rows: dict[uuid.UUID, list[int]] = {}
            for topic_id, number in sorted(member.assigned):
                rows.setdefault(topic_id, []).append(number)
            made = response.TopicPartitions
            parts = [made(topic_id=topic_id, partitions=numbers) for topic_id, numbers in rows.items()]
            answer.assignment = response.Assignment(topic_partitions=parts)
        return answer

    def _leave(self, group: ShareGroup, member: ShareMember | None, to: Any) -> None:
        assert member is not None
        answer = messages.ShareGroupHeartbeatResponse(member_id=member.id, member_epoch=_LEAVES)

        def written(code: int) -> None:
            if code:
                self._refuse(to, code)
            else:
                self._groups.reply(to, answer)

        self.remove(group, [member], written)

    # ShareGroupDescribe

    def _describe(self, request: Any, version: int, client: Client, to: Any) -> None:
        response = messages.ShareGroupDescribeResponse
        enabled = self._enabled()
        rows = []
        for name in request.group_ids:
            group = self._groups.find(name)
            if enabled and isinstance(group, ShareGroup):
                rows.append(group.described())
                continue
            row = response.DescribedGroup(group_id=name, error_code=UNSUPPORTED_VERSION)
            if enabled:
                row.error_code = GROUP_ID_NOT_FOUND if name else INVALID_GROUP_ID
                row.error_message = f"Group {name} not found." if name else None
            rows.append(row)
        self._groups.reply(to, response(groups=rows))


def _invalid(request: Any) -> int:
    """Return the error of an invalid heartbeat, regardless of the group; 0 if it is valid."""
    joins = request.member_epoch == 0
    wrong = (
        not request.group_id.strip()
        or not 0 < len(request.member_id) <= LONGEST_ID
        or request.rack_id == ""
        or request.member_epoch < _LEAVES
        or (joins and not request.subscribed_topic_names)
    )
    return INVALID_REQUEST if wrong else NONE


def _told(member: ShareMember, request: Any, client: Client) -> ShareMember:
    """Return a member with the fields of its heartbeat; null changes nothing."""
    said: dict[str, Any] = {"client_id": client.id, "client_host": client.host}
    if request.subscribed_topic_names is not None:
        said["topics"] = tuple(request.subscribed_topic_names)
    if request.rack_id is not None:
        said["rack"] = request.rack_id
    return replace(member, **said)
