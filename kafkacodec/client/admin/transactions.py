"""Producers and transactions: describe, list, end, abort and fence."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from kafkacodec import messages
from kafkacodec.assignment.partitions import TopicPartition
from kafkacodec.client.admin.job import Ask, Leader, refusal
from kafkacodec.client.admin.operations import PARTITION, Operations, as_rows, at_broker, by_topic, pairs, several
from kafkacodec.client.core.calls import Answer, Coordinator
from kafkacodec.client.core.prepared import PreparedTransaction
from kafkacodec.datatypes import NamedTuple
from kafkacodec.errors import BrokerError
from kafkacodec.messages.keys import (
    DESCRIBE_PRODUCERS,
    DESCRIBE_TRANSACTIONS,
    END_TXN,
    INIT_PRODUCER_ID,
    LIST_TRANSACTIONS,
    WRITE_TXN_MARKERS,
)

__all__ = [
    "FencedProducer",
    "ProducerState",
    "TransactionDescription",
    "TransactionListing",
    "TransactionOperations",
]

_LAST_OF_VERSION_1: Final = 4  # of EndTxn
_FENCING_TIMEOUT_MS = 1  # for a transaction that never begins


class ProducerState(NamedTuple):
    """An idempotent or transactional producer known to a partition.

    Times are in ms since 1970. `transaction_start_offset` is -1 without an open transaction, `coordinator_epoch` is -1
    without any transaction so far.
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    transaction_start_offset: int


class TransactionListing(NamedTuple):
    """A transactional id. `state` is Kafka's term, such as ``Ongoing``; `coordinator` is a broker id."""

    transactional_id: str
    producer_id: int
    state: str
    coordinator: int


class TransactionDescription(NamedTuple):
    """The latest transaction of a transactional id. `start_time_ms` is in ms since 1970, or -1 while none is open."""

    transactional_id: str
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_time_ms: int
    partitions: list[TopicPartition]
    coordinator: int


class FencedProducer(NamedTuple):
    """The new producer id and epoch of a transactional id; its older producers are refused."""

    producer_id: int
    producer_epoch: int


