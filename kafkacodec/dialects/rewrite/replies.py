"""The replies to registrations and rewinds, which wait for other members."""

from __future__ import annotations

from kafkacodec.dialects.rewrite.groups import Partition, Waiting
from kafkacodec.dialects.rewrite.rpcs import ErrorCode, RegisterConsumerResponse, RewindConsumerResponse, Rpc

__all__ = ["registered", "rewound"]


def registered(waiting: Waiting, group: str, own: list[tuple[Partition, int]], code: ErrorCode) -> Rpc:
    """The reply to a registration: the partitions to own, each with its offset."""
    entry = RegisterConsumerResponse.PartitionOffset
    answer: Rpc = RegisterConsumerResponse(
        version=waiting.version,
        correlation_id=waiting.correlation_id,
        client_id=waiting.client_id,
        consumer_group=group,
        partitions_to_own=[entry(topic=p.topic, partition=p.partition, offset=offset) for p, offset in own],
        error_code=code,
    )
    return answer


def rewound(waiting: Waiting, group: str, offsets: list[tuple[Partition, int, ErrorCode]]) -> Rpc:
    """The reply to a rewind, with the outcome of each partition."""
    entry = RewindConsumerResponse.PartitionResult
    answer: Rpc = RewindConsumerResponse(
        version=waiting.version,
        correlation_id=waiting.correlation_id,
        consumer_group=group,
        actual_offsets=[
            entry(topic=p.topic, partition=p.partition, offset=offset, error_code=code) for p, offset, code in offsets
        ],
    )
    return answer
