"""The storage of a broker in a directory: records, groups and offsets."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from kafkacodec.dialects.line.group_files import GroupFiles
from kafkacodec.dialects.line.record_log import RecordLog, open_or_make
from kafkacodec.dialects.line.storage import Rows
from kafkacodec.errors import LocalProtocolError
from kafkacodec.shown import repr_of

__all__ = ["FileStorage"]


class FileStorage(GroupFiles):
    """Records in ``records.log``, groups in ``groups.json`` and offsets in ``offsets.json`` of a directory.

    The protocol names the last two; it has no file for records. Records are written through to disk before an offset
    that counts them. The two JSON files are replaced atomically: a killed process leaves the old or the new file. For
    the records see `RecordLog`. One storage at a time uses a directory: it holds a lock on ``.lock`` until it is closed
    or its process ends.

    Args:
        directory: an existing directory. Other files in it are not touched.

    Attributes:
        cut_bytes (int): the size in bytes of an unfinished record that was cut off.

    Raises:
        LocalProtocolError: on construction, another storage uses the directory.
        CorruptRecord: on construction, a file is damaged.
        OSError: from the file system.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self._lock = _lock(Path(directory) / ".lock")
        try:
            super().__init__(directory)
            self._records = RecordLog(Path(directory) / "records.log")
        except BaseException:
            self._lock.close()
            raise
        self.cut_bytes = self._records.cut_bytes

    def __repr__(self) -> str:
        return repr_of(self, os.fspath(self._directory))

    def close(self) -> None:
        """Close the files and release the lock."""
        self._records.close()
        self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def append(self, topic: str, partition: int, key: str, value: str) -> int:
        """Append a record and return its offset. Raises OSError, or EncodeError for more than 16 MiB."""
        return self._records.append(topic, partition, key, value)

    def end(self, topic: str, partition: int) -> int:
        """The offset of the next record."""
        return self._records.end(topic, partition)

    def read(self, topic: str, partition: int, start: int, stop: int) -> Iterator[tuple[int, str]]:
        """Offset and value of the records from `start` to before `stop`. Raises OSError and CorruptRecord."""
        return self._records.read(topic, partition, start, stop)

    def topics(self) -> set[str]:
        """The topics that have records."""
        return self._records.topics()

    def save_offsets(self, offsets: Rows) -> None:
        """Write ``offsets.json`` after all records are on disk."""
        self._records.sync()
        super().save_offsets(offsets)


def _lock(path: Path) -> BinaryIO:
    file = open(path, "ab", opener=open_or_make)  # noqa: SIM115
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise LocalProtocolError(f"{path.parent} is in use: another broker has locked {path.name}") from None
    except BaseException:
        file.close()
        raise
    return file
