"""Which batches of a producer are sent next, and in what requests.

Order is kept per partition. With an idempotent producer several batches of a partition are in flight, and the broker
refuses those that follow a lost one; what is sent again goes alone until nothing older is left. Without it, one batch
of a partition is in flight at a time, if it may be sent again.
"""

from __future__ import annotations

import math

from kafkacodec.client.core.cluster import Cluster
from kafkacodec.client.producing.identity import NOBODY, Identity
from kafkacodec.client.producing.queue import Batch, PartitionQueue, Queues
from kafkacodec.client.producing.requests import Packing
from kafkacodec.client.producing.settings import ProducerSettings

__all__ = ["SEQUENCES", "Choice"]

SEQUENCES = 2**31
"""How many sequence numbers there are; after the last comes 0."""


class Choice:
    """Takes batches from the queues; all calls are made under their lock.

    Args:
        queues, cluster, settings, identity: of the same producer.

    Attributes:
        in_flight: how many requests each broker has not answered.
        resends: whether batches are sent again after failures that may pass.
        deadline: when a batch that was left may be sent or fails.
    """

    def __init__(self, queues: Queues, cluster: Cluster, settings: ProducerSettings, identity: Identity) -> None:
        self.queues, self.identity = queues, identity
        self._cluster, self._settings = cluster, settings
        self.in_flight: dict[int, int] = {}
        self.resends = settings.required_acks != 0 and settings.retries != 0
        self.deadline = math.inf

    def requests(self, now: float) -> list[tuple[int, Packing]]:
        """The next requests, each with the broker that it is for."""
        made: dict[int, list[Packing]] = {}
        self.deadline = math.inf
        for queue in list(self.queues.active):
            if queue.first is not None:
                self._take(queue, made, now)
            elif not queue.flying:
                del self.queues.active[queue]
        return [(node, request) for node, requests in made.items() for request in requests if request.batches]

    def _take(self, queue: PartitionQueue, made: dict[int, list[Packing]], now: float) -> None:
        """Take the batches of a partition that may be sent, each for a later request than the one before."""
        at = 0
        while (batch := queue.first) is not None and self._is_ready(queue, batch, now):
            node = self._cluster.leader(queue.topic, queue.number)
            if node is None:
                self._cluster.want([queue.topic])  # a topic that was deleted comes up again
                self._cluster.refresh([queue.topic])
                break
            requests = made.setdefault(node, [])
            while at < len(requests) and not requests[at].takes(batch, self._settings.max_request_size):
                at += 1
            if at == len(requests):
                busy = self.in_flight.get(node, 0) + len(requests)
                if busy >= self._settings.max_in_flight_requests_per_connection:
                    break
                requests.append(Packing())
            self._start(queue, batch)
            requests[at].add(batch)
            at += 1
        if batch is not None:
            self.deadline = min(self.deadline, batch.deadline)
        if at:  # others are served first the next time
            self.queues.active.pop(queue, None)
            self.queues.active[queue] = None

    def _is_ready(self, queue: PartitionQueue, batch: Batch, now: float) -> bool:
        """Whether a partition's next batch may be sent now. If only time is missing, notes when."""
        if batch is queue.open and not self.queues.is_due(batch, now):
            self.deadline = min(self.deadline, batch.due_at)
            return False
        if batch.retry_at > now:
            self.deadline = min(self.deadline, batch.retry_at)
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
            return self.resends
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
            queue.next_sequence = (queue.next_sequence + batch.count) % SEQUENCES
        batch.attempts += 1
