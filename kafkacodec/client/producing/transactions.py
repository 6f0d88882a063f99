"""The transactions of a producer: its states, and the requests between them.

Source: KIP-98; KIP-360 (recovery after lost batches), KIP-447 (groups), KIP-588 (fencing), KIP-890 (version 2: each
transaction has its own epoch, and brokers add partitions themselves).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import Any, Final

from kafkacodec import messages
from kafkacodec.client.core.backoff import Backoff
from kafkacodec.client.core.calls import Answer, Coordinator, Place, Prepare, Send
from kafkacodec.client.core.coordinators import MOST_BROKEN, Coordinators
from kafkacodec.client.core.prepared import PreparedTransaction
from kafkacodec.client.core.retrying import COORDINATOR_MOVED
from kafkacodec.client.producing import transaction_requests as requests
from kafkacodec.client.producing.identity import ProducerId
from kafkacodec.client.producing.settings import ProducerSettings
from kafkacodec.errors import (
    CONCURRENT_TRANSACTIONS,
    FENCED_INSTANCE_ID,
    GROUP_AUTHORIZATION_FAILED,
    ILLEGAL_GENERATION,
    INVALID_PRODUCER_EPOCH,
    INVALID_PRODUCER_ID_MAPPING,
    INVALID_TXN_STATE,
    OPERATION_NOT_ATTEMPTED,
    PRODUCER_FENCED,
    STALE_MEMBER_EPOCH,
    TOPIC_AUTHORIZATION_FAILED,
    TRANSACTION_ABORTABLE,
    UNKNOWN_MEMBER_ID,
    UNKNOWN_PRODUCER_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    AuthenticationFailed,
    BrokerError,
    ConnectionFailed,
    DeadlineExceeded,
    LocalProtocolError,
    RemoteProtocolError,
    error,
)

__all__ = ["State", "Transaction", "Transactions"]

_FENCED: Final = {INVALID_PRODUCER_EPOCH, PRODUCER_FENCED}
# After these the transaction can only be aborted; other permanent errors end the producer.
_ABORTABLE: Final = {
    ILLEGAL_GENERATION,
    UNKNOWN_MEMBER_ID,
    TOPIC_AUTHORIZATION_FAILED,
    GROUP_AUTHORIZATION_FAILED,
    INVALID_PRODUCER_ID_MAPPING,
    OPERATION_NOT_ATTEMPTED,
    UNKNOWN_PRODUCER_ID,
    FENCED_INSTANCE_ID,
    STALE_MEMBER_EPOCH,
    TRANSACTION_ABORTABLE,
}
_MAPPING_LOST: Final = {INVALID_PRODUCER_ID_MAPPING, UNKNOWN_PRODUCER_ID}
_CONCURRENT_WAIT_MS = 20  # until the markers of the previous transaction are written
_SHOWN: Final = 3  # partitions in an error
_V1_PRODUCE, _V1_END, _V1_COMMIT, _LAST_COMMIT = 11, 4, 4, 5


class State(Enum):
    """The state of a transactional producer, with its text for errors."""

    NEW = "not initialized"
    READY = "between transactions"
    OPEN = "in a transaction"
    PREPARED = "in a transaction that is prepared"
    COMMITTING = "committing"
    ABORTING = "aborting"
    FAILED = "in a transaction that has failed and must be aborted"


_ALIVE: Final = (State.OPEN, State.PREPARED, State.COMMITTING)  # batches and offsets may go into the transaction


class Transaction:
    """One transaction.

    Attributes:
        ended, committed: whether it has ended, and whether it was committed.
        told: whether the caller that ended it has learned the result.
    """

    __slots__ = ("committed", "ended", "told")

    def __init__(self) -> None:
        self.ended = self.committed = self.told = False


class Transactions:
    """The identity of a transactional producer. One request is in flight at a time, so they keep their order.

    Args:
        settings: must have a ``transactional_id``.
        coordinators: told when a coordinator has moved.
        backoff: the waits between attempts of a request.
        progress: called after each change that a caller may wait for.
        shut: called when records may no longer go into the transaction, in the thread that has changed this.

    Attributes:
        transaction: the last transaction begun.
        reason: why the transaction has failed.
        passing: why the last request is being retried; None if it is not.
        broken: the same, after several consecutive invalid answers of brokers, for waiting callers.
    """

    renumbers = False

    def __init__(
        self,
        settings: ProducerSettings,
        coordinators: Coordinators,
        backoff: Backoff,
        progress: Callable[[], None],
        shut: Callable[[], None],
    ) -> None:
        assert settings.transactional_id is not None
        self.transactional_id: str | None = settings.transactional_id
        self._name: str = settings.transactional_id
        self.current: ProducerId | None = None
        self.failure: Exception | None = None
        self._shut = shut
        self.state = State.NEW
        self.transaction: Transaction | None = None
        self.reason: Exception | None = None
        self.passing: Exception | None = None
        self.broken: Exception | None = None
        self.highest_version = _V1_PRODUCE
        self._timeout_ms = settings.transaction_timeout_ms
        self._coordinators, self._backoff, self._progress = coordinators, backoff, progress
        self._wanted = False
        self._version_2: bool | None = None
        self._added: set[tuple[str, int]] = set()
        self._new: set[tuple[str, int]] = set()
        self._offsets: deque[tuple[requests.Offsets, bool]] = deque()  # each with whether the group was added
        self._started = False  # whether the coordinator may know of the transaction
        self._known = False  # whether it certainly knows of it
        self._recover = False  # whether sequences cannot continue in this epoch
        self._ending = False  # whether the coordinator may have been asked to end the transaction
        self._asking: tuple[Send, Callable[[Any], None]] | None = None
        self._failures = 0
        self._next_at = 0.0

    @property
    def state(self) -> State:
        """See `State`."""
        return self._state

    @state.setter
    def state(self, state: State) -> None:
        self._state = state
        if state is not State.OPEN:
            self._shut()

    @property
    def takes_records(self) -> bool:
        """Whether records may go into the transaction."""
        return self.failure is None and self._state is State.OPEN

    # Calls by users

    def initialize(self) -> None:
        """Start to get an id, which fences older producers."""
        self._wanted = True

    def begin(self) -> None:
        """Begin a transaction. Raises LocalProtocolError in a wrong state, or the error that ended the producer."""
        self.require(State.READY)
        self.state, self.transaction = State.OPEN, Transaction()

    def require(self, *states: State) -> None:
        """Raise an error unless the producer is in one of these states."""
        if self.failure is not None:
            raise self.failure.with_traceback(None)  # a traceback would keep the frames of every call
        if self.state in states:
            return
        if self.state is State.FAILED and self.reason is not None:
            raise LocalProtocolError(f"the transaction has failed, abort it: {self.reason}") from self.reason
        raise LocalProtocolError(
            f"the producer must be {' or '.join(s.value for s in states)}; it is {self.state.value}"
        )

    @property
    def idle(self) -> bool:
        """Whether it is between transactions, and waits for nothing."""
        return self.state is State.READY and self.failure is None and self._asking is None

    def take_broken(self) -> Exception | None:
        """Return `broken`, and reset it to None."""
        broken, self.broken = self.broken, None
        return broken

    def add_offsets(self, offsets: requests.Offsets) -> Callable[[], bool]:
        """Commit offsets in the transaction; returns a function that tells whether this is done."""
        self.require(State.OPEN)
        entry = (offsets, False)
        self._offsets.append(entry)
        pending = offsets
        return lambda: self.state is not State.OPEN or all(o is not pending for o, _ in self._offsets)

    def prepare(self) -> None:
        """Refuse further records: another client will end the transaction."""
        self.require(State.OPEN, State.PREPARED)
        self.state = State.PREPARED

    def prepared(self) -> PreparedTransaction:
        """The identity of the prepared transaction, once everything in it was sent."""
        self.require(State.PREPARED)
        assert self.current is not None
        version = 2 if self._version_2 else 1
        return PreparedTransaction(self._name, *self.current, version, not self._started)

    @property
    def abortable(self) -> bool:
        """Whether the transaction can still be aborted."""
        early = self.state is State.COMMITTING and not self._ending
        return self.failure is None and (early or self.state in (State.OPEN, State.PREPARED, State.FAILED))

    @property
    def initialized(self) -> bool:
        """Whether the producer has its id, and no transaction is being ended."""
        return self.state not in (State.NEW, State.COMMITTING, State.ABORTING)

    @property
    def settled(self) -> bool:
        """Whether a producer that closes has nothing to end: none is open, it is left to others, or it has failed."""
        return self.failure is not None or self.state in (State.NEW, State.READY, State.PREPARED)

    def end(self, commit: bool) -> Transaction:
        """End the transaction as soon as no batch is pending.

        Repeating the call before its result has been reported does not end the next transaction.
        """
        last, wanted = self.transaction, State.COMMITTING if commit else State.ABORTING
        if last is not None and last.ended and last.committed is commit and not last.told:
            return last
        if self.state is not wanted and (commit or not self.abortable):
            self.require(State.OPEN, State.PREPARED)
        assert last is not None
        self.state = wanted
        if not commit:
            self._offsets.clear()
            self._new.clear()
        return last

    # The interface of an identity

    @property
    def ended(self) -> bool:
        """Whether the transaction is aborted or must be."""
        return self.state in (State.ABORTING, State.FAILED)

    def allows(self, topic: str, partition: int) -> bool:
        """Whether the partition is in the transaction; if not, starts to add it."""
        if self.state not in _ALIVE or self.current is None:
            return False
        if self._version_2:
            self._started = True
            return True
        if (topic, partition) in self._added:
            return True
        self._new.add((topic, partition))
        return False

    def replace(self, old: ProducerId) -> bool:
        """Never within a transaction."""
        return False

    def given_up(self, reason: Exception, sent: bool) -> None:
        """Require an abort after a batch failed; if it was sent, its sequence will be missing from now on."""
        self._recover = self._recover or sent
        if isinstance(reason, BrokerError) and reason.code == PRODUCER_FENCED:
            self._fail(reason)
        elif self.state in _ALIVE:
            self._abort_only(reason)

    def poll(self, now: float, needed: bool) -> list[Send]:
        """The next request."""
        if self._asking is not None or self.failure is not None or now < self._next_at:
            return []
        found = self._next(needed)
        if found is None:
            return []
        place, request, done = found
        send = Send(place, request)
        self._asking = (send, done)
        return [send]

    def next_deadline(self) -> float | None:
        """The time of the next attempt after a failure."""
        return self._next_at if self._asking is None and self._failures and self.failure is None else None

    def answered(self, send: Send, answer: Answer, now: float) -> None:
        """Continue, wait, or fail."""
        assert self._asking is not None
        (_, done), self._asking = self._asking, None
        found = requests.faults(answer.message)
        if not found:
            self._failures, self._next_at, self.passing, self.broken = 0, 0.0, None, None
            done(answer.message)
            self._progress()
            return
        kinds = [error(code) for code in sorted(found.keys() - {OPERATION_NOT_ATTEMPTED} or found)]
        lasting = [kind for kind in kinds if not kind.retriable]
        if found.keys() & COORDINATOR_MOVED and isinstance(send.to, Coordinator):
            self._coordinators.lost(send.to)
        if not lasting:
            self.passing = kinds[0](": ".join([kinds[0].name, *_named(found[kinds[0].code])]))
            soon = found.keys() <= {CONCURRENT_TRANSACTIONS, UNKNOWN_TOPIC_OR_PARTITION}
            self._again(now, _CONCURRENT_WAIT_MS if soon else None)
        else:
            self._refused(lasting[0], found[lasting[0].code])
        self._progress()

    def failed(self, send: Send, error: Exception, now: float) -> None:
        """Retry the request if the error is temporary: the coordinator recognizes repeated requests."""
        self._asking = None
        passing = (ConnectionFailed, DeadlineExceeded, RemoteProtocolError)
        if isinstance(error, passing) and not isinstance(error, AuthenticationFailed):
            if isinstance(send.to, Coordinator):
                self._coordinators.lost(send.to)
            self.passing = error
            self._again(now)
            if isinstance(error, RemoteProtocolError) and self._failures >= MOST_BROKEN:
                self.broken = error
        elif isinstance(error, BrokerError) and error.code in _ABORTABLE and self.state in _ALIVE:
            self._abort_only(error)
        else:
            self._fail(error)
        self._progress()

    # Requests

    def _next(self, pending: bool) -> tuple[Place, Any, Callable[[Any], None]] | None:
        if not self._wanted:
            return None
        own, name = Coordinator("transaction", self._name), self._name
        if self._version_2 is None:
            return (
                own,
                messages.ApiVersionsRequest(client_software_name="kafkacodec", client_software_version="1"),
                self._versions,
            )
        if self.current is None:
            return own, requests.init(name, self._timeout_ms, None), self._initialized
        if self.state is State.NEW:  # after an abort that left a gap in the sequences
            return own, requests.init(name, self._timeout_ms, self.current), self._initialized
        if self._new:
            places = frozenset(self._new)
            self._started = True
            return own, requests.add_partitions(name, self.current, places), lambda _: self._took(places)
        if self._offsets and self.state in _ALIVE:
            return self._commit_offsets(own, *self._offsets[0])
        if self.state in (State.COMMITTING, State.ABORTING) and not pending:
            return self._end(own)
        return None

    def _commit_offsets(
        self, own: Place, offsets: requests.Offsets, added: bool
    ) -> tuple[Place, Prepare, Callable[[Any], None]]:
        assert self.current is not None
        self._started = True
        if not added and not self._version_2:
            request = requests.add_offsets(self._name, self.current, offsets.group_id)
            return own, request, lambda _: self._added_group(offsets)
        highest = _LAST_COMMIT if self._version_2 else _V1_COMMIT
        group = Coordinator("group", offsets.group_id)
        request = requests.commit_offsets(self._name, self.current, offsets, highest)
        return group, request, self._committed_offsets

    def _end(self, own: Place) -> tuple[Place, Any, Callable[[Any], None]] | None:
        assert self.current is not None
        if not self._started:
            self._ended(None)
            self._progress()
            return self._next(False)
        commit, self._ending = self.state is State.COMMITTING, True
        highest = messages.EndTxnRequest.valid_versions[-1] if self._version_2 else _V1_END
        return own, requests.end(self._name, self.current, commit, highest), self._ended

    # Their results

    def _versions(self, response: Any) -> None:
        self._version_2 = requests.has_version_2(response)
        if self._version_2:
            self.highest_version = messages.ProduceRequest.valid_versions[-1]

    def _initialized(self, response: Any) -> None:
        self.current = (response.producer_id, response.producer_epoch)
        self._recover = False
        self.state = State.READY

    def _took(self, places: frozenset[tuple[str, int]]) -> None:
        self._known = True
        self._added |= places
        self._new -= places

    def _added_group(self, offsets: requests.Offsets) -> None:
        self._known = True
        if self._offsets:  # unless an abort has dropped them
            self._offsets[0] = (offsets, True)

    def _committed_offsets(self, _: Any) -> None:
        if self._offsets:
            self._offsets.popleft()

    def _ended(self, response: Any) -> None:
        self._added.clear()
        self._offsets.clear()
        self._started = self._known = self._ending = False
        self.reason = None
        assert self.transaction is not None
        self.transaction.ended, self.transaction.committed = True, self.state is State.COMMITTING
        if response is not None and response.producer_id >= 0:
            self.current = (response.producer_id, response.producer_epoch)
            self._recover = False
        self.state = State.NEW if self._recover else State.READY

    def _again(self, now: float, wait_ms: float | None = None) -> None:
        self._failures += 1
        self._next_at = now + (self._backoff.after(self._failures) if wait_ms is None else wait_ms)

    def _refused(self, kind: type[BrokerError], places: list[str]) -> None:
        reason = kind(": ".join([kind.name, ", ".join([f"transactional id {self._name!r}", *_named(places)])]))
        if kind.code == INVALID_TXN_STATE and self.state is State.ABORTING and not self._known:
            self._ended(None)  # the coordinator never learned of the transaction
        elif kind.code in _FENCED:
            newer = f"another producer with the transactional id {self._name!r} is newer"
            self._fail(kind(f"{kind.name}: {newer}{f', or this transaction {self._expired}' if self._started else ''}"))
        elif kind.code == INVALID_TXN_STATE:
            self._fail(kind(f"{reason}: the transaction is over, probably since it {self._expired}: "
                            "make another producer, and repeat what the transaction had"))  # fmt: skip
        elif kind.code in _ABORTABLE and self.state in _ALIVE:
            self._recover = self._recover or kind.code in _MAPPING_LOST
            self._abort_only(reason)
        else:
            self._fail(reason)

    @property
    def _expired(self) -> str:
        return f"was open for longer than transaction_timeout_ms, {self._timeout_ms:,}"

    def _abort_only(self, reason: Exception) -> None:
        self.state, self.reason = State.FAILED, self.reason or reason
        self._new.clear()
        self._offsets.clear()

    def _fail(self, reason: Exception) -> None:
        self.failure = self.failure or reason
        self._shut()


def _named(places: list[str]) -> list[str]:
    """Partitions as a part of a text, if there are some."""
    more = [f"and {len(places) - _SHOWN} more"] if len(places) > _SHOWN else []
    return [", ".join(places[:_SHOWN] + more)] if places else []
