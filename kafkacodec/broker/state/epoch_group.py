"""What groups have in common whose members have epochs: those of the consumer, the streams and the share protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, Protocol, TypeVar

from kafkacodec.broker.state.machine import Room
from kafkacodec.errors import NONE, STALE_MEMBER_EPOCH, UNKNOWN_MEMBER_ID
from kafkacodec.messages.stored import StoredRecord

__all__ = ["EpochGroup", "targets_stay", "tombstones"]


class _Member(Protocol):
    @property
    def instance(self) -> str | None: ...

    @property
    def epoch(self) -> int: ...


M = TypeVar("M", bound=_Member)


class EpochGroup(Generic[M]):
    """The part of a group that depends on its members alone."""

    __slots__ = ()
    members: dict[str, M]

    @property
    def idle(self) -> bool:
        """Whether the group is empty."""
        return not self.members

    def static(self, instance: str) -> M | None:
        """The member of this instance."""
        return next((member for member in self.members.values() if member.instance == instance), None)

    def fetch_refusal(self, member_id: str | None, epoch: int) -> int:
        """Return the error for a fetch of offsets; requests that name no member are allowed."""
        if member_id is None and epoch < 0:
            return NONE
        member = self.members.get(member_id or "")
        if member is None:
            return UNKNOWN_MEMBER_ID
        return NONE if epoch == member.epoch else STALE_MEMBER_EPOCH

    def delete_refusal(self) -> int:
        """Return the error for a deletion of offsets: topics that nobody reads are allowed."""
        return NONE

    def subscribes(self) -> Callable[[str], bool]:
        """Whether the group reads a topic."""
        raise NotImplementedError

    def retention_start(self) -> Callable[[str], int | None]:
        """Return the start of retention: the commit, unless the group reads the topic."""
        uses = self.subscribes()
        return lambda topic: None if uses(topic) else -1


class _Assigned(Protocol):
    @property
    def room(self) -> Room: ...

    @property
    def assigned_at(self) -> int:
        """When the targets were computed; 0 if a member should not wait for the next ones."""


def targets_stay(group: _Assigned, interval_ms: int) -> bool:
    """Whether the targets of a group are so new that they stay for now."""
    return bool(group.assigned_at) and interval_ms > 0 and group.room.now < group.assigned_at + interval_ms


def tombstones(keys: Iterable[Any], **names: str) -> list[StoredRecord]:
    """Return the records that remove what these types of keys have of a group, or of a member."""
    return [StoredRecord(key(**names), None, None) for key in keys]
