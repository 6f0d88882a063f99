"""Descriptions of transactions: DescribeTransactions and ListTransactions (KIP-664, KIP-994, KIP-1152)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kafkacodec import messages
from kafkacodec.broker.state.machine import Client, Handler, Machine
from kafkacodec.broker.state.transaction import STATES, Transaction
from kafkacodec.errors import INVALID_REGULAR_EXPRESSION, INVALID_REQUEST, NONE, TRANSACTIONAL_ID_NOT_FOUND
from kafkacodec.messages import keys
from kafkacodec.patterns import PatternError, whole_matcher

__all__ = ["TransactionLists"]

_KNOWN = {*STATES, "Dead", "PrepareEpochFence"}  # the last two never occur here


class TransactionLists:
    """Both requests, for a coordinator and its transactions."""

    def __init__(self, machine: Machine, transactions: Mapping[str, Transaction]) -> None:
        self._machine, self._transactions = machine, transactions
        self.handlers: dict[int, Handler] = {
            keys.DESCRIBE_TRANSACTIONS: self._describe,
            keys.LIST_TRANSACTIONS: self._list,
        }

    def _describe(self, request: Any, version: int, client: Client, to: Any) -> None:
        rows = [self._described(name) for name in request.transactional_ids]
        self._machine.reply(to, messages.DescribeTransactionsResponse(transaction_states=rows))

    def _described(self, name: str) -> Any:
        entry = messages.DescribeTransactionsResponse.TransactionState
        found = self._transactions.get(name)
        if found is None:
            code = TRANSACTIONAL_ID_NOT_FOUND if name else INVALID_REQUEST
            return entry(error_code=code, transactional_id=name)
        topic = messages.DescribeTransactionsResponse.TopicData
        return entry(
            transactional_id=name,
            transaction_state=found.state,
            transaction_timeout_ms=found.timeout_ms,
            transaction_start_time_ms=found.started,
            producer_id=found.producer_id,
            producer_epoch=found.epoch,
            topics=[topic(topic=name, partitions=numbers) for name, numbers in found.by_topic().items()],
        )

    def _list(self, request: Any, version: int, client: Client, to: Any) -> None:
        response = messages.ListTransactionsResponse
        unknown = [state for state in request.state_filters if state not in _KNOWN]
        try:
            matches = _matcher(request.transactional_id_pattern)
        except (PatternError, ImportError):  # RE2 is a separate package
            self._machine.reply(to, response(error_code=INVALID_REGULAR_EXPRESSION))
            return
        entry = response.TransactionState
        rows = [
            entry(transactional_id=t.name, producer_id=t.producer_id, transaction_state=t.state)
            for t in self._transactions.values()
            if self._wanted(request, t) and matches(t.name)
        ]
        self._machine.reply(to, response(error_code=NONE, unknown_state_filters=unknown, transaction_states=rows))

    def _wanted(self, request: Any, found: Transaction) -> bool:
        states, ids = request.state_filters, request.producer_id_filters
        if states and found.state not in states:
            return False
        if ids and found.producer_id not in ids:
            return False
        longer_than: int = request.duration_filter
        return longer_than < 0 or self._machine.now - found.started > longer_than


def _matcher(pattern: str | None) -> Callable[[str], bool]:
    return whole_matcher(pattern) if pattern else lambda name: True
