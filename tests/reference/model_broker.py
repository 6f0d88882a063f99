"""A model of a Kafka cluster without I/O, for state machines of client code: simple, slow, and strict.

    cluster = ModelCluster(nodes=3, topics={"orders": 4})
    response = cluster.request(2, messages.MetadataRequest(topics=None), 12)
    cluster.logs["orders", 0].records            # what partition 0 holds
    cluster.move_leader("orders", 0)             # and more that happens to clusters
    cluster.fail("Produce", 7, applied=True)     # the next answer to Produce is error 7, after the append

It answers Metadata, FindCoordinator, InitProducerId, Produce, Fetch with sessions, ListOffsets, OffsetForLeaderEpoch,
in all their versions with record format 2. Requests and responses are encoded and decoded on the way, so that a field
which a version lacks is an error. `tests.reference.model_network` runs machines of a client against it.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kafkacodec import messages
from kafkacodec.errors import (
    COORDINATOR_NOT_AVAILABLE,
    LEADER_NOT_AVAILABLE,
    NOT_COORDINATOR,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from tests.reference import model_partitions
from tests.reference.model_log import Log

__all__ = ["Failure", "ModelCluster"]

Reply = Callable[[Any], None]
Handler = Callable[["ModelCluster", "Asked"], Any]


@dataclass
class Failure:
    """Answers with an error code instead of, or after, doing what was asked."""

    api: int
    code: int
    applied: bool
    place: tuple[str, int] | None
    left: int


@dataclass
class Leadership:
    """Who leads a partition, since which epoch."""

    leader: int | None
    epoch: int = 0


@dataclass(eq=False)
class Asked:
    """A request. Its answer may wait for something else to happen, until its time ends.

    Attributes:
        expired: whether the time is over: it has to be answered now.
        state: what its handler keeps from one attempt to the next.
    """

    node: int
    request: Any
    version: int
    reply: Reply
    deadline: float
    expired: bool = False
    state: Any = None


@dataclass
class View:
    """What a broker knows of topics, which may be old."""

    leaders: dict[tuple[str, int], Leadership]
    names: dict[str, uuid.UUID] = field(default_factory=dict)


class ModelCluster:
    """Brokers 1 to `nodes`, all of which replicate all partitions.

    Args:
        nodes: how many brokers there are.
        topics: the number of partitions by topic.
        versions: the versions of each API by its key; all that this library has where nothing is given.
        auto_create: topics that metadata is asked for come up, with one partition.

    Attributes:
        logs: by topic and partition.
        leaders: by topic and partition.
        topic_ids: by topic.
        refusals: the errors that Metadata has for topics.
        alive: the brokers that run.
        requests: the requests that came, as (node, request, version), for tests to look at.
        now: ms.
    """

    def __init__(
        self,
        nodes: int = 1,
        topics: Mapping[str, int] | None = None,
        *,
        versions: Mapping[int, range] | None = None,
        auto_create: bool = False,
    ) -> None:
        self.nodes = list(range(1, nodes + 1))
        self.alive = set(self.nodes)
        self.versions = {key: messages.APIS[key].valid_versions for key in HANDLERS} | dict(versions or {})
        self.auto_create = auto_create
        self.logs: dict[tuple[str, int], Log] = {}
        self.leaders: dict[tuple[str, int], Leadership] = {}
        self.topic_ids: dict[str, uuid.UUID] = {}
        self.refusals: dict[str, int] = {}
        self.read_replicas: dict[tuple[str, int], int] = {}
        self.sessions = model_partitions.Sessions()
        self.requests: list[tuple[int, Any, int]] = []
        self.now = 0.0
        self._made = 0
        self._producer_ids = 1000
        self._failures: list[Failure] = []
        self._parked: list[Asked] = []
        self._views: dict[int, View] = {}
        for topic, count in (topics or {}).items():
            self.create(topic, count)

    # Requests

    def request(self, node: int, request: Any, version: int) -> Any:
        """The response to a request, None if it has none (yet)."""
        found: list[Any] = []
        self.receive(node, request, version, found.append)
        return found[0] if found else None

    def receive(self, node: int, request: Any, version: int, reply: Reply) -> None:
        """Take a request; `reply` gets the response, at once or later, and None where there is none."""
        key = request.api_key
        assert version in self.versions[key], f"{type(request).__name__} version {version} was not offered"
        request = type(request).decode(request.encode(version), version)
        self.requests.append((node, request, version))
        wait = getattr(request, "max_wait_ms", 0)
        asked = Asked(node, request, version, reply, self.now + max(wait, 0))
        if not self._answer(asked):
            self._parked.append(asked)
        self._retry()

    def advance(self, ms: float) -> None:
        """Let time go by, which ends waits."""
        self.now += ms
        self._retry()

    def next_deadline(self) -> float | None:
        """When the wait of a request ends."""
        return min((waiting.deadline for waiting in self._parked), default=None)

    def forget(self, reply: Reply) -> None:
        """The connection of a waiting request was lost; it goes on waiting but nobody gets its answer."""
        for waiting in self._parked:
            if waiting.reply == reply:
                waiting.reply = _nobody

    def _retry(self) -> None:
        again = True
        while again:
            again = False
            for asked in list(self._parked):
                if asked in self._parked and self._answer(asked):
                    self._parked.remove(asked)
                    again = True

    def _answer(self, asked: Asked) -> bool:
        asked.expired = self.now >= asked.deadline
        response = self._refusal(asked.request) or HANDLERS[asked.request.api_key](self, asked)
        if response is None:
            return False
        if response is model_partitions.NO_RESPONSE:
            asked.reply(None)
        else:
            asked.reply(type(response).decode(response.encode(asked.version), asked.version))
        return True

    def _refusal(self, request: Any) -> Any:
        """An injected error for a request whose response has one error code."""
        kind = messages.by_key(request.api_key)[1]
        if request.api_key in model_partitions.HANDLERS or not hasattr(kind(), "error_code"):
            return None
        failure = self.failure(request.api_key, None)
        return kind(error_code=failure.code) if failure is not None else None

    # What happens to clusters

    def create(self, topic: str, partitions: int = 1) -> None:
        """Create a topic; leaders go round."""
        self._made += 1
        self.topic_ids[topic] = uuid.UUID(int=self._made)
        for number in range(partitions):
            self.logs[topic, number] = Log()
            self.leaders[topic, number] = Leadership(self.nodes[number % len(self.nodes)])

    def delete(self, topic: str) -> None:
        """Delete a topic."""
        del self.topic_ids[topic]
        for place in [place for place in self.logs if place[0] == topic]:
            del self.logs[place], self.leaders[place]

    def add_partitions(self, topic: str, count: int) -> None:
        """Add partitions to a topic."""
        first = sum(place[0] == topic for place in self.logs)
        for number in range(first, first + count):
            self.logs[topic, number] = Log()
            self.leaders[topic, number] = Leadership(self.nodes[number % len(self.nodes)])

    def move_leader(self, topic: str, partition: int, node: int | None = None) -> None:
        """Another broker that runs leads a partition, the next one if none is named; nobody if none runs."""
        old = self.leaders[topic, partition]
        if node is None:
            others = sorted(self.alive - {old.leader}) or sorted(self.alive)
            node = next((n for n in others if n > (old.leader or 0)), others[0] if others else None)
        self.leaders[topic, partition] = Leadership(node, old.epoch + 1)

    def stop(self, node: int) -> None:
        """A broker ends; the others lead what it led."""
        self.alive.discard(node)
        self.sessions.lose(node)
        for (topic, partition), leadership in list(self.leaders.items()):
            if leadership.leader == node:
                self.move_leader(topic, partition)

    def start(self, node: int) -> None:
        """A broker runs again, and leads what has no leader."""
        self.alive.add(node)
        for (topic, partition), leadership in list(self.leaders.items()):
            if leadership.leader is None:
                self.move_leader(topic, partition, node)

    def lose(self, topic: str, partition: int, offset: int) -> None:
        """An unclean election: records from `offset` on are gone, and another broker leads."""
        self.logs[topic, partition].truncate(offset)
        self.move_leader(topic, partition)

    def hold_metadata(self, node: int, hold: bool = True) -> None:
        """A broker goes on answering Metadata with what it knows now, or again with what is."""
        if hold:
            self._views[node] = View(dict(self.leaders), dict(self.topic_ids))
        else:
            self._views.pop(node, None)

    def fail(
        self, api: str, code: int, *, applied: bool = False, place: tuple[str, int] | None = None, times: int = 1
    ) -> None:
        """Answer the next requests of an API with an error, for each partition that is asked for or the one given.

        Args:
            api: such as ``"Produce"``.
            code: the error code.
            applied: whether Produce does what was asked for before it fails.
            place: topic and partition; the next ones that come if None.
            times: how many answers.
        """
        key = next(key for key, found in messages.APIS.items() if found.name == api)
        self._failures.append(Failure(key, code, applied, place, times))

    def failure(self, api: int, place: tuple[str, int] | None) -> Failure | None:
        """The failure that was asked for, taken from the list."""
        for found in self._failures:
            if found.api == api and found.place in (None, place):
                found.left -= 1
                if not found.left:
                    self._failures.remove(found)
                return found
        return None

    # Looking things up

    def topic_name(self, topic_id: uuid.UUID) -> str | None:
        """The topic with an id."""
        return next((name for name, known in self.topic_ids.items() if known == topic_id), None)

    def coordinator(self, key: str) -> int | None:
        """The broker that coordinates a group or a transactional id; None if none runs."""
        running = sorted(self.alive)
        return running[sum(key.encode()) % len(running)] if running else None

    def next_producer_id(self) -> int:
        """A new producer id."""
        self._producer_ids += 1
        return self._producer_ids

    def view(self, node: int) -> View:
        """What a broker knows."""
        return self._views.get(node) or View(self.leaders, self.topic_ids)


def _nobody(response: Any) -> None:
    """The client is gone."""


def host_of(node: int) -> tuple[str, int]:
    """Where a broker of the model is said to listen."""
    return f"node{node}", 9090 + node


def metadata(cluster: ModelCluster, asked: Asked) -> Any:
    """Brokers that run, and the topics that are asked for."""
    kind = messages.MetadataResponse
    response = kind(cluster_id="model", controller_id=min(cluster.alive, default=-1))
    for number in sorted(cluster.alive):
        host, port = host_of(number)
        response.brokers.append(kind.MetadataResponseBroker(node_id=number, host=host, port=port))
    view = cluster.view(asked.node)
    everything = asked.request.topics is None or (asked.version == 0 and not asked.request.topics)
    wanted = [(n, None) for n in view.names] if everything else [(t.name, t.topic_id) for t in asked.request.topics]
    create = cluster.auto_create and (asked.version < 4 or asked.request.allow_auto_topic_creation)
    for name, topic_id in wanted:
        if name is None:
            name = next((known for known, value in view.names.items() if value == topic_id), None)
        response.topics.append(_topic(cluster, view, name, topic_id, create=create))
    return response


def _topic(cluster: ModelCluster, view: View, name: str | None, topic_id: Any, *, create: bool) -> Any:
    kind = messages.MetadataResponse
    if name is None:
        return kind.MetadataResponseTopic(error_code=UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id)
    if name in cluster.refusals:
        return kind.MetadataResponseTopic(error_code=cluster.refusals[name], name=name)
    if name not in view.names:
        code = UNKNOWN_TOPIC_OR_PARTITION
        if create and name not in cluster.topic_ids:
            cluster.create(name)
            code = LEADER_NOT_AVAILABLE
        return kind.MetadataResponseTopic(error_code=code, name=name)
    topic = kind.MetadataResponseTopic(name=name, topic_id=view.names[name])
    for (of, number), leadership in view.leaders.items():
        if of == name:
            entry = kind.MetadataResponsePartition(partition_index=number, leader_epoch=leadership.epoch)
            entry.leader_id = -1 if leadership.leader is None else leadership.leader
            entry.error_code = LEADER_NOT_AVAILABLE if leadership.leader is None else 0
            entry.replica_nodes, entry.isr_nodes = cluster.nodes, sorted(cluster.alive)
            topic.partitions.append(entry)
    return topic


def find_coordinator(cluster: ModelCluster, asked: Asked) -> Any:
    """Coordinators of one key, or of several from version 4 on."""
    response = messages.FindCoordinatorResponse()
    for key in asked.request.coordinator_keys if asked.version >= 4 else [asked.request.key]:
        found = cluster.coordinator(key)
        failure = cluster.failure(10, None) if asked.version >= 4 else None
        code = failure.code if failure else COORDINATOR_NOT_AVAILABLE if found is None else 0
        number = -1 if code or found is None else found
        host, port = host_of(number) if number > 0 else ("", -1)
        if asked.version >= 4:
            entry = response.Coordinator(key=key, node_id=number, host=host, port=port, error_code=code)
            response.coordinators.append(entry)
        else:
            response.node_id, response.host, response.port, response.error_code = number, host, port, code
    return response


def init_producer_id(cluster: ModelCluster, asked: Asked) -> Any:
    """A new producer id for each producer without transactions."""
    kind = messages.InitProducerIdResponse
    name = asked.request.transactional_id
    if name is not None and cluster.coordinator(name) != asked.node:
        return kind(error_code=NOT_COORDINATOR)
    return kind(producer_id=cluster.next_producer_id(), producer_epoch=0)


HANDLERS: dict[int, Handler] = {
    3: metadata,
    10: find_coordinator,
    22: init_producer_id,
    **model_partitions.HANDLERS,
}
