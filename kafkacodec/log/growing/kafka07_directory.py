"""All logs of Kafka 0.6 and 0.7 in a data directory."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kafkacodec.log.formats import layout
from kafkacodec.log.growing.directory import has_segments07
from kafkacodec.log.growing.disk import Disk
from kafkacodec.log.growing.kafka07 import Flushing07, GrowingLog07

if TYPE_CHECKING:
    from kafkacodec.dialects.kafka07.settings import TopicSettings

__all__ = ["GrowingDirectory07"]

_MOST_KEPT: Final = 200
Key = tuple[str, int]


class GrowingDirectory07:
    """The logs of topics of Kafka 0.6 and 0.7. The caller has locked the directory.

    Args:
        path: the directory.
        settings: returns the settings of a topic's logs.
        clean: whether its last owner stopped cleanly.
        syncs: whether a flush syncs to the disk, in another thread; otherwise it only makes messages visible.
        now: the time in ms since 1970.

    Attributes:
        logs (dict): by topic and partition.

    Raises:
        DirectoryRefused: the segments of a log are not contiguous.
        OSError: a file cannot be read.
    """

    def __init__(
        self, path: str, settings: Callable[[str], TopicSettings], *, clean: bool, syncs: bool,
        now: Callable[[], float], disk: Disk | None = None,
    ) -> None:  # fmt: skip
        self.path, self._settings, self._syncs, self._now = path, settings, syncs, now
        self._disk = disk or Disk(_MOST_KEPT)
        self.logs: dict[Key, GrowingLog07] = {}
        for name in os.listdir(path):
            parts = layout.parse_directory_name(name, tiered=False)
            full = os.path.join(path, name)
            if parts is not None and parts.state == "current" and os.path.isdir(full) and has_segments07(full):
                self._open(parts.topic, parts.partition, clean=clean)

    def topics(self) -> set[str]:
        """Return the topics with a log."""
        return {topic for topic, _ in self.logs}

    def create(self, topic: str, partition: int) -> GrowingLog07:
        """Make a log. Raises OSError."""
        return self._open(topic, partition, clean=True)

    def close(self, *, keeps: bool) -> None:
        """Close all logs, and sync them if they are kept. Raises OSError."""
        for log in self.logs.values():
            log.close(keeps=keeps)

    # Of the host

    def append(self, log: Key, data: object) -> None:
        """Do nothing: the service has appended; an effect's append only waits for the disk."""

    def must_flush(self, log: Key) -> bool:
        """Whether a write counts only when it is on the disk."""
        return self._syncs

    def flushing(self, log: Key) -> Flushing07:
        """Return the work that syncs a log. Raises KeyError, OSError."""
        return self.logs[log].flushing()

    def flushed(self, log: Key, flushing: Flushing07) -> None:
        """Note that it is synced."""
        self.logs[log].flushed(flushing.end, self._now())

    def _open(self, topic: str, partition: int, *, clean: bool) -> GrowingLog07:
        path = os.path.join(self.path, f"{topic}-{partition}")
        log = GrowingLog07(path, self._settings(topic), clean=clean, now=self._now(), disk=self._disk)
        self.logs[topic, partition] = log
        return log
