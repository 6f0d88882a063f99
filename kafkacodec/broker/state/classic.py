"""A classic group: its members, its rebalances, its record (KIP-62, KIP-134, KIP-345, KIP-394, KIP-800).

States: Empty, PreparingRebalance (members join), CompletingRebalance (waiting for the leader's assignment), Stable.
Only the assignment of a generation, and the end of the last member, are records; waiting requests are in memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafkacodec import messages
from kafkacodec.broker.state.machine import Client
from kafkacodec.broker.state.members import (
    COMPLETING,
    EMPTY,
    PREPARING,
    STABLE,
    ClassicMember,
    ClassicMembers,
    Waiting,
)
from kafkacodec.datatypes import dataclass
from kafkacodec.errors import (
    FENCED_INSTANCE_ID,
    GROUP_MAX_SIZE_REACHED,
    ILLEGAL_GENERATION,
    INCONSISTENT_GROUP_PROTOCOL,
    MEMBER_ID_REQUIRED,
    NONE,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
    UNKNOWN_SERVER_ERROR,
)

__all__ = ["ClassicGroup", "joined_error"]

_NEW_MEMBER_WAITS_MS = 300_000  # a member that joined gets its answer by then, or is put out
_WRITE_AGAIN_MS = 1_000
_OF_NOBODY = (GROUP_MAX_SIZE_REACHED, UNKNOWN_SERVER_ERROR)  # errors whose answers name no member
_SKIPS_ASSIGNMENT = 9  # JoinGroup: the first version that can tell a leader not to assign


def joined_error(code: int, member_id: str = "", version: int = 0) -> Any:
    """The answer to JoinGroup with an error."""
    name = None if version > 6 else ""
    return messages.JoinGroupResponse(error_code=code, member_id=member_id, protocol_name=name)


@dataclass(slots=True)
class ClassicGroup(ClassicMembers):
    """A classic group. The group coordinator passes requests to it after its own checks."""

    _first: bool = False  # the group was empty before this rebalance, and its members are being waited for
    _came: bool = False  # a member joined during that wait

    # JoinGroup

    def join(self, request: Any, version: int, client: Client, to: Any) -> None:
        """Let a member join; the answer follows when all members have joined."""
        member_id = request.member_id
        protocols = {entry.name: bytes(entry.metadata) for entry in request.protocols}
        code = self._refuses(member_id, request, protocols)
        waiting = Waiting(to, version)
        if code:
            named = "" if code in _OF_NOBODY else member_id
            self.room.reply(to, joined_error(code, named, version))
        elif not member_id:
            self._join_new(request, client, protocols, waiting)
        elif member_id in self.promised:
            self._add(member_id, request, client, protocols, waiting)
        else:
            self._join_again(self.members[member_id], request, protocols, waiting)

    def _refuses(self, member_id: str, request: Any, protocols: Mapping[str, bytes]) -> int:
        size = len(self.members) + len(self.promised - {member_id})
        if member_id not in self.members and size >= self.options.group_max_size:
            return GROUP_MAX_SIZE_REACHED
        if not request.protocol_type or not protocols:
            return INCONSISTENT_GROUP_PROTOCOL
        if self.members and (request.protocol_type != self.protocol_type or not self.common() & protocols.keys()):
            return INCONSISTENT_GROUP_PROTOCOL
        if member_id in self.promised:  # ids are only promised to dynamic members
            return NONE if request.group_instance_id is None else UNKNOWN_SERVER_ERROR
        return self.refusal(member_id, request.group_instance_id) if member_id else NONE

    def _join_new(self, request: Any, client: Client, protocols: dict[str, bytes], waiting: Waiting) -> None:
        instance = request.group_instance_id
        member_id = f"{client.id if instance is None else instance}-{self.new_id()}"
        if instance is not None and instance in self.static:
            self._replace(self.static[instance], member_id, request, client, protocols, waiting)
        elif instance is None and waiting.version >= 4:
            self.promised.add(member_id)
            self._watch(member_id, request.session_timeout_ms)
            self.room.reply(waiting.to, joined_error(MEMBER_ID_REQUIRED, member_id, waiting.version))
        else:
            self._add(member_id, request, client, protocols, waiting)

    def _add(self, member_id: str, request: Any, client: Client, protocols: dict[str, bytes], waiting: Waiting) -> None:
        self.promised.discard(member_id)
        if not self.members:
            self.protocol_type = request.protocol_type
        if self.leader is None:
            self.leader = member_id
        instance = request.group_instance_id
        timeouts = request.rebalance_timeout_ms, request.session_timeout_ms
        member = ClassicMember(member_id, instance, client, *timeouts, protocols)
        member.joining, member.new = waiting, True
        self.members[member_id] = member
        if instance is not None:
            self.static[instance] = member_id
        self._came = True
        self._watch(member_id, _NEW_MEMBER_WAITS_MS)
        self._go_on()

    def _join_again(self, member: ClassicMember, request: Any, protocols: dict[str, bytes], waiting: Waiting) -> None:
        same = list(member.protocols.items()) == list(protocols.items())
        leads = member.id == self.leader
        if same and (self.state == COMPLETING or (self.state == STABLE and not leads)):
            self.room.reply(waiting.to, self._joined(member, leads))
            return
        self._update(member, request, protocols, waiting)
        self._go_on()

    def _update(
        self, member: ClassicMember, request: Any, protocols: dict[str, bytes], waiting: Waiting | None
    ) -> None:
        # If it asked twice, the older request gets no answer, as from Kafka: the client has given it up.
        member.protocols, member.joining = protocols, waiting
        member.session_timeout_ms = request.session_timeout_ms
        member.rebalance_timeout_ms = request.rebalance_timeout_ms

    def _replace(
        self, old: str, new: str, request: Any, client: Client, protocols: dict[str, bytes], waiting: Waiting
    ) -> None:
        """A static member came back without its id: it gets a new one, and the group need not rebalance."""
        (to, version), leader, before = waiting, self.leader, self.members[old]
        self._answer(before, FENCED_INSTANCE_ID, old)
        self._forget(old)
        member = ClassicMember(
            new, before.instance, client, before.rebalance_timeout_ms, before.session_timeout_ms, before.protocols
        )
        member.assignment = before.assignment
        self.members = {
            (new if name == old else name): (member if name == old else m) for name, m in self.members.items()
        }
        self.static[request.group_instance_id] = new
        self.leader = new if leader == old else leader
        self._update(member, request, protocols, None)
        self._watch(new, member.session_timeout_ms)
        if self.state != STABLE or self.elected() != self.protocol:
            member.joining = waiting
            self._go_on()
            return
        leads = self.leader == new

        def written(code: int) -> None:
            if code:
                self.room.reply(to, joined_error(code, new, version))
            elif version >= _SKIPS_ASSIGNMENT:
                answer = self._joined(member, leads)
                answer.skip_assignment = leads
                self.room.reply(to, answer)
            else:
                answer = self._joined(member, False)
                answer.leader = leader
                self.room.reply(to, answer)

        self.room.write([self.record()], written)

    def _joined(self, member: ClassicMember, with_members: bool) -> Any:
        entry = messages.JoinGroupResponse.JoinGroupResponseMember
        rows = self.members.values() if with_members else ()
        name = self.protocol or ""
        return messages.JoinGroupResponse(
            generation_id=self.generation,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol,
            leader=self.leader or "",
            member_id=member.id,
            members=[
                entry(member_id=m.id, group_instance_id=m.instance, metadata=m.protocols.get(name, b"")) for m in rows
            ],
        )

    # Rebalances

    def _go_on(self) -> None:
        """Start a rebalance, or complete the running one."""
        if self.state == PREPARING:
            self._complete_if_all_joined()
        else:
            self._prepare()

    def _prepare(self) -> None:
        if self.state == COMPLETING:
            self._stop_syncing(REBALANCE_IN_PROGRESS)
        self._first = self.state == EMPTY
        self._enter(PREPARING)
        if self._first:
            delay = self.options.group_initial_rebalance_delay_ms
            self._wait_for_first(delay, max(self._timeout() - delay, 0))
        else:
            self.room.set_timer("join", self._timeout(), self._complete)
            self._complete_if_all_joined()

    def _wait_for_first(self, delay: int, left: int) -> None:
        def due() -> None:
            if self._came and left:
                self._wait_for_first(min(self.options.group_initial_rebalance_delay_ms, left), max(left - delay, 0))
            else:
                self._complete()

        self._came = False
        if delay:
            self.room.set_timer("join", delay, due)
        else:
            self._complete()

    def _timeout(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def _enter(self, state: str) -> None:
        self.state, self.since = state, self.room.now

    def _complete_if_all_joined(self) -> None:
        waiting = any(member.joining is None for member in self.members.values())
        if self.state == PREPARING and not self._first and not waiting and not self.promised:
            self._complete()

    def _complete(self) -> None:
        """Form the next generation of the members that joined; remove dynamic members that did not."""
        self.room.cancel("join")
        for member in list(self.members.values()):
            if member.joining is None and member.instance is None:
                self._forget(member.id)
                self._remove(member.id)
        joined = [member for member in self.members.values() if member.joining is not None]
        if self.members and not joined:  # static members only, and none came
            self.room.set_timer("join", self._timeout(), self._complete)
            return
        if joined and (self.leader is None or self.members[self.leader].joining is None):
            self.leader = joined[0].id
        self._first = False
        self.generation += 1
        if self.members:
            self._begin_syncing()
        else:
            self._become_empty()

    def _begin_syncing(self) -> None:
        self.protocol = self.elected()
        self.topics = self.subscribed()
        self._enter(COMPLETING)
        self.unsynced = set(self.members)
        for member in self.members.values():
            if member.joining is not None:
                self.room.reply(member.joining.to, self._joined(member, member.id == self.leader))
                member.joining = None
            member.new = False
            self._watch(member.id, member.session_timeout_ms)
        self.room.set_timer("sync", self._timeout(), self._sync_expired)

    def _become_empty(self) -> None:
        self.protocol = self.leader = None
        self.topics = self.subscribed()
        self._enter(EMPTY)
        self._keep_empty()

    def _keep_empty(self) -> None:
        """Write that the group is empty; otherwise a restart would bring back members that did not leave."""

        def written(code: int) -> None:
            if code:
                self.room.set_timer("empty", _WRITE_AGAIN_MS, self._keep_empty)

        if self.state == EMPTY:
            self.room.write([self.record()], written)

    # SyncGroup, Heartbeat, LeaveGroup

    def sync(self, request: Any, to: Any) -> None:
        """Take the leader's assignment, or answer a member with its assignment as soon as there is one."""
        code = self.refusal(request.member_id, request.group_instance_id)
        if not code and request.generation_id != self.generation:
            code = ILLEGAL_GENERATION
        other = (request.protocol_type, self.protocol_type), (request.protocol_name, self.protocol)
        if not code and any(given is not None and given != ours for given, ours in other):
            code = INCONSISTENT_GROUP_PROTOCOL
        if not code and self.state in (EMPTY, PREPARING):
            code = UNKNOWN_MEMBER_ID if self.state == EMPTY else REBALANCE_IN_PROGRESS
        if code:
            self.room.reply(to, messages.SyncGroupResponse(error_code=code))
            return
        member = self.members[request.member_id]
        self._has_synced(member.id)
        if self.state == STABLE:
            self.room.reply(to, self._synced(member))
            self._watch(member.id, member.session_timeout_ms)
            return
        member.syncing = to
        if member.id == self.leader:
            self._assign({entry.member_id: bytes(entry.assignment) for entry in request.assignments})

    def _assign(self, assignments: Mapping[str, bytes]) -> None:
        generation = self.generation

        def written(code: int) -> None:
            if self.state not in (COMPLETING, STABLE) or self.generation != generation:
                return
            if code:
                self._stop_syncing(code)
                self._prepare()
                return
            for member in self.members.values():
                if member.syncing is not None:
                    self.room.reply(member.syncing, self._synced(member))
                    member.syncing = None
                    self._watch(member.id, member.session_timeout_ms)

        given = {name: assignments.get(name, b"") for name in self.members}
        self.room.write([self.record(given)], written)

    def _synced(self, member: ClassicMember) -> Any:
        return messages.SyncGroupResponse(
            protocol_type=self.protocol_type, protocol_name=self.protocol, assignment=member.assignment
        )

    def _has_synced(self, member_id: str) -> None:
        self.unsynced.discard(member_id)
        if not self.unsynced:
            self.room.cancel("sync")

    def _stop_syncing(self, code: int) -> None:
        self.room.cancel("sync")
        self.unsynced.clear()
        for member in self.members.values():
            member.assignment = b""
            if member.syncing is not None:
                self.room.reply(member.syncing, messages.SyncGroupResponse(error_code=code))
                member.syncing = None
                self._watch(member.id, member.session_timeout_ms)

    def _sync_expired(self) -> None:
        """Remove members that did not ask for their assignment in time, and rebalance the others."""
        if self.state not in (COMPLETING, STABLE) or not self.unsynced:
            return
        for member_id in self.unsynced & self.members.keys():
            self._forget(member_id)
            self._remove(member_id)
        self.unsynced.clear()
        self._prepare()

    def heartbeat(self, member_id: str, instance: str | None, generation: int) -> int:
        """Note a sign of life of a member; return the error code of the answer."""
        code = self.refusal(member_id, instance)
        if code:
            return code
        if generation != self.generation:
            return ILLEGAL_GENERATION
        if self.state == EMPTY:
            return UNKNOWN_MEMBER_ID
        self._watch(member_id, self.members[member_id].session_timeout_ms)
        return REBALANCE_IN_PROGRESS if self.state == PREPARING else NONE

    def leave(self, member_id: str, instance: str | None) -> int:
        """Remove a member; call `settle` afterwards."""
        if not member_id and instance is not None:
            if instance not in self.static:
                return UNKNOWN_MEMBER_ID
            member_id = self.static[instance]
        if member_id in self.promised:
            self.promised.discard(member_id)
            self._forget(member_id)
            return NONE
        code = self.refusal(member_id, instance)
        if not code:
            self._answer_joining(self.members[member_id], UNKNOWN_MEMBER_ID, "")
            self._forget(member_id)
            self._remove(member_id)
        return code

    def settle(self, *, left: bool) -> None:
        """Rebalance if members have left, or complete a rebalance that waited only for them."""
        if self.state == PREPARING:
            self._complete_if_all_joined()
        elif left and self.state in (COMPLETING, STABLE):
            self._prepare()

    def heard_from(self, member_id: str) -> None:
        """Note a sign of life, such as a commit, if it is a member's."""
        if member_id in self.members and self.state in (PREPARING, STABLE):
            self._watch(member_id, self.members[member_id].session_timeout_ms)

    def release(self) -> None:
        """Answer all waiting requests: the group has another kind now, and members must join again."""
        for member in self.members.values():
            self._answer(member, REBALANCE_IN_PROGRESS, member.id)

    def start(self) -> None:
        """Expect a sign of life from every member, after loading."""
        for member in self.members.values():
            self._watch(member.id, member.session_timeout_ms)

    def _watch(self, member_id: str, timeout_ms: int) -> None:
        """Expect to hear from a member within this time."""
        self.room.set_timer(f"session {member_id}", timeout_ms, lambda: self._silent(member_id))

    def _forget(self, member_id: str) -> None:
        self.room.cancel(f"session {member_id}")

    def _silent(self, member_id: str) -> None:
        member = self.members.get(member_id)
        if member_id in self.promised:
            self.promised.discard(member_id)
            self.settle(left=False)
        elif member is not None and (member.new or (member.joining is None and member.syncing is None)):
            self._answer_joining(member, UNKNOWN_MEMBER_ID, "")
            self._remove(member_id)
            self.settle(left=True)

    def _remove(self, member_id: str) -> None:
        member = self.members.pop(member_id)
        self._has_synced(member_id)
        if member.instance is not None and self.static.get(member.instance) == member_id:
            del self.static[member.instance]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)

    def _answer(self, member: ClassicMember, code: int, named: str) -> None:
        """Answer a member's waiting requests with an error."""
        self._answer_joining(member, code, named)
        self.room.reply(member.syncing, messages.SyncGroupResponse(error_code=code))
        member.syncing = None

    def _answer_joining(self, member: ClassicMember, code: int, named: str) -> None:
        """Answer the JoinGroup that a member waits for with an error; a SyncGroup gets no answer, as from Kafka."""
        if member.joining is not None:
            self.room.reply(member.joining.to, joined_error(code, named, member.joining.version))
        member.joining = None
