"""Descriptions of streams groups (KIP-1071; Kafka 4.1 and later)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kafkacodec import messages
from kafkacodec.client.admin.job import Ask, refusal
from kafkacodec.client.admin.operations import Operations, as_rows, group_coordinator, several
from kafkacodec.client.core.calls import Answer
from kafkacodec.datatypes import NamedTuple
from kafkacodec.errors import BrokerError
from kafkacodec.messages.keys import STREAMS_GROUP_DESCRIBE
from kafkacodec.protocol.terms import authorized_operations

__all__ = [
    "Endpoint",
    "StreamsGroupDescription",
    "StreamsGroupMember",
    "StreamsGroupOperations",
    "StreamsTask",
    "StreamsTasks",
    "Subtopology",
]


class StreamsTask(NamedTuple):
    """A task: a partition of a subtopology."""

    subtopology_id: str
    partition: int


class StreamsTasks(NamedTuple):
    """The tasks of a member: active ones, standby copies of state, and warm-up tasks."""

    active: list[StreamsTask]
    standby: list[StreamsTask]
    warmup: list[StreamsTask]


class Endpoint(NamedTuple):
    """Where an application answers interactive queries; equal to the tuple ``(host, port)``."""

    host: str
    port: int


class StreamsGroupMember(NamedTuple):
    """A member of a streams group: a thread of an application, whose process has the uuid `process_id`."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rack_id: str | None
    epoch: int
    topology_epoch: int
    process_id: str
    user_endpoint: Endpoint | None
    client_tags: dict[str, str]
    assignment: StreamsTasks
    target_assignment: StreamsTasks
    is_classic: bool


class Subtopology(NamedTuple):
    """A part of a topology with the topics that it reads and writes."""

    subtopology_id: str
    source_topics: list[str]
    repartition_sink_topics: list[str]
    repartition_source_topics: list[str]
    state_changelog_topics: list[str]


class StreamsGroupDescription(NamedTuple):
    """A streams group with its members.

    `state` is Kafka's term, such as ``Stable``, ``NotReady`` (topics are missing) or ``Empty``. `topology_epoch` is -1
    and `subtopologies` empty while the group has none. `authorized_operations` is None unless requested.
    """

    group_id: str
    state: str
    epoch: int
    assignment_epoch: int
    topology_epoch: int
    subtopologies: list[Subtopology]
    coordinator: int
    members: list[StreamsGroupMember]
    authorized_operations: frozenset[str] | None


class StreamsGroupOperations(Operations):
    """The calls on streams groups."""

    @as_rows(StreamsGroupDescription)
    async def describe_streams_groups(
        self,
        groups: str | Iterable[str],
        *,
        include_authorized_operations: bool = False,
        timeout_ms: int | None = None,
    ) -> dict[str, StreamsGroupDescription]:
        """Describe the topology, members and tasks of streams groups (Kafka 4.1 and later).

        Raises:
            ItemErrors: by group, such as GroupIdNotFoundError, GroupAuthorizationFailedError.
        """

        def request(keys: list[str], version: int) -> Any:
            return messages.StreamsGroupDescribeRequest(
                group_ids=keys, include_authorized_operations=include_authorized_operations
            )

        ask = Ask(api_key=STREAMS_GROUP_DESCRIBE, request=request, read=_described, place=group_coordinator)
        return await self._each(ask, several("groups", groups), timeout_ms, "groups could not be described")


def _described(keys: list[str], answer: Answer) -> Iterable[tuple[str, StreamsGroupDescription | BrokerError]]:
    for group in answer.message.groups:
        topology = group.topology
        found = StreamsGroupDescription(
            group.group_id,
            group.group_state,
            group.group_epoch,
            group.assignment_epoch,
            -1 if topology is None else topology.epoch,
            [] if topology is None else [_subtopology(entry) for entry in topology.subtopologies or ()],
            answer.node,
            [_member(entry) for entry in group.members],
            authorized_operations(group.authorized_operations),
        )
        yield group.group_id, refusal(group.error_code, group.error_message) or found


def _subtopology(entry: Any) -> Subtopology:
    return Subtopology(
        entry.subtopology_id,
        list(entry.source_topics),
        list(entry.repartition_sink_topics),
        [topic.name for topic in entry.repartition_source_topics],
        [topic.name for topic in entry.state_changelog_topics],
    )


def _member(entry: Any) -> StreamsGroupMember:
    endpoint = entry.user_endpoint
    return StreamsGroupMember(
        entry.member_id,
        entry.instance_id,
        entry.client_id,
        entry.client_host,
        entry.rack_id,
        entry.member_epoch,
        entry.topology_epoch,
        entry.process_id,
        None if endpoint is None else Endpoint(endpoint.host, endpoint.port),
        {tag.key: tag.value for tag in entry.client_tags},
        _tasks(entry.assignment),
        _tasks(entry.target_assignment),
        entry.is_classic,
    )


def _tasks(assignment: Any) -> StreamsTasks:
    def of(entries: Any) -> list[StreamsTask]:
        return [StreamsTask(entry.subtopology_id, number) for entry in entries for number in entry.partitions]

    return StreamsTasks(of(assignment.active_tasks), of(assignment.standby_tasks), of(assignment.warmup_tasks))
