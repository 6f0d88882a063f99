"""DescribeShareGroupOffsets, and what all of a share group's requests use (KIP-932, KIP-1226)."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from kafkacodec import errors, messages
from kafkacodec.broker.kafka.sharing.partitions import SharePartitions
from kafkacodec.broker.kafka.sharing.sessions import ShareSessions
from kafkacodec.broker.state.sharing.group import ShareGroup
from kafkacodec.net.service import NOTHING, Effect

if TYPE_CHECKING:
    from kafkacodec.broker.kafka.node import Node
    from kafkacodec.broker.kafka.request import Request

__all__ = ["Shares", "describe_share_group_offsets"]

_SUMMARY_VERSION = 1
_UNKNOWN = -1


class Shares:
    """A broker's state of share groups, beside its coordinators.

    Args:
        node: the broker.
        most_sessions: the maximum number of share sessions.

    Attributes:
        sessions: share sessions.
        partitions: the open partitions of groups.
        now: the broker's time; the service sets it.
    """

    def __init__(self, node: Node, most_sessions: int) -> None:
        self._node = node
        self.sessions = ShareSessions(most_sessions)
        self.partitions = SharePartitions(node)
        self.now = 0.0

    @property
    def enabled(self) -> bool:
        """Whether the cluster's features have share groups."""
        return bool(self._node.catalog.metadata.features.get("share.version", 0) > 0)

    def disconnected(self, connection: Any, now: float) -> Effect:
        """Release the records of a connection's members."""
        ended = self.sessions.of_connection(connection)
        return _all([self.partitions.release(one.owner, one.places, now) for one in ended]) if ended else NOTHING


def describe_share_group_offsets(node: Node, request: Request) -> Any:
    """Describe the stored start offsets of groups. v1: the number of remaining records."""
    response = messages.DescribeShareGroupOffsetsResponse
    asked = request.message.groups
    rows: dict[int, Any] = {}
    if not asked:
        return response()

    def described(number: int, row: Any) -> Effect:
        rows[number] = row
        if len(rows) < len(asked):
            return NOTHING
        return node.reply(request.to, response(groups=[rows[at] for at in range(len(asked))]))

    return _all([_describe(node, request, group, number, described) for number, group in enumerate(asked)])


def _describe(node: Node, request: Request, asked: Any, number: int, then: Any) -> Effect:
    response = messages.DescribeShareGroupOffsetsResponse
    row = response.DescribeShareGroupOffsetsResponseGroup(group_id=asked.group_id)
    group = node.groups.find(asked.group_id)
    if not node.shares.enabled:
        row.error_code = errors.UNSUPPORTED_VERSION
    elif asked.group_id and group is not None and not isinstance(group, ShareGroup):
        row.error_code = errors.GROUP_ID_NOT_FOUND
    if row.error_code:
        effect: Effect = then(number, row)
        return effect
    wanted: dict[str, list[int]] = {}
    for topic in asked.topics or ():
        wanted[topic.topic_name] = list(dict.fromkeys([*wanted.get(topic.topic_name, ()), *topic.partitions]))
    if asked.topics is None and isinstance(group, ShareGroup):
        wanted = {name: sorted(numbers) for name, numbers in group.started.values()}
    if any(node.id_of(name) is not None and not (numbers and asked.group_id) for name, numbers in wanted.items()):
        row.error_code, row.error_message = errors.UNKNOWN_SERVER_ERROR, "the group or the partitions are empty"
        failed: Effect = then(number, row)
        return failed
    parts: dict[tuple[uuid.UUID, int], Any] = {}
    for name, numbers in wanted.items():
        topic_id, count = node.id_of(name), node.partitions(name)
        topic = response.DescribeShareGroupOffsetsResponseTopic(topic_name=name)
        row.topics.append(topic)
        for each in numbers:
            part = response.DescribeShareGroupOffsetsResponsePartition(partition_index=each, start_offset=_UNKNOWN)
            topic.partitions.append(part)
            if topic_id is not None and 0 <= each < count:
                parts[topic_id, each] = part
        if topic_id is not None:
            topic.topic_id = topic_id

    def summarized(answer: Any) -> Effect:
        for result in answer.results:
            for found in result.partitions:
                _tell(node, result.topic_id, found, parts[result.topic_id, found.partition])
        done: Effect = then(number, row)
        return done

    return node.ask(_question(asked.group_id, parts), _SUMMARY_VERSION, summarized, request.now)


def _question(group: str, parts: Any) -> Any:
    request = messages.ReadShareGroupStateSummaryRequest
    topics: dict[uuid.UUID, list[Any]] = {}
    for topic_id, number in parts:
        topics.setdefault(topic_id, []).append(request.PartitionData(partition=number))
    data = request.ReadStateSummaryData
    return request(group_id=group, topics=[data(topic_id=t, partitions=rows) for t, rows in topics.items()])


def _tell(node: Node, topic_id: uuid.UUID, found: Any, part: Any) -> None:
    """Add the share coordinator's state of a partition, and its remaining records."""
    part.start_offset, part.leader_epoch = found.start_offset, found.leader_epoch
    part.error_code, part.error_message = found.error_code, found.error_message
    log = node.topics.partition(node.name_of(topic_id) or "", found.partition)
    if log is not None and found.start_offset >= 0 and found.delivery_complete_count >= 0:
        part.lag = log.high_watermark - found.start_offset - found.delivery_complete_count


def _all(effects: list[Effect]) -> Effect:
    return Effect((), (), [effect for effect in effects if effect])
