"""Offsets of a group: the answers to CommitOffsets and FetchOffsets, which the text lacks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafkacodec.dialects.rewrite.groups import NO_OFFSET, Group, Partition
from kafkacodec.dialects.rewrite.rpcs import (
    CommitOffsetsResponse,
    ErrorCode,
    FetchOffsetsResponse,
    Rpc,
    echoed,
    refusal,
)

__all__ = ["committed", "fetched"]


def committed(call: Any, group: Group | None, counts: Mapping[str, int]) -> tuple[Rpc, bool]:
    """Commit offsets to a group; the reply, and whether an offset has changed.

    Args:
        call: CommitOffsets.
        group: its group, if that exists.
        counts: the number of partitions by topic.
    """
    if group is None:
        return refusal(call, ErrorCode.UNKNOWN_GROUP), False
    entry = CommitOffsetsResponse.PartitionResult
    owned = group.owned_by(call.client_id)
    results, changed = [], False
    for given in call.offsets:
        partition = Partition(given.topic, given.partition)
        code = _unknown(partition, counts) or group.fault(partition, given.offset, owned)
        if not code and group.offsets.get(partition) != given.offset:
            group.offsets[partition] = given.offset
            changed = True
        results.append(entry(topic=partition.topic, partition=partition.partition, error_code=code))
    first = next((result.error_code for result in results if result.error_code), ErrorCode.NONE)
    return CommitOffsetsResponse(**echoed(call), results=results, error_code=first), changed


def fetched(call: Any, group: Group | None, counts: Mapping[str, int]) -> Rpc:
    """The committed offsets of partitions, or of all that have one; -1 for one that has none."""
    if group is None:
        return refusal(call, ErrorCode.UNKNOWN_GROUP)
    wanted = dict.fromkeys(Partition(p.topic, p.partition) for p in call.partitions) or sorted(group.offsets)
    found = []
    for p in wanted:
        code, offset = _unknown(p, counts), group.offsets.get(p, NO_OFFSET)
        entry = FetchOffsetsResponse.PartitionResult(topic=p.topic, partition=p.partition, offset=offset)
        entry.error_code = code
        found.append(entry)
    first = next((entry.error_code for entry in found if entry.error_code), ErrorCode.NONE)
    reply: Rpc = FetchOffsetsResponse(**echoed(call), offsets=found, error_code=first)
    return reply


def _unknown(partition: Partition, counts: Mapping[str, int]) -> ErrorCode:
    is_there = 0 <= partition.partition < counts.get(partition.topic, 0)
    return ErrorCode.NONE if is_there else ErrorCode.UNKNOWN_PARTITION
