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
    """The logs of topics of Kafka 0.6 and 0.7. Who uses it has locked the directory.

    Args:
        path: the directory.
        settings: what the logs of a topic heed.
        clean: its last owner stopped in good order.
        syncs: what is flushed is put on the disk, by another thread; else it is shown to readers, and no more.
        now: the time in ms since 1970.

    Attributes:
        logs (dict): by topic and partition.

    Raises:
        DirectoryRefused: the segments of a log do not follow one another.
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
        """The topics that have a log."""
        return {topic for topic, _ in self.logs}

    def create(self, topic: str, partition: int) -> GrowingLog07:
        """Make a log. Raises OSError."""
        return self._open(topic, partition, clean=True)

    def close(self, *, keeps: bool) -> None:
        """Let go of all logs; what they have is on the disk then, if they are kept. Raises OSError."""
        for log in self.logs.values():
            log.close(keeps=keeps)

    # Of the host

    def append(self, log: Key, data: object) -> None:
        """Nothing: the service has appended; what an effect appends only waits until that is on the disk."""

    def must_flush(self, log: Key) -> bool:
        """Whether what was written counts only when it is on the disk."""
        return self._syncs

    def flushing(self, log: Key) -> Flushing07:
        """What puts a log on the disk. Raises KeyError, OSError."""
        return self.logs[log].flushing()

    def flushed(self, log: Key, flushing: Flushing07) -> None:
        """Note that it is."""
        self.logs[log].flushed(flushing.end, self._now())

    def _open(self, topic: str, partition: int, *, clean: bool) -> GrowingLog07:
        path = os.path.join(self.path, f"{topic}-{partition}")
        log = GrowingLog07(path, self._settings(topic), clean=clean, now=self._now(), disk=self._disk)
        self.logs[topic, partition] = log
        return log
