"""Produce (KIP-98, KIP-467, KIP-516, KIP-890)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from kafkacodec import errors, messages
from kafkacodec.broker.kafka.clustering.leaders import Leaders
from kafkacodec.broker.kafka.transactions import verify
from kafkacodec.broker.topics._head import CORRUPT, NO_BATCH, TRANSACTIONAL, glance
from kafkacodec.broker.topics.batches import Produced, Refused, accept
from kafkacodec.broker.topics.conversion import accept_set
from kafkacodec.net.service import CLOSE, NO_ANSWER, NOTHING, Append, Effect, Reply

if TYPE_CHECKING:
    import uuid
    from collections.abc import Sequence

    from kafkacodec.broker.kafka.node import Node
    from kafkacodec.broker.kafka.request import Request
    from kafkacodec.broker.topics.partition import Appended, Partition

__all__ = ["produce"]

_BATCHES = 3
_ADDS = 12
_BY_ID = 13
_TELLS_LEADER = 10
_ADMIN = "__admin_client"
_NO_BATCHES = "the records do not begin with a record batch"

Place = tuple["str | uuid.UUID", int]


def produce(node: Node, request: Request) -> Any:
    """Append a batch to each partition.

    - Before v3: message sets of magic 0 and 1.
    - v3: record batches of magic 2. v5: the log's start. v7: zstd. v8: errors of records.
    - v9: flexible. v10: leaders. v12: adds partitions to a transaction. v13: topics by id.
    """
    topics = request.message.topic_data
    work = _Work(node, request, _refuses_all(request.message, topics))
    for topic in topics:
        work.topic(topic)
    if work.fails:
        work = _Work(node, request, errors.UNKNOWN_SERVER_ERROR)
        for topic in topics:
            work.topic(topic)
    return work.begin()


def _refuses_all(message: Any, topics: Sequence[Any]) -> int:
    """The error of all partitions: what the first batch of one of them has is an error of the whole request."""
    for topic in topics:
        for asked in topic.partition_data:
            begins = NO_BATCH if asked.records is None else glance(asked.records)
            if begins == CORRUPT:
                return errors.CORRUPT_MESSAGE
            if begins == TRANSACTIONAL:
                return errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED if message.transactional_id is None else errors.NONE
    return errors.NONE


class _Work:
    """One request: its answer, and the number of unfinished appends.

    Args:
        code: an error of all partitions.

    Attributes:
        fails: whether a partition has records that fail the whole request.
    """

    def __init__(self, node: Node, request: Request, code: int) -> None:
        self._node, self._request, self._code = node, request, code
        self._version, self._acks, self._now = request.version, request.message.acks, node.clock()
        self._response = messages.ProduceResponse()
        self._topics: dict[str | uuid.UUID, Any] = {}
        self._rows: dict[Place, Any] = {}
        self._checked: dict[Place, tuple[Any, Partition, Produced | Refused | None]] = {}
        self._refused_early: set[Place] = set()
        self._appends: list[Append] = []
        self._unverified: list[tuple[Append, Any, Produced]] = []
        self._left = 0
        self._leaders: Leaders | None = None
        self.fails = False

    def topic(self, topic: Any) -> None:
        """Check the partitions of a topic; `begin` appends the valid ones."""
        by_id, name = self._version >= _BY_ID, topic.name
        found = self._node.topic_by(name, topic.topic_id, by_id)
        key = topic.topic_id if by_id else name
        if found is not None:
            name = found.name
        for asked in topic.partition_data:
            number = asked.index
            place = (key, number)
            row = self._rows.get(place) or self._row(topic, place)
            if self._code:
                row.error_code = self._code
                row.error_message = _NO_BATCHES if self._code == errors.CORRUPT_MESSAGE else None
            elif found is None and by_id:
                row.error_code = errors.UNKNOWN_TOPIC_ID
            else:
                self._check(place, row, (name, number), asked.records)

    def _row(self, topic: Any, place: Place) -> Any:
        """A row of the answer, in that of its topic, without an error."""
        key, number = place
        made = self._topics.get(key)
        if made is None:
            made = self._topics[key] = self._response.TopicProduceResponse()
            made.name, made.topic_id = topic.name, topic.topic_id
            self._response.responses.append(made)
        row = self._rows[place] = self._response.PartitionProduceResponse()
        row.index, row.base_offset = number, -1
        made.partition_responses.append(row)
        return row

    def _check(self, place: Place, row: Any, key: tuple[str, int], records: memoryview | None) -> None:
        """Check the records of a partition; of a repeated one, the last records count."""
        partition = self._node.topics.partition(*key)
        if partition is None:
            self._fail(row, self._node.topics.missing(*key), key)
            return
        take = accept if self._version >= _BATCHES else accept_set
        found = take(records, partition.config, self._version, self._now)
        if type(found) is Refused and found.early:
            self._refused(row, partition, found)
            self._refused_early.add(place)
            self.fails = self.fails or found.code == errors.UNKNOWN_SERVER_ERROR
        else:
            self._checked[place] = (row, partition, found)

    def begin(self) -> Effect:
        """Return the effect: all appends, or the answer if there are none; verify a transaction's partitions first."""
        for place, (row, partition, found) in self._checked.items():
            if place in self._refused_early:  # the answer has that, and the others are appended all the same
                row = self._response.PartitionProduceResponse()
            self._partition(row, partition, found)
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
        self._request.settled = True
        return Effect(self._appends) if self._appends else self._answer()

    def _refuses(self, partition: Partition) -> int:
        if self._acks not in (-1, 0, 1):
            return errors.INVALID_REQUIRED_ACKS
        node = self._node
        if node.is_internal(partition.key[0]) and self._request.client_id != _ADMIN:
            return errors.INVALID_TOPIC_EXCEPTION
        if node.brokers.several:
            return self._refuses_here(partition)
        return errors.NONE

    def _fail(self, row: Any, code: int, key: tuple[str, int]) -> None:
        """Put an error in a row, with the leader if another broker leads the partition."""
        row.error_code = code
        if code == errors.NOT_LEADER_OR_FOLLOWER and self._version >= _TELLS_LEADER:
            self._leaders = self._leaders or Leaders(self._request)
            self._leaders.add(self._node, row.current_leader, *key)

    def _refuses_here(self, partition: Partition) -> int:
        """Why one of several brokers refuses a partition: another one leads it, or too few replicas are in sync."""
        code = self._node.leader_error(self._request, *partition.key)
        if not code and self._acks == -1:
            replicas, isr, _ = self._node.brokers.replicas(*partition.key)
            if len(isr) < min(len(replicas), partition.config.min_insync_replicas):
                return errors.NOT_ENOUGH_REPLICAS
        return code

    def _partition(self, row: Any, partition: Partition, found: Produced | Refused | None) -> None:
        code = self._refuses(partition)
        if code:
            self._fail(row, code, partition.key)
            if code == errors.NOT_ENOUGH_REPLICAS:
                row.log_start_offset = partition.start_offset
        elif type(found) is Refused:
            self._refused(row, partition, found)
        elif type(found) is not Produced:
            pass  # nothing to append
        elif found.is_transactional and partition.is_fenced(found):
            row.error_code = errors.INVALID_PRODUCER_EPOCH
        else:
            append = Append(partition.key, found, partial(self._done, row, partition))
            if found.is_transactional and not partition.continues(found):
                partition.beginning(found, self._now, adds=self._version >= _ADDS)
                self._unverified.append((append, row, found))
            else:
                self._appends.append(append)

    def _refused(self, row: Any, partition: Partition, found: Refused) -> None:
        row.error_code, row.error_message = found.code, found.text
        made = self._response.BatchIndexAndErrorMessage
        row.record_errors = [made(batch_index=at, batch_index_error_message=text) for at, text in found.records]
        if found.late:
            row.log_start_offset = partition.start_offset

    def _done(self, row: Any, partition: Partition, result: Appended | None, failure: Any, now: float) -> Effect:
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
        if self._acks == 0:
            self._node.quotas.account(self._request, response, lambda answer: ())  # its client waits too
            failed = any(row.error_code for topic in response.responses for row in topic.partition_responses)
            response = CLOSE if failed else NO_ANSWER
        return Effect((), (Reply(self._request.to, response),))
