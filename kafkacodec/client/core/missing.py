"""Topics that are missing for a while: warnings with similar names, and when a look-up stops waiting for one."""

from __future__ import annotations

import logging
from typing import Any, Final

from kafkacodec import messages
from kafkacodec.arguments import meant
from kafkacodec.client.core.calls import ANY, Answer, Send, Versions
from kafkacodec.client.core.cluster import Cluster
from kafkacodec.messages.keys import METADATA
from kafkacodec.protocol.versions import highest_common

__all__ = ["UNKNOWN_MS", "MissingTopics", "all_topics", "names_in"]

_log = logging.getLogger("kafkacodec.client")

UNKNOWN_MS: Final = 5000.0
"""What brokers do not know for so long does not exist: all have learned of a new topic, partition or broker by then."""

_WAIT_MS: Final = 2000.0  # all brokers know a new topic sooner


class MissingTopics:
    """A machine that warns once about each topic that brokers do not know.

    Args:
        cluster: the cluster.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._seen = -1  # the cluster's generation
        self._since: dict[str, float] = {}  # since when a topic is missing; without topics already warned about
        self._told: set[str] = set()
        self._asked: Send | None = None

    def poll(self, now: float) -> list[Send]:
        """Ask for the names of all topics when a warning is due."""
        if self._seen != self._cluster.generation:
            self._seen = self._cluster.generation
            missing = [name for name in self._cluster.missing() if name not in self._told]
            self._since = {name: self._since.get(name, now) for name in missing}
        if not self._since or self._asked is not None or not self._due(now):
            return []
        self._asked = Send(ANY, all_topics)
        return [self._asked]

    def next_deadline(self) -> float | None:
        """Return when the next warning is due."""
        return None if self._asked is not None or not self._since else min(self._since.values()) + _WAIT_MS

    def answered(self, send: Send, answer: Answer, now: float) -> None:
        """Warn, with similar names."""
        self._tell(names_in(answer.message), now)

    def failed(self, send: Send, error: Exception, now: float) -> None:
        """Warn without similar names."""
        self._tell([], now)

    def _due(self, now: float) -> list[str]:
        return [name for name, since in self._since.items() if now >= since + _WAIT_MS]

    def _tell(self, names: list[str], now: float) -> None:
        self._asked = None
        for name in self._due(now):
            self._told.add(name)
            del self._since[name]
            if name not in names:
                similar = meant(name, names)
                _log.warning("topic %r does not exist, and is waited for%s", name, f"; {similar}" if similar else "")


def names_in(response: Any) -> list[str]:
    """The topics of a response to `all_topics`, without internal ones."""
    return [topic.name for topic in response.topics if topic.name and not topic.is_internal]


def all_topics(versions: Versions) -> tuple[Any, int]:
    """Make a request for all topics."""
    version = highest_common(METADATA, versions)
    return messages.MetadataRequest(topics=None if version else [], allow_auto_topic_creation=version < 4), version
