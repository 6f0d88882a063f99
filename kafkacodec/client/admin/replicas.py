"""Replicas: reassignment, election of leaders, log directories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

from kafkacodec import messages
from kafkacodec.arguments import one_of
from kafkacodec.assignment.partitions import TopicPartition
from kafkacodec.client.admin.job import Ask, refusal
from kafkacodec.client.admin.operations import PARTITION, Operations, as_rows, at_broker, by_topic, mapped, pairs
from kafkacodec.client.checks import mapping
from kafkacodec.client.core.calls import Answer
from kafkacodec.datatypes import NamedTuple
from kafkacodec.errors import (
    ELECTION_NOT_NEEDED,
    ELIGIBLE_LEADERS_NOT_AVAILABLE,
    PREFERRED_LEADER_NOT_AVAILABLE,
    REPLICA_NOT_AVAILABLE,
    UNKNOWN_TOPIC_OR_PARTITION,
    BrokerError,
)
from kafkacodec.messages.keys import (
    ALTER_PARTITION_REASSIGNMENTS,
    ALTER_REPLICA_LOG_DIRS,
    DESCRIBE_LOG_DIRS,
    ELECT_LEADERS,
    LIST_PARTITION_REASSIGNMENTS,
)

__all__ = ["ElectionType", "LogDir", "Reassignment", "ReplicaOperations", "ReplicaSize", "TopicPartitionReplica"]

ElectionType = Literal["preferred", "unclean"]

_ELECTIONS: Final = ("preferred", "unclean")
# The preferred replica, or every eligible one, is not alive.
_NO_LEADER: Final = frozenset({PREFERRED_LEADER_NOT_AVAILABLE, ELIGIBLE_LEADERS_NOT_AVAILABLE})


class Reassignment(NamedTuple):
    """The replicas of a partition that is being moved."""

    replicas: list[int]
    adding_replicas: list[int]
    removing_replicas: list[int]


class TopicPartitionReplica(NamedTuple):
    """A partition on a broker; equal to the tuple ``(topic, partition, broker)``."""

    topic: str
    partition: int
    broker: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} on broker {self.broker}"


class ReplicaSize(NamedTuple):
    """A replica in a log directory. `size` is in bytes; `offset_lag` is the number of offsets it is behind.

    A `future` replica will replace the current one in another directory of the broker.
    """

    size: int
    offset_lag: int
    future: bool


class LogDir(NamedTuple):
    """A log directory of a broker. `error` is why it is offline; sizes in bytes are -1 before Kafka 3.3."""

    error: BrokerError | None
    replicas: dict[TopicPartition, ReplicaSize]
    total_bytes: int
    usable_bytes: int


class ReplicaOperations(Operations):
    """The calls on replicas, leaders and log directories."""

    async def alter_partition_reassignments(
        self, replicas: Mapping[tuple[str, int], Sequence[int] | None], *, timeout_ms: int | None = None
    ) -> None:
        """Move partitions to other brokers (Kafka 2.4 and later). Returns once the moves have begun.

        Args:
            replicas: the brokers for each partition, the preferred leader first; None cancels a move.
            timeout_ms: for the whole call. Default: the client's ``default_api_timeout_ms``.

        Raises:
            ItemErrors: by partition, such as InvalidReplicaAssignmentError, NoReassignmentInProgressError.
        """
        wanted = mapped("replicas", replicas)
        wait = self._broker_timeout(timeout_ms)

        def request(keys: list[TopicPartition], version: int) -> Any:
            new = messages.AlterPartitionReassignmentsRequest
            topics = []
            for name, numbers in by_topic(keys).items():
                parts = [(number, wanted[TopicPartition(name, number)]) for number in numbers]
                entries = [
                    new.ReassignablePartition(partition_index=number, replicas=None if ids is None else list(ids))
                    for number, ids in parts
                ]
                topics.append(new.ReassignableTopic(name=name, partitions=entries))
            return new(timeout_ms=wait, topics=topics)

        def read(keys: list[TopicPartition], answer: Answer) -> Iterable[tuple[TopicPartition, BrokerError | None]]:
            whole = refusal(answer.message.error_code, answer.message.error_message)
            if whole is not None:
                yield from ((key, whole) for key in keys)
            for topic in answer.message.responses:
                for part in topic.partitions:
                    refused = refusal(part.error_code, part.error_message)
                    yield TopicPartition(topic.name, part.partition_index), refused

        await self._each(
            Ask(api_key=ALTER_PARTITION_REASSIGNMENTS, request=request, read=read),
            wanted,
            timeout_ms,
            "partitions were not reassigned",
        )

    @as_rows(Reassignment, keys=PARTITION)
    async def list_partition_reassignments(
        self, partitions: Iterable[tuple[str, int]] | None = None, *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, Reassignment]:
        """List the partitions that are being moved, among these or all (Kafka 2.4 and later)."""
        wanted = None if partitions is None else by_topic(pairs(partitions))
        wait = self._broker_timeout(timeout_ms)

        def request(keys: list[str], version: int) -> Any:
            entry = messages.ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics
            topics = None
            if wanted is not None:
                topics = [entry(name=name, partition_indexes=numbers) for name, numbers in wanted.items()]
            return messages.ListPartitionReassignmentsRequest(timeout_ms=wait, topics=topics)

        def read(keys: list[str], answer: Answer) -> Iterable[tuple[str, dict[TopicPartition, Any] | BrokerError]]:
            found = {
                TopicPartition(topic.name, part.partition_index): Reassignment(
                    list(part.replicas), list(part.adding_replicas), list(part.removing_replicas)
                )
                for topic in answer.message.topics
                for part in topic.partitions
            }
            yield keys[0], refusal(answer.message.error_code, answer.message.error_message) or found

        return await self._one(Ask(api_key=LIST_PARTITION_REASSIGNMENTS, request=request, read=read), "", timeout_ms)

    @as_rows(TopicPartition)
    async def elect_leaders(
        self,
        partitions: Iterable[tuple[str, int]],
        *,
        election_type: ElectionType = "preferred",
        timeout_ms: int | None = None,
    ) -> list[TopicPartition]:
        """Make the first replica of partitions the leader, or with ``"unclean"`` any live replica.

        An unclean election (Kafka 2.4 and later) may lose records.

        Returns:
            The partitions whose leader changed; the others already had the right one.

        Raises:
            ItemErrors: by partition, such as PreferredLeaderNotAvailableError or EligibleLeadersNotAvailableError: no
                eligible replica is alive.
        """
        one_of("election_type", election_type, _ELECTIONS)
        wait = self._broker_timeout(timeout_ms)

        def request(keys: list[TopicPartition], version: int) -> Any:
            topic = messages.ElectLeadersRequest.TopicPartitions
            return messages.ElectLeadersRequest(
                election_type=_ELECTIONS.index(election_type),
                topic_partitions=[topic(topic=name, partitions=of) for name, of in by_topic(keys).items()],
                timeout_ms=wait,
            )

        unclean = election_type == "unclean"
        ask = Ask(
            api_key=ELECT_LEADERS,
            request=request,
            read=_elected,
            final=_NO_LEADER | {UNKNOWN_TOPIC_OR_PARTITION},
            least=1 if unclean else 0,
            needs="an unclean election" if unclean else "",
        )
        found = await self._each(ask, pairs(partitions), timeout_ms, "leaders were not elected")
        return [key for key, changed in found.items() if changed]

    @as_rows(LogDir, keys={"broker": int}, inner={"path": str})
    async def describe_log_dirs(
        self, brokers: Iterable[int] | None = None, *, timeout_ms: int | None = None
    ) -> dict[int, dict[str, LogDir]]:
        """Describe the log directories of brokers by path, with their replicas (Kafka 1.0 and later).

        Args:
            brokers: only these. Default: all.
            timeout_ms: for the whole call. Default: the client's ``default_api_timeout_ms``.

        Raises:
            ItemErrors: by broker, such as ClusterAuthorizationFailedError.
        """
        ids = await self._broker_ids(timeout_ms) if brokers is None else list(brokers)

        def request(keys: list[int], version: int) -> Any:
            return messages.DescribeLogDirsRequest(topics=None)

        def read(keys: list[int], answer: Answer) -> Iterable[tuple[int, dict[str, LogDir] | BrokerError]]:
            found = {entry.log_dir: _log_dir(entry) for entry in answer.message.results}
            yield keys[0], refusal(answer.message.error_code) or found

        ask = Ask(api_key=DESCRIBE_LOG_DIRS, request=request, read=read, place=at_broker)
        return await self._each(ask, ids, timeout_ms, "brokers did not describe their log directories")

    async def alter_replica_log_dirs(
        self, paths: Mapping[tuple[str, int, int], str], *, timeout_ms: int | None = None
    ) -> None:
        """Move replicas to other log directories of their brokers (Kafka 1.0 and later).

        Returns once the moves have begun. A broker without the replica remembers the directory, and creates the replica
        there if it is assigned later; such an item has the error ReplicaNotAvailableError.

        Args:
            paths: the new directory by topic, partition and broker.
            timeout_ms: for the whole call. Default: the client's ``default_api_timeout_ms``.

        Raises:
            ItemErrors: by replica, such as LogDirNotFoundError, ReplicaNotAvailableError.
        """
        wanted = {TopicPartitionReplica(*key): path for key, path in mapping("paths", paths).items()}

        def request(keys: list[TopicPartitionReplica], version: int) -> Any:
            new = messages.AlterReplicaLogDirsRequest
            dirs: dict[str, list[TopicPartition]] = {}
            for key in keys:
                dirs.setdefault(wanted[key], []).append(TopicPartition(key.topic, key.partition))
            entries = [
                new.AlterReplicaLogDir(
                    path=path,
                    topics=[
                        new.AlterReplicaLogDirTopic(name=name, partitions=of) for name, of in by_topic(moved).items()
                    ],
                )
                for path, moved in dirs.items()
            ]
            return new(dirs=entries)

        def read(
            keys: list[TopicPartitionReplica], answer: Answer
        ) -> Iterable[tuple[TopicPartitionReplica, BrokerError | None]]:
            for topic in answer.message.results:
                for part in topic.partitions:
                    key = TopicPartitionReplica(topic.topic_name, part.partition_index, keys[0].broker)
                    yield key, refusal(part.error_code)

        ask = Ask(
            api_key=ALTER_REPLICA_LOG_DIRS,
            request=request,
            read=read,
            place=lambda key: key.broker,
            final=frozenset({REPLICA_NOT_AVAILABLE}),  # the broker has remembered the directory: the request succeeded
        )
        await self._each(ask, wanted, timeout_ms, "replicas were not moved")


def _elected(keys: list[TopicPartition], answer: Answer) -> Iterable[tuple[TopicPartition, bool | BrokerError]]:
    whole = refusal(answer.message.error_code)
    if whole is not None:
        yield from ((key, whole) for key in keys)
        return
    for topic in answer.message.replica_election_results:
        for part in topic.partition_result:
            key = TopicPartition(topic.topic, part.partition_id)
            if part.error_code == ELECTION_NOT_NEEDED:
                yield key, False
            else:
                yield key, refusal(part.error_code, part.error_message) or True


def _log_dir(entry: Any) -> LogDir:
    replicas = {
        TopicPartition(topic.name, part.partition_index): ReplicaSize(
            part.partition_size, part.offset_lag, part.is_future_key
        )
        for topic in entry.topics
        for part in topic.partitions
    }
    return LogDir(refusal(entry.error_code), replicas, entry.total_bytes, entry.usable_bytes)
