"""All logs of a data directory, and the files beside them, as a broker keeps them."""

from __future__ import annotations

import errno
import os
import shutil
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress

from kafkacodec.datatypes import NamedTuple
from kafkacodec.errors import DecodeError
from kafkacodec.internal_records import CLUSTER_METADATA
from kafkacodec.log.files.locks import DirectoryLock
from kafkacodec.log.formats import layout
from kafkacodec.log.formats.checkpoints import encode_checkpoint, encode_partition_metadata
from kafkacodec.log.growing.disk import Disk
from kafkacodec.log.growing.identity import Identity, check_identity, read_or_make, refuse_nested
from kafkacodec.log.growing.log import PartitionLog
from kafkacodec.log.growing.refused import DirectoryRefused, partition_names, refuse_partition
from kafkacodec.log.growing.settings import LogConfig, now_ms
from kafkacodec.log.opening.checkpoints import read_checkpoint, read_topic_id

__all__ = ["DirectoryRefused", "GrowingDirectory", "OtherTopic", "PartitionFound", "has_segments07"]

_LONGEST_NAME = 255
_READ_ONLY = (errno.EACCES, errno.EPERM, errno.EROFS)
_WRITES = "a broker needs to write into its directory, unless it serves it read-only"
Key = tuple[str, int]


def has_segments07(path: str) -> bool:
    """Whether a partition's directory has segments of Kafka 0.6 or 0.7. Raises OSError."""
    with os.scandir(path) as entries:
        return any(entry.name.endswith(layout.KAFKA07_SUFFIX) for entry in entries)


class OtherTopic(ValueError):
    """A partition's directory is of a topic of the same name with another id."""


class PartitionFound(NamedTuple):
    """A partition's directory: its topic and number, and the topic's id; None if it has no ``partition.metadata``."""

    topic: str
    partition: int
    topic_id: uuid.UUID | None


