"""The server side of the proposal's membership protocol, without I/O: calls and a clock go in, replies come out.

A change of members or partitions has three steps. Heartbeats are answered with an error. Each member stops, commits
and registers again. When all have registered or have timed out, the partitions are assigned in a new generation, and
all registrations are answered with partitions and offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

from kafkacodec.assignment.dividing import assign_range
from kafkacodec.datatypes import NamedTuple
from kafkacodec.dialects.rewrite.groups import Group, Member, Partition, Rewind, Strategy, Waiting
from kafkacodec.dialects.rewrite.offsets import committed, fetched
from kafkacodec.dialects.rewrite.replies import registered, rewound
from kafkacodec.dialects.rewrite.rpcs import (
    CommitOffsets,
    CreateEphemeralGroup,
    CreateGroup,
    CreateGroupResponse,
    DeleteGroup,
    DeleteGroupResponse,
    ErrorCode,
    FetchOffsets,
    Heartbeat,
    HeartbeatResponse,
    ListGroups,
    ListGroupsResponse,
    RegisterConsumer,
    RewindConsumer,
    Rpc,
    echoed,
    refusal,
)
from kafkacodec.errors import LocalProtocolError
from kafkacodec.shown import counted, repr_of
from kafkacodec.signatures import suggests_options

__all__ = ["Broker", "GroupController", "Reply"]


class Broker(NamedTuple):
    """The address of a controller."""

    broker_id: int
    host: str
    port: int


class Reply(NamedTuple):
    """A reply and its connection."""

    connection: Hashable
    message: Rpc


# The layout has int16 partitions, 0 to 32767, and int16 string lengths.
_MAX_PARTITIONS = 1 << 15
_MAX_STRING_BYTES = (1 << 15) - 1
_MAX_INT64 = (1 << 63) - 1


class _Refused(Exception):
    def __init__(self, code: ErrorCode) -> None:
        self.code = code


class GroupController:
    """The groups of one controller.

    Times are in milliseconds of a monotonic clock; all calls must use the same clock.

    Args:
        broker: the address of this controller.
        partitions: the number of partitions by topic, at most 32,768 each (the layout has int16 partitions). See
            `set_partitions` for changes.
        strategy: assigns partitions: `assign_range` or `assign_round_robin` of `kafkacodec.assignment.dividing`, or any
            other function.
        now: the time.
        ephemeral: whether groups created by CreateGroup, too, are removed with their last member.
        max_groups: the most groups.
        max_members: the most members of a group.
        max_rewinds: the most partitions in the pending rewinds of a group.
        groups: what there is already, by name, without members: `stored.read_groups`.

    Raises:
        LocalProtocolError: on construction, a number of partitions that the layout cannot represent.
    """

    @suggests_options
    def __init__(
        self,
        broker: Broker,
        partitions: Mapping[str, int],
        *,
        strategy: Strategy = assign_range,
        now: int = 0,
        ephemeral: bool = False,
        max_groups: int = 10_000,
        max_members: int = 1_000,
        max_rewinds: int = 100_000,
        groups: Mapping[str, Group] | None = None,
    ) -> None:
        for topic, count in partitions.items():
            _check_count(topic, count)
        self.broker = broker
        self._partitions = dict(partitions)
        self._strategy = strategy
        self._now = now
        self._ephemeral = ephemeral
        self._max_groups = max_groups
        self._max_members = max_members
        self._max_rewinds = max_rewinds
        self._groups: dict[str, Group] = dict(groups or {})
        self._changed: dict[str, None] = {}  # groups with changes that outlive the controller
        self._clients: dict[str, tuple[str, str]] = {}  # client id -> group and consumer id
        # A call checks only the groups it touches; the others are checked when the first timeout is due.
        self._touched: dict[str, None] = {}
        self._due_at: int | None = None
        self._replaced: list[tuple[str, Waiting]] = []  # registrations to answer with REPLACED, and their groups

    def __repr__(self) -> str:
        return repr_of(self, f"{self.broker.host}:{self.broker.port}", counted(len(self._groups), "group"))

    # Calls of the host

    def receive(self, call: Rpc, now: int, connection: Hashable = None) -> list[Reply]:
        """Take a call and return the replies that are due, on this and on other connections.

        A later call answers registrations and rewinds, when the affected members have stopped.

        Raises:
            LocalProtocolError: not a call to a controller, or `now` is earlier than in a previous call; nothing has
                changed.
        """
        handler = _HANDLERS.get(type(call))
        if handler is None:
            raise LocalProtocolError(f"not a call to a controller: {type(call).__name__}")
        replies = self.tick(now)
        answer = handler(self, call, connection)
        if answer is not None:
            replies.append(Reply(connection, answer))
        return replies + self._finish_changes()

    def tick(self, now: int) -> list[Reply]:
        """Advance the clock: remove members that are silent or do not register during a change.

        Raises:
            LocalProtocolError: `now` is earlier than in a previous call.
        """
        if now < self._now:
            raise LocalProtocolError(f"the clock went back from {self._now} to {now}")
        self._now = now
        if self._due_at is None or now < self._due_at:
            return []
        for name, group in list(self._groups.items()):
            late = [i for i, m in group.members.items() if (d := _deadline(group, m)) is not None and now >= d]
            for consumer_id in late:
                self._remove(name, consumer_id)
        replies = self._finish_changes()
        self._due_at = self.next_deadline()
        return replies

    def next_deadline(self) -> int | None:
        """Return when `tick` is needed next; None if nothing is pending."""
        members = ((group, member) for group in self._groups.values() for member in group.members.values())
        return min((d for group, member in members if (d := _deadline(group, member)) is not None), default=None)

    @property
    def due_at(self) -> int | None:
        """Return a time that is not later than `next_deadline`, without checking every member."""
        return self._due_at

    def disconnect(self, client_id: str, now: int) -> list[Reply]:
        """A client has disconnected: its membership ends immediately."""
        replies = self.tick(now)
        if client_id in self._clients:
            self._remove(*self._clients[client_id])
        return replies + self._finish_changes()

    def set_partitions(self, topic: str, count: int, now: int) -> list[Reply]:
        """A topic now has `count` partitions; the partitions of its groups are assigned again.

        Raises:
            LocalProtocolError: fewer than before, or more than the layout can represent; nothing has changed.
        """
        _check_count(topic, count)
        if count < self._partitions.get(topic, 0):
            raise LocalProtocolError(f"cannot reduce partitions of {topic} from {self._partitions[topic]} to {count}")
        replies = self.tick(now)
        if count != self._partitions.get(topic, 0):
            self._partitions[topic] = count
            for name, group in self._groups.items():
                if topic in group.topics and group.members:
                    group.change(now)
                    self._touch(name, group)
        return replies + self._finish_changes()

    def remove_topic(self, topic: str, now: int) -> list[Reply]:
        """A topic is gone, with the offsets in it. One of the same name that comes later is read from its start."""
        replies = self.tick(now)
        self._partitions.pop(topic, None)
        for name, group in self._groups.items():
            if topic in group.topics or any(partition.topic == topic for partition in group.offsets):
                group.offsets = {p: offset for p, offset in group.offsets.items() if p.topic != topic}
                group.known = {**group.known, topic: 0}
                self._changed[name] = None
                if topic in group.topics and group.members:
                    group.change(now)
                    self._touch(name, group)
        return replies + self._finish_changes()

    def take_changed(self) -> list[str]:
        """Return the groups since the last call with changes to store, or that are gone."""
        changed = list(self._changed)
        self._changed.clear()
        return changed

    def membership(self, client_id: str) -> tuple[str, str] | None:
        """Group and consumer id of a client; None: it is no member."""
        return self._clients.get(client_id)

    def commit(self, group: str, consumer_id: str, offsets: Mapping[Partition, int]) -> None:
        """Commit offsets of a consumer. (The proposal has no such call.)

        Raises:
            LocalProtocolError: a partition that the consumer does not own, an offset less than the committed one, or
                one that does not fit 64 bits; nothing is committed.
        """
        state = self.group(group)
        owned = state.members[consumer_id].owned if consumer_id in state.members else []
        for partition, offset in offsets.items():
            if partition not in owned:
                raise LocalProtocolError(f"{consumer_id} does not own {partition.topic}-{partition.partition}")
            if offset > _MAX_INT64:
                raise LocalProtocolError(f"offset {offset} of {partition} does not fit 64 bits")
            if offset < max(state.offsets.get(partition, 0), 0):
                raise LocalProtocolError(f"offset {offset} of {partition} is less than the committed one")
        state.offsets.update(offsets)
        self._changed[group] = None

    def create_group(self, name: str, session_timeout: int, topics: list[str], *, ephemeral: bool) -> None:
        """Create a group.

        Raises:
            LocalProtocolError: the group exists; too many groups; a session timeout that is not positive; names or
                numbers that the layout cannot represent.
        """
        try:
            self._create(name, session_timeout, topics, ephemeral)
        except _Refused as e:
            raise LocalProtocolError(e.code.name) from None

    def group(self, name: str) -> Group:
        """The state of a group, for reading.

        Raises:
            LocalProtocolError: the group does not exist.
        """
        if name not in self._groups:
            raise LocalProtocolError(f"unknown group {name!r}")
        return self._groups[name]

    @property
    def groups(self) -> Mapping[str, Group]:
        """All groups by name, for reading."""
        return self._groups

    @property
    def group_names(self) -> list[str]:
        """The names of all groups."""
        return sorted(self._groups)

    # Calls

    def _list_groups(self, call: Any, _: Hashable) -> Rpc:
        names = list(dict.fromkeys(call.consumer_groups)) or self.group_names
        found = [self._info(name) for name in names if name in self._groups]
        code = ErrorCode.NONE if len(found) == len(names) else ErrorCode.UNKNOWN_GROUP
        answer: Rpc = ListGroupsResponse(**echoed(call), groups_info=found, error_code=code)
        return answer

    def _info(self, name: str) -> Any:
        group = self._groups[name]
        return ListGroupsResponse.GroupInfo(
            group_name=name,
            group_members=sorted(group.members),
            topics=list(group.topics),
            controller_broker=ListGroupsResponse.Broker(**self.broker._asdict()),
            session_timeout=group.session_timeout,
        )

    def _create_group(self, call: Any, _: Hashable) -> Rpc:
        code, ephemeral = ErrorCode.NONE, self._ephemeral or isinstance(call, CreateEphemeralGroup)
        try:
            self._create(call.consumer_group, call.session_timeout, call.topics, ephemeral)
        except _Refused as e:
            code = e.code
        answer: Rpc = CreateGroupResponse(**echoed(call), error_code=code)
        return answer

    def _create(self, name: str, session_timeout: int, topics: list[str], ephemeral: bool) -> None:
        if name in self._groups:
            raise _Refused(ErrorCode.GROUP_EXISTS)
        if not name or not 1 <= session_timeout <= _MAX_INT64 or not all(map(_is_string, (name, *topics))):
            raise _Refused(ErrorCode.INVALID_REQUEST)
        if len(self._groups) >= self._max_groups:
            raise _Refused(ErrorCode.LIMIT_EXCEEDED)
        known = {topic: self._partitions.get(topic, 0) for topic in topics}
        self._groups[name] = Group(session_timeout, list(topics), ephemeral, known)
        self._changed[name] = None

    def _delete_group(self, call: Any, _: Hashable) -> Rpc:
        deleted, code = [], ErrorCode.NONE
        for name in dict.fromkeys(call.consumer_group):
            group = self._groups.get(name)
            if group is None:
                code = code or ErrorCode.UNKNOWN_GROUP
            elif group.members:
                code = code or ErrorCode.GROUP_HAS_MEMBERS
            elif group.ephemeral:
                code = code or ErrorCode.INVALID_REQUEST
            else:
                del self._groups[name]
                self._changed[name] = None
                deleted.append(name)
        answer: Rpc = DeleteGroupResponse(**echoed(call), deleted_consumer_groups=deleted, error_code=code)
        return answer

    def _register(self, call: Any, connection: Hashable) -> Rpc | None:
        waiting = Waiting(connection, call.correlation_id, call.version, call.client_id)
        try:
            self._enter(call.consumer_group, call.consumer_id, waiting)
        except _Refused as e:
            return refusal(call, e.code)
        return None

    def _enter(self, name: str, consumer_id: str, waiting: Waiting) -> None:
        """Add a registration of a new or existing member."""
        group = self._groups.get(name)
        if group is None:
            raise _Refused(ErrorCode.UNKNOWN_GROUP)
        if not consumer_id:
            raise _Refused(ErrorCode.INVALID_REQUEST)
        member = group.members.get(consumer_id)
        known = self._clients.get(waiting.client_id, (name, consumer_id))
        if known != (name, consumer_id) or (member is not None and member.client_id != waiting.client_id):
            raise _Refused(ErrorCode.CLIENT_ID_IN_USE)
        if member is None:
            if len(group.members) >= self._max_members:
                raise _Refused(ErrorCode.LIMIT_EXCEEDED)
            member = group.members[consumer_id] = Member(waiting.client_id, self._now)
            self._clients[waiting.client_id] = (name, consumer_id)
        if member.registered is not None:
            self._replaced.append((name, member.registered))
        called = member.must_register_by is not None
        member.alive_at, member.must_register_by, member.registered = self._now, None, waiting
        if group.changing or not called:
            member.owned = []
            group.change(self._now)
        self._touch(name, group)

    def _heartbeat(self, call: Any, _: Hashable) -> Rpc:
        generation, code = 0, ErrorCode.UNKNOWN_MEMBER
        if call.client_id in self._clients:
            name, consumer_id = self._clients[call.client_id]
            group = self._groups[name]
            member = group.members[consumer_id]
            member.alive_at, generation = self._now, group.generation
            code = ErrorCode.NONE if member.must_register_by is None else ErrorCode.GROUP_CHANGES
        answer: Rpc = HeartbeatResponse(**echoed(call), controller_generation=generation, error_code=code)
        return answer

    def _commit_offsets(self, call: Any, _: Hashable) -> Rpc:
        name = call.consumer_group
        answer, changed = committed(call, self._groups.get(name), self._partitions)
        if changed:
            self._changed[name] = None
        return answer

    def _fetch_offsets(self, call: Any, _: Hashable) -> Rpc:
        return fetched(call, self._groups.get(call.consumer_group), self._partitions)

    def _rewind(self, call: Any, connection: Hashable) -> Rpc | None:
        waiting = Waiting(connection, call.correlation_id, call.version, call.client_id)
        group = self._groups.get(call.consumer_group)
        entries = [(Partition(o.topic, o.partition), o.offset) for o in call.new_offsets]
        if group is None:
            return refusal(call, ErrorCode.UNKNOWN_GROUP)
        size = group.rewind_size + max(len(entries), 1)
        if size > self._max_rewinds:
            return refusal(call, ErrorCode.LIMIT_EXCEEDED)
        there = set(group.partitions(self._partitions))
        offsets = [(p, o, _fault(p, o, there)) for p, o in entries]
        good = {partition for partition, _, code in offsets if code is ErrorCode.NONE}
        # The caller has already stopped and gets the offsets in the reply.
        owners = [i for i, m in group.members.items() if m.client_id != call.client_id and good & set(m.owned)]
        group.rewinds.append(Rewind(waiting, offsets))
        group.rewind_size = size
        group.call(owners, self._now)
        self._touch(call.consumer_group, group)
        return None

    # Changes

    def _remove(self, name: str, consumer_id: str) -> None:
        group = self._groups[name]
        member = group.members.pop(consumer_id)
        del self._clients[member.client_id]
        group.change(self._now)
        self._touch(name, group)

    def _touch(self, name: str, group: Group) -> None:
        """Mark a group to be checked at the end of the call, and its members after a session timeout."""
        self._touched[name] = None
        due_at = self._now + group.session_timeout
        self._due_at = due_at if self._due_at is None else min(self._due_at, due_at)

    def _finish_changes(self) -> list[Reply]:
        """Finish the changes and rewinds that no longer wait for a member."""
        replies = [Reply(w.connection, registered(w, name, [], ErrorCode.REPLACED)) for name, w in self._replaced]
        self._replaced.clear()
        touched, self._touched = self._touched, {}
        for name in touched:
            group = self._groups[name]
            if not group.all_registered:
                continue
            for rewind in group.rewinds:
                group.offsets.update({p: o for p, o, code in rewind.offsets if code is ErrorCode.NONE})
                self._changed[name] = None
                replies.append(Reply(rewind.waiting.connection, rewound(rewind.waiting, name, rewind.offsets)))
            group.rewinds.clear()
            group.rewind_size = 0
            if group.changing:
                self._assign(name, group)
            for member in group.members.values():
                if member.registered is not None:
                    own = [(p, group.start_offset(p)) for p in member.owned]
                    answer = registered(member.registered, name, own, ErrorCode.NONE)
                    replies.append(Reply(member.registered.connection, answer))
                    member.registered, member.alive_at = None, self._now
        return replies

    def _assign(self, name: str, group: Group) -> None:
        self._changed[name] = None
        if group.members:
            group.assign(self._strategy, self._partitions)
        elif group.ephemeral:
            del self._groups[name]
        else:
            group.changing = False


_Handler = Callable[[GroupController, Any, Hashable], "Rpc | None"]
_HANDLERS: dict[type, _Handler] = {
    ListGroups: GroupController._list_groups,
    CreateGroup: GroupController._create_group,
    CreateEphemeralGroup: GroupController._create_group,
    DeleteGroup: GroupController._delete_group,
    RegisterConsumer: GroupController._register,
    Heartbeat: GroupController._heartbeat,
    RewindConsumer: GroupController._rewind,
    CommitOffsets: GroupController._commit_offsets,
    FetchOffsets: GroupController._fetch_offsets,
}


def _deadline(group: Group, member: Member) -> int | None:
    """The time at which a member is removed; None while its registration waits: the host reports a lost connection."""
    if member.registered is not None:
        return None
    silent = member.alive_at + group.session_timeout + 1
    return silent if member.must_register_by is None else min(silent, member.must_register_by)


def _check_count(topic: str, count: int) -> None:
    if not 0 <= count <= _MAX_PARTITIONS:
        raise LocalProtocolError(f"number of partitions of {topic} must be 0 to {_MAX_PARTITIONS}, not {count}")


def _is_string(text: str) -> bool:
    """Whether the layout can represent a string."""
    try:
        return len(text.encode()) <= _MAX_STRING_BYTES
    except UnicodeEncodeError:
        return False


def _fault(partition: Partition, offset: int, there: set[Partition]) -> ErrorCode:
    if partition not in there:
        return ErrorCode.UNKNOWN_PARTITION
    return ErrorCode.INVALID_REQUEST if offset < 0 else ErrorCode.NONE
