"""Micro-batches in transactions: which one was written last, and the end of its transactions.

Each task prepares a transaction of its own. When all have, the driver decides that the micro-batch is written: it
commits an offset, the number of the next micro-batch, for the group that is named like the prefix of the transactional
ids. This is one record, so it is there or not. Then it commits the transactions. If the driver ends before that, Spark
runs the micro-batch again: its tasks see the decision and send nothing, and the driver commits what is still open.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from kafkacodec.client import Admin, GroupOffset, PreparedTransaction
from kafkacodec.errors import ItemErrors, KafkaCodecError
from kafkacodec.spark.broker.client_options import shared_options
from kafkacodec.spark.broker.connections import borrowed
from kafkacodec.spark.broker.producing import Sent, transactional_id
from kafkacodec.spark.broker.write_options import SinkOptions

__all__ = ["commit", "end", "is_decided"]

logger = logging.getLogger("kafkacodec.spark")

_COMMITTED = ("PrepareCommit", "CompleteCommit")


def is_decided(options: SinkOptions, number: int) -> bool:
    """Whether a micro-batch was written, or is certain to be."""
    with _admin(options) as admin:
        newest = _newest(admin, options)
    return newest is not None and newest.offset > number


def commit(options: SinkOptions, sent: Sequence[Sent], number: int) -> None:
    """Commit a micro-batch.

    Raises:
        KafkaCodecError: transactions were decided to be committed, and were ended by something else.
        BrokerError, DeadlineExceeded: Kafka did not do it in time; Spark runs the micro-batch again.
    """
    if any(task.repeated for task in sent):
        logger.warning("micro-batch %d of %r was written before", number, options.transactional_id_prefix)
        with _admin(options) as admin:
            _complete(admin, options, number)
        return
    prepared = [task.prepared for task in sent if task.prepared is not None and not task.prepared.is_empty]
    topic = next((task.topic for task in sent if task.topic is not None), None)
    if not prepared or topic is None:
        return
    with _admin(options) as admin:
        _require_open(admin, prepared)
        decision = GroupOffset(number + 1, metadata=_noted(prepared, sent))
        admin.alter_group_offsets(_group(options), {(topic, 0): decision})
        try:
            admin.end_transactions(prepared, commit=True)
        except ItemErrors as error:
            raise _lost(options, number, [*error.errors]) from error


def end(options: SinkOptions, sent: Sequence[Sent], *, commit: bool) -> None:
    """Commit or abort the transactions of tasks, without a decision.

    Raises:
        ItemErrors: by transactional id, why it was not ended so.
        BrokerError, DeadlineExceeded: Kafka did not do it in time.
    """
    prepared = [task.prepared for task in sent if task.prepared is not None]
    if prepared:
        with _admin(options) as admin:
            admin.end_transactions(prepared, commit=commit)


def _admin(options: SinkOptions) -> AbstractContextManager[Admin]:
    return borrowed(Admin, shared_options(options.producer))


def _group(options: SinkOptions) -> str:
    assert options.transactional_id_prefix is not None
    return options.transactional_id_prefix


def _newest(admin: Admin, options: SinkOptions) -> GroupOffset | None:
    """The newest decision: topics change, so there may be several."""
    found = admin.list_group_offsets(_group(options)).values()
    return max(found, key=lambda offset: offset.offset, default=None)


def _require_open(admin: Admin, prepared: Sequence[PreparedTransaction]) -> None:
    """Raise if a transaction has ended: now the micro-batch can still be sent again."""
    described = admin.describe_transactions([one.transactional_id for one in prepared])
    for one in prepared:
        found = described[one.transactional_id]
        if (found.state, found.producer_id, found.producer_epoch) != ("Ongoing", one.producer_id, one.producer_epoch):
            raise KafkaCodecError(
                f"transaction {one.transactional_id!r} has ended before it was committed: it was open for too long, or "
                "another query uses the same transactionalIdPrefix. Nothing of the micro-batch was committed"
            )


def _noted(prepared: Sequence[PreparedTransaction], sent: Sequence[Sent]) -> str:
    """The version of the transactions and, as a bit each, the tasks that have one: Kafka keeps 4,096 bytes."""
    ids = {one.transactional_id for one in prepared}
    tasks = sum(1 << task.task for task in sent if task.prepared is not None and task.prepared.transactional_id in ids)
    return f"{prepared[0].transaction_version} {tasks:x}"


def _complete(admin: Admin, options: SinkOptions, number: int) -> None:
    """Commit what is still open of a micro-batch that was decided."""
    decision = _newest(admin, options)
    if decision is None or decision.offset != number + 1:
        return  # a later one: this is complete
    version, _, bits = decision.metadata.partition(" ")
    tasks = int(bits, 16)
    ids = [transactional_id(options, task) for task in range(tasks.bit_length()) if tasks >> task & 1]
    try:
        described: dict[str, Any] = admin.describe_transactions(ids)
    except ItemErrors as error:
        raise _lost(options, number, [*error.errors]) from error
    open_ones = [
        PreparedTransaction(one.transactional_id, one.producer_id, one.producer_epoch, int(version), False)
        for one in described.values()
        if one.state == "Ongoing"
    ]
    admin.end_transactions(open_ones, commit=True)
    lost = [name for name, one in described.items() if one.state not in ("Ongoing", *_COMMITTED)]
    if lost:
        raise _lost(options, number, lost)


def _lost(options: SinkOptions, number: int, ids: Sequence[str]) -> KafkaCodecError:
    group = _group(options)
    return KafkaCodecError(
        f"micro-batch {number} was to be committed, but {len(ids)} of its transactions ended otherwise, by a time-out "
        f"or another producer: {', '.join(sorted(ids)[:5])}. Consumers do not get their records. To send the whole "
        f"micro-batch again, delete the group {group!r} and start the query again"
    )
