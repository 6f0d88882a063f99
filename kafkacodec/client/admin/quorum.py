"""The quorum of the metadata log: describe it, add and remove voters (KIP-595, KIP-853)."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from typing import Any, Final

from kafkacodec import messages
from kafkacodec.arguments import require_int
from kafkacodec.client.admin.job import Ask, refusal
from kafkacodec.client.admin.operations import Operations, anywhere
from kafkacodec.client.core.calls import Answer
from kafkacodec.datatypes import NamedTuple
from kafkacodec.errors import BrokerError
from kafkacodec.messages.keys import ADD_RAFT_VOTER, DESCRIBE_QUORUM, REMOVE_RAFT_VOTER

__all__ = ["QuorumDescription", "QuorumOperations", "QuorumReplica"]

_METADATA_TOPIC: Final = "__cluster_metadata"
_MOST: Final = 2**31 - 1


class QuorumReplica(NamedTuple):
    """A controller or broker that replicates the metadata log. Times are in ms since 1970, or -1 if unknown."""

    id: int
    directory_id: uuid.UUID | None
    log_end_offset: int
    last_fetch_timestamp: int
    last_caught_up_timestamp: int


class QuorumDescription(NamedTuple):
    """The quorum of the metadata log."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: list[QuorumReplica]
    observers: list[QuorumReplica]


class QuorumOperations(Operations):
    """The calls on the quorum."""

    async def describe_metadata_quorum(self, *, timeout_ms: int | None = None) -> QuorumDescription:
        """Describe the voters and observers of the metadata log (Kafka 3.3 and later, with KRaft)."""

        def request(keys: list[str], version: int) -> Any:
            entry = messages.DescribeQuorumRequest
            topic = entry.TopicData(topic_name=_METADATA_TOPIC, partitions=[entry.PartitionData(partition_index=0)])
            return entry(topics=[topic])

        return await self._one(
            Ask(api_key=DESCRIBE_QUORUM, request=request, read=_quorum, place=anywhere), "", timeout_ms
        )

    async def add_raft_voter(
        self,
        voter_id: int,
        directory_id: uuid.UUID,
        endpoints: Mapping[str, tuple[str, int]],
        *,
        cluster_id: str | None = None,
        timeout_ms: int | None = None,
    ) -> None:
        """Make a controller that follows the metadata log a voter (Kafka 3.9 and later, ``kraft.version`` 1).

        Args:
            voter_id: its node id.
            directory_id: the id of its metadata directory, from the observers of `describe_metadata_quorum`.
            endpoints: host and port of each of its controller listeners, by listener name.
            cluster_id: if given, the call fails unless the cluster has this id.
            timeout_ms: for the whole call. Default: the client's ``default_api_timeout_ms``.

        Raises:
            BrokerError: such as DuplicateVoterError, UnsupportedVersionError where the voters are fixed.
        """
        _check(voter_id, directory_id)
        if not endpoints:
            raise ValueError("endpoints must have host and port of at least one listener")
        wait = self._broker_timeout(timeout_ms)

        def request(keys: list[str], version: int) -> Any:
            new = messages.AddRaftVoterRequest
            listeners = [new.Listener(name=name, host=host, port=port) for name, (host, port) in endpoints.items()]
            return new(
                cluster_id=cluster_id,
                timeout_ms=wait,
                voter_id=voter_id,
                voter_directory_id=directory_id,
                listeners=listeners,
            )

        await self._one(Ask(api_key=ADD_RAFT_VOTER, request=request, read=_done, place=anywhere), "", timeout_ms)

    async def remove_raft_voter(
        self,
        voter_id: int,
        directory_id: uuid.UUID,
        *,
        cluster_id: str | None = None,
        timeout_ms: int | None = None,
    ) -> None:
        """Make a voter an observer (Kafka 3.9 and later, ``kraft.version`` 1). It continues to follow the metadata log.

        Args:
            voter_id: its node id.
            directory_id: the id of its metadata directory, from the voters of `describe_metadata_quorum`.
            cluster_id: if given, the call fails unless the cluster has this id.
            timeout_ms: for the whole call. Default: the client's ``default_api_timeout_ms``.

        Raises:
            BrokerError: such as VoterNotFoundError, UnsupportedVersionError where the voters are fixed.
        """
        _check(voter_id, directory_id)

        def request(keys: list[str], version: int) -> Any:
            return messages.RemoveRaftVoterRequest(
                cluster_id=cluster_id, voter_id=voter_id, voter_directory_id=directory_id
            )

        await self._one(Ask(api_key=REMOVE_RAFT_VOTER, request=request, read=_done, place=anywhere), "", timeout_ms)


def _check(voter_id: int, directory_id: uuid.UUID) -> None:
    require_int("voter_id", voter_id, 0, _MOST)
    if not isinstance(directory_id, uuid.UUID):
        raise TypeError(f"directory_id must be a uuid.UUID, not {type(directory_id).__name__}")


def _done(keys: list[str], answer: Answer) -> Iterable[tuple[str, BrokerError | None]]:
    yield keys[0], refusal(answer.message.error_code, answer.message.error_message)


def _quorum(keys: list[str], answer: Answer) -> Iterable[tuple[str, QuorumDescription | BrokerError]]:
    whole = refusal(answer.message.error_code, answer.message.error_message)
    if whole is not None:
        yield keys[0], whole
        return
    for topic in answer.message.topics:
        for part in topic.partitions:
            found = QuorumDescription(
                part.leader_id,
                part.leader_epoch,
                part.high_watermark,
                [_replica(entry) for entry in part.current_voters],
                [_replica(entry) for entry in part.observers],
            )
            yield keys[0], refusal(part.error_code, part.error_message) or found


def _replica(entry: Any) -> QuorumReplica:
    directory = entry.replica_directory_id
    return QuorumReplica(
        entry.replica_id,
        directory if directory.int else None,
        entry.log_end_offset,
        entry.last_fetch_timestamp,
        entry.last_caught_up_timestamp,
    )
