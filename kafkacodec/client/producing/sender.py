"""The decisions of a producer: which batches go to which broker, and what answers and failures mean for them.

Order is kept per partition. With an idempotent producer several batches of a partition are in flight, and the broker
refuses those that follow a lost one; what is sent again goes alone until nothing older is left. Without it, one batch
of a partition is in flight at a time, if it may be sent again.

Source: KIP-98 and KIP-360 (idempotence), KIP-91 (delivery timeout), KIP-126 (too large batches), KIP-951 (new leaders).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from kafkacodec.client.core.backoff import Backoff
from kafkacodec.client.core.calls import Answer, Send
from kafkacodec.client.core.cluster import Cluster
from kafkacodec.client.core.metrics import Metrics
from kafkacodec.client.producing._batch import set_producer
from kafkacodec.client.producing.identity import NOBODY, Identity
from kafkacodec.client.producing.queue import Batch, PartitionQueue, Queues
from kafkacodec.client.producing.requests import Packing, ProduceCall, split
from kafkacodec.client.producing.settings import ProducerSettings
from kafkacodec.errors import (
    AuthenticationFailed,
    ConnectionFailed,
    DeadlineExceeded,
    RemoteProtocolError,
    error,
)
from kafkacodec.records.compression import compress

__all__ = ["Sender"]

_MESSAGE_TOO_LARGE, _RECORD_LIST_TOO_LARGE = 10, 18
_OUT_OF_ORDER, _DUPLICATE, _INVALID_EPOCH, _UNKNOWN_PRODUCER = 45, 46, 47, 59
_SEQUENCES_LOST: Final = (_OUT_OF_ORDER, _UNKNOWN_PRODUCER, _INVALID_EPOCH)
_SEQUENCES = 2**31
_LEAST_TIMEOUT_MS = 1000  # a connection is closed when an answer is late, so a batch near its end waits a bit longer


class Sender:
    """The machine of a producer.

    Args:
        queues, cluster, settings, identity: of the same producer.
        metrics: where it counts.
        progress: called, without the lock, after the outcome of batches is known, or the cluster is known better.
    """

    def __init__(
        self,
        queues: Queues,
        cluster: Cluster,
        settings: ProducerSettings,
        identity: Identity,
        metrics: Metrics,
        progress: Callable[[], None],
    ) -> None:
        self.queues, self.identity = queues, identity
        self._cluster, self._settings = cluster, settings
        self._progress = progress
        self._backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms)
        self._retries = math.inf if settings.retries is None else settings.retries
        self._resends = settings.required_acks != 0 and self._retries > 0
        self._in_flight: dict[int, int] = {}
        self._calls: dict[Send, ProduceCall] = {}
        self._generation = -1
        self._deadline = math.inf
        self._resolved: list[tuple[Batch, int, int, Exception | None]] = []
        self._records, self._errors = metrics.counter("producer.records"), metrics.counter("producer.record_errors")
        self._batches, self._bytes = metrics.counter("producer.batches"), metrics.counter("producer.bytes")
        self._resent = metrics.counter("producer.retries")
        self._batch_records = metrics.histogram("producer.batch_records")
        self._batch_bytes = metrics.histogram("producer.batch_bytes")
        metrics.gauge("producer.queue_bytes", lambda: float(queues.bytes))

    # A machine

    def poll(self, now: float) -> list[Send]:
        """The requests that may be sent now."""
        with self.queues.lock:
            if self.identity.failure is not None:
                self._fail_all(self.identity.failure)
            requests = self._requests(now)
            sends = self.identity.poll(now, bool(self.queues.pending))
            later = self.identity.next_deadline()
            self.queues.asleep_until = self._deadline if later is None else min(self._deadline, later)
        sends += [self._send(node, request, now) for node, request in requests]
        self._report()
        if self._generation != self._cluster.generation:
            self._generation = self._cluster.generation
            self._progress()
        return sends

    def next_deadline(self) -> float | None:
        """When a batch is due, may be sent again, or fails."""
        return None if self.queues.asleep_until == math.inf else self.queues.asleep_until

    def answered(self, send: Send, answer: Answer, now: float) -> None:
        """Read the outcome of each batch."""
        call = self._landed(send)
        if call is None:
            self.identity.answered(send, answer, now)
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
        self._report()

    def failed(self, send: Send, error: Exception, now: float) -> None:
        """Send the batches again, unless the reason stays."""
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
        """Fail everything that is not known to be delivered."""
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

    # Choosing

    def _requests(self, now: float) -> list[tuple[int, Packing]]:
        """Take batches from the queues."""
        made: dict[int, list[Packing]] = {}
        self._deadline = math.inf
        for queue in list(self.queues.active):
            self._expire(queue, now)
            if queue.first is None:
                if not queue.flying:
                    del self.queues.active[queue]
                continue
            self._take(queue, made, now)
        return [(node, request) for node, requests in made.items() for request in requests if request.batches]

    def _take(self, queue: PartitionQueue, made: dict[int, list[Packing]], now: float) -> None:
        """Take the batches of a partition that may be sent, each for a later request than the one before."""
        at = 0
        while (batch := queue.first) is not None and self._is_ready(queue, batch, now):
            node = self._cluster.leader(queue.topic, queue.number)
            if node is None:
                self._cluster.refresh()
                break
            requests = made.setdefault(node, [])
            while at < len(requests) and not requests[at].takes(batch, self._settings.max_request_size):
                at += 1
            if at == len(requests):
                busy = self._in_flight.get(node, 0) + len(requests)
                if busy >= self._settings.max_in_flight_requests_per_connection:
                    break
                requests.append(Packing())
            self._start(queue, batch)
            requests[at].add(batch)
            at += 1
        if batch is not None:
            self._deadline = min(self._deadline, batch.deadline)
        if at:  # others are served first the next time
            self.queues.active.pop(queue, None)
            self.queues.active[queue] = None

    def _is_ready(self, queue: PartitionQueue, batch: Batch, now: float) -> bool:
        """Whether a partition's next batch may be sent now. If only time is missing, notes when."""
        if batch is queue.open and not self.queues.is_due(batch, now):
            self._deadline = min(self._deadline, batch.due_at)
            return False
        if batch.retry_at > now:
            self._deadline = min(self._deadline, batch.retry_at)
            return False
        if queue.flying and self._must_be_alone(queue, batch):
            return False
        if queue.broken and not self._repair(queue):
            return False
        if batch.sequence < 0 and not queue.flying and queue.producer != self.identity.current:
            queue.producer, queue.next_sequence, queue.proven = self.identity.current, 0, False
        if queue.producer is None:
            return False
        return self.identity.allows(queue.topic, queue.number)

    def _must_be_alone(self, queue: PartitionQueue, batch: Batch) -> bool:
        """Whether nothing else of the partition may be in flight: to keep the order, or to prove the sequences.

        A broker takes any first sequence of a producer that it does not know, so the first batch goes ahead.
        """
        if batch.attempts or queue.broken:
            return True
        if queue.producer is None or queue.producer == NOBODY:
            return self._resends
        return not queue.proven

    def _repair(self, queue: PartitionQueue) -> bool:
        """Number the batches that have to be sent again from 0, under another epoch."""
        assert queue.producer is not None
        if not self.identity.replace(queue.producer):
            return False
        queue.producer, queue.broken = None, False
        for batch in queue.waiting:
            batch.producer, batch.sequence = None, -1
        return True

    def _start(self, queue: PartitionQueue, batch: Batch) -> None:
        if batch is queue.open:
            self.queues.close(queue)
        queue.waiting.popleft()
        queue.flying.append(batch)
        if batch.sequence < 0 and queue.producer is not None and queue.producer != NOBODY:
            batch.producer, batch.sequence = queue.producer, queue.next_sequence
            queue.next_sequence = (queue.next_sequence + batch.count) % _SEQUENCES
        batch.attempts += 1

    def _send(self, node: int, request: Packing, now: float) -> Send:
        settings = self._settings
        call = ProduceCall(
            request.batches,
            {batch.queue.topic: self._topic_id(batch.queue.topic) for batch in request.batches},
            acks=settings.required_acks,
            timeout_ms=settings.request_timeout_ms,
            codec=settings.codec,
            level=settings.compression_level,
            transactional_id=self.identity.transactional_id,
            highest_version=self.identity.highest_version,
        )
        for batch in request.batches:
            self._finish(batch)
        left = min(batch.deadline for batch in request.batches) - now
        send = Send(node, call.prepare, max(min(settings.request_timeout_ms, left), _LEAST_TIMEOUT_MS))
        self._in_flight[node] = self._in_flight.get(node, 0) + 1
        self._calls[send] = call
        return send

    def _finish(self, batch: Batch) -> None:
        """Compress a batch, and write who sends it."""
        settings = self._settings
        squeeze = self._compress if settings.codec else None
        data = batch.finish(settings.codec, squeeze)
        if batch.producer is not None:
            transactional = self.identity.transactional_id is not None
            set_producer(data, *batch.producer, batch.sequence, transactional)

    def _compress(self, records: Any) -> Any:
        return compress(self._settings.codec, records, level=self._settings.compression_level)

    def _topic_id(self, topic: str) -> Any:
        known = self._cluster.topics.get(topic)
        return None if known is None else known.topic_id

    # Outcomes

    def _landed(self, send: Send) -> ProduceCall | None:
        call = self._calls.pop(send, None)
        if call is not None:
            assert isinstance(send.to, int)
            self._in_flight[send.to] -= 1
        return call

    def _read(self, batch: Batch, part: Any, answer: Answer, now: float) -> None:
        """What the broker says about a batch."""
        code = part.error_code
        if code in (0, _DUPLICATE):
            self._delivered(batch, part.base_offset, part.log_append_time_ms)
            return
        kind = error(code)
        where = f"{batch.queue.topic}-{batch.queue.number}"
        reason = kind(f"{kind.name}: {where}{f': {part.error_message}' if part.error_message else ''}")
        if code in (_MESSAGE_TOO_LARGE, _RECORD_LIST_TOO_LARGE) and batch.count > 1:
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
        """A partition has another leader: take it over if the response names it (KIP-951)."""
        named = part.current_leader
        known = self._cluster.leader_changed(
            queue.topic, queue.number, named.leader_id, named.leader_epoch, message.node_endpoints
        )
        if not known:
            self._cluster.refresh()

    def _split(self, batch: Batch) -> None:
        """Queue the records of a batch that is too large in two; sequences go on in the parts."""
        queue, count, parts = batch.queue, 0, []
        for data, records in split(batch, self._settings.codec, self._settings.compression_level):
            part = Batch(queue, (batch.order[0], batch.first + count), batch.outcome, batch.first + count)
            part.data, part.count, part.size = data, records, len(data)
            part.deadline, part.attempts = batch.deadline, batch.attempts
            part.producer = batch.producer
            part.sequence = (batch.sequence + count) % _SEQUENCES if batch.sequence >= 0 else -1
            parts.append(part)
            count += records
        self.queues.topics[queue.topic].limit_batches(batch.size // 2)
        self.queues.replace(batch, parts)

    def _delivered(self, batch: Batch, offset: int, time: int) -> None:
        batch.queue.proven = True
        self._records.add(batch.count)
        self._batches.add()
        size = 0 if batch.data is None else len(batch.data)
        self._bytes.add(size)
        self._batch_records.add(batch.count)
        self._batch_bytes.add(size)
        self._resolve(batch, offset, time, None)

    def _retry(self, batch: Batch, reason: Exception, now: float) -> None:
        batch.error = reason
        if batch.attempts > self._retries or not self._resends or self.identity.ended:
            self._give_up(batch, reason)
        else:
            self._resent.add()
            batch.retry_at = now + self._backoff.after(batch.attempts)
            batch.queue.put_back(batch)

    def _expire(self, queue: PartitionQueue, now: float) -> None:
        """Fail the batches whose time is over."""
        while (batch := queue.first) is not None and batch.deadline <= now:
            self._remove_first(queue)
            limit = self._settings.delivery_timeout_ms
            late = DeadlineExceeded(
                f"not delivered to {queue.topic}-{queue.number} within {limit} ms{_because(batch, self._cluster)}",
                sent=batch.attempts > 0,
            )
            late.__cause__ = batch.error
            self._give_up(batch, late)

    def _remove_first(self, queue: PartitionQueue) -> None:
        if not queue.waiting:
            self.queues.close(queue)
        queue.waiting.popleft()

    def _fail_all(self, reason: Exception) -> None:
        """Fail what waits."""
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
        """Tell deliveries what became of them, without the lock: their callbacks may send."""
        while self._resolved:
            resolved, self._resolved = self._resolved, []
            for batch, offset, time, reason in resolved:
                batch.resolve(offset, time, reason)
            self._progress()


def _because(batch: Batch, cluster: Cluster) -> str:
    if batch.error is not None:
        return f": {batch.error}"
    if cluster.leader(batch.queue.topic, batch.queue.number) is None:
        return ": the partition has no leader" + (f" ({cluster.last_error})" if cluster.last_error else "")
    return ""
