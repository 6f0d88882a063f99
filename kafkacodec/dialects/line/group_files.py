"""The files of a broker's groups: ``groups.json`` and ``offsets.json``."""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kafkacodec.assignment.dividing import STRATEGIES
from kafkacodec.dialects.line.record_log import open_or_make, sync_directory
from kafkacodec.dialects.line.storage import Rows
from kafkacodec.errors import CorruptRecord
from kafkacodec.temporary import removed_on_error

__all__ = [
    "GroupFiles",
    "groups_text",
    "load_rows",
    "read_groups_text",
    "remove_unfinished",
    "save_rows",
    "write_atomically",
]

# Temporary files of a killed broker. No other files are removed.
_UNFINISHED = re.compile(r"\.(groups|offsets|roles|rewrite-groups)\.json\.[0-9a-f]{16}\.unfinished")


class GroupFiles:
    """The groups of a storage: ``groups.json`` and ``offsets.json``, each replaced atomically.

    Args:
        directory: an existing directory. Other files in it are not touched.

    Raises:
        CorruptRecord: on construction, a file is damaged.
        OSError: from the file system.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self._directory = Path(directory)
        remove_unfinished(directory)
        self._groups = load_rows(self._directory / "groups.json", _GROUP, _is_sound)
        self._offsets = load_rows(self._directory / "offsets.json", _OFFSET, _is_sound)

    def load_groups(self) -> Rows:
        """The groups last saved."""
        return self._groups

    def save_groups(self, groups: Rows) -> None:
        """Write ``groups.json``. Raises OSError."""
        save_rows(self._directory / "groups.json", groups)
        self._groups = groups

    def load_offsets(self) -> Rows:
        """The offsets last saved."""
        return self._offsets

    def save_offsets(self, offsets: Rows) -> None:
        """Write ``offsets.json``. Raises OSError."""
        save_rows(self._directory / "offsets.json", offsets)
        self._offsets = offsets


_FORMAT = 1
_OFFSET = {"group": str, "topic": str, "partition": int, "offset": int}
_GROUP = {"group": str, "topic": str, "generation": int, "assignor": str, "members": list, "assignments": dict}


def save_rows(path: Path, rows: Rows) -> None:
    """Replace a file of rows, as `write_atomically` does. Raises OSError."""
    write_atomically(path, json.dumps({"format": _FORMAT, "rows": rows}, separators=(",", ":")).encode())


def load_rows(path: Path, shape: dict[str, type], is_sound: Callable[[dict[str, Any]], bool]) -> Rows:
    """The rows of a file, each with the keys and types of `shape`, and sound; none if the file does not exist.

    Raises:
        CorruptRecord: the file is damaged.
        OSError: from the file system.
    """
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
    _check_rows(content["rows"], shape, is_sound, f"{path.name}.rows")
    return list(content["rows"])


def _check_rows(rows: list[Any], shape: dict[str, type], is_sound: Callable[[dict[str, Any]], bool], path: str) -> None:
    for i, row in enumerate(rows):
        if not isinstance(row, dict) or {k: type(v) for k, v in row.items()} != shape or not is_sound(row):
            raise CorruptRecord(f"invalid row: expected {', '.join(shape)}", path=f"{path}[{i}]")


def groups_text(topic: str, groups: Rows, offsets: Rows) -> bytes:
    """The groups and offsets of a topic as JSON, for another broker."""
    found = {name: [row for row in rows if row["topic"] == topic]
             for name, rows in (("groups", groups), ("offsets", offsets))}  # fmt: skip
    return json.dumps(found, separators=(",", ":")).encode()


def read_groups_text(topic: str, text: bytes) -> tuple[Rows, Rows]:
    """Read the groups and offsets that `groups_text` has written. Raises CorruptRecord."""
    try:
        content = json.loads(text)
        groups, offsets = content["groups"], content["offsets"]
        strange = [row for row in (*groups, *offsets) if row["topic"] != topic]
    except (ValueError, TypeError, KeyError, RecursionError) as e:
        raise CorruptRecord(f"not groups and offsets: {e}", path="groups") from None
    _check_rows(groups, _GROUP, _is_sound, "groups")
    _check_rows(offsets, _OFFSET, _is_sound, "offsets")
    if strange:
        raise CorruptRecord(f"groups of another topic than {topic!r}", path="groups")
    return groups, offsets


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


def remove_unfinished(directory: str | os.PathLike[str]) -> None:
    """Remove unfinished group files of a killed `write_atomically`. Raises OSError."""
    with os.scandir(directory) as entries:
        for entry in entries:
            if _UNFINISHED.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                os.unlink(entry.path)


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
