"""Small files of the line protocol's broker; the flushing thread writes changes that come meanwhile together."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kafkacodec.broker.topics.partition import Synced
from kafkacodec.datatypes import NamedTuple
from kafkacodec.dialects.line.group_files import save_rows

if TYPE_CHECKING:
    from kafkacodec.broker.topics.topics import Topics
    from kafkacodec.dialects.line.storage import Rows

__all__ = ["FILES", "KeptFiles", "LineStore"]

FILES: Final = "line-files"
"""The name of all these files as a log of the service's effects."""


class _Saving(NamedTuple):
    """Work for another thread: first the logs, as offsets must not outlive the records that they count."""

    logs: list[tuple[Any, Any]]
    files: list[tuple[Path, Rows]]
    version: int

    def sync(self) -> None:
        """Write it. Raises OSError."""
        for _, flushing in self.logs:
            flushing.sync()
        for path, rows in self.files:
            save_rows(path, rows)


class KeptFiles:
    """Changed files and their new contents.

    Args:
        directory: of the files.

    Attributes:
        version: the number of changes.
        saved: the number of changes on the disk.
        first: the logs that must be on the disk before the files.
    """

    def __init__(self, directory: str) -> None:
        self._directory = Path(directory)
        self._changed: dict[str, tuple[int, Callable[[], Rows]]] = {}
        self.version = self.saved = 0
        self.first: Callable[[], Iterable[Any]] = tuple

    @property
    def is_saved(self) -> bool:
        """Whether the disk has all changes."""
        return not self._changed

    def has_saved(self, name: str) -> bool:
        """Whether the disk has all changes of a file."""
        return name not in self._changed

    def change(self, name: str, rows: Callable[[], Rows]) -> None:
        """Change the rows of a file; `rows` is called when the file is written."""
        self.version += 1
        self._changed.pop(name, None)  # files are written in the order of their last changes
        self._changed[name] = self.version, rows

    def saving(self, logs: list[tuple[Any, Any]]) -> _Saving:
        """Return the work of writing the files, after the logs are on the disk."""
        return _Saving(
            logs, [(self._directory / name, rows()) for name, (_, rows) in self._changed.items()], self.version
        )

    def has_written(self, saving: _Saving) -> None:
        """It is on the disk."""
        self.saved = max(self.saved, saving.version)
        self._changed = {name: one for name, one in self._changed.items() if one[0] > saving.version}

    def save(self, topics: Topics) -> None:
        """Write changed files in this thread. Raises OSError."""
        if not self.is_saved:
            saving = self.saving([(log, topics.flushing(log)) for log in self.first()])
            saving.sync()
            self.has_written(saving)


class LineStore:
    """A `kafkacodec.broker.host.runner.Store` of the topics' logs, and of the files, as one more.

    Args:
        topics: have the logs.
        files: the files.
    """

    def __init__(self, topics: Topics, files: KeptFiles) -> None:
        self._topics, self._files = topics, files

    def append(self, log: Any, data: Any) -> Any:
        """Append to a log; to the files nothing but `Synced`. Raises as `Topics.append`."""
        return None if log == FILES and isinstance(data, Synced) else self._topics.append(log, data)

    def must_flush(self, log: Any) -> bool:
        """Whether a write counts only once it is on the disk; always true for the files."""
        return log == FILES or self._topics.must_flush(log)

    def flushing(self, log: Any) -> Any:
        """Return the work that makes the current state durable. Raises KeyError, OSError."""
        if log != FILES:
            return self._topics.flushing(log)
        return self._files.saving([(one, self._topics.flushing(one)) for one in self._files.first()])

    def flushed(self, log: Any, flushing: Any) -> None:
        """Note that the work is done."""
        if log != FILES:
            self._topics.flushed(log, flushing)
            return
        for one, flush in flushing.logs:
            self._topics.flushed(one, flush)
        self._files.has_written(flushing)
