"""Offsets of share groups: list, alter, delete (KIP-932; Kafka 4.1 and later)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kafkacodec import messages
from kafkacodec.assignment.partitions import TopicPartition
from kafkacodec.client.admin.job import Ask, refusal
from kafkacodec.client.admin.operations import (
    PARTITION,
    Operations,
    as_rows,
    by_topic,
    group_coordinator,
    group_name,
    mapped,
    pairs,
    several,
)
from kafkacodec.client.core.calls import Answer
from kafkacodec.datatypes import NamedTuple
from kafkacodec.errors import BrokerError
from kafkacodec.messages.keys import ALTER_SHARE_GROUP_OFFSETS, DELETE_SHARE_GROUP_OFFSETS, DESCRIBE_SHARE_GROUP_OFFSETS

__all__ = ["ShareGroupOffset", "ShareOffsetOperations"]

_NO_OFFSET = -1


class ShareGroupOffset(NamedTuple):
    """The progress of a share group: records before `start_offset` are done, and later ones may be.

    `leader_epoch` is the partition's when it was read, `lag` the number of records that are not done; both are -1 if
    the broker does not report them (the lag before Kafka 4.2).
    """

    start_offset: int
    leader_epoch: int
    lag: int


class ShareOffsetOperations(Operations):
    """The calls on offsets of share groups."""

    @as_rows(ShareGroupOffset, keys=PARTITION)
    async def list_share_group_offsets(
        self,
        group: str,
        partitions: Iterable[tuple[str, int]] | None = None,
        *,
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, ShareGroupOffset]:
        """List the start offsets of a share group (Kafka 4.1 and later). Partitions without one are left out.

        Args:
            group: the group.
            partitions: only these. Default: all.
            timeout_ms: for the whole call. Default: the client's ``default_api_timeout_ms``.

        Raises:
            BrokerError: such as GroupAuthorizationFailedError. A group that does not exist has no offsets.
        """
        group_name(group)
        wanted = None if partitions is None else by_topic(pairs(partitions))

        def request(keys: list[str], version: int) -> Any:
            new = messages.DescribeShareGroupOffsetsRequest
            topic = new.DescribeShareGroupOffsetsRequestTopic
            topics = None if wanted is None else [
                topic(topic_name=name, partitions=numbers) for name, numbers in wanted.items()
            ]  # fmt: skip
            return new(groups=[new.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=topics)])

        ask = Ask(api_key=DESCRIBE_SHARE_GROUP_OFFSETS, request=request, read=_listed, place=group_coordinator)
        found = await self._one(ask, group, timeout_ms)
        return {key: offset for key, offset in found.items() if offset.start_offset != _NO_OFFSET}

    async def alter_share_group_offsets(
        self, group: str, offsets: Mapping[tuple[str, int], int], *, timeout_ms: int | None = None
    ) -> None:
        """Set the start offsets of a share group without members (Kafka 4.1 and later). Its acknowledgements are lost.

        Args:
            group: the group.
            offsets: the offset of the first record to deliver, by partition.
            timeout_ms: for the whole call. Default: the client's ``default_api_timeout_ms``.

        Raises:
            ItemErrors: by partition, such as NonEmptyGroupError, UnknownTopicOrPartitionError.
        """
        group_name(group)
        new = mapped("offsets", offsets)

        def request(keys: list[TopicPartition], version: int) -> Any:
            alter = messages.AlterShareGroupOffsetsRequest
            part = alter.AlterShareGroupOffsetsRequestPartition
            topics = [
                alter.AlterShareGroupOffsetsRequestTopic(
                    topic_name=name,
                    partitions=[part(partition_index=n, start_offset=new[TopicPartition(name, n)]) for n in numbers],
                )
                for name, numbers in by_topic(keys).items()
            ]
            return alter(group_id=group, topics=topics)

        def read(keys: list[TopicPartition], answer: Answer) -> Iterable[tuple[TopicPartition, BrokerError | None]]:
            whole = refusal(answer.message.error_code, answer.message.error_message)
            if whole is not None:
                yield from ((key, whole) for key in keys)
            for topic in answer.message.responses:
                for entry in topic.partitions:
                    key = TopicPartition(topic.topic_name, entry.partition_index)
                    yield key, refusal(entry.error_code, entry.error_message)

        ask = Ask(
            api_key=ALTER_SHARE_GROUP_OFFSETS, request=request, read=read, place=lambda key: group_coordinator(group)
        )
        await self._each(ask, new, timeout_ms, "offsets were not set")

    async def delete_share_group_offsets(
        self, group: str, topics: str | Iterable[str], *, timeout_ms: int | None = None
    ) -> None:
        """Delete the offsets of topics in a share group without members (Kafka 4.1 and later).

        Raises:
            ItemErrors: by topic, such as NonEmptyGroupError, UnknownTopicOrPartitionError.
        """

        def request(keys: list[str], version: int) -> Any:
            delete = messages.DeleteShareGroupOffsetsRequest
            return delete(
                group_id=group,
                topics=[delete.DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in keys],
            )

        def read(keys: list[str], answer: Answer) -> Iterable[tuple[str, BrokerError | None]]:
            whole = refusal(answer.message.error_code, answer.message.error_message)
            if whole is not None:
                yield from ((key, whole) for key in keys)
            for topic in answer.message.responses:
                yield topic.topic_name, refusal(topic.error_code, topic.error_message)

        ask = Ask(
            api_key=DELETE_SHARE_GROUP_OFFSETS, request=request, read=read, place=lambda key: group_coordinator(group)
        )
        await self._each(ask, several("topics", topics), timeout_ms, "topics kept their offsets")


def _listed(
    keys: list[str], answer: Answer
) -> Iterable[tuple[str, dict[TopicPartition, ShareGroupOffset] | BrokerError]]:
    for group in answer.message.groups:
        refused = refusal(group.error_code, group.error_message)
        found = {}
        for topic in group.topics:
            for part in topic.partitions:
                key = TopicPartition(topic.topic_name, part.partition_index)
                refused = refused or refusal(part.error_code, f"{key}: {part.error_message or 'no offset'}")
                found[key] = ShareGroupOffset(part.start_offset, part.leader_epoch, part.lag)
        yield group.group_id, refused or found
