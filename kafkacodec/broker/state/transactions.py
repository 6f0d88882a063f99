"""The transaction coordinator: transactional ids, the partitions of their transactions, and their ends.

A transaction ends with two records. The first is the decision, after which the producer gets its answer. The second,
when every partition of the transaction has a marker, completes it. A coordinator that starts between the two writes the
markers again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from kafkacodec import messages
from kafkacodec.broker.state.machine import Client, Machine, Marker, Topics
from kafkacodec.broker.state.options import TransactionOptions
from kafkacodec.broker.state.transaction import EMPTY, ENDED, ENDING, ONGOING, PREPARE_COMMIT, Transaction
from kafkacodec.broker.state.transaction_lists import TransactionLists
from kafkacodec.errors import (
    CONCURRENT_TRANSACTIONS,
    COORDINATOR_LOAD_IN_PROGRESS,
    INVALID_PRODUCER_EPOCH,
    INVALID_PRODUCER_ID_MAPPING,
    INVALID_REQUEST,
    INVALID_TRANSACTION_TIMEOUT,
    NONE,
    OPERATION_NOT_ATTEMPTED,
    PRODUCER_FENCED,
    TOPIC_AUTHORIZATION_FAILED,
    TRANSACTION_ABORTABLE,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from kafkacodec.internal_records import INTERNAL_TOPICS, TRANSACTION_STATE
from kafkacodec.messages import keys
from kafkacodec.messages.stored import StoredRecord

__all__ = ["TransactionCoordinator"]

_KNOWS_FENCED = {keys.INIT_PRODUCER_ID: 4, keys.ADD_OFFSETS_TO_TXN: 2, keys.END_TXN: 2, keys.ADD_PARTITIONS_TO_TXN: 2}
_BATCHES = 4  # AddPartitionsToTxn: from brokers, for several transactions
_SECOND_ADDS, _SECOND_ENDS = 5, 5  # AddPartitionsToTxn and EndTxn of the second version of transactions
_RETRY_MS = 1_000
_EVERYWHERE = "\0all transactions"


class TransactionCoordinator(Machine):
    """The transactions of a cluster, as a machine over ``__transaction_state``.

    Its appends have `Records` for that topic, and `Marker` for any partition.

    Args:
        topics: the topics of the cluster.
        take_id: returns an unused producer id, or None if there is none yet: the client must then repeat the request.
            Only InitProducerId needs one, and EndTxn after 32,766 transactions.
        offsets_log: the partition of ``__consumer_offsets`` of a group.
        partitions: the number of partitions of ``__transaction_state``.
        options: see `TransactionOptions`.
    """

    topic: ClassVar[str] = TRANSACTION_STATE

    def __init__(
        self,
        topics: Topics,
        take_id: Callable[[], int | None],
        offsets_log: Callable[[str], tuple[str, int]],
        partitions: int = 50,
        options: TransactionOptions | None = None,
    ) -> None:
        super().__init__(partitions)
        self._topics, self._take_id, self._offsets_log = topics, take_id, offsets_log
        self._options = options or TransactionOptions()
        self.transactions: dict[str, Transaction] = {}
        self._markers: dict[str, set[tuple[str, int]]] = {}  # on their way, by transactional id
        self.handlers = {
            keys.INIT_PRODUCER_ID: self._init,
            keys.ADD_PARTITIONS_TO_TXN: self._add_partitions,
            keys.ADD_OFFSETS_TO_TXN: self._add_offsets,
            keys.END_TXN: self._end,
            **TransactionLists(self, self.transactions).handlers,
        }

    # InitProducerId

    def _init(self, request: Any, version: int, client: Client, to: Any) -> None:
        response = messages.InitProducerIdResponse
        name = request.transactional_id
        code = NONE
        if name == "" or (request.producer_id == -1) != (request.producer_epoch == -1):
            code = INVALID_REQUEST
        elif name is None:
            number = self._take_id()
            code = COORDINATOR_LOAD_IN_PROGRESS if number is None else NONE
            made = response(error_code=code) if number is None else response(producer_id=number, producer_epoch=0)
            self.reply(to, made)
            return
        elif not 0 < request.transaction_timeout_ms <= self._options.transaction_max_timeout_ms:
            code = INVALID_TRANSACTION_TIMEOUT
        if code:
            self.reply(to, response(error_code=code, producer_epoch=-1))
        else:
            self.run(name, partial(self._begin, request, version, to))

    def _begin(self, request: Any, version: int, to: Any) -> None:
        response = messages.InitProducerIdResponse
        name = request.transactional_id
        present = self.transactions.get(name)
        new_id = self._take_id() if present is None or present.exhausted else None
        if new_id is None and (present is None or present.exhausted):
            self.reply(to, response(error_code=COORDINATOR_LOAD_IN_PROGRESS, producer_epoch=-1))
            return
        present = present or Transaction(name, new_id if new_id is not None else -1)
        made = present.begin(
            request.producer_id, request.producer_epoch, request.transaction_timeout_ms, new_id, self.now
        )
        if isinstance(made, int):
            self.reply(to, response(error_code=self._named(made, keys.INIT_PRODUCER_ID, version), producer_epoch=-1))
            return

        def written(code: int) -> None:
            if code:
                self.reply(to, response(error_code=code, producer_epoch=-1))
            else:
                self.reply(to, response(producer_id=made.producer_id, producer_epoch=made.epoch))

        if present.state == ONGOING:
            self._decide(present.fenced(self.now), None)
            self.reply(to, response(error_code=CONCURRENT_TRANSACTIONS, producer_epoch=-1))
        else:
            self._keep(made, written)

    # AddPartitionsToTxn and AddOffsetsToTxn

    def _add_partitions(self, request: Any, version: int, client: Client, to: Any) -> None:
        response = messages.AddPartitionsToTxnResponse
        if version < _BATCHES:
            asked = messages.AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(
                transactional_id=request.v3_and_below_transactional_id,
                producer_id=request.v3_and_below_producer_id,
                producer_epoch=request.v3_and_below_producer_epoch,
                topics=request.v3_and_below_topics,
            )
            wrong = {place: code for place in _places(asked) if (code := self._unwritable(place, internal=False))}
            self._add_one(
                asked, version, wrong, lambda rows: self.reply(to, response(results_by_topic_v3_and_below=rows))
            )
            return
        results: dict[int, Any] = {}
        count = len(request.transactions)

        def done(number: int, asked: Any, rows: list[Any]) -> None:
            entry = response.AddPartitionsToTxnResult
            results[number] = entry(transactional_id=asked.transactional_id, topic_results=rows)
            if len(results) == count:
                self.reply(to, response(results_by_transaction=[results[n] for n in range(count)]))

        for number, asked in enumerate(request.transactions):
            wrong = {place: code for place in _places(asked) if (code := self._unwritable(place, internal=True))}
            self._add_one(asked, version, wrong, partial(done, number, asked))
        if not count:
            self.reply(to, response())

    def _unwritable(self, place: tuple[str, int], *, internal: bool) -> int:
        if place[0] in INTERNAL_TOPICS and not internal:
            return TOPIC_AUTHORIZATION_FAILED
        there = 0 <= place[1] < self._topics.partitions(place[0])
        return NONE if there else UNKNOWN_TOPIC_OR_PARTITION

    def _add_one(
        self, asked: Any, version: int, wrong: dict[tuple[str, int], int], done: Callable[[list[Any]], None]
    ) -> None:
        places = _places(asked)
        if wrong:
            done(_rows({place: wrong.get(place, OPERATION_NOT_ATTEMPTED) for place in places}))
            return

        def all_(code: int) -> None:
            named = self._named(code, keys.ADD_PARTITIONS_TO_TXN, version)
            done(_as_asked(asked, named))

        def job() -> None:
            found = self._found(asked.transactional_id, asked.producer_id, asked.producer_epoch)
            if isinstance(found, int):
                all_(found)
            elif asked.verify_only:
                inside = found.partitions if found.state == ONGOING else frozenset()
                codes = {place: NONE if place in inside else TRANSACTION_ABORTABLE for place in places}
                done(_rows(codes))
            else:
                self._add(found, places, 2 if version >= _SECOND_ADDS else 0, all_)

        self.run(asked.transactional_id, job)

    def _found(self, name: str, producer_id: int, epoch: int) -> Transaction | int:
        """Return the transaction of a valid producer, or an error code."""
        present = self.transactions.get(name)
        if not name:
            return INVALID_REQUEST
        if present is None:
            return INVALID_PRODUCER_ID_MAPPING
        return present.refusal(producer_id, epoch) or present

    def _add(
        self, present: Transaction, places: list[tuple[str, int]], version: int, then: Callable[[int], None]
    ) -> None:
        if present.state == ONGOING and present.partitions.issuperset(places):
            then(NONE)
        else:
            self._keep(present.add(places, version, self.now), then)

    def _add_offsets(self, request: Any, version: int, client: Client, to: Any) -> None:
        def answer(code: int) -> None:
            named = self._named(code, keys.ADD_OFFSETS_TO_TXN, version)
            self.reply(to, messages.AddOffsetsToTxnResponse(error_code=named))

        def job() -> None:
            found = self._found(request.transactional_id, request.producer_id, request.producer_epoch)
            if isinstance(found, int):
                answer(found)
            else:
                self._add(found, [self._offsets_log(request.group_id)], 0, answer)

        self.run(request.transactional_id, job)

    # EndTxn, and the end

    def _end(self, request: Any, version: int, client: Client, to: Any) -> None:
        self.run(request.transactional_id, partial(self._end_now, request, version, to))

    def _end_now(self, request: Any, version: int, to: Any) -> None:
        response = messages.EndTxnResponse
        name = request.transactional_id
        present = self.transactions.get(name)
        second = 2 if version >= _SECOND_ENDS else 0
        made: Transaction | int = INVALID_PRODUCER_ID_MAPPING if name else INVALID_REQUEST
        if present is not None:
            new_id = self._take_id() if second and present.exhausted else None
            if second and present.exhausted and new_id is None:
                made = COORDINATOR_LOAD_IN_PROGRESS
            else:
                made = present.end(
                    request.producer_id, request.producer_epoch, request.committed, second, new_id, self.now
                )
        if isinstance(made, int):
            self.reply(to, response(error_code=self._named(made, keys.END_TXN, version)))
            return
        ended = made

        def written(code: int) -> None:
            answer = response(error_code=code)
            if second and not code:
                fresh = ended.next_id != -1
                answer.producer_id = ended.next_id if fresh else ended.producer_id
                answer.producer_epoch = 0 if fresh else ended.epoch
            self.reply(to, answer)

        if ended is present:
            written(NONE)
        else:
            self._decide(ended, written)

    def _decide(self, ended: Transaction, then: Callable[[int], None] | None) -> None:
        """Write the decision about a transaction, and then its markers."""

        def written(code: int) -> None:
            if then is not None:
                then(code)
            if not code:
                self._write_markers(self.transactions[ended.name])

        self._keep(ended, written)

    def _write_markers(self, ended: Transaction) -> None:
        self._markers[ended.name] = set(ended.partitions)
        if not ended.partitions:
            self._complete(ended.name)
        for place in sorted(ended.partitions):
            self._write_marker(ended, place)

    def _write_marker(self, ended: Transaction, place: tuple[str, int]) -> None:
        def written(code: int) -> None:
            left = self._markers.get(ended.name)
            if left is None or self.transactions.get(ended.name) != ended:
                return
            if code and 0 <= place[1] < self._topics.partitions(place[0]):
                self.set_timer(
                    ended.name, f"marker {place}", self.now + _RETRY_MS, partial(self._write_marker, ended, place)
                )
                return
            left.discard(place)
            if not left:
                self.run(ended.name, partial(self._complete, ended.name))

        if not 0 <= place[1] < self._topics.partitions(place[0]):  # its topic was deleted
            written(NONE)
            return
        committed = ended.state == PREPARE_COMMIT
        marker = Marker(ended.producer_id, ended.epoch, committed, self.log_of(ended.name), self.now)
        self.send(place, marker, written)

    def _complete(self, name: str) -> None:
        self._markers.pop(name, None)
        present = self.transactions.get(name)
        if present is not None and present.state in ENDING:
            self._keep(present.completed(self.now), partial(self._completed, name))

    def _completed(self, name: str, code: int) -> None:
        if code:
            self.set_timer(name, "complete", self.now + _RETRY_MS, partial(self._complete, name))

    # Records and time

    def apply(self, key: Any, value: Any, producer_id: int) -> None:
        """Change the state as a record says."""
        if type(key).__name__ != "TransactionLogKey":
            return
        if value is None:
            self.transactions.pop(key.transactional_id, None)
        else:
            self.transactions[key.transactional_id] = Transaction.restored(key.transactional_id, value)

    def start(self) -> None:
        """Complete transactions with a decision, and set the time limits of the others, after loading."""
        for transaction in list(self.transactions.values()):
            if transaction.state in ENDING:
                self.run(transaction.name, partial(self._write_markers, transaction))
        self._every("timeouts", "transaction_abort_timed_out_transaction_cleanup_interval_ms", self._abort_late)
        self._every("expiry", "transaction_remove_expired_transaction_cleanup_interval_ms", self._forget_idle)

    def _every(self, name: str, interval: str, look: Callable[[], None]) -> None:
        def due() -> None:
            look()
            self._every(name, interval, look)

        self.set_timer(_EVERYWHERE, name, self.now + getattr(self._options, interval), due)

    def _abort_late(self) -> None:
        for found in list(self.transactions.values()):
            if found.state == ONGOING and found.started + found.timeout_ms < self.now:
                self.run(found.name, partial(self._abort_if_late, found.name))

    def _abort_if_late(self, name: str) -> None:
        present = self.transactions.get(name)
        if present is not None and present.state == ONGOING and present.started + present.timeout_ms < self.now:
            self._decide(present.fenced(self.now), None)

    def _forget_idle(self) -> None:
        end = self.now - self._options.transactional_id_expiration_ms
        for found in list(self.transactions.values()):
            if found.state in (EMPTY, *ENDED) and found.updated <= end:
                self.run(found.name, partial(self._forget, found))

    def _forget(self, idle: Transaction) -> None:
        if self.transactions.get(idle.name) == idle:
            gone = StoredRecord(messages.TransactionLogKey(transactional_id=idle.name), None, None)
            self.write(idle.name, [gone], lambda code: None, (-1, -1))

    def _keep(self, made: Transaction, then: Callable[[int], None]) -> None:
        """Write a state; it is the present one when it is in the log."""

        def written(code: int) -> None:
            if not code:
                self.transactions[made.name] = made  # with what records leave out
            then(code)

        self.write(made.name, [made.record()], written, (-1, -1))

    def _named(self, code: int, api: int, version: int) -> int:
        """An error code as an older version of the API knows it."""
        return INVALID_PRODUCER_EPOCH if code == PRODUCER_FENCED and version < _KNOWS_FENCED[api] else code


def _places(asked: Any) -> list[tuple[str, int]]:
    """The partitions, each once."""
    return list(dict.fromkeys((topic.name, number) for topic in asked.topics for number in topic.partitions))


def _as_asked(asked: Any, code: int) -> list[Any]:
    """The same code for all partitions, in rows as in the request."""
    response = messages.AddPartitionsToTxnResponse
    row, made = response.AddPartitionsToTxnPartitionResult, response.AddPartitionsToTxnTopicResult
    return [
        made(name=topic.name, results_by_partition=[row(partition_index=n, partition_error_code=code)
                                                    for n in topic.partitions])
        for topic in asked.topics
    ]  # fmt: skip


def _rows(codes: dict[tuple[str, int], int]) -> list[Any]:
    response = messages.AddPartitionsToTxnResponse
    topics: dict[str, Any] = {}
    for (name, number), code in codes.items():
        topic = topics.setdefault(name, response.AddPartitionsToTxnTopicResult(name=name))
        row = response.AddPartitionsToTxnPartitionResult(partition_index=number, partition_error_code=code)
        topic.results_by_partition.append(row)
    return list(topics.values())
