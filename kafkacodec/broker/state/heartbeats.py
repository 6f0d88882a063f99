"""The time limits of members that send heartbeats: for the next one, and for giving up what others are to get."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from kafkacodec.broker.state.groups import Groups
from kafkacodec.broker.state.machine import Room, Then
from kafkacodec.messages.stored import StoredRecord

__all__ = ["HeartbeatCalls"]


class _Member(Protocol):
    @property
    def id(self) -> str: ...

    @property
    def epoch(self) -> int: ...

    @property
    def revocation_ms(self) -> int | None:
        """How long it may take to give up what it has to; None if there is nothing."""


class _Group(Protocol):
    room: Room
    members: dict[str, Any]

    @property
    def name(self) -> str: ...


M = TypeVar("M", bound=_Member)
G = TypeVar("G", bound=_Group)


class HeartbeatCalls(Generic[G, M]):
    """What the requests of groups have in common whose members send heartbeats and have epochs.

    Args:
        groups: all groups.
        kind: the type of those that this is about.
        removal: makes the records that remove members.

    Attributes:
        session: the name of the setting of groups that says how long a member may be silent.
    """

    session: ClassVar[str]

    def __init__(self, groups: Groups, kind: type[G], removal: Callable[[G, list[M]], list[StoredRecord]]) -> None:
        self._groups, self._kind, self._removal = groups, kind, removal

    def start(self) -> None:
        """Expect a sign of life from every member, after loading."""
        for name in self._groups.groups:
            group = self._group(name)
            if group is not None:
                for member in group.members.values():
                    self._watch(group, member)

    def _group(self, name: str) -> G | None:
        group = self._groups.find(name)
        return group if isinstance(group, self._kind) else None

    def _session_ms(self, group: G, member: M) -> int:
        return self._groups.setting(group.name, self.session)

    def _watch(self, group: G, member: M, *, anew: bool = False) -> None:
        """Expect the next heartbeat; `anew`: what the member is to give up is something else than before."""
        late, revocation = partial(self._late, group.name, member.id), _revocation(member)
        group.room.set_timer(_session(member), self._session_ms(group, member), partial(late, None))
        limit_ms = member.revocation_ms
        if limit_ms is None:
            group.room.cancel(revocation)
        elif anew or not group.room.waits(revocation):
            group.room.set_timer(revocation, limit_ms, partial(late, member.epoch))

    def _forget(self, group: G, member: M) -> None:
        """The member is gone."""
        for timer in (_session(member), _revocation(member)):
            group.room.cancel(timer)

    def _late(self, name: str, member_id: str, epoch: int | None) -> None:
        """A member was silent, or has not given up what it had to in an epoch."""
        group = self._group(name)
        member = None if group is None else group.members.get(member_id)
        if group is None or member is None:
            return
        if epoch is None or (member.epoch == epoch and member.revocation_ms is not None):
            self.remove(group, [member], partial(self._removed, group, member))

    def _removed(self, group: G, member: M, code: int) -> None:
        if code:
            self._watch(group, member)  # tried again after another session

    def remove(self, group: G, members: list[M], then: Then) -> None:
        """Put members out of their group, and continue with an error code."""

        def written(code: int) -> None:
            for member in members if not code else ():
                self._forget(group, member)
            then(code)

        group.room.write(self._removal(group, members), written)


def _session(member: _Member) -> str:
    return f"session {member.id}"


def _revocation(member: _Member) -> str:
    return f"rebalance {member.id}"
