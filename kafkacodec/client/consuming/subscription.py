"""The topics of a consumer: without a group, all their partitions are assigned, including new ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from kafkacodec.client.consuming.positions import Key, Positions
from kafkacodec.client.core.calls import Answer, Send
from kafkacodec.client.core.cluster import Cluster
from kafkacodec.datatypes import NamedTuple

__all__ = ["AllPartitions", "Listener", "OnPartitions", "name_test"]

OnPartitions = Callable[[list[Key]], Any]


class Listener(NamedTuple):
    """The application's functions or coroutine functions for changes of partitions, or None."""

    on_assigned: OnPartitions | None = None
    on_revoked: OnPartitions | None = None
    on_lost: OnPartitions | None = None


class AllPartitions:
    """A machine without requests: it follows the metadata of topics.

    Args:
        cluster: the cluster.
        positions: where the partitions are assigned.
        topics: the names of the topics.
        matches: a test of names instead; it is called for all topics that are not internal.
        assigned: called after new partitions are assigned, so that other machines see them.
    """

    def __init__(
        self,
        cluster: Cluster,
        positions: Positions,
        topics: Iterable[str] = (),
        matches: Callable[[str], bool] | None = None,
        *,
        assigned: Callable[[], None],
    ) -> None:
        self._cluster = cluster
        self._positions = positions
        self._topics = list(topics)
        self._matches = matches
        self._assigned = assigned
        self._seen = -1
        if matches is None:
            cluster.want(self._topics)
        else:
            cluster.want_all()

    def poll(self, now: float) -> list[Send]:
        """Assign the partitions in the metadata."""
        if self._seen != self._cluster.generation:
            self._seen = self._cluster.generation
            keys = self._keys()
            if set(keys) - self._positions.partitions.keys():
                self._positions.assign([*self._positions.partitions, *keys], committed=False)
                self._assigned()
        return []

    def _keys(self) -> list[Key]:
        names = self._topics
        if self._matches is not None:
            names = [t.name for t in self._cluster.topics.values() if not t.internal and self._matches(t.name)]
        known = (self._cluster.topics.get(name) for name in names)
        return [(topic.name, number) for topic in known if topic is not None for number in topic.partitions]

    def next_deadline(self) -> float | None:
        """Never: the cluster asks."""
        return None

    def answered(self, send: Send, answer: Answer, now: float) -> None:
        """It sends nothing."""

    def failed(self, send: Send, error: Exception, now: float) -> None:
        """It sends nothing."""


def name_test(pattern: Any) -> Callable[[str], bool]:
    """A test of names by a regular expression that must match the whole name. Raises TypeError, ValueError."""
    if not isinstance(pattern, (str, re.Pattern)):
        raise TypeError(f"pattern must be a regular expression, not {type(pattern).__name__}")
    try:
        compiled = re.compile(pattern)
    except re.error as problem:
        raise ValueError(f"pattern {pattern!r} is not a regular expression: {problem}") from None
    if isinstance(compiled.pattern, bytes):
        raise TypeError("pattern must match text, not bytes")
    return lambda name: compiled.fullmatch(name) is not None
