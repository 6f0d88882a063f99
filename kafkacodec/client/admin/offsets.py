"""Offsets of partitions by time, and committed offsets of groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any, Final, Literal, TypeAlias

from kafkacodec import messages
from kafkacodec.arguments import IsolationLevel, one_of, suggestion
from kafkacodec.assignment.partitions import TopicPartition
from kafkacodec.client.admin.job import Ask, Leader, refusal
from kafkacodec.client.admin.operations import (
    PARTITION,
    Operations,
    as_rows,
    by_topic,
    group_coordinator,
    group_name,
    mapped,
    pairs,
)
from kafkacodec.client.checks import offset_number
from kafkacodec.client.core.calls import Answer
from kafkacodec.datatypes import NamedTuple
from kafkacodec.errors import UNKNOWN_MEMBER_ID, BrokerError
from kafkacodec.messages.keys import LIST_OFFSETS, OFFSET_COMMIT, OFFSET_DELETE, OFFSET_FETCH
from kafkacodec.moments import milliseconds

__all__ = ["GroupOffset", "OffsetAndTimestamp", "OffsetOperations", "OffsetSpec"]

OffsetSpec: TypeAlias = (
    Literal["earliest", "latest", "max_timestamp", "earliest_local", "latest_tiered", "earliest_pending_upload"]
    | int
    | date
    | str
)
"""An offset of a partition: by name, or the first record at or after a time: ms since 1970, a datetime (UTC without a
time zone), a date, or text such as ``"2026-05-01T12:00"``, ``"yesterday"`` and ``"-1h"``."""

_NAMED: Final = {
    "latest": -1,
    "earliest": -2,
    "max_timestamp": -3,
    "earliest_local": -4,
    "latest_tiered": -5,
    "earliest_pending_upload": -6,
}
_LEAST: Final = {-3: 7, -4: 8, -5: 9, -6: 11}  # the first versions of ListOffsets with them
_LAST_WITH_NAMES = 9  # of OffsetCommit and OffsetFetch; later versions use topic ids
_GROUPS_VERSION = 8  # of OffsetFetch
_NO_OFFSET = -1


class OffsetAndTimestamp(NamedTuple):
    """An offset of a partition.

    `offset` is -1 if no record is new enough, or no record has been or will be uploaded. For a time and for
    ``"max_timestamp"``, `timestamp` is the record's in ms, else -1. `leader_epoch` is -1 if unknown.
    """

    offset: int
    timestamp: int
    leader_epoch: int


class GroupOffset(NamedTuple):
    """A committed offset: the next record to read. `leader_epoch` is -1 if unknown."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


