"""DescribeProducers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafkacodec import errors, messages
from kafkacodec.broker.topics.names import wrong_name

if TYPE_CHECKING:
    from kafkacodec.broker.kafka.node import Node
    from kafkacodec.broker.kafka.request import Request
    from kafkacodec.broker.topics.partition import Partition

__all__ = ["describe_producers"]


def describe_producers(node: Node, request: Request) -> Any:
    """The producers of partitions (KIP-664)."""
    response = messages.DescribeProducersResponse()
    for topic in request.message.topics:
        made = response.TopicResponse(name=topic.name)
        response.topics.append(made)
        for number in topic.partition_indexes:
            row = response.PartitionResponse(partition_index=number)
            made.partitions.append(row)
            partition = node.topics.partition(topic.name, number)
            if wrong_name(topic.name):
                row.error_code, row.error_message = errors.INVALID_TOPIC_EXCEPTION, "the topic's name is invalid"
            elif partition is None:
                row.error_code = errors.UNKNOWN_TOPIC_OR_PARTITION
                known = node.catalog.topic(topic.name) is not None
                row.error_message = None if known else "there is no such topic"
            elif not node.brokers.has(request.broker, topic.name, number):
                row.error_code = errors.NOT_LEADER_OR_FOLLOWER
            else:
                row.active_producers = _active(response, partition)
    return response


def _active(response: Any, partition: Partition) -> list[Any]:
    return [
        response.ProducerState(
            producer_id=number, producer_epoch=producer.producer_epoch, last_sequence=producer.last_sequence,
            last_timestamp=producer.timestamp, coordinator_epoch=producer.coordinator_epoch,
            current_txn_start_offset=partition.log.open_transactions.get(number, -1),
        )
        for number, producer in partition.log.producers.items()
    ]  # fmt: skip
