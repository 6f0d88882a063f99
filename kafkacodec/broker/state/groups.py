"""The group coordinator: which group a request is for, of which kind it is, and what all kinds share."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from kafkacodec import messages
from kafkacodec.broker.state.classic import ClassicGroup, joined_error
from kafkacodec.broker.state.machine import Client, Machine, Room
from kafkacodec.broker.state.members import EMPTY
from kafkacodec.broker.state.options import GroupOptions
from kafkacodec.errors import (
    GROUP_ID_NOT_FOUND,
    INCONSISTENT_GROUP_PROTOCOL,
    INVALID_GROUP_ID,
    INVALID_SESSION_TIMEOUT,
    NON_EMPTY_GROUP,
    NONE,
    UNKNOWN_MEMBER_ID,
)
from kafkacodec.internal_records import CONSUMER_OFFSETS
from kafkacodec.messages import keys
from kafkacodec.messages.stored import StoredRecord
from kafkacodec.net.service import Effect

__all__ = ["GroupCoordinator"]

Handler = Callable[[Any, int, Client, Any], None]


class GroupCoordinator(Machine):
    """The groups of a cluster, as a machine over ``__consumer_offsets``.

    Args:
        partitions: the number of partitions of ``__consumer_offsets``.
        options: see `GroupOptions`.
        new_id: makes the ids of members.
    """

    topic: ClassVar[str] = CONSUMER_OFFSETS

    def __init__(
        self,
        partitions: int = 50,
        options: GroupOptions | None = None,
        *,
        new_id: Callable[[], uuid.UUID] = uuid.uuid4,
    ) -> None:
        super().__init__(partitions)
        self.options = options or GroupOptions()
        self.groups: dict[str, ClassicGroup] = {}
        self._new_id = new_id
        self.handlers: dict[int, Handler] = {
            keys.JOIN_GROUP: self._join,
            keys.SYNC_GROUP: self._sync,
            keys.HEARTBEAT: self._heartbeat,
            keys.LEAVE_GROUP: self._leave,
            keys.DESCRIBE_GROUPS: self._describe,
            keys.LIST_GROUPS: self._list,
            keys.DELETE_GROUPS: self._delete,
        }
        self._changes: dict[str, Callable[[Any, Any, int], None]] = {"GroupMetadataKey": self._on_classic}

    def receive(self, request: Any, version: int, client: Client, to: Any, now: float) -> Effect:
        """Take a request of one of the APIs in `handlers`.

        Args:
            request: the decoded message.
            version: its version; the response is for the same.
            client: who sent it.
            to: given back with the response.
            now: the time.
        """
        self._at(now)
        self.handlers[request.api_key](request, version, client, to)
        return self._effect()

    def apply(self, key: Any, value: Any, producer_id: int) -> None:
        """Change the state as a record says; records of other types change nothing."""
        change = self._changes.get(type(key).__name__)
        if change is not None:
            change(key, value, producer_id)

    def start(self) -> None:
        """Members that were loaded have to be heard from again."""
        for group in self.groups.values():
            group.start()

    def _on_classic(self, key: Any, value: Any, _producer_id: int) -> None:
        if value is None or self.loading:
            self.groups.pop(key.group, None)
            self.cancel_timers(key.group)
        if value is not None:
            self.classic(key.group).restore(value)

    def classic(self, name: str) -> ClassicGroup:
        """The classic group of this name, which is made if there is none."""
        group = self.groups.get(name)
        if group is None:
            group = self.groups[name] = ClassicGroup(Room(self, name), self.options, self._new_id)
        return group

    # Classic groups

    def _join(self, request: Any, version: int, client: Client, to: Any) -> None:
        def job() -> None:
            group = self.groups.get(request.group_id)
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
                self.reply(to, joined_error(code, request.member_id, version))
            else:
                self.classic(request.group_id).join(request, version, client, to)

        shortest = self.options.group_min_session_timeout_ms
        longest = self.options.group_max_session_timeout_ms
        self.run(request.group_id, job)

    def _sync(self, request: Any, version: int, client: Client, to: Any) -> None:
        def job() -> None:
            group = self.groups.get(request.group_id)
            code = NONE
            if version >= 5 and (request.protocol_type is None or request.protocol_name is None):
                code = INCONSISTENT_GROUP_PROTOCOL
            elif not request.group_id:
                code = INVALID_GROUP_ID
            elif group is None:
                code = UNKNOWN_MEMBER_ID
            if code or group is None:
                self.reply(to, messages.SyncGroupResponse(error_code=code))
            else:
                group.sync(request, to)

        self.run(request.group_id, job)

    def _heartbeat(self, request: Any, version: int, client: Client, to: Any) -> None:
        def job() -> None:
            group = self.groups.get(request.group_id)
            if group is None:
                code = UNKNOWN_MEMBER_ID if request.group_id else INVALID_GROUP_ID
            else:
                code = group.heartbeat(request.member_id, request.group_instance_id, request.generation_id)
            self.reply(to, messages.HeartbeatResponse(error_code=code))

        self.run(request.group_id, job)

    def _leave(self, request: Any, version: int, client: Client, to: Any) -> None:
        def job() -> None:
            group = self.groups.get(request.group_id)
            if not request.group_id:
                self.reply(to, response(error_code=INVALID_GROUP_ID))
                return
            rows = []
            before = len(group.members) if group is not None else 0
            for member_id, instance in leaving:
                code = UNKNOWN_MEMBER_ID if group is None else group.leave(member_id, instance)
                rows.append(response.MemberResponse(member_id=member_id, group_instance_id=instance, error_code=code))
            if group is not None:
                group.settle(left=len(group.members) < before)
            answer = response(members=rows) if version > 2 else response(error_code=rows[0].error_code)
            self.reply(to, answer)

        response = messages.LeaveGroupResponse
        leaving = [(request.member_id, None)]
        if version > 2:
            leaving = [(member.member_id, member.group_instance_id) for member in request.members]
        self.run(request.group_id, job)

    # All kinds

    def _describe(self, request: Any, version: int, client: Client, to: Any) -> None:
        response = messages.DescribeGroupsResponse
        rows = []
        for name in request.groups:
            group = self.groups.get(name)
            if group is not None:
                rows.append(group.described())
                continue
            row = response.DescribedGroup(group_id=name, group_state="Dead")
            if version > 5:
                row.error_code, row.error_message = GROUP_ID_NOT_FOUND, f"Group {name} not found."
            rows.append(row)
        self.reply(to, response(groups=rows))

    def _list(self, request: Any, version: int, client: Client, to: Any) -> None:
        response = messages.ListGroupsResponse
        states = {state.lower() for state in request.states_filter}
        types = {kind.lower() for kind in request.types_filter}
        rows = [
            response.ListedGroup(
                group_id=name, protocol_type=group.protocol_type or "", group_state=group.state, group_type="classic"
            )
            for name, group in sorted(self.groups.items())
            if (not states or group.state.lower() in states) and (not types or "classic" in types)
        ]
        self.reply(to, response(groups=rows))

    def _delete(self, request: Any, version: int, client: Client, to: Any) -> None:
        response = messages.DeleteGroupsResponse
        names = list(dict.fromkeys(request.groups_names))
        codes: dict[str, int] = {}

        def done(name: str, code: int) -> None:
            codes[name] = code
            if len(codes) == len(names):
                rows = [response.DeletableGroupResult(group_id=each, error_code=codes[each]) for each in names]
                self.reply(to, response(results=rows))

        if not names:
            self.reply(to, response())
        for name in names:
            self.run(name, partial(self._delete_one, name, partial(done, name)))

    def _delete_one(self, name: str, done: Callable[[int], None]) -> None:
        group = self.groups.get(name)
        if group is None:
            done(GROUP_ID_NOT_FOUND if name else INVALID_GROUP_ID)
        elif group.state != EMPTY:
            done(NON_EMPTY_GROUP)
        else:
            group.room.write(self.tombstones(name), done)

    def tombstones(self, name: str) -> list[StoredRecord]:
        """The records that remove a group and its offsets."""
        return [StoredRecord(messages.GroupMetadataKey(group=name), None, None)]
