"""Topics: create, delete, list, describe, add partitions, delete records."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from typing import Any, Final

from kafkacodec import messages
from kafkacodec.arguments import config_texts, is_integer, require_int, require_text
from kafkacodec.assignment.partitions import TopicPartition
from kafkacodec.client.admin.job import Ask, Leader, refusal
from kafkacodec.client.admin.operations import PARTITION, Operations, anywhere, as_rows, by_topic, mapped, several
from kafkacodec.client.admin.topic_terms import (
    CreatedTopic,
    NewPartitions,
    NewTopic,
    PartitionDescription,
    TopicDescription,
    TopicListing,
)
from kafkacodec.client.checks import mapping
from kafkacodec.client.core.calls import Answer
from kafkacodec.errors import UNKNOWN_TOPIC_OR_PARTITION, BrokerError, UnsupportedVersion, error
from kafkacodec.messages.keys import CREATE_PARTITIONS, CREATE_TOPICS, DELETE_RECORDS, DELETE_TOPICS, METADATA
from kafkacodec.protocol.terms import authorized_operations

__all__ = ["TopicOperations"]

_NO_ID: Final = uuid.UUID(int=0)
_DEFAULTS_VERSION = 4  # of CreateTopics: brokers fill in partitions and replicas (KIP-464)
_IDS_VERSION = 6  # of DeleteTopics
_NO_CREATION_VERSION = 4  # of Metadata: can request a topic without creating it


class TopicOperations(Operations):
    """The calls on topics."""

    @as_rows(CreatedTopic)
    async def create_topics(
        self,
        topics: str | NewTopic | Iterable[str | NewTopic] | Mapping[str, int],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> dict[str, CreatedTopic]:
        """Create topics.

        Args:
            topics: a `NewTopic`, or a name for a topic with the broker's defaults, or several of these; or numbers of
                partitions by name.
            validate_only: only check whether they could be created (Kafka 0.10.2 and later).
            timeout_ms: for the whole call. Default: the client's ``default_api_timeout_ms``.

        Raises:
            ValueError: two of them have the same name, but are different.
            ItemErrors: by name, such as TopicAlreadyExistsError, InvalidPartitionsError, PolicyViolationError.
        """
        if isinstance(topics, Mapping):
            topics = [NewTopic(name, count) for name, count in topics.items()]
        items = several("topics", topics, (str, NewTopic))
        new: dict[str, NewTopic] = {}
        for item in (NewTopic(item) if isinstance(item, str) else item for item in items):
            if new.setdefault(item.name, item) != item:
                raise ValueError(f"topics has two different topics {item.name!r}")
        wait = self._broker_timeout(timeout_ms)

        def request(names: list[str], version: int) -> Any:
            entries = [_creatable(new[name], version) for name in names]
            return messages.CreateTopicsRequest(topics=entries, timeout_ms=wait, validate_only=validate_only)

        ask = Ask(
            api_key=CREATE_TOPICS,
            request=request,
            read=_created,
            least=1 if validate_only else 0,
            needs="validate_only" if validate_only else "",
        )
        return await self._each(ask, new, timeout_ms, "topics were not created")

    async def delete_topics(
        self, topics: str | uuid.UUID | Iterable[str | uuid.UUID], *, timeout_ms: int | None = None
    ) -> None:
        """Delete topics by name or id (ids: Kafka 2.8 and later). Brokers delete the files some time later.

        Raises:
            ItemErrors: by name or id, such as UnknownTopicOrPartitionError, TopicDeletionDisabledError.
        """
        names = several("topics", topics, (str, uuid.UUID))
        with_ids = any(isinstance(item, uuid.UUID) for item in names)
        wait = self._broker_timeout(timeout_ms)

        def request(keys: list[Any], version: int) -> Any:
            if version < _IDS_VERSION:
                return messages.DeleteTopicsRequest(topic_names=keys, timeout_ms=wait)
            state = messages.DeleteTopicsRequest.DeleteTopicState
            entries = [state(topic_id=key) if isinstance(key, uuid.UUID) else state(name=key) for key in keys]
            return messages.DeleteTopicsRequest(topics=entries, timeout_ms=wait)

        def read(keys: list[Any], answer: Answer) -> Iterable[tuple[Any, BrokerError | None]]:
            asked = set(keys)
            for entry in answer.message.responses:
                key = entry.topic_id if entry.topic_id in asked else entry.name
                yield key, refusal(entry.error_code, entry.error_message)

        ask = Ask(
            api_key=DELETE_TOPICS,
            request=request,
            read=read,
            least=_IDS_VERSION if with_ids else 0,
            needs="deletion by topic id" if with_ids else "",
            final=frozenset({UNKNOWN_TOPIC_OR_PARTITION}),
        )
        await self._each(ask, names, timeout_ms, "topics were not deleted")

    @as_rows(TopicListing)
    async def list_topics(
        self, *, include_internal: bool = False, timeout_ms: int | None = None
    ) -> dict[str, TopicListing]:
        """List the topics that this client may describe, by name; internal ones only on request."""

        def request(keys: list[str], version: int) -> Any:
            return messages.MetadataRequest(topics=None if version else [], allow_auto_topic_creation=True)

        def read(keys: list[str], answer: Answer) -> Iterable[tuple[str, dict[str, TopicListing]]]:
            entries = sorted((entry for entry in answer.message.topics if entry.name), key=lambda entry: entry.name)
            listings = [
                TopicListing(entry.name, _topic_id(entry.topic_id), entry.is_internal, len(entry.partitions))
                for entry in entries
            ]
            yield keys[0], {found.name: found for found in listings if include_internal or not found.internal}

        return await self._one(Ask(api_key=METADATA, request=request, read=read, place=anywhere), "", timeout_ms)

    @as_rows(TopicDescription)
    async def describe_topics(
        self,
        topics: str | Iterable[str],
        *,
        include_authorized_operations: bool = False,
        timeout_ms: int | None = None,
    ) -> dict[str, TopicDescription]:
        """Describe the partitions of topics, with leaders and replicas. Does not create topics.

        Raises:
            ItemErrors: by name, such as UnknownTopicOrPartitionError, TopicAuthorizationFailedError.
        """
        operations = include_authorized_operations

        def request(names: list[str], version: int) -> Any:
            if version < _NO_CREATION_VERSION:
                return messages.MetadataRequest(topics=None if version else [], allow_auto_topic_creation=True)
            topic = messages.MetadataRequest.MetadataRequestTopic
            return messages.MetadataRequest(
                topics=[topic(name=name) for name in names],
                allow_auto_topic_creation=False,
                include_topic_authorized_operations=operations,
            )

        ask = Ask(
            api_key=METADATA,
            request=request,
            read=_described,
            place=anywhere,
            least=8 if operations else 0,
            needs="include_authorized_operations" if operations else "",
            final=frozenset({UNKNOWN_TOPIC_OR_PARTITION}),
        )
        return await self._each(ask, several("topics", topics), timeout_ms, "topics could not be described")

    async def create_partitions(
        self,
        topics: Mapping[str, int | NewPartitions],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> None:
        """Add partitions to topics.

        Args:
            topics: the new total number of partitions, or `NewPartitions`, by topic name.
            validate_only: only check whether the change is possible.
            timeout_ms: for the whole call. Default: the client's ``default_api_timeout_ms``.

        Raises:
            ItemErrors: by name, such as InvalidPartitionsError, ReassignmentInProgressError.
        """
        new = {
            require_text("the name of a topic", name): NewPartitions(item) if is_integer(item) else item
            for name, item in mapping("topics", topics).items()
        }
        for item in new.values():
            if not isinstance(item, NewPartitions):
                raise TypeError(f"each topic needs a number of partitions or NewPartitions, not {item!r}")
        wait = self._broker_timeout(timeout_ms)

        def request(names: list[str], version: int) -> Any:
            entry = messages.CreatePartitionsRequest.CreatePartitionsTopic
            place = messages.CreatePartitionsRequest.CreatePartitionsAssignment
            entries = []
            for name in names:
                brokers = new[name].assignments
                assigned = None if brokers is None else [place(broker_ids=list(ids)) for ids in brokers]
                entries.append(entry(name=name, count=new[name].total, assignments=assigned))
            return messages.CreatePartitionsRequest(topics=entries, timeout_ms=wait, validate_only=validate_only)

        def read(names: list[str], answer: Answer) -> Iterable[tuple[str, BrokerError | None]]:
            return ((entry.name, refusal(entry.error_code, entry.error_message)) for entry in answer.message.results)

        ask = Ask(api_key=CREATE_PARTITIONS, request=request, read=read, final=frozenset({UNKNOWN_TOPIC_OR_PARTITION}))
        await self._each(ask, new, timeout_ms, "topics got no partitions")

    @as_rows(int, keys=PARTITION, cell="start_offset")
    async def delete_records(
        self, before: Mapping[tuple[str, int], int], *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """Delete the records before an offset.

        Args:
            before: the first offset to keep, by partition; -1 deletes everything up to the high watermark.
            timeout_ms: for the whole call. Default: the client's ``default_api_timeout_ms``.

        Returns:
            The new log start offset of each partition.

        Raises:
            ItemErrors: by partition, such as OffsetOutOfRangeError, PolicyViolationError for a compacted topic.
        """
        offsets = mapped("before", before)
        for offset in offsets.values():
            require_int("the offset before which records are deleted", offset, -(2**63), 2**63 - 1)
        wait = self._broker_timeout(timeout_ms)

        def request(keys: list[TopicPartition], version: int) -> Any:
            topic = messages.DeleteRecordsRequest.DeleteRecordsTopic
            part = messages.DeleteRecordsRequest.DeleteRecordsPartition
            topics = [
                topic(
                    name=name, partitions=[part(partition_index=n, offset=offsets[TopicPartition(name, n)]) for n in of]
                )
                for name, of in by_topic(keys).items()
            ]
            return messages.DeleteRecordsRequest(topics=topics, timeout_ms=wait)

        def read(keys: list[TopicPartition], answer: Answer) -> Iterable[tuple[TopicPartition, int | BrokerError]]:
            for topic in answer.message.topics:
                for entry in topic.partitions:
                    key = TopicPartition(topic.name, entry.partition_index)
                    yield key, refusal(entry.error_code) or entry.low_watermark

        ask = Ask(api_key=DELETE_RECORDS, request=request, read=read, place=lambda key: Leader(*key))
        return await self._each(ask, offsets, timeout_ms, "partitions kept their records")


def _creatable(new: NewTopic, version: int) -> Any:
    new_request = messages.CreateTopicsRequest
    if (
        version < _DEFAULTS_VERSION
        and not new.replica_assignments
        and -1 in (new.num_partitions, new.replication_factor)
    ):
        raise UnsupportedVersion(
            f"topic {new.name!r}: brokers before Kafka 2.4 have no defaults for new topics; "
            "give num_partitions and replication_factor"
        )
    configs = config_texts("configs", new.configs)
    return new_request.CreatableTopic(
        name=new.name,
        num_partitions=new.num_partitions,
        replication_factor=new.replication_factor,
        assignments=[
            new_request.CreatableReplicaAssignment(partition_index=n, broker_ids=list(ids))
            for n, ids in new.replica_assignments.items()
        ],
        configs=[new_request.CreatableTopicConfig(name=name, value=value) for name, value in configs.items()],
    )


def _created(names: list[str], answer: Answer) -> Iterable[tuple[str, CreatedTopic | BrokerError]]:
    for entry in answer.message.topics:
        configs = {config.name: config.value for config in entry.configs or ()}
        created = CreatedTopic(
            entry.name, _topic_id(entry.topic_id), entry.num_partitions, entry.replication_factor, configs
        )
        yield entry.name, refusal(entry.error_code, entry.error_message) or created


def _described(names: list[str], answer: Answer) -> Iterable[tuple[str, TopicDescription | BrokerError]]:
    found = {entry.name: entry for entry in answer.message.topics}
    for name in names:
        entry = found.get(name)
        if entry is None:
            yield name, error(UNKNOWN_TOPIC_OR_PARTITION)()
            continue
        partitions = [
            PartitionDescription(
                part.partition_index,
                part.leader_id if part.leader_id >= 0 else None,
                part.leader_epoch,
                list(part.replica_nodes),
                list(part.isr_nodes),
                list(part.offline_replicas),
            )
            for part in sorted(entry.partitions, key=lambda part: part.partition_index)
        ]
        described = TopicDescription(
            name,
            _topic_id(entry.topic_id),
            entry.is_internal,
            partitions,
            authorized_operations(entry.topic_authorized_operations),
        )
        yield name, refusal(entry.error_code) or described


def _topic_id(topic_id: uuid.UUID) -> uuid.UUID | None:
    return None if topic_id == _NO_ID else topic_id
