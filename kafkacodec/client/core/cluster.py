"""What a client knows about its cluster: brokers, topics, leaders and coordinators, and when to ask again.

`Cluster` is a machine. It asks for metadata of unknown topics as soon as they are wanted; for metadata of all wanted
topics when something is stale, or the metadata is too old; and for coordinators that other parts need. Source: KIP-320
(leader epochs), KIP-516 (topic ids), KIP-951 (new leaders in responses), KIP-1102 (rebootstrapping).
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from kafkacodec import messages
from kafkacodec.client.core.absence import Absence
from kafkacodec.client.core.backoff import Backoff
from kafkacodec.client.core.calls import ANY, CONTROLLER, Answer, Coordinator, Place, Send, Versions
from kafkacodec.client.core.coordinators import Coordinators
from kafkacodec.client.core.held_up import Hindrances
from kafkacodec.client.core.metadata import BrokerAddress, Partition, Topic, alike, newer
from kafkacodec.client.core.wanted import Group, Wanted
from kafkacodec.datatypes import dataclass, replace
from kafkacodec.errors import (
    REBOOTSTRAP_REQUIRED,
    UNKNOWN_TOPIC_OR_PARTITION,
    AuthenticationFailed,
    ConnectionFailed,
    DeadlineExceeded,
    RemoteProtocolError,
    error,
)
from kafkacodec.messages.keys import METADATA
from kafkacodec.protocol.versions import highest_common

__all__ = ["Cluster"]

_NO_ID = uuid.UUID(int=0)
_NULL_TOPICS_VERSION = 1  # before it, no topics mean all topics
_NO_CREATION_VERSION = 4  # before it, requests create topics if the broker is configured so
_LAG_MS = 10_000.0  # a broker hears of a new topic much sooner


@dataclass(eq=False, slots=True)
class _Question:
    """The subject of a metadata request.

    Attributes:
        names: the topics.
        everything: whether it asks for all topics instead.
        refresh: whether it covers everything that is wanted.
        group: the unknown topics, if it asks for those.
    """

    names: frozenset[str]
    everything: bool = False
    refresh: bool = False
    group: Group | None = None


class Cluster:
    """The cluster as one client sees it. A machine; other parts read it and say what they need.

    Args:
        bootstrap: host and port of the first brokers to ask.
        max_age_ms: the maximum age of metadata.
        max_idle_ms: how long topics that were only looked up are kept.
        backoff: the wait after metadata requests that did not return what is wanted.
        auto_create: whether brokers may create requested topics (KIP-361).
        silence_ms: how long known brokers may be silent before they count as unreachable.
        absent_ms: how long to try refused or unknown addresses before the cluster counts as absent.

    Attributes:
        brokers: the known brokers by id; bootstrap brokers have negative ids and are kept.
        topics: the requested topics by name.
        controller_id: None while unknown.
        generation: increases with each change; compare it to detect changes.
        answers: the number of metadata responses received.
        hindrances: what brokers refuse for now; who is refused notes it.
        absence: whether there is a cluster at all; the driver updates it.
    """

    def __init__(
        self,
        bootstrap: Iterable[tuple[str, int]],
        *,
        max_age_ms: float = 300_000,
        max_idle_ms: float = 300_000,
        backoff: Backoff | None = None,
        auto_create: bool = False,
        silence_ms: float = math.inf,
        absent_ms: float = math.inf,
    ) -> None:
        self.bootstrap = [BrokerAddress(-1 - n, host, port) for n, (host, port) in enumerate(bootstrap)]
        self.absence = Absence(self.bootstrap, absent_ms)
        self.brokers: dict[int, BrokerAddress] = {}
        self.topics: dict[str, Topic] = {}
        self.controller_id: int | None = None
        self.cluster_id: str | None = None
        self.generation = self.answers = 0
        self.last_error: Exception | None = None
        self.auto_create = auto_create
        self._silence_ms = silence_ms
        self._silence: tuple[float, float] | None = None  # the times of the first and last consecutive failure
        self._backoff = backoff or Backoff()
        self.hindrances = Hindrances(self._backoff.most_ms)
        self.coordinators = Coordinators(self._backoff, max_idle_ms, self.hindrances)
        self._max_age_ms, self._max_idle_ms = max_age_ms, max_idle_ms
        self._wanted = Wanted(self._backoff)
        self._want_all = False
        self._asks_all = False  # the next request asks for all topics, which includes new ones
        self._names: dict[uuid.UUID, str] = {}
        self._replaced: dict[uuid.UUID, float] = {}  # when a topic's name was found to belong to another one
        self._told_at = 0.0  # when the newest metadata arrived
        self._changed = False  # whether it said anything new
        self._alike = 0  # how many answers in a row, each soon after the other, said nothing new
        self._stale = False  # something is known to be out of date
        self._stale_topics: set[str] = set()  # or these
        self._asking: dict[Send, _Question] = {}
        self._refreshing = False
        self._failures = 0
        self._next_at = 0.0  # the earliest time of the next request
        self._expires_at = 0.0

    # Reading

    def leader(self, topic: str, partition: int) -> int | None:
        """The broker that leads a partition; None if it is unknown or there is none."""
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
        """The broker of a destination; None while unknown, in which case the cluster asks. Not for `ANY`."""
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
        """The address of a broker; None if no response has named it."""
        if node < 0:
            return self.bootstrap[-1 - node] if -1 - node < len(self.bootstrap) else None
        known = self.brokers.get(node)
        if known is None and (found := self.coordinators.address(node)) is not None:
            return BrokerAddress(node, *found)
        return known

    def missing(self) -> list[str]:
        """Return permanently wanted topics that brokers do not know."""
        code = UNKNOWN_TOPIC_OR_PARTITION
        known = [topic for topic in self.topics.values() if topic.error is not None and topic.error.code == code]
        return [topic.name for topic in known if not topic.partitions and self._wanted.keeps(topic.name)]

    @property
    def knows_all(self) -> bool:
        """Whether `topics` has had every topic since `want_all` was called."""
        return self._want_all and not self._asks_all

    @property
    def next_answer(self) -> int:
        """The value that `answers` will have once anything requested from now on is known."""
        return self.answers + 1 + len(self._asking)

    @property
    def asks(self) -> bool:
        """Whether there is something to ask for, now or once the backoff allows it."""
        return self._stale or bool(self._stale_topics or self._wanted.new)

    @property
    def refused(self) -> ConnectionFailed | RemoteProtocolError | None:
        """Why metadata will not arrive: the brokers are absent, refuse this client, or are not Kafka brokers."""
        if self.absence.reason is not None:
            return self.absence.reason
        last = self.last_error
        if isinstance(last, AuthenticationFailed):
            return last
        return last if self._all_failed and isinstance(last, RemoteProtocolError) else None

    @property
    def unreachable(self) -> ConnectionFailed | DeadlineExceeded | None:
        """Why no broker can be reached: all bootstrap addresses failed, or none has answered for `silence_ms`."""
        last, silence = self.last_error, self._silence
        silent = silence is not None and silence[1] - silence[0] >= self._silence_ms
        return last if (self._all_failed or silent) and isinstance(last, (ConnectionFailed, DeadlineExceeded)) else None

    @property
    def _all_failed(self) -> bool:
        return not self.brokers and self._failures >= len(self.bootstrap)

    # Requests from other parts

    def want(self, topics: Iterable[str], *, create: bool = True, keep: bool = True) -> bool:
        """Keep metadata of topics, and ask for unknown ones. Returns whether all are known.

        Args:
            topics: their names.
            create: whether brokers may create missing topics, once, if ``auto_create`` permits it.
            keep: keep them until `unwant`; otherwise until they have not been wanted for ``max_idle_ms``.
        """
        complete = True
        for name in topics:
            known = self.topics.get(name)
            complete = complete and known is not None
            missing = known is None or (known.error is not None and known.error.code == UNKNOWN_TOPIC_OR_PARTITION)
            self._wanted.want(name, keep=keep)
            if missing and (create and self.auto_create):
                self._wanted.ask(name, create=True)
            elif known is None:
                self._wanted.ask(name)
        return complete

    def unwant(self, topics: Iterable[str]) -> None:
        """Forget these topics, unless all are wanted."""
        for name in set(topics):
            self._wanted.forget(name)
            if not self._want_all and name in self.topics:
                self._drop(name)
                self.generation += 1

    def want_all(self, wanted: bool = True) -> None:
        """Keep metadata of every topic, for subscriptions by pattern."""
        if wanted != self._want_all:
            self._want_all = self._asks_all = wanted
            self._stale = self._stale or wanted

    def refresh(self, topics: Iterable[str] | None = None) -> None:
        """Mark everything, or these topics, as stale: ask again as soon as the backoff allows."""
        if topics is None:
            self._stale = True
        else:
            self._stale_topics.update(topics)

    def ask(self, topic: str) -> bool:
        """Ask for a wanted topic now, also if it is known; not sooner than the backoff allows if it is missing.

        Returns whether that is new: False if it is requested already, or about to be.
        """
        before = topic in self._wanted.new
        self._wanted.ask(topic)
        return topic in self._wanted.new and not before

    def leader_changed(
        self, topic: str, partition: int, leader: int, epoch: int, endpoints: Iterable[Any] = ()
    ) -> bool:
        """Record a leader named by a Produce or Fetch response (KIP-951). Returns whether it was newer."""
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

    # The interface of a machine

    def poll(self, now: float) -> list[Send]:
        """The requests to send now, for metadata and coordinators."""
        if self.absence.due_at is not None and self.absence.decide(now):
            self.generation += 1  # wakes everything that waits for metadata
        sends = self.coordinators.poll(now)
        wanted = self._wanted
        if not self._asks_all:
            if self._stale_topics:
                wanted.later(self._stale_topics, max(now, self._next_at))
                self._stale_topics.clear()
            if wanted.new or wanted.groups:
                sends += [self._ask_group(group) for group in wanted.due(now)]
        if now >= self._due():
            sends.append(self._ask_all(now))
        return sends

    def next_deadline(self) -> float | None:
        """The time of the next request for metadata or a coordinator."""
        first, wanted = self._due(), self._wanted
        times = [self.coordinators.next_deadline(), self.absence.due_at]
        if not self._asks_all:
            if wanted.new or wanted.groups:
                times.append(wanted.next_at())
            if self._stale_topics:
                times.append(self._next_at)
        for at in times:
            if at is not None and at < first:
                first = at
        return None if first == math.inf else first

    def answered(self, send: Send, answer: Answer, now: float) -> None:
        """Record metadata, or a coordinator."""
        asked = self._asking.pop(send, None)
        if asked is None:
            self.coordinators.answered(send, answer, now)
            return
        code = answer.message.error_code
        if code == REBOOTSTRAP_REQUIRED:
            self.forget_brokers()
        if code or not answer.message.brokers:
            self._failed(asked, error(code)() if code else None, now)
            return
        recent = now - self._told_at <= 2 * self._backoff.most_ms
        self._told_at = now
        self.answers += 1
        self._failures, self.last_error, self._silence = 0, None, None
        left = self._update(answer.message, asked)
        self._alike = self._alike + 1 if recent and not self._changed else 0
        if asked.group is not None:
            self._wanted.settle(asked.group, left, now)
        if asked.refresh:
            self._refreshed(asked, left, now)

    def failed(self, send: Send, error: Exception, now: float) -> None:
        """Schedule the next attempt."""
        asked = self._asking.pop(send, None)
        if asked is None:
            self.coordinators.failed(send, error, now)
            return
        self._failed(asked, error, now)
        if self.refused is not None:
            self.generation += 1  # wakes everything that waits for metadata

    def forget_brokers(self) -> None:
        """Start again from the bootstrap list, as no known broker answers (KIP-899)."""
        self.brokers.clear()
        self.controller_id = None
        self._stale = True
        self.generation += 1

    def _due(self) -> float:
        """When to ask for everything wanted; infinite while that is in flight or requests for new topics suffice."""
        if self._refreshing or (self._wanted.groups and self._wanted.all_missing and not self._want_all):
            return math.inf
        return self._next_at if self._stale else max(self._next_at, self._expires_at)

    def _ask_group(self, group: Group) -> Send:
        whole = self._wanted.all_missing and not self._want_all
        return self._ask(_Question(frozenset(group.names), group=group, refresh=whole))

    def _ask_all(self, now: float) -> Send:
        self.unwant(self._wanted.idle(now, self._max_idle_ms))
        self._refreshing = True
        names = frozenset(self._wanted.names) if self._asks_all else self._wanted.known()
        return self._ask(_Question(names, everything=self._want_all, refresh=True))

    def _ask(self, asked: _Question) -> Send:
        send = Send(ANY, partial(self._request, asked))
        self._asking[send] = asked
        return send

    def _refreshed(self, asked: _Question, left: set[str], now: float) -> None:
        """Handle the answer to a request for everything wanted."""
        self._refreshing = self._refreshing and asked.group is not None
        self._stale = self._asks_all = self._want_all and not asked.everything
        self._next_at = now + self._backoff.after(1 + self._alike)
        self._expires_at = now + self._max_age_ms
        if asked.group is None:
            self._wanted.later(left, now + self._backoff.after(1), failures=1)

    def _failed(self, asked: _Question, error: Exception | None, now: float) -> None:
        self.last_error = error
        self._silence = (now if self._silence is None else self._silence[0], now)
        self._failures += 1
        self._next_at = now + self._backoff.after(self._failures)
        if asked.group is not None:
            self._wanted.settle(asked.group, asked.group.names, now)
        else:
            self._refreshing, self._stale = False, True

    def _request(self, asked: _Question, versions: Versions) -> tuple[Any, int]:
        version = highest_common(METADATA, versions)
        create = asked.group is not None and asked.group.create
        request = messages.MetadataRequest(allow_auto_topic_creation=create or version < _NO_CREATION_VERSION)
        # Old brokers create topics that are requested by name.
        asked.everything = asked.everything or (version < _NO_CREATION_VERSION and bool(asked.names) and not create)
        if asked.everything:
            request.topics = None if version >= _NULL_TOPICS_VERSION else []
        else:
            entry = messages.MetadataRequest.MetadataRequestTopic
            request.topics = [entry(name=name) for name in sorted(asked.names)]
        return request, version

    def _update(self, message: Any, asked: _Question) -> set[str]:
        """Record a response; returns the topics that it leaves incomplete."""
        brokers = {b.node_id: BrokerAddress(b.node_id, b.host, b.port, b.rack or None) for b in message.brokers}
        self._changed = brokers != self.brokers
        self.brokers = brokers
        self.cluster_id = message.cluster_id or self.cluster_id
        self.controller_id = message.controller_id if message.controller_id >= 0 else None
        wanted = self._wanted.names
        left = set(asked.names & wanted)
        seen = set()
        for entry in message.topics:
            if entry.name and (self._want_all or entry.name in wanted):
                seen.add(entry.name)
                if self._take_topic(entry):
                    left.discard(entry.name)
                    self._wanted.found(entry.name)
                elif entry.name in wanted:
                    left.add(entry.name)
        if asked.everything:
            for name in sorted((asked.names & wanted) - seen):
                self._take_topic(
                    messages.MetadataResponse.MetadataResponseTopic(name=name, error_code=UNKNOWN_TOPIC_OR_PARTITION)
                )
            if self._want_all:
                for name in self.topics.keys() - seen - wanted:
                    self._drop(name)
        self.generation += 1
        return left

    def _take_topic(self, entry: Any) -> bool:
        """Record a topic; returns whether it is complete, or can never be."""
        old = self.topics.get(entry.name)
        refusal = error(entry.error_code) if entry.error_code else None
        if refusal is not None and refusal.retriable and refusal.code != UNKNOWN_TOPIC_OR_PARTITION:
            self.hindrances.refused(f"topic {entry.name!r} is not available", refusal.code, self._told_at)
        if refusal is not None and refusal.retriable and old is not None and old.error is None:
            # This broker has not learned of the topic yet; a deleted topic stays deleted.
            self.topics[entry.name] = replace(old, error=refusal)
            return False
        if self._told_at < self._replaced.get(entry.topic_id, -_LAG_MS) + _LAG_MS:
            return False  # either this broker or the previous one has not learned of the newer topic yet
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
        self._changed = self._changed or not alike(old, new)
        self.topics[entry.name] = new
        if refusal is not None:
            return new.refusal is not None
        return all(p.leader is not None for p in partitions.values())

    def _drop(self, name: str) -> None:
        gone = self.topics.pop(name, None)
        if gone is not None and gone.topic_id is not None:
            self._names.pop(gone.topic_id, None)
        if gone is not None:
            self.generation += 1
