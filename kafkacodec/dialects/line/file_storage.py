"""The storage of a broker in a directory: records, groups and offsets."""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from kafkacodec.assignment.dividing import STRATEGIES
from kafkacodec.dialects.line.record_log import RecordLog, open_or_make, sync_directory
from kafkacodec.dialects.line.storage import Rows
from kafkacodec.errors import CorruptRecord, LocalProtocolError
from kafkacodec.temporary import removed_on_error

__all__ = ["FileStorage", "write_atomically"]

# Temporary files of a killed broker. No other files are removed.
_UNFINISHED = re.compile(r"\.(groups|offsets)\.json\.[0-9a-f]{16}\.unfinished")


class FileStorage:
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
        self._directory = Path(directory)
        self._lock = _lock(self._directory / ".lock")
        try:
            with os.scandir(directory) as entries:
                for entry in entries:
                    if _UNFINISHED.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                        os.unlink(entry.path)
            self._groups = _load(self._directory / "groups.json", _GROUP)
            self._offsets = _load(self._directory / "offsets.json", _OFFSET)
            self._records = RecordLog(self._directory / "records.log")
        except BaseException:
            self._lock.close()
            raise
        self.cut_bytes = self._records.cut_bytes

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

    def load_groups(self) -> Rows:
        """The groups last saved."""
        return self._groups

    def save_groups(self, groups: Rows) -> None:
        """Write ``groups.json``."""
        _save(self._directory / "groups.json", groups)
        self._groups = groups

    def load_offsets(self) -> Rows:
        """The offsets last saved."""
        return self._offsets

    def save_offsets(self, offsets: Rows) -> None:
        """Write ``offsets.json`` after all records are on disk."""
        self._records.sync()
        _save(self._directory / "offsets.json", offsets)
        self._offsets = offsets


def _lock(path: Path) -> BinaryIO:
    file = open(path, "ab", opener=open_or_make)  # noqa: SIM115
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise LocalProtocolError(f"{path.parent} is in use by another broker, which has locked {path.name}") from None
    except BaseException:
        file.close()
        raise
    return file


_FORMAT = 1
_OFFSET = {"group": str, "topic": str, "partition": int, "offset": int}
_GROUP = {"group": str, "topic": str, "generation": int, "assignor": str, "members": list, "assignments": dict}


def _save(path: Path, rows: Rows) -> None:
    write_atomically(path, json.dumps({"format": _FORMAT, "rows": rows}, separators=(",", ":")).encode())


def _load(path: Path, shape: dict[str, type]) -> Rows:
    """The rows of a file; none if it does not exist."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return []
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as e:
        raise CorruptRecord(f"not JSON: {e}", path=path.name) from None
    if not isinstance(content, dict) or content.get("format") != _FORMAT or not isinstance(content.get("rows"), list):
        raise CorruptRecord("not a file of format 1", path=path.name)
    for i, row in enumerate(content["rows"]):
        if not isinstance(row, dict) or {k: type(v) for k, v in row.items()} != shape or not _is_sound(row):
            raise CorruptRecord(f"invalid row: expected {', '.join(shape)}", path=f"{path.name}.rows[{i}]")
    return list(content["rows"])


def _is_sound(row: dict[str, Any]) -> bool:
    members, assignments = row.get("members", []), row.get("assignments", {})
    known = row.get("assignor", "range") in STRATEGIES
    return (
        known
        and all(_is_number(n) for n in row.values() if isinstance(n, int))
        and all(isinstance(m, str) for m in members)
        and all(m in members and isinstance(p, list) and all(map(_is_number, p)) for m, p in assignments.items())
    )


def _is_number(n: object) -> bool:
    return type(n) is int and 0 <= n < 1 << 63


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file atomically and durably: a kill at any moment leaves the old file or the new one.

    Raises:
        OSError: the old file is unchanged, unless only the sync of the directory failed.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.unfinished")
    with removed_on_error(str(temporary)):
        with open(temporary, "xb", opener=open_or_make) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    sync_directory(path.parent)
