"""Read-only data directories of a dead cluster."""

from __future__ import annotations

import errno
import logging
import os
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress

from kafkacodec.errors import DecodeError, KafkaCodecError
from kafkacodec.internal_records import CLUSTER_METADATA, INTERNAL_TOPICS
from kafkacodec.log.files.access import reason_of
from kafkacodec.log.formats import layout
from kafkacodec.log.growing.frozen import FrozenLog
from kafkacodec.log.growing.identity import META_PROPERTIES, Identity, new_id
from kafkacodec.log.growing.refused import refuse_partition
from kafkacodec.log.growing.settings import LogConfig
from kafkacodec.log.opening.checkpoints import read_properties, read_topic_id

__all__ = ["FrozenDirectory"]

_log = logging.getLogger("kafkacodec.broker")

Key = tuple[str, int]


class FrozenDirectory:
    """The data directories of one or several brokers of a cluster, without writes and locks.

    If several have a partition, it serves the replica with the newest leader epoch, and among equals the longest.

    Args:
        paths: the directories.

    Attributes:
        path (str): the first of them.
        identity (Identity): from the first ``meta.properties`` with one, otherwise invented.
        logs (dict): the open logs by topic and partition.
        found (dict): the replicas by topic and partition.
        unreadable (set): topic and partition of those that could not be opened.
        was_clean (bool): True: no recovery.

    Raises:
        DirectoryRefused: a directory is that of a partition.
        OSError: a directory cannot be listed.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self.path, self.paths = paths[0], list(paths)
        self.was_clean = True
        self.topics07: frozenset[str] = frozenset()  # of no use here: it makes no topics
        self.logs: dict[Key, FrozenLog] = {}
        self.found: dict[Key, list[str]] = {}
        self.unreadable: set[Key] = set()
        for path in paths:
            refuse_partition(path)
            for name in sorted(os.listdir(path)):
                parts = layout.parse_directory_name(name, tiered=False)
                if parts is not None and parts.state == "current" and os.path.isdir(os.path.join(path, name)):
                    self.found.setdefault((parts.topic, parts.partition), []).append(os.path.join(path, name))
        self.identity = next(filter(None, map(_identity, paths)), None) or Identity(new_id(), 1, new_id())

    def topic_id(self, topic: str) -> uuid.UUID | None:
        """The id of a topic in ``partition.metadata``; None if no partition has one."""
        for (name, _), paths in self.found.items():
            for path in paths if name == topic else ():
                with suppress(OSError, DecodeError):
                    return read_topic_id(os.path.join(path, layout.PARTITION_METADATA))
        return None

    def open(
        self, topic: str, partition: int, config: LogConfig | None = None, *, topic_id: uuid.UUID | None = None
    ) -> FrozenLog:
        """The log of a partition; an empty one if there is none, or if it is that of the metadata and cannot be read.

        Raises:
            OSError: no replica can be read; the first call has logged why.
        """
        key = (topic, partition)
        if key in self.unreadable:
            raise OSError(errno.EIO, "the partition cannot be read", self.found[key][0])
        if key not in self.logs:
            forgets = topic in INTERNAL_TOPICS
            replicas = list(self._replicas(key, config, forgets=forgets))
            if not replicas and key in self.found and topic != CLUSTER_METADATA:
                self.unreadable.add(key)
                return self.open(topic, partition)
            best = max(replicas, key=lambda log: (log.leader_epoch, log.end_offset), default=None)
            if best is not None:
                self._tell_unserved(f"{topic}-{partition}", best)
            self.logs[key] = best or FrozenLog(None, config, forgets=forgets)
        return self.logs[key]

    def _replicas(self, key: Key, config: LogConfig | None, *, forgets: bool) -> Iterator[FrozenLog]:
        """The replicas of a partition that can be read; logs why others cannot."""
        for path in self.found.get(key, ()):
            try:
                yield FrozenLog(path, config, forgets=forgets)
            except (OSError, KafkaCodecError) as error:
                place = getattr(error, "filename", None) or path
                _log.error("%s-%d is not served: %s: %s", *key, place, reason_of(error))

    @staticmethod
    def _tell_unserved(name: str, log: FrozenLog) -> None:
        with suppress(OSError, KafkaCodecError):  # reading it shows the reason
            for path, position, size in log.unserved():
                rest = "%s: %d bytes from byte %d of %s on are not served: no complete batch begins there"
                _log.warning(rest, name, size, position, path)

    def begin(self) -> None:
        """Do nothing: nothing changes."""

    def give_back(self) -> None:
        """Close the logs, after a start that failed."""
        self.abandon()

    def abandon(self) -> None:
        """Close the logs."""
        self.logs.clear()


def _identity(path: str) -> Identity | None:
    with suppress(OSError, DecodeError, ValueError):
        found = read_properties(os.path.join(path, META_PROPERTIES))
        node = int(found.get("node.id", found.get("broker.id", "1")))
        if found.get("cluster.id"):
            return Identity(found["cluster.id"], node, found.get("directory.id") or new_id())
    return None
