"""The file of the rewrite's groups, ``rewrite-groups.json``, written before any answer that depends on it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kafkacodec.datatypes import NamedTuple
from kafkacodec.dialects.line.group_files import remove_unfinished, save_rows
from kafkacodec.dialects.rewrite.stored import group_row, read_groups

if TYPE_CHECKING:
    from kafkacodec.dialects.line.storage import Rows
    from kafkacodec.dialects.rewrite.controller import GroupController

__all__ = ["LOG", "GroupStore"]

LOG: Final = "rewrite-groups"
"""The name of the file as a log of the service's effects."""


class _Saving(NamedTuple):
    """Contents of the file, which another thread writes."""

    path: Path
    rows: Rows
    version: int

    def sync(self) -> None:
        """Write it. Raises OSError."""
        save_rows(self.path, self.rows)


class GroupStore:
    """A `kafkacodec.broker.host.runner.Store` with one log, the file.

    Args:
        directory: the data directory.

    Attributes:
        groups: the stored groups, by name.

    Raises:
        CorruptRecord: on construction, the file is damaged.
        OSError: from the file system.
    """

    def __init__(self, directory: str) -> None:
        remove_unfinished(directory)
        self._path = Path(directory) / f"{LOG}.json"
        self.groups = read_groups(self._path)
        self._rows = {name: group_row(name, group) for name, group in self.groups.items()}
        self._version = self._saved = 0

    @property
    def is_saved(self) -> bool:
        """Whether the file has all changes."""
        return self._saved == self._version

    def take(self, controller: GroupController) -> None:
        """Take a change. Ephemeral groups end with the server, since it has no members then."""
        names = controller.take_changed()
        for name in names:
            group = controller.groups.get(name)
            if group is None or group.ephemeral:
                self._rows.pop(name, None)
            else:
                self._rows[name] = group_row(name, group)
        self._version += bool(names)

    def append(self, log: Any, data: Any) -> Any:
        """Nothing is appended by effects."""
        raise NotImplementedError

    def must_flush(self, log: Any) -> bool:
        """Always true: answers wait for the file."""
        return True

    def flushing(self, log: Any) -> _Saving:
        """Return the work of writing the file."""
        return _Saving(self._path, list(self._rows.values()), self._version)

    def flushed(self, log: Any, flushing: _Saving) -> None:
        """It is on the disk."""
        self._saved = flushing.version
