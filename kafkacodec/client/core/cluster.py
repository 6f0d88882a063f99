"""What a client knows about its cluster: brokers, topics, leaders and coordinators, and when to ask again.

`Cluster` is a machine: it asks for metadata when topics are wanted that it does not know, when it is told that
something is stale, and by age; and for coordinators that others want. Source: KIP-320 (leader epochs), KIP-516
(topic ids), KIP-951 (new leaders in responses), KIP-1102 (bootstrapping again).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from kafkacodec import messages
from kafkacodec.client.core.backoff import Backoff
from kafkacodec.client.core.calls import ANY, CONTROLLER, Answer, Coordinator, Place, Send, Versions
from kafkacodec.client.core.coordinators import Coordinators
from kafkacodec.client.core.metadata import BrokerAddress, Partition, Topic, newer
from kafkacodec.errors import (
    AuthenticationFailed,
    ConnectionFailed,
    DeadlineExceeded,
    RemoteProtocolError,
    error,
)
from kafkacodec.protocol.versions import highest_common

__all__ = ["Cluster"]

_METADATA = 3
_NO_ID = uuid.UUID(int=0)
_NULL_TOPICS_VERSION = 1  # before it, no topics mean all topics
_NO_CREATION_VERSION = 4  # before it, brokers create topics that are asked for, if they are configured to
_UNKNOWN_TOPIC = 3
_REBOOTSTRAP_REQUIRED = 129
_LAG_MS = 10_000.0  # a broker hears of a new topic much sooner


class Cluster:
    """The cluster as one client sees it. A machine; others read it and say what they need.

    Args:
        bootstrap: host and port of the first brokers to ask.
        max_age_ms: how old metadata may get.
        backoff: the wait between requests for metadata that did not bring what is wanted.
        auto_create: whether brokers may create topics that are asked for (KIP-361).

    Attributes:
        brokers: the known brokers by id; those of the bootstrap list have negative ids and stay.
        topics: the topics that were asked for, by name.
        controller_id: None while unknown.
        generation: increases with each change; compare it to see whether anything is new.
        knows_all: whether `topics` has every topic, since `want_all` was called.
    """

    def __init__(
        self,
        bootstrap: Iterable[tuple[str, int]],
        *,
        max_age_ms: float = 300_000,
        backoff: Backoff | None = None,
        auto_create: bool = False,
    ) -> None:
        self.bootstrap = [BrokerAddress(-1 - n, host, port) for n, (host, port) in enumerate(bootstrap)]
        self.brokers: dict[int, BrokerAddress] = {}
        self.topics: dict[str, Topic] = {}
        self.controller_id: int | None = None
        self.cluster_id: str | None = None
        self.generation = 0
        self.last_error: Exception | None = None
        self.auto_create = auto_create
        self.coordinators = Coordinators(backoff or Backoff())
        self._backoff = backoff or Backoff()
        self._max_age_ms = max_age_ms
        self._wanted: set[str] = set()
        self._want_all = self.knows_all = False
        self._asked: tuple[bool, frozenset[str]] = False, frozenset()  # for all topics, or those
        self._names: dict[uuid.UUID, str] = {}
        self._replaced: dict[uuid.UUID, float] = {}  # when the name of a topic was found to be another one's
        self._told_at = 0.0  # when the newest metadata came
        self._stale = False  # something is known to be out of date
        self._asking: Send | None = None
        self._failures = 0
        self._next_at = 0.0  # no earlier than this
        self._expires_at = 0.0

    # Reading

    def leader(self, topic: str, partition: int) -> int | None:
        """The broker that leads a partition; None if unknown or if there is none."""
        found = self.partition(topic, partition)
        return None if found is None else found.leader

    def partition(self, topic: str, number: int) -> Partition | None:
        """A partition, or None if it is not known."""
        known = self.topics.get(topic)
        return None if known is None else known.partitions.get(number)

    def topic_id(self, topic: str) -> uuid.UUID | None:
        """The id of a topic; None if it is not known."""
        known = self.topics.get(topic)
        return None if known is None else known.topic_id

    def topic_name(self, topic_id: uuid.UUID) -> str | None:
        """The name of a topic by its id."""
        return self._names.get(topic_id)

    @property
    def topic_names(self) -> Mapping[uuid.UUID, str]:
        """The names of all known topics by id."""
        return self._names

    def node_of(self, place: Place) -> int | None:
        """The broker for a place; None while it is unknown, which makes the cluster ask. Not for `ANY`."""
        if isinstance(place, int):
            return place if self.address(place) is not None else None
        if isinstance(place, Coordinator):
            return self.coordinators.node_of(place)
        if place is CONTROLLER:
            if self.controller_id is None or self.controller_id not in self.brokers:
                self.refresh()
                return None
            return self.controller_id
        raise ValueError(f"{place} has no id")

    def address(self, node: int) -> BrokerAddress | None:
        """Where a broker listens; None if no response named it."""
        if node < 0:
            return self.bootstrap[-1 - node] if -1 - node < len(self.bootstrap) else None
        known = self.brokers.get(node)
        if known is None and (found := self.coordinators.address(node)) is not None:
            return BrokerAddress(node, *found)
        return known

    @property
    def refused(self) -> AuthenticationFailed | RemoteProtocolError | None:
        """Why nothing that waits for metadata will get it: the brokers refuse this client, or are no brokers."""
        last = self.last_error
        if isinstance(last, AuthenticationFailed):
            return last
        return last if self._all_failed and isinstance(last, RemoteProtocolError) else None

    @property
    def unreachable(self) -> ConnectionFailed | DeadlineExceeded | None:
        """Why no broker was reached so far, after all of the bootstrap list were tried."""
        last = self.last_error
        return last if self._all_failed and isinstance(last, (ConnectionFailed, DeadlineExceeded)) else None

    @property
    def _all_failed(self) -> bool:
        return not self.brokers and self._failures >= len(self.bootstrap)

    # What others need

    def want(self, topics: Iterable[str]) -> bool:
        """Keep metadata of these topics from now on. Returns whether all of them are known already."""
        new = set(topics) - self._wanted
        self._wanted |= new
        missing = [name for name in new if name not in self.topics]
        self._stale = self._stale or bool(missing)
        return not missing

    def unwant(self, topics: Iterable[str]) -> None:
        """Forget these topics, unless all are wanted."""
        for name in set(topics):
            self._wanted.discard(name)
            if not self._want_all:
                self._drop(name)

    def want_all(self, wanted: bool = True) -> None:
        """Keep metadata of every topic, for patterns."""
        if wanted and not self._want_all:
            self._stale, self.knows_all = True, False
        self._want_all = wanted

    def refresh(self) -> None:
        """Something is stale: ask again as soon as the backoff allows."""
        self._stale = True

    def leader_changed(
        self, topic: str, partition: int, leader: int, epoch: int, endpoints: Iterable[Any] = ()
    ) -> bool:
        """Take over a newer leader that a Produce or Fetch response names (KIP-951). Returns whether it is newer."""
        for endpoint in endpoints:
            self.brokers[endpoint.node_id] = BrokerAddress(
                endpoint.node_id, endpoint.host, endpoint.port, endpoint.rack or None
            )
        known = self.partition(topic, partition)
        if known is None or leader < 0 or epoch <= known.leader_epoch or leader not in self.brokers:
            return False
        known.leader, known.leader_epoch, known.error = leader, epoch, None
        self.generation += 1
        return True

    # A machine

    def poll(self, now: float) -> list[Send]:
        """The requests for metadata and for coordinators that are due."""
        sends = self.coordinators.poll(now)
        if self._asking is None and now >= self._due():
            self._asking = Send(ANY, self._request)
            self._asked = self._want_all, frozenset(self._wanted)
            sends.append(self._asking)
        return sends

    def next_deadline(self) -> float | None:
        """When metadata or a coordinator is asked for next."""
        due = [at for at in (self.coordinators.next_deadline(),) if at is not None]
        if self._asking is None:
            due.append(self._due())
        return min(due, default=None)

    def answered(self, send: Send, answer: Answer, now: float) -> None:
        """Take over metadata, or a coordinator."""
        if send is not self._asking:
            self.coordinators.answered(send, answer, now)
            return
        self._asking = None
        code = answer.message.error_code
        if code == _REBOOTSTRAP_REQUIRED:
            self.forget_brokers()
        if code or not answer.message.brokers:
            self._failed(error(code)() if code else None, now)
            return
        self._told_at = now
        complete = self._update(answer.message)
        self._failures = 0 if complete else self._failures + 1
        self.knows_all = self._asked[0]
        self._stale = not complete or (self._want_all and not self.knows_all)
        self._next_at = now + (self._backoff.after(self._failures) if self._failures else self._backoff.first_ms)
        self._expires_at = now + self._max_age_ms
        self.last_error = None

    def failed(self, send: Send, error: Exception, now: float) -> None:
        """Ask again after a wait."""
        if send is not self._asking:
            self.coordinators.failed(send, error, now)
            return
        self._asking = None
        self._failed(error, now)
        if self.refused is not None:
            self.generation += 1  # who waits for metadata has to look

    def forget_brokers(self) -> None:
        """Start from the bootstrap list again: none of the known brokers answers (KIP-899)."""
        self.brokers.clear()
        self.controller_id = None
        self._stale = True
        self.generation += 1

    def _due(self) -> float:
        return self._next_at if self._stale else max(self._next_at, self._expires_at)

    def _failed(self, error: Exception | None, now: float) -> None:
        self.last_error = error
        self._failures += 1
        self._stale = True
        self._next_at = now + self._backoff.after(self._failures)

    def _request(self, versions: Versions) -> tuple[Any, int]:
        version = highest_common(_METADATA, versions)
        request = messages.MetadataRequest(allow_auto_topic_creation=self.auto_create or version < _NO_CREATION_VERSION)
        everything = self._want_all or self._would_create(version)
        self._asked = everything, frozenset(self._wanted)
        if everything:
            request.topics = None if version >= _NULL_TOPICS_VERSION else []
        else:
            entry = messages.MetadataRequest.MetadataRequestTopic
            request.topics = [entry(name=name) for name in sorted(self._wanted)]
        return request, version

    def _would_create(self, version: int) -> bool:
        """Whether brokers create topics that are asked for by name, and must not: then all topics are asked for."""
        return bool(self._wanted) and version < _NO_CREATION_VERSION and not self.auto_create

    def _update(self, message: Any) -> bool:
        """Take over a response; returns whether it has all that is wanted."""
        self.brokers = {b.node_id: BrokerAddress(b.node_id, b.host, b.port, b.rack or None) for b in message.brokers}
        self.cluster_id = message.cluster_id or self.cluster_id
        self.controller_id = message.controller_id if message.controller_id >= 0 else None
        complete = True
        seen = set()
        for entry in message.topics:
            if entry.name and (self._want_all or entry.name in self._wanted):
                seen.add(entry.name)
                complete = self._take_topic(entry) and complete
        everything, names = self._asked
        if everything:
            for name in sorted((names & self._wanted) - seen):
                missing = messages.MetadataResponse.MetadataResponseTopic(name=name, error_code=_UNKNOWN_TOPIC)
                complete = self._take_topic(missing) and complete
        if self._want_all:
            for name in self.topics.keys() - seen - self._wanted:
                self._drop(name)
        self.generation += 1
        return complete and self._wanted <= self.topics.keys()

    def _take_topic(self, entry: Any) -> bool:
        """Take over a topic; returns whether it is whole, or cannot become so."""
        old = self.topics.get(entry.name)
        refusal = error(entry.error_code) if entry.error_code else None
        if refusal is not None and refusal.retriable and old is not None and old.error is None:
            # A broker that has not heard of the topic yet; a topic that is gone stays so.
            self.topics[entry.name] = replace(old, error=refusal)
            return False
        if self._told_at < self._replaced.get(entry.topic_id, -_LAG_MS) + _LAG_MS:
            return False  # a broker that has not heard of the newer topic yet; or it was that one which had not
        self._replaced.pop(entry.topic_id, None)
        topic_id = entry.topic_id if entry.topic_id != _NO_ID else None
        same = old is not None and (old.topic_id == topic_id or topic_id is None)
        before = old.partitions if old is not None and same else {}
        if old is not None and old.topic_id is not None and old.topic_id != topic_id:
            self._names.pop(old.topic_id, None)
            if topic_id is not None:
                self._replaced[old.topic_id] = self._told_at
        if topic_id is not None:
            self._names[topic_id] = entry.name
        partitions = {p.partition_index: newer(before.get(p.partition_index), p) for p in entry.partitions}
        new = Topic(entry.name, topic_id, entry.is_internal, dict(sorted(partitions.items())), refusal)
        self.topics[entry.name] = new
        if refusal is not None:
            return new.refusal is not None
        return all(p.leader is not None for p in partitions.values())

    def _drop(self, name: str) -> None:
        gone = self.topics.pop(name, None)
        if gone is not None and gone.topic_id is not None:
            self._names.pop(gone.topic_id, None)
