"""Metadata and DescribeTopicPartitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafkacodec import errors, messages
from kafkacodec.broker.kafka.node import CLUSTER_OPERATIONS, TOPIC_OPERATIONS, ZERO_UUID
from kafkacodec.broker.kafka.topics import refuses_name
from kafkacodec.broker.state.leaders import NO_LEADER
from kafkacodec.broker.topics.names import wrong_name
from kafkacodec.internal_records import CLUSTER_METADATA

if TYPE_CHECKING:
    from kafkacodec.broker.kafka.node import Node
    from kafkacodec.broker.kafka.request import Request
    from kafkacodec.broker.state.catalog import Topic

__all__ = ["describe_topic_partitions", "metadata", "refused"]

_ALL_IS_NULL = 1  # in v0 an empty list means all topics
_BY_ID = 12
_TELLS_CREATION = 4


def metadata(node: Node, request: Request) -> Any:
    """The broker and topics.

    - v0: no list means all topics. v1: null does; the controller, racks. v2: the cluster's id.
    - v4: whether a missing topic is made. v8: authorized operations. v10: topics' ids. v12: topics by id.
    """
    message, version = request.message, request.version
    rows = message.topics
    if rows and version < _BY_ID and any(row.name is None or row.topic_id != ZERO_UUID for row in rows):
        return _refused(rows, errors.INVALID_REQUEST)
    if rows and all(row.topic_id == ZERO_UUID for row in rows) and any(row.name is None for row in rows):
        return _refused(rows, errors.UNKNOWN_SERVER_ERROR)
    response = _cluster(node, request)
    if message.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    operations = message.include_topic_authorized_operations
    if _wants_all(request):
        response.topics = [_known(node, topic, operations) for topic in map(node.catalog.topic, node.catalog.names())]
        return response
    creates = node.config.flag("auto.create.topics.enable")
    if version >= _TELLS_CREATION:
        creates = creates and message.allow_auto_topic_creation
    missing = _add_asked(node, response, rows, operations)
    made = [name for name in missing if refuses_name(node, name) is None] if creates else []
    if not made:
        return response
    records = [record for name in made for record in node.new_topic(name)[1]]
    return node.change(records, lambda code: node.reply(request.to, response), request.now)


def refused(node: Node, request: Request, code: int) -> Any:
    """Answer with the broker, and the same error for all requested topics."""
    response = _cluster(node, request)
    if request.message.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    made = response.MetadataResponseTopic
    if _wants_all(request):
        response.topics = [made(error_code=code, name=name, topic_id=node.id_of(name)) for name in node.names()]
    else:
        response.topics = [
            made(error_code=code, name=row.name, topic_id=row.topic_id) for row in request.message.topics
        ]
    return response


def _cluster(node: Node, request: Request) -> Any:
    """The answer without topics."""
    response = messages.MetadataResponse(cluster_id=node.cluster_id, controller_id=node.brokers.controller)
    made = response.MetadataResponseBroker
    response.brokers = [made(node_id=broker, host=host, port=port) for broker, host, port in node.reached(request)]
    return response


def _wants_all(request: Request) -> bool:
    rows = request.message.topics
    return rows is None or (not rows and request.version < _ALL_IS_NULL)


def _refused(rows: Any, code: int) -> Any:
    """The answer without brokers: topics by id below v12, or without a name."""
    response = messages.MetadataResponse()
    made = response.MetadataResponseTopic
    response.topics = [made(error_code=code, name=row.name or "", topic_id=row.topic_id) for row in rows]
    return response


def _add_asked(node: Node, response: Any, rows: Any, operations: bool) -> list[str]:
    """Add the requested topics, those that there are first; return missing ones that can be created."""
    made = response.MetadataResponseTopic
    missing = []
    others = []
    by_id = any(row.topic_id != ZERO_UUID for row in rows)
    wanted = {row.topic_id if by_id else row.name: row for row in rows if not by_id or row.topic_id != ZERO_UUID}
    for row in wanted.values():
        topic = node.topic_by(row.name, row.topic_id, by_id)
        if topic is not None:
            response.topics.append(_known(node, topic, operations))
        elif by_id:
            response.topics.append(made(error_code=errors.UNKNOWN_TOPIC_ID, name=None, topic_id=row.topic_id))
        elif wrong_name(row.name) or node.is_taken(row.name):
            others.append(made(error_code=errors.INVALID_TOPIC_EXCEPTION, name=row.name))
        else:
            missing += [row.name] * (row.name != CLUSTER_METADATA)
            internal = node.is_internal(row.name)
            code = errors.UNKNOWN_TOPIC_OR_PARTITION
            others.append(made(error_code=code, name=row.name, is_internal=internal))
    for row in others if operations else ():
        row.topic_authorized_operations = TOPIC_OPERATIONS
    response.topics += others
    return missing


def _known(node: Node, topic: Topic | None, operations: bool) -> Any:
    assert topic is not None
    response = messages.MetadataResponse
    made = response.MetadataResponsePartition
    partitions = [
        _led(node, made(partition_index=number, leader_epoch=epoch), topic.name, number)
        for number, epoch in node.catalog.leader_epochs(topic.name)
    ]
    for partition in partitions:
        if partition.leader_id == NO_LEADER:
            partition.error_code = errors.LEADER_NOT_AVAILABLE
    row = response.MetadataResponseTopic(
        name=topic.name, topic_id=topic.id, is_internal=node.is_internal(topic.name), partitions=partitions
    )
    if operations:
        row.topic_authorized_operations = TOPIC_OPERATIONS
    return row


def _led(node: Node, row: Any, topic: str, number: int) -> Any:
    """A row of a partition, with its leader and its replicas."""
    row.leader_id = node.brokers.leader(topic, number)
    row.replica_nodes, row.isr_nodes, row.offline_replicas = node.brokers.replicas(topic, number)
    return row


def describe_topic_partitions(node: Node, request: Request) -> Any:
    """Topics in the order of their names, from a cursor on, up to a number of partitions (KIP-966)."""
    message = request.message
    response = messages.DescribeTopicPartitionsResponse()
    known, may, cursor = node.catalog.names(), request.may, message.cursor
    asked = [row.name for row in message.topics]
    if may is not None:
        known = [name for name in known if may("describe", "topic", name)]
    code = _refuses_description(asked, cursor)
    if code:
        made = response.DescribeTopicPartitionsResponseTopic
        response.topics = [made(error_code=code, name=name) for name in asked]
        return response
    names = sorted(set(asked) or known)
    first = 0
    if cursor is not None:
        names = [name for name in names if name >= cursor.topic_name]
        first = cursor.partition_index if names and names[0] == cursor.topic_name else 0
    room = max(1, min(message.response_partition_limit, 2000))
    for name in names:
        if room <= 0:
            response.next_cursor = response.Cursor(topic_name=name, partition_index=0)
            break
        row, end = _described(node, name, first, room)
        response.topics.append(row)
        room -= len(row.partitions)
        topic = node.catalog.topic(name)
        if topic is not None and end < topic.partitions:
            response.next_cursor = response.Cursor(topic_name=name, partition_index=end)
            break
        first = 0
    return response


def _refuses_description(asked: list[str], cursor: Any) -> int:
    """The error of all requested topics: a cursor must be at one of them, and those from it on must have names."""
    first = "" if cursor is None else cursor.topic_name
    if cursor is not None and (cursor.partition_index < 0 or (asked and first not in asked)):
        return errors.INVALID_REQUEST
    return errors.UNKNOWN_SERVER_ERROR if "" in asked and not first else errors.NONE


def _described(node: Node, name: str, first: int, room: int) -> tuple[Any, int]:
    """A topic with the partitions from `first` on, and the number after the last of them."""
    response = messages.DescribeTopicPartitionsResponse
    row = response.DescribeTopicPartitionsResponseTopic(name=name, topic_authorized_operations=TOPIC_OPERATIONS)
    topic = node.catalog.topic(name)
    if topic is None:
        wrong = wrong_name(name)
        row.error_code = errors.INVALID_TOPIC_EXCEPTION if wrong else errors.UNKNOWN_TOPIC_OR_PARTITION
        return row, 0
    row.topic_id, row.is_internal = topic.id, node.is_internal(name)
    made = response.DescribeTopicPartitionsResponsePartition
    chosen = [entry for entry in node.catalog.leader_epochs(name) if entry[0] >= first][:room]
    row.partitions = [
        _led(node, made(partition_index=number, leader_epoch=epoch), name, number) for number, epoch in chosen
    ]
    for partition in row.partitions:
        eligible = node.brokers.may_lead_again(name, partition.partition_index)
        partition.eligible_leader_replicas = partition.last_known_elr = eligible
    return row, max([first, *(number + 1 for number, _ in chosen)])
