"""The transactions of the producer for asyncio."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from kafkacodec.client.core.prepared import PreparedTransaction
from kafkacodec.client.producing.queue import Queues
from kafkacodec.client.producing.sender import Sender
from kafkacodec.client.producing.settings import ProducerSettings
from kafkacodec.errors import ClientClosed, DeadlineExceeded, LocalProtocolError
from kafkacodec.lazy import imported_later

if TYPE_CHECKING:
    from kafkacodec.client.producing import transaction_requests as requests, transactions
    from kafkacodec.client.producing.transactions import Transaction, Transactions
else:  # few producers have transactions
    requests = imported_later("kafkacodec.client.producing.transaction_requests")
    transactions = imported_later("kafkacodec.client.producing.transactions")

__all__ = ["TransactionalProducer"]


class TransactionalProducer:
    """The methods of a producer with a ``transactional_id`` (KIP-98)."""

    _settings: ProducerSettings
    _sender: Sender
    _transactions: Transactions | None
    _queues: Queues

    async def start(self) -> None:
        """See the producer."""
        raise NotImplementedError

    async def flush(self, timeout: float | None = None) -> None:
        """See the producer."""
        raise NotImplementedError

    def _wake(self) -> None:
        """See the producer."""
        raise NotImplementedError

    async def _until(self, condition: Callable[[], bool], timeout: float | None) -> bool:
        raise NotImplementedError

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """A transaction: committed at the end of the block, aborted if an exception leaves it or committing fails.

        If committing is interrupted or ends by DeadlineExceeded, it is not known which: brokers may still commit it.
        Aborting waits for a broker too, up to ``max_block_ms`` after the exception.

        Raises:
            As `begin_transaction` and `commit_transaction`.
        """
        await self.begin_transaction()
        try:
            yield
            await self.commit_transaction()
        except BaseException as reason:
            try:
                await self._rolled_back()
            except Exception as error:
                reason.add_note(f"the transaction could not be aborted: {error}")
            raise

    async def _rolled_back(self) -> None:
        """Abort the transaction, if one is open and that is possible."""
        if self._started().abortable:
            await self.abort_transaction()

    async def _left(self) -> None:
        """Abort the open transaction, and wait for an ending one, so that others need not wait for its end."""
        own = self._started()
        if own.state is transactions.State.COMMITTING:
            with suppress(LocalProtocolError):
                await self.commit_transaction()
        if own.state in (transactions.State.OPEN, transactions.State.FAILED, transactions.State.ABORTING):
            await self.abort_transaction()

    async def init_transactions(self) -> None:
        """Get the producer's id, which ends the open transaction of an older producer with the same id and fences it.

        `begin_transaction` calls it if necessary.

        Raises:
            DeadlineExceeded: not done within ``max_block_ms``.
            RemoteProtocolError: several invalid answers in a row. You may repeat the call.
            BrokerError: the broker refuses, for instance for lack of authorization.
            UnsupportedVersion: the brokers have no transactions (before Kafka 0.11).
            LocalProtocolError: the producer has no ``transactional_id``.
        """
        await self.start()
        own = self._started()
        own.initialize()
        if own.idle:
            return
        await self._reach(lambda: own.initialized)

    async def begin_transaction(self) -> None:
        """Start a transaction: records sent from now on belong to it.

        Raises:
            LocalProtocolError: one is open.
            BrokerError: the producer was fenced by a newer one.
            Others as `init_transactions`.
        """
        await self.init_transactions()
        self._started().begin()

    def _begun_at_once(self) -> bool:
        """Begin a transaction if nothing has to be waited for; returns whether it has begun. For any thread."""
        own = self._started()
        with self._queues.lock:
            if own.idle:
                own.begin()
                return True
            return False

    async def prepare_transaction(self) -> PreparedTransaction:
        """Send queued records, and leave the transaction open for `Admin.end_transactions`, here or elsewhere.

        So one `Admin` can commit or abort the prepared transactions of several producers. The producer can still commit
        or abort, or close. The coordinator aborts a transaction that is open for longer than
        ``transaction_timeout_ms``; so does the next producer with the same ``transactional_id``.

        Raises:
            LocalProtocolError: no transaction is open, or it has failed: then its cause is why, and it must be aborted.
            Others as `flush`.
        """
        await self.start()
        own = self._started()
        with self._queues.lock:
            own.prepare()
        await self.flush()
        return own.prepared()

    async def commit_transaction(self) -> None:
        """Send what is queued, and commit.

        Repeat the call after DeadlineExceeded, or if it was interrupted, to learn how the transaction ended.

        Raises:
            LocalProtocolError: no transaction is open, or it has failed: then its cause is why, and it must be aborted.
            DeadlineExceeded: not done within ``max_block_ms`` after everything was sent.
            RemoteProtocolError: as `init_transactions`; it is not known whether the transaction is committed.
            BrokerError: the producer was fenced by a newer one.
        """
        await self.start()
        own = self._started()
        with self._queues.lock:
            ending = own.end(commit=True)
        await self.flush()
        await self._reach(lambda: ending.ended or own.state is transactions.State.FAILED)
        if not ending.ended:
            own.require(transactions.State.OPEN)
        ending.told = True
        if not ending.committed:
            raise LocalProtocolError("the transaction was aborted before it was committed")

    async def abort_transaction(self) -> None:
        """Drop queued records, and abort.

        Repeat the call after DeadlineExceeded, or if it was interrupted, to learn that the transaction ended.

        Raises:
            LocalProtocolError: no transaction is open, or it is being committed.
            DeadlineExceeded: not done within ``max_block_ms``.
            RemoteProtocolError: as `init_transactions`.
            BrokerError: the producer was fenced by a newer one.
        """
        await self.start()
        own = self._started()
        with self._queues.lock:
            ending = own.end(commit=False)
        self._sender.discard(ClientClosed("the transaction was aborted before the record was sent"))
        await self._reach(lambda: ending.ended)
        ending.told = True

    async def send_offsets_to_transaction(self, offsets: Mapping[tuple[str, int], Any], group: Any) -> None:
        """Commit a group's offsets with the transaction.

        Args:
            offsets: the next offset to read, by topic and partition: a number, or an object with ``offset``,
                ``leader_epoch`` and ``metadata``.
            group: the group's id; or a consumer's group metadata, which lets brokers fence members that the group has
                excluded (KIP-447).

        Raises:
            TypeError, ValueError: an offset or the group is wrong.
            Others as `commit_transaction`.
        """
        checked = requests.Offsets.of(offsets, group)
        await self.start()
        own = self._started()
        done = own.add_offsets(checked)
        self._wake()
        await self._wait(lambda: done() or own.failure is not None)
        own.require(transactions.State.OPEN)

    def _check_transaction(self, begun: Transaction | None = None) -> Transaction | None:
        """Return the open transaction of a record; None if the producer has no ``transactional_id``.

        Args:
            begun: the result before the caller had to wait.

        Raises:
            LocalProtocolError: there is no transaction, or no longer the same.
        """
        own = self._transactions
        if own is None:
            return None
        own.require(transactions.State.OPEN)
        if begun is not None and own.transaction is not begun:
            raise LocalProtocolError("the transaction to which the record belongs has ended")
        return own.transaction

    def _started(self) -> Transactions:
        if self._transactions is None:
            raise LocalProtocolError("the producer has no transactional_id")
        return self._transactions

    async def _reach(self, condition: Callable[[], bool]) -> None:
        own = self._started()
        self._wake()
        await self._wait(lambda: condition() or own.failure is not None)
        if own.failure is not None:
            raise own.failure.with_traceback(None)

    async def _wait(self, condition: Callable[[], bool]) -> None:
        limit, own = self._settings.max_block_ms / 1000, self._started()
        own.take_broken()
        reached = await self._until(lambda: condition() or own.broken is not None, limit)
        if not condition() and (broken := own.take_broken()) is not None:
            raise broken.with_traceback(None)
        if not reached:
            name = self._settings.transactional_id
            cause = f": {own.passing}" if own.passing is not None else ""
            raise DeadlineExceeded(
                f"no success for transactional id {name!r} within {limit:g} s; it is {own.state.value}{cause}"
            ) from own.passing
