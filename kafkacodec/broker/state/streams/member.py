"""A member of a streams group, from its records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kafkacodec import messages
from kafkacodec.broker.state.epoch_group import tombstones
from kafkacodec.broker.state.streams.tasks import NO_TASKS, ROLES, Task, Tasks, task_rows, tasks_of
from kafkacodec.datatypes import NamedTuple, dataclass, field, replace
from kafkacodec.messages.stored import StoredRecord

__all__ = ["AWAY", "STABLE", "UNKNOWN", "UNRELEASED", "UNREVOKED", "Endpoint", "StreamsMember", "target_record"]

AWAY: Final = -2
"""The epoch of a static member that will return."""

STABLE, UNREVOKED, UNRELEASED = 1, 2, 3
UNKNOWN: Final = 127
"""The state of a member whose record has a state of a later release."""

_STATES: Final = frozenset((STABLE, UNREVOKED, UNRELEASED))
_REVOKING: Final = "{}_tasks_pending_revocation"


class Endpoint(NamedTuple):
    """Where an application answers interactive queries."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class StreamsMember:
    """The state of a member.

    Attributes:
        assigned: its tasks.
        revoking: the tasks that it has to give up before it gets others.
        epochs: in which epoch each active task of both was assigned.
    """

    id: str
    instance: str | None = None
    rack: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    process: str = ""
    endpoint: Endpoint | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    epoch: int = 0
    previous_epoch: int = 0
    state: int = STABLE
    assigned: Tasks = NO_TASKS
    revoking: Tasks = NO_TASKS
    epochs: Mapping[Task, int] = field(default_factory=dict)

    def settled(self, epoch: int) -> bool:
        """Whether it has its target of this epoch."""
        return self.state == STABLE and self.epoch == epoch

    def knows(self, epoch: int, owned: Tasks | None) -> bool:
        """Whether it may send this epoch, with its tasks: an older one if its last answer was lost."""
        lost = epoch == self.previous_epoch and owned is not None and self.assigned.contains(owned)
        return epoch in (0, self.epoch) or (epoch < self.epoch and lost)

    @property
    def revocation_ms(self) -> int | None:
        """How long it may take to give up its tasks; None if it has to give up none."""
        return self.rebalance_timeout_ms if self.state == UNREVOKED else None

    def away(self) -> StreamsMember:
        """Return the static member while it is away: others do not get its tasks."""
        epochs = dict.fromkeys(self.assigned.active, 0)
        return replace(self, epoch=AWAY, revoking=NO_TASKS, epochs=epochs)

    # Records

    def metadata_record(self, group: str) -> StoredRecord:
        """Its description of itself."""
        key = messages.StreamsGroupMemberMetadataKey(group_id=group, member_id=self.id)
        made = messages.StreamsGroupMemberMetadataValue
        endpoint = None if self.endpoint is None else made.Endpoint(host=self.endpoint.host, port=self.endpoint.port)
        value = made(
            instance_id=self.instance, rack_id=self.rack, client_id=self.client_id, client_host=self.client_host,
            rebalance_timeout_ms=self.rebalance_timeout_ms, topology_epoch=self.topology_epoch,
            process_id=self.process, user_endpoint=endpoint,
            client_tags=[made.KeyValue(key=key, value=text) for key, text in sorted(self.tags.items())],
        )  # fmt: skip
        return StoredRecord(key, value, 0)

    def assignment_record(self, group: str) -> StoredRecord:
        """Return the record of its tasks."""
        key = messages.StreamsGroupCurrentMemberAssignmentKey(group_id=group, member_id=self.id)
        value = messages.StreamsGroupCurrentMemberAssignmentValue(
            member_epoch=self.epoch, previous_member_epoch=self.previous_epoch, state=self.state
        )
        row = messages.StreamsGroupCurrentMemberAssignmentValue.TaskIds
        for fields, tasks in (("{}_tasks", self.assigned), (_REVOKING, self.revoking)):
            for role, each in zip(ROLES, tasks, strict=True):
                epochs = self.epochs if role == "active" else None
                setattr(value, fields.format(role), task_rows(row, each, epochs))
        return StoredRecord(key, value, 0)

    def tombstones(self, group: str) -> list[StoredRecord]:
        """Return the records that remove it."""
        keys = (
            messages.StreamsGroupCurrentMemberAssignmentKey,
            messages.StreamsGroupTargetAssignmentMemberKey,
            messages.StreamsGroupMemberMetadataKey,
        )
        return tombstones(keys, group_id=group, member_id=self.id)

    def with_metadata(self, value: Any) -> StreamsMember:
        """After the record of its description."""
        endpoint = value.user_endpoint
        return replace(
            self, instance=value.instance_id, rack=value.rack_id, client_id=value.client_id,
            client_host=value.client_host, rebalance_timeout_ms=value.rebalance_timeout_ms,
            topology_epoch=value.topology_epoch, process=value.process_id,
            endpoint=None if endpoint is None else Endpoint(endpoint.host, endpoint.port),
            tags={tag.key: tag.value for tag in value.client_tags},
        )  # fmt: skip

    def with_assignment(self, value: Any) -> StreamsMember:
        """Apply the record of its tasks; None removes them."""
        if value is None:
            return replace(
                self, epoch=0, previous_epoch=0, state=STABLE, assigned=NO_TASKS, revoking=NO_TASKS, epochs={}
            )
        rows = [*value.active_tasks, *value.active_tasks_pending_revocation]
        return replace(
            self, epoch=value.member_epoch, previous_epoch=value.previous_member_epoch,
            state=value.state if value.state in _STATES else UNKNOWN,
            assigned=tasks_of(value), revoking=tasks_of(value, _REVOKING), epochs=_epochs(rows, value.member_epoch),
        )  # fmt: skip


def _epochs(rows: list[Any], default: int) -> dict[Task, int]:
    """The epoch of each task; releases before 4.2 did not write them."""
    found: dict[Task, int] = {}
    for row in rows:
        known = row.assignment_epochs
        epochs = known if known is not None and len(known) == len(row.partitions) else [default] * len(row.partitions)
        found.update(zip(((row.subtopology_id, number) for number in row.partitions), epochs, strict=True))
    return found


def target_record(group: str, member: str, tasks: Tasks) -> StoredRecord:
    """Return the record of a member's target."""
    key = messages.StreamsGroupTargetAssignmentMemberKey(group_id=group, member_id=member)
    value = messages.StreamsGroupTargetAssignmentMemberValue()
    for role, each in zip(ROLES, tasks, strict=True):
        setattr(value, f"{role}_tasks", task_rows(value.TaskIds, each))
    return StoredRecord(key, value, 0)
