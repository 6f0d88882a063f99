"""The decisions of a producer: what to send, and what answers and failures mean for its batches.

Source: KIP-98 and KIP-360 (idempotence), KIP-91 (delivery timeout), KIP-126 (oversized batches), KIP-951 (new leaders).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from kafkacodec.client.core.backoff import Backoff
from kafkacodec.client.core.calls import Answer, Send
from kafkacodec.client.core.cluster import Cluster
from kafkacodec.client.core.coordinators import MOST_BROKEN
from kafkacodec.client.core.metrics import Metrics
from kafkacodec.client.producing._appending import SEQUENCES
from kafkacodec.client.producing._batch import set_producer
from kafkacodec.client.producing.choice import Choice
from kafkacodec.client.producing.given_up import GivenUp
from kafkacodec.client.producing.identity import Identity
from kafkacodec.client.producing.queue import Batch, PartitionQueue, Queues
from kafkacodec.client.producing.requests import Packing, ProduceCall, split
from kafkacodec.client.producing.settings import ProducerSettings
from kafkacodec.errors import (
    DUPLICATE_SEQUENCE_NUMBER,
    INVALID_PRODUCER_EPOCH,
    MESSAGE_TOO_LARGE,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    RECORD_LIST_TOO_LARGE,
    UNKNOWN_PRODUCER_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    AuthenticationFailed,
    BrokerError,
    ConnectionFailed,
    DeadlineExceeded,
    RemoteProtocolError,
    error,
)
from kafkacodec.records.compression import compress
from kafkacodec.shown import counted

if TYPE_CHECKING:
    from kafkacodec.client.producing.shortcuts import Line, Shortcuts

__all__ = ["Sender"]

_SEQUENCES_LOST: Final = (OUT_OF_ORDER_SEQUENCE_NUMBER, UNKNOWN_PRODUCER_ID, INVALID_PRODUCER_EPOCH)
_LEAST_TIMEOUT_MS = 1000  # a late answer closes the connection, so a batch near its deadline waits a little longer


class Sender:
    """The machine of a producer.

    Args:
        queues, cluster, settings, identity: the parts of the same producer.
        metrics: the metrics to update.
        progress: called without the lock after the outcome of batches or new metadata is known.
        given_up: logs records that were given up; None in transactions, whose end raises why.

    Attributes:
        queues, identity: as given.
        shortcuts: the ways past the loop; None: there are none.
    """

    def __init__(
        self,
        queues: Queues,
        cluster: Cluster,
        settings: ProducerSettings,
        identity: Identity,
        metrics: Metrics,
        progress: Callable[[], None],
        given_up: GivenUp | None = None,
    ) -> None:
        self._given_up = given_up
        self.shortcuts: Shortcuts | None = None
        self.queues, self.identity = queues, identity
        self._cluster, self._settings = cluster, settings
        self._progress = progress
        self._backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms)
        self._acks, self._codec = settings.required_acks, settings.codec
        self._retries = math.inf if settings.retries is None else settings.retries
        self._choice = Choice(queues, cluster, settings, identity)
        self._calls: dict[Send, ProduceCall] = {}
        self._generation = -1
        self._answered_at = -math.inf
        self._idle_at = math.inf  # when to look for idle topics
        self._resolved: deque[tuple[Batch, int, int, Exception | None]] = deque()
        self._counts = metrics.acknowledged_batches()
        self._errors, self._resent = metrics.counter("producer.record_errors"), metrics.counter("producer.retries")
        metrics.gauge("producer.queue_bytes", lambda: float(queues.bytes))

    @property
    def brokers(self) -> list[int]:
        """The brokers to which batches were sent."""
        return list(self._choice.in_flight)

    # The interface of a machine

    def poll(self, now: float) -> list[Send]:
        """The requests that may be sent now."""
        with self.queues.lock:
            if self.identity.failure is not None:
                self._fail_all(self.identity.failure)
            if (oldest := next(iter(self.queues.pending), None)) is not None and oldest.deadline <= now:
                for queue in list(self.queues.active):
                    self._expire(queue, now)
            requests = self._choice.requests(now)
            while self._choice.gone:
                self._fail_missing(self._choice.gone.pop())
            sends = self.identity.poll(now, bool(self.queues.pending))
            later, soon = self.identity.next_deadline(), self._answered_at + self._settings.linger_ms
            deadline = self._choice.deadline
            if later is not None and later > now:  # otherwise it needs nothing; the driver is woken when it does
                deadline = min(deadline, later)
            if soon > now:  # a batch that begins before that needs no wake to have it sent in time
                deadline = min(deadline, soon)
            self.queues.asleep_until = deadline
        for node, request in requests:
            sends.append(self._send(node, request, now))
        if self._resolved:
            self._report()
        if self._generation != self._cluster.generation:
            self._generation = self._cluster.generation
            self.queues.metadata_changed()
            self._progress()
            self._forget_idle(now)
        return sends

    def _forget_idle(self, now: float) -> None:
        """Drop the metadata of topics that are no longer used."""
        most = self._settings.metadata_max_idle_ms
        if now >= self._idle_at:
            with self.queues.lock:
                idle = self.queues.idle(now - most)
            self._cluster.unwant(name for name in idle if name in self._cluster.topics)
        if now >= self._idle_at or self._idle_at == math.inf:
            self._idle_at = now + most / 2

    def next_deadline(self) -> float | None:
        """The time when a batch must be sent, may be retried, or fails."""
        return None if self.queues.asleep_until == math.inf else self.queues.asleep_until

    def answered(self, send: Send, answer: Answer, now: float) -> None:
        """Read the outcome of each batch."""
        call = self._landed(send)
        self._answered_at = now
        if call is None:
            self.identity.answered(send, answer, now)
            passing, name = self.identity.passing, self.identity.transactional_id
            if isinstance(passing, BrokerError):
                what = "a producer id" if name is None else f"a request for transactional id {name!r}"
                self._cluster.hindrances.refused(f"{what} is refused", passing.code, now)
            return
        parts = {} if answer.message is None else call.answers(answer.message)
        with self.queues.lock:
            for batch in call.batches:
                batch.queue.flying.remove(batch)
            for batch in call.batches:
                if batch in call.refused:
                    self._give_up(batch, call.refused[batch])
                elif answer.message is None:
                    self._delivered(batch, -1, -1)
                elif batch in parts:
                    self._read(batch, parts[batch], answer, now)
                else:
                    missing = RemoteProtocolError(f"broker {answer.node} did not answer for every partition")
                    self._retry(batch, missing, now)
            # The next batch wakes the driver. A transaction may be over now, and new metadata be wanted after an error.
            failed = False
            for resolved in self._resolved:
                failed = failed or resolved[3] is not None
            send.settles = not failed and not self.queues.pending and self.identity.transactional_id is None
        self._report()
        if self.shortcuts is not None and send.settles and len(call.batches) == 1:
            self.shortcuts.offer(call.batches[0].queue, answer, now)

    def failed(self, send: Send, error: Exception, now: float) -> None:
        """Retry the batches, unless the error is permanent."""
        call = self._landed(send)
        if call is None:
            self.identity.failed(send, error, now)
            return
        passing = isinstance(error, (ConnectionFailed, DeadlineExceeded, RemoteProtocolError))
        if passing:
            self._cluster.refresh()
        with self.queues.lock:
            for batch in call.batches:
                batch.queue.flying.remove(batch)
            for batch in reversed(call.batches):
                if batch in call.refused:
                    self._give_up(batch, call.refused[batch])
                elif passing and not isinstance(error, AuthenticationFailed):
                    self._retry(batch, error, now)
                else:
                    self._give_up(batch, error)
        self._report()

    def abandon(self, reason: Exception) -> None:
        """Fail everything whose delivery is not confirmed."""
        with self.queues.lock:
            self._fail_all(reason)
            for call in self._calls.values():
                for batch in call.batches:
                    batch.queue.flying.remove(batch)
                    self._give_up(batch, reason)
            self._calls.clear()
        self._report()

    def discard(self, reason: Exception) -> None:
        """Fail everything that is not in flight."""
        with self.queues.lock:
            self._fail_all(reason)
        self._report()

    # Sending

    def adopt(self, batch: Batch, line: Line, number: int, sent_at: float, size: int, rest: bytes | None) -> None:
        """Wait for the answer to a batch that was written past the loop, but for the `rest` of its request."""
        line.adopt(self._called(line.number, [batch], sent_at), self, number, sent_at, size, rest)

    def _send(self, node: int, request: Packing, now: float) -> Send:
        for batch in request.batches:
            self._finish(batch)
        return self._called(node, request.batches, now)

    def _called(self, node: int, batches: list[Batch], now: float) -> Send:
        """A request of batches that are finished, which is answered from now on."""
        settings, known = self._settings, self._cluster.topics
        topic_ids, deadline = {}, math.inf
        for batch in batches:
            name = batch.queue.topic
            topic_ids[name] = known[name].topic_id if name in known else None
            deadline = min(deadline, batch.deadline)
        call = ProduceCall(
            batches,
            topic_ids,
            acks=self._acks,
            timeout_ms=settings.request_timeout_ms,
            codec=self._codec,
            level=settings.compression_level,
            transactional_id=self.identity.transactional_id,
            highest_version=self.identity.highest_version,
        )
        send = Send(node, call.prepare, max(min(settings.request_timeout_ms, deadline - now), _LEAST_TIMEOUT_MS))
        self._choice.in_flight[node] = self._choice.in_flight.get(node, 0) + 1
        self._calls[send] = call
        return send

    def _finish(self, batch: Batch) -> None:
        """Compress a batch, and write the producer into it."""
        data = batch.finish(self._codec, self._compress if self._codec else None)
        if batch.producer is not None:
            transactional = self.identity.transactional_id is not None
            set_producer(data, *batch.producer, batch.sequence, transactional)

    def _compress(self, records: Any) -> Any:
        return compress(self._codec, records, level=self._settings.compression_level)

    # Outcomes

    def _landed(self, send: Send) -> ProduceCall | None:
        call = self._calls.pop(send, None)
        if call is not None:
            assert isinstance(send.to, int)
            self._choice.in_flight[send.to] -= 1
        return call

    def _read(self, batch: Batch, part: Any, answer: Answer, now: float) -> None:
        """Handle the broker's answer for a batch."""
        code = part.error_code
        if code in (0, DUPLICATE_SEQUENCE_NUMBER):
            self._delivered(batch, part.base_offset, part.log_append_time_ms)
            return
        kind = error(code)
        where = f"{batch.queue.topic}-{batch.queue.number}"
        hint = ": the record is larger than max.message.bytes of the topic" if code == MESSAGE_TOO_LARGE else ""
        reason = kind(f"{kind.name}: {where}{hint}{f': {part.error_message}' if part.error_message else ''}")
        if code in (MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE) and batch.count > 1:
            self._split(batch)
        elif code in _SEQUENCES_LOST and batch.producer is not None:
            first = batch.queue.is_next(batch)
            if first and not self.identity.renumbers:
                self._give_up(batch, reason)
                return
            batch.queue.broken = batch.queue.broken or first
            self._retry(batch, reason, now)
        elif kind.retriable:
            if kind.stale_metadata:
                self._moved(batch.queue, part, answer.message)
            self._retry(batch, reason, now)
        else:
            self._give_up(batch, reason)

    def _moved(self, queue: PartitionQueue, part: Any, message: Any) -> None:
        """Handle a change of leader; the response may name the new one (KIP-951)."""
        named = part.current_leader
        known = self._cluster.leader_changed(
            queue.topic, queue.number, named.leader_id, named.leader_epoch, message.node_endpoints
        )
        if not known:
            self._cluster.refresh()

    def _split(self, batch: Batch) -> None:
        """Queue the records of an oversized batch in smaller ones; sequences continue across the parts."""
        queue, count, parts = batch.queue, 0, []
        for data, records in split(batch, self._codec, self._settings.compression_level):
            part = Batch(queue, (batch.order[0], batch.first + count), batch.outcome, batch.first + count)
            part.data, part.count, part.size = data, records, len(data)
            part.deadline, part.attempts = batch.deadline, batch.attempts
            part.producer = batch.producer
            part.sequence = (batch.sequence + count) % SEQUENCES if batch.sequence >= 0 else -1
            parts.append(part)
            count += records
        self.queues.topics[queue.topic].limit_batches(batch.size // 2)
        self.queues.replace(batch, parts)

    def _delivered(self, batch: Batch, offset: int, time: int) -> None:
        batch.queue.proven = True
        self._counts.add(batch.count, 0 if batch.data is None else len(batch.data))
        self._resolve(batch, offset, time, None)

    def _retry(self, batch: Batch, reason: Exception, now: float) -> None:
        batch.error = reason
        if isinstance(reason, BrokerError):
            what = f"records of {batch.queue.topic}-{batch.queue.number} are refused"
            self._cluster.hindrances.refused(what, reason.code, now)
        batch.broken = batch.broken + 1 if isinstance(reason, RemoteProtocolError) else 0
        over = batch.attempts > self._retries or batch.broken >= MOST_BROKEN
        if over or not self._choice.resends or self.identity.ended:
            self._give_up(batch, reason)
        else:
            self._resent.add()
            batch.retry_at = now + self._backoff.after(batch.attempts)
            batch.queue.put_back(batch)

    def _expire(self, queue: PartitionQueue, now: float) -> None:
        """Fail the batches that have reached their deadline."""
        while (batch := queue.first) is not None and batch.deadline <= now:
            self._remove_first(queue)
            limit = self._settings.delivery_timeout_ms
            late = DeadlineExceeded(
                f"not delivered to {queue.topic}-{queue.number} within {limit} ms{self._because(batch)}",
                sent=batch.attempts > 0,
            )
            late.__cause__ = batch.error or self.identity.passing
            self._give_up(batch, late)

    def _fail_missing(self, queue: PartitionQueue) -> None:
        """Fail the batches of a partition that its topic has no longer."""
        count = counted(len(self._cluster.topics[queue.topic].partitions), "partition")
        text = f"{queue.topic}-{queue.number} is not there: topic {queue.topic!r} has only {count} now"
        while (batch := queue.first) is not None:
            self._remove_first(queue)
            self._give_up(batch, error(UNKNOWN_TOPIC_OR_PARTITION)(text))

    def _because(self, batch: Batch) -> str:
        if batch.error is not None:
            return f": {batch.error}"
        if self._cluster.leader(batch.queue.topic, batch.queue.number) is None:
            last = self._cluster.last_error
            return ": the partition has no leader" + (f" ({last})" if last else "")
        return f": no producer id: {self.identity.passing}" if self.identity.passing is not None else ""

    def _remove_first(self, queue: PartitionQueue) -> None:
        if not queue.waiting:
            self.queues.close(queue)
        queue.waiting.popleft()

    def _fail_all(self, reason: Exception) -> None:
        """Fail all waiting batches."""
        for queue in list(self.queues.active):
            while (batch := queue.first) is not None:
                self._remove_first(queue)
                self._give_up(batch, reason)

    def _give_up(self, batch: Batch, reason: Exception) -> None:
        self._errors.add(batch.count)
        self.identity.given_up(reason, batch.sequence >= 0)
        self._resolve(batch, -1, -1, reason)

    def _resolve(self, batch: Batch, offset: int, time: int, reason: Exception | None) -> None:
        self.queues.resolved(batch)
        batch.data = batch.builder = None
        self._resolved.append((batch, offset, time, reason))

    def _report(self) -> None:
        """Resolve deliveries, without the lock, as their callbacks may send."""
        while self._resolved:
            while self._resolved:
                batch, offset, time, reason = self._resolved.popleft()  # an interrupt leaves the others for later
                if reason is not None and self._given_up is not None:
                    self._given_up.note(batch.outcome, batch.first, batch.count, batch.queue.topic, reason)
                batch.resolve(offset, time, reason)
            self._progress()
