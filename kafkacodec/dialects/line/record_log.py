"""The append-only file of records, truncated after its last complete entry when it is opened.

An entry is a line: the CRC-32 of the JSON as eight hex digits, a space, and a JSON array of topic, partition, offset,
key and value. The first line is the format. Offsets number a partition's entries, so a missing line is detected.
"""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kafkacodec.errors import CorruptRecord, EncodeError

__all__ = ["RecordLog", "open_or_make", "sync_directory"]

_MAX_ENTRY_BYTES = 16 << 20


class RecordLog:
    """The records of all partitions in one file, which no other process may write to.

    A record is in the file when `append` returns, so killing the process loses none; `sync` writes it through to disk.
    An incomplete entry that a kill or a power failure left at the end is cut off when the file is opened.

    Args:
        path: the file; created if missing.

    Attributes:
        cut_bytes (int): the number of bytes cut off when the file was opened.

    Raises:
        CorruptRecord: on construction, a file of another format, or damage before the last complete entry; nothing is
            cut off.
        OSError: from the file system.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        # Position and size of each entry of a partition, alternating.
        self._entries: dict[tuple[str, int], array[int]] = {}
        self._file = open(path, "r+b", buffering=0, opener=open_or_make)  # noqa: SIM115
        try:
            size = os.fstat(self._file.fileno()).st_size
            self._end = self._recover()
            self._synced = -1
            self.cut_bytes = size - self._end
            if self.cut_bytes:
                self._file.truncate(self._end)
            if not self._end:
                self._write(_FORMAT_ENTRY)
                self.sync()
                sync_directory(path.parent)
        except BaseException:
            self._file.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def append(self, topic: str, partition: int, key: str, value: str) -> int:
        """Append a record and return its offset.

        Raises:
            EncodeError: the record is too large.
            OSError: from the file system; the record was not appended.
        """
        entry = _entry([topic, partition, self.end(topic, partition), key, value])
        if len(entry) > _MAX_ENTRY_BYTES:
            raise EncodeError(f"a record entry of {len(entry)} bytes exceeds the limit of {_MAX_ENTRY_BYTES}")
        start = self._end
        self._write(entry)
        return self._add(topic, partition, start, len(entry))

    def end(self, topic: str, partition: int) -> int:
        """The offset of the next record of a partition."""
        return len(self._entries.get((topic, partition), ())) // 2

    def topics(self) -> set[str]:
        """Return the topics with records."""
        return {topic for topic, _ in self._entries}

    def read(self, topic: str, partition: int, start: int, stop: int) -> Iterator[tuple[int, str]]:
        """Offset and value of the records from `start` to before `stop`.

        Raises:
            CorruptRecord: the file has changed since it was opened.
            OSError: from the file system.
        """
        entries = self._entries.get((topic, partition), _NO_ENTRIES)
        for offset in range(start, min(stop, len(entries) // 2)):
            position, size = entries[2 * offset : 2 * offset + 2]
            content = _content(os.pread(self._file.fileno(), size, position))
            if not _is_record(content) or content[:3] != [topic, partition, offset]:
                raise CorruptRecord("entry changed since the file was opened", position=position, path=self._path.name)
            yield offset, content[4]

    def sync(self) -> None:
        """Wait until all records are on disk. Raises OSError."""
        if self._synced != self._end:
            os.fsync(self._file.fileno())
            self._synced = self._end

    def _write(self, entry: bytes) -> None:
        """Write at the end, over the bytes of a failed attempt."""
        descriptor, written = self._file.fileno(), 0
        try:
            while written < len(entry):
                written += os.pwrite(descriptor, entry[written:], self._end + written)
        except BaseException:
            with contextlib.suppress(OSError):
                os.ftruncate(descriptor, self._end)
            raise
        self._end += len(entry)

    def _recover(self) -> int:
        """Index the entries; returns the end of the last complete one."""
        end = at = 0
        with open(self._path, "rb") as file:
            while line := file.readline(_MAX_ENTRY_BYTES + 1):
                content = _content(line)
                if content is not None and end < at:
                    reason = f"{at - end} invalid bytes, yet valid entries follow"
                    raise CorruptRecord(reason, position=end, path=self._path.name)
                if at == 0 and content != _FORMAT and not (content is None and _FORMAT_ENTRY.startswith(line)):
                    raise CorruptRecord("not a record file of format 1", position=0, path=self._path.name)
                if content is not None:
                    if at > 0:
                        self._add_entry(content, at, len(line))
                    end = at + len(line)
                at += len(line)
        return end

    def _add_entry(self, content: Any, position: int, size: int) -> None:
        if not _is_record(content):
            reason = "invalid entry: expected topic, partition, offset, key, value"
            raise CorruptRecord(reason, position=position, path=self._path.name)
        topic, partition, offset = content[:3]
        if offset != self.end(topic, partition):
            reason = f"unexpected offset {offset} of {topic!r}-{partition} (the next is {self.end(topic, partition)})"
            raise CorruptRecord(reason, position=position, path=self._path.name)
        self._add(topic, partition, position, size)

    def _add(self, topic: str, partition: int, position: int, size: int) -> int:
        """Index an entry; returns its offset."""
        entries = self._entries.setdefault((topic, partition), array("q"))
        entries.extend((position, size))
        return len(entries) // 2 - 1


def sync_directory(path: Path) -> None:
    """Wait until a directory is on disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def open_or_make(path: str, flags: int) -> int:
    """An opener that creates a file for this user only and does not follow symbolic links."""
    return os.open(path, flags | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def _entry(content: Any) -> bytes:
    body = json.dumps(content, separators=(",", ":")).encode("ascii")
    return b"%08x %b\n" % (zlib.crc32(body), body)


def _content(line: bytes) -> Any:
    """The JSON value of an entry; None if the line is not a complete entry."""
    checksum, space, body = line[:8], line[8:9], line[9:-1]
    if line[-1:] != b"\n" or space != b" " or checksum != b"%08x" % zlib.crc32(body):
        return None
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _is_record(content: Any) -> bool:
    return isinstance(content, list) and [type(item) for item in content] == [str, int, int, str, str]


_NO_ENTRIES = array("q")
_FORMAT = {"format": 1}
_FORMAT_ENTRY = _entry(_FORMAT)