class TransactionOperations(Operations):
    """The calls on producers and transactions."""

    @as_rows(ProducerState, keys=PARTITION)
    async def describe_producers(
        self, partitions: Iterable[tuple[str, int]], *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, list[ProducerState]]:
        """Describe the idempotent and transactional producers of partitions, from their leaders (Kafka 2.8 and later).

        Raises:
            ItemErrors: by partition, such as TopicAuthorizationFailedError.
        """

        def request(keys: list[TopicPartition], version: int) -> Any:
            topic = messages.DescribeProducersRequest.TopicRequest
            topics = [topic(name=name, partition_indexes=numbers) for name, numbers in by_topic(keys).items()]
            return messages.DescribeProducersRequest(topics=topics)

        def read(
            keys: list[TopicPartition], answer: Answer
        ) -> Iterable[tuple[TopicPartition, list[ProducerState] | BrokerError]]:
            for topic in answer.message.topics:
                for entry in topic.partitions:
                    key = TopicPartition(topic.name, entry.partition_index)
                    yield key, refusal(entry.error_code, entry.error_message) or _producers(entry)

        ask = Ask(api_key=DESCRIBE_PRODUCERS, request=request, read=read, place=lambda key: Leader(*key))
        return await self._each(ask, pairs(partitions), timeout_ms, "partitions could not be described")

    @as_rows(TransactionListing)
    async def list_transactions(
        self,
        *,
        states: Iterable[str] = (),
        producer_ids: Iterable[int] = (),
        duration_ms: int = -1,
        pattern: str | None = None,
        timeout_ms: int | None = None,
    ) -> dict[str, TransactionListing]:
        """List the transactional ids of all brokers (Kafka 3.0 and later).

        Args:
            states: only transactions in these states, such as ``["Ongoing"]``.
            producer_ids: only transactions of these producers.
            duration_ms: only transactions that have been open for longer (Kafka 3.8 and later).
            pattern: only transactional ids that match this RE2 regular expression (Kafka 4.1 and later).
            timeout_ms: for the whole call. Default: the client's ``default_api_timeout_ms``.

        Raises:
            ItemErrors: by broker; ``results`` has the transactions of the other brokers.
            ValueError: brokers do not know a state.
        """
        wanted, producers = several("states", states), list(producer_ids)

        def request(brokers: list[int], version: int) -> Any:
            return messages.ListTransactionsRequest(
                state_filters=wanted,
                producer_id_filters=producers,
                duration_filter=duration_ms,
                transactional_id_pattern=pattern,
            )

        ask = Ask(
            api_key=LIST_TRANSACTIONS,
            request=request,
            read=_listed,
            place=at_broker,
            least=2 if pattern is not None else 1 if duration_ms >= 0 else 0,
            needs="pattern" if pattern is not None else "duration_ms" if duration_ms >= 0 else "",
        )
        brokers = await self._broker_ids(timeout_ms)
        lists = await self._each(ask, brokers, timeout_ms, "brokers did not list their transactions")
        unknown = {state for _, states in lists.values() for state in states if state in wanted}
        if unknown:
            raise ValueError(f"brokers do not know the transaction state {', '.join(map(repr, sorted(unknown)))}")
        return {found.transactional_id: found for listed, _ in lists.values() for found in sorted(listed)}

    @as_rows(TransactionDescription)
    async def describe_transactions(
        self, transactional_ids: str | Iterable[str], *, timeout_ms: int | None = None
    ) -> dict[str, TransactionDescription]:
        """Describe the latest transactions of transactional ids (Kafka 3.0 and later).

        Raises:
            ItemErrors: by id, such as TransactionalIdNotFoundError.
        """

        def request(keys: list[str], version: int) -> Any:
            return messages.DescribeTransactionsRequest(transactional_ids=keys)

        ask = Ask(api_key=DESCRIBE_TRANSACTIONS, request=request, read=_described, place=_coordinator)
        ids = several("transactional_ids", transactional_ids)
        return await self._each(ask, ids, timeout_ms, "transactions could not be described")

    async def end_transactions(
        self, prepared: Iterable[PreparedTransaction], *, commit: bool, timeout_ms: int | None = None
    ) -> None:
        """Commit or abort transactions left open by `Producer.prepare_transaction`.

        Repeating the call with the same decision is not an error.

        Args:
            prepared: the transactions.
            commit: whether to commit them; False aborts them.
            timeout_ms: for the whole call. Default: the client's ``default_api_timeout_ms``.

        Raises:
            ItemErrors: by transactional id, such as ProducerFencedError, InvalidProducerEpochError or
                InvalidTxnStateError: a newer producer or a timeout has ended the transaction. The others were ended.
        """
        found = {one.transactional_id: one for one in prepared if not one.is_empty}

        def request(keys: list[str], version: int) -> Any:
            one = found[keys[0]]
            return messages.EndTxnRequest(
                transactional_id=one.transactional_id,
                producer_id=one.producer_id,
                producer_epoch=one.producer_epoch,
                committed=commit,
            )

        def read(keys: list[str], answer: Answer) -> Iterable[tuple[str, BrokerError | None]]:
            yield keys[0], refusal(answer.message.error_code)

        version_1 = any(one.transaction_version < 2 for one in found.values())
        most = _LAST_OF_VERSION_1 if version_1 else None
        ask = Ask(api_key=END_TXN, request=request, read=read, place=_coordinator, most=most, one_by_one=True)
        await self._each(ask, [*found], timeout_ms, "transactions were not ended")

    async def abort_transaction(
        self,
        topic: str,
        partition: int,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        *,
        timeout_ms: int | None = None,
    ) -> None:
        """Abort a hanging transaction in a partition, which its coordinator has forgotten (KIP-664).

        `describe_producers` returns the last three arguments; use 0 for a `coordinator_epoch` of -1. Do not use this
        while the coordinator still has the transaction: this partition would then differ from its other partitions.

        Raises:
            BrokerError: such as InvalidProducerEpochError, TransactionCoordinatorFencedError.
        """
        key = TopicPartition(topic, partition)

        def request(keys: list[TopicPartition], version: int) -> Any:
            place = messages.WriteTxnMarkersRequest.WritableTxnMarkerTopic(name=topic, partition_indexes=[partition])
            marker = messages.WriteTxnMarkersRequest.WritableTxnMarker(
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                transaction_result=False,
                topics=[place],
                coordinator_epoch=coordinator_epoch,
            )
            return messages.WriteTxnMarkersRequest(markers=[marker])

        def read(keys: list[TopicPartition], answer: Answer) -> Iterable[tuple[TopicPartition, BrokerError | None]]:
            for marker in answer.message.markers:
                for found in marker.topics:
                    for entry in found.partitions:
                        yield TopicPartition(found.name, entry.partition_index), refusal(entry.error_code)

        ask = Ask(api_key=WRITE_TXN_MARKERS, request=request, read=read, place=lambda key: Leader(*key))
        await self._one(ask, key, timeout_ms)

    @as_rows(FencedProducer, keys={"transactional_id": str})
    async def fence_producers(
        self, transactional_ids: str | Iterable[str], *, timeout_ms: int | None = None
    ) -> dict[str, FencedProducer]:
        """Fence the present producers of transactional ids, and abort their open transactions.

        Raises:
            ItemErrors: by id, such as TransactionalIdAuthorizationFailedError.
        """

        def request(keys: list[str], version: int) -> Any:
            return messages.InitProducerIdRequest(transactional_id=keys[0], transaction_timeout_ms=_FENCING_TIMEOUT_MS)

        def read(keys: list[str], answer: Answer) -> Iterable[tuple[str, FencedProducer | BrokerError]]:
            found = FencedProducer(answer.message.producer_id, answer.message.producer_epoch)
            yield keys[0], refusal(answer.message.error_code) or found

        ask = Ask(api_key=INIT_PRODUCER_ID, request=request, read=read, place=_coordinator, one_by_one=True)
        ids = several("transactional_ids", transactional_ids)
        return await self._each(ask, ids, timeout_ms, "transactional ids were not fenced")


