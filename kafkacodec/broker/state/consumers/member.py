"""A member of a group of the consumer protocol, and its steps from its partitions to its target (KIP-848).

A member first gives up partitions outside its target, then moves to the epoch of the target, then gets its new
partitions when their owners have given them up.
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import Iterable, Mapping, Set
from typing import Any, Final

from kafkacodec import messages
from kafkacodec.broker.state.epoch_group import tombstones
from kafkacodec.datatypes import NamedTuple, dataclass, replace
from kafkacodec.errors import FENCED_MEMBER_EPOCH, NONE
from kafkacodec.messages.stored import StoredRecord

__all__ = ["AWAY", "ClassicPart", "ConsumerMember", "Places", "new_targets", "places_of", "rows_of", "short_id"]

Places = frozenset[tuple[uuid.UUID, int]]
"""Partitions: the ids of their topics, and numbers."""

AWAY: Final = -2
"""The epoch of a static member that will return."""

STABLE, UNREVOKED, UNRELEASED = range(3)
_NOTHING: Places = frozenset()


class ClassicPart(NamedTuple):
    """Further fields of a member of the classic protocol: its session time-out, its protocols with their bytes."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    """The state of a member, from its records."""

    id: str
    instance: str | None = None
    rack: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: tuple[str, ...] = ()
    pattern: str = ""
    rebalance_timeout_ms: int = -1
    assignor: str | None = None
    epoch: int = 0
    previous_epoch: int = 0
    state: int = STABLE
    assigned: Places = _NOTHING
    revoking: Places = _NOTHING
    classic: ClassicPart | None = None

    def epoch_refusal(self, epoch: int, owned: Places | None) -> int:
        """Why a heartbeat with this epoch is not taken; one whose last answer was lost is."""
        lost = epoch == self.previous_epoch and owned is not None and owned <= self.assigned
        return NONE if epoch == self.epoch or (epoch < self.epoch and lost) else FENCED_MEMBER_EPOCH

    def settled(self, epoch: int) -> bool:
        """Whether it has its target of this epoch."""
        return self.state == STABLE and self.epoch == epoch

    @property
    def revocation_ms(self) -> int | None:
        """How long it may take to give up its partitions; classic members must join again instead."""
        return self.rebalance_timeout_ms if self.state == UNREVOKED and self.classic is None else None

    # Reconciliation

    def reconciled(
        self, target: Places, epoch: int, taken: Set[tuple[uuid.UUID, int]], owned: Places | None
    ) -> ConsumerMember:
        """Return the member after a heartbeat.

        Args:
            target: its target.
            epoch: of the target.
            taken: partitions that members have or have not given up yet.
            owned: the partitions that it reports; None if it reports none.
        """
        if self.state == STABLE and self.epoch == epoch:
            return self
        if self.state == UNREVOKED and (owned is None or owned & self.revoking):
            return self
        kept = self.assigned & target
        leaving = self.assigned - target
        wanted = target - kept
        free = frozenset(wanted - taken)
        if leaving and (owned is None or owned & leaving):
            return self._at(self.epoch, UNREVOKED, kept, leaving)
        return self._at(epoch, STABLE if free == wanted else UNRELEASED, kept | free, _NOTHING)

    def without(self, places: Places) -> ConsumerMember:
        """Return the member when it is to give up partitions of topics that it no longer subscribes to."""
        if not places:
            return self
        return replace(self, state=UNREVOKED, assigned=self.assigned - places, revoking=self.revoking | places)

    def _at(self, epoch: int, state: int, assigned: Places, revoking: Places) -> ConsumerMember:
        return replace(self, epoch=epoch, previous_epoch=self.epoch, state=state, assigned=assigned, revoking=revoking)

    # Records

    def metadata_record(self, group: str) -> StoredRecord:
        """Its subscription."""
        key = messages.ConsumerGroupMemberMetadataKey(group_id=group, member_id=self.id)
        value = messages.ConsumerGroupMemberMetadataValue(
            instance_id=self.instance,
            rack_id=self.rack,
            client_id=self.client_id,
            client_host=self.client_host,
            subscribed_topic_names=list(self.topics),
            subscribed_topic_regex=self.pattern,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            server_assignor=self.assignor,
            classic_member_metadata=None,
        )
        if self.classic is not None:
            made = messages.ConsumerGroupMemberMetadataValue
            value.classic_member_metadata = made.ClassicMemberMetadata(
                session_timeout_ms=self.classic.session_timeout_ms,
                supported_protocols=[made.ClassicProtocol(name=n, metadata=d) for n, d in self.classic.protocols],
            )
        return StoredRecord(key, value, 0)

    def assignment_record(self, group: str) -> StoredRecord:
        """Return the record of its partitions."""
        key = messages.ConsumerGroupCurrentMemberAssignmentKey(group_id=group, member_id=self.id)
        value = messages.ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=self.epoch,
            previous_member_epoch=self.previous_epoch,
            state=self.state,
            assigned_partitions=rows_of(
                messages.ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions, self.assigned
            ),
            partitions_pending_revocation=rows_of(
                messages.ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions, self.revoking
            ),
        )
        return StoredRecord(key, value, 0)

    def tombstones(self, group: str) -> list[StoredRecord]:
        """Return the records that remove it."""
        keys = (
            messages.ConsumerGroupCurrentMemberAssignmentKey,
            messages.ConsumerGroupTargetAssignmentMemberKey,
            messages.ConsumerGroupMemberMetadataKey,
        )
        return tombstones(keys, group_id=group, member_id=self.id)

    def with_metadata(self, value: Any) -> ConsumerMember:
        """After the record of its subscription."""
        return replace(
            self,
            instance=value.instance_id,
            rack=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            topics=tuple(value.subscribed_topic_names),
            pattern=value.subscribed_topic_regex or "",
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            assignor=value.server_assignor,
            classic=_classic_part(value.classic_member_metadata),
        )

    def with_assignment(self, value: Any) -> ConsumerMember:
        """Apply the record of its partitions; None removes them."""
        if value is None:
            return replace(self, epoch=0, previous_epoch=0, state=STABLE, assigned=_NOTHING, revoking=_NOTHING)
        return replace(
            self,
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=value.state,
            assigned=places_of(value.assigned_partitions),
            revoking=places_of(value.partitions_pending_revocation),
        )


def _classic_part(value: Any) -> ClassicPart | None:
    if value is None or not value.supported_protocols:
        return None
    return ClassicPart(
        value.session_timeout_ms, tuple((row.name, bytes(row.metadata)) for row in value.supported_protocols)
    )


def short_id(number: uuid.UUID) -> str:
    """A member's id as Kafka makes it: a UUID in 22 characters."""
    return base64.urlsafe_b64encode(number.bytes).decode().rstrip("=")


def places_of(rows: Iterable[Any]) -> Places:
    """Partitions of structs with a topic id and numbers."""
    return frozenset((row.topic_id, number) for row in rows for number in row.partitions)


def rows_of(row: Any, places: Iterable[tuple[uuid.UUID, int]]) -> list[Any]:
    """Structs with a topic id and numbers, in order."""
    found: dict[uuid.UUID, list[int]] = {}
    for topic_id, number in sorted(places):
        found.setdefault(topic_id, []).append(number)
    return [row(topic_id=topic_id, partitions=numbers) for topic_id, numbers in found.items()]


def new_targets(
    key: Any, value: Any, group: str, targets: Mapping[str, Places], before: Mapping[str, Places]
) -> list[StoredRecord]:
    """Return the records of changed targets, of the types of a kind of group."""
    return [
        StoredRecord(
            key(group_id=group, member_id=member), value(topic_partitions=rows_of(value.TopicPartition, places)), 0
        )
        for member, places in targets.items()
        if before.get(member) != places
    ]
