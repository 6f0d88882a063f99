"""The choice of the batches that a producer sends next, and of their requests.

Order is kept per partition. An idempotent producer has several batches of a partition in flight, and the broker refuses
those that follow a lost one; retried batches are sent alone until nothing older is left. Other producers have one batch
of a partition in flight at a time, if it may be retried.
"""

from __future__ import annotations

import math

from kafkacodec.client.core.cluster import Cluster
from kafkacodec.client.producing.identity import NOBODY, Identity
from kafkacodec.client.producing.queue import Batch, PartitionQueue, Queues
from kafkacodec.client.producing.requests import Packing
from kafkacodec.client.producing.settings import ProducerSettings
from kafkacodec.errors import LEADER_NOT_AVAILABLE

__all__ = ["MISSING_MS", "Choice"]

MISSING_MS = 5_000.0
"""How long records wait for a partition that its topic has no longer."""


class Choice:
    """Takes batches from the queues. All methods are called under their lock.

    Args:
        queues, cluster, settings, identity: the parts of the same producer.

    Attributes:
        in_flight: the number of unanswered requests by broker.
        resends: whether batches are retried after temporary failures.
        deadline: when a batch that was left may be sent or will fail.
        gone: partitions that their topics have had no longer for `MISSING_MS`; their batches are to fail.
    """

    def __init__(self, queues: Queues, cluster: Cluster, settings: ProducerSettings, identity: Identity) -> None:
        self.queues, self.identity = queues, identity
        self._cluster, self._settings = cluster, settings
        self.in_flight: dict[int, int] = {}
        self.resends = settings.required_acks != 0 and settings.retries != 0
        self.deadline = math.inf
        self.gone: list[PartitionQueue] = []

    def requests(self, now: float) -> list[tuple[int, Packing]]:
        """The next requests, each with its broker."""
        made: dict[int, list[Packing]] = {}
        self.deadline = math.inf
        for queue in list(self.queues.active):
            if queue.waiting or queue.open is not None:
                self._take(queue, made, now)
            elif not queue.flying:
                del self.queues.active[queue]
        found = []
        for node, requests in made.items():
            for request in requests:
                if request.batches:
                    found.append((node, request))
        return found

    def _take(self, queue: PartitionQueue, made: dict[int, list[Packing]], now: float) -> None:
        """Take the batches of a partition that may be sent, each for a later request than the previous one."""
        at = 0
        while True:
            batch = queue.waiting[0] if queue.waiting else queue.open
            if batch is None or not self._is_ready(queue, batch, now):
                break
            batch.sealed = True  # its size counts from now on
            node = self._cluster.leader(queue.topic, queue.number)
            if node is None:
                self._await_leader(queue, now)
                break
            queue.missing_since = None
            requests = made.setdefault(node, [])
            while at < len(requests) and not requests[at].takes(batch, self._settings.max_request_size):
                at += 1
            if at == len(requests):
                busy = self.in_flight.get(node, 0) + len(requests)
                if busy >= self._settings.max_in_flight_requests_per_connection:
                    break
                requests.append(Packing())
            self.queues.begin(queue, batch)
            requests[at].add(batch)
            at += 1
        if batch is not None:
            batch.sealed = batch is not queue.open
            self.deadline = min(self.deadline, batch.deadline)
        if at:  # serve others first next time
            self.queues.active.pop(queue, None)
            self.queues.active[queue] = None

    def _await_leader(self, queue: PartitionQueue, now: float) -> None:
        """Ask for the leader of a partition. One that the topic has no longer may come back, but not for long.

        A topic that was made again may have fewer partitions. A broker that has not heard of new ones yet answers with
        fewer, too: that passes within seconds.
        """
        self._cluster.want([queue.topic])  # creates a deleted topic again
        self._cluster.refresh([queue.topic])
        known = self._cluster.topics.get(queue.topic)
        if known is None or not known.partitions or queue.number in known.partitions:
            queue.missing_since = None
            what = f"{queue.topic}-{queue.number} has no leader"
            self._cluster.hindrances.refused(what, LEADER_NOT_AVAILABLE, now)
            return
        if queue.missing_since is None:
            queue.missing_since = now
        until = queue.missing_since + MISSING_MS
        if now < until:
            self.deadline = min(self.deadline, until)
        elif not queue.flying:
            self.gone.append(queue)

    def _is_ready(self, queue: PartitionQueue, batch: Batch, now: float) -> bool:
        """Whether a partition's next batch may be sent now. If it only has to wait, notes until when."""
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
        """Whether the batch must be the only one of its partition in flight, for order or to establish sequences.

        A broker accepts any first sequence of an unknown producer, so the first batch is sent alone.
        """
        if batch.attempts or queue.broken or queue.flying[0].attempts > 1:
            return True  # a broker knows the last five batches only: a retried one must not fall behind them
        if queue.producer is None or queue.producer == NOBODY:
            return self.resends
        return not queue.proven

    def _repair(self, queue: PartitionQueue) -> bool:
        """Renumber the batches to be retried from 0, under a new epoch."""
        assert queue.producer is not None
        if not self.identity.replace(queue.producer):
            return False
        queue.producer, queue.broken = None, False
        for batch in queue.waiting:
            batch.producer, batch.sequence = None, -1
        return True
