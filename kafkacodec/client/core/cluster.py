"""What a client knows about its cluster: brokers, topics, leaders and coordinators, and when to ask again.

`Cluster` is a machine: it asks for metadata when topics are wanted that it does not know, only of those; of all that is
wanted when it is told that something is stale, and by age; and for coordinators that others want. Source: KIP-320
(leader epochs), KIP-516 (topic ids), KIP-951 (new leaders in responses), KIP-1102 (bootstrapping again).
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from kafkacodec import messages
from kafkacodec.client.core.backoff import Backoff
from kafkacodec.client.core.calls import ANY, CONTROLLER, Answer, Coordinator, Place, Send, Versions
from kafkacodec.client.core.coordinators import Coordinators
from kafkacodec.client.core.metadata import BrokerAddress, Partition, Topic, newer
from kafkacodec.client.core.wanted import Group, Wanted
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
_NO_CREATION_VERSION = 4  # before it, brokers create topics that are asked for, if they are configured to
_LAG_MS = 10_000.0  # a broker hears of a new topic much sooner


@dataclass(eq=False, slots=True)
class _Question:
    """What a request for metadata is about.

    Attributes:
        names: the topics.
        everything: whether it is about all topics instead.
        refresh: whether it brings all that is wanted.
        group: the topics that are not known, if it is about them.
    """

    names: frozenset[str]
    everything: bool = False
    refresh: bool = False
    group: Group | None = None


class Cluster:
    """The cluster as one client sees it. A machine; others read it and say what they need.

    Args:
        bootstrap: host and port of the first brokers to ask.
        max_age_ms: how old metadata may get.
        max_idle_ms: how long topics are kept that were only asked about.
        backoff: the wait between requests for metadata that did not bring what is wanted.
        auto_create: whether brokers may create topics that are asked for (KIP-361).
        silence_ms: brokers that were reached before are unreachable after so long without an answer.

    Attributes:
        brokers: the known brokers by id; those of the bootstrap list have negative ids and stay.
        topics: the topics that were asked for, by name.
        controller_id: None while unknown.
        generation: increases with each change; compare it to see whether anything is new.
        answers: how many responses with metadata came.
        knows_all: whether `topics` has every topic, since `want_all` was called.
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
    ) -> None:
        self.bootstrap = [BrokerAddress(-1 - n, host, port) for n, (host, port) in enumerate(bootstrap)]
        self.brokers: dict[int, BrokerAddress] = {}
        self.topics: dict[str, Topic] = {}
        self.controller_id: int | None = None
        self.cluster_id: str | None = None
        self.generation = self.answers = 0
        self.last_error: Exception | None = None
        self.auto_create = auto_create
        self._silence_ms = silence_ms
        self._silence: tuple[float, float] | None = None  # the first and the last of the failures in a row
        self.coordinators = Coordinators(backoff or Backoff(), max_idle_ms)
        self._backoff = backoff or Backoff()
        self._max_age_ms, self._max_idle_ms = max_age_ms, max_idle_ms
        self._wanted = Wanted(self._backoff)
        self._want_all = self.knows_all = False
        self._names: dict[uuid.UUID, str] = {}
        self._replaced: dict[uuid.UUID, float] = {}  # when the name of a topic was found to be another one's
        self._told_at = 0.0  # when the newest metadata came
        self._stale = False  # something is known to be out of date
        self._stale_topics: set[str] = set()  # or these
        self._asking: dict[Send, _Question] = {}
        self._refreshing = False
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
    def next_answer(self) -> int:
        """What `answers` is when what is asked for from now on is known."""
        return self.answers + 1 + len(self._asking)

    @property
    def refused(self) -> AuthenticationFailed | RemoteProtocolError | None:
        """Why nothing that waits for metadata will get it: the brokers refuse this client, or are no brokers."""
        last = self.last_error
        if isinstance(last, AuthenticationFailed):
            return last
        return last if self._all_failed and isinstance(last, RemoteProtocolError) else None

    @property
    def unreachable(self) -> ConnectionFailed | DeadlineExceeded | None:
        """Why no broker is reached: all of the bootstrap list were tried, or none has answered for `silence_ms`."""
        last, silence = self.last_error, self._silence
        silent = silence is not None and silence[1] - silence[0] >= self._silence_ms
        return last if (self._all_failed or silent) and isinstance(last, (ConnectionFailed, DeadlineExceeded)) else None

    @property
    def _all_failed(self) -> bool:
        return not self.brokers and self._failures >= len(self.bootstrap)

    # What others need

    def want(self, topics: Iterable[str], *, create: bool = True, keep: bool = True) -> bool:
        """Keep metadata of topics, and ask for those that are not known. Returns whether all of them are known.

        Args:
            topics: their names.
            create: whether brokers may create those that do not exist, once, if ``auto_create`` says so.
            keep: until `unwant`; else until they were not wanted for ``max_idle_ms``.
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
        """Keep metadata of every topic, for patterns."""
        if wanted and not self._want_all:
            self._stale, self.knows_all = True, False
        self._want_all = wanted

    def refresh(self, topics: Iterable[str] | None = None) -> None:
        """Something is stale, or only what is known of some topics: ask again as soon as the backoff allows."""
        if topics is None:
            self._stale = True
        else:
            self._stale_topics.update(topics)

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
        if not self._asks_all:
            self._wanted.later(self._stale_topics, max(now, self._next_at))
            self._stale_topics.clear()
            sends += [self._ask_group(group) for group in self._wanted.due(now)]
        if now >= self._due():
            sends.append(self._ask_all(now))
        return sends

    def next_deadline(self) -> float | None:
        """When metadata or a coordinator is asked for next."""
        due = [self.coordinators.next_deadline(), self._due()]
        if not self._asks_all:
            due += [self._wanted.next_at(), self._next_at if self._stale_topics else None]
        return min((at for at in due if at is not None and at < math.inf), default=None)

    def answered(self, send: Send, answer: Answer, now: float) -> None:
        """Take over metadata, or a coordinator."""
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
        self._told_at = now
        self.answers += 1
        self._failures, self.last_error, self._silence = 0, None, None
        left = self._update(answer.message, asked)
        if asked.group is not None:
            self._wanted.settle(asked.group, left, now)
        if asked.refresh:
            self._refreshed(asked, left, now)

    def failed(self, send: Send, error: Exception, now: float) -> None:
        """Ask again after a wait."""
        asked = self._asking.pop(send, None)
        if asked is None:
            self.coordinators.failed(send, error, now)
            return
        self._failed(asked, error, now)
        if self.refused is not None:
            self.generation += 1  # who waits for metadata has to look

    def forget_brokers(self) -> None:
        """Start from the bootstrap list again: none of the known brokers answers (KIP-899)."""
        self.brokers.clear()
        self.controller_id = None
        self._stale = True
        self.generation += 1

    @property
    def _asks_all(self) -> bool:
        """Whether the next request is for all topics, which brings the new ones too."""
        return self._want_all and not self.knows_all

    def _due(self) -> float:
        """When all that is wanted is asked for; infinite while it is, or where the requests for new topics do that."""
        if self._refreshing or (self._wanted.all_missing and not self._want_all):
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
        """A request for all that is wanted has its answer."""
        self._refreshing = self._refreshing and asked.group is not None
        self.knows_all = asked.everything and self._want_all
        self._stale = self._asks_all
        self._next_at = now + self._backoff.first_ms
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
        # Old brokers create topics that are asked for by name.
        asked.everything = asked.everything or (version < _NO_CREATION_VERSION and bool(asked.names) and not create)
        if asked.everything:
            request.topics = None if version >= _NULL_TOPICS_VERSION else []
        else:
            entry = messages.MetadataRequest.MetadataRequestTopic
            request.topics = [entry(name=name) for name in sorted(asked.names)]
        return request, version

    def _update(self, message: Any, asked: _Question) -> set[str]:
        """Take over a response; returns the topics of which it does not say all."""
        self.brokers = {b.node_id: BrokerAddress(b.node_id, b.host, b.port, b.rack or None) for b in message.brokers}
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
        if gone is not None:
            self.generation += 1