class GrowingDirectory:
    """A data directory of one broker, which it locks. It has one caller at a time.

    Open partitions one by one with `open`, since their configuration may itself be in one of them.

    Args:
        path: the directory; created if it is missing.
        cluster_id, node_id: the required ones in ``meta.properties``; None: any, or new ones.
        clock: the time in ms since 1970.
        disk: changes the files.

    Attributes:
        path (str): the directory.
        identity (Identity): cluster, node and directory, from ``meta.properties``.
        was_clean (bool): whether its last owner stopped cleanly; otherwise opening recovers each log.
        logs (dict): the open logs by topic and partition.
        high_watermarks (dict): for the checkpoint, if they are not the ends of the logs; initially those on the disk.
        cleaned (dict): the cleaner's positions, by topic and partition.
        topics07 (set): the topics of Kafka 0.6 and 0.7 that it had at first, whose names others cannot have.

    Raises:
        DirectoryRefused: another process has it, it is of another cluster, node or version, or it is no data directory.
        OSError: a file cannot be read or written.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        cluster_id: str | None = None,
        node_id: int | None = None,
        clock: Callable[[], int] = now_ms,
        disk: Disk | None = None,
    ) -> None:
        self.path = os.fspath(path)
        self._clock, self._disk = clock, disk or Disk()
        refuse_partition(self.path)  # the checks come before the first file is written
        refuse_nested(self.path)
        os.makedirs(self.path, exist_ok=True)
        check_identity(self.path, cluster_id, node_id)
        self._lock = DirectoryLock(self.path)
        try:
            self._lock.acquire()
        except BlockingIOError as error:
            raise DirectoryRefused(errno.EBUSY, error.strerror, self.path) from None
        except OSError as error:
            if error.errno in _READ_ONLY:
                raise DirectoryRefused(error.errno, f"{error.strerror}: {_WRITES}", self.path) from None
            raise
        try:
            self.identity: Identity = read_or_make(self.path, cluster_id, node_id, self._disk)
            self.logs: dict[Key, PartitionLog] = {}
            self._ids: dict[Key, uuid.UUID] = {}  # those of open logs that are known
            self._recovery_points = self._read(layout.RECOVERY_POINT_CHECKPOINT)
            self._log_starts = self._read(layout.LOG_START_CHECKPOINT)
            self.high_watermarks = self._read(layout.HIGH_WATERMARK_CHECKPOINT)
            self.cleaned = self._read(layout.CLEANER_CHECKPOINT)
            self.topics07: set[str] = set()
            self._found = {(p.topic, p.partition) for p in self.partitions()}
            self._marker = os.path.join(self.path, layout.CLEAN_SHUTDOWN)
            self.was_clean = self._has_marker = os.path.exists(self._marker)
            self._to_delete = [(clock(), found) for found in self._deleted_before()]
        except BaseException:
            self._lock.release()
            raise

    def begin(self) -> None:
        """Note that logs may change from now on, so that after a crash they need recovery. Raises OSError."""
        if self._has_marker:
            self._disk.remove(self._marker)
            self._has_marker = False

    def partitions(self) -> list[PartitionFound]:
        """Return the partitions in the directory, by topic and number, without those set aside and those of Kafka 0.7.

        Raises:
            DirectoryRefused: there is a directory that is not a partition's; a broker does not start with it either.
        """
        found = []
        for name, parts in partition_names(self.path):
            path = os.path.join(self.path, name)
            if parts.state == "current":
                topic_id = self._topic_id(path)
                if topic_id is not None or not has_segments07(path):
                    found.append(PartitionFound(parts.topic, parts.partition, topic_id))
                else:
                    self.topics07.add(parts.topic)
        return sorted(found, key=lambda p: (p.topic, p.partition))

    def has(self, topic: str, partition: int) -> bool:
        """Whether there is a directory of this name, of whatever topic."""
        return os.path.lexists(self._path_of(topic, partition))

    @property
    def unopened(self) -> set[Key]:
        """The partitions in the directory that are not open."""
        return self._found - self.logs.keys()

    def open(
        self, topic: str, partition: int, config: LogConfig | None = None, *, topic_id: uuid.UUID | None = None
    ) -> PartitionLog:
        """Open the log of a partition; create it if it is missing.

        Args:
            topic, partition: which.
            config: replaces that of an open log, too.
            topic_id: written into ``partition.metadata`` if it is missing.

        Raises:
            ValueError: an invalid topic name.
            OtherTopic: the partition is of a topic with another id.
            DecodeError: a file is damaged.
            OSError: a file cannot be read or written.
        """
        key = (topic, partition)
        layout.check_topic(topic)
        path = self._path_of(topic, partition)
        known = None if topic_id is None else self._ids.get(key) or self._topic_id(path)
        if known is not None and known != topic_id:
            raise OtherTopic(f"{path}: the topic's id is {topic_id}, but the partition has {known}")
        log = self.logs.get(key)
        if log is not None:
            log.config = config or log.config
            return log
        self.begin()
        os.makedirs(path, exist_ok=True)
        if topic_id is not None and known is None:
            self._disk.replace(
                os.path.join(path, layout.PARTITION_METADATA), encode_partition_metadata(topic_id), sync=False
            )
        log = self.logs[key] = PartitionLog(
            path,
            config,
            start_offset=self._log_starts.get(key, 0),
            recovery_point=self._recovery_points.get(key, 0),
            clean=self.was_clean and key in self._found,
            clock=self._clock,
            disk=self._disk,
        )
        if topic_id is not None:
            self._ids[key] = topic_id
        return log

    def delete(self, topic: str, partitions: Iterable[int], delay_ms: int) -> None:
        """Rename the directories of partitions, so that the names are free; `purge` removes them after `delay_ms`.

        Raises:
            KeyError: there is none.
            OSError: one cannot be renamed, and is as before; the others are.
        """
        failed: OSError | None = None
        for partition in partitions:
            try:
                aside = self.set_aside(topic, partition, "delete")
            except OSError as error:
                failed = error
            else:
                self._to_delete.append((self._clock() + delay_ms, aside))
        with suppress(OSError):  # the disk may be full, which the deletion ends; the next checkpoints are without them
            self.write_checkpoints()
        if failed is not None:
            raise failed

    def set_aside(self, topic: str, partition: int, state: str = "stray") -> str:
        """Rename a partition's directory, as a broker does with one that is of no topic that it knows; its new path.

        Raises:
            KeyError: there is none.
            OSError: it cannot be renamed, and is as before.
        """
        key, path = (topic, partition), self._path_of(topic, partition)
        if key not in self.logs and not os.path.isdir(path):
            raise KeyError(f"{topic}-{partition}")
        suffix = f"-{partition}.{uuid.uuid4().hex}-{state}"
        aside = os.path.join(self.path, topic[: _LONGEST_NAME - len(suffix)] + suffix)
        self._disk.rename(path, aside)
        self._forget(key)
        return aside

    def discard(self, topic: str, partition: int) -> None:
        """Remove the directory of a partition that nobody has used yet; nothing happens if there is none."""
        shutil.rmtree(self._path_of(topic, partition), ignore_errors=True)
        self._forget((topic, partition))

    def _forget(self, key: Key) -> None:
        self.logs.pop(key, None)
        self._ids.pop(key, None)
        self._found.discard(key)
        for offsets in (self._recovery_points, self._log_starts, self.high_watermarks, self.cleaned):
            offsets.pop(key, None)

    def now(self) -> int:
        """Return the time of its clock, in ms since 1970."""
        return self._clock()

    def purge(self, now: int | None = None, *, everything: bool = False) -> None:
        """Remove the directories of deleted partitions, and deleted segments, whose time has come."""
        now = self._clock() if now is None else now
        waiting = []
        for due, path in self._to_delete:
            if everything or due <= now:
                shutil.rmtree(path, ignore_errors=True)
            else:
                waiting.append((due, path))
        self._to_delete = waiting
        for log in self.logs.values():
            log.purge(now, everything=everything)

    def flush(self, keys: Iterable[Key] | None = None) -> None:
        """Wait until logs are on the disk, all that are open by default, and write the recovery points.

        Raises:
            OSError: the disk failed.
        """
        for key in self.logs if keys is None else keys:
            self.logs[key].flush()
        self.write_checkpoints()

    def write_checkpoints(self) -> None:
        """Write the checkpoints: recovery points, high watermarks, starts of logs, and the cleaner's positions.

        Raises:
            OSError: one cannot be written; the others may have been.
        """
        for key, log in self.logs.items():
            self._recovery_points[key] = log.recovery_point
            self._log_starts.pop(key, None)
            if log.start_offset > log.first_offset:
                self._log_starts[key] = log.start_offset
        ends = {key: log.end_offset for key, log in self.logs.items()}
        for name, offsets in (
            (layout.RECOVERY_POINT_CHECKPOINT, self._recovery_points),
            (layout.HIGH_WATERMARK_CHECKPOINT, ends | self.high_watermarks),
            (layout.LOG_START_CHECKPOINT, self._log_starts),
            (layout.CLEANER_CHECKPOINT, self.cleaned),
        ):
            self._write_checkpoint(name, offsets)

    def note_flushed(self, topic: str, partition: int) -> None:
        """Write the flushed end of a log. Raises OSError; a later call writes it again."""
        self._recovery_points[topic, partition] = self.logs[topic, partition].recovery_point
        # Damage of this file only costs time at the next start, so nothing waits for the disk here.
        self._write_checkpoint(layout.RECOVERY_POINT_CHECKPOINT, self._recovery_points, sync=False)

    def note_cleaned(self, topic: str, partition: int, end_offset: int) -> None:
        """Write the cleaner's position. Raises OSError; a later call writes it again."""
        self.cleaned[topic, partition] = end_offset
        self._write_checkpoint(layout.CLEANER_CHECKPOINT, self.cleaned)

    def close(self, *, broker_epoch: int = -1) -> None:
        """Close all logs, and leave the directory as a broker does after a clean stop.

        Logs that were not closed cleanly before, and not opened since, still need recovery.

        Raises:
            OSError: the disk failed; the directory is then as after a crash. It is unlocked in any case.
        """
        try:
            unopened = self.unopened
            for log in self.logs.values():
                log.close()
            self.write_checkpoints()
            if self.was_clean or not unopened:
                text = f'{{"version":0,"brokerEpoch":{broker_epoch}}}'
                self._disk.replace(self._marker, text.encode(), sync=True)
                self._disk.sync_names(self.path)
        finally:
            self.abandon()

    def give_back(self) -> None:
        """Leave the directory after a start that failed: clean, if it was clean; it is unlocked in any case."""
        if self.was_clean and not self._has_marker:
            with suppress(OSError):
                self.close()
        self.abandon()

    def abandon(self) -> None:
        """Unlock the directory and leave everything unchanged, as a crash would."""
        self.logs.clear()
        self._lock.release()

    def _path_of(self, topic: str, partition: int) -> str:
        return os.path.join(self.path, f"{topic}-{partition}")

    def _write_checkpoint(self, name: str, offsets: dict[Key, int], *, sync: bool = True) -> None:
        # The log of the metadata is recovered whole.
        kept = {key: offset for key, offset in offsets.items() if key[0] != CLUSTER_METADATA}
        if kept or name != layout.CLEANER_CHECKPOINT:
            self._disk.replace(os.path.join(self.path, name), encode_checkpoint(kept), sync=sync)

    def _read(self, name: str) -> dict[Key, int]:
        """A checkpoint; empty if it is missing or damaged: then more is recovered, and deleted records come back."""
        with suppress(FileNotFoundError, DecodeError):
            return dict(read_checkpoint(os.path.join(self.path, name)))
        return {}

    @staticmethod
    def _topic_id(path: str) -> uuid.UUID | None:
        with suppress(FileNotFoundError):
            return read_topic_id(os.path.join(path, layout.PARTITION_METADATA))
        return None

    def _deleted_before(self) -> list[str]:
        names = (name for name in os.listdir(self.path) if name.endswith("-delete") and not layout.is_staging(name))
        return [os.path.join(self.path, name) for name in names if os.path.isdir(os.path.join(self.path, name))]