class OffsetOperations(Operations):
    """The calls on offsets of partitions and groups."""

    @as_rows(OffsetAndTimestamp, keys=PARTITION)
    async def list_offsets(
        self,
        partitions: Mapping[tuple[str, int], OffsetSpec],
        *,
        isolation_level: IsolationLevel = "read_uncommitted",
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        """List offsets of partitions, from their leaders.

        Args:
            partitions: the wanted offset of each partition: ``"earliest"``, ``"latest"`` (the end), ``"max_timestamp"``
                (the first record with the greatest timestamp; Kafka 3.0 and later), ``"earliest_local"`` (3.6),
                ``"latest_tiered"`` (3.9), ``"earliest_pending_upload"`` (4.2), or a time. For ``"max_timestamp"``
                brokers count transaction markers as records, and only look at local segments.
            isolation_level: with ``"read_committed"``, the latest offset is the last stable offset, and later records
                are not found. ``"max_timestamp"`` is then -1 while the greatest timestamp comes after it: brokers do
                not search for the greatest before it.
            timeout_ms: for the whole call. Default: the client's ``default_api_timeout_ms``.

        Raises:
            ItemErrors: by partition, such as UnknownTopicOrPartitionError. A time needs Kafka 0.10.1 or later.
        """
        times = {key: _time(spec) for key, spec in mapped("partitions", partitions).items()}
        one_of("isolation_level", isolation_level, ("read_uncommitted", "read_committed"))
        committed = isolation_level == "read_committed"
        least = max([2 if committed else 0, *(_LEAST.get(time, 0 if time < 0 else 1) for time in times.values())])

        def request(keys: list[TopicPartition], version: int) -> Any:
            part = messages.ListOffsetsRequest.ListOffsetsPartition
            topics = [
                messages.ListOffsetsRequest.ListOffsetsTopic(
                    name=name,
                    partitions=[part(partition_index=n, timestamp=times[TopicPartition(name, n)]) for n in numbers],
                )
                for name, numbers in by_topic(keys).items()
            ]
            return messages.ListOffsetsRequest(replica_id=-1, isolation_level=int(committed), topics=topics)

        ask = Ask(
            api_key=LIST_OFFSETS,
            request=request,
            read=_listed,
            place=lambda key: Leader(*key),
            least=least,
            needs="" if not least else "read_committed" if committed and least == 2 else "an offset of this kind",
        )
        return await self._each(ask, times, timeout_ms, "offsets could not be listed")

    @as_rows(GroupOffset, keys=PARTITION)
    async def list_group_offsets(
        self,
        group: str,
        partitions: Iterable[tuple[str, int]] | None = None,
        *,
        require_stable: bool = False,
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, GroupOffset]:
        """List the committed offsets of a group. Partitions without one are left out.

        Args:
            group: the group.
            partitions: only these. Default: all (Kafka 0.10.2 and later).
            require_stable: wait for transactions that may still change them (Kafka 2.5 and later).
            timeout_ms: for the whole call. Default: the client's ``default_api_timeout_ms``.

        Raises:
            BrokerError: such as GroupAuthorizationFailedError.
            ItemErrors: by partition.
        """
        group_name(group)
        wanted = None if partitions is None else by_topic(pairs(partitions))

        def request(keys: list[str], version: int) -> Any:
            return _offset_fetch(group, wanted, require_stable, version)

        ask = Ask(
            api_key=OFFSET_FETCH,
            request=request,
            read=_fetched,
            place=group_coordinator,
            least=7 if require_stable else 2 if wanted is None else 1,
            most=_LAST_WITH_NAMES,
            needs="require_stable" if require_stable else "the offsets of all partitions" if wanted is None else "",
        )
        found = await self._one(ask, group, timeout_ms)
        return {key: offset for key, offset in found.items() if offset.offset != _NO_OFFSET}

    async def alter_group_offsets(
        self,
        group: str,
        offsets: Mapping[tuple[str, int], int | GroupOffset],
        *,
        timeout_ms: int | None = None,
    ) -> None:
        """Commit offsets for a group without members, or whose consumers do not join it.

        Args:
            group: the group.
            offsets: the offset of the next record to read, or a `GroupOffset`, by partition.
            timeout_ms: for the whole call. Default: the client's ``default_api_timeout_ms``.

        Raises:
            ItemErrors: by partition, such as UnknownMemberIdError while the group has members.
            TypeError, ValueError: an offset is not a number, or is negative.
        """
        group_name(group)
        new = {key: _group_offset(offset) for key, offset in mapped("offsets", offsets).items()}

        def request(keys: list[TopicPartition], version: int) -> Any:
            return _offset_commit(group, {key: new[key] for key in keys})

        ask = Ask(
            api_key=OFFSET_COMMIT,
            request=request,
            read=_committed,
            place=lambda key: group_coordinator(group),
            least=1,  # version 0 commits to ZooKeeper
            most=_LAST_WITH_NAMES,
        )
        await self._each(ask, new, timeout_ms, "offsets were not committed")

    async def delete_group_offsets(
        self, group: str, partitions: Iterable[tuple[str, int]], *, timeout_ms: int | None = None
    ) -> None:
        """Delete committed offsets of a group (Kafka 2.4 and later).

        Raises:
            ItemErrors: by partition, such as GroupSubscribedToTopicError while a member reads the topic.
        """
        group_name(group)

        def request(keys: list[TopicPartition], version: int) -> Any:
            topic, part = messages.OffsetDeleteRequest.OffsetDeleteRequestTopic, messages.OffsetDeleteRequest
            topics = [
                topic(name=name, partitions=[part.OffsetDeleteRequestPartition(partition_index=n) for n in numbers])
                for name, numbers in by_topic(keys).items()
            ]
            return messages.OffsetDeleteRequest(group_id=group, topics=topics)

        def read(keys: list[TopicPartition], answer: Answer) -> Iterable[tuple[TopicPartition, BrokerError | None]]:
            whole = refusal(answer.message.error_code)
            return ((key, whole) for key in keys) if whole is not None else _each_partition(keys, answer)

        ask = Ask(api_key=OFFSET_DELETE, request=request, read=read, place=lambda key: group_coordinator(group))
        await self._each(ask, pairs(partitions), timeout_ms, "offsets were not deleted")


def _group_offset(given: Any) -> GroupOffset:
    found = given if isinstance(given, GroupOffset) else GroupOffset(given)
    offset_number(found.offset)
    return found


def _time(spec: Any) -> int:
    if isinstance(spec, str) and spec in _NAMED:
        return _NAMED[spec]
    try:
        time = milliseconds(spec)
    except ValueError:
        raise ValueError(f"no offset or time is {spec!r}; {suggestion(spec, _NAMED, 'names of offsets')}") from None
    if time < 0:
        raise ValueError(f"a time must not be negative, not {time}; for the ends use 'earliest' and 'latest'")
    return time


def _listed(
    keys: list[TopicPartition], answer: Answer
) -> Iterable[tuple[TopicPartition, OffsetAndTimestamp | BrokerError]]:
    for topic in answer.message.topics:
        for part in topic.partitions:
            offset = part.offset
            if answer.version == 0:
                offset = part.old_style_offsets[0] if part.old_style_offsets else _NO_OFFSET
            found = OffsetAndTimestamp(offset, part.timestamp, part.leader_epoch)
            yield TopicPartition(topic.name, part.partition_index), refusal(part.error_code) or found


def _offset_fetch(group: str, wanted: dict[str, list[int]] | None, stable: bool, version: int) -> Any:
    request = messages.OffsetFetchRequest
    if version >= _GROUPS_VERSION:
        topics = None if wanted is None else [
            request.OffsetFetchRequestTopics(name=name, partition_indexes=numbers) for name, numbers in wanted.items()
        ]  # fmt: skip
        entry = request.OffsetFetchRequestGroup(group_id=group, topics=topics)
        return request(groups=[entry], require_stable=stable)
    old = None if wanted is None else [
        request.OffsetFetchRequestTopic(name=name, partition_indexes=numbers) for name, numbers in wanted.items()
    ]  # fmt: skip
    return request(group_id=group, topics=old, require_stable=stable)


def _fetched(keys: list[str], answer: Answer) -> Iterable[tuple[str, dict[TopicPartition, GroupOffset] | BrokerError]]:
    group = answer.message.groups[0] if answer.version >= _GROUPS_VERSION else answer.message
    whole = refusal(group.error_code)
    if whole is not None:
        yield keys[0], whole
        return
    found = {}
    for topic in group.topics:
        for part in topic.partitions:
            refused = refusal(part.error_code)
            if refused is not None:
                yield keys[0], refusal(part.error_code, f"{topic.name}-{part.partition_index}") or refused
                return
            found[TopicPartition(topic.name, part.partition_index)] = GroupOffset(
                part.committed_offset, part.committed_leader_epoch, part.metadata or ""
            )
    yield keys[0], found


def _offset_commit(group: str, offsets: dict[TopicPartition, GroupOffset]) -> Any:
    request = messages.OffsetCommitRequest
    topics = []
    for name, numbers in by_topic(offsets).items():
        entries = []
        for number in numbers:
            new = offsets[TopicPartition(name, number)]
            entries.append(
                request.OffsetCommitRequestPartition(
                    partition_index=number,
                    committed_offset=new.offset,
                    committed_leader_epoch=new.leader_epoch,
                    committed_metadata=new.metadata,
                )
            )
        topics.append(request.OffsetCommitRequestTopic(name=name, partitions=entries))
    return request(group_id=group, topics=topics)


def _committed(keys: list[TopicPartition], answer: Answer) -> Iterable[tuple[TopicPartition, BrokerError | None]]:
    for key, refused in _each_partition(keys, answer):
        is_member = refused is not None and refused.code == UNKNOWN_MEMBER_ID
        yield (
            key,
            refusal(UNKNOWN_MEMBER_ID, "the group has members; stop its consumers first") if is_member else refused,
        )


def _each_partition(keys: list[TopicPartition], answer: Answer) -> Iterable[tuple[TopicPartition, BrokerError | None]]:
    for topic in answer.message.topics:
        for part in topic.partitions:
            yield TopicPartition(topic.name, part.partition_index), refusal(part.error_code)
