"""The broker, for the functions of all APIs."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kafkacodec import errors
from kafkacodec.broker.config_keys import RUNNING_OF_GROUPS
from kafkacodec.broker.kafka.later import Later
from kafkacodec.broker.kafka.security.quotas import Quotas
from kafkacodec.broker.state.catalog import PRODUCER_IDS
from kafkacodec.broker.state.machine import Client, Machine, Marker, Prune, Question
from kafkacodec.broker.topics.partition import Cut, EndMarker
from kafkacodec.datatypes import NamedTuple
from kafkacodec.internal_records import (
    CLUSTER_METADATA,
    CONSUMER_OFFSETS,
    INTERNAL_TOPICS,
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
)
from kafkacodec.log.growing.settings import now_ms
from kafkacodec.messages.stored import decode_metadata_record
from kafkacodec.net.service import Append, Effect, Reply, together

if TYPE_CHECKING:
    from kafkacodec.broker.kafka.clustering.brokers import Brokers
    from kafkacodec.broker.kafka.request import Request
    from kafkacodec.broker.options import BrokerConfig
    from kafkacodec.broker.state.catalog import Catalog, NewPartition, Topic
    from kafkacodec.broker.topics.topics import Topics
    from kafkacodec.broker.topics.waiting import Waiting

__all__ = ["CLUSTER_OPERATIONS", "GROUP_OPERATIONS", "TOPIC_OPERATIONS", "ZERO_UUID", "Changes", "Inner", "Node"]


TOPIC_OPERATIONS: Final = 3576
CLUSTER_OPERATIONS: Final = 8096
GROUP_OPERATIONS: Final = 3400
ZERO_UUID: Final = uuid.UUID(int=0)


class Inner(NamedTuple):
    """The address of a machine's answer when this broker asks itself."""

    answered: Callable[[Any], Effect]


Done = Callable[[int], Any]
"""Continues after an append: it gets 0 or an error code, and returns an Effect."""


class Changes(NamedTuple):
    """Records of the metadata log, and the partitions that they make."""

    rows: Sequence[tuple[bytes | None, bytes | None]]
    timestamp: int
    makes: Sequence[NewPartition]


