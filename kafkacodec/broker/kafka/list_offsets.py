"""ListOffsets, OffsetForLeaderEpoch, DeleteRecords."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from kafkacodec import errors, messages
from kafkacodec.errors import DecodeError

if TYPE_CHECKING:
    from kafkacodec.broker.kafka.node import Node
    from kafkacodec.broker.kafka.request import Request
    from kafkacodec.broker.topics.partition import Partition

__all__ = ["delete_records", "list_offsets", "offset_for_leader_epoch"]

_LATEST, _EARLIEST, _MAX_TIME, _LOCAL, _TIERED, _PENDING = -1, -2, -3, -4, -5, -6
_SINCE: Final = {_LATEST: 0, _EARLIEST: 0, _MAX_TIME: 7, _LOCAL: 8, _TIERED: 9, _PENDING: 11}
_EPOCHS_FROM: Final = 4
_ISOLATION: Final = (0, 1)


def list_offsets(node: Node, request: Request) -> Any:
    """Offsets by time.

    - v0: the first offsets of segments. v2: read_committed. v4: epochs. v7, v8, v9, v11: more special times.
    """
    message = request.message
    if request.version > 1 and message.isolation_level not in _ISOLATION:
        return _all_wrong(message, errors.UNKNOWN_SERVER_ERROR)
    response = messages.ListOffsetsResponse()
    asked_for = Counter((topic.name, row.partition_index) for topic in message.topics for row in topic.partitions)
    topics: dict[str, dict[int, Any]] = {}
    for topic in message.topics:
        rows = topics.setdefault(topic.name, {})
        for asked in topic.partitions:
            row = response.ListOffsetsPartitionResponse(partition_index=asked.partition_index)
            rows[asked.partition_index] = row
            if asked_for[topic.name, asked.partition_index] > 1:
                row.error_code = errors.INVALID_REQUEST
            else:
                try:
                    _fill(node, request, row, topic.name, asked)
                except (OSError, DecodeError) as error:
                    row.error_code = node.topics.unreadable(topic.name, asked.partition_index, error)
    made = response.ListOffsetsTopicResponse
    response.topics = [made(name=name, partitions=list(rows.values())) for name, rows in topics.items() if rows]
    return response


def _all_wrong(message: Any, code: int) -> Any:
    """The same error in each requested row, also where one is repeated."""
    response = messages.ListOffsetsResponse()
    made = response.ListOffsetsPartitionResponse
    for topic in message.topics:
        rows = [made(partition_index=asked.partition_index, error_code=code) for asked in topic.partitions]
        response.topics.append(response.ListOffsetsTopicResponse(name=topic.name, partitions=rows))
    return response


def _fill(node: Node, request: Request, row: Any, name: str, asked: Any) -> None:
    message, version, time = request.message, request.version, asked.timestamp
    if time < 0 and version < _SINCE.get(time, 1 << 15):
        row.error_code = errors.UNSUPPORTED_VERSION
        return
    partition = node.topics.partition(name, asked.partition_index)
    if partition is None:
        row.error_code = node.topics.missing(name, asked.partition_index)
        return
    row.error_code = _refuses(node, request, partition, asked.current_leader_epoch)
    if row.error_code:
        return
    if version == 0:
        if asked.max_num_offsets < 0:
            row.error_code = errors.UNKNOWN_SERVER_ERROR
            return
        row.old_style_offsets = partition.offsets_before(time, asked.max_num_offsets, request.now)
        return
    committed = version > 1 and message.isolation_level == 1
    offset, timestamp = _found(partition, time, committed)
    row.offset, row.timestamp = offset, timestamp
    if offset >= 0 and version >= _EPOCHS_FROM:
        row.leader_epoch = partition.epoch_at(offset)


def _refuses(node: Node, request: Request, partition: Partition, epoch: int) -> int:
    """Why this broker does not answer for a partition: the client knows another leader, or another broker leads."""
    if node.brokers.has(request.broker, *partition.key):
        code = partition.epoch_error(epoch)
        if code:
            return code
    return node.leader_error(request, *partition.key)


def _found(partition: Partition, time: int, committed: bool) -> tuple[int, int]:
    """The offset and the time of the record, -1 and -1 if there is none."""
    end = partition.last_stable_offset if committed else partition.high_watermark
    if time == _LATEST:
        return end, -1
    if time in (_EARLIEST, _LOCAL):
        return partition.start_offset, -1
    if time in (_TIERED, _PENDING):
        return -1, -1
    found = partition.latest_time() if time == _MAX_TIME else partition.first_at(time)
    return found if found is not None and found[0] < end else (-1, -1)


def offset_for_leader_epoch(node: Node, request: Request) -> Any:
    """Return the end of a leader epoch (KIP-101, KIP-320)."""
    response = messages.OffsetForLeaderEpochResponse()
    for topic in request.message.topics:
        made = response.OffsetForLeaderTopicResult(topic=topic.topic)
        response.topics.append(made)
        for asked in topic.partitions:
            row = response.EpochEndOffset(partition=asked.partition)
            made.partitions.append(row)
            partition = node.topics.partition(topic.topic, asked.partition)
            if partition is None:
                row.error_code = node.topics.missing(topic.topic, asked.partition)
                continue
            row.error_code = _refuses(node, request, partition, asked.current_leader_epoch)
            if not row.error_code:
                row.leader_epoch, row.end_offset = partition.end_of_epoch(asked.leader_epoch)
    return response


def delete_records(node: Node, request: Request) -> Any:
    """Move the start of logs (KIP-107)."""
    response = messages.DeleteRecordsResponse()
    last: dict[str, dict[int, Any]] = {}  # of a repeated partition, the last row counts
    for topic in request.message.topics:
        last.setdefault(topic.name, {}).update((asked.partition_index, asked) for asked in topic.partitions)
    for name, asked in last.items():
        if asked:
            rows = [_delete(node, request, name, one) for one in asked.values()]
            response.topics.append(response.DeleteRecordsTopicResult(name=name, partitions=rows))
    return response


def _delete(node: Node, request: Request, name: str, asked: Any) -> Any:
    """Move the start of a log, and return its row."""
    made = messages.DeleteRecordsResponse.DeleteRecordsPartitionResult
    row = made(partition_index=asked.partition_index, low_watermark=-1)
    partition = node.topics.partition(name, asked.partition_index)
    row.error_code = _cannot_delete(node, name, partition, asked)
    if not row.error_code and partition is not None:
        row.error_code = node.leader_error(request, *partition.key)
    if not row.error_code and partition is not None:
        end = partition.high_watermark
        try:
            partition.delete_before(end if asked.offset == -1 else asked.offset)
            row.low_watermark = partition.start_offset
        except OSError:
            row.error_code = errors.KAFKA_STORAGE_ERROR
    return row


def _cannot_delete(node: Node, name: str, partition: Partition | None, asked: Any) -> int:
    offset = asked.offset
    if partition is None:
        return node.topics.missing(name, asked.partition_index)
    if node.is_internal(name):
        return int(errors.INVALID_TOPIC_EXCEPTION)
    if partition.config.is_compacted and not partition.config.is_deleted:
        return int(errors.POLICY_VIOLATION)
    if not -1 <= offset <= partition.high_watermark:
        return int(errors.OFFSET_OUT_OF_RANGE)
    return int(errors.NONE)
