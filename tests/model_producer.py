"""A producer's machine and a model of a cluster that answers it.

Requests of a broker are applied in their order; a connection may break before or after a request is applied, and a
request may be applied after its connection broke.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from kafkacodec import messages
from kafkacodec.client.core.backoff import Backoff
from kafkacodec.client.core.calls import Answer, Send, prepared
from kafkacodec.client.core.cluster import Cluster
from kafkacodec.client.core.metrics import Metrics
from kafkacodec.client.producing._delivery import Delivery
from kafkacodec.client.producing.identity import Idempotence
from kafkacodec.client.producing.queue import Queues
from kafkacodec.client.producing.sender import Sender
from kafkacodec.client.producing.settings import ProducerSettings
from kafkacodec.errors import ConnectionFailed
from tests.reference.model_log import Log

OK, NOT_LEADER, TOO_LARGE = 0, 6, 10
ALL_VERSIONS = {key: api.valid_versions for key, api in messages.APIS.items()}


class ModelCluster:
    """Brokers 1 and 2, the partitions of the topic "t", and a producer's machine with its requests in flight."""

    def __init__(self, partitions: int = 3, **options: Any) -> None:
        self.now = 1000.0
        self.logs = [Log() for _ in range(partitions)]
        self.leaders = [1 + n % 2 for n in range(partitions)]
        self.epoch = 0
        self.versions = ALL_VERSIONS
        defaults: dict[str, Any] = {"linger_ms": 0, "delivery_timeout_ms": 10**9, "request_timeout_ms": 10**6}
        self.settings = ProducerSettings(bootstrap_servers="a", **{**defaults, **options})
        self.cluster = Cluster([("a", 1)], backoff=Backoff(1, 1, jitter=0.0))
        self.cluster.want(["t"])
        self.queues = Queues(self.cluster, self.settings, lambda: self.now)
        self.identity = Idempotence(self.settings, Backoff(1, 1, jitter=0.0))
        self.sender = Sender(self.queues, self.cluster, self.settings, self.identity, Metrics(), progress=lambda: None)
        self.flying: dict[int, list[tuple[Send, Any, int]]] = defaultdict(list)
        self.late: dict[int, list[tuple[Any, int]]] = defaultdict(list)
        self.next_id = 7
        self.forced: dict[int, list[int]] = defaultdict(list)
        self.poll_cluster()

    def produce(self, value: bytes, partition: int | None = None, **more: Any) -> Delivery:
        """Queue a record."""
        topic = self.queues.topic("t")
        assert topic is not None
        with self.queues.lock:
            return self.queues.append(topic, partition, more.get("key"), value, more.get("headers", ()), 5)[0]

    def poll_cluster(self) -> None:
        """Answer the cluster's requests for metadata."""
        for send in self.cluster.poll(self.now):
            self.cluster.answered(send, Answer(self._metadata(), 12, -1), self.now)

    def poll(self, ms: float = 1) -> None:
        """Let time pass, and put what the machine sends into flight."""
        self.now += ms
        self.poll_cluster()
        for send in self.sender.poll(self.now):
            try:
                request, version = prepared(send.request, self.versions)
            except Exception as error:
                self.sender.failed(send, error, self.now)
                continue
            if request.api_key == 0:
                assert len(self.flying[send.to]) < 5
                self._check(request)
                body = request.encode(version)
                self.flying[send.to].append((send, type(request).decode(body, version), version))
            else:
                self.next_id += 1
                response = messages.InitProducerIdResponse(producer_id=self.next_id, producer_epoch=0)
                self.sender.answered(send, Answer(response, version, 1), self.now)

    def answer(self, node: int, *, position: int = 0) -> None:
        """Apply a broker's first request in flight, and answer it."""
        if self.flying[node]:
            send, request, version = self.flying[node].pop(0)
            self.sender.answered(send, Answer(self._apply(node, request), version, node), self.now)

    def drop(self, node: int, applied: int, late: bool) -> None:
        """End the connection to a broker, which applies so many requests before, and maybe the others later."""
        lost, self.flying[node] = self.flying[node], []
        for number, (_, request, version) in enumerate(lost):
            if number < applied:
                self._apply(node, request)
            elif late:
                self.late[node].append((request, version))
        for send, _, _ in lost:
            self.sender.failed(send, ConnectionFailed("dropped", sent=True), self.now)

    def apply_late(self, node: int) -> None:
        """Apply a request of a connection that is gone."""
        if self.late[node]:
            self._apply(node, self.late[node].pop(0)[0])

    def move(self, partition: int, leader: int) -> None:
        """Another broker leads a partition. It has what the old one had."""
        self.leaders[partition] = leader
        self.epoch += 1

    def in_flight(self, partition: int) -> bool:
        """Whether a batch of a partition was sent and is not answered, or comes late, or is sent again."""
        requests = [r for node in (1, 2) for r in [f[1] for f in self.flying[node]] + [f[0] for f in self.late[node]]]
        queue = self.queues.topics["t"].queues[partition] if "t" in self.queues.topics else None
        again = queue is not None and any(batch.attempts for batch in queue.waiting)
        return again or any(p.index == partition for r in requests for t in r.topic_data for p in t.partition_data)

    def finish(self) -> None:
        """No more faults: answer until nothing is queued."""
        for codes in self.forced.values():
            codes.clear()
        with self.queues.lock:
            self.queues.flush()
        for _ in range(2000):
            if not self.queues.pending:
                return
            self.poll(5)
            for node in (1, 2):
                self.answer(node)
        raise AssertionError(f"not delivered: {list(self.queues.pending)}")

    def _check(self, request: Any) -> None:
        """A request has one batch per partition, and is not larger than allowed."""
        parts = [(topic.name, topic.topic_id, p.index) for topic in request.topic_data for p in topic.partition_data]
        assert len(parts) == len(set(parts))
        assert len(parts) == 1 or len(request.encode(9)) <= self.settings.max_request_size

    def _apply(self, node: int, request: Any) -> Any:
        kind = messages.ProduceResponse
        answers = []
        for topic in request.topic_data:
            for part in topic.partition_data:
                forced = self.forced[part.index].pop(0) if self.forced[part.index] else OK
                if self.leaders[part.index] != node:
                    code, offset = NOT_LEADER, -1
                elif forced and not (forced == TOO_LARGE and self.logs[part.index].has(bytes(part.records))):
                    code, offset = forced, -1
                else:
                    data = bytes(part.records)
                    assert data[:8] == bytes(8)  # offsets are the broker's to give
                    code, offset, _ = self.logs[part.index].append(data, self.epoch)
                entry = kind.PartitionProduceResponse
                answers.append(entry(index=part.index, error_code=code, base_offset=offset))
        return kind(responses=[kind.TopicProduceResponse(name="t", partition_responses=answers)])

    def _metadata(self) -> Any:
        kind = messages.MetadataResponse
        brokers = [kind.MetadataResponseBroker(node_id=n, host=f"h{n}", port=9000 + n) for n in (1, 2)]
        entries = [
            kind.MetadataResponsePartition(partition_index=n, leader_id=leader, leader_epoch=self.epoch)
            for n, leader in enumerate(self.leaders)
        ]
        topic = kind.MetadataResponseTopic(name="t", partitions=entries)
        return kind(brokers=brokers, controller_id=1, topics=[topic])


def values_in(log: Log) -> list[Any]:
    """The values of a partition, in order; their places are their offsets, if nothing was lost."""
    return [value for _, _, value in log.records]


def values_by_partition(deliveries: list[tuple[Delivery, int, bytes]]) -> dict[int, list[bytes]]:
    """The values that were given to each partition, in their order."""
    found: dict[int, list[bytes]] = defaultdict(list)
    for _, partition, value in deliveries:
        found[partition].append(value)
    return found
