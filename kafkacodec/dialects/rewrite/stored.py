"""Groups as rows of a file: everything except members and pending changes, which end with their controller."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from kafkacodec.dialects.line.group_files import load_rows
from kafkacodec.dialects.rewrite.groups import Group, Partition

__all__ = ["group_row", "read_groups"]

_ROW: Final = {
    "group": str, "session_timeout": int, "topics": list, "generation": int, "known": dict, "offsets": list
}  # fmt: skip
_MAX_INT64: Final = (1 << 63) - 1


def group_row(name: str, group: Group) -> dict[str, Any]:
    """A group as a row; `group` is not kept."""
    return {
        "group": name,
        "session_timeout": group.session_timeout,
        "topics": list(group.topics),
        "generation": group.generation,
        "known": dict(group.known),
        "offsets": [[p.topic, p.partition, offset] for p, offset in group.offsets.items()],
    }


def read_groups(path: Path) -> dict[str, Group]:
    """The groups of a file by name; none if it does not exist.

    Raises:
        CorruptRecord: the file is damaged.
        OSError: from the file system.
    """
    found = {}
    for row in load_rows(path, _ROW, _is_sound):
        offsets = {Partition(topic, partition): offset for topic, partition, offset in row["offsets"]}
        found[row["group"]] = Group(
            row["session_timeout"], row["topics"], False, row["known"], row["generation"], offsets=offsets
        )
    return found


def _is_sound(row: dict[str, Any]) -> bool:
    return (
        1 <= row["session_timeout"] <= _MAX_INT64
        and _is_number(row["generation"])
        and all(isinstance(topic, str) for topic in row["topics"])
        and all(_is_number(count) for count in row["known"].values())
        and all(isinstance(entry, list) and len(entry) == len(Partition._fields) + 1 for entry in row["offsets"])
        and all(isinstance(t, str) and _is_number(p) and _is_number(o) for t, p, o in row["offsets"])
    )


def _is_number(value: object) -> bool:
    return type(value) is int and 0 <= value <= _MAX_INT64
