"""Micro-batches in transactions: which one was written last, and the end of its transactions.

Each task prepares a transaction of its own. When all have, the driver decides that the micro-batch is written: it
commits an offset, the number of the next micro-batch, for the group that is named like the prefix of the transactional
ids. This is one record, so it is there or not. Then it commits the transactions. If the driver ends before that, Spark
runs the micro-batch again: its tasks see the decision and send nothing, and the driver commits what is still open.

A decision names its query, for the numbers of another one, or of an older checkpoint, say nothing about what was sent.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from kafkacodec.client import Admin, GroupOffset, PreparedTransaction
from kafkacodec.errors import ItemErrors, KafkaCodecError
from kafkacodec.spark.broker.client_options import shared_options
from kafkacodec.spark.broker.connections import borrowed
from kafkacodec.spark.broker.producing import Sent, transactional_id
from kafkacodec.spark.broker.write_options import SinkOptions
from kafkacodec.spark.errors import OptionError

__all__ = ["MicroBatch", "abort", "commit", "end", "is_decided"]

logger = logging.getLogger("kafkacodec.spark")

_COMMITTED = ("PrepareCommit", "CompleteCommit")
_NOTED = re.compile(r"kafkacodec (\d+) ([0-9a-f]+) (\S+)")


class MicroBatch(NamedTuple):
    """A micro-batch: Spark's id of its query, which the checkpoint keeps, and its number."""

    query: str
    number: int


class _Decision(NamedTuple):
    """The newest one.

    Attributes:
        number: of the micro-batch.
        transaction_version: of its transactions.
        tasks: as a bit each, those that have one: Kafka keeps 4,096 bytes.
    """

    number: int
    transaction_version: int
    tasks: int

    def noted(self, query: str) -> str:
        """What the offset has as its metadata."""
        return f"kafkacodec {self.transaction_version} {self.tasks:x} {query}"


def is_decided(options: SinkOptions, micro_batch: MicroBatch) -> bool:
    """Whether a micro-batch was written, or is certain to be.

    Raises:
        OptionError: the prefix belongs to something else, or later micro-batches were written.
    """
    with _admin(options) as admin:
        return _decision(admin, options, micro_batch) is not None


def commit(options: SinkOptions, sent: Sequence[Sent], micro_batch: MicroBatch) -> None:
    """Commit a micro-batch.

    Raises:
        KafkaCodecError: transactions were decided to be committed, and were ended by something else.
        BrokerError, DeadlineExceeded: Kafka did not do it in time; Spark runs the micro-batch again.
    """
    if any(task.repeated for task in sent):
        logger.warning("micro-batch %d of %r was written before", micro_batch.number, options.transactional_id_prefix)
        with _admin(options) as admin:
            _complete(admin, options, micro_batch)
        return
    prepared = [task.prepared for task in sent if task.prepared is not None and not task.prepared.is_empty]
    topic = next((task.topic for task in sent if task.topic is not None), None)
    if not prepared or topic is None:
        return
    with _admin(options) as admin:
        _require_open(admin, prepared)
        decision = _Decision(micro_batch.number, prepared[0].transaction_version, _tasks(prepared, sent))
        offset = GroupOffset(decision.number + 1, metadata=decision.noted(micro_batch.query))
        admin.alter_group_offsets(_group(options), {(topic, 0): offset})
        try:
            admin.end_transactions(prepared, commit=True)
        except ItemErrors as error:
            raise _lost(options, micro_batch, [*error.errors]) from error


def abort(options: SinkOptions, sent: Sequence[Sent], micro_batch: MicroBatch) -> None:
    """Abort a micro-batch that failed, unless it may be decided: then the next run commits its transactions.

    Raises:
        BrokerError, DeadlineExceeded: Kafka did not tell or do it in time.
    """
    if not is_decided(options, micro_batch):
        end(options, sent, commit=False)


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


def _decision(admin: Admin, options: SinkOptions, micro_batch: MicroBatch) -> _Decision | None:
    """The decision about this micro-batch. Topics change, so the group may have several offsets.

    Raises:
        OptionError: as `is_decided`.
    """
    group, found = _group(options), None
    for offset in admin.list_group_offsets(group).values():
        noted = _NOTED.fullmatch(offset.metadata or "")
        if noted is None:
            raise OptionError(
                f"transactionalIdPrefix: the group {group!r} has offsets of consumers; use another prefix"
            )
        if noted[3] != micro_batch.query:
            raise OptionError(
                f"transactionalIdPrefix: {group!r} belongs to the query {noted[3]}, this one is {micro_batch.query}: "
                "it has another checkpoint. Use another prefix, or, if the other query is not needed any more, delete "
                f"the group {group!r}"
            )
        if found is None or offset.offset - 1 > found.number:
            found = _Decision(offset.offset - 1, int(noted[1]), int(noted[2], 16))
    if found is None or found.number < micro_batch.number:
        return None
    if found.number > micro_batch.number:
        raise OptionError(
            f"transactionalIdPrefix: micro-batch {micro_batch.number} of {group!r} is to be written, but "
            f"{found.number} was written before: the checkpoint is an older one. To write from there again, delete the "
            f"group {group!r}"
        )
    return found


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


def _tasks(prepared: Sequence[PreparedTransaction], sent: Sequence[Sent]) -> int:
    ids = {one.transactional_id for one in prepared}
    return sum(1 << task.task for task in sent if task.prepared is not None and task.prepared.transactional_id in ids)


def _complete(admin: Admin, options: SinkOptions, micro_batch: MicroBatch) -> None:
    """Commit what is still open of a micro-batch that was decided."""
    decision = _decision(admin, options, micro_batch)
    if decision is None:
        raise KafkaCodecError(
            f"the decision that micro-batch {micro_batch.number} is written was in the group {_group(options)!r} when "
            "its tasks ran, and is not any more"
        )
    tasks = decision.tasks
    ids = [transactional_id(options, task) for task in range(tasks.bit_length()) if tasks >> task & 1]
    try:
        described: dict[str, Any] = admin.describe_transactions(ids)
    except ItemErrors as error:
        raise _lost(options, micro_batch, [*error.errors]) from error
    version = decision.transaction_version
    open_ones = [
        PreparedTransaction(one.transactional_id, one.producer_id, one.producer_epoch, version, False)
        for one in described.values()
        if one.state == "Ongoing"
    ]
    admin.end_transactions(open_ones, commit=True)
    lost = [name for name, one in described.items() if one.state not in ("Ongoing", *_COMMITTED)]
    if lost:
        raise _lost(options, micro_batch, lost)


def _lost(options: SinkOptions, micro_batch: MicroBatch, ids: Sequence[str]) -> KafkaCodecError:
    group = _group(options)
    return KafkaCodecError(
        f"micro-batch {micro_batch.number} was to be committed, but {len(ids)} of its transactions ended otherwise, by "
        f"a time-out or another producer: {', '.join(sorted(ids)[:5])}. Consumers do not get their records. To send "
        f"the whole micro-batch again, delete the group {group!r} and start the query again"
    )
