"""What a broker of the line protocol keeps: records, group metadata, committed offsets."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

from kafkacodec.dialects.assignment import STRATEGIES
from kafkacodec.errors import CorruptRecord

__all__ = ["FileStorage", "MemoryStorage", "Storage", "write_atomically"]

Rows = list[dict[str, Any]]


class Storage(Protocol):
    """What `Broker` asks of its storage.

    Groups are dicts of group, topic, generation, assignor, members and assignments; offsets are dicts of group, topic,
    partition and offset. A save that raises must leave what was stored before.
    """

    def append(self, topic: str, partition: int, key: str, value: str) -> int:
        """Append a record and return its offset."""

    def end(self, topic: str, partition: int) -> int:
        """The offset of the next record."""

    def read(self, topic: str, partition: int, start: int, stop: int) -> Iterable[tuple[int, str]]:
        """Offset and value of the records from `start` to before `stop`."""

    def load_groups(self) -> Rows:
        """The groups last saved."""

    def save_groups(self, groups: Rows) -> None:
        """Keep the groups."""

    def load_offsets(self) -> Rows:
        """The offsets last saved."""

    def save_offsets(self, offsets: Rows) -> None:
        """Keep the offsets."""


class MemoryStorage:
    """Keeps everything in memory."""

    def __init__(self) -> None:
        self._records: dict[tuple[str, int], list[tuple[str, str]]] = {}
        self._groups: Rows = []
        self._offsets: Rows = []

    def append(self, topic: str, partition: int, key: str, value: str) -> int:
        """Append a record and return its offset."""
        log = self._records.setdefault((topic, partition), [])
        log.append((key, value))
        return len(log) - 1

    def end(self, topic: str, partition: int) -> int:
        """The offset of the next record."""
        return len(self._records.get((topic, partition), ()))

    def read(self, topic: str, partition: int, start: int, stop: int) -> list[tuple[int, str]]:
        """Offset and value of the records from `start` to before `stop`."""
        log = self._records.get((topic, partition), [])
        return [(offset, value) for offset, (_, value) in enumerate(log[start:stop], start)]

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


class FileStorage(MemoryStorage):
    """Groups in ``groups.json`` and offsets in ``offsets.json`` of a directory; records in memory.

    The protocol names these two files and none for records. Each write leaves the old file or the new one, whenever
    the process is killed; what a killed one left unfinished (``groups.json.*``, ``offsets.json.*``) is removed here. A
    directory belongs to one broker at a time.

    Raises:
        CorruptRecord: on construction, a file that is not what was written.
        OSError: the file system's.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        super().__init__()
        self._groups_path = Path(directory) / "groups.json"
        self._offsets_path = Path(directory) / "offsets.json"
        for path in (self._groups_path, self._offsets_path):
            for unfinished in Path(directory).glob(f"{path.name}.*"):
                unfinished.unlink(missing_ok=True)
        super().save_groups(_load(self._groups_path, _GROUP))
        super().save_offsets(_load(self._offsets_path, _OFFSET))

    def save_groups(self, groups: Rows) -> None:
        """Write ``groups.json``."""
        _save(self._groups_path, groups)
        super().save_groups(groups)

    def save_offsets(self, offsets: Rows) -> None:
        """Write ``offsets.json``."""
        _save(self._offsets_path, offsets)
        super().save_offsets(offsets)


_FORMAT = 1
_OFFSET = {"group": str, "topic": str, "partition": int, "offset": int}
_GROUP = {"group": str, "topic": str, "generation": int, "assignor": str, "members": list, "assignments": dict}


def _save(path: Path, rows: Rows) -> None:
    write_atomically(path, json.dumps({"format": _FORMAT, "rows": rows}, separators=(",", ":")).encode())


def _load(path: Path, shape: dict[str, type]) -> Rows:
    """The rows of a file; none where there is no file."""
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
            raise CorruptRecord(f"is not {', '.join(shape)}", path=f"{path.name}.rows[{i}]")
    return list(content["rows"])


def _is_sound(row: dict[str, Any]) -> bool:
    members, assignments = row.get("members", []), row.get("assignments", {})
    known = row.get("assignor", "range") in STRATEGIES
    return (
        known
        and all(isinstance(m, str) for m in members)
        and all(m in members and isinstance(p, list) and all(type(n) is int for n in p) for m, p in assignments.items())
    )


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file so that a kill at any moment leaves the old one or the new one, on the disk too.

    Raises:
        OSError: the old file is as it was, unless it was only the directory that could not be written through.
    """
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
