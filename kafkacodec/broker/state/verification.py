"""Verification that a partition belongs to a producer's transaction, before Produce and TxnOffsetCommit append.

A broker asks the transaction coordinator with AddPartitionsToTxn. For producers of the second version of transactions,
the newest version of that request also adds the partition (KIP-890).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from kafkacodec import messages
from kafkacodec.broker.state.offsets import partitions_by_topic
from kafkacodec.errors import INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE, PRODUCER_FENCED, TRANSACTION_ABORTABLE
from kafkacodec.messages import keys

__all__ = ["VERIFY_VERSION", "verification", "verified"]

VERIFY_VERSION: Final = 5
"""The version of the requests that `verification` makes."""

# The first versions of an API: whose clients know TRANSACTION_ABORTABLE, and which adds partitions itself.
_KNOWS_ABORTABLE = {keys.PRODUCE: 11, keys.TXN_OFFSET_COMMIT: 4}
_ADDS = {keys.PRODUCE: 12, keys.TXN_OFFSET_COMMIT: 5}


def verification(
    api: int, version: int, transactional_id: str, producer: tuple[int, int], places: Iterable[tuple[str, int]]
) -> Any:
    """Return the request to the transaction coordinator, in `VERIFY_VERSION`.

    Args:
        api, version: of the client's request.
        transactional_id: of the transaction.
        producer: producer id and epoch.
        places: the partitions to write; for offsets, the one of ``__consumer_offsets``.
    """
    request = messages.AddPartitionsToTxnRequest
    topic = request.AddPartitionsToTxnTopic
    topics = [topic(name=name, partitions=numbers) for name, numbers in partitions_by_topic(places).items()]
    asked = request.AddPartitionsToTxnTransaction(
        transactional_id=transactional_id,
        producer_id=producer[0],
        producer_epoch=producer[1],
        verify_only=version < _ADDS[api],
        topics=topics,
    )
    return request(transactions=[asked])


def verified(answer: Any, api: int, version: int) -> dict[tuple[str, int], int]:
    """Return the error code of each partition, for the client's version of the API; 0 allows the write."""
    older = {PRODUCER_FENCED: INVALID_PRODUCER_EPOCH}
    if version < _KNOWS_ABORTABLE[api]:
        older[TRANSACTION_ABORTABLE] = INVALID_TXN_STATE
    return {
        (topic.name, row.partition_index): older.get(row.partition_error_code, row.partition_error_code)
        for result in answer.results_by_transaction
        for topic in result.topic_results
        for row in topic.results_by_partition
    }
