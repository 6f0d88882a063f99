"""A streams group: its topology, members, epochs and targets, and its records (KIP-1071)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from kafkacodec import messages
from kafkacodec.broker.state.epoch_group import EpochGroup, tombstones
from kafkacodec.broker.state.machine import Room, Topics
from kafkacodec.broker.state.streams.assignor import STICKY, Assigned, sticky
from kafkacodec.broker.state.streams.configuring import Configured
from kafkacodec.broker.state.streams.member import StreamsMember, target_record
from kafkacodec.broker.state.streams.tasks import NO_TASKS, Task, Tasks, task_rows, tasks_of
from kafkacodec.broker.state.streams.topology import Topology
from kafkacodec.datatypes import NamedTuple, dataclass, field
from kafkacodec.errors import NONE, STALE_MEMBER_EPOCH, UNKNOWN_MEMBER_ID, UNSUPPORTED_VERSION
from kafkacodec.messages.stored import StoredRecord

__all__ = ["COPIES", "STREAMS_RECORDS", "StreamsGroup", "TaskOffsets"]

COPIES: Final = "num.standby.replicas"
"""The setting of the assignment that the assignor heeds."""

_OFFSETS_WITH_EPOCHS = 9  # OffsetCommit: members of this protocol use it
_NEW_EPOCH = 1  # of a group that has had no member yet
_NO_DESCRIPTION = 1


class TaskOffsets(NamedTuple):
    """How much of the state of each task a member has, and the ends of their changelogs."""

    offsets: Mapping[Task, int]
    ends: Mapping[Task, int]


_NO_OFFSETS: Final = TaskOffsets({}, {})


@dataclass(slots=True)
class StreamsGroup(EpochGroup[StreamsMember]):
    """The state of a group, from its records.

    Attributes:
        hash: of the topology's topics that exist.
        validated: the epoch of the topology for which all topics are right; -1 if they are not.
        settings: the settings of the last assignment.
        described, undescribed: the topology epochs whose description a plugin of Apache Kafka stored, and refused.
        assigned_at: when the targets were computed; 0 if a member should not wait for the next ones.
        configured: the topology with the topics of the cluster, and `checked_at` the version of these; not in records,
            like the following.
        offsets: what members said about their states.
        stopper: the member that asked all to stop.
        endpoint_epoch: goes up when addresses or their partitions change.
    """

    room: Room
    topics: Topics
    epoch: int = _NEW_EPOCH
    hash: int = 0
    validated: int = -1
    settings: Mapping[str, str] = field(default_factory=dict)
    described: int = -1
    undescribed: int = -1
    assignment_epoch: int = _NEW_EPOCH
    assigned_at: int = 0
    members: dict[str, StreamsMember] = field(default_factory=dict)
    target: dict[str, Tasks] = field(default_factory=dict)
    topology: Topology | None = None
    configured: Configured | None = None
    checked_at: int = -1
    offsets: dict[str, TaskOffsets] = field(default_factory=dict)
    stopper: str | None = None
    endpoint_epoch: int = 0

    kind = "streams"
    protocol_type = "streams"

    @property
    def name(self) -> str:
        """The id of the group."""
        return self.room.key

    @property
    def state(self) -> str:
        """Empty, NotReady, Assigning, Reconciling or Stable."""
        if not self.members:
            return "Empty"
        if self.topology is None or self.topology.epoch != self.validated:
            return "NotReady"
        if self.epoch > self.assignment_epoch:
            return "Assigning"
        settled = all(member.settled(self.assignment_epoch) for member in self.members.values())
        return "Stable" if settled else "Reconciling"

    def start(self) -> None:
        """Do nothing: the calls set its timers."""

    def heard_from(self, member_id: str) -> None:
        """Commits do not count as heartbeats."""

    # Committed offsets

    def commit_refusal(self, request: Any, version: int, *, transactional: bool) -> int:
        """Why the group does not take a commit; 0 if it does.

        A member whose epoch rose since may commit for the tasks that it has had since the epoch that it names.
        """
        member_id, epoch = request.member_id, request.generation_id_or_member_epoch
        if epoch < 0 and not self.members:
            return NONE
        if transactional and epoch == -1 and not member_id and request.group_instance_id is None:
            return NONE
        member = self.members.get(member_id)
        if member is None:
            return UNKNOWN_MEMBER_ID
        if not transactional and version < _OFFSETS_WITH_EPOCHS:
            return UNSUPPORTED_VERSION
        if epoch < member.epoch and self.topology is not None:
            places = ((topic.name, part.partition_index) for topic in request.topics for part in topic.partitions)
            tasks = ((self.topology.readers.get(name, ""), number) for name, number in places)
            return NONE if all(epoch >= member.epochs.get(task, epoch + 1) for task in tasks) else STALE_MEMBER_EPOCH
        return NONE if epoch == member.epoch else STALE_MEMBER_EPOCH

    def subscribes(self) -> Callable[[str], bool]:
        """Whether the application reads a topic."""
        readers = self.topology.readers if self.topology is not None and self.members else {}
        return readers.__contains__

    # Decisions

    def targets(
        self, members: Mapping[str, StreamsMember], topology: Topology, configured: Configured, copies: int
    ) -> dict[str, Tasks]:
        """Return each member's target: nothing until all topics are right."""
        if configured.problem is not None:
            return dict.fromkeys(members, NO_TASKS)
        stateful = [name for name, part in topology.parts.items() if part.state_changelog_topics]
        known = {
            name: Assigned(member.process, member.assigned, self.offsets.get(name, _NO_OFFSETS).offsets)
            for name, member in members.items()
        }
        return sticky(configured.tasks, stateful, known, copies)

    # Records

    def epoch_record(
        self, epoch: int, hash_: int | None = None, validated: int | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> StoredRecord:  # fmt: skip
        """The epoch of the group; what is not given stays."""
        made = messages.StreamsGroupMetadataValue
        settings = self.settings if settings is None else settings
        value = made(
            epoch=epoch, metadata_hash=self.hash if hash_ is None else hash_,
            validated_topology_epoch=self.validated if validated is None else validated,
            last_assignment_configs=[made.LastAssignmentConfig(key=k, value=v) for k, v in sorted(settings.items())],
            stored_description_topology_epoch=self.described, failed_description_topology_epoch=self.undescribed,
        )  # fmt: skip
        return StoredRecord(messages.StreamsGroupMetadataKey(group_id=self.name), value, 0)

    def target_epoch_record(self, epoch: int, now: int) -> StoredRecord:
        """Return the record of the targets' epoch and time."""
        key = messages.StreamsGroupTargetAssignmentMetadataKey(group_id=self.name)
        value = messages.StreamsGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=now)
        return StoredRecord(key, value, 0)

    def target_records(
        self, targets: Mapping[str, Tasks], before: Mapping[str, Tasks], epoch: int
    ) -> list[StoredRecord]:
        """Return the records of changed targets and of their epoch."""
        changed = [name for name, tasks in targets.items() if before.get(name) != tasks]
        records = [target_record(self.name, name, targets[name]) for name in changed]
        return [*records, self.target_epoch_record(epoch, self.room.now)]

    def left(self, member: StreamsMember) -> list[StoredRecord]:
        """Return the records of a leaving member."""
        records = [*member.tombstones(self.name), self.epoch_record(self.epoch + 1)]
        if len(self.members) == 1:
            records.append(self.target_epoch_record(self.epoch + 1, 0))
        return records

    def tombstones(self) -> list[StoredRecord]:
        """Return the records that remove the group."""
        members = [record for member in self.members.values() for record in member.tombstones(self.name)]
        keys = (
            messages.StreamsGroupTargetAssignmentMetadataKey,
            messages.StreamsGroupMetadataKey,
            messages.StreamsGroupTopologyKey,
        )
        return [*members, *tombstones(keys, group_id=self.name)]

    def apply(self, key: Any, value: Any) -> None:
        """Change the state as a record says."""
        _CHANGES[type(key).__name__](self, key, value)

    def _on_epoch(self, key: Any, value: Any) -> None:
        self.epoch, self.hash, self.validated = value.epoch, value.metadata_hash, value.validated_topology_epoch
        self.settings = {config.key: config.value for config in value.last_assignment_configs or ()}
        self.described = value.stored_description_topology_epoch
        self.undescribed = value.failed_description_topology_epoch

    def _on_topology(self, key: Any, value: Any) -> None:
        self.topology = None if value is None else Topology.of(value)
        self.configured = None

    def _on_target_epoch(self, key: Any, value: Any) -> None:
        self.assignment_epoch = -1 if value is None else value.assignment_epoch
        self.assigned_at = 0 if value is None else value.assignment_timestamp

    def _on_target(self, key: Any, value: Any) -> None:
        self.target.pop(key.member_id, None)
        if value is not None:
            self.target[key.member_id] = tasks_of(value)

    def _on_member(self, key: Any, value: Any) -> None:
        if value is not None:
            member = self.members.get(key.member_id) or StreamsMember(key.member_id)
            self.members[key.member_id] = member.with_metadata(value)
            return
        self.members.pop(key.member_id, None)
        self.offsets.pop(key.member_id, None)
        if not self.members:
            self.stopper = None

    def _on_assignment(self, key: Any, value: Any) -> None:
        member = self.members.get(key.member_id)
        if member is not None or value is not None:
            member = member or StreamsMember(key.member_id)
            self.members[key.member_id] = member.with_assignment(value)

    # Descriptions

    def described_as(self, *, with_description: bool) -> Any:
        """The entry of StreamsGroupDescribe; descriptions of topologies are not kept."""
        group = messages.StreamsGroupDescribeResponse.DescribedGroup(
            group_id=self.name, group_state=self.state, group_epoch=self.epoch,
            assignment_epoch=self.assignment_epoch, assignor_name=STICKY,
            members=[self._described(member) for _, member in sorted(self.members.items())],
        )  # fmt: skip
        if self.topology is not None:
            ready = self.configured is not None and self.configured.problem is None
            internal = self.configured.internal.values() if self.configured is not None and ready else ()
            group.topology = self.topology.described({topic.name: topic.partitions for topic in internal})
        if with_description:
            group.topology_description_status = _NO_DESCRIPTION
        return group

    def _described(self, member: StreamsMember) -> Any:
        response = messages.StreamsGroupDescribeResponse

        def assignment(tasks: Tasks) -> Any:
            active, standby, warmup = (task_rows(response.TaskIds, each) for each in tasks)
            return response.Assignment(active_tasks=active, standby_tasks=standby, warmup_tasks=warmup)

        def offsets(known: Mapping[Task, int]) -> list[Any]:
            row = response.TaskOffset
            return [row(subtopology_id=name, partition=n, offset=known[name, n]) for name, n in sorted(known)]

        said = self.offsets.get(member.id, _NO_OFFSETS)
        found = response.Member(
            member_id=member.id, member_epoch=member.epoch, instance_id=member.instance, rack_id=member.rack,
            client_id=member.client_id, client_host=member.client_host, topology_epoch=member.topology_epoch,
            process_id=member.process, task_offsets=offsets(said.offsets), task_end_offsets=offsets(said.ends),
            client_tags=[response.KeyValue(key=key, value=text) for key, text in sorted(member.tags.items())],
            assignment=assignment(member.assigned), target_assignment=assignment(self.target.get(member.id, NO_TASKS)),
        )  # fmt: skip
        if member.endpoint is not None:
            found.user_endpoint = response.Endpoint(host=member.endpoint.host, port=member.endpoint.port)
        return found


_CHANGES: dict[str, Callable[[StreamsGroup, Any, Any], None]] = {
    "StreamsGroupMetadataKey": StreamsGroup._on_epoch,
    "StreamsGroupMemberMetadataKey": StreamsGroup._on_member,
    "StreamsGroupTargetAssignmentMetadataKey": StreamsGroup._on_target_epoch,
    "StreamsGroupTargetAssignmentMemberKey": StreamsGroup._on_target,
    "StreamsGroupCurrentMemberAssignmentKey": StreamsGroup._on_assignment,
    "StreamsGroupTopologyKey": StreamsGroup._on_topology,
}
"""Functions that apply each record, by the name of its key."""

STREAMS_RECORDS = frozenset(_CHANGES)
"""The names of the keys of its records."""
