"""The storage of a line protocol broker: records, groups, committed offsets."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from kafkacodec.shown import counted, repr_of

__all__ = ["MemoryStorage", "Rows", "Storage"]

Rows = list[dict[str, Any]]


# Memory of a record in addition to its text.
_RECORD_BYTES = 100


class Storage(Protocol):
    """The interface of a broker's storage.

    Groups are dicts of group, topic, generation, assignor, members and assignments; offsets are dicts of group, topic,
    partition and offset. A method that raises must change nothing; `Broker` handles OSError and KafkaCodecError.
    Committed offsets must not survive the loss of the records that they count.
    """

    def append(self, topic: str, partition: int, key: str, value: str) -> int:
        """Append a record and return its offset."""

    def end(self, topic: str, partition: int) -> int:
        """The offset of the next record."""

    def read(self, topic: str, partition: int, start: int, stop: int) -> Iterable[tuple[int, str]]:
        """Return offset and value of the records from `start` to before `stop`; callers often stop early."""

    def topics(self) -> Iterable[str]:
        """The topics that have records."""

    def load_groups(self) -> Rows:
        """The groups last saved."""

    def save_groups(self, groups: Rows) -> None:
        """Keep the groups."""

    def load_offsets(self) -> Rows:
        """The offsets last saved."""

    def save_offsets(self, offsets: Rows) -> None:
        """Keep the offsets."""


class MemoryStorage:
    """Keeps everything in memory.

    Args:
        max_bytes: the most memory for records: keys and values in UTF-8, and 100 bytes for each record. A record that
            exceeds it raises OSError, like a full disk.
    """

    def __init__(self, *, max_bytes: int = 1 << 30) -> None:
        self._records: dict[tuple[str, int], list[tuple[str, str]]] = {}
        self._groups: Rows = []
        self._offsets: Rows = []
        self._room = max_bytes

    def __repr__(self) -> str:
        return repr_of(self, counted(sum(map(len, self._records.values())), "record"))

    def append(self, topic: str, partition: int, key: str, value: str) -> int:
        """Append a record and return its offset. Raises OSError if `max_bytes` is exceeded."""
        size = _RECORD_BYTES + sum(len(text.encode("utf-8", "surrogatepass")) for text in (key, value))
        if size > self._room:
            raise OSError(errno.ENOSPC, f"a record needs {size} bytes, {self._room} left")
        self._room -= size
        log = self._records.setdefault((topic, partition), [])
        log.append((key, value))
        return len(log) - 1

    def end(self, topic: str, partition: int) -> int:
        """The offset of the next record."""
        return len(self._records.get((topic, partition), ()))

    def read(self, topic: str, partition: int, start: int, stop: int) -> Iterator[tuple[int, str]]:
        """Offset and value of the records from `start` to before `stop`."""
        log = self._records.get((topic, partition), [])
        return ((offset, log[offset][1]) for offset in range(start, min(stop, len(log))))

    def topics(self) -> set[str]:
        """The topics that have records."""
        return {topic for topic, _ in self._records}

    def load_groups(self) -> Rows:
        """The groups last saved."""
        return self._groups

    def save_groups(self, groups: Rows) -> None:
        """Keep the groups."""
        self._groups = groups

    def load_offsets(self) -> Rows:
        """The offsets last saved."""
        return self._offsets

    def save_offsets(self, offsets: Rows) -> None:
        """Keep the offsets."""
        self._offsets = offsets
