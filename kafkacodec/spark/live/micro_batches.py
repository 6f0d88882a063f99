"""Micro-batches in transactions: the number of the last one written, and the commit of its transactions.

Each task prepares a transaction of its own. When all have, the driver aborts all others of the prefix, which killed
drivers and failed tasks have left, and decides that the micro-batch is written: it commits an offset, the number of the
next micro-batch, for the group that is named like the prefix of the transactional ids. This is one record, so it is
there or not. Then it commits the transactions. If the driver ends before that, Spark runs the micro-batch again: its
tasks see the decision and send nothing, and the driver commits what is still open.

A decision names its query, for the numbers of another one, or of an older checkpoint, say nothing about what was sent.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from kafkacodec.client import Admin, GroupOffset, PreparedTransaction
from kafkacodec.datatypes import NamedTuple
from kafkacodec.errors import ItemErrors, KafkaCodecError
from kafkacodec.spark.errors import OptionError
from kafkacodec.spark.live.client_options import shared_options
from kafkacodec.spark.live.connections import borrowed
from kafkacodec.spark.live.open_transactions import abort_open, abort_until_quiet
from kafkacodec.spark.live.producing import Sent, transactional_id
from kafkacodec.spark.live.write_options import SinkOptions

__all__ = ["MicroBatch", "abort", "commit", "end", "is_decided"]

logger = logging.getLogger("kafkacodec.spark")

_MOST_TOPICS = 10  # that have the offset of a decision
_COMMITTED = ("PrepareCommit", "CompleteCommit")
_NOTED = re.compile(r"kafkacodec (\d+) ([0-9a-f]+) (\S+)")


class MicroBatch(NamedTuple):
    """A micro-batch: Spark's id of its query, which the checkpoint keeps, and its number."""

    query: str | None  # None: not known, since no task has succeeded
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
        OptionError: the prefix is used by something else, or later micro-batches were written.
    """
    with _admin(options) as admin:
        return _decision(admin, options, micro_batch) is not None


def commit(options: SinkOptions, sent: Sequence[Sent], micro_batch: MicroBatch) -> None:
    """Commit a micro-batch.

    Raises:
        KafkaCodecError: transactions that were to be committed were ended by something else.
        BrokerError, DeadlineExceeded: Kafka did not commit in time; Spark runs the micro-batch again.
    """
    if any(task.repeated for task in sent):
        logger.warning("micro-batch %d of %r was written before", micro_batch.number, options.transactional_id_prefix)
        with _admin(options) as admin:
            _complete(admin, options, micro_batch)
            abort_open(admin, _prefix(options))
        return
    prepared = [task.prepared for task in sent if task.prepared is not None and not task.prepared.is_empty]
    topics = sorted({task.topic for task in sent if task.topic is not None})[:_MOST_TOPICS]
    with _admin(options) as admin:
        abort_open(admin, _prefix(options), {one.transactional_id for one in prepared})
        if not prepared or not topics or micro_batch.query is None:
            return
        _require_open(admin, prepared)
        decision = _Decision(micro_batch.number, prepared[0].transaction_version, _tasks(prepared, sent))
        offset = GroupOffset(decision.number + 1, metadata=decision.noted(micro_batch.query))
        # Kafka forgets the offsets of a topic that is deleted.
        admin.alter_group_offsets(_prefix(options), {(topic, 0): offset for topic in topics})
        try:
            admin.end_transactions(prepared, commit=True)
        except ItemErrors as error:
            raise _lost(options, micro_batch, [*error.errors]) from error


def abort(options: SinkOptions, micro_batch: MicroBatch) -> None:
    """Abort a micro-batch that failed, unless it may be decided: then the next run commits its transactions.

    Raises:
        OptionError: the prefix belongs to something else, whose transactions are left alone.
        BrokerError, DeadlineExceeded, ItemErrors: Kafka did not answer or abort in time.
    """
    with _admin(options) as admin:
        decision = _decision(admin, options, micro_batch)
        abort_until_quiet(admin, _prefix(options), () if decision is None else _ids(options, decision))


def end(options: SinkOptions, sent: Sequence[Sent], *, commit: bool) -> None:
    """Commit or abort the transactions of tasks, without a decision. Others of the prefix are aborted in any case.

    Raises:
        ItemErrors: by transactional id, why it was not ended so.
        BrokerError, DeadlineExceeded: Kafka did not do it in time.
    """
    if options.transactional_id_prefix is None:
        return
    prepared = [task.prepared for task in sent if task.prepared is not None]
    with _admin(options) as admin:
        if commit:
            abort_open(admin, _prefix(options), {one.transactional_id for one in prepared})
            admin.end_transactions(prepared, commit=True)
        else:
            abort_until_quiet(admin, _prefix(options))


def _admin(options: SinkOptions) -> AbstractContextManager[Admin]:
    return borrowed(Admin, shared_options(options.producer))


def _prefix(options: SinkOptions) -> str:
    """Of the transactional ids; it is the name of the group, too."""
    assert options.transactional_id_prefix is not None
    return options.transactional_id_prefix


def _ids(options: SinkOptions, decision: _Decision) -> list[str]:
    """The transactional ids of a decision."""
    tasks = decision.tasks
    return [transactional_id(options, task) for task in range(tasks.bit_length()) if tasks >> task & 1]


def _decision(admin: Admin, options: SinkOptions, micro_batch: MicroBatch) -> _Decision | None:
    """The decision about this micro-batch. Topics change, so the group may have several offsets.

    Raises:
        OptionError: as `is_decided`.
    """
    group, found = _prefix(options), None
    for offset in admin.list_group_offsets(group).values():
        noted = _NOTED.fullmatch(offset.metadata or "")
        if noted is None:
            raise OptionError(
                f"transactionalIdPrefix: the group {group!r} has offsets of consumers; use another prefix"
            )
        if micro_batch.query is not None and noted[3] != micro_batch.query:
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
            f"the decision that micro-batch {micro_batch.number} is written was in the group {_prefix(options)!r} when "
            "its tasks ran, and is not any more"
        )
    try:
        described: dict[str, Any] = admin.describe_transactions(_ids(options, decision))
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
    group = _prefix(options)
    return KafkaCodecError(
        f"micro-batch {micro_batch.number} was to be committed, but {len(ids)} of its transactions ended otherwise, by "
        f"a time-out or another producer: {', '.join(sorted(ids)[:5])}. Consumers do not get their records. To send "
        f"the whole micro-batch again, delete the group {group!r} and start the query again"
    )