def _coordinator(transactional_id: str) -> Coordinator:
    return Coordinator("transaction", transactional_id)


def _producers(entry: Any) -> list[ProducerState]:
    return [
        ProducerState(
            found.producer_id,
            found.producer_epoch,
            found.last_sequence,
            found.last_timestamp,
            found.coordinator_epoch,
            found.current_txn_start_offset,
        )
        for found in entry.active_producers
    ]


def _listed(
    brokers: list[int], answer: Answer
) -> Iterable[tuple[int, tuple[list[TransactionListing], list[str]] | BrokerError]]:
    message = answer.message
    found = [
        TransactionListing(entry.transactional_id, entry.producer_id, entry.transaction_state, brokers[0])
        for entry in message.transaction_states
    ]
    yield brokers[0], refusal(message.error_code) or (found, list(message.unknown_state_filters))


def _described(keys: list[str], answer: Answer) -> Iterable[tuple[str, TransactionDescription | BrokerError]]:
    for entry in answer.message.transaction_states:
        found = TransactionDescription(
            entry.transactional_id,
            entry.transaction_state,
            entry.producer_id,
            entry.producer_epoch,
            entry.transaction_timeout_ms,
            entry.transaction_start_time_ms,
            [TopicPartition(topic.topic, number) for topic in entry.topics for number in topic.partitions],
            answer.node,
        )
        yield entry.transactional_id, refusal(entry.error_code) or found
