"""Produce (KIP-98, KIP-467, KIP-516, KIP-890)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from kafkacodec import errors, messages
from kafkacodec.broker.kafka.clustering.leaders import Leaders
from kafkacodec.broker.kafka.transactions import verify
from kafkacodec.broker.topics.batches import Produced, Refused, accept
from kafkacodec.broker.topics.conversion import accept_set
from kafkacodec.net.service import CLOSE, NO_ANSWER, NOTHING, Append, Effect, Reply

if TYPE_CHECKING:
    from kafkacodec.broker.kafka.node import Node
    from kafkacodec.broker.kafka.request import Request
    from kafkacodec.broker.topics.partition import Appended, Partition

__all__ = ["produce"]

_BATCHES = 3
_BY_ID = 13
_TELLS_LEADER = 10
_ADMIN = "__admin_client"


def produce(node: Node, request: Request) -> Any:
    """Append a batch to each partition.

    - Before v3: message sets of magic 0 and 1.
    - v3: record batches of magic 2. v5: the log's start. v7: zstd. v8: errors of records.
    - v9: flexible. v10: leaders. v12: adds partitions to a transaction. v13: topics by id.
    """
    message = request.message
    work = _Work(node, request)
    for topic in message.topic_data:
        work.topic(topic)
    return work.begin()


class _Work:
    """One request: its answer, and the number of unfinished appends."""

    def __init__(self, node: Node, request: Request) -> None:
        self._node, self._request = node, request
        self._response = messages.ProduceResponse()
        self._appends: list[Append] = []
        self._unverified: list[tuple[Append, Any, Produced]] = []
        self._left = 0
        self._leaders: Leaders | None = None

    def topic(self, topic: Any) -> None:
        """Check the partitions of a topic; `begin` appends the valid ones."""
        node, request, response = self._node, self._request, self._response
        by_id = request.version >= _BY_ID
        found = node.topic_by(topic.name, topic.topic_id, by_id)
        made = response.TopicProduceResponse()
        made.name, made.topic_id = topic.name, topic.topic_id
        response.responses.append(made)
        name = found.name if found is not None else topic.name
        for asked in topic.partition_data:
            row = response.PartitionProduceResponse()
            row.index, row.base_offset = asked.index, -1
            made.partition_responses.append(row)
            partition = None if found is None else node.topics.partition(name, asked.index)
            code = self._refuses(name, asked.index, partition, by_id and found is None)
            if not code and partition is not None:
                self._partition(row, partition, asked.records)
                continue
            row.error_code = code
            if code == errors.NOT_LEADER_OR_FOLLOWER and request.version >= _TELLS_LEADER:
                self._leaders = self._leaders or Leaders(request)
                self._leaders.add(node, row.current_leader, name, asked.index)
            elif code == errors.NOT_ENOUGH_REPLICAS and partition is not None:
                row.log_start_offset = partition.start_offset

    def begin(self) -> Effect:
        """Return the effect: all appends, or the answer if there are none; verify a transaction's partitions first."""
        if not self._unverified:
            return self._append()
        _, _, first = self._unverified[0]
        producer = first.producer_id, first.producer_epoch
        places = [append.log for append, _, _ in self._unverified]
        transactional_id = self._request.message.transactional_id
        return verify(self._node, self._request, transactional_id, producer, places, self._verified)

    def _verified(self, codes: dict[tuple[str, int], int]) -> Effect:
        for append, row, _ in self._unverified:
            row.error_code = codes.get(append.log, errors.NONE)
            if row.error_code == errors.INVALID_TXN_STATE:
                row.error_message = "the partition is not part of the transaction"
            if not row.error_code:
                self._appends.append(append)
        return self._append()

    def _append(self) -> Effect:
        self._left = len(self._appends)
        return Effect(self._appends) if self._appends else self._answer()

    def _refuses(self, name: str, number: int, partition: Partition | None, unknown_id: bool) -> int:
        if self._request.message.acks not in (-1, 0, 1):
            return errors.INVALID_REQUIRED_ACKS
        if unknown_id:
            return errors.UNKNOWN_TOPIC_ID
        if partition is None:
            return self._node.topics.missing(name, number)
        if self._node.is_internal(name) and self._request.client_id != _ADMIN:
            return errors.INVALID_TOPIC_EXCEPTION
        if self._node.brokers.several:
            return self._refuses_here(partition)
        return errors.NONE

    def _refuses_here(self, partition: Partition) -> int:
        """Why one of several brokers refuses a partition: another one leads it, or too few replicas are in sync."""
        code = self._node.leader_error(self._request, *partition.key)
        if not code and self._request.message.acks == -1:
            replicas, isr, _ = self._node.brokers.replicas(*partition.key)
            if len(isr) < min(len(replicas), partition.config.min_insync_replicas):
                return errors.NOT_ENOUGH_REPLICAS
        return code

    def _partition(self, row: Any, partition: Partition, records: Any) -> None:
        version = self._request.version
        take = accept if version >= _BATCHES else accept_set
        found = take(records, partition.config, version, self._request.now)
        if found is None:
            return
        if isinstance(found, Produced):
            append = Append(partition.key, found, partial(self._done, row, partition, found))
            if not found.is_transactional or partition.is_open(found.producer_id):
                self._appends.append(append)
            elif self._request.message.transactional_id is None:
                row.error_code = errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            else:
                partition.beginning(found, self._request.now)
                self._unverified.append((append, row, found))
        else:
            self._refused(row, partition, found)

    def _refused(self, row: Any, partition: Partition, found: Refused) -> None:
        row.error_code, row.error_message = found.code, found.text
        made = self._response.BatchIndexAndErrorMessage
        row.record_errors = [made(batch_index=at, batch_index_error_message=text) for at, text in found.records]
        if found.late:
            row.log_start_offset = partition.start_offset

    def _done(
        self, row: Any, partition: Partition, produced: Produced, result: Appended | None, failure: Any, now: float
    ) -> Effect:
        if result is None:
            row.error_code = errors.KAFKA_STORAGE_ERROR
        elif result.code:
            row.error_code = result.code
            if result.code != errors.INVALID_RECORD:
                row.log_start_offset = partition.start_offset
        else:
            row.base_offset, row.log_append_time_ms = result.base_offset, result.append_time
            row.log_start_offset = partition.start_offset
        self._left -= 1
        return NOTHING if self._left else self._answer()

    def _answer(self) -> Effect:
        """Return the answer; after an error with acks=0, close the connection, so that the client asks again."""
        response: Any = self._response
        if self._leaders is not None:
            response.node_endpoints = self._leaders.endpoints(self._node, response.NodeEndpoint)
        if self._request.message.acks == 0:
            failed = any(row.error_code for topic in response.responses for row in topic.partition_responses)
            response = CLOSE if failed else NO_ANSWER
        return Effect((), (Reply(self._request.to, response),))
