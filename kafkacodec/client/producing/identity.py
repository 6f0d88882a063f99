"""The identity of a producer to brokers: none, or an id and epoch by which they drop duplicates (KIP-98)."""

from __future__ import annotations

import logging
from typing import Any, Final, Protocol

from kafkacodec import messages
from kafkacodec.client.core.backoff import Backoff
from kafkacodec.client.core.calls import ANY, Answer, Send
from kafkacodec.client.core.coordinators import MOST_BROKEN
from kafkacodec.client.producing.settings import ProducerSettings
from kafkacodec.errors import RemoteProtocolError, UnsupportedVersion, error

__all__ = ["NOBODY", "Idempotence", "Identity", "ProducerId"]

_log = logging.getLogger("kafkacodec.client.producer")

ProducerId = tuple[int, int]
"""A producer's id and epoch."""

NOBODY: Final = (-1, -1)
_MOST_EPOCH: Final = 2**15 - 1
_NEWEST_VERSION: Final = messages.APIS[0].valid_versions[-1]


class Identity(Protocol):
    """What the sender needs to know about ids and transactions.

    Attributes:
        current: the id and epoch for partitions that have none; None while unknown.
        failure: why nothing can be sent any longer; None if sending is possible.
        passing: why the last request is being retried; None if it is not.
        transactional_id: the id of a transactional producer.
        highest_version: the highest version of Produce that may be used.
        renumbers: whether batches whose sequences a broker no longer accepts may get new ones.
        ended: whether failed batches are not retried, since their transaction will be aborted.
    """

    current: ProducerId | None
    failure: Exception | None
    passing: Exception | None
    transactional_id: str | None
    highest_version: int
    renumbers: bool

    @property
    def ended(self) -> bool:
        """See the class."""

    def allows(self, topic: str, partition: int) -> bool:
        """Whether batches of a partition may be sent now; if not, starts what is needed."""

    def replace(self, old: ProducerId) -> bool:
        """Replace `old`, whose sequences cannot continue, as `current`, if that keeps everything in order.
        Returns whether that is possible."""

    def given_up(self, reason: Exception, sent: bool) -> None:
        """Handle the final failure of a batch; `sent` is whether it was given a sequence."""

    def poll(self, now: float, needed: bool) -> list[Send]:
        """The requests to send now; `needed` is whether batches are waiting."""

    def next_deadline(self) -> float | None:
        """The time of the next `poll`."""

    def answered(self, send: Send, answer: Answer, now: float) -> None:
        """Handle the response to one of these requests."""

    def failed(self, send: Send, error: Exception, now: float) -> None:
        """Handle a request without a response."""


class Idempotence:
    """The identity of a producer without transactions, idempotent or not."""

    renumbers = True
    ended = False

    def __init__(self, settings: ProducerSettings, backoff: Backoff) -> None:
        self.current: ProducerId | None = None if settings.idempotent else NOBODY
        self.failure: Exception | None = None
        self.passing: Exception | None = None
        self.transactional_id: str | None = None
        self.highest_version = _NEWEST_VERSION
        self._required = bool(settings.enable_idempotence)
        self._timeout_ms = settings.transaction_timeout_ms
        self._backoff = backoff
        self._asking: Send | None = None
        self._failures = 0
        self._passes = False  # whether the failure only concerns the waiting batches
        self._next_at = 0.0

    def allows(self, topic: str, partition: int) -> bool:
        """Always."""
        return True

    def replace(self, old: ProducerId) -> bool:
        """Take the next epoch, which brokers accept from any non-transactional producer (KIP-360), or a new id."""
        if self.current == old:
            number, epoch = old
            self.current = (number, epoch + 1) if epoch < _MOST_EPOCH else None
        return True

    def given_up(self, reason: Exception, sent: bool) -> None:
        """Do nothing: nothing depends on it."""

    def poll(self, now: float, needed: bool) -> list[Send]:
        """Ask for an id if one is needed."""
        if self._passes:
            self.failure, self._passes = None, False
        if self.current is not None or self._asking is not None or now < self._next_at or not needed:
            return []
        request = messages.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=self._timeout_ms)
        self._asking = Send(ANY, request)
        return [self._asking]

    def next_deadline(self) -> float | None:
        """The time of the next attempt after a failure."""
        return self._next_at if self.current is None and self._asking is None and self._failures else None

    def answered(self, send: Send, answer: Answer, now: float) -> None:
        """Record the id."""
        self._asking, self.passing = None, None
        response: Any = answer.message
        if not response.error_code:
            self.current = (response.producer_id, response.producer_epoch)
            self._failures = 0
            return
        kind = error(response.error_code)
        if kind.retriable:
            self.passing = kind()
            self._again(now)
        else:
            self.failure = kind(f"no producer id: {kind.name}")

    def failed(self, send: Send, error: Exception, now: float) -> None:
        """Ask again, or continue without an id if brokers do not support them."""
        self._asking = None
        if not isinstance(error, UnsupportedVersion):
            self._again(now)
            if isinstance(error, RemoteProtocolError) and self._failures >= MOST_BROKEN:
                self.failure, self._passes = error, True
        elif self._required:
            self.failure = UnsupportedVersion(f"enable_idempotence needs Kafka 0.11 or later: {error}")
        else:
            _log.warning("the brokers do not support idempotence (Kafka 0.11 and later): retried batches may be "
                         "written twice. Set enable_idempotence=False if that is intended.")  # fmt: skip
            self.current = NOBODY

    def _again(self, now: float) -> None:
        self._failures += 1
        self._next_at = now + self._backoff.after(self._failures)