class Node:
    """The broker, or all brokers that it appears as; it is also the controller.

    Args:
        node_id: the id.
        cluster_id: the cluster's id, 22 characters.
        config: of the broker.
        catalog: topics and configurations.
        topics: the logs of the topics.
        waiting: waiting fetches.
        brokers: the brokers that it appears as.

    Attributes:
        versions: the advertised versions by API key.
        later: delayed answers.
        quotas: the clients' use of their quotas.
        frozen: whether the broker is read-only.
        authorizes: whether there is an authorizer.
        is_taken: whether another protocol has a topic of a name.
        limit_arrivals: called with the most connections per second that may arrive.
        clock: returns the broker's time in ms since 1970 by the system's clock: for what is compared with times of
            others. That of requests never goes back, and stands still while the system sleeps.
    """

    def __init__(
        self, node_id: int, cluster_id: str, config: BrokerConfig, catalog: Catalog, topics: Topics, waiting: Waiting,
        brokers: Brokers,
    ) -> None:  # fmt: skip
        self.id, self.cluster_id, self.config = node_id, cluster_id, config
        self.catalog, self.topics, self.waiting, self.brokers = catalog, topics, waiting, brokers
        self.versions: Mapping[int, range] = {}
        self.frozen = False
        self.machines: dict[int, Machine] = {}  # by API key
        self.groups: Any = None
        self.shares: Any = None
        self.later = Later(waiting.alarm)
        self.quotas = Quotas(catalog)
        self.is_taken: Callable[[str], bool] = lambda name: False
        self.limit_arrivals: Callable[[int], None] = lambda most: None
        self.clock: Callable[[], int] = now_ms
        self.authorizes = config.text("authorizer.class.name") != ""
        self._running: tuple[Machine, ...] | None = None
        self._next_producer_id = self._reserved_producer_ids = 0

    def address(self, session: Any) -> tuple[str, int]:
        """Return host and port at which the client of this session reaches the broker."""
        return self.brokers.address(self.brokers.of(session), session)

    def reached(self, request: Request) -> list[tuple[int, str, int]]:
        """Return the running brokers: id, and host and port for the client of a request."""
        return [(broker, *self.brokers.address(broker, request.session)) for broker in self.brokers.running]

    def leader_error(self, request: Request, topic: str, number: int) -> int:
        """Return the error of a request's broker, if it does not lead a partition."""
        leads = self.brokers.leads(request.broker, topic, number)
        return int(errors.NONE if leads else errors.NOT_LEADER_OR_FOLLOWER)

    def leads_anew(self, topic: Topic, number: int, epoch: int) -> None:
        """Start the leader epoch of a partition, if it is newer; what its last leader had in memory is gone."""
        if self.topics.lead(topic.name, number, epoch):
            self.shares.partitions.forget(topic.id, number)

    def configure_all(self) -> None:
        """Apply the configurations of the broker that may be changed while it runs."""
        running = self.config.running(self.catalog.of_broker(self.id))
        self.topics.configure_all(running)
        self.limit_arrivals(int(running.text("max.connection.creation.rate")))
        for name in RUNNING_OF_GROUPS:
            self.groups.configure_all(name.removeprefix("group."), running.text(name))

    # Topics

    def is_internal(self, name: str) -> bool:
        """Whether a topic is internal."""
        return name in INTERNAL_TOPICS

    def change(self, records: Sequence[bytes], done: Done, now: float) -> Effect:
        """Append records to the metadata log, apply them, then continue."""
        if not records:
            effect: Effect = done(errors.NONE)
            return effect
        rows = [(None, record) for record in records]
        stored = [decode_metadata_record(record) for record in records]  # applied as it will be loaded again
        changes = Changes(rows, int(now), self.catalog.partitions_made(stored))
        return Effect([Append((CLUSTER_METADATA, 0), changes, partial(self._changed, stored, done))])

    def change_rows(self, records: Sequence[bytes], request: Request, response: Any, rows: Sequence[Any]) -> Effect:
        """Append records to the metadata log, then answer; if they cannot be kept, rows without an error say so."""

        def answered(code: int) -> Effect:
            for row in rows if code else ():
                row.error_code = row.error_code or code
            return self.reply(request.to, response)

        return self.change(records, answered, request.now)

    def _changed(self, records: Sequence[Any], done: Done, result: Any, error: Exception | None, now: float) -> Any:
        if error is not None:
            return done(errors.KAFKA_STORAGE_ERROR)
        for record in records:
            self.catalog.apply(record)
        return done(errors.NONE)

    def new_topic(
        self, name: str, partitions: int | None = None, configs: Mapping[str, str] | None = None,
        factor: int = -1, replicas: Sequence[Sequence[int]] = (),
    ) -> tuple[uuid.UUID, list[bytes]]:  # fmt: skip
        """Return the id and the records of a new topic; an internal one has the broker's settings.

        `replicas` are the brokers of each partition; by default the broker chooses.
        """
        settings = dict(configs or {})
        if partitions is None:
            partitions = self.config.number(_PARTITIONS.get(name, "num.partitions"))
        if name in _PARTITIONS:
            settings = dict(_COMPACTED if name != SHARE_GROUP_STATE else _KEPT)
        topic_id = uuid.uuid4()
        replicas = replicas or self.brokers.spread(0, partitions, self.factor(name, factor))
        return topic_id, self.catalog.new_topic(name, topic_id, replicas, settings, self.brokers.away)

    def factor(self, name: str, asked: int) -> int:
        """Return the number of replicas of a new topic for a requested number or -1."""
        if name in _PARTITIONS:
            return min(_INTERNAL_FACTOR, len(self.brokers.ids))
        return self.config.number("default.replication.factor") if asked == -1 else asked

    def with_topic(self, name: str, then: Callable[[], Effect], now: float) -> Effect:
        """Continue once an internal topic exists."""
        if self.catalog.topic(name) is not None:
            return then()
        _, records = self.new_topic(name)
        return self.change(records, lambda code: then(), now)

    def names(self) -> list[str]:
        """The names of all topics."""
        return self.catalog.names()

    def partitions(self, topic: str) -> int:
        """The number of partitions of a topic; 0 if there is none of this name."""
        found = self.catalog.topic(topic)
        return 0 if found is None else found.partitions

    def id_of(self, topic: str) -> uuid.UUID | None:
        """The id of a topic."""
        found = self.catalog.topic(topic)
        return None if found is None else found.id

    def name_of(self, topic_id: uuid.UUID) -> str | None:
        """The name of the topic with this id."""
        found = self.catalog.topic_of(topic_id)
        return None if found is None else found.name

    def topic_by(self, name: str | None, topic_id: uuid.UUID, by_id: bool) -> Topic | None:
        """A topic by its id or its name, as the request's version says."""
        return self.catalog.topic_of(topic_id) if by_id else self.catalog.topic(name or "")

    def with_producer_ids(self, then: Callable[[], Effect], now: float) -> Effect:
        """Continue once there are unused producer ids."""
        if self._next_producer_id < self._reserved_producer_ids:
            return then()
        first = self.catalog.next_producer_id
        end = first + PRODUCER_IDS

        def reserved(code: int) -> Effect:
            if not code and self._reserved_producer_ids < end:
                self._next_producer_id, self._reserved_producer_ids = first, end
            return then()

        return self.change([self.catalog.reserved_producer_ids(end)], reserved, now)

    def take_producer_id(self) -> int | None:
        """Return an unused producer id, also across restarts of the broker; None if none is reserved."""
        if self._next_producer_id >= self._reserved_producer_ids:
            return None
        self._next_producer_id += 1
        return self._next_producer_id - 1

    # Machines

    @property
    def running(self) -> tuple[Machine, ...]:
        """The machines of coordinators."""
        if self._running is None:
            self._running = tuple(dict.fromkeys(self.machines.values()))
        return self._running

    def routed(self, machine: Machine, effect: Effect) -> Effect:
        """Route a machine's effect: its tokens lead back to it, and its answers to this broker itself continue."""
        if not effect.appends and not any(type(reply.to) is Inner for reply in effect.replies):
            return effect
        replies = [reply for reply in effect.replies if type(reply.to) is not Inner]
        inner = [reply.to.answered(reply.response) for reply in effect.replies if type(reply.to) is Inner]
        asked = [self._asked(machine, append) for append in effect.appends if isinstance(append.data, Question)]
        appends = [append for append in effect.appends if not isinstance(append.data, Question)]
        return together([Effect([self._routed(machine, append) for append in appends], replies), *inner, *asked])

    def ask(self, request: Any, version: int, then: Callable[[Any], Effect], now: float) -> Effect:
        """Ask a coordinator of this broker, and continue with its answer."""
        machine = self.machines[request.api_key]

        def asked() -> Effect:
            return self.routed(machine, machine.receive(request, version, Client(), Inner(then), now))

        return self.with_topic(machine.topic, asked, now)

    def _asked(self, machine: Machine, append: Append) -> Effect:
        def answered(answer: Any) -> Effect:
            return self.routed(machine, machine.appended(append.token, answer, machine.now))

        return self.ask(append.data.request, append.data.version, answered, machine.now)

    def _routed(self, machine: Machine, append: Append) -> Append:
        data = append.data
        if isinstance(data, Marker):
            coordinator = self.topics.partition(*data.coordinator)
            epoch = 0 if coordinator is None else coordinator.leader_epoch
            data = EndMarker(data.producer_id, data.producer_epoch, data.committed, epoch, data.timestamp)
        elif isinstance(data, Prune):
            data = Cut(data.before)
        return Append(append.log, data, partial(self._of_machine, machine, append), append.durability)

    def _of_machine(self, machine: Machine, append: Append, result: Any, error: Exception | None, now: float) -> Effect:
        if error is not None:
            return self.routed(machine, machine.not_appended(append.token, error, now))
        if isinstance(append.data, Marker) and append.log[0] == CONSUMER_OFFSETS:
            self.groups.end_transaction(append.log[1], append.data.producer_id, append.data.committed)
        return self.routed(machine, machine.appended(append.token, result, now))

    def reply(self, to: Any, response: Any) -> Effect:
        """Return an effect that only answers."""
        return Effect((), [Reply(to, response)])


_INTERNAL_FACTOR: Final = 3
_PARTITIONS: Final = {
    CONSUMER_OFFSETS: "offsets.topic.num.partitions",
    TRANSACTION_STATE: "transaction.state.log.num.partitions",
    SHARE_GROUP_STATE: "share.coordinator.state.topic.num.partitions",
}
_COMPACTED: Final = {"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": "104857600"}
_KEPT: Final = {"cleanup.policy": "delete", "retention.ms": "-1", "segment.bytes": "104857600"}
