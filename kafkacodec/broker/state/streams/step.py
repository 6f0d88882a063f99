"""The decision about a heartbeat in a streams group: its records, in Kafka's order, and what to tell the member."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kafkacodec.broker.state.epoch_group import targets_stay
from kafkacodec.broker.state.machine import Client
from kafkacodec.broker.state.streams.configuring import (
    ASSIGNMENT_DELAYED,
    STALE_TOPOLOGY,
    Configured,
    Problem,
    configured,
)
from kafkacodec.broker.state.streams.group import COPIES, StreamsGroup, TaskOffsets
from kafkacodec.broker.state.streams.member import AWAY, UNKNOWN, Endpoint, StreamsMember, target_record
from kafkacodec.broker.state.streams.moving import Holders, moved
from kafkacodec.broker.state.streams.tasks import NO_TASKS, Task, Tasks, tasks_of
from kafkacodec.broker.state.streams.topology import Refusal, Topology
from kafkacodec.broker.state.targets import topics_hash
from kafkacodec.datatypes import NamedTuple, replace
from kafkacodec.errors import (
    FENCED_INSTANCE_ID,
    FENCED_MEMBER_EPOCH,
    GROUP_MAX_SIZE_REACHED,
    INVALID_REQUEST,
    UNKNOWN_MEMBER_ID,
    UNRELEASED_INSTANCE_ID,
)
from kafkacodec.messages.stored import StoredRecord

__all__ = ["Circumstances", "Step"]


class Circumstances(NamedTuple):
    """What a decision depends on besides the group and the request.

    Attributes:
        topics_version: of the topics of the cluster.
        settings: of the assignment, by name.
        interval_ms: how long targets stay at least.
        waits: whether the first members of the group wait for others.
        most: the largest number of members.
    """

    topics_version: int
    settings: Mapping[str, str]
    interval_ms: int
    waits: bool
    most: int


class Step:
    """A heartbeat's decision.

    Args:
        group: the current group.
        request: the heartbeat, valid in itself.
        client: its sender.
        around: see `Circumstances`.

    Attributes:
        before, member: the member before the step and after it.
        replaced: the static member whose place it takes.
        records: the records to write.
        statuses: codes and texts for the member.
        topology, configured: of the group after the step.
        offsets: what the member has said about its states.

    Raises:
        Refusal: the heartbeat is refused.
    """

    def __init__(self, group: StreamsGroup, request: Any, client: Client, around: Circumstances) -> None:
        self._group, self._request, self._around = group, request, around
        self.records: list[StoredRecord] = []
        self.statuses: list[Problem] = []
        self.replaced: StreamsMember | None = None
        self._divides_anew = False
        self.before = self._find_member()
        self.member = self._told(self.before, client)
        self.topology = self._find_topology()
        self._epoch, self._hash = group.epoch, group.hash
        self.configured = self._configure()
        self._owned = None if request.active_tasks is None else tasks_of(request)
        self._check_tasks()
        self.offsets = self._find_offsets()
        self._raise_epoch()
        target_epoch, targets = self._divide()
        self._reconcile(target_epoch, targets.get(self.member.id, NO_TASKS))

    # The member

    def _find_member(self) -> StreamsMember:
        group, request = self._group, self._request
        joins = request.member_epoch == 0
        holder = group.static(request.instance_id) if request.instance_id is not None else None
        known = group.members.get(request.member_id)
        if joins and holder is None and known is None and len(group.members) >= self._around.most:
            raise Refusal(GROUP_MAX_SIZE_REACHED, f"the group has {self._around.most} members, as many as it may have")
        if request.instance_id is not None:
            if joins and holder is not None:
                return self._replace(holder)
            if not joins and holder is None:
                raise Refusal(UNKNOWN_MEMBER_ID, f"the group has no instance {request.instance_id}")
            if holder is not None and holder.id != request.member_id:
                raise Refusal(FENCED_INSTANCE_ID, f"another member has the instance id {request.instance_id}")
        if joins:
            return known or StreamsMember(request.member_id)
        if known is None:
            raise Refusal(UNKNOWN_MEMBER_ID, f"the group has no member {request.member_id}")
        owned = None if request.active_tasks is None else tasks_of(request)
        if not known.knows(request.member_epoch, owned):
            text = f"the member is in epoch {known.epoch}, not {request.member_epoch}: it must give up its tasks"
            raise Refusal(FENCED_MEMBER_EPOCH, f"{text} and join again")
        return known

    def _replace(self, holder: StreamsMember) -> StreamsMember:
        """A static member returns: the new one gets the place of the one that is away."""
        group, request = self._group, self._request
        if holder.epoch != AWAY:
            raise Refusal(UNRELEASED_INSTANCE_ID, f"member {holder.id} has the instance id {request.instance_id}")
        self.replaced = holder
        member = replace(holder, id=request.member_id, epoch=0, previous_epoch=0)
        self.records += [
            *holder.tombstones(group.name),
            member.metadata_record(group.name),
            target_record(group.name, member.id, group.target.get(holder.id, NO_TASKS)),
            member.assignment_record(group.name),
        ]
        return member

    def _told(self, member: StreamsMember, client: Client) -> StreamsMember:
        """Return the member with the fields of its heartbeat; null changes nothing."""
        request = self._request
        said: dict[str, Any] = {"client_id": client.id, "client_host": client.host}
        for name, value in (("instance", request.instance_id), ("rack", request.rack_id),
                            ("process", request.process_id)):  # fmt: skip
            if value is not None:
                said[name] = value
        if request.rebalance_timeout_ms != -1:
            said["rebalance_timeout_ms"] = request.rebalance_timeout_ms
        if request.topology is not None:
            said["topology_epoch"] = request.topology.epoch
        if request.client_tags is not None:
            said["tags"] = {tag.key: tag.value for tag in request.client_tags}
        if request.user_endpoint is not None:
            said["endpoint"] = Endpoint(request.user_endpoint.host, request.user_endpoint.port)
        elif request.member_epoch == 0:
            said["endpoint"] = None
        told = replace(member, **said)
        if told != member:
            self.records.append(told.metadata_record(self._group.name))
            self._divides_anew = request.instance_id is None or _assigned_by(told) != _assigned_by(member)
        return told

    # The topology and its topics

    def _find_topology(self) -> Topology:
        group, asked = self._group, self._request.topology
        topology = group.topology
        if topology is not None and self.member.topology_epoch < topology.epoch:
            text = f"the member has epoch {self.member.topology_epoch} of the topology, the group {topology.epoch}"
            self.statuses.append(Problem(STALE_TOPOLOGY, text))
        if topology is None:
            topology = Topology.asked(asked)
            self.records.append(topology.record(group.name))
        elif asked is not None and asked.epoch >= topology.epoch and Topology.asked(asked) != topology:
            raise Refusal(INVALID_REQUEST, "the group has another topology, which cannot change yet")
        return topology

    def _configure(self) -> Configured:
        group, topics = self._group, self._group.topics
        if group.configured is not None and group.checked_at == self._around.topics_version:
            return group.configured
        names = sorted(self.topology.topics())
        self._hash = topics_hash(topics, {name: count for name in names if (count := topics.partitions(name))})
        changed = self._hash != group.hash
        self._divides_anew |= changed
        if group.configured is not None and not changed:
            return group.configured
        return configured(self.topology, topics)

    def _check_tasks(self) -> None:
        if self.configured.problem is not None or self._owned is None:
            return
        for name, number in frozenset().union(*self._owned):
            if not 0 <= number < self.configured.tasks.get(name, 0):
                raise Refusal(INVALID_REQUEST, f"the topology has no task {name}_{number}")

    def _find_offsets(self) -> TaskOffsets:
        known = self._group.offsets.get(self.member.id, TaskOffsets({}, {}))
        said = self._request.task_offsets, self._request.task_end_offsets
        return TaskOffsets(*(now if rows is None else _by_task(rows) for now, rows in zip(known, said, strict=True)))

    # The targets

    def _raise_epoch(self) -> None:
        """A new member, other topics or settings raise the epoch of the group."""
        group, settings = self._group, self._around.settings
        validated = self.topology.epoch if self.configured.problem is None else -1
        if self._divides_anew or validated != group.validated or settings != group.settings:
            self._epoch += 1
            self.records.append(group.epoch_record(self._epoch, self._hash, validated, settings))

    def _divide(self) -> tuple[int, Mapping[str, Tasks]]:
        """Return the epoch of the targets and the targets; compute new ones, if the group's epoch has risen."""
        group, around = self._group, self._around
        if around.waits:
            text = "tasks are assigned when the initial rebalance delay of the group is over"
            self.statuses.append(Problem(ASSIGNMENT_DELAYED, text))
            return group.assignment_epoch, {}
        members, targets = {**group.members, self.member.id: self.member}, dict(group.target)
        if self.replaced is not None and self.replaced.id != self.member.id:
            del members[self.replaced.id]
            targets[self.member.id] = targets.pop(self.replaced.id, NO_TASKS)
        if group.assignment_epoch >= self._epoch:
            return group.assignment_epoch, targets
        if targets_stay(group, around.interval_ms):
            text = "tasks are assigned when the assignment interval of the group is over"
            self.statuses.append(Problem(ASSIGNMENT_DELAYED, text))
            return group.assignment_epoch, targets
        found = group.targets(members, self.topology, self.configured, int(around.settings[COPIES]))
        self.records += group.target_records(found, targets, self._epoch)
        return self._epoch, found

    def _reconcile(self, epoch: int, target: Tasks) -> None:
        """Move the member closer to its target."""
        told = self.member
        if told.state == UNKNOWN and self._owned != NO_TASKS:
            text = "the member's state is of a later release: it must give up its tasks and join again"
            raise Refusal(FENCED_MEMBER_EPOCH, text)
        if not told.settled(epoch):
            self.member = moved(told, target, epoch, Holders(self._group.members.values()), self._owned)
        if self.member != told:
            self.records.append(self.member.assignment_record(self._group.name))


def _assigned_by(member: StreamsMember) -> tuple[Any, ...]:
    """What the assignment depends on; other changes of a static member change nothing."""
    return member.topology_epoch, member.rack, member.tags, member.process


def _by_task(rows: Iterable[Any]) -> dict[Task, int]:
    found: dict[Task, int] = {}
    for row in rows:
        task = row.subtopology_id, row.partition
        if task in found:
            raise Refusal(INVALID_REQUEST, f"two offsets of task {task[0]}_{task[1]}")
        found[task] = row.offset
    return found
