"""One transactional id: the states of its transactions, its producer id and epoch (KIP-98, KIP-360, KIP-890).

A decision about it is a new `Transaction`, which becomes the present one when its record is in the log. With the second
version of transactions the epoch goes up at every end, so that nothing late can get into the next transaction.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from kafkacodec import messages
from kafkacodec.datatypes import dataclass, field, replace
from kafkacodec.errors import (
    CONCURRENT_TRANSACTIONS,
    INVALID_PRODUCER_ID_MAPPING,
    INVALID_TXN_STATE,
    NONE,
    PRODUCER_FENCED,
)
from kafkacodec.messages.stored import StoredRecord

__all__ = ["STATES", "Transaction"]

EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_COMMIT, COMPLETE_ABORT = STATES = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
)
"""The states, by the number that records have."""

ENDING: Final = (PREPARE_COMMIT, PREPARE_ABORT)
ENDED: Final = (COMPLETE_COMMIT, COMPLETE_ABORT)
LAST_EPOCH: Final = 32_766
"""The last epoch of a producer id that a client gets; the next is only for the end of its last transaction."""

_VALUE_VERSION = 1
_SECOND = 2  # the version of transactions that raises the epoch with every end

Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Transaction:
    """The state of a transactional id, from its record. Missing epochs and ids are -1."""

    name: str
    producer_id: int
    epoch: int = -1
    timeout_ms: int = 0
    state: str = EMPTY
    partitions: frozenset[Place] = field(default_factory=frozenset)
    started: int = -1
    updated: int = -1
    previous_id: int = -1
    next_id: int = -1
    last_epoch: int = -1
    version: int = 0

    @property
    def exhausted(self) -> bool:
        """Whether the next epoch needs another producer id."""
        return self.epoch >= LAST_EPOCH

    # Decisions: the new state, or an error code

    def begin(self, producer_id: int, epoch: int, timeout_ms: int, new_id: int | None, now: int) -> Transaction | int:
        """Decide about InitProducerId: the next epoch. `new_id` is a new producer id, if it is needed."""
        if epoch != -1 and not self._known(producer_id, epoch):
            return PRODUCER_FENCED
        if self.state in ENDING:
            return CONCURRENT_TRANSACTIONS
        if self.state == ONGOING:  # is aborted first, whatever the epoch; the request is repeated then
            return self
        fresh = replace(self, state=EMPTY, partitions=frozenset(), started=-1, updated=now, timeout_ms=timeout_ms)
        if self.exhausted and (epoch == -1 or epoch == self.epoch) and new_id is not None:
            last = -1 if epoch == -1 else self.epoch
            return replace(fresh, producer_id=new_id, previous_id=self.producer_id, epoch=0, last_epoch=last)
        if epoch == -1:
            return replace(fresh, epoch=self.epoch + 1, last_epoch=-1)
        if self.epoch == -1 or epoch == self.epoch:
            return replace(fresh, epoch=self.epoch + 1, last_epoch=self.epoch)
        if epoch == self.last_epoch or producer_id == self.previous_id:  # asked again: the answer was lost
            return fresh
        return PRODUCER_FENCED

    def _known(self, producer_id: int, epoch: int) -> bool:
        if self.epoch == -1 or producer_id == self.producer_id:
            return True
        return producer_id == self.previous_id and epoch >= LAST_EPOCH

    def refusal(self, producer_id: int, epoch: int) -> int:
        """Why a producer may not add to the transaction; 0 if it may."""
        if producer_id != self.producer_id:
            return INVALID_PRODUCER_ID_MAPPING
        if epoch != self.epoch:
            return PRODUCER_FENCED
        return CONCURRENT_TRANSACTIONS if self.state in ENDING else NONE

    def add(self, partitions: Iterable[Place], version: int, now: int) -> Transaction:
        """Add partitions that the transaction writes to."""
        every = self.partitions | frozenset(partitions)
        started = self.started if self.state == ONGOING else now
        return replace(self, state=ONGOING, partitions=every, started=started, updated=now, version=version)

    def end(
        self, producer_id: int, epoch: int, commit: bool, version: int, new_id: int | None, now: int
    ) -> Transaction | int:
        """Decide about EndTxn; return the current state if it has already ended."""
        second = version >= _SECOND
        overflown = second and producer_id == self.previous_id and epoch == LAST_EPOCH and self.epoch == 0
        again = overflown or (second and self.epoch == epoch + 1)
        if producer_id != self.producer_id and not overflown:
            return INVALID_PRODUCER_ID_MAPPING
        if epoch != self.epoch and not (again and self.state in (*ENDING, *ENDED)):
            return PRODUCER_FENCED
        if second and self.state in ENDING and not again:
            return PRODUCER_FENCED
        if self.state == ONGOING:
            return self.decided(commit, version, new_id, now)
        if self.state in ENDING:
            return CONCURRENT_TRANSACTIONS if commit == (self.state == PREPARE_COMMIT) else INVALID_TXN_STATE
        same = self.state in ENDED and commit == (self.state == COMPLETE_COMMIT)
        if same and (again or version < _SECOND):
            return self
        if version >= _SECOND and not commit and not again:  # nothing was added, or not that the producer knows of
            return self.decided(False, version, new_id, now)
        return INVALID_TXN_STATE

    def decided(self, commit: bool, version: int, new_id: int | None, now: int) -> Transaction:
        """The transaction is to end this way."""
        state = PREPARE_COMMIT if commit else PREPARE_ABORT
        started = self.started if self.state == ONGOING else now
        made = replace(self, state=state, started=started, updated=now, version=version)
        if version < _SECOND:
            return made
        next_id = -1 if new_id is None or not self.exhausted else new_id
        return replace(made, epoch=self.epoch + 1, last_epoch=self.epoch, next_id=next_id)

    def fenced(self, now: int) -> Transaction:
        """Fence a lost or replaced producer: raise its epoch and abort its open transaction, in the second version
        whatever its requests had.
        """
        return self.decided(False, _SECOND, None, now)

    def completed(self, now: int) -> Transaction:
        """All markers are written."""
        state = COMPLETE_COMMIT if self.state == PREPARE_COMMIT else COMPLETE_ABORT
        made = replace(self, state=state, partitions=frozenset(), updated=now)
        if self.next_id == -1:
            return made
        return replace(made, producer_id=self.next_id, previous_id=self.producer_id, next_id=-1, epoch=0)

    # Records

    def record(self) -> StoredRecord:
        """Return the record of the transactional id."""
        value = messages.TransactionLogValue(
            producer_id=self.producer_id,
            previous_producer_id=self.previous_id,
            next_producer_id=self.next_id,
            producer_epoch=self.epoch,
            transaction_timeout_ms=self.timeout_ms,
            transaction_status=STATES.index(self.state),
            transaction_partitions=None if self.state == EMPTY else self._stored_partitions(),
            transaction_last_update_timestamp_ms=self.updated,
            transaction_start_timestamp_ms=self.started,
            client_transaction_version=self.version,
        )
        return StoredRecord(messages.TransactionLogKey(transactional_id=self.name), value, _VALUE_VERSION)

    def by_topic(self) -> dict[str, list[int]]:
        """The partitions by topic, in order."""
        found: dict[str, list[int]] = {}
        for topic, partition in sorted(self.partitions):
            found.setdefault(topic, []).append(partition)
        return found

    def _stored_partitions(self) -> list[Any]:
        entry = messages.TransactionLogValue.PartitionsSchema
        return [entry(topic=topic, partition_ids=numbers) for topic, numbers in self.by_topic().items()]

    @staticmethod
    def restored(name: str, value: Any) -> Transaction:
        """From a record."""
        rows = value.transaction_partitions or ()
        return Transaction(
            name,
            value.producer_id,
            value.producer_epoch,
            value.transaction_timeout_ms,
            STATES[value.transaction_status] if 0 <= value.transaction_status < len(STATES) else EMPTY,
            frozenset((row.topic, number) for row in rows for number in row.partition_ids),
            value.transaction_start_timestamp_ms,
            value.transaction_last_update_timestamp_ms,
            value.previous_producer_id,
            value.next_producer_id,
            version=value.client_transaction_version,
        )
