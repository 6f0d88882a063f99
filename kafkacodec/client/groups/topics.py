"""Subscriptions, their topics in the cluster's metadata, and the time between an application's calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kafkacodec.client.core.cluster import Cluster
from kafkacodec.datatypes import dataclass

__all__ = ["PollInterval", "SubscribedTopics", "Subscription"]


@dataclass(frozen=True, slots=True)
class Subscription:
    """The topics of a member: names, a test of names, or an expression that the broker evaluates.

    Args:
        topics: names.
        matches: whether a topic is wanted, by name; asked about all topics of the cluster, and again when they
            change. Internal topics are left out.
        broker_pattern: an RE2 expression; only for KIP-848 groups on brokers with ConsumerGroupHeartbeat version 1.

    Raises:
        ValueError: not exactly one of the three is given.
    """

    topics: Iterable[str] = ()
    matches: Callable[[str], bool] | None = None
    broker_pattern: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "topics", tuple(dict.fromkeys(self.topics)))
        if bool(self.topics) + (self.matches is not None) + (self.broker_pattern is not None) != 1:
            raise ValueError("a subscription has either topics, or matches, or broker_pattern")


class SubscribedTopics:
    """The topics of a subscription, kept in the cluster's metadata."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._subscription: Subscription | None = None
        self._names: frozenset[str] | None = None
        self._others: frozenset[str] = frozenset()
        self._seen = -1  # the cluster's generation when the names were looked up

    def set(self, subscription: Subscription | None) -> None:
        """Follow these topics from now on, and no longer the previous ones."""
        former, self._subscription = self._subscription, subscription
        wanted = () if subscription is None else subscription.topics
        matching = subscription is not None and subscription.matches is not None
        if former is not None:
            self._cluster.unwant(set(former.topics) - set(wanted) - self._others)
        if matching or (former is not None and former.matches is not None):
            self._cluster.want_all(matching)
        if matching:
            self._cluster.refresh()  # names are looked up in newer metadata
        self._cluster.want(wanted)
        self._names = None if matching else frozenset(wanted)
        self._seen = self._cluster.generation

    def want_others(self, topics: Iterable[str]) -> None:
        """Follow these topics of other members instead of the last call's."""
        others = frozenset(topics)
        own = () if self._subscription is None else self._subscription.topics
        self._cluster.unwant(self._others - others - set(own))
        self._cluster.want(others, create=False)
        self._others = others

    def known(self, topics: Iterable[str]) -> bool:
        """Whether the cluster knows whether they exist."""
        return all(topic in self._cluster.topics for topic in topics)

    def names(self) -> frozenset[str] | None:
        """The topics by the newest metadata; None while those that match are not known."""
        matches = None if self._subscription is None else self._subscription.matches
        if matches is not None and self._cluster.knows_all and self._seen != self._cluster.generation:
            self._seen = self._cluster.generation
            usable = (topic for topic in self._cluster.topics.values() if topic.error is None and not topic.internal)
            self._names = frozenset(topic.name for topic in usable if matches(topic.name))
        return self._names

    def counts(self, topics: Iterable[str]) -> dict[str, int]:
        """The number of partitions of those topics that exist."""
        known = self._cluster.topics
        return {name: len(known[name].partitions) for name in topics if name in known and known[name].partitions}


class PollInterval:
    """The time between an application's calls for records."""

    def __init__(self, most_ms: float) -> None:
        self._most_ms = most_ms
        self.deadline: float | None = None

    def polled(self, now: float, waiting: bool = False) -> None:
        """Note a call of the application; with `waiting` it waits in the call."""
        self.deadline = None if waiting else now + self._most_ms

    def over(self, now: float) -> bool:
        """Whether the application has not called for too long."""
        return self.deadline is not None and now >= self.deadline
