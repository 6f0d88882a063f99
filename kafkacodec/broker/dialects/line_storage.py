"""The storage of the line protocol's broker: records in the topics of the broker, groups and offsets beside them."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from kafkacodec.broker.dialects.line_files import KeptFiles
from kafkacodec.broker.topics.committed import batches
from kafkacodec.datatypes import NamedTuple
from kafkacodec.dialects.line.errors import ErrorCode
from kafkacodec.dialects.line.group_files import GroupFiles
from kafkacodec.dialects.line.groups import Refused
from kafkacodec.dialects.line.storage import Rows
from kafkacodec.errors import KAFKA_STORAGE_ERROR, BrokerError
from kafkacodec.records.decode import iter_records

if TYPE_CHECKING:
    from kafkacodec.broker.dialects.inside import Inside
    from kafkacodec.broker.state.catalog import Catalog
    from kafkacodec.records.record import Record

__all__ = ["Counts", "TopicStorage"]

_MARKS: Final = (" ", "|", "\r", "\n")  # which values in a line cannot have


class Counts(Mapping[str, int]):
    """The number of partitions of each topic, as the catalog has it now."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def __getitem__(self, name: str) -> int:
        return len(self._catalog.metadata.topics[name]["partitions"])

    def __iter__(self) -> Iterator[str]:
        return iter(self._catalog.names())

    def __len__(self) -> int:
        return len(self._catalog.names())


class _Rows(NamedTuple):
    """Keys and values of one batch."""

    rows: list[tuple[bytes, bytes]]
    timestamp: int


class TopicStorage(GroupFiles):
    """A `kafkacodec.dialects.line.storage.Storage` in the topics of a broker; its first record creates a topic.

    ``groups.json`` and ``offsets.json`` of the data directory, which `files` writes later, have groups and offsets.

    Args:
        inside: the broker.

    Attributes:
        files: the pending writes.

    Raises:
        CorruptRecord: on construction, one of the two files is damaged.
        OSError: from the file system.
    """

    def __init__(self, inside: Inside) -> None:
        super().__init__(inside.path)
        self._inside = inside
        self._rows: dict[tuple[str, int], list[tuple[bytes, bytes]]] = {}  # taken, not stored yet
        self._written: dict[tuple[str, int], None] = {}
        self.files = KeptFiles(inside.path)
        self.files.first = self._of_offsets

    def take_written(self) -> list[tuple[str, int]]:
        """Return the logs with appends since the last call."""
        written = list(self._written)
        self._written.clear()
        return written

    def append(self, topic: str, partition: int, key: str, value: str) -> int:
        """Take a record, which `store` appends, and return its offset.

        Raises:
            OSError: the topic cannot be stored, or the partition cannot be opened.
            Refused: a topic cannot have this name.
        """
        inside, log = self._inside, (topic, partition)
        rows = self._rows.get(log)
        if rows is None:
            if inside.catalog.topic(topic) is None:
                self._create(topic)
            if inside.topics.partition(topic, partition) is None:
                raise OSError(errno.EIO, f"partition {topic}-{partition} cannot be opened", inside.path)
            rows = self._rows[log] = []
        rows.append((key.encode(), value.encode()))
        return self.end(topic, partition) - 1

    def store(self) -> dict[tuple[str, int], OSError]:
        """Append accepted records, those of a partition as one batch; return the failures by log."""
        failed: dict[tuple[str, int], OSError] = {}
        taken, self._rows = self._rows, {}
        now = self._inside.clock.now()
        for log, rows in taken.items():
            try:
                self._inside.topics.append(log, _Rows(rows, now))
                self._written[log] = None
            except OSError as error:
                failed[log] = error
        if taken:
            self._inside.wake()
        return failed

    def end(self, topic: str, partition: int) -> int:
        """The offset of the next record."""
        found = self._inside.topics.partition(topic, partition)
        stored = 0 if found is None else found.high_watermark
        return stored + len(self._rows.get((topic, partition), ()))

    def read(self, topic: str, partition: int, start: int, stop: int) -> Iterator[tuple[int, str]]:
        """Return offset and value of the records from `start` to before `stop`, without offsets that have no record.

        It ends before a record that does not fit a line; a null value becomes an empty one.

        Raises:
            OSError: from the file system.
            Refused: the first record does not fit a line.
        """
        found = self._inside.topics.partition(topic, partition)
        is_first = True
        for data in batches(found, stop, start) if found is not None else ():
            for record in iter_records(data, start_offset=start):
                if record.offset >= stop:
                    return
                text = _text(record)
                if text is None and is_first:
                    reason = f"the record at offset {record.offset} is not text without spaces, bars and line ends"
                    raise Refused(ErrorCode.BAD_REQUEST, f"{reason}; continue after it, or read it with a Kafka client")
                if text is None:
                    return
                is_first = False
                yield record.offset, text

    def _create(self, topic: str) -> None:
        try:
            self._inside.create(topic, self._inside.config.number("num.partitions"))
        except BrokerError as e:
            if e.code == KAFKA_STORAGE_ERROR:
                raise OSError(errno.EIO, e.args[0], self._inside.path) from None
            raise Refused(ErrorCode.BAD_REQUEST, e.args[0]) from None

    def topics(self) -> list[str]:
        """Return the existing topics."""
        return self._inside.catalog.names()

    def save_groups(self, groups: Rows) -> None:
        """Set the groups, and schedule the write of ``groups.json``."""
        self._groups = groups
        self.files.change("groups.json", self.load_groups)

    def save_offsets(self, offsets: Rows) -> None:
        """Set the offsets, and schedule the write of ``offsets.json`` after all records are on disk."""
        self._offsets = offsets
        self.files.change("offsets.json", self.load_offsets)

    def _of_offsets(self) -> list[tuple[str, int]]:
        """Return the logs with records that offsets count and that are not on the disk yet."""
        if self.files.has_saved("offsets.json"):
            return []
        found = []
        for log in {(row["topic"], row["partition"]) for row in self._offsets}:
            partition = self._inside.topics.partition(*log)
            if partition is not None and partition.log.recovery_point < partition.high_watermark:
                found.append(log)
        return found


def _text(record: Record) -> str | None:
    """The value; None if a line cannot have it."""
    try:
        text = bytes(record.value or b"").decode()
    except UnicodeDecodeError:
        return None
    return None if any(mark in text for mark in _MARKS) else text
