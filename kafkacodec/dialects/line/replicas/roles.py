"""The durable state of a broker about its replicas."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kafkacodec.datatypes import dataclass, replace
from kafkacodec.dialects.line.group_files import load_rows

__all__ = ["ALL", "NO_EPOCH", "ROLES", "Role", "Roles", "next_epoch", "stored_roles"]

NO_EPOCH = -1

ROLES = "roles.json"
"""The file of roles in a data directory."""

ALL = 1 << 62
"""The ticket of the leader's own groups, the newest of its epoch."""

Key = tuple[str, int]
Rows = list[dict[str, Any]]


def next_epoch(known: int, broker_id: int, replicas: int) -> int:
    """The first epoch above `known` that is this broker's: those are its id modulo the number of replicas."""
    first = known + 1
    return first + (broker_id - first) % replicas


@dataclass(slots=True)
class Role:
    """The role of one partition.

    Attributes:
        leads (bool): whether the broker should lead; it does once it has the promises.
        promised (int): it serves no leader of an older epoch.
        accepted (int): the newest epoch up to whose start this log has all of its leader's log.
        high_watermark (int): a lower bound of it.
        group_epoch, group_ticket (int): the version of the topic's groups, for partition 0: the epoch of their leader,
            and the number of its requests; `ALL` for that leader itself.
    """

    leads: bool
    promised: int = NO_EPOCH
    accepted: int = NO_EPOCH
    high_watermark: int = 0
    group_epoch: int = NO_EPOCH
    group_ticket: int = 0


class Roles:
    """The roles of all partitions. The host writes changes to the disk before any answer depends on them.

    Args:
        rows: the last result of `rows`.
        changed: called when `rows` change and must be stored.
        leads: whether the broker leads unknown partitions, as broker 0 does.
    """

    def __init__(self, rows: Iterable[dict[str, Any]], changed: Callable[[], None], *, leads: bool) -> None:
        self._changed, self._leads = changed, leads
        self._roles: dict[Key, Role] = {}
        self._rows: dict[Key, dict[str, Any]] = {}
        self._noted: set[Key] = set()  # whose row has an earlier high watermark
        for row in rows:
            values = dict(row)
            key = values.pop("topic"), values.pop("partition")
            self._roles[key], self._rows[key] = Role(**values), row

    def __getitem__(self, key: Key) -> Role:
        """Return the role of a partition, without storing it."""
        return self._roles.get(key) or Role(self._leads)

    def __len__(self) -> int:
        return len(self._roles)

    def __iter__(self) -> Iterator[Key]:
        return iter(list(self._roles))

    def change(self, key: Key, **values: Any) -> Role:
        """Change some of a role."""
        before = self._roles.get(key)
        role = replace(before or Role(self._leads), **values)
        if role == before:
            return role
        self._roles[key] = role
        self._write(key)
        self._changed()
        return role

    def note(self, key: Key, high_watermark: int) -> None:
        """Note a high watermark; the next change or `keep` stores it."""
        role = self._roles.get(key)
        if role is not None and high_watermark > role.high_watermark:
            role.high_watermark = high_watermark
            self._noted.add(key)

    def keep(self) -> None:
        """Store the noted high watermarks."""
        if self._noted:
            self._changed()

    def rows(self) -> Rows:
        """Return the rows to store; later changes do not affect them."""
        for key in self._noted:
            self._write(key)
        self._noted.clear()
        return list(self._rows.values())

    def _write(self, key: Key) -> None:
        self._rows[key] = {"topic": key[0], "partition": key[1], **asdict(self._roles[key])}


_SHAPE = {
    "topic": str,
    "partition": int,
    "leads": bool,
    "promised": int,
    "accepted": int,
    "high_watermark": int,
    "group_epoch": int,
    "group_ticket": int,
}


def _is_sound(row: dict[str, Any]) -> bool:
    """Whether the numbers are valid."""
    epochs = row["promised"], row["accepted"], row["group_epoch"]
    return all(0 <= row[name] < 1 << 63 for name in ("partition", "high_watermark", "group_ticket")) and all(
        NO_EPOCH <= epoch < 1 << 63 for epoch in epochs
    )


def stored_roles(directory: str, changed: Callable[[], None], *, leads: bool) -> Roles:
    """The roles in ``roles.json`` of a data directory.

    Raises:
        CorruptRecord: the file is damaged.
        OSError: from the file system.
    """
    return Roles(load_rows(Path(directory) / ROLES, _SHAPE, _is_sound), changed, leads=leads)
