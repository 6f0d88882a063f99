"""One of the servers that share the groups, without I/O: calls in; replies, and calls to other servers out.

Each group has one controller, which all servers compute from its name. Every server answers ListGroups, CreateGroup and
DeleteGroup by forwarding them to the controllers. Only the controller answers calls of members.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final
from zlib import crc32

from kafkacodec.datatypes import NamedTuple, dataclass, field
from kafkacodec.dialects.rewrite.controller import GroupController, Reply
from kafkacodec.dialects.rewrite.frames import Request
from kafkacodec.dialects.rewrite.rpcs import (
    CreateEphemeralGroup,
    CreateGroup,
    DeleteGroup,
    DeleteGroupResponse,
    ErrorCode,
    Heartbeat,
    ListGroups,
    ListGroupsResponse,
    Rpc,
    echoed,
    refusal,
)

__all__ = ["Ask", "Done", "GroupServer"]


class Ask(NamedTuple):
    """A call to another server; its reply, or None, goes to `GroupServer.answered` with the token."""

    token: int
    server: int
    call: Rpc


class Done(NamedTuple):
    """The result of a call."""

    replies: list[Reply]
    asks: list[Ask]


@dataclass(eq=False, slots=True)
class _Gathered:
    """The replies of several servers, which are answered as one."""

    connection: Hashable
    call: Any
    waiting: int
    replies: list[Any] = field(default_factory=list)


class GroupServer:
    """A server, the controller of some groups.

    Args:
        controller: has its groups.
        server: its id.
        servers: the ids of all servers, in the common order.
    """

    def __init__(self, controller: GroupController, server: int, servers: Sequence[int]) -> None:
        self.controller = controller
        self._id, self._servers = server, list(servers)
        self._asked: dict[int, _Gathered] = {}
        self._last_token = 0

    def controller_of(self, group: str) -> int:
        """Return the id of a group's controller."""
        return self._servers[crc32(group.encode()) % len(self._servers)]

    def receive(self, request: Request, now: int, connection: Hashable) -> Done:
        """Take a call. Its reply is in this or a later result, or in one of `answered`.

        Raises:
            LocalProtocolError: as `GroupController.receive`.
        """
        call: Any = request.call
        if type(call) in _SHARED and not request.passed_on:
            parts = _SHARED[type(call)](self, call)
            if list(parts) != [self._id]:
                return self._gather(call, parts, now, connection)
        elif self._is_elsewhere(call):
            return Done([Reply(connection, refusal(call, ErrorCode.NOT_CONTROLLER))], [])
        return Done(self.controller.receive(call, now, connection), [])

    def answered(self, token: int, reply: Rpc | None) -> list[Reply]:
        """Take the reply of another server; None: there is none."""
        gathered = self._asked.pop(token, None)
        return [] if gathered is None else self._gathered(gathered, reply)

    def _is_elsewhere(self, call: Any) -> bool:
        """Whether a call is for one group of another controller.

        A heartbeat does not name its group: it is for another server if its client is not a member here, and there are
            others.
        """
        if isinstance(call, Heartbeat):
            return len(self._servers) > 1 and self.controller.membership(call.client_id) is None
        if isinstance(call, (ListGroups, DeleteGroup)):
            return False
        return self.controller_of(call.consumer_group) != self._id

    def _gather(self, call: Any, parts: dict[int, Any], now: int, connection: Hashable) -> Done:
        gathered = _Gathered(connection, call, len(parts))
        replies: list[Reply] = []
        asks = []
        for server, part in parts.items():
            if server == self._id:
                for reply in self.controller.receive(part, now, gathered):
                    replies += self._gathered(gathered, reply.message) if reply.connection is gathered else [reply]
            else:
                self._last_token += 1
                self._asked[self._last_token] = gathered
                asks.append(Ask(self._last_token, server, part))
        return Done(replies, asks)

    def _gathered(self, gathered: _Gathered, reply: Rpc | None) -> list[Reply]:
        gathered.waiting -= 1
        gathered.replies.append(refusal(gathered.call, ErrorCode.CONTROLLER_UNREACHABLE) if reply is None else reply)
        if gathered.waiting:
            return []
        return [Reply(gathered.connection, _MERGING[type(gathered.call)](gathered.call, gathered.replies))]

    # How calls are shared among servers

    def _listed(self, call: Any) -> dict[int, Any]:
        """To the controllers of some groups, or to all servers for all groups."""
        if not call.consumer_groups:
            return dict.fromkeys(self._servers, call)
        return {
            server: ListGroups(version=call.version, client_id=call.client_id, consumer_groups=names)
            for server, names in self._by_server(call.consumer_groups).items()
        }

    def _created(self, call: Any) -> dict[int, Any]:
        return {self.controller_of(call.consumer_group): call}

    def _deleted(self, call: Any) -> dict[int, Any]:
        parts = self._by_server(call.consumer_group) or {self._id: []}
        return {
            server: DeleteGroup(version=call.version, client_id=call.client_id, consumer_group=names)
            for server, names in parts.items()
        }

    def _by_server(self, groups: Sequence[str]) -> dict[int, list[str]]:
        found: dict[int, list[str]] = {}
        for name in dict.fromkeys(groups):
            found.setdefault(self.controller_of(name), []).append(name)
        return found


_SHARED: Final[dict[type[Rpc], Callable[[GroupServer, Any], dict[int, Any]]]] = {
    ListGroups: GroupServer._listed,
    CreateGroup: GroupServer._created,
    CreateEphemeralGroup: GroupServer._created,
    DeleteGroup: GroupServer._deleted,
}


def _merged_list(call: Any, replies: list[Any]) -> Rpc:
    """Return all groups, in the order of the call, or by name."""
    found = {info.group_name: info for reply in replies for info in reply.groups_info}
    names = dict.fromkeys(call.consumer_groups) or sorted(found)
    infos = [found[name] for name in names if name in found]
    answer: Rpc = ListGroupsResponse(**echoed(call), groups_info=infos, error_code=_code(replies))
    return answer


def _merged_deletion(call: Any, replies: list[Any]) -> Rpc:
    deleted = {name for reply in replies for name in reply.deleted_consumer_groups}
    names = [name for name in dict.fromkeys(call.consumer_group) if name in deleted]
    answer: Rpc = DeleteGroupResponse(**echoed(call), deleted_consumer_groups=names, error_code=_code(replies))
    return answer


def _code(replies: list[Any]) -> int:
    """Return the error of several replies: the greatest, so that an unreachable server takes precedence."""
    code: int = max(reply.error_code for reply in replies)
    return code


def _only(call: Any, replies: list[Any]) -> Rpc:
    reply = replies[0]
    reply.correlation_id = call.correlation_id
    found: Rpc = reply
    return found


_MERGING: Final[dict[type[Rpc], Callable[[Any, list[Any]], Rpc]]] = {
    ListGroups: _merged_list,
    CreateGroup: _only,
    CreateEphemeralGroup: _only,
    DeleteGroup: _merged_deletion,
}
